//! What a store is searched by: its full text, its vectors, and its embedder if it has one.

use std::path::Path;
use std::sync::Arc;

use crate::embed::{Keeping, Requests};
use crate::error::Result;
use crate::follow::Following;
use crate::options::OpenOptions;
use crate::texts::Library;
use crate::vectors::Vectors;
use crate::writer::Shared;

/// Everything that follows the truth to be searched.
#[derive(Debug, Clone)]
pub(crate) struct Retrieval {
    pub(crate) library: Arc<Library>,
    pub(crate) vectors: Arc<Vectors>,
    pub(crate) keeping: Option<Arc<Keeping>>,
}

impl Retrieval {
    /// That of a store in this directory, or of one in memory, whose writer is asked this way.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA` for an embedder that says something impossible of itself.
    pub(crate) fn of(
        home: Option<&Path>,
        options: &OpenOptions,
        requests: &Requests,
    ) -> Result<Self> {
        let keeping = options.embedder.as_ref().map(|(embedder, metric)| {
            let embedder = (Arc::clone(&embedder.0), *metric);
            Arc::new(Keeping::new(embedder, options.wording.clone(), Arc::clone(requests)))
        });
        keeping.as_ref().map(|keeping| keeping.space()).transpose()?;
        let library = Arc::new(Library::new(home, options.wording.clone()));
        Ok(Self { library, vectors: Arc::new(Vectors::new(home)), keeping })
    }

    /// Threads that follow in the background. Of a store in memory words and vectors are read when
    /// somebody asks for them.
    ///
    /// # Errors
    /// `ERR_IO` where the system gives no thread.
    pub(crate) fn follow(&self, home: Option<&Path>, shared: &Shared) -> Result<Vec<Following>> {
        let Self { library, vectors, keeping } = self.clone();
        let mut followers = Vec::new();
        if home.is_some() {
            followers.push(Following::start("grainstore-words", library, shared)?);
            followers.push(Following::start("grainstore-vectors", vectors, shared)?);
        }
        if let Some(keeping) = keeping {
            followers.push(Following::start("grainstore-embedder", keeping, shared)?);
        }
        Ok(followers)
    }
}
