//! The bytes of a block: sorted rows of one list.
//!
//! | bytes | content |
//! |---|---|
//! | 2 | number of rows |
//! | ... | the rows |
//! | 2 each | where every sixteenth row begins, from the first; these stand whole. Not in lists of whole rows |
//!
//! A row is whole; or `shared:1` and its bytes behind those it shares with the row before; or, with a value,
//! `shared:1`, the lengths of the rest of its key and of its value (varints), the rest of the key, the value. Numbers
//! are big-endian. Knows no tables and no keys of a store.

use std::cmp::Ordering;
use std::ops::Range;

use super::lists::RowForm;
use crate::error::{Error, Result};
use crate::varint::{put_varint, take_varint};

/// The bytes of a block that fill one page of redb, beside its key and what redb keeps for itself. A block with one
/// longer row is longer.
const TARGET_BYTES: usize = 4_096 - 24;
/// A row stands whole after this many.
const RESTART_ROWS: usize = 16;
/// The most bytes of a row that are shared with the one before.
const MAX_SHARED: usize = 255;
const HEAD_BYTES: usize = 2;

/// The rows of a block that is being written.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    form: RowForm,
    first: Vec<u8>,
    last: Vec<u8>,
    rows: usize,
    entries: Vec<u8>,
    restarts: Vec<u16>,
}

impl BlockBuilder {
    /// An empty block of rows of this form.
    pub(crate) fn new(form: RowForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Returns `true` if there is no row in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The last row, of the block before if this one is empty.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// The first row.
    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    /// Returns `true` if a further row would not fit in; `reserved` bytes are taken by what comes behind the block.
    pub(crate) fn is_full_for(&self, key: &[u8], value: &[u8], reserved: usize) -> bool {
        const LENGTHS: usize = 11;
        let row = key.len().saturating_add(value.len()).saturating_add(LENGTHS);
        let restarts = 2 * (self.restarts.len() + 1);
        let taken = HEAD_BYTES + self.entries.len() + restarts + reserved;
        !self.is_empty() && taken.saturating_add(row) > TARGET_BYTES
    }

    /// Appends a row; rows ascend.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let is_whole = matches!(self.form, RowForm::Fixed(_));
        let mut shared = 0;
        if !is_whole && self.rows.is_multiple_of(RESTART_ROWS) {
            // A block is full long before its rows take so many bytes, unless there is only one.
            self.restarts.push(u16::try_from(self.entries.len()).unwrap_or(u16::MAX));
        } else if !is_whole {
            shared = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count().min(MAX_SHARED);
        }
        if self.rows == 0 {
            self.first = key.to_vec();
        }
        let rest = key.get(shared..).unwrap_or_default();
        if !is_whole {
            self.entries.push(u8::try_from(shared).unwrap_or(u8::MAX));
        }
        if self.form == RowForm::KeyValue {
            for length in [rest.len(), value.len()] {
                put_varint(&mut self.entries, u32::try_from(length).unwrap_or(u32::MAX));
            }
        }
        self.entries.extend_from_slice(rest);
        self.entries.extend_from_slice(value);
        self.last.clear();
        self.last.extend_from_slice(key);
        self.rows += 1;
    }

    /// Takes the bytes of the block, and leaves an empty one.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let Self { rows, entries, restarts, last, .. } =
            std::mem::replace(self, Self::new(self.form));
        self.last = last;
        let mut bytes = Vec::with_capacity(TARGET_BYTES.max(entries.len()));
        bytes.extend(u16::try_from(rows).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(entries);
        bytes.extend(restarts.into_iter().flat_map(u16::to_be_bytes));
        bytes
    }
}

/// Where the parts of a block are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockLayout {
    form: RowForm,
    rows: usize,
    entries: Range<usize>,
}

/// A place in a block: the row there, and how far it goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockRow {
    /// The row, without its value.
    pub(crate) key: Vec<u8>,
    /// Where the value is in the block.
    pub(crate) value: Range<usize>,
    /// Its number in the block.
    number: usize,
    /// Where the next row is in the block.
    end: usize,
}

/// Where the parts of a row are in a block, and how many bytes it shares with the one before.
struct Entry {
    shared: usize,
    rest: Range<usize>,
    value: Range<usize>,
}

