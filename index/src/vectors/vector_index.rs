//! The vector index of a store: its current spaces, and the work due in them. It starts no thread and reads
//! no file: the host asks for work, runs it, and returns the result.
//!
//! An added vector is found at once, and a removed one no longer: rows that the graph does not have yet are
//! compared one by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::posting::Sequence;

use super::graph_file;
use super::rows::{VectorKey, VectorRows};
use super::space::{Space, Vector};
use super::space_index::SpaceIndex;
use super::view::VectorView;
use super::work::{SavedGraph, SpaceWork, WorkOutcome, WorkProduct, WorkResult, WorkTask};

/// The number of vectors up to which a full scan takes no longer than a graph.
const MAX_SCANNED_VECTORS: usize = 8192;
/// The graph is rebuilt when dead rows are at least `MIN_DEAD_ROWS` and one in `DEAD_DIVISOR`.
const DEAD_DIVISOR: usize = 5;
const MIN_DEAD_ROWS: usize = 64;
/// The graph is extended when unindexed rows exceed `MIN_UNINDEXED_ROWS` plus one in `UNINDEXED_DIVISOR`.
const MIN_UNINDEXED_ROWS: usize = 512;
const UNINDEXED_DIVISOR: usize = 64;
/// The graph is saved again when one row in this many has changed.
const UNSAVED_DIVISOR: usize = 8;

/// The spaces of a store.
///
/// ```
/// use grainstore_index::Sequence;
/// use grainstore_index::vectors::{Metric, NearestQuery, SearchEffort, Space, Vector, VectorIndex};
///
/// let space = Space::new("a-model", 2, Metric::Cosine)?;
/// let mut index = VectorIndex::new();
/// index.add(&space, Sequence::new(0), 0, &Vector::new([1.0, 0.0])?)?;
/// index.add(&space, Sequence::new(1), 0, &Vector::new([0.6, 0.8])?)?;
/// let vector = Vector::new([0.0, 2.0])?;
/// let ask = NearestQuery { vector: &vector, limit: 1, within: None, care: SearchEffort::Usual };
/// let mut everyone = |at: Sequence| Ok::<_, grainstore_index::Error>(Some([at.get() as u8; 32]));
/// let answer = index.view().search(&space, &ask, &mut everyone)?;
/// assert_eq!((answer.near[0].sequence, answer.near[0].score), (Sequence::new(1), 0.8));
/// # Ok::<(), grainstore_index::Error>(())
/// ```
#[derive(Debug)]
pub struct VectorIndex {
    spaces: Arc<BTreeMap<Space, SpaceIndex>>,
    states: BTreeMap<Space, SpaceState>,
    max_scanned: usize,
}

/// The state of a space beside its vectors.
#[derive(Debug, Default)]
struct SpaceState {
    /// Advances with every change that makes work in progress useless.
    generation: u64,
    /// A saved graph that was not loaded yet.
    file: Option<Vec<u8>>,
    /// The number of rows added and removed since the graph was saved; `None` if it never was.
    unsaved: Option<usize>,
}

impl Default for VectorIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl VectorIndex {
    /// An index without spaces.
    #[must_use]
    pub fn new() -> Self {
        Self::with_scan_up_to(MAX_SCANNED_VECTORS)
    }

    /// An index without spaces. Spaces of at most this many vectors have no graph and are scanned.
    #[must_use]
    pub fn with_scan_up_to(vectors: usize) -> Self {
        Self { spaces: Arc::default(), states: BTreeMap::new(), max_scanned: vectors }
    }

    /// The name of the file for the graph of a space.
    #[must_use]
    pub fn file_name(space: &Space) -> String {
        let digest = graph_file::digest(space);
        let start = digest.iter().take(8);
        start.map(|byte| format!("{byte:02x}")).chain([".graph".to_owned()]).collect()
    }

    /// A snapshot of all spaces.
    #[must_use]
    pub fn view(&self) -> VectorView {
        VectorView { spaces: Arc::clone(&self.spaces) }
    }

