//! The vectors of a store for searching: read from the truth, with graphs over those that are many.
//!
//! The truth has every vector. They are read when somebody first searches by one, and followed from
//! then on; graphs are made in the background and saved under `vectors/`. Until one is there, and
//! for what it does not have yet, vectors are compared one by one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use grainstore_index::vectors::{Effort, Keeper, Outcome, Space, SpaceStats, View as Spaces};
use serde::Serialize;

use crate::derived::Files;
use crate::error::Result;
use crate::follow::Follower;
use crate::sync::{Mutex, MutexGuard};
use crate::view::View;

/// Threads that make a graph.
const THREADS: usize = 2;

/// The vectors of a store.
#[derive(Debug)]
pub(crate) struct Vectors {
    /// Nothing for a store that is in memory.
    files: Option<Files>,
    state: Mutex<State>,
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
    /// The spaces there were then, by their numbers, which no two spaces of a store have.
    known: BTreeMap<u32, Space>,
    /// Saved graphs that were of no use.
    unusable: usize,
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
    /// Vectors in memory that were removed or replaced.
    pub dead: usize,
    /// Memory they take, in bytes.
    pub bytes: usize,
}

impl Vectors {
    /// Those of the store in a directory, as yet unread.
    pub(crate) fn new(store: Option<&Path>) -> Self {
        let state = State { keeper: Keeper::new(), row: None, known: BTreeMap::new(), unusable: 0 };
        let files = store.map(|store| Files::of(store, "vectors"));
        let (stopped, wanted) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { files, state: Mutex::new(state), stopped, wanted }
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
        let known = self.lock().keeper.view();
        let figures = view.spaces()?.values().map(|space| {
            let stats: Option<SpaceStats> = known.stats(space);
            VectorSpace {
                model: space.model().to_owned(),
                dimension: space.dimension(),
                metric: space.metric().name(),
                vectors: stats.as_ref().map(|stats| stats.vectors),
                beside: stats.as_ref().map_or(0, |stats| stats.beside),
                dead: stats.as_ref().map_or(0, |stats| stats.dead),
                bytes: stats.as_ref().map_or(0, |stats| stats.rows_bytes + stats.graph_bytes),
            }
        });
        Ok(figures.collect())
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

    /// Reads what the truth has beyond what was read. The first time, saved graphs too.
    fn follow(&self, state: &mut State, view: &View) -> Result<()> {
        let last = view.last_vector()?;
        if state.row.is_some_and(|row| row >= last) {
            return Ok(());
        }
        let first = state.row.is_none();
        let spaces = view.spaces()?;
        // The removal of a space has a row of its own: what is newer than it has the space no more.
        let before = std::mem::replace(&mut state.known, spaces.clone());
        for (number, space) in before {
            if spaces.get(&number) != Some(&space) {
                let _ = state.keeper.remove_space(&space);
            }
        }
        for row in view.vectors_after(state.row.unwrap_or(0))? {
            let placed = match row {
                Ok((_, placed)) => placed,
                // It is for `verify` to name.
                Err(error) if error.is_integrity() => continue,
                Err(error) => return Err(error),
            };
            if let Some(space) = spaces.get(&placed.space) {
                state.keeper.add(space, placed.sequence, placed.chunk, &placed.vector)?;
            }
        }
        state.row = Some(last);
        self.wanted.store(true, Ordering::Relaxed);
        if let (true, Some(files)) = (first, &self.files) {
            for space in spaces.values() {
                // A graph that cannot be read is made again.
                if let Ok(Some(bytes)) = files.read(&Keeper::file_of(space)) {
                    state.keeper.restore(space, bytes);
                }
            }
        }
        Ok(())
    }

    /// Does what is due in one space. Gives whether nothing was.
    fn work(&self, last: bool) -> bool {
        let mut state = self.lock();
        let due = if last { state.keeper.last_plan() } else { state.keeper.plan() };
        drop(state);
        let Some(work) = due else { return true };
        let done = work.run(&Effort { threads: THREADS, stop: &self.stopped });
        let mut state = self.lock();
        let (outcome, saved) = state.keeper.adopt(done);
        state.unusable += usize::from(outcome == Outcome::Unusable);
        drop(state);
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
        let done = self.work(false);
        self.wanted.store(!done, Ordering::Relaxed);
        Ok(done)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// New vectors are found one by one, however many.
    fn stay_close(&self, _: &View) -> Result<()> {
        Ok(())
    }

    /// Makes the graphs that are due, unless the store is being closed, and saves those that changed.
    fn settle(&self, view: &View) -> Result<()> {
        {
            let mut state = self.lock();
            if self.files.is_none() || state.row.is_none() {
                return Ok(());
            }
            self.follow(&mut state, view)?;
        }
        for last in [false, true] {
            loop {
                let closing = !last && self.stopped.load(Ordering::Relaxed);
                if closing || self.work(last) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
