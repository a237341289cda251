//! The index of a view: the tables as last folded, and the tail of grains that are not in them.
//!
//! Grains go into the tail; when it is full, its contents are frozen and folded by the fold worker's thread
//! while new grains go on top. The first fold must have ended before a second begins: that is the
//! back-pressure. A reader with an old snapshot keeps reading that snapshot.

use grainstore_index::{Blinder, IndexedFields};
use std::sync::Arc;

use grainstore_format::ContentAddress;
use grainstore_index::{self as index, IndexState, RunCache, Sequence, Tables, Tail};
use redb::ReadableDatabase;
use sha2::{Digest, Sha256};

use crate::base::error::{Error, Result, catch_storage_panic};
use crate::disk::blob::with_fields;
use crate::disk::database::{DatabaseHandle, LeasedReader};
use crate::disk::layout::AuditHead;
use crate::disk::vault::Vault;
use crate::state::fold_worker::{FoldWorker, reset_index};
use crate::state::truth::{LogRow, Truth};

/// A snapshot of the tables, and the tail after it.
#[derive(Clone)]
pub(crate) struct IndexSnapshot {
    pub(crate) tables: Arc<LeasedReader<Tables>>,
    pub(crate) tail: Tail,
    /// The history of the audit log that tables folded from the tail are of: see [`Truth::index_history`].
    pub(crate) history: AuditHead,
}

impl IndexSnapshot {
    /// The tables as they are, with an empty tail.
    pub(crate) fn new(tables: LeasedReader<Tables>) -> Result<Self> {
        let tail = Tail::after(&tables)?;
        let history = AuditHead { count: 0, hash: [0; 32] };
        Ok(Self { tables: Arc::new(tables), tail, history })
    }

    /// Adds a grain of the log; a full tail is folded first.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn push(
        &mut self,
        folder: &mut FoldWorker,
        sequence: Sequence,
        (address, blob): (&ContentAddress, &[u8]),
        vault: &Vault,
    ) -> Result<()> {
        self.ensure_room(folder)?;
        push_grain(&mut self.tail, &self.tables, sequence, (address, blob), vault)
    }

    /// Begins to fold the tail; the fold worker must be idle.
    ///
    /// # Errors
    /// `ERR_IO` if the fold worker is gone; `ERR_INTEGRITY`.
    pub(crate) fn begin_fold(&mut self, folder: &mut FoldWorker) -> Result<()> {
        self.tail.freeze()?;
        self.tail.frozen().map_or(Ok(()), |frozen| folder.fold(frozen, self.history))
    }

    /// Waits for the running fold, if there is one, and continues from its tables.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY` of the fold.
    pub(crate) fn finish_fold(&mut self, folder: &mut FoldWorker) -> Result<()> {
        if folder.is_busy() {
            let tables = folder.wait()?;
            self.replace_tables(tables);
        }
        Ok(())
    }

    /// Continues from tables whose runs were merged; what is being folded is not in them.
    pub(crate) fn adopt_merged(&mut self, tables: LeasedReader<Tables>) {
        self.tables = Arc::new(tables);
    }

    /// Continues from the tables of a completed fold.
    pub(crate) fn replace_tables(&mut self, tables: LeasedReader<Tables>) {
        self.tables = Arc::new(tables);
        self.tail.drop_frozen();
    }

    /// Folds the whole tail, and waits for it.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn fold_all(&mut self, folder: &mut FoldWorker) -> Result<()> {
        self.finish_fold(folder)?;
        if self.tail.grains() > 0 {
            self.begin_fold(folder)?;
            self.finish_fold(folder)?;
        }
        Ok(())
    }

    /// Adds every grain of the log that is not indexed yet.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn catch_up(&mut self, truth: &Truth, folder: &mut FoldWorker) -> Result<()> {
        self.history = truth.index_history()?;
        for row in truth.log_after(self.tail.watermark().map(|mark| mark.sequence))? {
            let (sequence, logged) = row?;
            self.push_row(folder, sequence, &logged, truth.vault())?;
        }
        Ok(())
    }

    /// Adds a row of the log: of an erased grain only its address.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn push_row(
        &mut self,
        folder: &mut FoldWorker,
        sequence: Sequence,
        logged: &LogRow,
        vault: &Vault,
    ) -> Result<()> {
        match logged {
            LogRow::Blob(blob) => {
                self.push(folder, sequence, (&ContentAddress::of(blob), blob), vault)
            }
            LogRow::Erased(address) => {
                self.ensure_room(folder)?;
                Ok(self.tail.push_address(sequence, *address.as_bytes())?)
            }
        }
    }

    /// Makes room in a full tail: waits for the running fold and begins the next.
    fn ensure_room(&mut self, folder: &mut FoldWorker) -> Result<()> {
        if self.tail.is_full() {
            self.finish_fold(folder)?;
            self.begin_fold(folder)?;
        }
        Ok(())
    }
}