impl BlockLayout {
    /// Finds the parts of a block, without its tag.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are no block.
    pub(crate) fn parse(bytes: &[u8], form: RowForm) -> Result<Self> {
        Self::read(bytes, form).ok_or_else(damaged)
    }

    fn read(bytes: &[u8], form: RowForm) -> Option<Self> {
        let rows = usize::from(u16::from_be_bytes(*bytes.first_chunk::<HEAD_BYTES>()?));
        let start = HEAD_BYTES;
        let end = match form {
            RowForm::Fixed(width) => {
                let end = start.checked_add(rows.checked_mul(width)?)?;
                (end == bytes.len()).then_some(end)?
            }
            _ => bytes.len().checked_sub(2 * rows.div_ceil(RESTART_ROWS))?,
        };
        (rows > 0 && start < end).then_some(Self { form, rows, entries: start..end })
    }

    /// Moves to the first row that is not less than `key`; returns `false` if there is none here.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are no block.
    pub(crate) fn seek(&self, bytes: &[u8], key: &[u8], row: &mut BlockRow) -> Result<bool> {
        if let RowForm::Fixed(width) = self.form {
            return self.seek_fixed(bytes, key, (width, row));
        }
        let (mut low, mut high) = (0, self.rows.div_ceil(RESTART_ROWS));
        // The last restart whose row is less than the key; the first if there is none.
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            match self.restart_key(bytes, middle).ok_or_else(damaged)?.cmp(key) {
                Ordering::Less => low = middle,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        self.seek_from(bytes, low, (key, row)).ok_or_else(damaged)
    }

    /// Moves to the first row from a restart on that is not less than `key`. Rows that are passed over are not put
    /// together: of each it is known how many bytes it has in common with `key`.
    fn seek_from(
        &self,
        bytes: &[u8],
        restart: usize,
        (key, row): (&[u8], &mut BlockRow),
    ) -> Option<bool> {
        let entries = bytes.get(..self.entries.end)?;
        let (mut at, mut number) = (self.restart(bytes, restart)?, restart * RESTART_ROWS);
        // Of the row before, which is less: its length, and the bytes it has in common with `key`.
        let (mut length, mut common) = (0, 0);
        while number < self.rows {
            let entry = self.entry(entries, at)?;
            let (shared, rest) = (entry.shared, entries.get(entry.rest.clone())?);
            (shared <= length).then_some(())?;
            length = shared.checked_add(rest.len())?;
            // A row that shares more with the one before differs from `key` where that does.
            if shared <= common {
                let (start, wanted) = key.split_at_checked(shared)?;
                let alike = rest.iter().zip(wanted).take_while(|(a, b)| a == b).count();
                if rest.get(alike) >= wanted.get(alike) {
                    row.key.clear();
                    row.key.extend_from_slice(start);
                    row.key.extend_from_slice(rest);
                    (row.number, row.end) = (number, entry.value.end);
                    row.value = entry.value;
                    return Some(true);
                }
                common = shared.checked_add(alike)?;
            }
            (at, number) = (entry.value.end, number.checked_add(1)?);
        }
        (at == self.entries.end).then_some(false)
    }

    fn seek_fixed(
        &self,
        bytes: &[u8],
        key: &[u8],
        (width, row): (usize, &mut BlockRow),
    ) -> Result<bool> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            match self.fixed_row(bytes, width, middle).ok_or_else(damaged)? < key {
                true => low = middle.saturating_add(1),
                false => high = middle,
            }
        }
        if low == self.rows {
            return Ok(false);
        }
        (row.number, row.end) = (low, self.entries.start + low * width);
        self.decode(bytes, row).ok_or_else(damaged)?;
        Ok(true)
    }

    fn fixed_row<'b>(&self, bytes: &'b [u8], width: usize, number: usize) -> Option<&'b [u8]> {
        let start = self.entries.start.checked_add(number.checked_mul(width)?)?;
        bytes.get(start..start.checked_add(width)?)
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are no block.
    pub(crate) fn first(&self, bytes: &[u8], row: &mut BlockRow) -> Result<()> {
        self.start_at(bytes, 0, row)
    }

    /// Moves to the next row; returns `false` at the end of the block.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are no block.
    pub(crate) fn advance(&self, bytes: &[u8], row: &mut BlockRow) -> Result<bool> {
        row.number = row.number.saturating_add(1);
        if row.number >= self.rows {
            return if row.end == self.entries.end { Ok(false) } else { Err(damaged()) };
        }
        self.decode(bytes, row).ok_or_else(damaged)?;
        Ok(true)
    }

    fn start_at(&self, bytes: &[u8], restart: usize, row: &mut BlockRow) -> Result<()> {
        let start = match self.form {
            RowForm::Fixed(_) => self.entries.start,
            _ => self.restart(bytes, restart).ok_or_else(damaged)?,
        };
        row.key.clear();
        (row.end, row.number) = (start, restart.saturating_mul(RESTART_ROWS));
        self.decode(bytes, row).ok_or_else(damaged)
    }

    /// Decodes the row that begins at the end of the one before.
    fn decode(&self, bytes: &[u8], row: &mut BlockRow) -> Option<()> {
        let entries = bytes.get(..self.entries.end)?;
        if let RowForm::Fixed(width) = self.form {
            let end = row.end.checked_add(width)?;
            row.key.clear();
            row.key.extend_from_slice(entries.get(row.end..end)?);
            (row.value, row.end) = (end..end, end);
            return Some(());
        }
        let entry = self.entry(entries, row.end)?;
        (entry.shared <= row.key.len()).then_some(())?;
        row.key.truncate(entry.shared);
        row.key.extend_from_slice(entries.get(entry.rest)?);
        row.end = entry.value.end;
        row.value = entry.value;
        Some(())
    }

    /// Where the parts of a row are that begins here; `entries` end where the rows do.
    fn entry(&self, entries: &[u8], at: usize) -> Option<Entry> {
        let (shared, rest) = entries.get(at..)?.split_first()?;
        let shared = usize::from(*shared);
        let (length, value, head) = match self.form {
            RowForm::Fixed(width) | RowForm::FixedPrefixed(width) => {
                (width.checked_sub(shared)?, 0, 1)
            }
            RowForm::KeyValue => {
                let mut lengths = rest;
                let length = usize::try_from(take_varint(&mut lengths)?).ok()?;
                let value = usize::try_from(take_varint(&mut lengths)?).ok()?;
                (length, value, 1 + rest.len().checked_sub(lengths.len())?)
            }
        };
        let start = at.checked_add(head)?;
        let middle = start.checked_add(length)?;
        let end = middle.checked_add(value)?;
        (end <= entries.len()).then_some(Entry { shared, rest: start..middle, value: middle..end })
    }

    /// Where a restart's row begins in the block.
    fn restart(&self, bytes: &[u8], number: usize) -> Option<usize> {
        let at = self.entries.end.checked_add(number.checked_mul(2)?)?;
        let offset = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
        self.entries.start.checked_add(usize::from(offset)).filter(|at| *at < self.entries.end)
    }

    /// The row of a restart, which stands whole.
    fn restart_key<'b>(&self, bytes: &'b [u8], number: usize) -> Option<&'b [u8]> {
        let mut rest = bytes.get(self.restart(bytes, number)?.checked_add(1)?..self.entries.end)?;
        let length = match self.form {
            RowForm::Fixed(width) | RowForm::FixedPrefixed(width) => width,
            RowForm::KeyValue => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                take_varint(&mut rest)?;
                length
            }
        };
        rest.get(..length)
    }
}

