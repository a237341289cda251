//! What a word is worth: BM25 in `f64`, and nothing else. Every score comes from here, whether a
//! document is in a segment or in the tail. It knows neither.

use tantivy::fieldnorm::FieldNormReader;

/// How soon a word that is repeated stops to count.
pub(super) const K1: f64 = 1.2;
/// How much the length of a document counts.
pub(super) const B: f64 = 0.75;

/// How many live documents there are and how long they are together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Documents.
    pub(super) documents: u64,
    /// The sum of their lengths.
    pub(super) length: u64,
}

impl Extent {
    /// The average length; 1 where there is no document.
    #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
    pub(super) fn average(self) -> f64 {
        if self.documents == 0 || self.length == 0 {
            return 1.0;
        }
        self.length as f64 / self.documents as f64
    }
}

/// What a term says about a document that has it: the rarer, the more. Always above 0.
///
/// `frequency` is how many of the documents have it, at most all of them.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn rarity(documents: u64, frequency: u64) -> f64 {
    let frequency = frequency.min(documents);
    let without = (documents - frequency) as f64 + 0.5;
    (without / (frequency as f64 + 0.5)).ln_1p()
}

/// The code of a length: one byte, as a segment keeps it, so that a document scores the same
/// wherever it is.
pub(super) fn length_code(length: u32) -> u8 {
    FieldNormReader::fieldnorm_to_id(length)
}

/// What each code of a length takes from a word, for one average length.
#[derive(Debug)]
pub(super) struct Norms {
    of: [f64; 256],
}

impl Norms {
    /// Those for this average length.
    pub(super) fn new(average: f64) -> Self {
        let mut of = [0.0; 256];
        for (slot, code) in of.iter_mut().zip(0..=u8::MAX) {
            *slot = norm(code, average);
        }
        Self { of }
    }

    /// How far a word of this weight is from its limit in a document of this length: in (0, 1).
    #[inline]
    pub(super) fn share(&self, weight: u8, code: u8) -> f64 {
        let norm = self.of.get(usize::from(code)).copied().unwrap_or_default();
        f64::from(weight) / (f64::from(weight) + norm)
    }
}

/// What a code of a length takes from a word.
pub(super) fn norm(code: u8, average: f64) -> f64 {
    let length = f64::from(FieldNormReader::id_to_fieldnorm(code));
    K1 * (1.0 - B + B * length / average)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_all_documents_is_worth_little_and_not_nothing() {
        for (documents, frequency) in [(1, 1), (1_000_000_000, 1_000_000_000), (10, 0), (0, 0)] {
            assert!(rarity(documents, frequency) > 0.0, "{documents} {frequency}");
        }
        assert!(rarity(100, 3) > rarity(100, 4));
    }

    #[test]
    fn a_share_grows_with_weight_and_shrinks_with_length() {
        let norms = Norms::new(12.0);
        assert!(norms.share(2, 20) > norms.share(1, 20));
        assert!(norms.share(2, 20) > norms.share(2, 21));
        assert!(norms.share(255, 0) < 1.0);
    }
}
