//! The vectors of a space in memory: numbers, codes and keys, by row. Knows nothing of graphs or visibility.
//!
//! Rows are numbered in order of insertion and never move. A removed row stays, marked dead, until
//! [`VectorRows::compact`]. A clone is a cheap snapshot: full blocks are shared, and so are the rows of the
//! last one. At 384 numbers, a row takes 1,536 bytes for them, 384 for its codes and 36 for the rest.

use std::sync::Arc;

use imbl::OrdMap;

use crate::error::{Error, Result};
use crate::posting::Sequence;

use super::quantise::{self, CodeHeader};
use super::space::{Space, Vector};

/// The rows of a full block.
const BLOCK_ROWS: usize = 256;

/// The key of a vector: a grain, and a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VectorKey {
    pub(crate) sequence: Sequence,
    pub(crate) chunk: u32,
}

/// A snapshot of all rows.
#[derive(Debug, Clone)]
pub(crate) struct VectorRows {
    space: Arc<Space>,
    full: Arc<Vec<Arc<RowBlock>>>,
    /// Blocks of one row each, too few for a full block.
    last: Arc<Vec<Arc<RowBlock>>>,
    /// A bitmap of dead rows.
    dead: Arc<Vec<u64>>,
    dead_count: usize,
    order: KeyOrder,
}

/// The lookup of rows by key.
#[derive(Debug, Clone)]
enum KeyOrder {
    /// Rows ascend by key.
    Rows,
    /// Rows do not ascend: some came out of order, or replaced another.
    Map(OrdMap<VectorKey, u32>),
}

#[derive(Debug, Default)]
struct RowBlock {
    keys: Vec<VectorKey>,
    heads: Vec<CodeHeader>,
    /// The Euclidean lengths of the vectors.
    lengths: Vec<f64>,
    codes: Vec<i8>,
    values: Vec<f32>,
}

