//! Erasures as of a snapshot: the erased sequences and users.
//!
//! Between the erasure of a user and the end of its scrub the user's grains are still in the log. Every read
//! checks here first, so that none of them is shown.

use std::collections::HashMap;
use std::ops::Range;

use grainstore_format::GrainRef;
use grainstore_index::Sequence;
use redb::{ReadableTableMetadata, TableError};
use sha2::{Digest, Sha256};

use super::Truth;
use crate::base::error::{Error, Result};
use crate::disk::blob::with_fields;
use crate::disk::layout::{
    self, AddressKey, AuditHead, EncryptedEnvelope, ErasureRecord, RowKey, Stub, Tombstone,
    UserToken,
};
use crate::disk::vault::Vault;
use crate::state::audit::{AuditEntry, AuditHashChain, AuditOperation};

/// The state of erasures, read once per snapshot.
pub(super) struct ErasureState {
    /// `None` if nothing was ever erased.
    erasures: Option<ErasureRecord>,
    /// Users whose grains are still in the log, each with the last erased sequence.
    users: HashMap<UserToken, Sequence>,
    /// Key slots of those users that are not destroyed yet, each with the last erased sequence.
    slots: HashMap<u32, Sequence>,
    /// Computes user tokens; `None` if there are no users to compare.
    chain: Option<AuditHashChain>,
}

/// A row of the log, opened.
pub(crate) enum LogRow {
    Blob(Vec<u8>),
    /// The address of the erased grain.
    Erased(AddressKey),
}

impl LogRow {
    /// Opens a row; `doubt` judges the error that the key of a row was destroyed.
    pub(crate) fn open(
        at: Sequence,
        row: &[u8],
        vault: &Vault,
        doubt: impl FnOnce(Error) -> Error,
    ) -> Result<Self> {
        let envelope = vault.log_envelope(row);
        if Stub::is_stub(envelope) {
            return Ok(Self::Erased(Stub::open(at, envelope, vault)?.address));
        }
        match vault.open(RowKey::log(at), envelope) {
            Ok(blob) => Ok(Self::Blob(blob.into_owned())),
            // Its key was destroyed, so its address is no longer known.
            Err(error) => match doubt(error) {
                error if error.is_erased() => Ok(Self::Erased(vault.lost_address_key(at))),
                error => Err(error),
            },
        }
    }
}

impl Truth {
    fn erasure_state(&self) -> Result<&ErasureState> {
        if let Some(known) = self.erased.get() {
            return Ok(known);
        }
        let row = self.txn.open_table(layout::META)?.get(layout::META_ERASURES)?;
        let erasures = row.map(|row| ErasureRecord::open(row.value())).transpose()?;
        let (mut users, mut slots) = (HashMap::new(), HashMap::new());
        for of in erasures.iter().flat_map(|erasures| &erasures.pending) {
            let Some(user) = of.user else { continue };
            users.insert(user, of.cutoff);
            let keyring = self.vault.keyring();
            let held = keyring.map(|keyring| keyring.slots_of(&user.0)).unwrap_or_default();
            slots.extend(held.into_iter().filter(|at| *at <= of.slot).map(|at| (at, of.cutoff)));
        }
        let chain = match users.is_empty() {
            true => None,
            false => Some(self.chain_before_genesis()?),
        };
        Ok(self.erased.get_or_init(|| ErasureState { erasures, users, slots, chain }))
    }

