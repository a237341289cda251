//! One peer at one size, from an empty directory to a compacted store: what is measured, in order.
//!
//! - `writing`: load, durable puts, threads, flush. `reading`: answers checked, then timed.
//! - `process`: what needs a process of its own: opening, memory, and opening after a crash.

mod process;
mod reading;
mod writing;

use std::path::Path;
use std::time::Duration;

pub(crate) use process::{crash, open};
pub(crate) use reading::Questions;

use crate::Result;
use crate::data::{Dataset, Source};
use crate::options::Run;
use crate::peer::Contender;
use crate::shapes::{HUB_SHAPES, SHAPES};
use compare_facts::{Figure, Record, Unit, real};
use compare_facts::{disk_bytes, quiet_disk};

/// Rows of the subject everybody talks about, at most.
const HUB_ROWS: usize = 50_000;
/// Rows of it in one namespace.
const HUB_ROWS_EACH: usize = 50;

/// What every peer is given at one size, and what it must answer.
pub(crate) struct Stage {
    /// Grains a store is loaded with.
    pub(crate) grains: usize,
    /// Those, and then the rows of the hub.
    data: Dataset,
    questions: Questions,
    hub_questions: Questions,
}

/// One peer at work.
pub(crate) struct Trial<'t> {
    stage: &'t Stage,
    options: &'t Run,
    contender: Contender,
    pass: usize,
    records: &'t mut Vec<Record>,
}

impl Stage {
    /// Makes the rows and the questions, and answers some of them by looking at every row.
    ///
    /// # Errors
    /// The format's, for a row that makes no valid grain.
    pub(crate) fn of(source: &Source, grains: usize, calls: usize) -> Result<Self> {
        let mut data = Dataset::of(source, grains)?;
        let hub = HUB_ROWS.min(grains / 2);
        data.push_hub(hub, (hub / HUB_ROWS_EACH).max(1))?;
        let questions = Questions::about(data.first(grains), &SHAPES, calls);
        let hub_questions = Questions::about(data.rest(0), &HUB_SHAPES, calls);
        Ok(Self { grains, data, questions, hub_questions })
    }

    /// Rows of the hub.
    #[must_use]
    pub(crate) fn hub_rows(&self) -> usize {
        self.data.len() - self.grains
    }

    /// Namespaces the hub has rows in.
    #[must_use]
    pub(crate) fn hub_namespaces(&self) -> usize {
        (self.hub_rows() / HUB_ROWS_EACH).max(1)
    }
}

impl<'t> Trial<'t> {
    /// A peer, to be measured.
    pub(crate) fn new(
        stage: &'t Stage,
        options: &'t Run,
        contender: Contender,
        pass: usize,
        records: &'t mut Vec<Record>,
    ) -> Self {
        Self { stage, options, contender, pass, records }
    }

    /// Measures everything, in a directory that is empty.
    ///
    /// # Errors
    /// The store's; for a wrong answer; for a child process that fails.
    pub(crate) fn run(mut self, directory: &Path) -> Result<()> {
        let Stage { grains, data, questions, hub_questions } = self.stage;
        quiet_disk()?;
        let mut peer = (self.contender.open)(directory)?;
        self.load(peer.as_ref(), data.first(*grains), true)?;
        peer.settle()?;
        self.read(peer.as_ref(), questions)?;
        self.get(peer.as_ref(), data.first(*grains).addresses)?;
        self.load(peer.as_ref(), data.rest(*grains), false)?;
        peer.settle()?;
        self.read(peer.as_ref(), hub_questions)?;

        quiet_disk()?;
        let fresh = self.put(peer.as_ref())?;
        let held = real(data.len() + fresh);
        peer.flush()?;
        self.disk("disk, as written", directory, held)?;
        if peer.compact()? {
            self.disk("disk, compacted", directory, held)?;
        }
        drop(peer);
        quiet_disk()?;
        self.processes(directory, fresh)
    }

    fn note(&mut self, work: &'static str, unit: Unit, figure: Figure) {
        let (grains, pass) = (self.stage.grains, self.pass);
        let (peer, work) = (self.contender.name.to_owned(), work.to_owned());
        self.records.push(Record { grains, pass, peer, work, unit, figure });
    }

    fn disk(&mut self, work: &'static str, directory: &Path, held: f64) -> Result<()> {
        let kibibytes = u32::try_from(disk_bytes(directory)? / 1024)?;
        let each = f64::from(kibibytes) * 1024.0 / held;
        self.note(work, Unit::BytesPerGrain, Figure::once(each));
        Ok(())
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.options.patience)
    }
}

#[cfg(test)]
mod tests;
