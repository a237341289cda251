//! What is measured, in order: the load, the reads, single puts, opening, and the room on the disk.

use super::check;
use super::data::Data;
use super::figure::{rounded, timed};
use super::machine;
use super::turns::{Run, Side, Work};
use crate::error::Result;

/// Grains of a batch.
pub(super) const BATCH: u32 = 1_000;
/// Facts of a subject that are asked for.
pub(super) const LATEST: u32 = 16;
/// Facts of a page of a search.
pub(super) const FOUND: u32 = 10;

const READ: Work = Work { name: "", calls: 2_000, turn: 100, warm: 100, writes: false, all: false };
const PUT: Work = Work { name: "put", calls: 1_000, turn: 500, warm: 0, writes: true, all: false };
const LOAD: Work = Work { name: "batch", calls: 0, turn: 10, warm: 0, writes: true, all: true };
const OPEN: Work = Work { name: "open", calls: 30, turn: 1, warm: 1, writes: false, all: false };
const GET: Work = Work { name: "get", ..READ };
const SUBJECT: Work = Work { name: "s16", ..READ };
const SEARCH: Work = Work { name: "search", ..READ };
const ASSEMBLE: Work = Work { name: "assemble", calls: 1_000, ..READ };

/// The rows of the table: the name of a kind of work, and what it is.
pub(super) const ROWS: [(&str, &str); 7] = [
    (PUT.name, "put, durable"),
    (LOAD.name, "batch of 1,000, durable"),
    (GET.name, "get by address"),
    (SUBJECT.name, "latest 16 of a subject"),
    (SEARCH.name, "search, two words, top 10"),
    (ASSEMBLE.name, "ASSEMBLE, three sources"),
    (OPEN.name, "open, then one word"),
];

/// Bytes of the files of a side for each of its grains.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disk {
    pub(super) written: f64,
    pub(super) compacted: f64,
}

/// Loads a few facts, and compares the answers of everyone.
pub(super) fn rehearse(run: &mut Run<'_>) -> Result<()> {
    load(run)?;
    check::compare(run)?;
    run.sides.iter_mut().try_for_each(Side::close)
}

/// Measures everything. Returns the room that each side takes on the disk, in their order.
pub(super) fn measure(run: &mut Run<'_>) -> Result<Vec<Disk>> {
    load(run)?;
    for side in &mut run.sides {
        side.peer()?.settle()?;
    }
    check::compare(run)?;
    read(run)?;
    let put = run.measure(
        Work { calls: PUT.calls.min(run.data.grains()), ..PUT },
        |data, number| data.item(data.grains() + number),
        |side, item| {
            let peer = side.peer()?;
            timed(|| peer.put(item)).map(Some)
        },
    )?;
    run.finish(PUT, Some(put));
    open(run)?;
    run.tell("compacting", 0);
    let grains = run.data.grains() + put;
    run.sides.iter_mut().map(|side| room(side, grains)).collect()
}

/// Puts all facts in batches.
fn load(run: &mut Run<'_>) -> Result<()> {
    let grains = run.data.grains();
    let batch = |data: Data, number: u32| {
        let first = number * BATCH;
        let last = first.saturating_add(BATCH).min(grains);
        (first..last).map(|number| data.item(number)).collect::<Result<Vec<_>>>()
    };
    let work = Work { calls: grains.div_ceil(BATCH), ..LOAD };
    run.measure(work, batch, |side, items| {
        let peer = side.peer()?;
        timed(|| peer.put_batch(items)).map(Some)
    })?;
    run.finish(work, Some(grains));
    Ok(())
}

fn read(run: &mut Run<'_>) -> Result<()> {
    let address = |data: Data, question| Ok(data.item(data.some_number(question))?.address);
    run.measure(GET, address, |side, address| {
        let peer = side.peer()?;
        timed(|| peer.get(&address)).map(Some)
    })?;
    run.finish(GET, None);
    let subject = |data: Data, question| Ok(data.some_subject(question).0);
    run.measure(SUBJECT, subject, |side, subject| {
        let peer = side.peer()?;
        timed(|| peer.latest(&subject, LATEST)).map(Some)
    })?;
    run.finish(SUBJECT, None);
    let pair = |data: Data, question| Ok(data.some_pair(question));
    run.measure(SEARCH, pair, |side, pair| {
        let peer = side.peer()?;
        timed(|| peer.search(&[&pair.rare, &pair.common], FOUND)).map(Some)
    })?;
    run.finish(SEARCH, None);
    let statement = |data: Data, question| Ok(data.some_assembly(question).1);
    run.measure(ASSEMBLE, statement, |side, statement| {
        let peer = side.peer()?;
        let mut assembles = false;
        let took = timed(|| {
            let text = peer.assemble(&statement)?;
            assembles = text.is_some();
            Ok(text)
        })?;
        Ok(assembles.then_some(took))
    })?;
    run.finish(ASSEMBLE, None);
    Ok(())
}

/// Closes each store, and times opening it up to the first answer by a word.
fn open(run: &mut Run<'_>) -> Result<()> {
    let word = |data: Data, question| Ok(data.some_pair(question).common);
    run.measure(OPEN, word, |side, word| {
        side.close()?;
        timed(|| side.peer()?.search(&[&word], FOUND)).map(Some)
    })?;
    run.finish(OPEN, None);
    Ok(())
}

/// The bytes of the files of a side when it is closed, as it was written and once it is compacted.
fn room(side: &mut Side, grains: u32) -> Result<Disk> {
    side.close()?;
    let written = machine::disk_bytes(&side.directory)?;
    side.peer()?.compact()?;
    side.close()?;
    let compacted = machine::disk_bytes(&side.directory)?;
    let each = |bytes: f64| rounded(bytes / f64::from(grains.max(1)));
    Ok(Disk { written: each(written), compacted: each(compacted) })
}