    /// Returns the erasures, with those still to be scrubbed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn erasures(&self) -> Result<ErasureRecord> {
        Ok(self.erasure_state()?.erasures.clone().unwrap_or_default())
    }

    /// Returns `true` if anything was ever erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_erased(&self) -> Result<bool> {
        Ok(self.erasure_state()?.erasures.is_some())
    }

    /// Returns `true` while an erasure is not scrubbed from the disk: posting lists may then lead to erased
    /// grains.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn is_unscrubbed(&self) -> Result<bool> {
        Ok(self.erasure_state()?.erasures.as_ref().is_some_and(|known| !known.pending.is_empty()))
    }

    /// Returns the head of the audit log that the index is folded from: the one before the first erasure that
    /// waits for its scrub, since until then tables may hold what it erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn index_history(&self) -> Result<AuditHead> {
        let erasures = self.erasure_state()?.erasures.as_ref();
        let pending = erasures.into_iter().flat_map(|known| &known.pending);
        let Some(count) = pending.map(|of| of.entry).min() else { return self.audit_head() };
        let log = self.audit_rows()?;
        let last = count.checked_sub(1).map(|last| log.get(last)).transpose()?.flatten();
        let hash = last.map_or([0; 32], |entry| Sha256::digest(&entry).into());
        Ok(AuditHead { count, hash })
    }

    /// Turns the error for a row whose key was destroyed into one of damage, unless an erasure waits to be
    /// scrubbed, or this is a view of before: no row is left under such a key.
    pub(crate) fn doubt_erased(&self, at: Sequence, error: Error) -> Error {
        match self.is_unscrubbed() {
            Ok(false) if error.is_erased() && !self.is_destroyed_since(at) => Error::truth_damaged(
                format!("entry {} is under a key that was destroyed, and was not erased", at.get()),
            ),
            _ => error,
        }
    }

    /// Refuses a blob where a stub has to be: in an encrypted store somebody without the key has put back the
    /// row of before.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(super) fn check_not_erased(&self, at: Sequence) -> Result<()> {
        if self.vault.keyring().is_none() || !self.has_erased()? {
            return Ok(());
        }
        match self.stubs.get_if_exists(&self.txn)? {
            Some(stubs) if stubs.get(at.get())?.is_some() => Err(Error::truth_damaged(format!(
                "entry {} was erased, and something else stands there",
                at.get()
            ))),
            _ => Ok(()),
        }
    }

    /// The same, for a row that was opened.
    pub(super) fn checked(&self, at: Sequence, opened: LogRow) -> Result<LogRow> {
        if let LogRow::Blob(_) = &opened {
            self.check_not_erased(at)?;
        }
        Ok(opened)
    }

    /// Returns `true` if the key of a row was destroyed since the store was opened.
    fn is_destroyed_since(&self, at: Sequence) -> bool {
        let row = self.log.get(&self.txn).and_then(|log| Ok(log.get(at.get())?));
        let Ok(Some(row)) = row else { return false };
        let sealed = EncryptedEnvelope::parse(self.envelope(&row)).ok().flatten();
        let slot = sealed.map(|sealed| sealed.slot);
        self.vault.keyring().zip(slot).is_some_and(|(keyring, slot)| keyring.was_destroyed(slot))
    }

    /// Returns `true` if the grain at a sequence was erased. A damaged row was not: the reader reports the
    /// damage. The user of an encrypted row is known from its key slot, without decrypting it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn is_erased(&self, at: Sequence) -> Result<bool> {
        let ErasureState { erasures: Some(_), users, slots, .. } = self.erasure_state()? else {
            return Ok(false);
        };
        let Some(row) = self.log.get(&self.txn)?.get(at.get())? else { return Ok(false) };
        let row = self.envelope(&row);
        if Stub::is_stub(row) {
            return Ok(true);
        }
        if users.values().all(|cutoff| at > *cutoff) {
            return Ok(false);
        }
        let erased = match EncryptedEnvelope::parse(row) {
            Ok(Some(sealed)) => match slots.get(&sealed.slot) {
                Some(cutoff) => Ok(at <= *cutoff),
                None => self.vault.key_of_row(row).map(|_| false),
            },
            Ok(None) => self
                .with_blob(at, |blob| with_fields(blob, |grain| self.has_erased_user(grain, at))),
            Err(error) => Err(error),
        };
        match erased {
            Err(error) if error.is_erased() => Ok(true),
            Err(error) if error.is_integrity() => Ok(false),
            erased => erased,
        }
    }

    /// Returns `true` if the grain at this sequence was erased together with its user and waits to be scrubbed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_erased_user(&self, grain: &GrainRef<'_>, at: Sequence) -> Result<bool> {
        let ErasureState { users, chain: Some(chain), .. } = self.erasure_state()? else {
            return Ok(false);
        };
        let user_id = grain.text("user_id");
        let cutoff = user_id.and_then(|user| users.get(&chain.user_token(user)));
        Ok(cutoff.is_some_and(|cutoff| at <= *cutoff))
    }

    /// Like [`Truth::is_erased`], for a sequence found in a posting list: once all erasures are scrubbed no
    /// list leads to an erased grain, and the row need not be read.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn is_hidden(&self, at: Sequence) -> Result<bool> {
        Ok(self.is_unscrubbed()? && self.is_erased(at)?)
    }

    /// Returns `true` if a grain was erased after this many audit entries. An index saved before that may still
    /// have its terms, and cannot tell which.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_erased_since(&self, entries: u64) -> Result<bool> {
        self.has_erased_in(entries..layout::AUDIT_HEAD)
    }

    /// Returns `true` if one of these audit entries is an erasure. The records of its consents come before it, in
    /// the same commit.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_erased_in(&self, entries: Range<u64>) -> Result<bool> {
        if entries.is_empty() || !self.has_erased()? {
            return Ok(false);
        }
        for row in self.audit_rows()?.apart(entries)? {
            let Some(entry) = ok_if_readable(AuditEntry::decode(&row?.1))? else { continue };
            let is_record = entry.operation == AuditOperation::EraseConsent.name();
            if entry.decision == "done" && entry.is_erasure() && !is_record {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the address of an erased grain if a stub is at this sequence.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn stub_at(&self, at: Sequence) -> Result<Option<AddressKey>> {
        let Some(row) = self.log.get(&self.txn)?.get(at.get())? else { return Ok(None) };
        let stub = self.envelope(&row);
        match Stub::is_stub(stub) {
            true => Ok(Some(Stub::open(at, stub, &self.vault)?.address)),
            false => Ok(None),
        }
    }

    /// Returns the tombstone of an erased user.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn tombstone_of(&self, user_id: &str) -> Result<Option<Tombstone>> {
        if !self.has_erased()? {
            return Ok(None);
        }
        let table = match self.txn.open_table(layout::TOMBSTONES) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            opened => opened?,
        };
        let token = self.chain_before_genesis()?.user_token(user_id);
        let row = table.get(token.0.as_slice())?;
        row.map(|row| Tombstone::decode(&token, row.value())).transpose()
    }

    /// Destroys the keys of users with a pending erasure. Idempotent.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn destroy_user_keys(&self) -> Result<()> {
        for erased in self.erasures()?.pending {
            if let Some(person) = &erased.user {
                self.vault().destroy(person, erased.slot)?;
            }
        }
        Ok(())
    }

    /// Number of erased users.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn tombstone_count(&self) -> Result<u64> {
        match self.txn.open_table(layout::TOMBSTONES) {
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            opened => Ok(opened?.len()?),
        }
    }
}

/// Turns the errors of a damaged, erased or missing row into `None`: `verify` reports damage, and erased rows
/// are not shown.
pub(crate) fn ok_if_readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_integrity() || error.is_erased() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The error of reading a sequence whose grain was erased.
pub(super) fn erased_sequence_error(at: Sequence) -> Error {
    Error::log_entry_erased(format!("the grain at entry {} was erased", at.get()))
}
