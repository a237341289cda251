//! Writing: the load in batches, durable puts one by one and from many threads, supersessions.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::peer::Peer;
use crate::record::{Figure, Unit, rate, time_calls};
use crate::trial::{Trial, works};

/// Facts of a batch.
const BATCH: u32 = 1000;
/// Threads that put at once.
const THREADS: u32 = 16;
/// Durable puts of each.
const PUTS_EACH: u32 = 1000;

impl Trial<'_> {
    /// Stores all facts in durable batches, then flushes. A batch is made when its turn comes, as a
    /// program does that has facts coming in; that is part of the rate, not of the batch.
    pub(super) fn load<P: Peer>(&mut self, peer: &P) -> Result<()> {
        let count = self.facts.count();
        let mut times = Vec::new();
        let began = Instant::now();
        for first in (0..count).step_by(usize::try_from(BATCH)?) {
            let items = self.items::<P>(first, BATCH.min(count - first))?;
            let start = Instant::now();
            peer.put_batch(items)?;
            times.push(start.elapsed());
        }
        peer.flush()?;
        let rate = rate(self.order.grains, began.elapsed());
        self.note(works::LOAD, Unit::PerSecond, Figure::once(rate));
        self.note(works::BATCH, Unit::Millis, Figure::millis(times)?);
        Ok(())
    }

    /// Durable puts and supersessions. Answers how many facts were added.
    pub(super) fn write<P: Peer>(&mut self, peer: &P) -> Result<usize> {
        let mut held = self.facts.count();
        let mut items = self.items::<P>(held, u32::try_from(self.order.calls)?)?.into_iter();
        let began = Instant::now();
        let times = time_calls(items.len(), 1, self.patience(), |_| {
            items.next().map_or(Ok(()), |item| peer.put(item))
        })?;
        peer.flush()?;
        let one = rate(times.len(), began.elapsed());
        held += u32::try_from(times.len())?;
        self.note(works::PUT, Unit::Micros, Figure::micros(times)?);
        self.note(works::ONE_THREAD, Unit::PerSecond, Figure::once(one));

        let (threads, took) = self.at_once(peer, held)?;
        held += threads;
        let many = rate(usize::try_from(threads)?, took);
        self.note(works::THREADS, Unit::PerSecond, Figure::once(many));
        self.note(works::OVER_ONE, Unit::Times, Figure::once(many / one));

        held += self.supersede(peer, held)?;
        Ok(usize::try_from(held - self.facts.count())?)
    }

    /// Puts facts in the place of others that lie far apart. Answers how many.
    fn supersede<P: Peer>(&mut self, peer: &P, held: u32) -> Result<u32> {
        let calls = u32::try_from(self.order.calls)?.min(self.facts.count());
        let apart = self.facts.count() / calls.max(1);
        let pair = |n: u32| {
            let old = P::key(self.facts.fact(n * apart))?;
            Ok((old, P::item(self.facts.successor(n * apart, held + n))?))
        };
        let mut pairs = (0..calls).map(pair).collect::<Result<Vec<_>>>()?.into_iter();
        let Some((old, new)) = pairs.next() else { return Ok(0) };
        if peer.supersede(&old, new)?.is_none() {
            return Ok(0);
        }
        let times = time_calls(pairs.len(), 1, self.patience(), |_| {
            pairs.next().map_or(Ok(()), |(old, new)| peer.supersede(&old, new).map(drop))
        })?;
        peer.flush()?;
        let count = u32::try_from(times.len())? + 1;
        self.note(works::SUPERSEDE, Unit::Micros, Figure::micros(times)?);
        Ok(count)
    }

    /// Many threads, each of which puts its own facts durably one by one, until they are done or out
    /// of patience. Answers how many they put, and how long they and the flush took.
    fn at_once<P: Peer>(&self, peer: &P, held: u32) -> Result<(u32, Duration)> {
        let barrier = Barrier::new(usize::try_from(THREADS)? + 1);
        let items = |thread| self.items::<P>(held + thread * PUTS_EACH, PUTS_EACH);
        let items = (0..THREADS).map(items).collect::<Result<Vec<_>>>()?;
        let patience = self.patience();
        let put_each = |items: Vec<P::Item>| -> Result<usize> {
            let mut items = items.into_iter();
            barrier.wait();
            let puts = |_| items.next().map_or(Ok(()), |item| peer.put(item));
            Ok(time_calls(usize::try_from(PUTS_EACH)?, 1, patience, puts)?.len())
        };
        thread::scope(|scope| {
            let workers: Vec<_> =
                items.into_iter().map(|items| scope.spawn(|| put_each(items))).collect();
            barrier.wait();
            let start = Instant::now();
            let mut put = 0;
            for worker in workers {
                put += worker.join().map_err(|_| "a writing thread panicked")??;
            }
            peer.flush()?;
            Ok((u32::try_from(put)?, start.elapsed()))
        })
    }

    /// Facts from a number on, ready to be stored.
    fn items<P: Peer>(&self, first: u32, count: u32) -> Result<Vec<P::Item>> {
        (first..first + count).map(|n| P::item(self.facts.fact(n))).collect()
    }
}
