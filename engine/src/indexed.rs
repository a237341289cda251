//! The index of a view: the tables as last folded, and the tail of grains that are not in them.
//!
//! Grains go into the tail; when it is full, what is in it is frozen and folded by the folder's
//! thread, while new grains go on top. Before a second fold the first must have ended: that is the
//! back-pressure. Whoever holds an old value keeps reading what it stands for.

use std::sync::Arc;

use grainstore_format::ContentAddress;
use grainstore_index::{self as index, IndexState, Sequence, Tables, Tail};
use redb::ReadableDatabase;

use crate::error::Result;
use crate::folder::{Folder, in_transaction};
use crate::keys::AddressKey;
use crate::source::{Leased, Source};
use crate::truth::Truth;
use crate::view::push;

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
        address: &ContentAddress,
        blob: &[u8],
    ) -> Result<()> {
        if self.tail.is_full() {
            self.settle(folder)?;
            self.fold(folder)?;
        }
        push(&mut self.tail, &self.tables, sequence, address, blob)
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
            let (sequence, blob) = row?;
            self.push(folder, sequence, &ContentAddress::of(&blob), &blob)?;
        }
        Ok(())
    }
}

/// The tables of an index database, emptied where they do not fit this code or this log.
///
/// # Errors
/// `ERR_IO`; `ERR_INTEGRITY` where the log is damaged at the watermark.
pub(crate) fn sound_tables(db: &Source, truth: &Truth) -> Result<Leased<Tables>> {
    let txn = db.begin_read()?;
    let address_at = |sequence: Sequence| -> Result<Option<[u8; 32]>> {
        if sequence > truth.last_sequence()? {
            return Ok(None);
        }
        let address = truth.with_blob(sequence, |blob| Ok(ContentAddress::of(blob)))?;
        Ok(Some(*AddressKey::plain(&address).as_bytes()))
    };
    if let IndexState::Stale(_) = index::state(&txn, address_at)? {
        drop(txn);
        in_transaction(db, index::reset)?;
    }
    Ok(db.lease(Tables::open(db.begin_read()?)))
}
