//! The search structures of a store: its full text, its vectors, and its embedders if it has any.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::memory::MemoryBudget;
use crate::base::sync::RwLock;
use crate::disk::vault::Vault;
use crate::search::embed::{
    Embedder, EmbeddingWorker, Metric, SharedEmbedder, Space, WakeWriter, space_mismatch,
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
    /// The embedder of the options, or the one attached since.
    embedder: Arc<RwLock<Option<Arc<EmbeddingWorker>>>>,
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
            embedder: Arc::new(RwLock::new(keeping)),
            former_embedder: former,
        })
    }

    /// The store's embedder.
    pub(crate) fn embedder(&self) -> Option<Arc<EmbeddingWorker>> {
        self.embedder.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The embedders, the former one first.
    pub(crate) fn embedders(&self) -> impl Iterator<Item = Arc<EmbeddingWorker>> {
        self.former_embedder.clone().into_iter().chain(self.embedder())
    }

    /// Gives an open store an embedder, and returns the thread that embeds its grains.
    ///
    /// # Errors
    /// `ERR_CONFLICT` if it has one; `ERR_DIMENSION`, `ERR_SCHEMA` if it does not fit; `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn attach(
        &self,
        embedder: (Arc<dyn Embedder>, Metric),
        wake: WakeWriter,
        (view, shared): (&View, &SharedView),
    ) -> Result<FollowerThread> {
        let settings = self.text_index.settings().clone();
        let worker = Arc::new(EmbeddingWorker::new(embedder, true, settings, wake)?);
        if let Some(present) = self.embedders().next() {
            let message = format!("the store has an embedder, of {}", present.space().model());
            let error = Error::new(ErrorKind::Conflict, message);
            return Err(error.with_hint("detach the one that was attached, or open it without one"));
        }
        check_space(view, worker.space())?;
        let follower = start_embedder(Arc::clone(&worker), shared)?;
        *self.embedder.write().unwrap_or_else(PoisonError::into_inner) = Some(worker);
        Ok(follower)
    }

    /// Takes the embedder of an open store away.
    pub(crate) fn detach(&self) -> Option<Arc<EmbeddingWorker>> {
        self.embedder.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Checks that the embedders fit the stored vectors.
    ///
    /// # Errors
    /// `ERR_DIMENSION` if the stored vectors of their models have another length or metric; `ERR_INTEGRITY`,
    /// `ERR_IO`.
    pub(crate) fn check(&self, view: &View) -> Result<()> {
        self.embedders().try_for_each(|keeping| check_space(view, keeping.space()))
    }

    /// Spaces of the store's embedders, for which room is kept under the limit of models.
    pub(crate) fn reserved_spaces(&self) -> Vec<Space> {
        self.embedders().map(|keeping| keeping.space().clone()).collect()
    }

    /// Starts the threads that follow the truth in the background. For a store in memory, full text and
    /// vectors are read on the first search instead. Vectors are made if it `embeds`.
    ///
    /// # Errors
    /// `ERR_IO` if a thread cannot be started.
    pub(crate) fn start_followers(
        &self,
        (home, embeds): (Option<&Path>, bool),
        shared: &SharedView,
    ) -> Result<Vec<FollowerThread>> {
        let Self { text_index: library, vectors, embedder: _, former_embedder: former } =
            self.clone();
        let mut followers = Vec::new();
        if home.is_some() {
            followers.push(FollowerThread::start("grainstore-words", library, shared)?);
            followers.push(FollowerThread::start("grainstore-vectors", vectors, shared)?);
        }
        if embeds && let Some(keeping) = self.embedder() {
            followers.push(start_embedder(keeping, shared)?);
        }
        if embeds && let Some(former) = former {
            followers.push(FollowerThread::start("grainstore-former", former, shared)?);
        }
        Ok(followers)
    }
}

fn start_embedder(worker: Arc<EmbeddingWorker>, shared: &SharedView) -> Result<FollowerThread> {
    FollowerThread::start("grainstore-embedder", worker, shared)
}

/// Checks that the vectors stored of a model are comparable with those to come.
///
/// # Errors
/// `ERR_DIMENSION` if they have another length or metric; `ERR_INTEGRITY`, `ERR_IO`.
fn check_space(view: &View, own: &Space) -> Result<()> {
    let stored = view.spaces()?;
    match stored.values().find(|stored| stored.model() == own.model()) {
        Some(stored) if stored != own => Err(space_mismatch(stored, own)),
        _ => Ok(()),
    }
}
