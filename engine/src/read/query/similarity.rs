//! Similarity of grains to each other: by vectors of one model if both have one, else by their terms. Must
//! not know what it is used for.

use std::collections::HashMap;

use grainstore_cal::CancelHandle;
use grainstore_index::Sequence;
use grainstore_index::text::Document;
use grainstore_index::vectors::{Space, VectorView as Spaces};

use super::scan::{CandidateScan, ScanError};
use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::search::texts::TextSettings;
use crate::state::view::View;

/// Computes the similarity of two grains, from 0 to 1.
pub(super) struct GrainSimilarity<'v> {
    view: &'v View,
    spaces: Option<(Spaces, Vec<Space>)>,
    settings: &'v TextSettings,
    cancel: &'v CancelHandle,
    terms: TermVectors,
}

impl<'v> GrainSimilarity<'v> {
    pub(super) fn new(walk: &CandidateScan<'v>) -> Result<Self> {
        let inner = walk.session.store().inner();
        let known: Vec<Space> = match walk.view.serving_space()? {
            Some(serving) => vec![serving.clone()],
            None => walk.view.spaces()?.values().cloned().collect(),
        };
        let spaces = match known.is_empty() {
            true => None,
            false => Some((walk.view.vectors(inner.vectors(), walk.cancel)?, known)),
        };
        let wording = inner.library().settings();
        Ok(Self {
            view: walk.view,
            spaces,
            settings: wording,
            cancel: walk.cancel,
            terms: TermVectors::default(),
        })
    }

    /// Similarities of a grain to each of the others.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`; the deadline of the query.
    pub(super) fn similarities(
        &mut self,
        one: Sequence,
        others: &[Sequence],
    ) -> Result<Vec<f64>, ScanError> {
        self.cancel.check().map_err(ScanError::Stopped)?;
        let by_vector: Vec<Option<f64>> =
            others.iter().map(|other| self.by_vector(one, *other)).collect();
        if by_vector.iter().all(Option::is_some) {
            return Ok(by_vector.into_iter().flatten().collect());
        }
        for at in others.iter().chain([&one]) {
            self.load_terms(*at)?;
        }
        let by_words = self.terms.cosines(one, others);
        Ok(by_vector.into_iter().zip(by_words).map(|(near, words)| near.unwrap_or(words)).collect())
    }

    fn by_vector(&self, one: Sequence, other: Sequence) -> Option<f64> {
        let (spaces, all) = self.spaces.as_ref()?;
        let near = all.iter().find_map(|space| spaces.closeness(space, one, other))?;
        // A closeness of 0.5 is a cosine of 0, which counts as no similarity.
        Some((2.0 * f64::from(near) - 1.0).clamp(0.0, 1.0))
    }

    fn load_terms(&mut self, at: Sequence) -> Result<(), ScanError> {
        if self.terms.slots.contains_key(&at) {
            return Ok(());
        }
        self.cancel.check().map_err(ScanError::Stopped)?;
        let read = |blob: &[u8]| with_fields(blob, |grain| Ok(Some(self.settings.document(grain))));
        // A grain whose key was destroyed meanwhile has no terms.
        let document = self.view.with_live_blob(at, read)?.unwrap_or_default();
        self.terms.add(at, &document);
        Ok(())
    }
}

/// A small inverted index of the terms of some grains.
#[derive(Default)]
struct TermVectors {
    slots: HashMap<Sequence, usize>,
    grains: Vec<TermVector>,
    terms: HashMap<Box<str>, usize>,
    /// Postings of each term: slots of the grains that have it, and its weight there.
    postings: Vec<Vec<(usize, f64)>>,
}

/// The terms of one grain.
struct TermVector {
    /// Terms and weights, ascending by term.
    terms: Vec<(usize, f64)>,
    /// The squared norm.
    squared_norm: f64,
}

impl TermVectors {
    fn add(&mut self, at: Sequence, document: &Document) {
        let slot = self.grains.len();
        let mut words = Vec::with_capacity(document.terms().len());
        for word in document.terms() {
            let weight = f64::from(word.weight);
            let new = self.postings.len();
            let term = match self.terms.get(&word.term) {
                Some(term) => *term,
                None => {
                    self.postings.push(Vec::new());
                    *self.terms.entry(word.term.clone()).or_insert(new)
                }
            };
            if let Some(having) = self.postings.get_mut(term) {
                having.push((slot, weight));
            }
            words.push((term, weight));
        }
        let square = words.iter().map(|(_, weight)| weight.powi(2)).sum();
        self.grains.push(TermVector { terms: words, squared_norm: square });
        self.slots.insert(at, slot);
    }

    /// Cosines of the term weights of a grain with those of others; reads only the postings of its own terms.
    fn cosines(&self, one: Sequence, others: &[Sequence]) -> Vec<f64> {
        let of = |at: &Sequence| {
            let slot = *self.slots.get(at)?;
            Some((slot, self.grains.get(slot)?))
        };
        let Some((_, own)) = of(&one) else { return vec![0.0; others.len()] };
        let mut shared = vec![0.0; self.grains.len()];
        for (term, weight) in &own.terms {
            for (slot, other) in self.postings.get(*term).into_iter().flatten() {
                if let Some(shared) = shared.get_mut(*slot) {
                    *shared += weight * other;
                }
            }
        }
        let cosine = |other: &Sequence| {
            let (slot, other) = of(other)?;
            let lengths = (own.squared_norm * other.squared_norm).sqrt();
            (lengths > 0.0).then(|| shared.get(slot).map(|shared| shared / lengths)).flatten()
        };
        others.iter().map(|other| cosine(other).unwrap_or(0.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use grainstore_index::text::DocumentTerm;
    use proptest::prelude::*;

    use super::*;

    /// Cosine of the terms of two grains, computed directly.
    fn cosine(a: &Document, b: &Document) -> f64 {
        let square = |of: &Document| {
            of.terms().iter().map(|word| f64::from(word.weight).powi(2)).sum::<f64>()
        };
        let shared = a.terms().iter().filter_map(|word| {
            Some(f64::from(word.weight) * f64::from(b.term(&word.term)?.weight))
        });
        let lengths = (square(a) * square(b)).sqrt();
        if lengths > 0.0 { shared.sum::<f64>() / lengths } else { 0.0 }
    }

    fn document() -> impl Strategy<Value = Document> {
        prop::collection::vec(("[a-e]", 0..9_u32), 0..6).prop_map(|words| {
            let word = |(term, weight): (String, u32)| DocumentTerm {
                term: term.into(),
                weight,
                lent: 0,
                places: [].into(),
            };
            words.into_iter().map(word).collect()
        })
    }

    proptest! {
        #[test]
        fn cosines_of_many_are_those_of_each_two(
            documents in prop::collection::vec(document(), 1..8),
        ) {
            let mut words = TermVectors::default();
            let all: Vec<Sequence> = (0..).map(Sequence::new).take(documents.len()).collect();
            for (at, document) in all.iter().zip(&documents) {
                words.add(*at, document);
            }
            for (at, document) in all.iter().zip(&documents) {
                // An empty sum is negative zero.
                let expected: Vec<u64> =
                    documents.iter().map(|other| (cosine(document, other) + 0.0).to_bits()).collect();
                let found: Vec<u64> =
                    words.cosines(*at, &all).iter().map(|cosine| cosine.to_bits()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
