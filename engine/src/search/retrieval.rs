//! The search structures of a store: its full text, its vectors, and its embedders if it has any.

use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::memory::MemoryBudget;
use crate::disk::vault::Vault;
use crate::search::embed::{
    EmbeddingWorker, Metric, SharedEmbedder, Space, WakeWriter, space_mismatch,
};
use crate::search::texts::{TextIndex, TextSettings};
use crate::search::vectors::StoreVectors;
use crate::state::follower::FollowerThread;
use crate::state::view::SharedView;
use crate::state::view::View;

/// An embedder of the options, with the metric its vectors are compared by.
pub(crate) type EmbedderOption = Option<(SharedEmbedder, Metric)>;

/// Everything that follows the truth and is searched.
#[derive(Debug, Clone)]
pub(crate) struct Retrieval {
    pub(crate) text_index: Arc<TextIndex>,
    pub(crate) vectors: Arc<StoreVectors>,
    pub(crate) embedder: Option<Arc<EmbeddingWorker>>,
    /// Embedder of the model the store is being moved away from.
    pub(crate) former_embedder: Option<Arc<EmbeddingWorker>>,
}

impl Retrieval {
    /// The search structures of a store in these directories, or of one in memory. `requests` reaches the
    /// writer thread.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA` if an embedder has an impossible model name or dimension; `ERR_SCHEMA`
    /// for a former embedder without another one of a different model.
    pub(crate) fn open(
        (words_home, vectors_home): (Option<&Path>, Option<&Path>),
        (former, leading): (&EmbedderOption, &EmbedderOption),
        wording: &TextSettings,
        (wake, vault, memory): (&WakeWriter, &Vault, MemoryBudget),
    ) -> Result<Self> {
        let keeping = |given: &EmbedderOption, leads| match given {
            Some((embedder, metric)) => {
                let embedder = (Arc::clone(&embedder.0), *metric);
                let wording = wording.clone();
                let keeping = EmbeddingWorker::new(embedder, leads, wording, Arc::clone(wake))?;
                Ok::<_, Error>(Some(Arc::new(keeping)))
            }
            None => Ok(None),
        };
        let former = keeping(former, false)?;
        let keeping = keeping(leading, true)?;
        if let Some(former) = &former {
            let model = keeping.as_ref().map(|keeping| keeping.space().model());
            if model.is_none_or(|model| model == former.space().model()) {
                let message = "a former embedder is of another model than the embedder beside it";
                let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
                return Err(Error::new(schema, message).with_hint("name both, each by its model"));
            }
        }
        let library = Arc::new(TextIndex::new(words_home, wording.clone(), vault, memory));
        Ok(Self {
            text_index: library,
            vectors: Arc::new(StoreVectors::new(vectors_home)),
            embedder: keeping,
            former_embedder: former,
        })
    }

    /// The embedders, the former one first.
    pub(crate) fn embedders(&self) -> impl Iterator<Item = &Arc<EmbeddingWorker>> {
        self.former_embedder.iter().chain(&self.embedder)
    }

    /// Checks that the embedders fit the stored vectors.
    ///
    /// # Errors
    /// `ERR_DIMENSION` if the stored vectors of their models have another length or metric; `ERR_INTEGRITY`,
    /// `ERR_IO`.
    pub(crate) fn check(&self, view: &View) -> Result<()> {
        let stored = view.spaces()?;
        for keeping in self.embedders() {
            let own = keeping.space();
            match stored.values().find(|stored| stored.model() == own.model()) {
                Some(stored) if stored != own => return Err(space_mismatch(stored, own)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Spaces of the store's embedders, for which room is kept under the limit of models.
    pub(crate) fn reserved_spaces(&self) -> Vec<Space> {
        self.embedders().map(|keeping| keeping.space().clone()).collect()
    }

    /// Starts the threads that follow the truth in the background. For a store in memory, full text and
    /// vectors are read on the first search instead.
    ///
    /// # Errors
    /// `ERR_IO` if a thread cannot be started.
    pub(crate) fn start_followers(
        &self,
        home: Option<&Path>,
        shared: &SharedView,
    ) -> Result<Vec<FollowerThread>> {
        let Self { text_index: library, vectors, embedder: keeping, former_embedder: former } =
            self.clone();
        let mut followers = Vec::new();
        if home.is_some() {
            followers.push(FollowerThread::start("grainstore-words", library, shared)?);
            followers.push(FollowerThread::start("grainstore-vectors", vectors, shared)?);
        }
        if let Some(keeping) = keeping {
            followers.push(FollowerThread::start("grainstore-embedder", keeping, shared)?);
        }
        if let Some(former) = former {
            followers.push(FollowerThread::start("grainstore-former", former, shared)?);
        }
        Ok(followers)
    }
}
