//! Long-running work on a space, done on a snapshot on any thread of the host. Knows nothing of changes in
//! the meantime.

use std::sync::Arc;

use super::approximate::{ApproximateIndex, BuildOptions};
use super::graph::HnswGraph;
use super::graph_file;
use super::rows::VectorRows;
use super::space::Space;
use super::space_index::SpaceIndex;

/// Work that is due. It holds a snapshot: run it, and pass the result to
/// [`VectorIndex::adopt`](super::VectorIndex::adopt).
///
/// ```
/// use grainstore_index::Sequence;
/// use grainstore_index::vectors::{BuildOptions, Metric, Space, Vector, VectorIndex, WorkOutcome};
/// use std::sync::atomic::AtomicBool;
///
/// let space = Space::new("a-model", 2, Metric::L2)?;
/// let mut index = VectorIndex::with_scan_up_to(1);
/// # for at in 0..300_u16 {
/// #     let vector = Vector::new([f32::from(at % 50), f32::from(at / 50)])?;
/// #     index.add(&space, Sequence::new(at.into()), 0, &vector)?;
/// # }
/// // `index` holds more vectors than are scanned, so a graph of them is due.
/// if let Some(work) = index.next_work() {
///     let done = work.run(&BuildOptions { threads: 1, stop: &AtomicBool::new(false) });
///     assert!(matches!(index.adopt(done), (WorkOutcome::Built(300), None)));
/// }
/// assert!(!index.is_settled(), "the graph is not saved yet");
/// # Ok::<(), grainstore_index::Error>(())
/// ```
#[derive(Debug)]
pub struct SpaceWork {
    pub(crate) space: Space,
    pub(crate) index: SpaceIndex,
    pub(crate) task: WorkTask,
    /// The generation of the space it belongs to.
    pub(crate) generation: u64,
}

/// The task of a work.
#[derive(Debug)]
pub(crate) enum WorkTask {
    /// Load a saved graph.
    Load(Vec<u8>),
    /// Drop dead rows, and build a graph if there are many rows.
    Build,
    /// Add new rows to the graph.
    Extend,
    /// Encode the graph.
    Save,
}

/// The result of a [`SpaceWork`].
#[derive(Debug)]
pub struct WorkResult {
    pub(crate) product: WorkProduct,
    pub(crate) space: Space,
    pub(crate) before: VectorRows,
    pub(crate) generation: u64,
}

/// The product of a work.
#[derive(Debug)]
pub(crate) enum WorkProduct {
    /// A graph, and the number of its vectors that have other numbers now.
    Loaded(Arc<dyn ApproximateIndex>, usize),
    Unusable,
    Built(VectorRows, Option<Arc<dyn ApproximateIndex>>),
    Extended(Arc<dyn ApproximateIndex>),
    Saved(Vec<u8>),
    Stopped,
}

/// The outcome of a [`SpaceWork`], for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkOutcome {
    /// A saved graph is in use.
    Loaded {
        /// The number of its vectors that have other numbers now; they are compared one by one.
        outdated: usize,
    },
    /// A saved graph is damaged, or of other vectors; it will be rebuilt.
    Unusable,
    /// A new graph of this many vectors is in use.
    Built(usize),
    /// This many vectors are left, too few for a graph.
    Compacted(usize),
    /// The graph was extended by this many vectors.
    Extended(usize),
    /// The graph was encoded and is to be written.
    Saved,
    /// The work was stopped, or its result came too late: nothing changed.
    Dropped,
}

/// A file that a [`SpaceWork`] made, to be written under `vectors/`, atomically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedGraph {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl SpaceWork {
    /// The space it is for.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Runs the work. Takes seconds if it builds a graph of many vectors.
    #[must_use]
    pub fn run(self, effort: &BuildOptions<'_>) -> WorkResult {
        let Self { space, index: shelf, task, generation } = self;
        let work = run_task(&shelf, task, effort);
        WorkResult { product: work, space, before: shelf.rows, generation }
    }
}

fn run_task(shelf: &SpaceIndex, task: WorkTask, effort: &BuildOptions<'_>) -> WorkProduct {
    match task {
        WorkTask::Load(bytes) => match graph_file::from_bytes(&bytes, &shelf.rows) {
            Some(read) => WorkProduct::Loaded(Arc::new(read.graph), read.outdated),
            None => WorkProduct::Unusable,
        },
        WorkTask::Build => {
            let rows = shelf.rows.compact();
            if rows.len() <= shelf.max_scanned {
                return WorkProduct::Built(rows, None);
            }
            match HnswGraph::build(&rows, effort) {
                Some(graph) => WorkProduct::Built(rows, Some(Arc::new(graph))),
                None => WorkProduct::Stopped,
            }
        }
        WorkTask::Extend => {
            let extended = shelf.graph.as_ref().map(|graph| graph.extended(&shelf.rows, effort));
            extended.flatten().map_or(WorkProduct::Stopped, WorkProduct::Extended)
        }
        WorkTask::Save => {
            let bytes = shelf.graph.as_ref().map(|graph| graph.to_bytes(&shelf.rows));
            bytes.map_or(WorkProduct::Stopped, WorkProduct::Saved)
        }
    }
}
