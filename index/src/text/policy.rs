//! The merge policy: the segments that are rewritten together with the tail. A pure function of sizes.
//!
//! Each segment stays at least twice as large as the next smaller one, so there are few segments, and the
//! number of times a document is rewritten is logarithmic. A segment that is large enough is not merged any more, so
//! that a merge takes bounded time and memory.

/// The most segments after a fold, beside those of [`MAX_MERGED_DOCUMENTS`].
pub(super) const MAX_SEGMENTS: usize = 12;
/// The most documents that segments are merged for, unless something was erased or deleted: some 30 MB of a segment.
pub(super) const MAX_MERGED_DOCUMENTS: u64 = 1 << 17;
/// A segment is rewritten when more than one document in this many is deleted.
const MAX_DELETED_DIVISOR: u64 = 5;

/// The sizes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentSize {
    /// The number of documents, deleted ones included.
    pub(super) documents: u64,
    /// The number of deleted documents.
    pub(super) gone: u64,
    /// True if a deleted document was erased, so that the segment must be rewritten.
    pub(super) erased: bool,
}

impl SegmentSize {
    fn live(self) -> u64 {
        self.documents.saturating_sub(self.gone)
    }
}

/// The indices of the segments to be merged with a tail of this many documents, ascending.
pub(super) fn segments_to_merge(sizes: &[SegmentSize], tail: u64) -> Vec<usize> {
    let mut chosen = vec![false; sizes.len()];
    let mut total = tail;
    for (size, chosen) in sizes.iter().zip(&mut chosen) {
        if size.erased || size.gone.saturating_mul(MAX_DELETED_DIVISOR) > size.documents {
            *chosen = true;
            total = total.saturating_add(size.live());
        }
    }
    let mut others: Vec<(u64, usize)> = sizes
        .iter()
        .enumerate()
        .filter(|(at, _)| chosen.get(*at) == Some(&false))
        .map(|(at, size)| (size.live(), at))
        .filter(|(live, _)| live.saturating_mul(2) <= MAX_MERGED_DOCUMENTS)
        .collect();
    others.sort_unstable();
    let mut left = others.len();
    for (live, at) in others {
        // The merged segments become one more segment.
        if total == 0 || (live >= total.saturating_mul(2) && left < MAX_SEGMENTS) {
            break;
        }
        total = total.saturating_add(live);
        left = left.saturating_sub(1);
        if let Some(chosen) = chosen.get_mut(at) {
            *chosen = true;
        }
    }
    chosen.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(live: &[u64]) -> Vec<SegmentSize> {
        live.iter().map(|n| SegmentSize { documents: *n, gone: 0, erased: false }).collect()
    }

    #[test]
    fn segments_not_twice_as_large_as_what_comes_are_taken_in() {
        for (sizes, tail, expected) in [
            (vec![], 10, vec![]),
            (of(&[130, 50, 15]), 10, vec![2]),
            (of(&[150, 49, 15]), 10, vec![1, 2]),
            (of(&[130, 49, 20]), 10, vec![]),
            (of(&[1000, 40, 20]), 10, vec![]),
            (of(&[1000, 40, 20]), 0, vec![]),
        ] {
            assert_eq!(segments_to_merge(&sizes, tail), expected, "{sizes:?} {tail}");
        }
    }

    #[test]
    fn what_is_erased_or_mostly_gone_is_written_anew_whatever_its_size() {
        let mut sizes = of(&[1_000_000, 5_000, 1_000]);
        sizes[0].erased = true;
        assert_eq!(segments_to_merge(&sizes, 0), [0, 1, 2]);
        let mut sizes = of(&[1_000_000, 5_000, 100]);
        sizes[2].gone = 21;
        assert_eq!(segments_to_merge(&sizes, 0), [2]);
        sizes[2].gone = 20;
        assert_eq!(segments_to_merge(&sizes, 0), [0_usize; 0]);
    }

    #[test]
    fn there_are_never_more_than_a_few_segments() {
        let mut sizes: Vec<SegmentSize> = Vec::new();
        for round in 0..20_000_u64 {
            let tail = 1 + (round * 7919) % 4_096;
            let chosen = segments_to_merge(&sizes, tail);
            let taken: u64 = chosen.iter().map(|at| sizes[*at].documents).sum();
            for at in chosen.into_iter().rev() {
                sizes.remove(at);
            }
            sizes.push(SegmentSize { documents: taken + tail, gone: 0, erased: false });
            let small = sizes.iter().filter(|size| size.documents * 2 <= MAX_MERGED_DOCUMENTS);
            assert!(small.count() <= MAX_SEGMENTS, "{sizes:?}");
            assert!(sizes.iter().all(|size| size.documents <= 2 * MAX_MERGED_DOCUMENTS));
        }
    }
}
