//! The `embedding_refs` of the index layer (OMS 7.2): the vectors a store has of a grain. They are no part of
//! the grain, which is immutable and whose address cannot depend on vectors made later (ruling 60).

use grainstore_format::ContentAddress;
use grainstore_format::container::EmbeddingSummary;
use grainstore_index::vectors::{Metric, Space};
use serde::Serialize;

/// A vector that the store has of a grain ([`Session::embed`](crate::Session::embed)), with the field names
/// of OMS 7.2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EmbeddingRef {
    /// Its id, made of grain, model, metric and part: the same in every store.
    pub vector_id: String,
    /// The model that made it.
    pub model: String,
    /// Numbers of the vector.
    pub dimensions: u32,
    /// The metric: `cosine`, `dot` or `l2`.
    pub distance_metric: String,
    /// The number of the part it stands for; 0 for the whole grain.
    pub chunk_index: u32,
}

pub(crate) fn refs<'e>(
    address: &'e ContentAddress,
    one: &'e EmbeddingSummary,
) -> impl Iterator<Item = EmbeddingRef> + 'e {
    let EmbeddingSummary { model, dimensions, metric, chunks } = one;
    chunks.iter().map(move |chunk| EmbeddingRef {
        vector_id: format!("{address}/{model}/{metric}/{chunk}"),
        model: model.clone(),
        dimensions: *dimensions,
        distance_metric: metric.clone(),
        chunk_index: *chunk,
    })
}

/// Reason why vectors stated in a file do not fit those this store has or makes; `None` if they may.
pub(crate) fn embedding_mismatch<'s>(
    stated: &EmbeddingSummary,
    mut known: impl Iterator<Item = &'s Space>,
) -> Option<String> {
    let EmbeddingSummary { model, dimensions, metric, .. } = stated;
    if !Metric::ALL.iter().any(|known| known.name() == metric) {
        return Some(format!("the file tells of vectors of {model} that are compared by {metric}"));
    }
    let other = known.find(|space| {
        space.model() == model
            && (space.metric().name() != metric
                || Ok(*dimensions) != u32::try_from(space.dimension()))
    })?;
    let (own_dimensions, own_metric) = (other.dimension(), other.metric().name());
    Some(format!(
        "the file tells of vectors of {model} of {dimensions} numbers ({metric}), and here they have \
         {own_dimensions} ({own_metric})"
    ))
}
