//! The vectors of a store, in memory for searching, with graphs over large spaces.
//!
//! The truth has every vector. They are read on the first vector search and followed from then on; graphs are
//! built in the background and saved under `vectors/`. Until a graph exists, and for rows it does not cover
//! yet, vectors are compared one by one.

use grainstore_cal::CancelHandle;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use grainstore_index::vectors::{
    BuildOptions, Space, SpaceStats, VectorIndex, VectorView as Spaces, WorkOutcome,
};
use serde::Serialize;

use crate::base::error::Result;
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::disk::derived_files::DerivedFiles;
use crate::state::follower::Follower;
use crate::state::view::View;

/// Threads that build a graph.
const BUILD_THREADS: usize = 2;
/// Interval at which a caller waiting for graphs checks again if no notification arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The vectors of a store.
#[derive(Debug)]
pub(crate) struct StoreVectors {
    /// `None` for a store in memory.
    files: Option<DerivedFiles>,
    state: Mutex<StoreVectorsState>,
    /// Held while a graph is adopted and written, so that files are written one at a time and the later one
    /// last. Taken before `state`.
    saving: Mutex<()>,
    /// Notified when work on a graph has ended.
    work_ended: Condvar,
    /// Set to end work on graphs.
    stopped: AtomicBool,
    /// True if rows were read that may need a graph.
    work_due: AtomicBool,
    /// Times that a graph was adopted: views that read the vectors before read them again.
    adopted: AtomicU64,
}

#[derive(Debug)]
struct StoreVectorsState {
    vector_index: VectorIndex,
    /// The last row of the truth that was read; `None` before the first search.
    row: Option<u64>,
    /// True once saved graphs were read.
    restored: bool,
    /// Spaces by number as of the last read. No two spaces of a store ever have the same number.
    known: BTreeMap<u32, Space>,
    /// Number of saved graphs that could not be used.
    unusable: usize,
    /// Vectors that a saved graph had with other values, by space.
    outdated: BTreeMap<Space, usize>,
}

/// Statistics of the vectors of one space, in [`Store::stats`](crate::Store::stats).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VectorSpaceStats {
    /// The model.
    pub model: String,
    /// Numbers of each vector.
    pub dimension: usize,
    /// The metric: `cosine`, `dot` or `l2`.
    pub metric: &'static str,
    /// Number of vectors; `None` if they have not been read.
    pub vectors: Option<usize>,
    /// Vectors that no graph covers, which are compared one by one.
    pub beside: usize,
    /// Vectors that a saved graph had with other values when it was read, because it was older than the store
    /// or of another copy of it. They were not covered by the graph then.
    pub outdated: usize,
    /// Vectors in memory that were removed or replaced.
    pub dead: usize,
    /// Memory they take, in bytes.
    pub bytes: usize,
}

impl StoreVectors {
    /// The vectors of the store in a directory, not read yet.
    pub(crate) fn new(store: Option<&Path>) -> Self {
        let (known, outdated) = (BTreeMap::new(), BTreeMap::new());
        let (vector_index, row, restored) = (VectorIndex::new(), None, false);
        let state = StoreVectorsState { vector_index, row, restored, known, unusable: 0, outdated };
        let files = store.map(|store| DerivedFiles::new(store, "vectors", ".graph"));
        let (stopped, wanted) = (AtomicBool::new(false), AtomicBool::new(false));
        let (saving, ended) = (Mutex::new(()), Condvar::new());
        Self {
            files,
            state: Mutex::new(state),
            saving,
            work_ended: ended,
            stopped,
            work_due: wanted,
            adopted: AtomicU64::new(0),
        }
    }

    /// All vectors of a view.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` if rows of an encrypted store were changed by somebody without the key. A
    /// damaged row of a plain store is skipped.
    pub(crate) fn of(&self, view: &View) -> Result<Spaces> {
        let mut state = self.lock();
        self.follow(&mut state, view)?;
        Ok(state.vector_index.view())
    }

