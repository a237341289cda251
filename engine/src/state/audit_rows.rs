//! The audit log of a snapshot, from the two places where its entries lie: the table of its own, and in a plain store the
//! rows of the log, each with the entry that brought its grain. Every reader of entries goes through here.
//!
//! Knows where entries lie and in which order, not what they tell. Readers pass over damage, which `verify` reports.

mod beside;

use std::iter::Peekable;
use std::ops::Range;

use redb::ReadOnlyTable;
use sha2::{Digest, Sha256};

use crate::base::error::{Error, Result};
use crate::disk::layout::{self, AuditHead};
use beside::{BackwardRows, ForwardRows, NumberedLog};

/// A table of bytes by number.
pub(crate) type NumberedRows = ReadOnlyTable<u64, &'static [u8]>;

/// The number of an entry and its bytes.
type NumberedEntry = Result<(u64, Vec<u8>)>;

/// An entry as it lies on the disk.
#[derive(Debug)]
pub(crate) struct AuditRow {
    pub(crate) number: u64,
    pub(crate) entry: Vec<u8>,
    /// The place of the log in whose row it lies; `None` for a row of the table.
    pub(crate) beside: Option<u64>,
}

/// The entries of the audit log, in order.
#[derive(Clone, Copy)]
pub(crate) struct AuditRows<'t> {
    apart: &'t NumberedRows,
    /// `None` in an encrypted store, which has all entries in the table.
    log: Option<NumberedLog<'t>>,
}

impl<'t> AuditRows<'t> {
    /// The entries in these tables; `log` is `None` in an encrypted store.
    pub(crate) fn new(apart: &'t NumberedRows, log: Option<&'t NumberedRows>) -> Self {
        Self { apart, log: log.map(NumberedLog) }
    }

    /// The end of the audit log: the later of the head that is stored and the entry in the last row of the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the stored one is missing or damaged; `ERR_IO`.
    pub(crate) fn head(&self) -> Result<AuditHead> {
        let head = self.stored_head()?;
        let Some(log) = self.log else { return Ok(head) };
        Ok(match log.last_entry()? {
            Some((number, entry)) if number >= head.count => {
                let hash = Sha256::digest(&entry).into();
                AuditHead { count: number.saturating_add(1), hash }
            }
            _ => head,
        })
    }

    /// Checks the last row of the log, which may have the last entry: who goes on behind a damaged one gives numbers that
    /// others have.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the row is damaged; `ERR_IO`.
    pub(crate) fn check_end(&self) -> Result<()> {
        match self.log.map_or(Ok(true), |log| log.is_end_sound())? {
            true => Ok(()),
            false => Err(Error::truth_damaged("the last row of the log is damaged")
                .with_hint("grain verify tells more; it can be read with --read-only")),
        }
    }

    /// The head as of the last commit with an entry in the table.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing or damaged; `ERR_IO`.
    pub(crate) fn stored_head(&self) -> Result<AuditHead> {
        let row = self.apart.get(layout::AUDIT_HEAD)?;
        AuditHead::decode(row.ok_or_else(|| Error::integrity("the audit log has no head"))?.value())
    }

