//! What is done with a store, in order, and what of it is timed.
//!
//! - `works`: the names of all that is measured. `reading`, `writing`: the calls.

mod reading;
pub mod works;
mod writing;

use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) use reading::assembly;

use crate::Result;
use crate::check;
use crate::data::{Facts, Frequency};
use crate::order::Order;
use crate::peer::Peer;
use crate::record::{Figure, Record, Unit, real};
use crate::system::{disk_bytes, peak_bytes, quiet_disk};

/// Facts of a subject that are asked for.
pub(crate) const LATEST: u32 = 16;
/// Facts of one relation of a subject.
const PER_RELATION: u32 = 2;
/// Rows of a search.
pub(crate) const FOUND: u32 = 10;
/// Openings that are timed.
const OPENINGS: usize = 5;

/// A store at work.
struct Trial<'t> {
    order: &'t Order,
    facts: Facts,
    records: Vec<Record>,
}

/// Measures a store in an empty directory.
///
/// # Errors
/// The store's; for a wrong answer.
pub fn run<P: Peer>(order: &Order) -> Result<Vec<Record>> {
    let facts = Facts::new(order.grains)?;
    let mut trial = Trial { order, facts, records: Vec::new() };
    let directory = order.directory.as_path();
    quiet_disk()?;
    let peer = P::open(directory)?;
    trial.load(&peer)?;
    peer.settle()?;
    quiet_disk()?;
    check::compare(&peer, facts, |number| P::key(facts.fact(number)))?;
    trial.read(&peer)?;
    quiet_disk()?;
    let held = real(order.grains + trial.write(&peer)?);
    peer.flush()?;
    trial.note(works::MEMORY, Unit::Mebibytes, Figure::once(kibibytes(peak_bytes()?)? / 1024.0));
    peer.close()?;
    trial.disk(works::DISK, directory, held)?;
    trial.open::<P>(directory)?;
    let mut peer = P::open(directory)?;
    let is_compacted = peer.compact()?.is_some();
    peer.close()?;
    if is_compacted {
        trial.disk(works::DISK_COMPACTED, directory, held)?;
    }
    Ok(trial.records)
}

impl Trial<'_> {
    fn note(&mut self, work: &str, unit: Unit, figure: Figure) {
        let Order { grains, pass, peer, .. } = self.order;
        let (peer, work) = (peer.clone(), work.to_owned());
        self.records.push(Record { grains: *grains, pass: *pass, peer, work, unit, figure });
    }

    fn disk(&mut self, work: &str, directory: &Path, held: f64) -> Result<()> {
        let bytes = kibibytes(disk_bytes(directory)?)? * 1024.0;
        self.note(work, Unit::BytesPerGrain, Figure::once(bytes / held));
        Ok(())
    }

    /// Opens the store that was closed in order, up to the first answer by a word.
    fn open<P: Peer>(&mut self, directory: &Path) -> Result<()> {
        let mut times = Vec::new();
        for question in 0..u32::try_from(OPENINGS)? {
            let [word, _] = self.facts.some_words(Frequency::Common, question);
            let began = Instant::now();
            let peer = P::open(directory)?;
            let found = peer.search(&[&word], FOUND)?;
            times.push(began.elapsed());
            peer.close()?;
            match found {
                None => return Ok(()),
                Some(rows) if rows.is_empty() => return Err("what was stored is lost".into()),
                Some(_) => {}
            }
        }
        let figure = Figure { p90: None, p99: None, ..Figure::millis(times)? };
        self.note(works::OPEN, Unit::Millis, figure);
        Ok(())
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.order.patience)
    }
}

fn kibibytes(bytes: u64) -> Result<f64> {
    Ok(f64::from(u32::try_from(bytes / 1024)?))
}
