//! The encryption keys of a group's rows: that of the user a grain belongs to, or the store's. Writes
//! nothing.

use std::collections::HashMap;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::disk::vault::{EncryptionKey, Vault};
use crate::rules::preset::ActiveRules;
use crate::state::audit::AuditRecord;
use crate::state::view::View;
use crate::write::plan::{StagedGrain, WritePlan};

/// The keys of staged and of stored grains.
pub(crate) struct GroupKeys<'k> {
    pub(crate) vault: &'k Vault,
    view: &'k View,
    staged: HashMap<Sequence, EncryptionKey>,
    places: HashMap<ContentAddress, Sequence>,
}

impl<'k> GroupKeys<'k> {
    /// # Errors
    /// The errors of [`Vault::key_for_grain`].
    pub(crate) fn new(
        view: &'k View,
        plan: &WritePlan<'_>,
        (vault, active_rules): (&'k Vault, &ActiveRules),
    ) -> Result<Self> {
        let mut keys = Self { vault, view, staged: HashMap::new(), places: HashMap::new() };
        if vault.keyring().is_none() {
            return Ok(keys);
        }
        for StagedGrain { sequence, prepared } in &plan.grains {
            let blob = &prepared.blob;
            let encryption_key =
                with_fields(blob.bytes(), |grain| vault.key_for_grain(grain, active_rules))?;
            keys.staged.insert(*sequence, encryption_key);
            keys.places.insert(blob.address(), *sequence);
        }
        Ok(keys)
    }

    /// Returns the key of the rows of the grain at a sequence.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, `ERR_ERASED`.
    pub(crate) fn key_at(&self, sequence: Sequence) -> Result<EncryptionKey> {
        if self.vault.keyring().is_none() {
            return Ok(EncryptionKey::default());
        }
        match self.staged.get(&sequence) {
            Some(encryption_key) => Ok(encryption_key.clone()),
            None => self.view.encryption_key_at(sequence),
        }
    }

    /// Returns the key of an audit record's reason: that of the first user whose grain it is about, or the
    /// store's.
    ///
    /// # Errors
    /// The errors of [`GroupKeys::key_at`].
    pub(crate) fn key_of_record(&self, record: &AuditRecord) -> Result<EncryptionKey> {
        if self.vault.keyring().is_none() {
            return Ok(EncryptionKey::default());
        }
        for subject in &record.subjects {
            let place = match self.places.get(subject) {
                Some(place) => Some(*place),
                None => self.view.sequence_of(subject)?,
            };
            let encryption_key =
                place.map_or(Ok(EncryptionKey::default()), |place| self.key_at(place))?;
            if encryption_key.is_user_key() {
                return Ok(encryption_key);
            }
        }
        Ok(self.vault.store_key())
    }
}
