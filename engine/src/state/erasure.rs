//! The check that keeps erased grains from being stored again; every path into the log makes it.

use grainstore_format::{ContentAddress, EpochMs, Grain};

use crate::base::error::{Error, Result};
use crate::state::audit::AuditEntry;
use crate::state::view::View;

/// Refuses a grain that was erased, and one of an erased user unless it was created after the erasure.
///
/// # Errors
/// `ERR_ERASED`; `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn check_not_erased(view: &View, address: &ContentAddress, grain: &Grain) -> Result<()> {
    if !view.has_erased()? {
        return Ok(());
    }
    if view.has_erased_grain(address)? {
        return Err(erased_error(address));
    }
    let Some(user) = grain.text("user_id") else { return Ok(()) };
    let Some(tombstone) = view.tombstone_of(user)? else { return Ok(()) };
    let created_at = grain.int("created_at").map_or(EpochMs::default(), EpochMs::new);
    if created_at > tombstone.time {
        return Ok(());
    }
    let message = format!("{address} was created before its user was erased");
    Err(Error::log_entry_erased(message)
        .with_hint("what the user has said since is a grain of its own, created since"))
}

/// The error for a grain that was erased.
pub(crate) fn erased_error(address: &ContentAddress) -> Error {
    Error::log_entry_erased(format!("{address} was erased"))
}

impl View {
    /// Returns `true` if the reason of an audit entry is about an erased grain and must be removed with it.
    /// Reasons of erasures themselves stay.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn is_reason_erased(&self, entry: u64) -> Result<bool> {
        if !self.has_erased()? {
            return Ok(false);
        }
        let missing = || Error::truth_damaged(format!("audit entry {entry} is missing"));
        let entry = self.audit_rows()?.get(entry)?.ok_or_else(missing)?;
        let entry = AuditEntry::decode(&entry)?;
        if entry.is_erasure() {
            return Ok(false);
        }
        for address in entry.subjects.iter().chain(&entry.refused_by) {
            let place = self.sequence_of_subject(address)?;
            if place.map_or(Ok(false), |at| self.is_erased(at))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
