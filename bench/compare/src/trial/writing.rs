//! Writing: the load in batches, durable puts one by one and from many threads, and what is left to
//! do after them.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::data::{Item, Part, Row, fresh};
use crate::peer::Peer;
use crate::trial::Trial;
use compare_facts::{Figure, Unit, rate, time_calls};

/// Grains of a batch.
const BATCH: usize = 1000;
/// Threads that put at once.
const THREADS: usize = 16;
/// Durable puts of each: enough for several folds while they run.
const PUTS_EACH: usize = 1000;
/// Grains put before a flush: nearly what the engine keeps unfolded at most.
const BEFORE_FLUSH: usize = 4000;

impl Trial<'_> {
    /// Stores rows in durable batches, one right after the other, then flushes. Everything is
    /// prepared before the first, so that no store catches up with itself between batches.
    pub(super) fn load(&mut self, peer: &dyn Peer, part: Part<'_>, noted: bool) -> Result<()> {
        let batch = |rows: &[Row]| rows.iter().map(Row::item).collect::<Result<Vec<_>>>();
        let mut batches =
            part.rows.chunks(BATCH).map(batch).collect::<Result<Vec<_>>>()?.into_iter();
        let count = batches.len();
        let begun = Instant::now();
        let times = time_calls(count, count, Duration::MAX, |_| {
            peer.put(batches.next().unwrap_or_default())
        })?;
        peer.flush()?;
        let all = begun.elapsed();
        if noted {
            let rate = rate(part.rows.len(), all);
            self.note(
                "load in batches of 1,000, last flush included",
                Unit::PerSecond,
                Figure::once(rate),
            );
            self.note("durable batch of 1,000", Unit::Millis, Figure::millis(times)?);
        }
        Ok(())
    }

    /// Durable puts into the loaded store. Answers how many rows it added.
    pub(super) fn put(&mut self, peer: &dyn Peer) -> Result<usize> {
        let single = self.options.calls;
        let mut items = fresh(0, single)?.into_iter();
        let begun = Instant::now();
        let times = time_calls(single, single, Duration::MAX, |_| {
            peer.put(items.by_ref().take(1).collect())
        })?;
        peer.flush()?;
        let one = rate(single, begun.elapsed());
        self.note("durable put of one grain", Unit::Micros, Figure::micros(times)?);

        let many = rate(THREADS * PUTS_EACH, at_once(peer, single)?);
        self.note("durable puts, 1 thread, flush included", Unit::PerSecond, Figure::once(one));
        self.note("durable puts, 16 threads, flush included", Unit::PerSecond, Figure::once(many));
        self.note("16 threads over 1", Unit::Times, Figure::once(many / one));

        let put = single + THREADS * PUTS_EACH;
        let items = fresh(put, BEFORE_FLUSH)?;
        for batch in items.chunks(BATCH) {
            peer.put(batch.to_vec())?;
        }
        let start = Instant::now();
        if peer.flush()? {
            let time = vec![start.elapsed()];
            self.note(
                "fold or checkpoint of 4,000 grains",
                Unit::Millis,
                Figure { p90: None, p99: None, ..Figure::millis(time)? },
            );
        }
        Ok(put + BEFORE_FLUSH)
    }
}

/// How long many threads take, each putting its own grains durably one by one, and the flush.
fn at_once(peer: &dyn Peer, first: usize) -> Result<Duration> {
    let barrier = Barrier::new(THREADS + 1);
    let items = fresh(first, THREADS * PUTS_EACH)?;
    thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(PUTS_EACH)
            .map(|items| {
                let (items, barrier) = (items.to_vec(), &barrier);
                scope.spawn(move || put_each(peer, items, barrier))
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        for worker in workers {
            worker.join().map_err(|_| "a writing thread panicked")??;
        }
        peer.flush()?;
        Ok(start.elapsed())
    })
}

fn put_each(peer: &dyn Peer, items: Vec<Item>, barrier: &Barrier) -> Result<()> {
    barrier.wait();
    items.into_iter().try_for_each(|item| peer.put(vec![item]))
}
