//! Entries in the rows of the log, found by their numbers, which never descend: rows without an entry are leapt over, so
//! that no import has to be read for the entries before and behind it.

use grainstore_index::Sequence;
use redb::Range;

use super::{AuditRow, NumberedRows};
use crate::base::error::Result;
use crate::disk::layout::LogRowParts;

/// Rows without an entry that are walked before the next row with one is searched for.
const MAX_WALKED: usize = 16;

/// The rows of the log of a plain store.
#[derive(Clone, Copy)]
pub(super) struct NumberedLog<'t>(pub(super) &'t NumberedRows);

impl NumberedLog<'_> {
    /// The number and the entry in the last row, if it has one.
    pub(super) fn last_entry(&self) -> Result<Option<(u64, Vec<u8>)>> {
        let Some((_, row)) = self.0.range::<u64>(..)?.next_back().transpose()? else {
            return Ok(None);
        };
        let parts = LogRowParts::split(row.value());
        Ok(parts.number.zip(parts.entry).map(|(number, entry)| (number, entry.to_vec())))
    }

    /// Returns `true` if the head of the last row is as it was written.
    pub(super) fn is_end_sound(&self) -> Result<bool> {
        let last = self.0.range::<u64>(..)?.next_back().transpose()?;
        Ok(last.is_none_or(|(at, row)| {
            LogRowParts::split(row.value()).has_sound_head(Sequence::new(at.value()))
        }))
    }

    /// Returns the entry with this number.
    pub(super) fn entry(&self, number: u64) -> Result<Option<Vec<u8>>> {
        let at = self.last_below(number.saturating_add(1), self.end()?)?;
        let Some(row) = self.0.get(at)? else { return Ok(None) };
        let parts = LogRowParts::split(row.value());
        Ok(parts.entry.filter(|_| parts.number == Some(number)).map(<[u8]>::to_vec))
    }

    /// The place behind the last row.
    fn end(&self) -> Result<u64> {
        let last = self.0.range::<u64>(..)?.next_back().transpose()?;
        Ok(last.map_or(0, |(at, _)| at.value()).saturating_add(1))
    }

    /// Returns the last place before `before` whose row has a lower number or none; 0 if there is no such row. Most
    /// entries that are asked for are late ones: the steps back begin small.
    fn last_below(&self, number: u64, before: u64) -> Result<u64> {
        let (mut high, mut step) = (before, 1_u64);
        let mut low = loop {
            let at = before.saturating_sub(step);
            if at == 0 || self.is_below(at, number)? {
                break at;
            }
            high = at;
            step = step.saturating_mul(2);
        };
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            match self.is_below(middle, number)? {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }

    fn is_below(&self, at: u64, number: u64) -> Result<bool> {
        let row = self.0.get(at)?;
        let found = row.and_then(|row| LogRowParts::split(row.value()).number);
        Ok(found.is_none_or(|found| found < number))
    }
}

/// Entries of the log, the first one first.
pub(super) struct ForwardRows<'t> {
    log: NumberedLog<'t>,
    rows: Range<'static, u64, &'static [u8]>,
    first: u64,
    leaps: bool,
    walked: usize,
}

impl<'t> ForwardRows<'t> {
    /// The entries from this number on.
    pub(super) fn since(log: NumberedLog<'t>, first: u64) -> Result<Self> {
        let from = log.last_below(first, log.end()?)?.saturating_add(1);
        Ok(Self { log, rows: log.0.range(from..)?, first, leaps: true, walked: 0 })
    }

    /// All entries, found without their order.
    pub(super) fn every(log: NumberedLog<'t>) -> Result<Self> {
        Ok(Self { log, rows: log.0.range::<u64>(..)?, first: 0, leaps: false, walked: 0 })
    }

    fn advance(&mut self) -> Result<Option<AuditRow>> {
        while let Some(row) = self.rows.next() {
            let (at, row) = row?;
            let parts = LogRowParts::split(row.value());
            let Some(number) = parts.number else { continue };
            if let Some(entry) = parts.entry {
                self.walked = 0;
                if number >= self.first {
                    let entry = entry.to_vec();
                    return Ok(Some(AuditRow { number, entry, beside: Some(at.value()) }));
                }
            }
            self.walked = self.walked.saturating_add(1);
            if self.leaps && self.walked >= MAX_WALKED {
                self.leap(at.value(), number)?;
            }
        }
        Ok(None)
    }

    /// Goes on with the last row that has the number of the one at `at`: it alone may have an entry.
    fn leap(&mut self, at: u64, number: u64) -> Result<()> {
        let last = self.log.last_below(number.saturating_add(1), self.log.end()?)?;
        self.rows = self.log.0.range(last.max(at.saturating_add(1))..)?;
        self.walked = 0;
        Ok(())
    }
}

impl Iterator for ForwardRows<'_> {
    type Item = Result<AuditRow>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

/// Entries of the log, the last one first. A row without an entry is leapt from only when a caller has no use for what
/// its number tells: that no entry left has this number or a higher one.
pub(super) struct BackwardRows<'t> {
    log: NumberedLog<'t>,
    rows: Range<'static, u64, &'static [u8]>,
    /// The last row that is left.
    last: Option<NumberedRow>,
}

/// A row of the log with the number of an entry, and the entry if it lies there.
struct NumberedRow {
    at: u64,
    number: u64,
    entry: Option<Vec<u8>>,
}

impl<'t> BackwardRows<'t> {
    pub(super) fn new(log: NumberedLog<'t>) -> Result<Self> {
        Ok(Self { log, rows: log.0.range::<u64>(..)?, last: None })
    }

    /// The number of the last row that is left.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(super) fn peek(&mut self) -> Result<Option<u64>> {
        if self.last.is_none() {
            self.last = self.retreat()?;
        }
        Ok(self.last.as_ref().map(|row| row.number))
    }

    /// Takes the last row; `None` if it has no entry.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(super) fn take(&mut self) -> Result<Option<AuditRow>> {
        let Some(row) = self.last.take() else { return Ok(None) };
        let (number, beside) = (row.number, Some(row.at));
        if let Some(entry) = row.entry {
            return Ok(Some(AuditRow { number, entry, beside }));
        }
        let before = self.log.last_below(number, row.at)?;
        // Row 0 has none before it, whatever a hostile log says.
        self.rows = self.log.0.range(..row.at.min(before.saturating_add(1)))?;
        Ok(None)
    }

    fn retreat(&mut self) -> Result<Option<NumberedRow>> {
        while let Some(row) = self.rows.next_back() {
            let (at, row) = row?;
            let parts = LogRowParts::split(row.value());
            if let Some(number) = parts.number {
                let entry = parts.entry.map(<[u8]>::to_vec);
                return Ok(Some(NumberedRow { at: at.value(), number, entry }));
            }
            // A damaged row is passed over; those before one of the first form have no entry either.
            if !parts.envelope.is_empty() {
                break;
            }
        }
        Ok(None)
    }
}
