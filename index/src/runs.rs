//! Sorted runs: an ordered set with cheap insertion and cheap snapshots.
//!
//! A set is a few sorted arrays, each at least twice as long as the next. An insertion becomes a new array
//! and absorbs the shorter ones before it, so an item is moved some ten times until a tail is full. A
//! persistent tree would copy a path of nodes for every item while a reader holds the state before.

use std::sync::Arc;

/// An ordered set in sorted runs, the longest first. An item may be in several runs.
#[derive(Debug, Clone)]
pub(crate) struct Runs<T> {
    runs: Vec<Arc<Vec<T>>>,
}

impl<T: Ord + Copy> Runs<T> {
    /// The empty set.
    pub(crate) const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Adds items in any order.
    pub(crate) fn add(&mut self, mut items: Vec<T>) {
        let mut total = items.len();
        let mut first = self.runs.len();
        for run in self.runs.iter().rev() {
            if run.len() >= total.saturating_mul(2) {
                break;
            }
            total = total.saturating_add(run.len());
            first = first.saturating_sub(1);
        }
        items.reserve_exact(total.saturating_sub(items.len()));
        for run in self.runs.drain(first..) {
            items.extend_from_slice(&run);
        }
        sort(&mut items);
        if !items.is_empty() {
            self.runs.push(Arc::new(items));
        }
    }

    /// The sorted runs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.runs.iter().map(|run| run.as_slice())
    }

    /// All items in order, without duplicates.
    pub(crate) fn sorted(&self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.iter().map(<[T]>::len).sum());
        self.iter().for_each(|run| items.extend_from_slice(run));
        sort(&mut items);
        items
    }
}

/// Sorts and removes duplicates. The stable sort is fast on inputs made of sorted stretches.
fn sort<T: Ord>(items: &mut Vec<T>) {
    items.sort();
    items.dedup();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_keeps_every_item_once_and_few_runs() {
        let mut set = Runs::new();
        let mut model = BTreeSet::new();
        for step in 0..500_u64 {
            let size = [1, 14, 3, 0, 200][usize::try_from(step % 5).unwrap()];
            let items: Vec<u64> = (0..size).map(|n| (step * 7919 + n * 104_729) % 5_000).collect();
            model.extend(items.iter().copied());
            set.add(items);
            assert!(set.iter().count() <= 14, "{}", set.iter().count());
        }
        assert_eq!(set.sorted(), model.into_iter().collect::<Vec<_>>());
        assert!(set.iter().all(<[u64]>::is_sorted));
    }

    #[test]
    fn an_older_state_stays_as_it_was() {
        let mut set = Runs::new();
        set.add(vec![3, 1]);
        let before = set.clone();
        set.add(vec![2, 1]);
        assert_eq!(before.sorted(), [1, 3]);
        assert_eq!(set.sorted(), [1, 2, 3]);
    }
}
