//! What a store is searched by: its full text, its vectors, and its embedders if it has any.

use std::path::Path;
use std::sync::Arc;

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::options::{Embeds, OpenOptions};
use crate::search::embed::{Keeping, Metric, Requests, Space};
use crate::search::texts::{Library, Wording};
use crate::search::vectors::Vectors;
use crate::state::follow::Following;
use crate::state::view::View;
use crate::write::plan::mixed;
use crate::write::writer::Shared;

/// Everything that follows the truth to be searched.
#[derive(Debug, Clone)]
pub(crate) struct Retrieval {
    pub(crate) library: Arc<Library>,
    pub(crate) vectors: Arc<Vectors>,
    pub(crate) keeping: Option<Arc<Keeping>>,
    /// That of the model the store is moved away from.
    pub(crate) former: Option<Arc<Keeping>>,
}

impl Retrieval {
    /// That of a store in this directory, or of one in memory, whose writer is asked this way.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA` for an embedder that says something impossible of itself;
    /// `ERR_SCHEMA` for a former embedder without another one that follows it.
    pub(crate) fn of(
        (words_home, vectors_home): (Option<&Path>, Option<&Path>),
        (options, wording): (&OpenOptions, &Wording),
        requests: &Requests,
    ) -> Result<Self> {
        let keeping = |given: &Option<(Embeds, Metric)>, leads| match given {
            Some((embedder, metric)) => {
                let embedder = (Arc::clone(&embedder.0), *metric);
                let wording = wording.clone();
                let keeping = Keeping::new(embedder, leads, wording, Arc::clone(requests))?;
                Ok::<_, Error>(Some(Arc::new(keeping)))
            }
            None => Ok(None),
        };
        let former = keeping(&options.former_embedder, false)?;
        let keeping = keeping(&options.embedder, true)?;
        if let Some(former) = &former {
            let model = keeping.as_ref().map(|keeping| keeping.space().model());
            if model.is_none_or(|model| model == former.space().model()) {
                let message = "a former embedder is of another model than the embedder beside it";
                let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
                return Err(Error::new(schema, message).with_hint("name both, each by its model"));
            }
        }
        let library = Arc::new(Library::new(words_home, wording.clone()));
        Ok(Self { library, vectors: Arc::new(Vectors::new(vectors_home)), keeping, former })
    }

    /// The embedders, the former one first.
    pub(crate) fn keepings(&self) -> impl Iterator<Item = &Arc<Keeping>> {
        self.former.iter().chain(&self.keeping)
    }

    /// Checks that the embedders fit the vectors that are stored.
    ///
    /// # Errors
    /// `ERR_DIMENSION` where those of their models are of another length, or compared in another way;
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn check(&self, view: &View) -> Result<()> {
        let stored = view.spaces()?;
        for keeping in self.keepings() {
            let own = keeping.space();
            match stored.values().find(|stored| stored.model() == own.model()) {
                Some(stored) if stored != own => return Err(mixed(stored, own)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Spaces of the store's embedders, which nobody else may take from them.
    pub(crate) fn reserved(&self) -> Vec<Space> {
        self.keepings().map(|keeping| keeping.space().clone()).collect()
    }

    /// Threads that follow in the background. Of a store in memory words and vectors are read when
    /// somebody asks for them.
    ///
    /// # Errors
    /// `ERR_IO` where the system gives no thread.
    pub(crate) fn follow(&self, home: Option<&Path>, shared: &Shared) -> Result<Vec<Following>> {
        let Self { library, vectors, keeping, former } = self.clone();
        let mut followers = Vec::new();
        if home.is_some() {
            followers.push(Following::start("grainstore-words", library, shared)?);
            followers.push(Following::start("grainstore-vectors", vectors, shared)?);
        }
        if let Some(keeping) = keeping {
            followers.push(Following::start("grainstore-embedder", keeping, shared)?);
        }
        if let Some(former) = former {
            followers.push(Following::start("grainstore-former", former, shared)?);
        }
        Ok(followers)
    }
}
