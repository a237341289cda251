//! Rows of a table as a plan will write them. What a refused member of the group changed goes back
//! to what it was, at the cost of what it changed. Knows nothing of what a row holds.

use std::collections::HashMap;
use std::ops::Deref;

use grainstore_index::Sequence;

/// Staged rows, with what the current member replaced.
#[derive(Debug)]
pub(crate) struct Rows<V> {
    rows: HashMap<Sequence, V>,
    /// In the order of the changes; nothing for a row that was not there.
    replaced: Vec<(Sequence, Option<V>)>,
}

impl<V> Default for Rows<V> {
    fn default() -> Self {
        Self { rows: HashMap::new(), replaced: Vec::new() }
    }
}

/// For reading alone: a change has to be noted.
impl<V> Deref for Rows<V> {
    type Target = HashMap<Sequence, V>;

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

impl<V> Rows<V> {
    /// Keeps what was staged so far, whatever becomes of the next member.
    pub(super) fn begin(&mut self) {
        self.replaced.clear();
    }

    pub(super) fn insert(&mut self, sequence: Sequence, row: V) {
        let before = self.rows.insert(sequence, row);
        self.replaced.push((sequence, before));
    }

    /// The rows, to be written by somebody else.
    pub(crate) fn into_rows(self) -> HashMap<Sequence, V> {
        self.rows
    }

    /// Takes back what was changed since the last member began.
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
        let mut rows = Rows::default();
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
