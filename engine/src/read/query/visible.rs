//! The grains a session sees, for the statistics of a text search: a rare word of others leaves no trace in
//! its scores.

use std::cell::RefCell;
use std::collections::HashMap;

use grainstore_index::Sequence;

use super::walk::CandidateScan;
use crate::base::error::{Error, Result};
use crate::state::reach::Visibility;
use crate::state::view::View;

/// The grains a session sees, each read once.
pub(super) struct VisibleGrains<'w> {
    reach: Visibility<'w>,
    view: &'w View,
    /// The last sequence of the view: the full text may have followed a later one.
    last: Sequence,
    known: RefCell<HashMap<Sequence, bool>>,
    failed: RefCell<Option<Error>>,
}

impl<'w> VisibleGrains<'w> {
    /// The grains the session of a scan sees; `None` if that is all of them.
    pub(super) fn of(scan: &CandidateScan<'w>) -> Option<Self> {
        let reach = scan.visibility();
        if scan.session.viewer().is_unrestricted() && !reach.has_read_rules() {
            return None;
        }
        let (view, last) = (scan.view, scan.last);
        Some(Self { reach, view, last, known: RefCell::default(), failed: RefCell::default() })
    }

    /// Returns `true` if the session sees a grain; `false` after an error of the store, which
    /// [`VisibleGrains::failed`] gives.
    pub(super) fn has(&self, sequence: Sequence) -> bool {
        if self.failed.borrow().is_some() {
            return false;
        }
        if let Some(known) = self.known.borrow().get(&sequence) {
            return *known;
        }
        let seen = self.read(sequence).unwrap_or_else(|error| {
            *self.failed.borrow_mut() = Some(error);
            false
        });
        self.known.borrow_mut().insert(sequence, seen);
        seen
    }

    /// Fails if a grain could not be read.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, `ERR_KEY`.
    pub(super) fn failed(&self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn read(&self, at: Sequence) -> Result<bool> {
        if at > self.last || self.view.is_hidden(at)? {
            return Ok(false);
        }
        let seen =
            self.view.with_live_blob(at, |blob| self.reach.is_blob_visible(at, blob).map(Some))?;
        Ok(seen.unwrap_or(false))
    }
}
