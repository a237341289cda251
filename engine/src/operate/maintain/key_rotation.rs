//! Key rotation in an encrypted store: another master key, which rewraps the secrets and rewrites no row, or
//! another key for one user, which re-encrypts all of that user's rows.

use std::sync::Arc;

use grainstore_format::{ContentAddress, normalise_text};
use redb::{TableDefinition, TableError};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::directory;
use crate::disk::keyring::{KeyProvider, Keyring};
use crate::disk::layout::{self, EncryptedEnvelope, KeyedDefinition, RowKey, RowOwner};
use crate::disk::truth_tables::TruthTable;
use crate::disk::vault::{EncryptionKey, Vault};
use crate::handle::store::Store;
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::writer::Writer;

/// Bytes of rows that are re-encrypted in one transaction.
const BATCH_BYTES: usize = 4 << 20;

/// A table whose rows are encrypted under users' keys, by number.
type EncryptedTable = (TruthTable, TableDefinition<'static, u64, &'static [u8]>, RowKeyFn);
/// Returns the row key, to which the encryption of a row is bound.
type RowKeyFn = fn(u64) -> RowKey;

const ENCRYPTED_TABLES: [EncryptedTable; 4] = [
    (TruthTable::Log, layout::LOG, RowKey::log_row),
    (TruthTable::Signatures, layout::SIGNATURES, RowKey::signature_row),
    (TruthTable::Reasons, layout::REASONS, RowKey::reason),
    (TruthTable::Vectors, layout::VECTORS, RowKey::vector),
];

/// Those whose keys are bytes, and whose rows begin with their owner.
const OWNED_TABLES: [(TruthTable, KeyedDefinition); 3] = [
    (TruthTable::Blobs, layout::BLOBS),
    (TruthTable::BlobChunks, layout::BLOB_CHUNKS),
    (TruthTable::ApplicationRows, layout::APPLICATION_ROWS),
];

impl Store {
    /// Changes the master key: from now on the store opens with the new one only. The keys of the rows stay,
    /// so the time does not depend on the number of grains. Backups and copies made before still open with
    /// the former key.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// use grainstore::KeyFile;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("memory");
    /// let old = KeyFile::create(dir.path().join("old.key"))?;
    /// let store = Store::open(&path, &OpenOptions::new().create(true).key(old))?;
    /// store.rotate_key(KeyFile::create(dir.path().join("new.key"))?)?;
    /// store.close()?;
    /// Store::open(&path, &OpenOptions::new().key(KeyFile::new(dir.path().join("new.key"))))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_KEY` for a store that is not encrypted or has a journal, and where the provider has no key, or another
    /// one when it is asked again; `ERR_CONFLICT` for a key file within a store; `ERR_IO`, after which the store opens with
    /// one of the two keys.
    pub fn rotate_key(&self, key: impl KeyProvider + 'static) -> Result<()> {
        self.check_may_rotate()?;
        let key: Arc<dyn KeyProvider> = Arc::new(key);
        self.run_exclusive(move |writer| writer.rotate_key(key.as_ref()))
    }

    /// Changes the key of a user: re-encrypts all rows under the former one and rebuilds the indexes, while
    /// writes wait; then destroys the former key on disk. Readers of older views are still answered. Returns
    /// the number of rows re-encrypted. An interruption loses nothing: both keys are valid, and the next
    /// opening completes the rotation.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// use grainstore::{MasterKey, Preset, KeyFile};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let key = KeyFile::create(dir.path().join("memory.key"))?;
    /// let options = OpenOptions::new().create(true).key(key).preset(Preset::from_name("gdpr")?);
    /// # let options = OpenOptions::new().create(true).key(KeyFile::new(dir.path().join("memory.key")));
    /// let store = Store::open(dir.path().join("memory"), &options)?;
    /// let session = store.session(SessionOptions { user_id: Some("ann".into()), ..Default::default() });
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
    /// session.put(grain.build()?)?;
    /// assert!(store.rotate_user_key("ann")? >= 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_KEY` for a store that is not encrypted or has a journal; `ERR_NOT_FOUND` for a user without a key; `ERR_IO`,
    /// `ERR_INTEGRITY`.
    pub fn rotate_user_key(&self, user_id: &str) -> Result<u64> {
        self.check_may_rotate()?;
        let user_id = normalise_text(user_id)?.into_owned();
        self.run_exclusive(move |writer| writer.rotate_user_key(&user_id))
    }

