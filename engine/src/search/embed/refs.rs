//! The `embedding_refs` of the index layer (OMS 7.2): what vectors a store has of a grain. A grain is
//! immutable, and its address knows nothing of vectors that are made later (ruling 60 of the project's
//! reading).

use std::collections::BTreeSet;

use grainstore_format::ContentAddress;
use grainstore_format::container::Embedded;
use grainstore_index::vectors::{Metric, Space};
use serde::Serialize;

use crate::base::error::{Result, guarded};
use crate::handle::session::Session;

/// A vector that the store has of a grain, under the names of OMS 7.2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EmbeddingRef {
    /// Its name, made of the grain, the model and the part: the same in every store.
    pub vector_id: String,
    /// The model that made it.
    pub model: String,
    /// How many numbers it has.
    pub dimensions: u32,
    /// How it is compared: `cosine`, `dot` or `l2`.
    pub distance_metric: String,
    /// Which part of the grain it stands for; 0 where that is all of it.
    pub chunk_index: u32,
}

impl Session {
    /// Which vectors the store has of a grain, whoever made them, by model and part. It changes when one is
    /// made, given or removed; the grain, its address and its state do not. No access is counted.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` and the like, as [`Session::get`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn embedding_refs(&self, address: &ContentAddress) -> Result<Vec<EmbeddingRef>> {
        let view = self.view()?;
        let found = guarded(|| {
            let seen = self.visible(&view, address)?.is_some();
            match view.sequence_of(address)?.filter(|_| seen) {
                Some(at) => Ok(Some(view.embedded_at(at)?)),
                None => Ok(None),
            }
        })?;
        let Some(found) = found else { return Err(self.unseen(&view, address)) };
        Ok(found.iter().flat_map(|one| refs(address, one)).collect())
    }
}

fn refs<'e>(
    address: &'e ContentAddress,
    one: &'e Embedded,
) -> impl Iterator<Item = EmbeddingRef> + 'e {
    let Embedded { model, dimensions, metric, chunks } = one;
    chunks.iter().map(move |chunk| EmbeddingRef {
        vector_id: format!("{address}/{model}/{metric}/{chunk}"),
        model: model.clone(),
        dimensions: *dimensions,
        distance_metric: metric.clone(),
        chunk_index: *chunk,
    })
}

/// Vectors by their spaces and parts, as a manifest carries them.
pub(crate) fn embedded(found: BTreeSet<(&Space, u32)>) -> Vec<Embedded> {
    let mut all: Vec<Embedded> = Vec::new();
    for (space, chunk) in found {
        let (model, metric) = (space.model(), space.metric().name());
        let dimensions = u32::try_from(space.dimension()).unwrap_or(u32::MAX);
        match all.last_mut() {
            Some(last)
                if (&*last.model, &*last.metric, last.dimensions)
                    == (model, metric, dimensions) =>
            {
                last.chunks.push(chunk);
            }
            _ => all.push(Embedded {
                model: model.to_owned(),
                dimensions,
                metric: metric.to_owned(),
                chunks: vec![chunk],
            }),
        }
    }
    all.sort_unstable();
    all
}

/// Why vectors that a file tells of fit none that this store has or makes; nothing where they may.
pub(crate) fn misfit<'s>(
    stated: &Embedded,
    mut known: impl Iterator<Item = &'s Space>,
) -> Option<String> {
    let Embedded { model, dimensions, metric, .. } = stated;
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
