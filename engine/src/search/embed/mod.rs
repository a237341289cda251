//! Vectors of text. Must not know grains: the text of a grain, and the handling of one that cannot be
//! embedded, are decided elsewhere.
//!
//! - [`Embedder`]: makes vectors of texts
//! - [`CommandEmbedder`]: one that runs another program
//! - `LocalEmbedder`: a model in the process (feature `local-embedder`)
//! - `process`: lines to a program and back
//! - `worker`: the store's own embedder at work in the background
//! - `embedding`: a vector given with a grain. `refs`: the vectors a store has of a grain

mod command;
mod embedding;
#[cfg(feature = "local-embedder")]
mod local;
mod process;
mod refs;
mod worker;

pub use command::{CommandEmbedder, CommandOptions};
pub(crate) use embedding::check_count;
pub use embedding::{Embedding, MAX_VECTORS};
pub use grainstore_index::vectors::{MAX_DIMENSION, Metric, Space, Vector};
#[cfg(feature = "local-embedder")]
pub use local::{LocalEmbedder, LocalOptions};
pub use refs::EmbeddingRef;
pub(crate) use refs::{embedding_mismatch, refs};
pub use worker::EmbeddingStatus;
pub(crate) use worker::{EmbeddingBatch, EmbeddingWorker, WakeWriter};

use crate::base::error::{Error, ErrorKind, Result};

/// Makes vectors of texts, all by one model and of one length.
///
/// ```
/// use grainstore::embed::{Embedder, Metric, Vector};
/// use grainstore::prelude::*;
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
/// let embedder = std::sync::Arc::new(Lengths);
/// let options = OpenOptions::new().create(true).embedder(embedder, Metric::Cosine);
/// let store = Store::open(dir.path(), &options)?;
/// # let session = store.session(SessionOptions::default());
/// # session.put(BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?)?;
/// assert!(store.wait_for_vectors(std::time::Duration::from_secs(10))?);
/// assert_eq!(store.stats()?.serving_model.as_deref(), Some("lengths"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Embedder: Send + Sync {
    /// The name of the model. Vectors of different models are never compared.
    fn model(&self) -> &str;

    /// Numbers of each vector.
    fn dimension(&self) -> usize;

    /// Embeds texts: one vector each, in their order.
    ///
    /// # Errors
    /// `ERR_EMPTY` for a text without a word; `ERR_EMBEDDER`, `ERR_TIMEOUT` if the embedder fails or is late
    /// ([`Error::embedder`], [`Error::timeout`]);
    /// `ERR_DIMENSION`, `ERR_SCHEMA` if its answer is not vectors of this model.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>>;
}

/// Checks an embedder's answer: one usable vector for each of `count` texts.
pub(crate) fn check_answer(
    answer: Vec<Vec<f32>>,
    count: usize,
    dimension: usize,
) -> Result<Vec<Vector>> {
    if answer.len() != count {
        let message = format!("the embedder gave {} vectors for {count} texts", answer.len());
        return Err(Error::new(ErrorKind::Embedder, message));
    }
    let vector = |(at, values): (usize, Vec<f32>)| {
        if values.len() != dimension {
            let given = values.len();
            let message =
                format!("vector {at} of the embedder has {given} numbers, not {dimension}");
            return Err(Error::new(ErrorKind::Dimension, message));
        }
        let vector = Vector::new(values)?;
        if vector.values().iter().all(|value| *value == 0.0) {
            let message = format!("vector {at} of the embedder is all zeros");
            return Err(Error::new(ErrorKind::Embedder, message));
        }
        Ok(vector)
    };
    answer.into_iter().enumerate().map(vector).collect()
}

/// Refuses blank texts, of which no vector can be made.
pub(crate) fn check_texts(texts: &[&str]) -> Result<()> {
    match texts.iter().position(|text| text.trim().is_empty()) {
        None => Ok(()),
        Some(at) => {
            let kind = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
            Err(Error::new(kind, format!("text {at} is empty: there is nothing to embed")))
        }
    }
}

/// The error for vectors that do not fit a space of their model.
pub(crate) fn space_mismatch(known: &Space, given: &Space) -> Error {
    let told =
        |space: &Space| format!("{} numbers by {}", space.dimension(), space.metric().name());
    let message = format!(
        "vectors of {} are compared over {} here, not over {}",
        known.model(),
        told(known),
        told(given)
    );
    Error::new(ErrorKind::Dimension, message)
}

/// The embedder that makes vectors of texts.
#[derive(Clone)]
pub(crate) struct SharedEmbedder(pub(crate) std::sync::Arc<dyn Embedder>);

impl std::fmt::Debug for SharedEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Embeds({})", self.0.model())
    }
}
