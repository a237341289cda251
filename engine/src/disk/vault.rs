//! Encryption of the rows of the truth: plain, or under the key of the user a grain belongs to. Every read
//! and write of a row goes through here.
//!
//! Decides which key applies and what is encrypted. Keys are stored by `keyring`, row layouts are in
//! `keys`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grainstore_format::{ContentAddress, GrainRef};
use grainstore_index::{Blinder, BlockSeal, Sequence, TieBreaker};
use redb::{ReadTransaction, ReadableTable, TableError};

use crate::base::error::{Error, Result};
use crate::disk::compression::{MAX_FRAME_BYTES, compress, decompress};
use crate::disk::keyring::{Keyring, STORE_SLOT, SlotKeys};
use crate::disk::layout::{
    self, AddressKey, EncryptedEnvelope, LogRowHead, LogRowParts, PlainEnvelope, RowKey,
    STATE_RECORD_BYTES, StateRecord, UserToken, decode_state, encode_state,
};
use crate::disk::row_sums::{self, FIRST_SUMMED, IndexSeal};
use crate::rules::preset::ActiveRules;

/// The keys of a store, empty in a plain one. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vault {
    keyring: Option<Arc<Keyring>>,
    /// True if blobs are compressed when they are written.
    compresses: bool,
    /// Shared by all clones, since the store was opened.
    opened: Arc<OpenedState>,
}

/// What is known of an encrypted store since it was opened.
#[derive(Debug, Default)]
struct OpenedState {
    /// A bit for each table whose rows were compared with their keyed sum.
    checked: AtomicU64,
    /// The epoch of the indexes: see `META_INDEX_EPOCH`.
    index_epoch: AtomicU64,
}

/// The key a row is encrypted under; empty for a plain row.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncryptionKey(Option<Arc<SlotKeys>>);

impl EncryptionKey {
    /// Returns `true` if the key belongs to a user, not to the store.
    pub(crate) fn is_user_key(&self) -> bool {
        self.0.as_ref().is_some_and(|holder| holder.slot != STORE_SLOT)
    }
}

impl Vault {
    /// A vault with these keys.
    pub(crate) fn with_keyring(keyring: Arc<Keyring>) -> Self {
        Self { keyring: Some(keyring), ..Self::default() }
    }

    /// Sets whether blobs are compressed when they are written.
    pub(crate) fn with_compression(self, compresses: bool) -> Self {
        Self { compresses, ..self }
    }

    /// Returns `true` if blobs are compressed when they are written.
    pub(crate) fn compresses(&self) -> bool {
        self.compresses
    }

    /// Returns `true` if the rows of a table were compared with their sum since the store was opened.
    pub(crate) fn is_checked(&self, table: u8) -> bool {
        self.opened.checked.load(Ordering::Acquire) & checked_bit(table) != 0
    }

    /// Notes that the rows of a table were compared with their sum.
    pub(crate) fn set_checked(&self, table: u8) {
        self.opened.checked.fetch_or(checked_bit(table), Ordering::Release);
    }

    /// The epoch of the indexes: those made in another one are not used.
    pub(crate) fn index_epoch(&self) -> u64 {
        self.opened.index_epoch.load(Ordering::Acquire)
    }

    /// Sets the epoch of the indexes, once it is committed.
    pub(crate) fn set_index_epoch(&self, epoch: u64) {
        self.opened.index_epoch.store(epoch, Ordering::Release);
    }

    /// The keyring, `None` in a store that is not encrypted.
    pub(crate) fn keyring(&self) -> Option<&Arc<Keyring>> {
        self.keyring.as_ref()
    }

