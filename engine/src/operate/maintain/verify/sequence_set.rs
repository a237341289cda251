//! A set of sequences of the log, one bit each: a million grains take 125 kB.

use grainstore_index::Sequence;

/// A subset of the sequences from 1 to a length.
#[derive(Debug, Clone)]
pub(crate) struct SequenceSet {
    words: Vec<u64>,
    length: u64,
}

impl SequenceSet {
    /// The empty subset of a log of `length` entries. The length is a count of rows that were read, not a
    /// stored number, so it cannot ask for more memory than the log takes on disk.
    pub(crate) fn with_length(length: u64) -> Self {
        let words = usize::try_from(length.div_ceil(64)).unwrap_or(0);
        Self { words: vec![0; words], length }
    }

    /// Adds a sequence. Returns `true` if it is new; `false` also for one beyond the length.
    pub(crate) fn add(&mut self, place: Sequence) -> bool {
        let Some((at, bit)) = self.slot(place) else { return false };
        let Some(word) = self.words.get_mut(at) else { return false };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds or removes a sequence.
    pub(crate) fn set(&mut self, place: Sequence, inside: bool) {
        let Some((at, bit)) = self.slot(place) else { return };
        if let Some(word) = self.words.get_mut(at) {
            *word = if inside { *word | bit } else { *word & !bit };
        }
    }

    /// Returns `true` if the sequence is in the set.
    pub(crate) fn has(&self, place: Sequence) -> bool {
        let word = self.slot(place).and_then(|(at, bit)| Some(self.words.get(at)? & bit));
        word.is_some_and(|bit| bit != 0)
    }

    /// Iterates over the sequences that are not in the set.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Sequence> {
        let bits = self.words.iter().flat_map(|word| (0..64).map(move |bit| word >> bit & 1));
        let places = (1..=self.length).zip(bits);
        places.filter(|(_, bit)| *bit == 0).map(|(place, _)| Sequence::new(place))
    }

    /// Returns the word of a sequence, and its bit in it.
    fn slot(&self, place: Sequence) -> Option<(usize, u64)> {
        let at = place.get().checked_sub(1).filter(|at| *at < self.length)?;
        Some((usize::try_from(at / 64).ok()?, 1 << (at % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_added_is_missing() {
        let mut places = SequenceSet::with_length(130);
        for place in (1..=130).filter(|place| ![1, 64, 65, 130].contains(place)) {
            assert!(places.add(Sequence::new(place)));
            assert!(!places.add(Sequence::new(place)), "a second time");
            assert!(places.has(Sequence::new(place)));
        }
        assert!(!places.has(Sequence::new(64)) && !places.has(Sequence::new(200)));
        assert!(places.has(Sequence::new(66)));
        places.set(Sequence::new(64), true);
        places.set(Sequence::new(65), true);
        assert!(places.has(Sequence::new(64)) && places.has(Sequence::new(65)));
        for place in [64, 65] {
            places.set(Sequence::new(place), false);
        }
        places.set(Sequence::new(200), true);
        assert!(!places.has(Sequence::new(64)) && places.has(Sequence::new(63)));
        assert!(!places.add(Sequence::new(0)) && !places.add(Sequence::new(131)));
        let missing: Vec<_> = places.missing().map(Sequence::get).collect();
        assert_eq!(missing, [1, 64, 65, 130]);
        assert_eq!(SequenceSet::with_length(0).missing().count(), 0);
    }
}