    /// Refuses a store with a journal: its other copies would not follow.
    fn check_may_rotate(&self) -> Result<()> {
        if !self.inner().has_journal() || !self.is_encrypted() {
            return Ok(());
        }
        let message = "the keys of a store with a journal cannot be changed yet";
        Err(key_error(message)
            .with_hint("export it, and import the file into a shard with another key"))
    }
}

impl Writer {
    fn rotate_key(&mut self, key: &dyn KeyProvider) -> Result<()> {
        let keyring = self.keyring()?;
        if let Some(file) = key.file() {
            directory::check_outside(file)?;
        }
        // A key that the provider cannot give leaves no audit entry.
        let prepared = keyring.rewrapped(key)?;
        // What opens the store from now on is had once more before anything depends on it.
        keyring.check_opens(key, &prepared)?;
        self.append_record(AuditRecord::new(AuditOperation::RotateKey, Vec::new()))?;
        self.stop_on_error(|_| keyring.rewrap(prepared))
    }

    fn rotate_user_key(&mut self, user_id: &str) -> Result<u64> {
        let keyring = self.keyring()?;
        let person = keyring.user_token(user_id);
        if keyring.slots_of(&person).is_empty() {
            let message = "this person has no key in this store";
            return Err(Error::new(ErrorKind::NotFound, message)
                .with_hint("check the user_id; a person is given a key with the first grain"));
        }
        self.append_record(AuditRecord::new(
            AuditOperation::RotateKey,
            vec![ContentAddress::from_bytes(person)],
        ))?;
        self.stop_on_error(|_| keyring.add_slot(&person))?;
        self.retire_former_keys(&[person])
    }

    /// Completes interrupted rotations, whose both keys are valid until then.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a row that cannot be read: its key stays; `ERR_IO`.
    pub(crate) fn finish_rotations(&mut self) -> Result<()> {
        let renewed = self.keyring()?.users_in_rotation();
        if renewed.is_empty() { Ok(()) } else { self.retire_former_keys(&renewed).map(drop) }
    }

    /// Re-encrypts the rows of users under all keys but their last, rebuilds the indexes, and then destroys
    /// those keys.
    fn retire_former_keys(&mut self, people: &[[u8; 32]]) -> Result<u64> {
        let keyring = self.keyring()?;
        let mut rows = 0;
        let mut left = Vec::new();
        for person in people {
            let mut former = keyring.slots_of(person);
            let Some(last) = former.pop() else { continue };
            for table in ENCRYPTED_TABLES {
                rows += self.reencrypt_table(table, &former, last)?;
            }
            for table in OWNED_TABLES {
                rows += self.reencrypt_owned(table, &former, last)?;
            }
            left.extend(former.last().map(|to| (person, *to)));
        }
        self.fold_all()?;
        // The indexes hold tokens of the former keys: if they are put back later, they are not used.
        let vault = self.db.vault().clone();
        let epoch = vault.index_epoch().saturating_add(1);
        self.commit_change(|rows| {
            rows.put(TruthTable::Meta, layout::META_INDEX_EPOCH, &epoch.to_be_bytes())
        })?;
        vault.set_index_epoch(epoch);
        let before = Arc::clone(&self.view);
        self.rebuild_index(View::new(Arc::new(Truth::open(&self.db)?), before.indexed().clone()))?;
        self.commit_change(|rows| {
            left.iter().try_for_each(|(person, to)| rows.mark_destroyed(person, *to))
        })?;
        for (person, to) in left {
            self.stop_on_error(|_| keyring.retire(person, to))?;
        }
        self.retrieval.text_index.forget()?;
        Ok(rows)
    }

