//! BM25 in `f64`. All scores come from here, for documents in a segment and in the tail; it knows neither.

use tantivy::fieldnorm::FieldNormReader;

/// Saturation of the term frequency.
pub(super) const K1: f64 = 1.2;
/// Strength of the length normalisation.
pub(super) const B: f64 = 0.75;

/// The number of live documents and their total length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CollectionStats {
    /// The number of documents.
    pub(super) documents: u64,
    /// The sum of their lengths.
    pub(super) total_length: u64,
}

impl CollectionStats {
    /// The average length; 1 if there are no documents.
    #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
    pub(super) fn average_length(self) -> f64 {
        if self.documents == 0 || self.total_length == 0 {
            return 1.0;
        }
        self.total_length as f64 / self.documents as f64
    }
}

/// The inverse document frequency, in the variant that is always positive: ln(1 + (N - n + 0.5) / (n + 0.5)).
///
/// `frequency` is the number of documents with the term, clamped to `documents`.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn idf(documents: u64, frequency: u64) -> f64 {
    let frequency = frequency.min(documents);
    let without = (documents - frequency) as f64 + 0.5;
    (without / (frequency as f64 + 0.5)).ln_1p()
}

/// Encodes a length in one byte, as segments store it, so that a document scores the same in the tail.
pub(super) fn length_code(length: u32) -> u8 {
    FieldNormReader::fieldnorm_to_id(length)
}

/// The length norms of BM25 by length code, for one average length.
#[derive(Debug)]
pub(super) struct LengthNorms {
    of: [f64; 256],
}

impl LengthNorms {
    /// Computes the norms for an average length.
    pub(super) fn new(average: f64) -> Self {
        let mut of = [0.0; 256];
        for (slot, code) in of.iter_mut().zip(0..=u8::MAX) {
            *slot = norm(code, average);
        }
        Self { of }
    }

    /// The saturated tf of BM25 without the factor K1 + 1, in (0, 1).
    #[inline]
    pub(super) fn tf(&self, weight: u8, code: u8) -> f64 {
        let norm = self.of.get(usize::from(code)).copied().unwrap_or_default();
        f64::from(weight) / (f64::from(weight) + norm)
    }
}

/// The length norm of a length code: K1 (1 - B + B length / average).
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
            assert!(idf(documents, frequency) > 0.0, "{documents} {frequency}");
        }
        assert!(idf(100, 3) > idf(100, 4));
    }

    #[test]
    fn a_share_grows_with_weight_and_shrinks_with_length() {
        let norms = LengthNorms::new(12.0);
        assert!(norms.tf(2, 20) > norms.tf(1, 20));
        assert!(norms.tf(2, 20) > norms.tf(2, 21));
        assert!(norms.tf(255, 0) < 1.0);
    }
}
