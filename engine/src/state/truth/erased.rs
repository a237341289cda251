//! What a snapshot knows of erasures: whether a place of the log was erased, and who was.
//!
//! Between the erasure of a user and the end of its scrub their grains still lie in the log. Whoever
//! reads asks here first, so that nobody is shown one.

use std::collections::HashMap;

use grainstore_index::Sequence;
use redb::{ReadableTableMetadata, TableError};

use super::Truth;
use crate::base::error::{Error, Result};
use crate::disk::keys::{self, AddressKey, Erasures, RowKey, Sealed, Stub, Tombstone, UserToken};
use crate::disk::vault::Vault;
use crate::state::audit::Chain;
use crate::state::view::with_fields;

/// What is known of erasures, read once a snapshot.
pub(super) struct Known {
    /// Nothing where nothing was ever erased.
    erasures: Option<Erasures>,
    /// Users whose grains still lie in the log, each with the last place that was erased.
    users: HashMap<UserToken, Sequence>,
    /// Slots of theirs whose keys are not destroyed yet, each with the last place that was erased.
    slots: HashMap<u32, Sequence>,
    /// What makes tokens; nothing where none has to be compared.
    chain: Option<Chain>,
}

/// A row of the log.
pub(crate) enum Logged {
    Blob(Vec<u8>),
    /// The address of the grain that was there.
    Erased(AddressKey),
}

impl Logged {
    pub(crate) fn open(at: Sequence, row: &[u8], vault: &Vault) -> Result<Self> {
        if Stub::is(row) {
            return Ok(Self::Erased(Stub::open(at, row)?.address));
        }
        match vault.open(RowKey::log(at), row) {
            Ok(blob) => Ok(Self::Blob(blob.into_owned())),
            // Its key was destroyed, and nobody knows its address any more.
            Err(error) if error.is_erased() => Ok(Self::Erased(vault.lost(at))),
            Err(error) => Err(error),
        }
    }
}

impl Truth {
    fn known(&self) -> Result<&Known> {
        if let Some(known) = self.erased.get() {
            return Ok(known);
        }
        let row = self.txn.open_table(keys::META)?.get(keys::META_ERASURES)?;
        let erasures = row.map(|row| Erasures::open(row.value())).transpose()?;
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
        Ok(self.erased.get_or_init(|| Known { erasures, users, slots, chain }))
    }

    /// What was erased, and what of it is to be scrubbed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn erasures(&self) -> Result<Erasures> {
        Ok(self.known()?.erasures.clone().unwrap_or_default())
    }

    /// Whether anything was ever erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_erased(&self) -> Result<bool> {
        Ok(self.known()?.erasures.is_some())
    }

    /// Whether traces of an erasure are still on the disk: then lists of the index may lead to what was
    /// erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn is_unscrubbed(&self) -> Result<bool> {
        Ok(self.known()?.erasures.as_ref().is_some_and(|known| !known.pending.is_empty()))
    }

    /// Whether the grain at a place of the log was erased. A row that is damaged was not: it is met
    /// again by whoever reads it. Whose an encrypted row is its head says: it is not decrypted.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn is_erased(&self, at: Sequence) -> Result<bool> {
        let Known { erasures: Some(_), users, slots, .. } = self.known()? else { return Ok(false) };
        let Some(row) = self.log.get(&self.txn)?.get(at.get())? else { return Ok(false) };
        let row = row.value();
        if Stub::is(row) {
            return Ok(true);
        }
        if users.values().all(|cutoff| at > *cutoff) {
            return Ok(false);
        }
        let erased = match Sealed::of(row) {
            Ok(Some(sealed)) => match slots.get(&sealed.slot) {
                Some(cutoff) => Ok(at <= *cutoff),
                None => self.vault.keeper_beside(row).map(|_| false),
            },
            Ok(None) => self.with_blob(at, |blob| {
                with_fields(blob, |grain| self.has_erased_user(grain.text("user_id"), at))
            }),
            Err(error) => Err(error),
        };
        match erased {
            Err(error) if error.is_erased() => Ok(true),
            Err(error) if error.is_integrity() => Ok(false),
            erased => erased,
        }
    }

    /// Whether a grain of this user at a place of the log was erased with all of the user, and waits to
    /// be scrubbed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_erased_user(&self, user_id: Option<&str>, at: Sequence) -> Result<bool> {
        let Known { users, chain: Some(chain), .. } = self.known()? else { return Ok(false) };
        let cutoff = user_id.and_then(|user| users.get(&chain.user_token(user)));
        Ok(cutoff.is_some_and(|cutoff| at <= *cutoff))
    }

    /// As [`Truth::is_erased`], for a place that a list of the index leads to: once an erasure is
    /// scrubbed none leads there any more, and nothing is read.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn hides(&self, at: Sequence) -> Result<bool> {
        Ok(self.is_unscrubbed()? && self.is_erased(at)?)
    }

    /// The address of the grain that was at a place of the log, where a stub has its place.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn stub_at(&self, at: Sequence) -> Result<Option<AddressKey>> {
        let Some(row) = self.log.get(&self.txn)?.get(at.get())? else { return Ok(None) };
        match Stub::is(row.value()) {
            true => Ok(Some(Stub::open(at, row.value())?.address)),
            false => Ok(None),
        }
    }

    /// What is kept of a user who was erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn tombstone_of(&self, user_id: &str) -> Result<Option<Tombstone>> {
        if !self.has_erased()? {
            return Ok(None);
        }
        let table = match self.txn.open_table(keys::TOMBSTONES) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            opened => opened?,
        };
        let token = self.chain_before_genesis()?.user_token(user_id);
        let row = table.get(token.0.as_slice())?;
        row.map(|row| Tombstone::decode(&token, row.value())).transpose()
    }

    /// Destroys the keys of people whose erasure is noted. Those that are destroyed already stay so.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn destroy_secrets(&self) -> Result<()> {
        for erased in self.erasures()?.pending {
            if let Some(person) = &erased.user {
                self.vault().destroy(person, erased.slot)?;
            }
        }
        Ok(())
    }

    /// Users who were erased.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn tombstones(&self) -> Result<u64> {
        match self.txn.open_table(keys::TOMBSTONES) {
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            opened => Ok(opened?.len()?),
        }
    }
}

/// What was read of a row, or nothing where it is damaged, erased or gone: damage is for `verify` to name,
/// and what was erased is for nobody.
pub(crate) fn whole<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_integrity() || error.is_erased() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The refusal to read a place whose grain was erased.
pub(super) fn gone(at: Sequence) -> Error {
    Error::erased(format!("the grain at entry {} was erased", at.get()))
}
