//! A write transaction of the truth: the one way in which its rows are written and removed.
//!
//! It keeps the sums of an encrypted store, and its seal, and makes the change record of the commit for whoever
//! follows. Knows rows, not the operations that write them.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use grainstore_index::Sequence;
use redb::{
    Database, Durability, Key, ReadableTable, Table, TableDefinition, Value, WriteTransaction,
};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::change_record::ChangeRecord;
use crate::disk::journal::{KeyringSlot, check_size};
use crate::disk::keyring::Keyring;
use crate::disk::layout::{self, StateRecord};
use crate::disk::position::Position;
use crate::disk::row_sums::{self, SumChanges};
use crate::disk::truth_tables::{NumberedTable, OpenTables, TableKey, TruthTable};
use crate::disk::vault::Vault;

/// Takes the change record of each commit, before it is committed, with the slots of the keyring that it is the first to
/// use or the last: an error aborts the commit.
#[derive(Clone, Default)]
pub(crate) struct CommitObserver(Option<Arc<TakeChanges>>);

type TakeChanges = dyn Fn(&ChangeRecord, Vec<KeyringSlot>, &Vault) -> Result<Option<JournaledCommit>>
    + Send
    + Sync;

/// A commit that a journal has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournaledCommit {
    /// Its place, which is written with its rows.
    pub(crate) position: Position,
    /// True if it is to be synced, with all before. A crash loses those that are not, and opening reads them in the
    /// journal.
    pub(crate) syncs: bool,
}

impl fmt::Debug for CommitObserver {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("CommitObserver").field(&self.0.is_some()).finish()
    }
}

impl CommitObserver {
    /// Refuses every commit: nothing is written but what the leader wrote.
    pub(crate) fn refusing() -> Self {
        Self::new(|_, _, _| {
            Err(Error::new(ErrorKind::NotLeader, "a copy that follows writes nothing"))
        })
    }

    pub(crate) fn new(
        take: impl Fn(&ChangeRecord, Vec<KeyringSlot>, &Vault) -> Result<Option<JournaledCommit>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Some(Arc::new(take)))
    }
}

/// A write transaction of the truth, durable in its file or in the journal of the store.
pub(crate) struct TruthTransaction {
    txn: WriteTransaction,
    vault: Vault,
    observer: CommitObserver,
    /// What was written, until it is committed.
    written: RefCell<Written>,
}

#[derive(Default)]
struct Written {
    record: Option<ChangeRecord>,
    /// The last slot of the keyring, if it is used for the first time.
    slot: Option<u32>,
    /// The slots that go with the record.
    keyring: Vec<KeyringSlot>,
}

/// The rows of a transaction, open for writing.
pub(crate) struct RowWriter<'t> {
    tables: OpenTables<'t>,
    vault: &'t Vault,
    sums: SumChanges<'t>,
    /// `None` if nobody takes it.
    record: Option<ChangeRecord>,
    /// Slots of the keyring that go with the record, beside those that are used for the first time.
    slots: Vec<KeyringSlot>,
}

