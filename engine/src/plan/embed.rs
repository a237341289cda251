//! Vectors that come with grains: whether they fit the spaces there are.

use grainstore_index::Sequence;
use grainstore_index::vectors::Space;

use super::Plan;
use crate::embed::Embedding;
use crate::error::{Error, ErrorKind, Result};

/// Spaces of a store.
pub(crate) const MAX_SPACES: usize = 64;

impl Plan<'_> {
    /// Stages vectors of a grain that is stored already, or staged.
    ///
    /// # Errors
    /// As [`Plan::admit_spaces`].
    pub(super) fn embed(&mut self, sequence: Sequence, vectors: Vec<Embedding>) -> Result<()> {
        if !vectors.is_empty() {
            self.admit_spaces(&vectors)?;
            self.vectors.push((sequence, vectors));
        }
        Ok(())
    }

    /// Checks vectors against the spaces there are, and stages those that are new.
    ///
    /// # Errors
    /// `ERR_DIMENSION` where a model has vectors of another length, or compared in another way;
    /// `ERR_LIMIT` for a space too many.
    pub(super) fn admit_spaces(&mut self, vectors: &[Embedding]) -> Result<()> {
        for Embedding { space, .. } in vectors {
            let stored = self.view.spaces()?;
            let all = stored.values().chain(&self.spaces);
            match all.clone().find(|known| known.model() == space.model()) {
                Some(known) if known == space => {}
                Some(known) => return Err(mixed(known, space)),
                None if all.count() >= MAX_SPACES => {
                    let message = format!("a store has vectors of {MAX_SPACES} models at most");
                    return Err(Error::new(ErrorKind::Limit, message));
                }
                None => self.spaces.push(space.clone()),
            }
        }
        Ok(())
    }
}

fn mixed(known: &Space, given: &Space) -> Error {
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
