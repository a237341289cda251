//! The index of a view: the tables as last folded, and the tail of grains that are not in them.
//!
//! Grains go into the tail; when it is full, what is in it is frozen and folded by the folder's
//! thread, while new grains go on top. Before a second fold the first must have ended: that is the
//! back-pressure. Whoever holds an old value keeps reading what it stands for.

use std::sync::Arc;

use grainstore_format::ContentAddress;
use grainstore_index::{self as index, IndexState, Sequence, Tables, Tail};
use redb::ReadableDatabase;

use crate::base::error::{Error, Result, guarded};
use crate::disk::source::{Leased, Source};
use crate::disk::vault::Vault;
use crate::state::folder::{Folder, in_transaction};
use crate::state::truth::{Logged, Truth};
use crate::state::view::push;

/// Tables and tail.
#[derive(Clone)]
pub(crate) struct Indexed {
    pub(crate) tables: Arc<Leased<Tables>>,
    pub(crate) tail: Tail,
}

impl Indexed {
    /// The tables as they are, with an empty tail.
    pub(crate) fn of(tables: Leased<Tables>) -> Result<Self> {
        let tail = Tail::after(&tables)?;
        Ok(Self { tables: Arc::new(tables), tail })
    }

    /// Adds a grain of the log, waiting for room where there is none.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn push(
        &mut self,
        folder: &mut Folder,
        sequence: Sequence,
        (address, blob): (&ContentAddress, &[u8]),
        vault: &Vault,
    ) -> Result<()> {
        self.make_room(folder)?;
        push(&mut self.tail, &self.tables, sequence, (address, blob), vault)
    }

    /// Begins to fold what is in the tail; the folder must be idle.
    ///
    /// # Errors
    /// `ERR_IO` once the folder is gone; `ERR_INTEGRITY`.
    pub(crate) fn fold(&mut self, folder: &mut Folder) -> Result<()> {
        self.tail.freeze()?;
        self.tail.frozen().map_or(Ok(()), |frozen| folder.fold(frozen))
    }

    /// Waits for the fold under way, if there is one, and goes on from what it left.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY` of the fold.
    pub(crate) fn settle(&mut self, folder: &mut Folder) -> Result<()> {
        if folder.is_busy() {
            let tables = folder.wait()?;
            self.folded(tables);
        }
        Ok(())
    }

    /// Goes on from the tables a fold has left.
    pub(crate) fn folded(&mut self, tables: Leased<Tables>) {
        self.tables = Arc::new(tables);
        self.tail.thaw();
    }

    /// Folds all that is in the tail, and waits for it.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn fold_through(&mut self, folder: &mut Folder) -> Result<()> {
        self.settle(folder)?;
        if self.tail.grains() > 0 {
            self.fold(folder)?;
            self.settle(folder)?;
        }
        Ok(())
    }

    /// Adds every grain of the log that is not indexed yet.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn catch_up(&mut self, truth: &Truth, folder: &mut Folder) -> Result<()> {
        for row in truth.log_after(self.tail.watermark().map(|mark| mark.sequence))? {
            let (sequence, logged) = row?;
            self.push_logged(folder, sequence, &logged, truth.vault())?;
        }
        Ok(())
    }

    /// Adds what a place of the log has: of a grain that was erased its address alone.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn push_logged(
        &mut self,
        folder: &mut Folder,
        sequence: Sequence,
        logged: &Logged,
        vault: &Vault,
    ) -> Result<()> {
        match logged {
            Logged::Blob(blob) => {
                self.push(folder, sequence, (&ContentAddress::of(blob), blob), vault)
            }
            Logged::Erased(address) => {
                self.make_room(folder)?;
                Ok(self.tail.push_place(sequence, *address.as_bytes())?)
            }
        }
    }

    /// Waits for room in the tail.
    fn make_room(&mut self, folder: &mut Folder) -> Result<()> {
        if self.tail.is_full() {
            self.settle(folder)?;
            self.fold(folder)?;
        }
        Ok(())
    }
}

/// The tables of an index database, emptied where they do not fit this code or this log.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn sound_tables(db: &Source, truth: &Truth) -> Result<Leased<Tables>> {
    let txn = db.begin_read()?;
    let tables = Tables::open(db.begin_read()?);
    let address_at = |sequence: Sequence| match address_at(truth, sequence)? {
        // Whether a damaged row is the one that was folded is for the others to say.
        Row::Damaged => Ok(tables.watermark()?.map(|mark| mark.address)),
        Row::Whole(address) => Ok(Some(address)),
        Row::Absent => Ok::<_, Error>(None),
    };
    let fits = match index::state(&txn, address_at)? {
        IndexState::Stale(_) => false,
        IndexState::Ready(None) => true,
        IndexState::Ready(Some(mark)) => guarded(|| fits(&tables, truth, mark.sequence))?,
    };
    if !fits {
        drop((txn, tables));
        in_transaction(db, index::reset)?;
    }
    Ok(db.lease(Tables::open(db.begin_read()?)))
}

/// Places of the log that are compared behind the end of the index, and as many all over it.
const COMPARED: u64 = 12;

/// Whether the index knows the addresses of the log by their places: those of the last grains it
/// was folded to, where another history of the same store would differ, and some of all others.
fn fits(tables: &Tables, truth: &Truth, last: Sequence) -> Result<bool> {
    let tail = Tail::after(tables)?;
    let reader = index::Reader::new(tables, &tail);
    let last = last.get();
    let latest = (0..COMPARED).map(|back| last.saturating_sub(back));
    let spread = (1..=COMPARED).map(|part| last.saturating_mul(part) / COMPARED);
    for sequence in latest.chain(spread).filter(|sequence| *sequence > 0).map(Sequence::new) {
        match address_at(truth, sequence)? {
            Row::Whole(address) if reader.sequence_of(&address)? != Some(sequence) => {
                return Ok(false);
            }
            Row::Absent => return Ok(false),
            Row::Whole(_) | Row::Damaged => {}
        }
    }
    Ok(true)
}

/// What the log has at a place.
enum Row {
    Absent,
    /// The address of a grain, as the index keeps it.
    Whole([u8; 32]),
    /// A row whose bytes have changed, which is met again by whoever reads it; or one whose key was
    /// destroyed, which nobody can compare until it is scrubbed.
    Damaged,
}

fn address_at(truth: &Truth, sequence: Sequence) -> Result<Row> {
    if sequence > truth.last_sequence()? {
        return Ok(Row::Absent);
    }
    if let Some(address) = truth.stub_at(sequence)? {
        return Ok(Row::Whole(*address.as_bytes()));
    }
    let address = truth.with_blob(sequence, |blob| Ok(ContentAddress::of(blob)));
    match address {
        Ok(address) => Ok(Row::Whole(*truth.vault().address(&address).as_bytes())),
        Err(error) if error.is_of_truth() || error.is_erased() => Ok(Row::Damaged),
        Err(error) => Err(error),
    }
}