    /// Statistics of each space. Does not read vectors that no search has needed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn stats(&self, view: &View) -> Result<Vec<VectorSpaceStats>> {
        let (known, outdated) = {
            let state = self.lock();
            (state.vector_index.view(), state.outdated.clone())
        };
        let figures = view.spaces()?.values().map(|space| {
            let stats: Option<SpaceStats> = known.stats(space);
            VectorSpaceStats {
                model: space.model().to_owned(),
                dimension: space.dimension(),
                metric: space.metric().name(),
                vectors: stats.as_ref().map(|stats| stats.vectors),
                beside: stats.as_ref().map_or(0, |stats| stats.unindexed),
                outdated: outdated.get(space).copied().unwrap_or(0),
                dead: stats.as_ref().map_or(0, |stats| stats.dead),
                bytes: stats.as_ref().map_or(0, |stats| stats.rows_bytes + stats.graph_bytes),
            }
        });
        Ok(figures.collect())
    }

    /// Waits at most `patience` until the newest view has every graph it is due and their files are written.
    /// Returns `true` if it has. Reads the vectors, as a first search does.
    ///
    /// # Errors
    /// As [`StoreVectors::of`]; those of `newest`.
    pub(crate) fn wait(
        &self,
        patience: Duration,
        newest: impl Fn() -> Result<Arc<View>>,
    ) -> Result<bool> {
        // A store in memory has no graphs.
        if self.files.is_none() {
            return Ok(true);
        }
        let end = Instant::now() + patience;
        loop {
            let view = newest()?;
            let mut state = self.lock();
            self.follow(&mut state, &view)?;
            if state.vector_index.is_settled() {
                drop(state);
                // The thread that adopted the last graph may still be writing it.
                drop(self.saving.lock().unwrap_or_else(PoisonError::into_inner));
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.work_due.store(true, Ordering::Relaxed);
            let waited = self.work_ended.wait_timeout(state, left.min(POLL_INTERVAL));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Number of saved graphs that could not be used since the store was opened.
    pub(crate) fn unusable_graphs(&self) -> usize {
        self.lock().unusable
    }

    /// Forgets a space that the view no longer has, and removes its saved graph.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn forget_space(&self, space: &Space, view: &View) -> Result<()> {
        let mut state = self.lock();
        if state.row.is_some() {
            self.follow(&mut state, view)?;
        }
        self.files.as_ref().map_or(Ok(()), |files| files.remove(&VectorIndex::file_name(space)))
    }

    /// Forgets the vectors of erased grains, which the view no longer has. A reader of an older view cannot
    /// bring them back.
    ///
    /// # Errors
    /// As [`StoreVectors::of`].
    pub(crate) fn forget_grains(&self, grains: &[Sequence], view: &View) -> Result<()> {
        let mut state = self.lock();
        if state.row.is_some() {
            self.follow(&mut state, view)?;
        }
        for at in grains {
            let _ = state.vector_index.remove(*at);
        }
        Ok(())
    }

    /// Overwrites all saved graphs: each may reveal what an erased grain was near to.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn shred(&self) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        self.files.as_ref().map_or(Ok(()), DerivedFiles::shred)
    }

    /// Reads the rows of the truth after the last one read. The first time, also reads saved graphs.
    fn follow(&self, state: &mut StoreVectorsState, view: &View) -> Result<()> {
        let last = view.last_vector_row()?;
        if state.row.is_some_and(|row| row >= last) {
            return Ok(());
        }
        if state.row.is_none() {
            view.check_vectors()?;
        }
        let spaces = view.spaces()?;
        // The removal of a space has a row number of its own, so every view past it lacks the space.
        let before = std::mem::replace(&mut state.known, spaces.clone());
        for (number, space) in before {
            if spaces.get(&number) != Some(&space) {
                let _ = state.vector_index.remove_space(&space);
            }
        }
        for row in view.vectors_after(state.row.unwrap_or(0))? {
            let (row, placed) = row?;
            if let Some(placed) = placed
                && let Some(space) = spaces.get(&placed.space)
            {
                state.vector_index.add(space, placed.sequence, placed.chunk, &placed.vector)?;
            }
            // A row that was added is not added again if a later one fails.
            state.row = Some(row);
        }
        state.row = Some(last);
        self.work_due.store(true, Ordering::Relaxed);
        if let (false, Some(files)) = (state.restored, &self.files) {
            for space in spaces.values() {
                // A graph that cannot be read is built again.
                if let Ok(Some(bytes)) = files.read(&VectorIndex::file_name(space)) {
                    state.vector_index.restore(space, bytes);
                }
            }
        }
        state.restored = true;
        Ok(())
    }

    /// Does the next work due in one space; with `only_save`, only saves a graph. Returns `true` if none was
    /// due.
    fn run_due_work(&self, only_save: bool) -> bool {
        let mut state = self.lock();
        let due = if only_save {
            state.vector_index.closing_work()
        } else {
            state.vector_index.next_work()
        };
        drop(state);
        let Some(work) = due else { return true };
        let space = work.space().clone();
        let done = work.run(&BuildOptions { threads: BUILD_THREADS, stop: &self.stopped });
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let (outcome, saved) = state.vector_index.adopt(done);
        match outcome {
            WorkOutcome::Unusable => state.unusable += 1,
            WorkOutcome::Loaded { outdated } => _ = state.outdated.insert(space, outdated),
            _ => {}
        }
        drop(state);
        if !matches!(outcome, WorkOutcome::Saved | WorkOutcome::Unusable | WorkOutcome::Dropped) {
            self.adopted.fetch_add(1, Ordering::Release);
        }
        self.work_ended.notify_all();
        if let (Some(saved), Some(files)) = (saved, &self.files) {
            // What cannot be saved is built again when the store is next opened.
            let _ = files.write_unlisted(&saved.name, &saved.bytes);
            let state = self.lock();
            if !state.known.values().any(|space| VectorIndex::file_name(space) == saved.name) {
                // The space was removed meanwhile.
                let _ = files.remove(&saved.name);
            }
        }
        // Work that was dropped is due again and would be dropped again: report that none is due.
        outcome == WorkOutcome::Dropped
    }

    fn lock(&self) -> MutexGuard<'_, StoreVectorsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for StoreVectors {
    /// Graphs wait for the first search: a store that only takes vectors needs none.
    fn step(&self, view: &View) -> Result<bool> {
        {
            let mut state = self.lock();
            if state.row.is_none() {
                return Ok(true);
            }
            self.follow(&mut state, view)?;
        }
        // Rows read after this point set the flag again.
        self.work_due.store(false, Ordering::Relaxed);
        let done = self.run_due_work(false);
        self.work_due.fetch_or(!done, Ordering::Relaxed);
        Ok(done)
    }

    fn has_pending_work(&self) -> bool {
        self.work_due.load(Ordering::Relaxed)
    }

    /// New vectors are compared one by one, however many there are; the writer never waits.
    fn limit_lag(&self, _: &View) -> Result<()> {
        Ok(())
    }

    /// Saves the graphs that changed. Those that are due are left to the background thread, so a flush or
    /// close does not wait for a build.
    fn save(&self, _: &View) -> Result<()> {
        if self.files.is_some() {
            while !self.run_due_work(true) {}
        }
        Ok(())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl View {
    /// Returns the vectors of this view, with the last graph of them.
    ///
    /// # Errors
    /// As [`StoreVectors::of`].
    pub(crate) fn vectors(&self, all: &StoreVectors, cancel: &CancelHandle) -> Result<Spaces> {
        let adopted = all.adopted.load(Ordering::Acquire);
        let known = self.vectors.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, vectors)) = known.as_ref().filter(|(graphs, _)| *graphs == adopted) {
            return Ok(vectors.clone());
        }
        drop(known);
        let began = Instant::now();
        let read = all.of(self);
        cancel.extend_deadlines(began.elapsed());
        let read = read?;
        *self.vectors.write().unwrap_or_else(PoisonError::into_inner) =
            Some((adopted, read.clone()));
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
