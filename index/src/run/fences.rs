//! Where the blocks of a run begin: the first row of each, in memory while the run is read. In an encrypted store it
//! stands under a tag, so that no block can be taken out unseen.
//!
//! For each block, in the order of lists and rows: number of the list (1 byte), length of the row (2), the row.

use std::ops::Range;

use super::lists::RunList;

/// The first rows of the blocks of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    bytes: Vec<u8>,
    /// Where the row of each block ends; it begins three bytes behind the end of the one before.
    ends: Vec<u32>,
    /// The blocks of each list.
    lists: [Range<u32>; RunList::COUNT],
}

/// The bytes before a row.
const HEAD_BYTES: usize = 3;

impl Fences {
    /// Adds a block; lists and rows ascend. Returns its number in its list.
    pub(crate) fn add(&mut self, list: RunList, row: &[u8]) -> u32 {
        self.bytes.push(list.number());
        self.bytes.extend(u16::try_from(row.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.bytes.extend_from_slice(row);
        self.note(list).unwrap_or_default()
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes they take in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len().saturating_add(self.ends.len().saturating_mul(4))
    }

    /// Reads the bytes; `None` if they are not those of fences.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        let mut fences = Self { bytes, ..Self::default() };
        let mut at = 0_usize;
        while let Some([number, high, low, ..]) = fences.bytes.get(at..) {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let list = RunList::all().find(|list| list.number() == *number)?;
            at = at.checked_add(HEAD_BYTES)?.checked_add(length)?;
            fences.ends.push(u32::try_from(at).ok().filter(|_| at <= fences.bytes.len())?);
            fences.extend(list)?;
        }
        (at == fences.bytes.len()).then_some(fences)
    }

    /// The number of blocks of a list.
    pub(crate) fn blocks_of(&self, list: RunList) -> u32 {
        self.lists.get(list.index()).map_or(0, |blocks| blocks.end.saturating_sub(blocks.start))
    }

    /// The number of the block of a list that a row falls into: the last one that does not begin behind it, or else
    /// the first. `None` if the list has no blocks.
    pub(crate) fn block_of(&self, list: RunList, row: &[u8]) -> Option<u32> {
        let blocks = self.lists.get(list.index()).filter(|blocks| blocks.start < blocks.end)?;
        let (mut low, mut high) = (blocks.start.saturating_add(1), blocks.end);
        while low < high {
            let middle = low.midpoint(high);
            match self.row(middle)? <= row {
                true => low = middle.saturating_add(1),
                false => high = middle,
            }
        }
        low.checked_sub(1)?.checked_sub(blocks.start)
    }

    /// Returns `true` if a row may fall into this block of a list.
    pub(crate) fn covers(&self, list: RunList, block: u32, row: &[u8]) -> bool {
        self.block_of_is(list, block, row).unwrap_or(false)
    }

    fn block_of_is(&self, list: RunList, block: u32, row: &[u8]) -> Option<bool> {
        let blocks = self.lists.get(list.index())?;
        let at = blocks.start.checked_add(block)?;
        let next = at.checked_add(1)?;
        let is_behind = block == 0 || self.row(at)? <= row;
        Some(is_behind && (next >= blocks.end || row < self.row(next)?))
    }

    /// The first row of a block, by its place among all.
    fn row(&self, at: u32) -> Option<&[u8]> {
        let at = usize::try_from(at).ok()?;
        let before = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let start = usize::try_from(before).ok()?.checked_add(HEAD_BYTES)?;
        self.bytes.get(start..usize::try_from(*self.ends.get(at)?).ok()?)
    }

    /// Notes that the bytes of a further block were added. Returns its number in its list.
    fn note(&mut self, list: RunList) -> Option<u32> {
        self.ends.push(u32::try_from(self.bytes.len()).ok()?);
        self.extend(list)
    }

    fn extend(&mut self, list: RunList) -> Option<u32> {
        let end = u32::try_from(self.ends.len()).ok()?;
        let blocks = self.lists.get_mut(list.index())?;
        if blocks.start >= blocks.end {
            *blocks = end.checked_sub(1)?..end;
        } else if blocks.end == end.checked_sub(1)? {
            blocks.end = end;
        } else {
            return None;
        }
        end.checked_sub(1)?.checked_sub(blocks.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posting_lists::PostingList;
    use crate::test_kit::hex;

    #[test]
    fn fences_have_these_bytes_and_read_back() {
        let mut fences = Fences::default();
        let (subject, all) = (RunList::from(PostingList::Subject), RunList::from(PostingList::All));
        for (list, row, number) in [(all, "b", 0), (all, "dd", 1), (subject, "c", 0)] {
            assert_eq!(fences.add(list, row.as_bytes()), number);
        }
        assert_eq!(hex(fences.bytes()), "00000162000002646402000163");
        assert_eq!(Fences::read(fences.bytes().to_vec()).unwrap(), fences);
        for (row, block) in [("a", 0), ("b", 0), ("d", 0), ("dd", 1), ("z", 1)] {
            assert_eq!(fences.block_of(all, row.as_bytes()), Some(block), "{row}");
            assert!(fences.covers(all, block, row.as_bytes()));
            assert!(!fences.covers(all, 1 - block, row.as_bytes()));
        }
        assert_eq!((fences.block_of(subject, b"a"), fences.blocks_of(subject)), (Some(0), 1));
        assert_eq!(
            (fences.block_of(RunList::TERMS, b"a"), fences.blocks_of(RunList::TERMS)),
            (None, 0)
        );
    }

    #[test]
    fn bytes_that_are_no_fences_are_refused() {
        for bytes in [&[0][..], &[0, 0], &[0, 0, 1], &[99, 0, 0], &[0, 0, 0, 2, 0, 0, 0, 0, 0]] {
            assert_eq!(Fences::read(bytes.to_vec()), None, "{bytes:?}");
        }
        assert_eq!(Fences::read(Vec::new()), Some(Fences::default()));
    }
}
