//! Where the blocks of a run begin: the first row of each, in memory while the run is read. In an encrypted store it
//! stands under a tag, so that no block can be taken out unseen.
//!
//! For each block, in the order of lists and rows: number of the list (1 byte), length of the row (2), the row. In
//! memory a row has its head beside it: the eight bytes behind those that all first rows of its list begin with. A
//! search goes over the heads, which lie close together, and looks at rows only where heads are equal.

use std::cmp::Ordering;
use std::ops::Range;

use super::lists::RunList;

/// The first rows of the blocks of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    bytes: Vec<u8>,
    /// Where the row of each block ends; it begins three bytes behind the end of the one before.
    ends: Vec<u32>,
    /// The head of each row.
    heads: Vec<u64>,
    lists: [ListFences; RunList::COUNT],
}

/// The blocks of a list, by their places among all.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct ListFences {
    blocks: Range<usize>,
    /// The number of bytes with which all its first rows begin.
    shared: usize,
}

/// The bytes before a row.
const HEAD_BYTES: usize = 3;

impl Fences {
    /// The bytes they take in memory.
    pub(crate) fn memory(&self) -> usize {
        let each = self.ends.len().saturating_mul(size_of::<u32>() + size_of::<u64>());
        self.bytes.len().saturating_add(each)
    }

    /// Reads the bytes; `None` if they are not those of fences.
    pub(crate) fn read(mut bytes: Vec<u8>) -> Option<Self> {
        bytes.shrink_to_fit();
        let mut fences = Self { bytes, ..Self::default() };
        let mut at = 0_usize;
        while let Some([number, high, low, ..]) = fences.bytes.get(at..) {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let list = RunList::all().find(|list| list.number() == *number)?;
            at = at.checked_add(HEAD_BYTES)?.checked_add(length)?;
            fences.ends.push(u32::try_from(at).ok().filter(|_| at <= fences.bytes.len())?);
            fences.extend(list)?;
        }
        (at == fences.bytes.len()).then_some(())?;
        fences.ends.shrink_to_fit();
        fences.note_heads()?;
        Some(fences)
    }