impl TruthTransaction {
    /// Begins a transaction.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn begin(db: &Database, vault: &Vault, observer: &CommitObserver) -> Result<Self> {
        let mut txn = db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        let written = RefCell::default();
        Ok(Self { txn, vault: vault.clone(), observer: observer.clone(), written })
    }

    /// Writes the rows of the commit, then what binds them to the others. To be called once; after an error the
    /// transaction is to be dropped.
    ///
    /// # Errors
    /// Those of `change`; `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&mut RowWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut rows = RowWriter {
            tables: OpenTables::new(&self.txn),
            vault: &self.vault,
            sums: SumChanges::of(&self.vault),
            record: self.observer.0.is_some().then(ChangeRecord::default),
            slots: Vec::new(),
        };
        let changed = change(&mut rows)?;
        self.written.replace(rows.finish()?);
        Ok(changed)
    }

    /// Commits what was written, durably.
    ///
    /// # Errors
    /// `ERR_IO`; of a store with a journal `ERR_FENCED`, `ERR_IN_DOUBT`, `ERR_LIMIT`.
    pub(crate) fn commit(self) -> Result<()> {
        let Self { txn, vault, observer, written } = self;
        let Written { record, slot, keyring } = written.into_inner();
        // A key is destroyed right after its mark is committed, which so has to be on the disk.
        let destroys = keyring.iter().any(KeyringSlot::is_destroyed);
        let taken = match (&observer.0, record.filter(|record| !record.is_empty())) {
            (Some(take), Some(record)) => take(&record, keyring, &vault)?,
            _ => None,
        };
        let Some(commit) = taken else {
            txn.commit()?;
            return slot
                .zip(vault.keyring())
                .map_or(Ok(()), |(slot, keyring)| keyring.record_slot(slot));
        };
        // Slots before the rows that are encrypted under them, as far as the power may be cut in between.
        let written = vault.keyring().map_or(Ok(()), |keyring| {
            slot.map_or(Ok(()), |slot| keyring.record_slot(slot))?;
            keyring.write_copied()
        });
        let committed = written.and_then(|()| commit_journaled(txn, commit, destroys));
        committed.map_err(|failed| {
            let message = format!("the journal has it, and this copy has not: {failed}");
            Error::new(ErrorKind::InDoubt, message)
        })
    }

    /// Aborts the transaction.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn abort(self) -> Result<()> {
        Ok(self.txn.abort()?)
    }
}

/// Commits what the journal has.
fn commit_journaled(mut txn: WriteTransaction, commit: JournaledCommit, syncs: bool) -> Result<()> {
    commit.position.write(&txn)?;
    if !commit.syncs && !syncs {
        txn.set_durability(Durability::None)?;
    }
    Ok(txn.commit()?)
}

