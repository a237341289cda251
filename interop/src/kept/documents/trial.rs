//! Whether a document could be replaced, without replacing it.

use grainstore::ContentAddress;

use super::{Document, Documents};
use crate::error::{Error, Result};
use crate::kept::NewGrain;

/// A replacement of a document that would be refused.
#[derive(Debug)]
pub(crate) struct RefusedReplacement {
    /// The layer.
    pub(crate) layer: &'static str,
    head: ContentAddress,
    new: NewGrain,
    refusal: grainstore::Error,
}

impl Documents<'_> {
    /// Asks whether the newest version of a document could be replaced by this one. `None` if it could be, or if there is
    /// none.
    ///
    /// # Errors
    /// Those of [`Session::try_supersede`](grainstore::Session::try_supersede).
    pub(crate) fn refusal(&self, document: &Document) -> Result<Option<RefusedReplacement>> {
        let layer = document.layer;
        let newest = self.newest(layer, document.item.as_deref())?;
        // Beside one that has no place to give, the next one stands.
        let Some(head) = newest.filter(|newest| newest.is_current && newest.is_open) else {
            return Ok(None);
        };
        let head = head.address;
        let new = self.grain_of(document, Some((&head, true)))?;
        let refusal = self.session.try_supersede(&head, new.offer(), None)?.refusal;
        Ok(refusal.map(|refusal| RefusedReplacement { layer, head, new, refusal }))
    }

    /// Asks for a replacement in earnest, so that the refusal is in the audit log, and returns it.
    pub(crate) fn refused(&self, refused: RefusedReplacement) -> Error {
        let asked = self.session.supersede(&refused.head, refused.new.offer(), None);
        asked.err().unwrap_or(refused.refusal).into()
    }
}