    /// Returns the body of a row, decrypted and decompressed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that were changed or were written for another row; `ERR_ERASED` if the key
    /// was destroyed; `ERR_STORE_VERSION`.
    pub(crate) fn open<'b>(&self, row: RowKey, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>> {
        let damaged =
            || Error::truth_damaged(format!("the bytes of entry {} have changed", row.key));
        let Some(sealed) = EncryptedEnvelope::parse(bytes)? else {
            return match &self.keyring {
                None => open_plain(row, bytes),
                // The rules of a store may leave rows in the clear: their checksum has a key all the same.
                Some(keyring) if row.may_be_plain() => {
                    let bytes = row_sums::masked(keyring, row, bytes);
                    Ok(Cow::Owned(open_plain(row, &bytes)?.into_owned()))
                }
                Some(_) => Err(damaged()),
            };
        };
        let Some(keyring) = &self.keyring else {
            return Err(Error::truth_damaged("an encrypted row lies in a store without keys"));
        };
        let Some(holder) = keyring.slot_keys(sealed.slot)? else {
            return Err(Error::log_entry_erased("the key of this entry was destroyed"));
        };
        let bound = row.associated_data(sealed.slot, sealed.compressed);
        let body = holder.data.open(&bound, sealed.body);
        let body = match (body, sealed.compressed) {
            (Some(body), true) => decompress(&body)?,
            (body, _) => body,
        };
        body.map(Cow::Owned).ok_or_else(damaged)
    }

    /// Returns the parts of a row of the log. An encrypted store has its audit entries elsewhere.
    pub(crate) fn split_log_row<'b>(&self, row: &'b [u8]) -> LogRowParts<'b> {
        match self.keyring {
            None => LogRowParts::split(row),
            Some(_) => LogRowParts::whole(row),
        }
    }

    /// Returns the row of the log at this place with this head, which an encrypted store leaves out.
    ///
    /// # Errors
    /// As [`LogRowHead::encode`].
    pub(crate) fn log_row(
        &self,
        at: Sequence,
        head: LogRowHead<'_>,
        envelope: Vec<u8>,
    ) -> Result<Vec<u8>> {
        match self.keyring {
            None => head.encode(at, &envelope),
            Some(_) => Ok(envelope),
        }
    }

    /// Returns the envelope or the stub in a row of the log.
    pub(crate) fn log_envelope<'b>(&self, row: &'b [u8]) -> &'b [u8] {
        self.split_log_row(row).envelope
    }

    /// Encodes a row with this body, compressed first if compression is on for such a row and makes it shorter.
    ///
    /// # Errors
    /// `ERR_IO` if the system has no random bytes.
    pub(crate) fn seal(
        &self,
        row: RowKey,
        body: &[u8],
        encryption_key: &EncryptionKey,
    ) -> Result<Vec<u8>> {
        let compresses =
            self.compresses && row.may_be_compressed() && body.len() <= MAX_FRAME_BYTES;
        let shorter = if compresses { compress(body) } else { None };
        let compressed = shorter.is_some();
        let body = shorter.as_deref().unwrap_or(body);
        match &encryption_key.0 {
            None => {
                let bytes = match compressed {
                    true => PlainEnvelope::seal_compressed(row.key, body),
                    false => PlainEnvelope::seal(row.key, body),
                };
                Ok(match &self.keyring {
                    None => bytes,
                    Some(keyring) => row_sums::masked(keyring, row, &bytes),
                })
            }
            Some(holder) => {
                let slot = holder.slot;
                let body = holder.data.seal(&row.associated_data(slot, compressed), body)?;
                Ok(EncryptedEnvelope { slot, compressed, body: &body }.encode())
            }
        }
    }

    /// Returns the key for the rows of a grain, empty if the rules of the store do not have it encrypted. The
    /// user has a slot by then: see [`Vault::enroll`].
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a damaged slot; `ERR_ERASED` if the user has none, since the key was destroyed.
    pub(crate) fn key_for_grain(
        &self,
        grain: &GrainRef<'_>,
        active_rules: &ActiveRules,
    ) -> Result<EncryptionKey> {
        match &self.keyring {
            Some(keyring) if active_rules.encrypts(grain) => {
                self.slot_keys_of(keyring, user_of(grain)).map(|holder| EncryptionKey(Some(holder)))
            }
            _ => Ok(EncryptionKey::default()),
        }
    }

    /// Returns the key for rows that belong to a user, or to nobody. The user has a slot by then: see
    /// [`Vault::enroll_users`].
    ///
    /// # Errors
    /// As [`Vault::key_for_grain`].
    pub(crate) fn key_for_user(&self, user_id: Option<&str>) -> Result<EncryptionKey> {
        match &self.keyring {
            None => Ok(EncryptionKey::default()),
            Some(keyring) => Ok(EncryptionKey(Some(self.slot_keys_of(keyring, user_id)?))),
        }
    }

    /// Returns the key of a row that belongs to the same grain as the row in `bytes`.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub(crate) fn key_of_row(&self, bytes: &[u8]) -> Result<EncryptionKey> {
        let Some(keyring) = &self.keyring else { return Ok(EncryptionKey::default()) };
        let Some(sealed) = EncryptedEnvelope::parse(bytes)? else {
            return Ok(EncryptionKey::default());
        };
        match keyring.slot_keys(sealed.slot)? {
            Some(holder) => Ok(EncryptionKey(Some(holder))),
            None => Err(Error::log_entry_erased("the key of this entry was destroyed")),
        }
    }

    /// Refuses a user whose keys are damaged: nothing could be written under them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`.
    pub(crate) fn check_user_keys(&self, user_id: Option<&str>) -> Result<()> {
        if let (Some(keyring), Some(user_id)) = (&self.keyring, user_id) {
            keyring.user_keys(user_id)?;
        }
        Ok(())
    }

    /// Returns the key in a slot.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub(crate) fn key_in_slot(&self, slot: u32) -> Result<EncryptionKey> {
        let Some(keyring) = &self.keyring else { return Ok(EncryptionKey::default()) };
        let destroyed = || Error::log_entry_erased("the key in this slot was destroyed");
        Ok(EncryptionKey(Some(keyring.slot_keys(slot)?.ok_or_else(destroyed)?)))
    }

    /// Returns the key for rows that belong to no grain: that of the store.
    pub(crate) fn store_key(&self) -> EncryptionKey {
        EncryptionKey(self.keyring.as_ref().map(|keyring| Arc::clone(keyring.store())))
    }

    /// Returns the key that makes a grain's blind tokens, `None` if the indexes hold plain words.
    ///
    /// # Errors
    /// As [`Vault::key_for_grain`].
    pub(crate) fn blinder_for_grain(&self, grain: &GrainRef<'_>) -> Result<Option<Arc<SlotKeys>>> {
        let Some(keyring) = &self.keyring else { return Ok(None) };
        self.slot_keys_of(keyring, user_of(grain)).map(Some)
    }

    /// Returns the keys that make the blind tokens of these users' grains, empty if the indexes hold plain
    /// words.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a damaged slot.
    pub(crate) fn blinders_for_users<'u>(
        &self,
        user_ids: impl IntoIterator<Item = &'u str>,
    ) -> Result<Vec<Arc<dyn Blinder>>> {
        let mut blinds: Vec<Arc<dyn Blinder>> = Vec::new();
        let Some(keyring) = &self.keyring else { return Ok(blinds) };
        for user_id in user_ids.into_iter().filter(|user_id| !user_id.is_empty()) {
            // A user without a slot has no grains.
            let holders = keyring.all_user_keys(user_id)?.into_iter();
            blinds.extend(holders.map(|holder| holder as Arc<dyn Blinder>));
        }
        Ok(blinds)
    }

    /// Returns what makes the tags of the index, `None` in a store that is not encrypted.
    pub(crate) fn block_seal(&self) -> Option<Arc<dyn BlockSeal>> {
        let seal = || IndexSeal { vault: self.clone(), epoch: self.index_epoch() };
        self.keyring.is_some().then(|| Arc::new(seal()) as Arc<dyn BlockSeal>)
    }

    /// Returns the key that makes the blind tokens of grains without a user, `None` if the indexes hold plain
    /// words.
    pub(crate) fn store_blinder(&self) -> Option<Arc<dyn Blinder>> {
        self.keyring.as_ref().map(|keyring| Arc::clone(keyring.store()) as Arc<dyn Blinder>)
    }

    /// Returns `true` if there are users with keys of their own.
    pub(crate) fn has_user_keys(&self) -> bool {
        self.keyring.as_ref().is_some_and(|keyring| keyring.has_users())
    }

    /// Gives slots to the users of these grains, durably, before anything is written under their keys.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn enroll<'b>(&self, blobs: impl IntoIterator<Item = &'b [u8]>) -> Result<()> {
        if self.keyring.is_none() {
            return Ok(());
        }
        let mut people: Vec<String> = Vec::new();
        for blob in blobs {
            crate::disk::blob::with_fields(blob, |grain| {
                if let Some(user) = user_of(grain)
                    && people.last().is_none_or(|last| last != user)
                {
                    people.push(user.to_owned());
                }
                Ok(())
            })?;
        }
        self.enroll_users(people.iter().map(String::as_str))
    }

    /// Gives slots to these users, durably, in one write.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn enroll_users<'u>(
        &self,
        user_ids: impl IntoIterator<Item = &'u str>,
    ) -> Result<()> {
        self.keyring.as_ref().map_or(Ok(()), |keyring| keyring.enroll(user_ids))
    }

    /// Returns an address in the form the index stores it.
    pub(crate) fn address_key(&self, address: &ContentAddress) -> AddressKey {
        match &self.keyring {
            None => AddressKey::plain(address),
            Some(keyring) => AddressKey::from_token(keyring.address_token(address)),
        }
    }

    /// Returns the placeholder for the address of a grain whose key was destroyed before the address was
    /// recorded.
    pub(crate) fn lost_address_key(&self, at: Sequence) -> AddressKey {
        let lost = self.keyring.as_ref().map(|keyring| keyring.lost_address_token(at.get()));
        AddressKey::from_token(lost.unwrap_or_default())
    }

    /// Returns the last slot of a user, or that of the store if the user has none.
    pub(crate) fn last_slot(&self, person: &UserToken) -> u32 {
        let slots = self.keyring.as_ref().map(|keyring| keyring.slots_of(&person.0));
        slots.unwrap_or_default().last().copied().unwrap_or(STORE_SLOT)
    }

    /// Compares the keyring with the destruction marks of the truth: see [`Keyring::reconcile_marks`].
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn check_destruction_marks(&self, txn: &ReadTransaction) -> Result<()> {
        let Some(keyring) = &self.keyring else { return Ok(()) };
        let mut marked = BTreeSet::new();
        match txn.open_table(layout::DESTROYED) {
            Err(TableError::TableDoesNotExist(_)) => {}
            opened => {
                for row in opened?.iter()? {
                    let (slot, mark) = row?;
                    let slot = u32::try_from(slot.value()).unwrap_or_default();
                    if mark.value() == keyring.destruction_mark(slot) {
                        marked.insert(slot);
                    }
                }
            }
        }
        keyring.reconcile_marks(|slot| marked.contains(&slot))
    }

    /// Destroys the keys of a user up to a slot: what was encrypted under them is unreadable from then on.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn destroy(&self, person: &UserToken, to: u32) -> Result<()> {
        self.keyring.as_ref().map_or(Ok(()), |keyring| keyring.destroy(&person.0, to))
    }

    /// Returns the tie-breaker of grains of one time: the first bytes of the address. An encrypted store
    /// shows none of an address, so there all ties are equal.
    pub(crate) fn tie_breaker(&self, address: &ContentAddress) -> TieBreaker {
        match &self.keyring {
            None => TieBreaker::from_address(address.as_bytes()),
            Some(_) => TieBreaker::FIRST,
        }
    }

    /// Encodes the row of the key for pseudonyms and reason hashes, encrypted if the store is.
    ///
    /// # Errors
    /// As [`Vault::seal`].
    pub(crate) fn seal_audit_key(&self, key: &[u8; 32]) -> Result<Vec<u8>> {
        match &self.keyring {
            None => Ok(key.to_vec()),
            Some(_) => self.seal(RowKey::AUDIT_KEY, key, &self.store_key()),
        }
    }

    /// Decodes the row of the audit key, which is bound to another row in format 1.
    ///
    /// # Errors
    /// As [`Vault::open`]; `ERR_INTEGRITY` for a key of another length.
    pub(crate) fn open_audit_key(&self, at: RowKey, row: &[u8]) -> Result<[u8; 32]> {
        let key = match &self.keyring {
            None => Cow::Borrowed(row),
            Some(_) => self.open(at, row)?,
        };
        (*key).try_into().map_err(|_| Error::integrity("the audit key is damaged"))
    }

    /// Returns the bytes that a stub carries as its checksum: of its row and its body, with a key if there is
    /// one.
    pub(crate) fn check_of_stub(&self, at: Sequence, body: &[u8]) -> [u8; 4] {
        match &self.keyring {
            None => layout::checksum(at.get(), body),
            Some(keyring) => row_sums::stub_tag(keyring, at, body),
        }
    }

    /// Encodes a state record.
    pub(crate) fn encode_state(
        &self,
        sequence: Sequence,
        record: &StateRecord,
    ) -> [u8; STATE_RECORD_BYTES] {
        encode_state(sequence, record, |rest| self.state_pad(rest))
    }

    /// Decodes a state record.
    ///
    /// # Errors
    /// As [`decode_state`].
    pub(crate) fn decode_state(
        &self,
        sequence: Sequence,
        bytes: &[u8; STATE_RECORD_BYTES],
    ) -> Result<StateRecord> {
        decode_state(sequence, bytes, |rest| self.state_pad(rest))
    }

    fn state_pad(&self, rest: &[u8]) -> [u8; 32] {
        self.keyring.as_ref().map_or([0; 32], |keyring| keyring.state_pad(rest))
    }

    fn slot_keys_of(&self, keyring: &Keyring, user: Option<&str>) -> Result<Arc<SlotKeys>> {
        let holder = match user {
            None => keyring.slot_keys(STORE_SLOT)?,
            Some(user) => keyring.user_keys(user)?,
        };
        holder.ok_or_else(|| {
            Error::log_entry_erased("the key of the person it is about was destroyed")
        })
    }
}

/// Opens a row that is not encrypted.
fn open_plain(row: RowKey, bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
    let compressed = match row.may_be_compressed() {
        true => PlainEnvelope::open_compressed(row.key, bytes)?,
        false => None,
    };
    match compressed {
        None => PlainEnvelope::open(row.key, bytes).map(Cow::Borrowed),
        Some(body) => decompress(body)?.map(Cow::Owned).ok_or_else(|| {
            Error::truth_damaged(format!("the bytes of entry {} have changed", row.key))
        }),
    }
}

/// Returns the user a grain is about (OMS 12.4), `None` if it names none.
pub(crate) fn user_of<'g>(grain: &GrainRef<'g>) -> Option<&'g str> {
    grain.text("user_id").filter(|user| !user.is_empty())
}

/// The bit of a table of the truth among those that were checked.
fn checked_bit(table: u8) -> u64 {
    let place = table.saturating_sub(FIRST_SUMMED);
    1_u64.checked_shl(u32::from(place)).unwrap_or_default()
}