    /// The number of blocks of all lists.
    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    /// The number of blocks of a list.
    pub(crate) fn blocks_of(&self, list: RunList) -> u32 {
        let blocks = self.lists.get(list.index()).map_or(0, |fences| fences.blocks.len());
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// The place of a block of a list among all blocks.
    pub(crate) fn place_of(&self, list: RunList, block: u32) -> Option<usize> {
        let blocks = &self.lists.get(list.index())?.blocks;
        let place = blocks.start.checked_add(usize::try_from(block).ok()?)?;
        (place < blocks.end).then_some(place)
    }

    /// The number of the block of a list that a row falls into: the last one that does not begin behind it, or else
    /// the first. `None` if the list has no blocks.
    pub(crate) fn block_of(&self, list: RunList, row: &[u8]) -> Option<u32> {
        let fences = self.lists.get(list.index()).filter(|fences| !fences.blocks.is_empty())?;
        let behind = self.begun_by(fences, row)?.saturating_sub(1);
        u32::try_from(behind).ok()
    }

    /// Returns `true` if a row may fall into this block of a list.
    pub(crate) fn covers(&self, list: RunList, block: u32, row: &[u8]) -> bool {
        self.block_of_is(list, block, row).unwrap_or(false)
    }

    fn block_of_is(&self, list: RunList, block: u32, row: &[u8]) -> Option<bool> {
        let at = self.place_of(list, block)?;
        let next = at.checked_add(1)?;
        let is_behind = block == 0 || self.row(at)? <= row;
        let end = self.lists.get(list.index())?.blocks.end;
        Some(is_behind && (next >= end || row < self.row(next)?))
    }

    /// The number of blocks of a list that do not begin behind a row.
    fn begun_by(&self, fences: &ListFences, row: &[u8]) -> Option<usize> {
        let first = self.row(fences.blocks.start)?;
        let start = row.get(..fences.shared.min(row.len()))?;
        match start.cmp(first.get(..fences.shared)?) {
            Ordering::Less => return Some(0),
            Ordering::Greater => return Some(fences.blocks.len()),
            Ordering::Equal => {}
        }
        let (head, heads) = (head_of(row, fences.shared), self.heads.get(fences.blocks.clone())?);
        let before = heads.partition_point(|at| *at < head);
        let alike = heads.get(before..)?;
        if alike.first() != Some(&head) {
            return Some(before);
        }
        let (mut low, mut high) = (0, alike.partition_point(|at| *at == head));
        while low < high {
            let middle = low.midpoint(high);
            match self.row(fences.blocks.start.checked_add(before)?.checked_add(middle)?)? <= row {
                true => low = middle.saturating_add(1),
                false => high = middle,
            }
        }
        before.checked_add(low)
    }

    /// The first row of a block, by its place among all.
    fn row(&self, at: usize) -> Option<&[u8]> {
        let before = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let start = usize::try_from(before).ok()?.checked_add(HEAD_BYTES)?;
        self.bytes.get(start..usize::try_from(*self.ends.get(at)?).ok()?)
    }

    /// Notes a further block of a list.
    fn extend(&mut self, list: RunList) -> Option<()> {
        let end = self.ends.len();
        let blocks = &mut self.lists.get_mut(list.index())?.blocks;
        if blocks.start >= blocks.end {
            *blocks = end.checked_sub(1)?..end;
        } else if blocks.end == end.checked_sub(1)? {
            blocks.end = end;
        } else {
            return None;
        }
        Some(())
    }

    /// Notes the heads of all rows.
    fn note_heads(&mut self) -> Option<()> {
        self.heads = vec![0; self.ends.len()];
        for number in 0..self.lists.len() {
            let blocks = self.lists.get(number)?.blocks.clone();
            let Some(last) = blocks.clone().next_back() else { continue };
            // Rows that ascend share what the first shares with the last; of others nothing is said.
            let (first, last) = (self.row(blocks.start)?, self.row(last)?);
            let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            for at in blocks {
                let head = head_of(self.row(at)?, shared);
                *self.heads.get_mut(at)? = head;
            }
            self.lists.get_mut(number)?.shared = shared;
        }
        Some(())
    }
}

/// The eight bytes of a row behind those it shares with all others, as a number of the same order.
fn head_of(row: &[u8], shared: usize) -> u64 {
    let rest = row.get(shared..).unwrap_or_default();
    if let Some(head) = rest.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    u64::from_be_bytes(head)
}

/// Fences that are being written.
#[derive(Debug, Default)]
pub(crate) struct FenceBuilder {
    bytes: Vec<u8>,
    /// The list of the last block, and the number of its blocks so far.
    last: Option<(RunList, u32)>,
}

impl FenceBuilder {
    /// Adds a block; lists and rows ascend. Returns its number in its list.
    pub(crate) fn add(&mut self, list: RunList, row: &[u8]) -> u32 {
        self.bytes.push(list.number());
        self.bytes.extend(u16::try_from(row.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.bytes.extend_from_slice(row);
        let number = match self.last {
            Some((last, blocks)) if last == list => blocks,
            _ => 0,
        };
        self.last = Some((list, number.saturating_add(1)));
        number
    }

    /// The bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posting_lists::PostingList;
    use crate::test_kit::hex;

    fn fences_of(rows: &[(RunList, &str)]) -> Fences {
        let mut fences = FenceBuilder::default();
        for (list, row) in rows {
            fences.add(*list, row.as_bytes());
        }
        Fences::read(fences.finish()).unwrap()
    }

    #[test]
    fn fences_have_these_bytes_and_read_back() {
        let (subject, all) = (RunList::from(PostingList::Subject), RunList::from(PostingList::All));
        let mut built = FenceBuilder::default();
        for (list, row, number) in [(all, "b", 0), (all, "dd", 1), (subject, "c", 0)] {
            assert_eq!(built.add(list, row.as_bytes()), number);
        }
        let bytes = built.finish();
        assert_eq!(hex(&bytes), "00000162000002646402000163");
        let fences = Fences::read(bytes).unwrap();
        for (row, block) in [("a", 0), ("b", 0), ("d", 0), ("dd", 1), ("z", 1)] {
            assert_eq!(fences.block_of(all, row.as_bytes()), Some(block), "{row}");
            assert!(fences.covers(all, block, row.as_bytes()));
            assert!(!fences.covers(all, 1 - block, row.as_bytes()));
        }
        assert_eq!((fences.block_of(subject, b"a"), fences.blocks_of(subject)), (Some(0), 1));
        assert_eq!((fences.place_of(subject, 0), fences.place_of(subject, 1)), (Some(2), None));
        assert_eq!(
            (fences.block_of(RunList::TERMS, b"a"), fences.blocks_of(RunList::TERMS)),
            (None, 0)
        );
    }

    #[test]
    fn rows_with_equal_heads_are_told_apart() {
        let all = RunList::from(PostingList::All);
        let rows = [
            "pre",
            "pre1",
            "pre12345678",
            "pre12345678a",
            "pre12345678c",
            "pre2",
            "pre2\0",
            "pre9",
        ];
        let fences = fences_of(&rows.map(|row| (all, row)));
        let others = ["", "p", "pr", "pra", "prf", "q", "pre1\0", "pre12345678b", "pre20", "pre99"];
        for row in rows.iter().chain(&others) {
            let behind = rows.iter().filter(|fence| *fence <= row).count().saturating_sub(1);
            let found = fences.block_of(all, row.as_bytes()).unwrap();
            assert_eq!(usize::try_from(found).unwrap(), behind, "{row}");
            assert!(fences.covers(all, found, row.as_bytes()), "{row}");
        }
    }

    #[test]
    fn bytes_that_are_no_fences_are_refused() {
        for bytes in [&[0][..], &[0, 0], &[0, 0, 1], &[99, 0, 0], &[0, 0, 0, 2, 0, 0, 0, 0, 0]] {
            assert_eq!(Fences::read(bytes.to_vec()), None, "{bytes:?}");
        }
        assert_eq!(Fences::read(Vec::new()), Some(Fences::default()));
    }
}
