//! The rows of a table staged by a plan. Changes of a refused member of the group are undone, at a cost
//! proportional to these changes. Knows nothing of the contents of a row.

use std::collections::HashMap;
use std::ops::Deref;

use grainstore_index::Sequence;

/// Staged rows, and the rows that the current member replaced.
#[derive(Debug)]
pub(crate) struct StagedRows<V> {
    rows: HashMap<Sequence, V>,
    /// In the order of the changes; `None` for a row that was absent.
    replaced: Vec<(Sequence, Option<V>)>,
}

impl<V> Default for StagedRows<V> {
    fn default() -> Self {
        Self { rows: HashMap::new(), replaced: Vec::new() }
    }
}

/// Read access only: changes must go through `insert`, which records them.
impl<V> Deref for StagedRows<V> {
    type Target = HashMap<Sequence, V>;

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

impl<V> StagedRows<V> {
    /// Begins the next member: everything staged so far is kept.
    pub(super) fn begin(&mut self) {
        self.replaced.clear();
    }

    pub(super) fn insert(&mut self, sequence: Sequence, row: V) {
        let before = self.rows.insert(sequence, row);
        self.replaced.push((sequence, before));
    }

    /// Returns the rows.
    pub(crate) fn into_rows(self) -> HashMap<Sequence, V> {
        self.rows
    }

    /// Undoes the changes of the current member.
    pub(super) fn roll_back(&mut self) {
        for (sequence, before) in self.replaced.drain(..).rev() {
            match before {
                Some(row) => self.rows.insert(sequence, row),
                None => self.rows.remove(&sequence),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_changed_goes_back_to_what_the_members_before_it_staged() {
        let [one, two, three] = [1, 2, 3].map(Sequence::new);
        let mut rows = StagedRows::default();
        rows.begin();
        rows.insert(one, "kept");
        rows.begin();
        rows.insert(two, "kept");
        rows.insert(two, "kept and changed");
        let staged = (*rows).clone();
        rows.begin();
        for row in ["changed", "changed again"] {
            for sequence in [one, two, three] {
                rows.insert(sequence, row);
            }
        }
        rows.roll_back();
        assert_eq!(*rows, staged);
        rows.roll_back();
        assert_eq!(*rows, staged, "there is nothing left to take back");
    }
}