    /// Re-encrypts the rows of a table from some slots of a user to another slot.
    fn reencrypt_table(
        &mut self,
        (table, definition, row_key): EncryptedTable,
        former: &[u32],
        to: u32,
    ) -> Result<u64> {
        let vault = self.db.vault().clone();
        let encryption_key = vault.key_in_slot(to)?;
        let (mut rows, mut from) = (0_u64, 0);
        loop {
            let view = Arc::clone(&self.view);
            let opened = match view.transaction().open_table(definition) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(rows),
                opened => opened?,
            };
            let (mut batch, mut bytes, mut next) = (Vec::new(), 0_usize, None);
            for row in opened.range(from..)? {
                let (key, row) = row?;
                let key = key.value();
                if bytes >= BATCH_BYTES {
                    next = Some(key);
                    break;
                }
                if is_in_slots(row.value(), former)? {
                    let anew = reencrypt(&vault, row_key(key), row.value(), &encryption_key)?;
                    bytes = bytes.saturating_add(anew.len());
                    batch.push((key, anew));
                }
            }
            drop((opened, view));
            rows = rows.saturating_add(u64::try_from(batch.len()).unwrap_or(u64::MAX));
            self.commit_change(|writer| {
                for (key, row) in &batch {
                    writer.put(table, *key, row)?;
                }
                Ok(())
            })?;
            match next {
                Some(next) => from = next,
                None => return Ok(rows),
            }
        }
    }

    /// Does the same with a table whose rows have owners.
    fn reencrypt_owned(
        &mut self,
        (table, definition): (TruthTable, KeyedDefinition),
        former: &[u32],
        to: u32,
    ) -> Result<u64> {
        let vault = self.db.vault().clone();
        let encryption_key = vault.key_in_slot(to)?;
        let (mut rows, mut from) = (0_u64, Vec::new());
        loop {
            let view = Arc::clone(&self.view);
            let Some(opened) = view.keyed(definition)? else { return Ok(rows) };
            let (mut batch, mut bytes, mut next) = (Vec::new(), 0_usize, None);
            for row in opened.range(from.as_slice()..)? {
                let (key, row) = row?;
                let (key, row) = (key.value(), row.value());
                if bytes >= BATCH_BYTES {
                    next = Some(key.to_vec());
                    break;
                }
                // A row with a damaged owner is of nobody that can be told.
                let Ok((_, envelope)) = RowOwner::split(row) else { continue };
                if is_in_slots(envelope, former)? {
                    let (owner, body) = layout::open_owned((table, key), row, &vault)?;
                    let sealing = (&vault, &encryption_key);
                    let anew = layout::seal_owned((table, key), &owner, &body, sealing)?;
                    bytes = bytes.saturating_add(anew.len());
                    batch.push((key.to_vec(), anew));
                }
            }
            drop((opened, view));
            rows = rows.saturating_add(u64::try_from(batch.len()).unwrap_or(u64::MAX));
            self.commit_change(|writer| {
                for (key, row) in &batch {
                    writer.put(table, key.as_slice(), row)?;
                }
                Ok(())
            })?;
            match next {
                Some(next) => from = next,
                None => return Ok(rows),
            }
        }
    }

    /// Returns the keyring.
    fn keyring(&self) -> Result<Arc<Keyring>> {
        self.db.vault().keyring().cloned().ok_or_else(|| {
            key_error("this store is not encrypted: it has no key to change")
                .with_hint("import what it holds into a store that is created with a key")
        })
    }
}

fn key_error(message: &str) -> Error {
    Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Key), message)
}

/// Returns `true` if a row is encrypted under one of these slots.
fn is_in_slots(row: &[u8], slots: &[u32]) -> Result<bool> {
    Ok(EncryptedEnvelope::parse(row)?.is_some_and(|sealed| slots.contains(&sealed.slot)))
}

fn reencrypt(
    vault: &Vault,
    key: RowKey,
    row: &[u8],
    encryption_key: &EncryptionKey,
) -> Result<Vec<u8>> {
    let body = vault.open(key, row)?;
    vault.seal(key, &body, encryption_key)
}
