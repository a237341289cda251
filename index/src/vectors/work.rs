//! Work on a space that takes long: done from a snapshot, wherever the host likes. Knows nothing of
//! what happens meanwhile.

use std::sync::Arc;

use super::approximate::{Approximate, Effort};
use super::graph::Graph;
use super::rows::Rows;
use super::saved;
use super::shelf::Shelf;
use super::space::Space;

/// Something that is due. It holds a snapshot: do it, and give the result back to the keeper.
#[derive(Debug)]
pub struct Work {
    pub(crate) space: Space,
    pub(crate) shelf: Shelf,
    pub(crate) task: Task,
    /// The state of the keeper it belongs to.
    pub(crate) generation: u64,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Task {
    /// Read a saved graph.
    Load(Vec<u8>),
    /// Leave dead rows behind, and make a graph if there are many.
    Build,
    /// Take new rows into the graph.
    Extend,
    /// Write the graph.
    Save,
}

/// What came of a work.
#[derive(Debug)]
pub struct Done {
    pub(crate) work: Made,
    pub(crate) space: Space,
    pub(crate) before: Rows,
    pub(crate) generation: u64,
}

/// What was made.
#[derive(Debug)]
pub(crate) enum Made {
    /// A graph, and how many vectors it was made with others of.
    Loaded(Arc<dyn Approximate>, usize),
    Unusable,
    Built(Rows, Option<Arc<dyn Approximate>>),
    Extended(Arc<dyn Approximate>),
    Saved(Vec<u8>),
    Nothing,
}

/// What a work did, for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A saved graph serves. So many vectors it had otherwise than they are: they stand beside it.
    Loaded {
        /// How many.
        outdated: usize,
    },
    /// A saved graph is damaged, or of other vectors; one is made anew.
    Unusable,
    /// A new graph serves, of this many vectors.
    Built(usize),
    /// So many vectors are left that no graph is needed.
    Compacted(usize),
    /// The graph took in this many vectors.
    Extended(usize),
    /// The graph is to be saved.
    Saved,
    /// Stopped before its end, or too late: it changed nothing.
    Dropped,
}

/// A file to be written under `vectors/`, whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Its name.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl Work {
    /// The space it is for.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Does it. Takes seconds where a graph of many vectors is made.
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
