//! A read snapshot of the truth: log, signatures, states, roots, audit log and reasons.
//!
//! Most readers need two or three of its tables, and a new snapshot is taken at every commit, so a table is
//! opened on first use. Knows nothing of the derived index.

mod application;
mod erased;
mod spaces;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use grainstore_format::GrainState;
use grainstore_format::container::EmbeddingSummary;
use grainstore_index::Sequence;
use grainstore_index::vectors::{Space, Vector};
use redb::{
    AccessGuard, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, TableDefinition, TableError, Value,
};

use crate::base::error::{Error, Result};
use crate::disk::database::{DatabaseHandle, LeasedReader};
use crate::disk::layout::AccessCounts;
use crate::disk::layout::{
    self, ACCESS_RECORD_BYTES, AuditHead, EncryptedEnvelope, RowKey, STATE_RECORD_BYTES,
    SignatureWrapper, StateRecord, StoredVector, Stub,
};
use crate::disk::row_sums::{self, SummedTable};
use crate::disk::vault::{EncryptionKey, Vault};
use crate::state::audit::AuditHashChain;
use crate::state::audit_rows::AuditRows;
use crate::state::truth::spaces::group_embeddings;
use erased::ErasureState;
pub(crate) use erased::{LogRow, ok_if_readable};
use spaces::SpaceMeta;

/// An immutable snapshot of the truth.
pub(crate) struct Truth {
    txn: LeasedReader<ReadTransaction>,
    vault: Vault,
    log: LazyTable<u64, &'static [u8]>,
    state: LazyTable<u64, &'static [u8; STATE_RECORD_BYTES]>,
    roots: LazyTable<u64, &'static [u8]>,
    audit: LazyTable<u64, &'static [u8]>,
    audit_head: OnceLock<AuditHead>,
    reasons: LazyTable<u64, &'static [u8]>,
    access: LazyTable<u64, &'static [u8; ACCESS_RECORD_BYTES]>,
    signatures: LazyTable<u64, &'static [u8]>,
    vectors: LazyTable<u64, &'static [u8]>,
    templates: LazyTable<u64, &'static [u8]>,
    /// Sequences with stubs, in an encrypted store.
    stubs: LazyTable<u64, &'static [u8]>,
    /// Vector spaces by number.
    spaces: OnceLock<BTreeMap<u32, Space>>,
    /// Rows of the meta table about spaces.
    marks: OnceLock<SpaceMeta>,
    /// Erasures and users whose scrub is pending.
    erased: OnceLock<ErasureState>,
}

/// A table that is opened on first use.
struct LazyTable<K: Key + 'static, V: Value + 'static> {
    definition: TableDefinition<'static, K, V>,
    opened: OnceLock<ReadOnlyTable<K, V>>,
}

impl<K: Key + 'static, V: Value + 'static> LazyTable<K, V> {
    fn new(definition: TableDefinition<'static, K, V>) -> Self {
        Self { definition, opened: OnceLock::new() }
    }

    fn get(&self, txn: &ReadTransaction) -> Result<&ReadOnlyTable<K, V>> {
        match self.opened.get() {
            Some(table) => Ok(table),
            None => {
                let table = txn.open_table(self.definition)?;
                Ok(self.opened.get_or_init(|| table))
            }
        }
    }

