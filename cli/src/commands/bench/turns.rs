//! Calls of one kind of work, timed: all that are measured take turns, so that they meet the same machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grainstore::cal::CancelHandle;
use indicatif::ProgressBar;

use super::data::Data;
use super::figure::{Figure, timed};
use super::peer::{CONTENDERS, Contender, Peer};
use crate::error::{Code, Error, Result};

/// How long one kind of work goes on; after that it ends with the turn.
const PATIENCE: Duration = Duration::from_secs(3);

/// One that is measured, in a directory of its own.
pub(super) struct Side {
    pub(super) contender: &'static Contender,
    pub(super) directory: PathBuf,
    peer: Option<Box<dyn Peer>>,
    /// Times of the work that is measured now, and of the flushes behind its turns.
    times: Vec<Duration>,
    flushes: Duration,
    /// Figures of the work that is done, by its name.
    pub(super) figures: BTreeMap<&'static str, Figure>,
}

impl Side {
    fn new(contender: &'static Contender, directory: PathBuf) -> Self {
        let (peer, times, flushes) = (None, Vec::new(), Duration::ZERO);
        Self { contender, directory, peer, times, flushes, figures: BTreeMap::new() }
    }

    /// The store, which is opened where it is not.
    pub(super) fn peer(&mut self) -> Result<&mut (dyn Peer + 'static)> {
        let opened = match self.peer.take() {
            Some(open) => open,
            None => (self.contender.open)(&self.directory)?,
        };
        Ok(&mut **self.peer.insert(opened))
    }

    /// Closes the store in order, if it is open.
    pub(super) fn close(&mut self) -> Result<()> {
        self.peer.take().map_or(Ok(()), Peer::close)
    }

    /// Makes a figure of the times that were taken, with a rate where grains were written.
    fn finish(&mut self, name: &'static str, written: Option<u32>) {
        let took = self.times.iter().sum::<Duration>() + std::mem::take(&mut self.flushes);
        if let Some(figure) = Figure::of(std::mem::take(&mut self.times)) {
            let figure = match written {
                Some(grains) => figure.with_rate(grains, took),
                None => figure,
            };
            self.figures.insert(name, figure);
        }
    }
}

/// One kind of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) name: &'static str,
    /// Calls at most.
    pub(super) calls: u32,
    /// Calls of a turn.
    pub(super) turn: u32,
    /// Calls before the first that is timed.
    pub(super) warm: u32,
    /// Whether it writes: each turn ends with a flush, so that no work is left beside the next turn.
    pub(super) writes: bool,
    /// Whether all calls are made, however long they take.
    pub(super) all: bool,
}

/// All that are measured, with the same facts.
pub(super) struct Run<'b> {
    pub(super) data: Data,
    pub(super) sides: Vec<Side>,
    cancel: &'b CancelHandle,
    bar: &'b ProgressBar,
}

impl<'b> Run<'b> {
    /// Everyone who is measured, each with an empty directory below this one.
    pub(super) fn new(
        data: Data,
        below: &Path,
        cancel: &'b CancelHandle,
        bar: &'b ProgressBar,
    ) -> Result<Self> {
        let side = |contender: &'static Contender| {
            let directory = below.join(contender.name.to_lowercase());
            fs::create_dir_all(&directory).map_err(|error| {
                let message = format!("{} cannot be made: {error}", directory.display());
                Error::new(Code::Io, message, "")
            })?;
            Ok(Side::new(contender, directory))
        };
        let sides = CONTENDERS.iter().map(side).collect::<Result<_>>()?;
        Ok(Self { data, sides, cancel, bar })
    }

    /// Ends here if Ctrl-C was pressed.
    pub(super) fn check_cancelled(&self) -> Result<()> {
        match self.cancel.stop_reason() {
            None => Ok(()),
            Some(_) => Err(Error::new(Code::Cancelled, "stopped before the end", "")),
        }
    }

    /// Tells what is done now, where anybody watches.
    pub(super) fn tell(&self, what: &'static str, steps: u32) {
        self.bar.set_message(what);
        self.bar.set_length(u64::from(steps));
        self.bar.set_position(0);
    }

    /// Times a kind of work, and returns how many calls each made. What a call needs is prepared before its
    /// turn; a call answers how long it took, or nothing where the store cannot do it.
    pub(super) fn measure<Q>(
        &mut self,
        work: Work,
        prepare: impl Fn(Data, u32) -> Result<Q>,
        call: impl Fn(&mut Side, Q) -> Result<Option<Duration>>,
    ) -> Result<u32> {
        let data = self.data;
        self.tell(work.name, work.calls);
        for number in 0..work.warm {
            for side in &mut self.sides {
                call(side, prepare(data, work.calls + number)?)?;
            }
        }
        let (began, mut done, mut turn) = (Instant::now(), 0, 0_u32);
        while done < work.calls && (done == 0 || work.all || began.elapsed() < PATIENCE) {
            let until = done.saturating_add(work.turn).min(work.calls);
            // Nobody is always first.
            let mut order: Vec<usize> = (0..self.sides.len()).collect();
            let by = usize::from(!turn.is_multiple_of(2)).min(order.len());
            order.rotate_left(by);
            for at in order {
                self.take_turn(at, work, (done..until).map(|n| prepare(data, n)), &call)?;
            }
            (done, turn) = (until, turn.saturating_add(1));
            self.bar.set_position(u64::from(done));
        }
        Ok(done)
    }

    /// Has one side make its calls of a turn.
    fn take_turn<Q>(
        &mut self,
        at: usize,
        work: Work,
        inputs: impl Iterator<Item = Result<Q>>,
        call: &impl Fn(&mut Side, Q) -> Result<Option<Duration>>,
    ) -> Result<()> {
        let inputs = inputs.collect::<Result<Vec<Q>>>()?;
        for input in inputs {
            self.check_cancelled()?;
            if let Some(side) = self.sides.get_mut(at) {
                let took = call(side, input)?;
                side.times.extend(took);
            }
        }
        if let Some(side) = self.sides.get_mut(at).filter(|_| work.writes) {
            let took = timed(|| side.peer()?.flush())?;
            side.flushes += took;
        }
        Ok(())
    }

    /// Makes figures of what was timed last; with a rate if so many grains were written.
    pub(super) fn finish(&mut self, work: Work, written: Option<u32>) {
        self.sides.iter_mut().for_each(|side| side.finish(work.name, written));
    }
}