impl VectorRows {
    /// An empty set of rows.
    pub(crate) fn new(space: Space) -> Self {
        Self {
            space: Arc::new(space),
            full: Arc::default(),
            last: Arc::default(),
            dead: Arc::default(),
            dead_count: 0,
            order: KeyOrder::Rows,
        }
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The number of rows, dead ones included.
    pub(crate) fn len(&self) -> usize {
        self.full.len().saturating_mul(BLOCK_ROWS).saturating_add(self.last.len())
    }

    pub(crate) fn dead_count(&self) -> usize {
        self.dead_count
    }

    pub(crate) fn live_count(&self) -> usize {
        self.len().saturating_sub(self.dead_count)
    }

    /// The numbers of all rows.
    pub(crate) fn ids(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let stride = quantise::stride(self.space.dimension());
        let row = size_of::<VectorKey>() + size_of::<CodeHeader>() + size_of::<f64>();
        let values = self.space.dimension().saturating_mul(size_of::<f32>());
        self.len().saturating_mul(row.saturating_add(stride).saturating_add(values))
    }

    /// Adds a row. A row with the same key is marked dead.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA`: the vector does not fit this space. `ERR_INTEGRITY`: 2^32 rows.
    pub(crate) fn push(&mut self, key: VectorKey, vector: &Vector) -> Result<()> {
        self.space.admit(vector)?;
        let row = u32::try_from(self.len()).ok().filter(|row| *row < u32::MAX);
        let row = row.ok_or_else(Error::full)?;
        self.place(key, row);
        let mut block = RowBlock::default();
        let head = quantise::encode(self.space.metric(), vector, &mut block.codes);
        block.keys.push(key);
        block.heads.push(head);
        block.lengths.push(vector.length());
        block.values.extend_from_slice(vector.values());
        self.append(block);
        Ok(())
    }

    /// Removes all rows of a grain; returns `false` if there were none.
    pub(crate) fn remove(&mut self, sequence: Sequence) -> bool {
        let rows = self.of(&[sequence]);
        for row in &rows {
            self.bury(*row);
        }
        !rows.is_empty()
    }

    /// Removes one row.
    pub(crate) fn remove_key(&mut self, key: VectorKey) {
        if let Some(row) = self.find(key) {
            self.bury(row);
        }
    }

    /// Marks a row dead.
    fn bury(&mut self, row: u32) {
        let (word, bit) = bit_of(row);
        let dead = Arc::make_mut(&mut self.dead);
        if dead.len() <= word {
            dead.resize(word.saturating_add(1), 0);
        }
        if let Some(slot) = dead.get_mut(word)
            && *slot & bit == 0
        {
            *slot |= bit;
            self.dead_count = self.dead_count.saturating_add(1);
            if let KeyOrder::Map(map) = &mut self.order
                && let Some(key) = key_in(&self.full, &self.last, row)
                && map.get(&key) == Some(&row)
            {
                map.remove(&key);
            }
        }
    }

    pub(crate) fn is_dead(&self, row: u32) -> bool {
        let (word, bit) = bit_of(row);
        self.dead.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The key of a row.
    pub(crate) fn key(&self, row: u32) -> Option<VectorKey> {
        key_in(&self.full, &self.last, row)
    }

    /// The codes of a row and their header; empty beyond the last row.
    pub(crate) fn codes(&self, row: u32) -> (&[i8], &CodeHeader) {
        const NONE: (&[i8], &CodeHeader) =
            (&[], &CodeHeader { scale: 0.0, lost: 0.0, square: 0.0 });
        let Some((block, at)) = block_of(&self.full, &self.last, row) else { return NONE };
        let stride = quantise::stride(self.space.dimension());
        let from = at.saturating_mul(stride);
        match (block.codes.get(from..from.saturating_add(stride)), block.heads.get(at)) {
            (Some(codes), Some(head)) => (codes, head),
            _ => NONE,
        }
    }

    /// A CRC-32 of the codes of a row, which identifies its vector as far as a graph depends on it.
    pub(crate) fn check(&self, row: u32) -> u32 {
        let (codes, head) = self.codes(row);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head.scale.to_le_bytes());
        crc.update(&head.square.to_le_bytes());
        let codes: Vec<u8> = codes.iter().map(|code| code.cast_unsigned()).collect();
        crc.update(&codes);
        crc.finalize()
    }

    /// The numbers of a row, and their Euclidean length.
    pub(crate) fn values(&self, row: u32) -> Option<(&[f32], f64)> {
        let (block, at) = block_of(&self.full, &self.last, row)?;
        let dimension = self.space.dimension();
        let from = at.saturating_mul(dimension);
        let values = block.values.get(from..from.saturating_add(dimension))?;
        Some((values, *block.lengths.get(at)?))
    }

    /// The live rows of these grains, which must ascend by sequence.
    pub(crate) fn of(&self, sequences: &[Sequence]) -> Vec<u32> {
        let mut rows = Vec::with_capacity(sequences.len());
        match &self.order {
            KeyOrder::Map(map) => {
                for sequence in sequences {
                    let (first, last) = key_range(*sequence);
                    rows.extend(map.range(first..=last).map(|(_, row)| *row));
                }
            }
            KeyOrder::Rows => {
                let mut from = 0;
                for sequence in sequences {
                    from = self.seek(from, *sequence);
                    while self.key(from).is_some_and(|key| key.sequence == *sequence) {
                        rows.push(from);
                        from = from.saturating_add(1);
                    }
                }
            }
        }
        rows.retain(|row| !self.is_dead(*row));
        rows
    }

    /// The live row of a key.
    pub(crate) fn find(&self, key: VectorKey) -> Option<u32> {
        let rows = self.of(&[key.sequence]);
        rows.into_iter().find(|row| self.key(*row) == Some(key))
    }

    /// Copies the live rows alone, ascending by key, with new numbers.
    pub(crate) fn compact(&self) -> Self {
        let mut live: Vec<(VectorKey, u32)> = self
            .ids()
            .filter(|row| !self.is_dead(*row))
            .filter_map(|row| Some((self.key(row)?, row)))
            .collect();
        live.sort_unstable();
        let mut rows = Self::new((*self.space).clone());
        for (_, row) in live {
            rows.copy_of(self, row);
        }
        rows
    }

    /// Adds a row of another snapshot of the same space.
    pub(crate) fn copy_of(&mut self, from: &Self, row: u32) {
        let (Some(key), Some((values, length))) = (from.key(row), from.values(row)) else { return };
        let (codes, head) = from.codes(row);
        self.place(key, u32::try_from(self.len()).unwrap_or(u32::MAX));
        self.append(RowBlock {
            keys: vec![key],
            heads: vec![*head],
            lengths: vec![length],
            codes: codes.to_vec(),
            values: values.to_vec(),
        });
    }

    /// Registers a key for a row about to be added.
    fn place(&mut self, key: VectorKey, row: u32) {
        let last = row.checked_sub(1).and_then(|last| self.key(last));
        if matches!(self.order, KeyOrder::Rows) && last.is_some_and(|last| last >= key) {
            let live = self.ids().filter(|row| !self.is_dead(*row));
            self.order =
                KeyOrder::Map(live.filter_map(|row| Some((self.key(row)?, row))).collect());
        }
        if let KeyOrder::Map(map) = &mut self.order
            && let Some(earlier) = map.insert(key, row)
        {
            self.bury(earlier);
        }
    }

    fn append(&mut self, block: RowBlock) {
        let last = Arc::make_mut(&mut self.last);
        last.push(Arc::new(block));
        if last.len() == BLOCK_ROWS {
            let block = Arc::new(RowBlock::concat(&std::mem::take(last)));
            Arc::make_mut(&mut self.full).push(block);
        }
    }

    /// The first row at or after `from` with this sequence or a later one, if rows ascend; galloping search.
    fn seek(&self, from: u32, sequence: Sequence) -> u32 {
        let before = |row: u32| self.key(row).is_some_and(|key| key.sequence < sequence);
        let (mut low, mut step) = (from, 1_u32);
        while before(low.saturating_add(step)) {
            low = low.saturating_add(step);
            step = step.saturating_mul(2);
        }
        let mut high = low.saturating_add(step);
        while low < high {
            let middle = low.midpoint(high);
            if before(middle) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }
}

impl RowBlock {
    fn concat(rows: &[Arc<Self>]) -> Self {
        let mut joined = Self::default();
        for row in rows {
            joined.keys.extend_from_slice(&row.keys);
            joined.heads.extend_from_slice(&row.heads);
            joined.lengths.extend_from_slice(&row.lengths);
        }
        let (mut codes, mut values) = (Vec::new(), Vec::new());
        codes.reserve_exact(rows.iter().map(|row| row.codes.len()).sum());
        values.reserve_exact(rows.iter().map(|row| row.values.len()).sum());
        for row in rows {
            codes.extend_from_slice(&row.codes);
            values.extend_from_slice(&row.values);
        }
        Self { codes, values, ..joined }
    }
}

fn block_of<'b>(
    full: &'b [Arc<RowBlock>],
    last: &'b [Arc<RowBlock>],
    row: u32,
) -> Option<(&'b RowBlock, usize)> {
    let row = usize::try_from(row).ok()?;
    match full.get(row / BLOCK_ROWS) {
        Some(block) => Some((block, row % BLOCK_ROWS)),
        None => Some((last.get(row.checked_sub(full.len().checked_mul(BLOCK_ROWS)?)?)?, 0)),
    }
}

fn key_in(full: &[Arc<RowBlock>], last: &[Arc<RowBlock>], row: u32) -> Option<VectorKey> {
    let (block, at) = block_of(full, last, row)?;
    block.keys.get(at).copied()
}

/// The least and the greatest key of a grain.
fn key_range(sequence: Sequence) -> (VectorKey, VectorKey) {
    (VectorKey { sequence, chunk: 0 }, VectorKey { sequence, chunk: u32::MAX })
}

/// The word and the bit of a row in a bitmap.
pub(crate) fn bit_of(row: u32) -> (usize, u64) {
    (usize::try_from(row / 64).unwrap_or(usize::MAX), 1 << (row % 64))
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
