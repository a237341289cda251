//! Side blobs and rows of applications on the writer's thread: a batch of changes, or a side blob, is one
//! transaction with an audit entry. Keeps the table of owners in step.

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::ContentAddress;

use super::Writer;
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::layout::{self, BlobHead, CHUNK_BYTES, OwnedLink, RowBody, RowOwner, TablePrefix};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::state::application::{ApplicationCounts, ApplicationKey, Owner, RowChange};
use crate::state::audit::{AuditOperation, AuditRecord, TransferKind, TransferSummary};
use crate::state::owners::KnownOwner;
use crate::state::view::View;
use crate::write::plan::Principal;

impl Writer {
    /// Makes all of these changes, or none of them. Returns for each whether there was a row under its key.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_ERASED` for an owner that is no stored grain; `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn write_rows(
        &mut self,
        changes: &[RowChange],
        author: &Principal,
    ) -> Result<Vec<bool>> {
        let rows = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        let mut owners = HashMap::new();
        for (place, RowChange { owner, .. }) in changes.iter().enumerate() {
            if !owners.contains_key(owner) {
                let known = catch_storage_panic(|| self.view.known_owner(owner));
                owners.insert(owner, known.map_err(|error| error.with_batch_index(place))?);
            }
        }
        // In their order: slots of the keyring are given in the order in which users come.
        let users = changes.iter().filter_map(|change| owners.get(&change.owner));
        let users = users.filter_map(|owner| owner.user_id.as_deref());
        self.db.vault().enroll_users(users)?;
        let counts = ApplicationCounts::new(rows, 0);
        let record = record_of(author, AuditOperation::WriteRows, counts);
        let existed = self.transact(|write_txn, rows| {
            let unknown = || Error::integrity("the owner of a row is not known");
            let view = write_txn.view;
            let existed = changes.iter().enumerate().map(|(place, change)| {
                let owner = owners.get(&change.owner).ok_or_else(unknown)?;
                let written = write_row(view, rows, change, owner);
                written.map_err(|error| error.with_batch_index(place))
            });
            Ok(Some((existed.collect::<Result<Vec<_>>>()?, vec![record])))
        })?;
        Ok(existed.unwrap_or_default())
    }

    /// Stores a side blob, unless it is there.
    ///
    /// # Errors
    /// As [`Writer::write_rows`].
    pub(crate) fn put_side_blob(
        &mut self,
        (address, bytes): (&ContentAddress, &[u8]),
        owner: &Owner,
        author: &Principal,
    ) -> Result<()> {
        let view = Arc::clone(&self.view);
        let owner = catch_storage_panic(|| view.known_owner(owner))?;
        // One that is damaged is written anew.
        match catch_storage_panic(|| view.blob_bytes(address, &owner.row)) {
            Ok(Some(_)) => return Ok(()),
            Err(error) if !error.is_integrity() => return Err(error),
            _ => drop(view),
        }
        self.db.vault().enroll_users(owner.user_id.as_deref())?;
        let counts = ApplicationCounts::new(0, 1);
        let record = record_of(author, AuditOperation::WriteBlob, counts);
        self.transact(|_, rows| {
            write_blob(rows, (address, bytes), &owner)?;
            Ok(Some(((), vec![record])))
        })?;
        Ok(())
    }

    /// Removes a side blob. Returns `true` if there was one.
    ///
    /// # Errors
    /// As [`Writer::write_rows`].
    pub(crate) fn remove_side_blob(
        &mut self,
        address: &ContentAddress,
        owner: &Owner,
        author: &Principal,
    ) -> Result<bool> {
        let owner = catch_storage_panic(|| self.view.known_owner(owner))?.row;
        let key = layout::blob_key(self.db.vault(), address, &owner);
        let counts = ApplicationCounts::new(0, 1);
        let record = record_of(author, AuditOperation::RemoveBlob, counts);
        let removed = self.transact(|write_txn, rows| {
            refuse_if_held(write_txn.view, &owner)?;
            if !remove_stored(write_txn.view, rows, (TruthTable::Blobs, &key))? {
                return Ok(None);
            }
            if let Some(link) = owner.link(TruthTable::Blobs, &key) {
                rows.remove(TruthTable::Owned, link.as_slice())?;
            }
            Ok(Some(((), vec![record])))
        })?;
        Ok(removed.is_some())
    }
}

fn record_of(
    author: &Principal,
    operation: AuditOperation,
    counts: ApplicationCounts,
) -> AuditRecord {
    AuditRecord { application: Some(counts), ..author.record(operation, Vec::new()) }
}

impl Writer {
    /// Tells the audit log of something that went in or out in a neighbouring format. Returns the number of the entry.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn record_transfer(
        &mut self,
        kind: TransferKind,
        summary: TransferSummary,
        author: &Principal,
    ) -> Result<u64> {
        let record = author.record(AuditOperation::Transfer(kind), Vec::new());
        let record = AuditRecord { transfer: Some(summary), ..record };
        let at = self.transact(|write_txn, _| Ok(Some((write_txn.first_entry, vec![record]))))?;
        at.ok_or_else(|| Error::integrity("an entry of the audit log was not written"))
    }
}

