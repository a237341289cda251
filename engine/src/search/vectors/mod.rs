//! The vectors of a store for searching: read from the truth, with graphs over those that are many.
//!
//! The truth has every vector. They are read when somebody first searches by one, and followed from
//! then on; graphs are made in the background and saved under `vectors/`. Until one is there, and
//! for what it does not have yet, vectors are compared one by one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use grainstore_index::vectors::{Effort, Keeper, Outcome, Space, SpaceStats, View as Spaces};
use serde::Serialize;

use crate::base::error::Result;
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::disk::derived::Files;
use crate::state::follow::Follower;
use crate::state::view::View;

/// Threads that make a graph.
const THREADS: usize = 2;
/// How often who waits for graphs looks whether they are there, if nobody tells.
const LOOK: Duration = Duration::from_millis(50);

/// The vectors of a store.
#[derive(Debug)]
pub(crate) struct Vectors {
    /// Nothing for a store that is in memory.
    files: Option<Files>,
    state: Mutex<State>,
    /// Held while a graph is taken over and written: one file at a time, the later one last.
    saving: Mutex<()>,
    /// Told when a work on graphs has ended.
    ended: Condvar,
    /// Ends work on graphs.
    stopped: AtomicBool,
    /// Whether something was read that may want a graph.
    wanted: AtomicBool,
}

#[derive(Debug)]
struct State {
    keeper: Keeper,
    /// The last row of the truth that was read; none before somebody searched.
    row: Option<u64>,
    /// Whether saved graphs were read.
    restored: bool,
    /// The spaces there were then, by their numbers, which no two spaces of a store have.
    known: BTreeMap<u32, Space>,
    /// Saved graphs that were of no use.
    unusable: usize,
    /// Vectors that saved graphs had otherwise, by space.
    outdated: BTreeMap<Space, usize>,
}

/// Figures of the vectors of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VectorSpace {
    /// The model.
    pub model: String,
    /// Numbers of each vector.
    pub dimension: usize,
    /// How they are compared: `cosine`, `dot` or `l2`.
    pub metric: &'static str,
    /// Vectors, where they were read.
    pub vectors: Option<usize>,
    /// Vectors among them that no graph covers: they are compared one by one.
    pub beside: usize,
    /// Vectors that a saved graph knew as others when it was read: it was older than the store, or of
    /// another copy of it. They were beside it then.
    pub outdated: usize,
    /// Vectors in memory that were removed or replaced.
    pub dead: usize,
    /// Memory they take, in bytes.
    pub bytes: usize,
}

impl Vectors {
    /// Those of the store in a directory, as yet unread.
    pub(crate) fn new(store: Option<&Path>) -> Self {
        let (known, outdated) = (BTreeMap::new(), BTreeMap::new());
        let (keeper, row, restored) = (Keeper::new(), None, false);
        let state = State { keeper, row, restored, known, unusable: 0, outdated };
        let files = store.map(|store| Files::of(store, "vectors", ".graph"));
        let (stopped, wanted) = (AtomicBool::new(false), AtomicBool::new(false));
        let (saving, ended) = (Mutex::new(()), Condvar::new());
        Self { files, state: Mutex::new(state), saving, ended, stopped, wanted }
    }

    /// All vectors of a view.
    ///
    /// # Errors
    /// `ERR_IO`. A row that is damaged is not found.
    pub(crate) fn of(&self, view: &View) -> Result<Spaces> {
        let mut state = self.lock();
        self.follow(&mut state, view)?;
        Ok(state.keeper.view())
    }