impl<'t> RowWriter<'t> {
    /// The keys that rows are encrypted with.
    pub(crate) fn vault(&self) -> &'t Vault {
        self.vault
    }

    /// Writes a row. Returns `true` if it replaced one.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a key or a value that is none of this table; `ERR_IO`.
    pub(crate) fn put<'k>(
        &mut self,
        table: TruthTable,
        key: impl Into<TableKey<'k>>,
        value: &[u8],
    ) -> Result<bool> {
        self.set(table, key.into(), Some(value))
    }

    /// Removes a row. Returns `true` if there was one.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn remove<'k>(
        &mut self,
        table: TruthTable,
        key: impl Into<TableKey<'k>>,
    ) -> Result<bool> {
        self.set(table, key.into(), None)
    }

    /// Returns a row as it is in this transaction.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn get<'k>(
        &self,
        table: TruthTable,
        key: impl Into<TableKey<'k>>,
    ) -> Result<Option<Vec<u8>>> {
        self.tables.get(table, key.into())
    }

    /// Returns a table of bytes by number, for its ranges; `None` if it has no row yet.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn numbered(&self, table: TruthTable) -> Result<Option<&NumberedTable<'t>>> {
        self.tables.numbered(table)
    }

    /// Returns the highest number in a table; 0 if it is empty.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn last_number(&self, table: TruthTable) -> Result<u64> {
        let Some(table) = self.numbered(table)? else { return Ok(0) };
        Ok(table.last()?.map_or(0, |(number, _)| number.value()))
    }

    /// Creates a table without rows.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn create(&mut self, table: TruthTable) -> Result<()> {
        self.tables.create(table)?;
        self.record.as_mut().map_or(Ok(()), |record| record.push_table(table))
    }

    /// Opens a table that is none of the truth, and is deleted before the commit.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn temporary<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<Table<'t, K, V>> {
        self.tables.temporary(definition)
    }

    /// Deletes such a table, which must be closed.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn delete_temporary<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<()> {
        self.tables.delete_temporary(definition)
    }

    /// Returns the state record of a grain as it is in this transaction.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn state_record(&self, at: Sequence) -> Result<StateRecord> {
        match self.get(TruthTable::State, at)? {
            Some(record) => {
                let record = record.as_slice().try_into();
                let record = record.map_err(|_| Error::integrity("a state record is damaged"))?;
                self.vault.decode_state(at, record)
            }
            None => Ok(StateRecord::default()),
        }
    }

    /// Writes the state record of a grain.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn put_state(&mut self, at: Sequence, record: &StateRecord) -> Result<()> {
        self.put(TruthTable::State, at, &self.vault.encode_state(at, record)).map(drop)
    }

    /// Has the store's slot of the keyring go with the record: that of a new store.
    pub(crate) fn put_store_slot(&mut self) {
        self.slots.extend(self.vault.keyring().map(|keyring| keyring.store_slot()));
    }

    /// Notes that the grain at a sequence was erased, in an encrypted store.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn mark_erased(&mut self, at: Sequence) -> Result<()> {
        match self.vault.keyring() {
            Some(_) => self.put(TruthTable::Erased, at, &[]).map(drop),
            None => Ok(()),
        }
    }

    /// Marks the slots of a user up to `to` as destroyed, which they are once the transaction is committed.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn mark_destroyed(&mut self, person: &[u8; 32], to: u32) -> Result<()> {
        let Some(keyring) = self.vault.keyring() else { return Ok(()) };
        let slots = keyring.slots_of(person);
        self.mark_slots(keyring, slots.into_iter().filter(|slot| *slot <= to))
    }

    /// Marks the slots that are destroyed already, for a store of a format that had no such marks.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn mark_all_destroyed(&mut self) -> Result<()> {
        let Some(keyring) = self.vault.keyring() else { return Ok(()) };
        self.mark_slots(keyring, keyring.destroyed_slots())
    }

    fn mark_slots(
        &mut self,
        keyring: &Keyring,
        slots: impl IntoIterator<Item = u32>,
    ) -> Result<()> {
        for slot in slots {
            self.put(TruthTable::Destroyed, u64::from(slot), &keyring.destruction_mark(slot))?;
            self.slots.push(Keyring::erased_slot(slot));
        }
        Ok(())
    }

    fn set(&mut self, table: TruthTable, key: TableKey<'_>, value: Option<&[u8]>) -> Result<bool> {
        let Self { tables, sums, record, .. } = self;
        let summed = table.summed();
        let existed = tables.set(table, key, value, |former| {
            if let Some(summed) = summed {
                key.with_bytes(|key| sums.toggle(summed, key, former));
            }
        })?;
        if let (Some(summed), Some(value)) = (summed, value) {
            key.with_bytes(|key| sums.toggle(summed, key, value));
        }
        if let Some(record) = record.as_mut().filter(|_| existed || value.is_some()) {
            record.push(table, key, value)?;
            // Nothing is written yet: the caller is told, and the writer goes on.
            check_size(record)?;
        }
        Ok(existed)
    }

    /// Writes what binds the rows to each other: the last slot of the keyring that is in use, the sums and the
    /// seal.
    fn finish(mut self) -> Result<Written> {
        let Some(keyring) = self.vault.keyring() else {
            return Ok(Written { record: self.record, ..Written::default() });
        };
        let slot = keyring.unrecorded_slot();
        if let Some(slot) = slot {
            self.put(TruthTable::Meta, layout::META_SLOTS, &slot.to_be_bytes())?;
        }
        let before = self.get(TruthTable::Meta, layout::META_ROW_SUMS)?;
        if let Some(row) = self.sums.row(before)? {
            self.put(TruthTable::Meta, layout::META_ROW_SUMS, &row)?;
        }
        let last = self.last_number(TruthTable::Log)?;
        let head = self.get(TruthTable::Audit, layout::AUDIT_HEAD)?.unwrap_or_default();
        let sealed = row_sums::sealed_head(keyring, &head, last, self.tables.meta()?)?;
        if head != sealed {
            self.put(TruthTable::Audit, layout::AUDIT_HEAD, &sealed)?;
        }
        let mut slots = match self.record {
            Some(_) => keyring.unrecorded_slots(),
            None => Vec::new(),
        };
        slots.retain(|new| self.slots.iter().all(|slot| slot.number != new.number));
        slots.extend(self.slots);
        Ok(Written { record: self.record, slot, keyring: slots })
    }
}