/// Writes or removes a row. Returns `true` if there was one under its key.
fn write_row(
    view: &View,
    rows: &mut RowWriter<'_>,
    change: &RowChange,
    owner: &KnownOwner,
) -> Result<bool> {
    const ROWS: TruthTable = TruthTable::ApplicationRows;
    let vault = rows.vault();
    let RowChange { application, table, key: own, value, .. } = change;
    let prefix = TablePrefix::of(vault, application, *table);
    let (key, bytes) = match own {
        ApplicationKey::Number(number) => (prefix.number(*number), None),
        ApplicationKey::Bytes(bytes) => (prefix.bytes(vault, bytes), Some(bytes.as_slice())),
    };
    let before = rows.get(ROWS, key.as_slice())?;
    // Where the owner is damaged its link stays, which `verify` tells of.
    let former = before.as_ref().and_then(|before| RowOwner::split(before).ok()).map(|(of, _)| of);
    if let Some(former) = &former {
        refuse_if_held(view, former)?;
        if let Some(link) = former.link(ROWS, &key) {
            rows.remove(TruthTable::Owned, link.as_slice())?;
        }
    }
    let Some(value) = value else { return rows.remove(ROWS, key.as_slice()) };
    let body = RowBody { application, key: bytes, value }.encode();
    let encryption_key = vault.key_for_user(owner.user_id.as_deref())?;
    let row = layout::seal_owned((ROWS, &key), &owner.row, &body, (vault, &encryption_key))?;
    rows.put(ROWS, key.as_slice(), &row)?;
    write_link(rows, (ROWS, &key), &owner.row)?;
    Ok(before.is_some())
}

/// What belongs to a grain stays as it is while the grain is under litigation hold.
fn refuse_if_held(view: &View, owner: &RowOwner) -> Result<()> {
    let Some(at) = owner.grain else { return Ok(()) };
    if !view.state_at(at)?.held {
        return Ok(());
    }
    let message = "it belongs to a grain under litigation hold";
    Err(Error::new(ErrorKind::InvalidationDenied, message)
        .with_hint("a hold is lifted by lift_hold, by those who may"))
}

fn write_blob(
    rows: &mut RowWriter<'_>,
    (address, bytes): (&ContentAddress, &[u8]),
    owner: &KnownOwner,
) -> Result<()> {
    let vault = rows.vault();
    let key = layout::blob_key(vault, address, &owner.row);
    let encryption_key = vault.key_for_user(owner.user_id.as_deref())?;
    let sealed = |table: TruthTable, key: &[u8], body: &[u8]| {
        layout::seal_owned((table, key), &owner.row, body, (vault, &encryption_key))
    };
    for (number, chunk) in (0..).zip(bytes.chunks(CHUNK_BYTES)) {
        let place = layout::chunk_key(&key, number);
        let row = sealed(TruthTable::BlobChunks, &place, chunk)?;
        rows.put(TruthTable::BlobChunks, place.as_slice(), &row)?;
    }
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let head = BlobHead { address: *address, bytes: length }.encode();
    let row = sealed(TruthTable::Blobs, &key, &head)?;
    rows.put(TruthTable::Blobs, key.as_slice(), &row)?;
    write_link(rows, (TruthTable::Blobs, &key), &owner.row)
}

fn write_link(
    rows: &mut RowWriter<'_>,
    (table, key): (TruthTable, &[u8]),
    owner: &RowOwner,
) -> Result<()> {
    let Some(link) = owner.link(table, key) else { return Ok(()) };
    rows.put(TruthTable::Owned, link.as_slice(), &[]).map(drop)
}

/// Removes a row of an application, or a side blob with its chunks. Returns `true` if there was one.
fn remove_stored(
    view: &View,
    rows: &mut RowWriter<'_>,
    (table, key): (TruthTable, &[u8]),
) -> Result<bool> {
    if table == TruthTable::Blobs {
        for chunk in view.chunks_of(key)? {
            rows.remove(TruthTable::BlobChunks, chunk.as_slice())?;
        }
    }
    rows.remove(table, key)
}

/// Removes everything that belongs to whom a prefix names, and returns how much it was. In the commit of their
/// erasure, however much it is: what is left for later could be mistaken for what they store anew.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn remove_owned(
    view: &View,
    rows: &mut RowWriter<'_>,
    prefix: &[u8],
) -> Result<ApplicationCounts> {
    let mut counts = ApplicationCounts::default();
    view.for_each_owned(prefix, |link, OwnedLink { prefix, table, key }| {
        let row = rows.get(table, key.as_slice())?;
        // It is another's only if a link says so, too: the owner in a row may be damaged.
        let other = row.as_ref().and_then(|row| {
            let (owner, _) =
                RowOwner::split(row).ok().filter(|(owner, _)| owner.prefix() != prefix)?;
            owner.link(table, &key)
        });
        let is_others = match other {
            Some(link) => rows.get(TruthTable::Owned, link.as_slice())?.is_some(),
            None => false,
        };
        if row.is_some() && !is_others && remove_stored(view, rows, (table, &key))? {
            counts.add(table);
        }
        rows.remove(TruthTable::Owned, link).map(drop)
    })?;
    Ok(counts)
}