    /// Adds the vector of a grain, or of a part of it; replaces the one that is there.
    ///
    /// Adding in ascending order of sequence, as when a store is opened, saves memory.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: the vector does not fit this space. `ERR_INTEGRITY`: the space is full.
    pub fn add(
        &mut self,
        space: &Space,
        sequence: Sequence,
        chunk: u32,
        vector: &Vector,
    ) -> Result<()> {
        space.admit(vector)?;
        let shelves = Arc::make_mut(&mut self.spaces);
        if !shelves.contains_key(space) {
            shelves.insert(
                space.clone(),
                SpaceIndex::new(VectorRows::new(space.clone()), self.max_scanned),
            );
        }
        if let Some(shelf) = shelves.get_mut(space) {
            shelf.rows.push(VectorKey { sequence, chunk }, vector)?;
        }
        self.record(space).changed();
        Ok(())
    }

    /// Removes all vectors of a grain in every space. Returns the names of the saved graphs that may still
    /// record its neighbours: if the grain is erased, the caller must remove those files.
    pub fn remove(&mut self, sequence: Sequence) -> Vec<String> {
        let shelves = Arc::make_mut(&mut self.spaces);
        let removed = shelves
            .iter_mut()
            .filter_map(|(space, shelf)| shelf.rows.remove(sequence).then(|| space.clone()));
        let spaces: Vec<Space> = removed.collect();
        for space in &spaces {
            self.record(space).changed();
        }
        spaces.iter().map(Self::file_name).collect()
    }

    /// Removes a space with all its vectors, e.g. after its model was replaced. Returns the name of its file.
    pub fn remove_space(&mut self, space: &Space) -> String {
        Arc::make_mut(&mut self.spaces).remove(space);
        self.record(space).generation += 1;
        self.record(space).file = None;
        Self::file_name(space)
    }

    /// Hands over a saved graph. The next work of the space checks it; until then, and if it is damaged or
    /// stale, all vectors are compared one by one.
    pub fn restore(&mut self, space: &Space, bytes: Vec<u8>) {
        self.record(space).file = Some(bytes);
    }

    /// The most urgent work; `None` if none is due. To be called again after the result was adopted.
    #[must_use]
    pub fn next_work(&mut self) -> Option<SpaceWork> {
        let space = self.spaces.keys().find(|space| self.due(space).is_some())?.clone();
        let due = self.due(&space)?;
        let record = self.record(&space);
        let task = match due {
            DueWork::Load => WorkTask::Load(record.file.take()?),
            DueWork::Build => WorkTask::Build,
            DueWork::Extend => WorkTask::Extend,
            DueWork::Save => WorkTask::Save,
        };
        self.work_on(space, task)
    }

