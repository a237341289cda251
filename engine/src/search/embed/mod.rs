//! Vectors of text. Knows nothing of grains: which text a grain has, and what becomes of a grain
//! whose text could not be embedded, is decided elsewhere.
//!
//! - [`Embedder`]: what makes vectors of texts
//! - [`CommandEmbedder`]: one that asks another program
//! - `LocalEmbedder`: one that is a model in the process (feature `local-embedder`)
//! - `conversation`: lines to a program and back
//! - `keeping`: the store's own embedder at work in the background

mod command;
mod conversation;
mod embedding;
mod keeping;
#[cfg(feature = "local-embedder")]
mod local;
mod refs;

pub use command::{CommandEmbedder, CommandOptions};
pub(crate) use embedding::check_count;
pub use embedding::{Embedding, MAX_VECTORS};
pub use grainstore_index::vectors::{Metric, Space, Vector};
pub use keeping::EmbeddingStatus;
pub(crate) use keeping::{Keeping, Ready, Requests};
#[cfg(feature = "local-embedder")]
pub use local::{LocalEmbedder, LocalOptions};
pub use refs::EmbeddingRef;
pub(crate) use refs::{embedded, misfit};

use crate::base::error::{Error, ErrorKind, Result};

/// Makes vectors of texts, all by one model and of one length.
pub trait Embedder: Send + Sync {
    /// The name of the model: vectors of different models are never compared.
    fn model(&self) -> &str;

    /// Numbers of each vector.
    fn dimension(&self) -> usize;

    /// A vector of each text, in their order.
    ///
    /// # Errors
    /// `ERR_EMPTY`: a text without a word. `ERR_EMBEDDER`, `ERR_TIMEOUT`: no vectors could be had.
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: what came is not vectors of this embedder.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>>;
}

/// The vectors of an answer, one for each of `count` texts, all of them usable.
pub(crate) fn checked(
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

/// Refuses texts no vector can be made of.
pub(crate) fn check_texts(texts: &[&str]) -> Result<()> {
    match texts.iter().position(|text| text.trim().is_empty()) {
        None => Ok(()),
        Some(at) => {
            let kind = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
            Err(Error::new(kind, format!("text {at} is empty: there is nothing to embed")))
        }
    }
}
