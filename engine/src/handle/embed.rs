//! Vectors of stored grains: giving them, listing them as embedding references (OMS 7.2), and what makes them.

use std::sync::Arc;

use grainstore_format::ContentAddress;

use crate::base::error::{Result, catch_storage_panic};
use crate::handle::opening::waker;
use crate::handle::session::Session;
use crate::handle::store::Store;
use crate::search::embed::{Embedder, Embedding, EmbeddingRef, Metric, check_count, refs};
use crate::write::writer::WriteRequest;

impl Store {
    /// Gives a store that is open an [embedder](crate::embed::Embedder), as
    /// [`OpenOptions::embedder`](crate::OpenOptions::embedder) gives one that is opened: for a host that has one only
    /// later, or for a while. The grains that are stored are embedded too.
    ///
    /// ```
    /// use grainstore::embed::{Embedder, Metric, Vector};
    /// use grainstore::prelude::*;
    /// use std::{sync::Arc, time::Duration};
    ///
    /// struct Lengths; // a real one asks a model
    ///
    /// impl Embedder for Lengths {
    ///     fn model(&self) -> &str { "lengths" }
    ///     fn dimension(&self) -> usize { 2 }
    ///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
    ///         texts.iter().map(|text| Ok(Vector::new(vec![1.0, text.len() as f32])?)).collect()
    ///     }
    /// }
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// session.put(BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?)?;
    /// store.attach_embedder(Arc::new(Lengths), Metric::Cosine)?;
    /// assert!(store.wait_for_vectors(Duration::from_secs(10))?);
    /// assert_eq!(store.stats()?.serving_model.as_deref(), Some("lengths"));
    ///
    /// assert!(store.attach_embedder(Arc::new(Lengths), Metric::Cosine).is_err_and(|e| e.code() == "ERR_CONFLICT"));
    /// assert!(store.detach_embedder()? && !store.detach_embedder()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_CONFLICT` if it has an embedder; `ERR_DIMENSION` if the model is stored with vectors of another length or
    /// metric; `ERR_SCHEMA` for an impossible name or dimension; `ERR_READ_ONLY`; `ERR_IO`, also once it is closed.
    pub fn attach_embedder(&self, embedder: Arc<dyn Embedder>, metric: Metric) -> Result<()> {
        let wake = waker(self.inner().writer_requests());
        self.run_exclusive(move |writer| {
            let at = (&*writer.view, &writer.presence.shared);
            let follower = writer.retrieval.attach((embedder, metric), wake, at)?;
            follower.notify(&writer.view);
            writer.followers.push(follower);
            Ok(())
        })
    }

    /// Takes the embedder away that the store was opened with or was [given](Store::attach_embedder). The vectors
    /// that it has made stay, and text searches use them again once it has an embedder of that model. Waits for an
    /// answer that the embedder is about to give. Returns `false` if there was none.
    ///
    /// # Errors
    /// `ERR_READ_ONLY`; `ERR_IO` once the store is closed.
    pub fn detach_embedder(&self) -> Result<bool> {
        let ended = self.run_exclusive(|writer| {
            let Some(worker) = writer.retrieval.detach() else { return Ok(None) };
            let place = writer.followers.iter().position(|follower| follower.runs(&worker));
            Ok(place.map(|place| writer.followers.remove(place)))
        })?;
        // Its thread ends here: writes do not wait for it.
        Ok(ended.is_some())
    }
}

impl Session {
    /// Gives a stored grain vectors, in place of those it has in the same spaces. Vectors are stored beside
    /// the grain: its address and its state do not change. A replacement is recorded in the audit log.
    ///
    /// The vectors of a grain protected by a policy or a hold, and so its rank in searches, are changed only
    /// by the operator or by an author whom its policy would let replace it.
    ///
    /// ```
    /// use grainstore::embed::{Embedding, Metric};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// session.embed(&tea, vec![Embedding::new("my-model", Metric::Cosine, vec![0.6, 0.8])?])?;
    /// for vector in session.embedding_refs(&tea)? {
    ///     assert_eq!((vector.model.as_str(), vector.dimensions), ("my-model", 2));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if this session can see no such grain, `ERR_WITHDRAWN` as [`Session::get`];
    /// `ERR_INVALIDATION_DENIED` for a protected grain; `ERR_DIMENSION`; `ERR_LIMIT` beyond
    /// [`MAX_VECTORS`](crate::search::embed::MAX_VECTORS), and for the first vector of a model if the store has those
    /// of 64 models, or of 8 and the session has a namespace; `ERR_IO`.
    pub fn embed(&self, address: &ContentAddress, vectors: Vec<Embedding>) -> Result<()> {
        let view = self.view()?;
        if catch_storage_panic(|| self.visible_row(&view, address))?.is_none() {
            return Err(self.not_visible(&view, address));
        }
        drop(view);
        check_count(&vectors)?;
        let (address, author) = (*address, self.principal());
        let write = |vectors, reply| WriteRequest::Embed { address, vectors, author, reply };
        self.send(Ok(vectors), write).wait()
    }
}

impl Session {
    /// Returns references to the stored vectors of a grain, by model and chunk, given ones and those of the
    /// embedder. The list changes when a vector is made, given or removed; the grain, its address and its
    /// state do not. No access is counted. [`Session::embed`] shows both.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` and others, as [`Session::get`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn embedding_refs(&self, address: &ContentAddress) -> Result<Vec<EmbeddingRef>> {
        let view = self.view()?;
        let found = catch_storage_panic(|| {
            let seen = self.visible_row(&view, address)?.is_some();
            match view.sequence_of(address)?.filter(|_| seen) {
                Some(at) => Ok(Some(view.embeddings_at(at)?)),
                None => Ok(None),
            }
        })?;
        let Some(found) = found else { return Err(self.not_visible(&view, address)) };
        Ok(found.iter().flat_map(|one| refs(address, one)).collect())
    }
}