    /// Like [`LazyTable::get`], for a table that is created with its first row.
    fn get_if_exists(&self, txn: &ReadTransaction) -> Result<Option<&ReadOnlyTable<K, V>>> {
        if let Some(table) = self.opened.get() {
            return Ok(Some(table));
        }
        match txn.open_table(self.definition) {
            Ok(table) => Ok(Some(self.opened.get_or_init(|| table))),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Truth {
    /// Takes a snapshot of the last commit.
    pub(crate) fn open(db: &DatabaseHandle) -> Result<Self> {
        Ok(Self {
            txn: db.lease(db.begin_read()?),
            vault: db.vault().clone(),
            log: LazyTable::new(layout::LOG),
            state: LazyTable::new(layout::STATE),
            roots: LazyTable::new(layout::ROOTS),
            audit: LazyTable::new(layout::AUDIT),
            audit_head: OnceLock::new(),
            reasons: LazyTable::new(layout::REASONS),
            access: LazyTable::new(layout::ACCESS),
            signatures: LazyTable::new(layout::SIGNATURES),
            vectors: LazyTable::new(layout::VECTORS),
            templates: LazyTable::new(layout::TEMPLATES),
            stubs: LazyTable::new(layout::ERASED),
            spaces: OnceLock::new(),
            marks: OnceLock::new(),
            erased: OnceLock::new(),
        })
    }

    /// The entries of the audit log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a table is missing; `ERR_IO`.
    pub(crate) fn audit_rows(&self) -> Result<AuditRows<'_>> {
        let log = match self.vault.keyring() {
            None => Some(self.log.get(&self.txn)?),
            Some(_) => None,
        };
        Ok(AuditRows::new(self.audit.get(&self.txn)?, log))
    }

    /// The row with counts of refusals that the last opening left.
    pub(crate) fn carried_refusals(&self) -> Result<Option<Vec<u8>>> {
        let row = self.txn.open_table(layout::META)?.get(layout::META_REFUSALS)?;
        Ok(row.map(|row| row.value().to_vec()))
    }

    /// The row that says where the open segment of the audit log began.
    pub(crate) fn open_segment_row(&self) -> Result<Option<Vec<u8>>> {
        let row = self.txn.open_table(layout::META)?.get(layout::META_SEGMENT)?;
        Ok(row.map(|row| row.value().to_vec()))
    }

    /// Number of audit entries.
    ///
    /// # Errors
    /// As [`Truth::audit_head`].
    pub(crate) fn audit_len(&self) -> Result<u64> {
        Ok(self.audit_head()?.count)
    }

    /// The end of the audit log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing or damaged.
    pub(crate) fn audit_head(&self) -> Result<AuditHead> {
        if let Some(head) = self.audit_head.get() {
            return Ok(*head);
        }
        let head = self.audit_rows()?.head()?;
        Ok(*self.audit_head.get_or_init(|| head))
    }

    /// The empty audit chain of this store, with its key.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the store lacks its id or its key.
    pub(crate) fn chain_before_genesis(&self) -> Result<AuditHashChain> {
        let meta = self.txn.open_table(layout::META)?;
        let damaged = || Error::integrity("the store lacks its id or its audit key");
        let row = meta.get(layout::META_AUDIT_KEY)?.ok_or_else(damaged)?;
        let key = self.vault.open_audit_key(RowKey::AUDIT_KEY, row.value())?;
        Ok(AuditHashChain::genesis(&self.store_id()?, key).with_vault(self.vault.clone()))
    }

    /// The id of the store.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing.
    pub(crate) fn store_id(&self) -> Result<[u8; 16]> {
        let meta = self.txn.open_table(layout::META)?;
        let damaged = || Error::integrity("the store lacks its id");
        let id = meta.get(layout::META_STORE_ID)?.ok_or_else(damaged)?;
        id.value().try_into().map_err(|_| damaged())
    }

    /// Compares the rows of tables with their keyed sums, in an encrypted store.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if rows were changed by somebody without the key; `ERR_IO`.
    pub(crate) fn check_rows(&self, tables: impl IntoIterator<Item = SummedTable>) -> Result<()> {
        row_sums::check_rows(&self.txn, &self.vault, tables)
    }

    /// Compares the rows of vectors with their keyed sums, once for each opening of the store.
    ///
    /// # Errors
    /// As [`Truth::check_rows`].
    pub(crate) fn check_vectors(&self) -> Result<()> {
        let checked = SummedTable::Vectors.number();
        if self.vault.keyring().is_none() || self.vault.is_checked(checked) {
            return Ok(());
        }
        self.check_rows([SummedTable::Vectors, SummedTable::VectorRows])?;
        self.vault.set_checked(checked);
        Ok(())
    }

    /// Checks the seal over settings, log and audit log of an encrypted store.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if somebody without the key changed them; `ERR_IO`.
    pub(crate) fn check_seal(&self) -> Result<()> {
        row_sums::check_seal(&self.txn, &self.vault)
    }

    /// Returns the number of rows by table.
    pub(crate) fn row_counts(&self) -> Result<BTreeMap<&'static str, u64>> {
        let access = self.access.get_if_exists(&self.txn)?;
        let signatures = self.signatures.get_if_exists(&self.txn)?;
        let vectors = self.vectors.get_if_exists(&self.txn)?;
        let templates = self.templates.get_if_exists(&self.txn)?;
        Ok(BTreeMap::from([
            ("log", self.log_len()?),
            ("state", self.state_len()?),
            ("roots", self.roots.get(&self.txn)?.len()?),
            ("access", access.map_or(Ok(0), ReadableTableMetadata::len)?),
            ("signatures", signatures.map_or(Ok(0), ReadableTableMetadata::len)?),
            ("vectors", vectors.map_or(Ok(0), ReadableTableMetadata::len)?),
            ("templates", templates.map_or(Ok(0), ReadableTableMetadata::len)?),
            ("blobs", self.keyed_len(layout::BLOBS)?),
            ("blob_chunks", self.keyed_len(layout::BLOB_CHUNKS)?),
            ("application_rows", self.keyed_len(layout::APPLICATION_ROWS)?),
            ("audit", self.audit_len()?),
            ("reasons", self.reasons.get(&self.txn)?.len()?),
        ]))
    }

    /// The vault that opens the rows.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Returns `true` in an encrypted store if the slot that the row at a sequence names is not a damaged one
    /// of the keyring, so that damage lies in the row itself.
    pub(crate) fn has_sound_key(&self, at: Sequence) -> Result<bool> {
        let Some(keyring) = self.vault.keyring() else { return Ok(false) };
        let row = self.log.get(&self.txn)?.get(at.get())?;
        let slot = row.and_then(|row| match EncryptedEnvelope::parse(self.envelope(&row)) {
            Ok(Some(sealed)) => Some(sealed.slot),
            _ => None,
        });
        Ok(slot.is_none_or(|slot| !keyring.is_slot_damaged(slot)))
    }

    /// Returns the encryption key of rows that belong to the grain at a sequence.
    ///
    /// # Errors
    /// Those of [`Vault::key_of_row`]; `ERR_INTEGRITY` if the log has no such sequence.
    pub(crate) fn encryption_key_at(&self, sequence: Sequence) -> Result<EncryptionKey> {
        match self.log.get(&self.txn)?.get(sequence.get())? {
            Some(row) => self.vault.key_of_row(self.envelope(&row)),
            None => Err(Error::integrity(format!("the log has no entry {}", sequence.get()))),
        }
    }

    /// The read transaction, for copying whole tables.
    pub(crate) fn transaction(&self) -> &ReadTransaction {
        &self.txn
    }

    /// Returns the reason given with an audit entry.
    pub(crate) fn reason(&self, entry: u64) -> Result<Option<String>> {
        let Some(row) = self.reasons.get(&self.txn)?.get(entry)? else { return Ok(None) };
        let text = match self.vault.open(RowKey::reason(entry), row.value()) {
            Ok(text) => text.into_owned(),
            // It was encrypted under the key of an erased user.
            Err(error) if error.is_erased() => return Ok(None),
            Err(error) => return Err(error),
        };
        String::from_utf8(text).map(Some).map_err(|_| Error::integrity("a reason is no text"))
    }

    /// Returns the last sequence of the log; 0 if it is empty.
    pub(crate) fn last_sequence(&self) -> Result<Sequence> {
        let last = self.log.get(&self.txn)?.last()?;
        Ok(Sequence::new(last.map_or(0, |(sequence, _)| sequence.value())))
    }

    /// Number of rows in the log.
    pub(crate) fn log_len(&self) -> Result<u64> {
        Ok(self.log.get(&self.txn)?.len()?)
    }

    /// Number of grains with a stored state.
    pub(crate) fn state_len(&self) -> Result<u64> {
        Ok(self.state.get(&self.txn)?.len()?)
    }

    /// Returns the index-layer state of the grain at a sequence.
    pub(crate) fn state_at(&self, sequence: Sequence) -> Result<GrainState> {
        Ok(self.state_record_at(sequence)?.state)
    }

    /// Returns the index-layer state of the grain at a sequence, and the audit entry since which it is not
    /// current.
    pub(crate) fn state_record_at(&self, sequence: Sequence) -> Result<StateRecord> {
        match self.state.get(&self.txn)?.get(sequence.get())? {
            Some(record) => self.vault.decode_state(sequence, record.value()),
            None => Ok(StateRecord::default()),
        }
    }

    /// Returns the sequences of grains under hold.
    pub(crate) fn held_sequences(&self) -> Result<Vec<Sequence>> {
        let mut found = Vec::new();
        for row in self.state.get(&self.txn)?.range::<u64>(..)? {
            let (sequence, record) = row?;
            let sequence = Sequence::new(sequence.value());
            if layout::may_be_held(record.value())
                && self.vault.decode_state(sequence, record.value())?.state.held
            {
                found.push(sequence);
            }
        }
        Ok(found)
    }

    /// Returns the sequences of grains that stopped being current at or after this audit entry.
    pub(crate) fn ended_since(&self, entry: u64) -> Result<Vec<Sequence>> {
        let mut found = Vec::new();
        for row in self.state.get(&self.txn)?.range::<u64>(..)? {
            let (sequence, record) = row?;
            let sequence = Sequence::new(sequence.value());
            if self.vault.decode_state(sequence, record.value())?.ended_by_entry >= entry {
                found.push(sequence);
            }
        }
        Ok(found)
    }

    /// Returns the stored access count of the grain at a sequence.
    pub(crate) fn access_at(&self, sequence: Sequence) -> Result<AccessCounts> {
        let Some(table) = self.access.get_if_exists(&self.txn)? else {
            return Ok(AccessCounts::default());
        };
        match table.get(sequence.get())? {
            Some(record) => layout::decode_access(sequence, record.value()),
            None => Ok(AccessCounts::default()),
        }
    }

    /// Returns the envelope bytes around a signed blob at a sequence.
    pub(crate) fn wrapping_at(&self, sequence: Sequence) -> Result<Option<SignatureWrapper>> {
        let Some(table) = self.signatures.get_if_exists(&self.txn)? else { return Ok(None) };
        let row = table.get(sequence.get())?;
        row.map(|row| SignatureWrapper::open(sequence, row.value(), &self.vault)).transpose()
    }

    /// Returns `true` if envelope bytes are stored for the blob at a sequence.
    pub(crate) fn has_wrapping(&self, sequence: Sequence) -> Result<bool> {
        let Some(table) = self.signatures.get_if_exists(&self.txn)? else { return Ok(false) };
        Ok(table.get(sequence.get())?.is_some())
    }

    /// The vector spaces by number.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn spaces(&self) -> Result<&BTreeMap<u32, Space>> {
        if let Some(spaces) = self.spaces.get() {
            return Ok(spaces);
        }
        let found = self.read_spaces(layout::SPACES)?;
        Ok(self.spaces.get_or_init(|| found))
    }