    /// Figures of each space. Vectors nobody has searched are not read for it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn stats(&self, view: &View) -> Result<Vec<VectorSpace>> {
        let (known, outdated) = {
            let state = self.lock();
            (state.keeper.view(), state.outdated.clone())
        };
        let figures = view.spaces()?.values().map(|space| {
            let stats: Option<SpaceStats> = known.stats(space);
            VectorSpace {
                model: space.model().to_owned(),
                dimension: space.dimension(),
                metric: space.metric().name(),
                vectors: stats.as_ref().map(|stats| stats.vectors),
                beside: stats.as_ref().map_or(0, |stats| stats.beside),
                outdated: outdated.get(space).copied().unwrap_or(0),
                dead: stats.as_ref().map_or(0, |stats| stats.dead),
                bytes: stats.as_ref().map_or(0, |stats| stats.rows_bytes + stats.graph_bytes),
            }
        });
        Ok(figures.collect())
    }

    /// Waits until the newest view has every graph it is due, and their files are written; at most so
    /// long. Gives whether it has. Reads the vectors, as a first search does.
    ///
    /// # Errors
    /// As [`Vectors::of`]; those of `newest`.
    pub(crate) fn wait(
        &self,
        patience: Duration,
        newest: impl Fn() -> Result<Arc<View>>,
    ) -> Result<bool> {
        // Of a store in memory nobody makes graphs.
        if self.files.is_none() {
            return Ok(true);
        }
        let end = Instant::now() + patience;
        loop {
            let view = newest()?;
            let mut state = self.lock();
            self.follow(&mut state, &view)?;
            if state.keeper.is_settled() {
                drop(state);
                // Who took over the last of them may be writing it.
                drop(self.saving.lock().unwrap_or_else(PoisonError::into_inner));
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.wanted.store(true, Ordering::Relaxed);
            let waited = self.ended.wait_timeout(state, left.min(LOOK));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Saved graphs that were of no use since the store was opened.
    pub(crate) fn remade(&self) -> usize {
        self.lock().unusable
    }

    /// Forgets a space that a view has no more, and removes its saved graph.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn forget(&self, space: &Space, view: &View) -> Result<()> {
        let mut state = self.lock();
        if state.row.is_some() {
            self.follow(&mut state, view)?;
        }
        self.files.as_ref().map_or(Ok(()), |files| files.remove(&Keeper::file_of(space)))
    }

    /// Forgets the vectors of erased grains, of which a view has none any more. Whoever still reads an older
    /// one brings none of them back.
    ///
    /// # Errors
    /// As [`Vectors::of`].
    pub(crate) fn forget_grains(&self, grains: &[Sequence], view: &View) -> Result<()> {
        let mut state = self.lock();
        if state.row.is_some() {
            self.follow(&mut state, view)?;
        }
        for at in grains {
            let _ = state.keeper.remove(*at);
        }
        Ok(())
    }

    /// Overwrites all saved graphs: each may say what an erased grain was near to.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn shred(&self) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        self.files.as_ref().map_or(Ok(()), Files::shred)
    }

    /// Reads what the truth has beyond what was read. The first time, saved graphs too.
    fn follow(&self, state: &mut State, view: &View) -> Result<()> {
        let last = view.last_vector()?;
        if state.row.is_some_and(|row| row >= last) {
            return Ok(());
        }
        let spaces = view.spaces()?;
        // The removal of a space has a row of its own: what is newer than it has the space no more.
        let before = std::mem::replace(&mut state.known, spaces.clone());
        for (number, space) in before {
            if spaces.get(&number) != Some(&space) {
                let _ = state.keeper.remove_space(&space);
            }
        }
        for row in view.vectors_after(state.row.unwrap_or(0))? {
            let (row, placed) = row?;
            if let Some(placed) = placed
                && let Some(space) = spaces.get(&placed.space)
            {
                state.keeper.add(space, placed.sequence, placed.chunk, &placed.vector)?;
            }
            // What was taken is not taken again, should a later one fail.
            state.row = Some(row);
        }
        state.row = Some(last);
        self.wanted.store(true, Ordering::Relaxed);
        if let (false, Some(files)) = (state.restored, &self.files) {
            for space in spaces.values() {
                // A graph that cannot be read is made again.
                if let Ok(Some(bytes)) = files.read(&Keeper::file_of(space)) {
                    state.keeper.restore(space, bytes);
                }
            }
        }
        state.restored = true;
        Ok(())
    }

    /// Does what is due in one space, or only saves a graph. Gives whether nothing was due.
    fn work(&self, only_save: bool) -> bool {
        let mut state = self.lock();
        let due = if only_save { state.keeper.last_plan() } else { state.keeper.plan() };
        drop(state);
        let Some(work) = due else { return true };
        let space = work.space().clone();
        let done = work.run(&Effort { threads: THREADS, stop: &self.stopped });
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let (outcome, saved) = state.keeper.adopt(done);
        match outcome {
            Outcome::Unusable => state.unusable += 1,
            Outcome::Loaded { outdated } => _ = state.outdated.insert(space, outdated),
            _ => {}
        }
        drop(state);
        self.ended.notify_all();
        if let (Some(saved), Some(files)) = (saved, &self.files) {
            // What cannot be saved is made again when the store is next opened.
            let _ = files.keep(&saved.name, &saved.bytes);
            let state = self.lock();
            if !state.known.values().any(|space| Keeper::file_of(space) == saved.name) {
                // The space was removed meanwhile.
                let _ = files.remove(&saved.name);
            }
        }
        // What was given up is due again, and would be given up again.
        outcome == Outcome::Dropped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Vectors {
    /// Graphs wait for the first search: a store that only takes vectors has no use for them.
    fn step(&self, view: &View) -> Result<bool> {
        {
            let mut state = self.lock();
            if state.row.is_none() {
                return Ok(true);
            }
            self.follow(&mut state, view)?;
        }
        // What is read from here on wants another look.
        self.wanted.store(false, Ordering::Relaxed);
        let done = self.work(false);
        self.wanted.fetch_or(!done, Ordering::Relaxed);
        Ok(done)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// New vectors are found one by one, however many.
    fn stay_close(&self, _: &View) -> Result<()> {
        Ok(())
    }

    /// Saves the graphs that changed. Those that are due are left to the thread in the background:
    /// whoever flushes or closes a store waits for none.
    fn settle(&self, _: &View) -> Result<()> {
        if self.files.is_some() {
            while !self.work(true) {}
        }
        Ok(())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
