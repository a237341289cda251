//! Merges sorted inputs into one sorted sequence without duplicates; used for terms and addresses.
//!
//! Reads an entry of an input only after the one before it was taken. Knows no tables.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::mem;

use crate::error::Result;

/// Items in ascending order, read lazily.
pub(crate) type SortedInput<'v, T> = Box<dyn Iterator<Item = Result<T>> + 'v>;

/// The ascending union of ascending inputs. The first error ends it.
pub(crate) struct MergeIter<'v, T> {
    heads: BinaryHeap<MergeHead<'v, T>>,
}

/// The next item of an input, and the input behind it.
struct MergeHead<'v, T> {
    item: T,
    rest: SortedInput<'v, T>,
}

impl<'v, T: Ord> MergeIter<'v, T> {
    /// Reads the first item of every input.
    pub(crate) fn new(sources: impl IntoIterator<Item = SortedInput<'v, T>>) -> Result<Self> {
        let mut heads = BinaryHeap::new();
        for mut rest in sources {
            if let Some(item) = rest.next().transpose()? {
                heads.push(MergeHead { item, rest });
            }
        }
        Ok(Self { heads })
    }

    /// Takes the least item and replaces it by the next one of its input.
    fn pop_least(&mut self) -> Option<Result<T>> {
        let mut head = self.heads.peek_mut()?;
        match head.rest.next() {
            Some(Ok(next)) => Some(Ok(mem::replace(&mut head.item, next))),
            None => Some(Ok(PeekMut::pop(head).item)),
            Some(Err(error)) => {
                drop(head);
                self.heads.clear();
                Some(Err(error))
            }
        }
    }
}

impl<T: Ord> Iterator for MergeIter<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let item = match self.pop_least()? {
            Ok(item) => item,
            Err(error) => return Some(Err(error)),
        };
        while self.heads.peek().is_some_and(|head| head.item == item) {
            if let Some(Err(error)) = self.pop_least() {
                return Some(Err(error));
            }
        }
        Some(Ok(item))
    }
}

/// Heads compare in reverse, so that the max-heap has the least item on top.
impl<T: Ord> Ord for MergeHead<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.item.cmp(&self.item)
    }
}

impl<T: Ord> PartialOrd for MergeHead<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for MergeHead<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.item == other.item
    }
}

impl<T: Ord> Eq for MergeHead<'_, T> {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::Error;

    fn source<'v>(items: &'v [u32], pulled: &'v Cell<usize>) -> SortedInput<'v, u32> {
        Box::new(items.iter().map(|item| {
            pulled.set(pulled.get() + 1);
            Ok(*item)
        }))
    }

    #[test]
    fn sources_come_out_as_one_ordered_set() {
        let pulled = Cell::new(0);
        for (sources, expected) in [
            (vec![], vec![]),
            (vec![vec![], vec![]], vec![]),
            (vec![vec![1, 2, 3]], vec![1, 2, 3]),
            (vec![vec![1, 4], vec![], vec![2, 3, 5]], vec![1, 2, 3, 4, 5]),
            (vec![vec![1, 2], vec![1, 2], vec![2, 3]], vec![1, 2, 3]),
        ] {
            let boxed = sources.iter().map(|items| source(items, &pulled));
            let merged: Result<Vec<u32>> = MergeIter::new(boxed).unwrap().collect();
            assert_eq!(merged.unwrap(), expected, "{sources:?}");
        }
    }

    #[test]
    fn a_few_items_touch_a_few_entries() {
        let pulled = Cell::new(0);
        let (even, odd): (Vec<u32>, Vec<u32>) = (0..50_000).partition(|n| n % 2 == 0);
        let merge = MergeIter::new([source(&even, &pulled), source(&odd, &pulled)]).unwrap();
        assert_eq!(merge.take(20).count(), 20);
        assert_eq!(pulled.get(), 22, "twenty items and the two heads behind them");
    }

    #[test]
    fn an_error_is_given_and_ends_the_sequence() {
        let broken = || Err(Error::integrity("broken"));
        let first: SortedInput<'_, u32> = Box::new([broken()].into_iter());
        assert!(MergeIter::new([first]).is_err());
        let later: SortedInput<'_, u32> = Box::new([Ok(1), Ok(2), broken()].into_iter());
        let pulled = Cell::new(0);
        let mut merge = MergeIter::new([later, source(&[3, 4], &pulled)]).unwrap();
        assert_eq!(merge.next().unwrap().unwrap(), 1);
        assert!(merge.next().unwrap().is_err());
        assert!(merge.next().is_none());
    }
}