    /// Iterates over the vectors after `row` in insertion order, each with its row number. A damaged or
    /// erased one is `None`; `verify` reports damage.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY` if the table cannot be read; the items fail alike.
    pub(crate) fn vectors_after(
        &self,
        row: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Option<StoredVector>)>> + '_> {
        let table = self.vectors.get_if_exists(&self.txn)?;
        let rows = table.map(|table| table.range(row.saturating_add(1)..)).transpose()?;
        Ok(rows.into_iter().flatten().map(|row| {
            let (row, bytes) = row?;
            let row = row.value();
            Ok((row, ok_if_readable(StoredVector::open(row, bytes.value(), &self.vault))?))
        }))
    }

    /// The last sequence that this model has embedded or skipped.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn embedded_through(&self, model: &str) -> Result<u64> {
        let meta = self.txn.open_table(layout::META)?;
        let row = meta.get(format!("{}{model}", layout::META_EMBEDDED_PREFIX).as_str())?;
        let Some(row) = row else { return Ok(0) };
        let damaged = |_| Error::truth_damaged("how far a model has embedded the log is damaged");
        Ok(u64::from_be_bytes(row.value().try_into().map_err(damaged)?))
    }

    /// Returns `true` if the grain at a sequence has a vector of this model. A damaged vector counts;
    /// `verify` reports it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn has_vector(&self, at: Sequence, model: &str) -> Result<bool> {
        self.check_vectors()?;
        let rows = match self.txn.open_table(layout::VECTOR_ROWS) {
            Ok(table) => table.get(at.get())?.map(|rows| layout::decode_rows(rows.value())),
            Err(TableError::TableDoesNotExist(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let (Some(rows), Some(table)) = (rows, self.vectors.get_if_exists(&self.txn)?) else {
            return Ok(false);
        };
        let Ok(rows) = rows else { return Ok(true) };
        for row in rows {
            let Some(bytes) = table.get(row)? else { continue };
            let Ok(placed) = StoredVector::open(row, bytes.value(), &self.vault) else {
                return Ok(true);
            };
            if self.spaces()?.get(&placed.space).is_some_and(|of| of.model() == model) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the vector of one chunk of the grain at a sequence in a space.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn vector_at(
        &self,
        at: Sequence,
        space: &Space,
        chunk: u32,
    ) -> Result<Option<Vector>> {
        self.check_vectors()?;
        let rows = match self.txn.open_table(layout::VECTOR_ROWS) {
            Ok(table) => table.get(at.get())?.map(|rows| layout::decode_rows(rows.value())),
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (Some(rows), Some(table)) = (rows, self.vectors.get_if_exists(&self.txn)?) else {
            return Ok(None);
        };
        for row in rows? {
            let Some(bytes) = table.get(row)? else { continue };
            let placed = StoredVector::open(row, bytes.value(), &self.vault)?;
            if placed.chunk == chunk && self.spaces()?.get(&placed.space) == Some(space) {
                return Ok(Some(placed.vector));
            }
        }
        Ok(None)
    }

    /// Returns the spaces and chunks of the grain's vectors, in the form of a manifest. Damaged vectors are
    /// skipped; `verify` reports them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn embeddings_at(&self, at: Sequence) -> Result<Vec<EmbeddingSummary>> {
        self.check_vectors()?;
        let Some(table) = self.vectors.get_if_exists(&self.txn)? else { return Ok(Vec::new()) };
        let rows = match self.txn.open_table(layout::VECTOR_ROWS) {
            Ok(table) => table.get(at.get())?.map(|rows| layout::decode_rows(rows.value())),
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let (Some(Ok(rows)), spaces) = (rows, self.spaces()?) else { return Ok(Vec::new()) };
        let mut found = BTreeSet::new();
        for row in rows {
            let Some(bytes) = table.get(row)? else { continue };
            let Some(placed) = ok_if_readable(StoredVector::open(row, bytes.value(), &self.vault))?
            else {
                continue;
            };
            found.extend(spaces.get(&placed.space).map(|space| (space, placed.chunk)));
        }
        Ok(group_embeddings(found))
    }

    /// The last row number used by a vector, whether it is still stored or was removed; 0 for none.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn last_vector_row(&self) -> Result<u64> {
        let Some(table) = self.vectors.get_if_exists(&self.txn)? else { return Ok(0) };
        let last = table.last()?.map_or(0, |(row, _)| row.value());
        Ok(last.max(self.removed_vectors()?.row))
    }

    /// Returns the ancestors whose protection extends to the grain at a sequence.
    pub(crate) fn roots_at(&self, sequence: Sequence) -> Result<Vec<Sequence>> {
        let row = self.roots.get(&self.txn)?.get(sequence.get())?;
        row.map_or(Ok(Vec::new()), |row| layout::decode_roots(sequence, row.value()))
    }

    /// The envelope or the stub in a row of the log.
    fn envelope<'r>(&self, row: &'r AccessGuard<'_, &'static [u8]>) -> &'r [u8] {
        self.vault.log_envelope(row.value())
    }

    /// Runs `read` on the blob at a sequence.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log has no such sequence, or its bytes have changed; `ERR_ERASED` if a stub is
    /// there.
    pub(crate) fn with_blob<T>(
        &self,
        sequence: Sequence,
        read: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let Some(row) = self.log.get(&self.txn)?.get(sequence.get())? else {
            return Err(Error::integrity(format!("the log has no entry {}", sequence.get())));
        };
        let envelope = self.envelope(&row);
        if Stub::is_stub(envelope) {
            Stub::open(sequence, envelope, &self.vault)?;
            return Err(erased::erased_sequence_error(sequence));
        }
        self.check_not_erased(sequence)?;
        let blob = self.vault.open(RowKey::log(sequence), envelope);
        read(&blob.map_err(|error| self.doubt_erased(sequence, error))?)
    }

    /// Like [`Truth::with_blob`], but `None` if the grain was erased. Posting lists of an index older than
    /// the erasure still lead there.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, those of `read`.
    pub(crate) fn with_live_blob<T>(
        &self,
        sequence: Sequence,
        read: impl FnOnce(&[u8]) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match self.with_blob(sequence, read) {
            Err(error) if error.is_erased() => Ok(None),
            read => read,
        }
    }

    /// Reads the whole log and fails on a row whose bytes have changed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn check_log(&self) -> Result<()> {
        self.log_after(None)?.try_for_each(|row| row.map(drop))
    }

    /// Iterates over the rows of the log after `sequence`, oldest first.
    pub(crate) fn log_after(
        &self,
        sequence: Option<Sequence>,
    ) -> Result<impl Iterator<Item = Result<(Sequence, LogRow)>> + '_> {
        let from = sequence.map_or(0, |sequence| sequence.get().saturating_add(1));
        let rows = self.log_from(from)?;
        Ok(rows.map(|row| row.and_then(|(sequence, logged)| Ok((sequence, logged?)))))
    }

    /// Iterates over the rows of the log from `from` on, oldest first, each with its contents or the error of
    /// reading it.
    pub(crate) fn log_from(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<(Sequence, Result<LogRow>)>> + '_> {
        let rows = self.log.get(&self.txn)?.range(from..)?;
        Ok(rows.map(|row| {
            let (sequence, row) = row?;
            let sequence = Sequence::new(sequence.value());
            let doubt = |error| self.doubt_erased(sequence, error);
            let opened = LogRow::open(sequence, row.value(), &self.vault, doubt);
            Ok((sequence, opened.and_then(|opened| self.checked(sequence, opened))))
        }))
    }
}
