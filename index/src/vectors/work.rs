//! Long-running work on a space, done on a snapshot on any thread of the host. Knows nothing of changes in
//! the meantime.

use std::sync::Arc;

use super::approximate::{Approximate, Effort};
use super::graph::Graph;
use super::rows::Rows;
use super::saved;
use super::shelf::Shelf;
use super::space::Space;

/// Work that is due. It holds a snapshot: run it, and pass the result to
/// [`VectorIndex::adopt`](super::VectorIndex::adopt).
#[derive(Debug)]
pub struct Work {
    pub(crate) space: Space,
    pub(crate) shelf: Shelf,
    pub(crate) task: Task,
    /// The generation of the space it belongs to.
    pub(crate) generation: u64,
}

/// The task of a work.
#[derive(Debug)]
pub(crate) enum Task {
    /// Load a saved graph.
    Load(Vec<u8>),
    /// Drop dead rows, and build a graph if there are many rows.
    Build,
    /// Add new rows to the graph.
    Extend,
    /// Encode the graph.
    Save,
}

/// The result of a work.
#[derive(Debug)]
pub struct Done {
    pub(crate) work: Made,
    pub(crate) space: Space,
    pub(crate) before: Rows,
    pub(crate) generation: u64,
}

/// The product of a work.
#[derive(Debug)]
pub(crate) enum Made {
    /// A graph, and the number of its vectors that have other numbers now.
    Loaded(Arc<dyn Approximate>, usize),
    Unusable,
    Built(Rows, Option<Arc<dyn Approximate>>),
    Extended(Arc<dyn Approximate>),
    Saved(Vec<u8>),
    Nothing,
}

/// The outcome of a work, for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
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

/// A file to be written under `vectors/`, atomically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl Work {
    /// The space it is for.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Runs the work. Takes seconds if it builds a graph of many vectors.
    #[must_use]
    pub fn run(self, effort: &Effort<'_>) -> Done {
        let Self { space, shelf, task, generation } = self;
        let work = made(&shelf, task, effort);
        Done { work, space, before: shelf.rows, generation }
    }
}

fn made(shelf: &Shelf, task: Task, effort: &Effort<'_>) -> Made {
    match task {
        Task::Load(bytes) => match saved::from_bytes(&bytes, &shelf.rows) {
            Some(read) => Made::Loaded(Arc::new(read.graph), read.outdated),
            None => Made::Unusable,
        },
        Task::Build => {
            let rows = shelf.rows.compact();
            if rows.len() <= shelf.few {
                return Made::Built(rows, None);
            }
            match Graph::build(&rows, effort) {
                Some(graph) => Made::Built(rows, Some(Arc::new(graph))),
                None => Made::Nothing,
            }
        }
        Task::Extend => {
            let extended = shelf.graph.as_ref().map(|graph| graph.extended(&shelf.rows, effort));
            extended.flatten().map_or(Made::Nothing, Made::Extended)
        }
        Task::Save => {
            let bytes = shelf.graph.as_ref().map(|graph| graph.to_bytes(&shelf.rows));
            bytes.map_or(Made::Nothing, Made::Saved)
        }
    }
}
