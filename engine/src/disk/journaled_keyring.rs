//! The slots of the keyring that a copy of an encrypted store takes from its journal, which has them beside its records:
//! which ones it needs, and whether they are those that a leader made.

use std::collections::BTreeMap;
use std::ops::Range;

use redb::{Database, ReadableDatabase, ReadableTable, TableError};

use crate::base::error::{Error, Result};
use crate::disk::journal::{KeyringSlot, Record, damaged};
use crate::disk::keyring::Keyring;
use crate::disk::layout;
use crate::disk::truth_tables::TruthTable;

/// The marks of destroyed slots, by their numbers.
pub(crate) type Marks = BTreeMap<u32, [u8; 32]>;
/// The hashes of slots, by their numbers.
pub(crate) type SlotHashes = BTreeMap<u32, [u8; 32]>;

/// Returns the number of keyring slots that the rows of a copy are encrypted under, with that of the store.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn slots_in(db: &Database) -> Result<u32> {
    let last = meta_row(db, layout::META_SLOTS)?.map_or(Ok(0), |row| last_slot(&row))?;
    let has_rows = meta_row(db, layout::META_STORE_ID)?.is_some();
    Ok(if has_rows { last.saturating_add(1) } else { 0 })
}

/// Returns `true` if the rows of a copy are those of an encrypted store.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn is_encrypted(db: &Database) -> Result<bool> {
    Ok(meta_row(db, layout::META_ENCRYPTED)?.is_some())
}

/// Refuses the keyring of another store than a copy has rows of.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn check_is_of(db: &Database, keyring: &Keyring) -> Result<()> {
    match meta_row(db, layout::META_STORE_ID)? {
        Some(id) if id != keyring.store_id() => {
            Err(Error::truth_damaged("the keyring belongs to another store")
                .with_hint("move it away: that of this copy is made from its journal"))
        }
        _ => Ok(()),
    }
}

fn meta_row(db: &Database, name: &str) -> Result<Option<Vec<u8>>> {
    match db.begin_read()?.open_table(layout::META) {
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        opened => Ok(opened?.get(name)?.map(|row| row.value().to_vec())),
    }
}

/// Decodes the row that has the number of the last slot in use.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn last_slot(row: &[u8]) -> Result<u32> {
    let row: [u8; 4] = row
        .try_into()
        .map_err(|_| Error::truth_damaged("the count of the keyring's slots is damaged"))?;
    Ok(u32::from_be_bytes(row))
}

/// Returns the marks that a copy has.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn marks_in(db: &Database) -> Result<Marks> {
    let table = match db.begin_read()?.open_table(layout::DESTROYED) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Marks::new()),
        opened => opened?,
    };
    let mut marks = Marks::new();
    for row in table.iter()? {
        let (slot, mark) = row?;
        let mark = mark.value().try_into().ok();
        marks.extend(u32::try_from(slot.value()).ok().zip(mark));
    }
    Ok(marks)
}

/// Returns the marks that records write.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn marks_of(batch: &[Record]) -> Result<Marks> {
    let mut marks = Marks::new();
    for record in batch {
        for row in record.changes()?.rows() {
            let (table, key, value) = row?;
            if table == TruthTable::Destroyed {
                let number = key.try_into().ok().map(u64::from_be_bytes);
                let number = number.and_then(|number| u32::try_from(number).ok());
                marks.extend(number.zip(value.and_then(|mark| mark.try_into().ok())));
            }
        }
    }
    Ok(marks)
}

/// Returns the slots that records are the first to write rows under, of those behind the ones that a copy has.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn needed_slots(keyring: &Keyring, batch: &[Record]) -> Result<Range<u32>> {
    let first = keyring.slot_count();
    let mut end = first;
    for record in batch {
        for row in record.changes()?.rows() {
            let (table, key, value) = row?;
            if table == TruthTable::Meta && key == layout::META_SLOTS.as_bytes() {
                end = value.map_or(Ok(0), last_slot)?.saturating_add(1).max(end);
            }
        }
    }
    Ok(first..end)
}

/// Refuses slots of the journal that are not all that are needed, or not those that a leader made: each is the one whose
/// hash a record has, or zeros that a record has a mark for.
///
/// # Errors
/// `ERR_INTEGRITY`.
pub(crate) fn check_slots(
    keyring: &Keyring,
    (needed, slots): (Range<u32>, &[KeyringSlot]),
    (hashes, marks): (&SlotHashes, &Marks),
) -> Result<()> {
    let mut slots = slots.iter();
    for number in needed {
        let slot = slots.next().filter(|slot| slot.number == number);
        let slot = slot.filter(|slot| !lacks_mark(keyring, slot, marks));
        let Some(slot) = slot else {
            return Err(damaged(format!("the journal lacks slot {number} of the keyring")));
        };
        if !slot.is_destroyed() && hashes.get(&number) != Some(&slot.hash()) {
            let message = format!("slot {number} of the journal's keyring is not the leader's");
            return Err(damaged(message));
        }
    }
    Ok(())
}

/// Returns `true` for a slot that is destroyed, and by none of the records that wrote these marks.
pub(crate) fn lacks_mark(keyring: &Keyring, slot: &KeyringSlot, marks: &Marks) -> bool {
    slot.is_destroyed() && marks.get(&slot.number) != Some(&keyring.destruction_mark(slot.number))
}

/// The hashes of the slots that records are the first to use.
pub(crate) fn hashes_of(batch: &[Record]) -> SlotHashes {
    batch.iter().flat_map(Record::slot_hashes).collect()
}