    /// Returns `true` if no work is due in any space: all graphs are in use and saved. Work that is running
    /// still counts as due.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.spaces.keys().all(|space| self.due(space).is_none())
    }

    /// The work before the store is closed: saving the graphs that changed.
    #[must_use]
    pub fn closing_work(&mut self) -> Option<SpaceWork> {
        let is_unsaved = |(space, shelf): &(&Space, &SpaceIndex)| {
            let saved = self.states.get(*space).and_then(|record| record.unsaved);
            shelf.graph.is_some() && saved != Some(0)
        };
        let space = self.spaces.iter().find(is_unsaved)?.0.clone();
        self.work_on(space, WorkTask::Save)
    }

    /// Applies the result of a work. Changes made since it began are not lost.
    pub fn adopt(&mut self, done: WorkResult) -> (WorkOutcome, Option<SavedGraph>) {
        let WorkResult { product: work, space, before, generation } = done;
        let shelves = Arc::make_mut(&mut self.spaces);
        let record = self.states.entry(space.clone()).or_default();
        let Some(shelf) = shelves.get_mut(&space).filter(|_| record.generation == generation)
        else {
            return (WorkOutcome::Dropped, None);
        };
        let outcome = match work {
            WorkProduct::Loaded(graph, outdated) => {
                record.generation += 1;
                record.unsaved = Some(outdated);
                shelf.graph = Some(graph);
                WorkOutcome::Loaded { outdated }
            }
            WorkProduct::Unusable => WorkOutcome::Unusable,
            WorkProduct::Built(rows, graph) => {
                record.generation += 1;
                record.unsaved = None;
                let vectors = rows.len();
                let is_built = graph.is_some();
                shelf.rows = replay_changes(rows, &before, &shelf.rows);
                shelf.graph = graph;
                if is_built { WorkOutcome::Built(vectors) } else { WorkOutcome::Compacted(vectors) }
            }
            WorkProduct::Extended(graph) => {
                record.generation += 1;
                let beside = shelf.unindexed().count();
                shelf.graph = Some(graph);
                WorkOutcome::Extended(beside.saturating_sub(shelf.unindexed().count()))
            }
            // A vector removed in the meantime may be erased: a file that names it must not be written.
            WorkProduct::Saved(_) if before.dead_count() != shelf.rows.dead_count() => {
                WorkOutcome::Dropped
            }
            WorkProduct::Saved(bytes) => {
                record.unsaved = Some(0);
                let saved = SavedGraph { name: Self::file_name(&space), bytes };
                return (WorkOutcome::Saved, Some(saved));
            }
            WorkProduct::Stopped => WorkOutcome::Dropped,
        };
        (outcome, None)
    }

    fn record(&mut self, space: &Space) -> &mut SpaceState {
        self.states.entry(space.clone()).or_default()
    }

    fn work_on(&self, space: Space, task: WorkTask) -> Option<SpaceWork> {
        let shelf = self.spaces.get(&space)?.clone();
        let generation = self.states.get(&space).map_or(0, |record| record.generation);
        Some(SpaceWork { space, index: shelf, task, generation })
    }

    fn due(&self, space: &Space) -> Option<DueWork> {
        let shelf = self.spaces.get(space)?;
        let record = self.states.get(space)?;
        let (all, dead) = (shelf.rows.len(), shelf.rows.dead_count());
        let few = shelf.rows.live_count() <= self.max_scanned;
        if record.file.is_some() && shelf.graph.is_none() && !few {
            return Some(DueWork::Load);
        }
        let many_dead = dead >= MIN_DEAD_ROWS && dead.saturating_mul(DEAD_DIVISOR) > all;
        if many_dead || (shelf.graph.is_none() && !few) {
            return Some(DueWork::Build);
        }
        shelf.graph.as_ref()?;
        if shelf.unindexed().count() > MIN_UNINDEXED_ROWS.saturating_add(all / UNINDEXED_DIVISOR) {
            return Some(DueWork::Extend);
        }
        let is_unsaved = |changes: usize| changes.saturating_mul(UNSAVED_DIVISOR) > all;
        record.unsaved.is_none_or(is_unsaved).then_some(DueWork::Save)
    }
}

/// The work due in a space, the most urgent first.
enum DueWork {
    Load,
    Build,
    Extend,
    Save,
}

impl SpaceState {
    fn changed(&mut self) {
        self.unsaved = self.unsaved.map(|changes| changes.saturating_add(1));
    }
}

/// The live rows of `before`, compacted, with the changes since.
fn replay_changes(mut rows: VectorRows, before: &VectorRows, now: &VectorRows) -> VectorRows {
    for row in before.ids() {
        if now.is_dead(row)
            && !before.is_dead(row)
            && let Some(key) = now.key(row)
        {
            rows.remove_key(key);
        }
    }
    for row in before.ids().end..now.ids().end {
        if !now.is_dead(row) {
            rows.copy_of(now, row);
        }
    }
    rows
}

#[cfg(test)]
#[path = "vector_index_tests.rs"]
mod tests;