pub(crate) fn damaged() -> Error {
    Error::integrity("a block of the index cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_kit::hex;

    fn rows_of(bytes: &[u8], form: RowForm) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let layout = BlockLayout::parse(bytes, form)?;
        let (mut row, mut rows) = (BlockRow::default(), Vec::new());
        layout.first(bytes, &mut row)?;
        loop {
            rows.push((row.key.clone(), bytes[row.value.clone()].to_vec()));
            if !layout.advance(bytes, &mut row)? {
                return Ok(rows);
            }
        }
    }

    #[test]
    fn a_block_of_fixed_rows_has_these_bytes() {
        let mut block = BlockBuilder::new(RowForm::FixedPrefixed(4));
        for row in [b"aaab", b"aabc", b"abcd"] {
            block.push(row, &[]);
        }
        let bytes = block.finish();
        let golden = ["0003", "0061616162", "026263", "01626364", "0000"];
        assert_eq!(hex(&bytes), golden.concat());
        assert!(block.is_empty());
        let rows = rows_of(&bytes, RowForm::FixedPrefixed(4)).unwrap();
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn a_block_with_values_has_these_bytes() {
        let mut block = BlockBuilder::new(RowForm::KeyValue);
        block.push(b"ab", b"1");
        block.push(b"abc", b"");
        let bytes = block.finish();
        assert_eq!(
            hex(&bytes),
            ["0002", "00020161 6231", "02010063", "0000"].concat().replace(' ', "")
        );
        assert_eq!(
            rows_of(&bytes, RowForm::KeyValue).unwrap(),
            [(b"ab".to_vec(), b"1".to_vec()), (b"abc".to_vec(), vec![])]
        );
    }

    #[test]
    fn a_block_of_whole_rows_has_these_bytes() {
        let mut block = BlockBuilder::new(RowForm::Fixed(2));
        block.push(b"ab", &[]);
        block.push(b"ac", &[]);
        let bytes = block.finish();
        assert_eq!(hex(&bytes), "000261626163");
        let rows = [(b"ab".to_vec(), vec![]), (b"ac".to_vec(), vec![])];
        assert_eq!(rows_of(&bytes, RowForm::Fixed(2)).unwrap(), rows);
    }

    #[test]
    fn every_row_is_found_and_what_lies_between_leads_to_the_next() {
        for form in [RowForm::FixedPrefixed(4), RowForm::Fixed(4), RowForm::KeyValue] {
            check_seeks(form);
        }
    }

    fn check_seeks(form: RowForm) {
        let keys: Vec<[u8; 4]> = (0..200_u32).map(|n| (n * 3 + 1).to_be_bytes()).collect();
        let mut block = BlockBuilder::new(form);
        keys.iter().for_each(|key| block.push(key, &[]));
        let bytes = block.finish();
        let layout = BlockLayout::parse(&bytes, form).unwrap();
        for wanted in 0..=601_u32 {
            let mut row = BlockRow::default();
            let found = layout.seek(&bytes, &wanted.to_be_bytes(), &mut row).unwrap();
            let expected = keys.iter().find(|key| **key >= wanted.to_be_bytes());
            assert_eq!(
                found.then_some(row.key.as_slice()),
                expected.map(|key| &key[..]),
                "{wanted}"
            );
        }
    }

    #[test]
    fn a_block_takes_about_a_page_and_always_one_row() {
        let mut block = BlockBuilder::new(RowForm::KeyValue);
        let long = vec![7; 1 << 20];
        assert!(!block.is_full_for(b"k", &long, 16));
        block.push(b"k", &long);
        assert!(block.is_full_for(b"l", b"", 16));
        assert_eq!(rows_of(&block.finish(), RowForm::KeyValue).unwrap()[0].1, long);
        let mut block = BlockBuilder::new(RowForm::FixedPrefixed(27));
        let mut rows = 0_u32;
        loop {
            let mut key = [9; 27];
            key[..4].copy_from_slice(&rows.to_be_bytes());
            if block.is_full_for(&key, &[], 16) {
                break;
            }
            block.push(&key, &[]);
            rows += 1;
        }
        let bytes = block.finish().len() + 16;
        assert!((4_000..=4_096 - 24).contains(&bytes), "{bytes}");
    }

    #[test]
    fn bytes_that_are_no_block_are_refused_or_read_as_some_rows() {
        let mut block = BlockBuilder::new(RowForm::KeyValue);
        for key in [&b"ab"[..], b"abc", b"b"] {
            block.push(key, b"value");
        }
        let bytes = block.finish();
        for end in 0..bytes.len() {
            let _ = rows_of(&bytes[..end], RowForm::KeyValue);
            let _ = rows_of(&bytes[..end], RowForm::FixedPrefixed(9));
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = rows_of(&flipped, RowForm::KeyValue);
            if let Ok(layout) = BlockLayout::parse(&flipped, RowForm::KeyValue) {
                let _ = layout.seek(&flipped, b"abd", &mut BlockRow::default());
            }
        }
        assert!(
            BlockLayout::parse(&[0; 4], RowForm::KeyValue).is_err()
                && BlockLayout::parse(&[], RowForm::Fixed(4)).is_err()
        );
    }
}