    /// Returns an entry.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn get(&self, number: u64) -> Result<Option<Vec<u8>>> {
        if number == layout::AUDIT_HEAD {
            return Ok(None);
        }
        if let Some(entry) = self.apart.get(number)? {
            return Ok(Some(entry.value().to_vec()));
        }
        let Some(log) = self.log else { return Ok(None) };
        match log.entry(number)? {
            // A damaged row on the way leads astray.
            None if number < self.head()?.count => self.walk_to(number),
            found => Ok(found),
        }
    }

    fn walk_to(&self, number: u64) -> Result<Option<Vec<u8>>> {
        for row in self.every_row()? {
            let row = row?;
            if row.number == number {
                return Ok(Some(row.entry));
            }
        }
        Ok(None)
    }

    /// The entries from `first` on, with their numbers.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the items fail alike.
    pub(crate) fn since(
        &self,
        first: u64,
    ) -> Result<impl Iterator<Item = NumberedEntry> + use<'t>> {
        let beside = self.log.map(|log| ForwardRows::since(log, first)).transpose()?;
        let rows = self.merged(self.apart.range(first..layout::AUDIT_HEAD)?, beside);
        Ok(rows.map(|row| row.map(|row| (row.number, row.entry))))
    }

    /// All entries, read row by row, so that damage to the order hides none of them.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the items fail alike.
    pub(crate) fn every_row(&self) -> Result<impl Iterator<Item = Result<AuditRow>> + use<'t>> {
        let beside = self.log.map(ForwardRows::every).transpose()?;
        Ok(self.merged(self.apart.range(..layout::AUDIT_HEAD)?, beside))
    }

    /// The entries with these numbers that brought no grain: an erasure is always one of them.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the items fail alike.
    pub(crate) fn apart(
        &self,
        numbers: Range<u64>,
    ) -> Result<impl Iterator<Item = NumberedEntry> + use<'t>> {
        let rows = self.apart.range(numbers)?;
        Ok(rows.map(|row| {
            let (number, entry) = row?;
            Ok((number.value(), entry.value().to_vec()))
        }))
    }

    /// The entries from the last one backward.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`; the items fail alike.
    pub(crate) fn backward(&self) -> Result<impl Iterator<Item = Result<Vec<u8>>> + use<'t>> {
        let apart = self.apart.range(..layout::AUDIT_HEAD)?.rev().map(table_row);
        let beside = self.log.map(BackwardRows::new).transpose()?;
        Ok(Backward { apart: apart.peekable(), beside }.map(|row| row.map(|row| row.entry)))
    }

    fn merged(
        &self,
        apart: redb::Range<'static, u64, &'static [u8]>,
        beside: Option<ForwardRows<'t>>,
    ) -> impl Iterator<Item = Result<AuditRow>> + use<'t> {
        let beside = beside.into_iter().flatten();
        Forward { apart: apart.map(table_row).peekable(), beside: beside.peekable() }
    }
}

type TableRow<'t> = (redb::AccessGuard<'t, u64>, redb::AccessGuard<'t, &'static [u8]>);

fn table_row(row: std::result::Result<TableRow<'_>, redb::StorageError>) -> Result<AuditRow> {
    let (number, entry) = row?;
    Ok(AuditRow { number: number.value(), entry: entry.value().to_vec(), beside: None })
}

/// The entries of the table and those beside grains, the first one first.
struct Forward<A: Iterator, B: Iterator> {
    apart: Peekable<A>,
    beside: Peekable<B>,
}

impl<A, B> Iterator for Forward<A, B>
where
    A: Iterator<Item = Result<AuditRow>>,
    B: Iterator<Item = Result<AuditRow>>,
{
    type Item = Result<AuditRow>;

    fn next(&mut self) -> Option<Self::Item> {
        match (self.apart.peek(), self.beside.peek()) {
            (Some(Ok(apart)), Some(Ok(beside))) if beside.number < apart.number => {
                self.beside.next()
            }
            (Some(Ok(_)), Some(Err(_))) | (None, _) => self.beside.next(),
            _ => self.apart.next(),
        }
    }
}

/// The same, the last one first. Many entries in a row may lie in the table: the log is not searched for one before each.
struct Backward<'t, A: Iterator> {
    apart: Peekable<A>,
    /// `None` where none is left.
    beside: Option<BackwardRows<'t>>,
}

impl<A: Iterator<Item = Result<AuditRow>>> Iterator for Backward<'_, A> {
    type Item = Result<AuditRow>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(beside) = &mut self.beside {
            let row = match beside.peek() {
                Ok(Some(number)) => match self.apart.peek() {
                    Some(Err(_)) => break,
                    Some(Ok(apart)) if apart.number >= number => break,
                    // The entry of this row, or the next row before those of its number.
                    _ => beside.take(),
                },
                Ok(None) => {
                    self.beside = None;
                    break;
                }
                Err(error) => Err(error),
            };
            match row {
                Ok(Some(row)) => return Some(Ok(row)),
                Ok(None) => {}
                Err(error) => {
                    self.beside = None;
                    return Some(Err(error));
                }
            }
        }
        self.apart.next()
    }
}

#[cfg(test)]
mod tests;
