//! The grains a session sees, for the statistics of a text search: a rare word of others leaves no trace in
//! its scores.

use std::cell::RefCell;
use std::collections::HashMap;

use grainstore_index::Sequence;

use crate::base::error::{Error, Result};
use crate::handle::session::Session;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;
use crate::state::visibility::Visibility;

/// Returns `true` if a session sees every grain of the store: it is limited to no namespace and no user, no rule
/// restricts reads, no erased grain waits for its scrub, and no consent can hide one.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn sees_all(session: &Session, view: &View) -> Result<bool> {
    if !session.viewer().is_unrestricted()
        || session.visibility(view).has_read_rules()
        || view.is_unscrubbed()?
    {
        return Ok(false);
    }
    Ok(!view.may_have_consents()?)
}

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
    /// The grains a session sees; `None` if that is all of them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(super) fn of(session: &'w Session, view: &'w View) -> Result<Option<Self>> {
        if sees_all(session, view)? {
            return Ok(None);
        }
        let (reach, last) = (session.visibility(view), view.last_sequence()?);
        let (known, failed) = (RefCell::default(), RefCell::default());
        Ok(Some(Self { reach, view, last, known, failed }))
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
            self.view.with_live_blob(at, |blob| self.reach.is_blob_visible(at, blob).map(Some));
        // A damaged grain is no hit: who reads it, or `verify`, is told.
        Ok(ok_if_readable(seen)?.flatten().unwrap_or(false))
    }
}