/// Opens the tables of an index database, and empties them first if they do not fit this code or this log.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn usable_tables(
    db: &mut DatabaseHandle,
    truth: &Truth,
) -> Result<LeasedReader<Tables>> {
    let txn = db.begin_read()?;
    let seal = db.vault().block_seal();
    // What is read of the runs here is not read again by the first reader.
    let cache = RunCache::default();
    let tables = Tables::open(db.begin_read()?, seal.clone()).with_cache(&cache);
    let address_at = |sequence: Sequence| match address_at(truth, sequence)? {
        // A damaged row cannot be compared with the watermark; the other samples decide.
        LoggedAddress::Damaged => Ok(tables.watermark()?.map(|mark| mark.address)),
        LoggedAddress::Whole(address) => Ok(Some(address)),
        LoggedAddress::Absent => Ok::<_, Error>(None),
    };
    let fits = match index::state(&txn, address_at, seal.as_deref())? {
        IndexState::Stale(_) => false,
        IndexState::Ready(None) => true,
        IndexState::Ready(Some(mark)) => {
            catch_storage_panic(|| is_of_history(&tables, truth)).unwrap_or(false)
                && catch_storage_panic(|| matches_log(&tables, truth, mark.sequence))?
        }
    };
    if !fits {
        drop((txn, tables));
        if truth.has_erased()? && !db.is_in_memory() {
            // Pages that are freed keep what is in them.
            db.shred_next_replaced();
            db.make_empty()?;
            db.take_empty()?;
        } else {
            reset_index(db, db.vault())?;
        }
    }
    Ok(db.lease(Tables::open(db.begin_read()?, seal).with_cache(&cache)))
}

/// Returns `true` if the audit log has the entry that was its last when the tables were folded: an index of
/// another history of the store, or of a later state, was folded from other grains or lacks some. One of before
/// an erasure is used only while that waits for its scrub, which makes the index anew.
fn is_of_history(tables: &Tables, truth: &Truth) -> Result<bool> {
    let Some(row) = tables.history()? else { return Ok(false) };
    let head = AuditHead::decode(&row)?;
    let Some(last) = head.count.checked_sub(1) else { return Ok(false) };
    if last >= truth.audit_len()? {
        return Ok(false);
    }
    let entry = truth.audit_rows()?.get(last)?;
    if entry.is_none_or(|entry| *Sha256::digest(&entry) != head.hash) {
        return Ok(false);
    }
    Ok(!truth.has_erased_in(head.count..truth.index_history()?.count)?)
}

/// Number of sequences compared at the end of the index, and again spread over all of it.
const COMPARED_SEQUENCES: u64 = 12;

/// Samples the log and returns `true` if the index maps each address to its sequence: the last ones that were
/// folded, where another history of the same store would differ, and some spread over all others.
fn matches_log(tables: &Tables, truth: &Truth, last: Sequence) -> Result<bool> {
    let tail = Tail::after(tables)?;
    let reader = index::IndexReader::new(tables, &tail);
    let last = last.get();
    let latest = (0..COMPARED_SEQUENCES).map(|back| last.saturating_sub(back));
    let spread =
        (1..=COMPARED_SEQUENCES).map(|part| last.saturating_mul(part) / COMPARED_SEQUENCES);
    for sequence in latest.chain(spread).filter(|sequence| *sequence > 0).map(Sequence::new) {
        match address_at(truth, sequence)? {
            LoggedAddress::Whole(address) if reader.sequence_of(&address)? != Some(sequence) => {
                return Ok(false);
            }
            LoggedAddress::Absent => return Ok(false),
            LoggedAddress::Whole(_) | LoggedAddress::Damaged => {}
        }
    }
    Ok(true)
}

/// The address found at a sequence of the log.
enum LoggedAddress {
    Absent,
    /// The address of a grain, as a key of the index.
    Whole([u8; 32]),
    /// A row whose bytes have changed, which is reported when it is read, or one whose key was destroyed,
    /// which cannot be compared until it is scrubbed.
    Damaged,
}

fn address_at(truth: &Truth, sequence: Sequence) -> Result<LoggedAddress> {
    if sequence > truth.last_sequence()? {
        return Ok(LoggedAddress::Absent);
    }
    if let Some(address) = truth.stub_at(sequence)? {
        return Ok(LoggedAddress::Whole(*address.as_bytes()));
    }
    let address = truth.with_blob(sequence, |blob| Ok(ContentAddress::of(blob)));
    match address {
        Ok(address) => Ok(LoggedAddress::Whole(*truth.vault().address_key(&address).as_bytes())),
        Err(error) if error.is_truth_damage() || error.is_erased() => Ok(LoggedAddress::Damaged),
        Err(error) => Err(error),
    }
}

/// Adds a grain of the log to a tail.
fn push_grain(
    tail: &mut Tail,
    tables: &Tables,
    sequence: Sequence,
    (address, blob): (&ContentAddress, &[u8]),
    vault: &Vault,
) -> Result<()> {
    with_fields(blob, |grain| {
        let key = *vault.address_key(address).as_bytes();
        let blind = vault.blinder_for_grain(grain)?;
        let blind = blind.as_deref().map(|holder| holder as &dyn Blinder);
        Ok(tail.push(tables, sequence, key, &IndexedFields::from_grain_blinded(grain, blind))?)
    })
}
