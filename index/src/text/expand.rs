//! Expansion of a prefix or a fuzzy term to terms of all dictionaries.
//!
//! The terms depend on the live documents alone, rare ones on those the reader sees. Where they add to a score, they are the [`MAX_EXPANSIONS`]
//! with the highest document frequency, at equal frequency the first in order. As a condition they are all
//! terms there are: an excluded word must not be there in any form.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tantivy::Term;
use tantivy::postings::TermInfo;
use tantivy::query::FuzzyTermQuery;

use super::cancel::CancelCheck;
use super::clause::{Clause, Occur, TermMatch};
use super::deleted::DeletedDocs;
use super::edit_distance::{EditMatcher, IndexedForm, MAX_EDITS};
use super::lookup::TermLookup;
use super::part::TextPart;
use super::segment::field;
use crate::error::{Error, Result};

/// The most terms of a prefix or fuzzy term of a [`FullTextQuery`](super::FullTextQuery) that adds to a
/// score.
pub const MAX_EXPANSIONS: usize = 128;
/// The most terms of a prefix or fuzzy term that a [`FullTextQuery`](super::FullTextQuery) requires or
/// excludes; one with more is refused.
pub const MAX_STRICT_EXPANSIONS: usize = 8_192;

/// The terms of live documents that match a prefix or fuzzy term, ascending, each with a weight: 1, or less
/// the more edits it needs. An empty prefix matches no term.
///
/// # Errors
/// `ERR_LIMIT` for a condition with more than [`MAX_STRICT_EXPANSIONS`] terms; `ERR_INTEGRITY` if a
/// dictionary cannot be read; `ERR_TIMEOUT`.
pub(super) fn expand(
    Clause { ask, occur }: &Clause,
    lookup: &TermLookup<'_>,
) -> Result<Vec<(Box<str>, f64)>> {
    let mut found = TermFrequencies { by_term: BTreeMap::new(), watch: lookup.watch };
    for part in lookup.parts {
        match ask {
            TermMatch::Prefix(prefix) if !prefix.is_empty() => {
                add_prefix(prefix, *part, &mut found)?;
            }
            TermMatch::Begin(prefix, terms) => {
                add_prefix(prefix, *part, &mut found)?;
                add_terms(terms, *part, &mut found)?;
            }
            TermMatch::Fuzzy(term, edits) => {
                add_fuzzy(term, (*edits).min(MAX_EDITS), *part, &mut found)?;
            }
            _ => {}
        }
    }
    let worth = |term: &str| match ask {
        TermMatch::Fuzzy(asked, _) => fuzzy_weight(asked, term),
        _ => 1.0,
    };
    let found: Vec<(Box<str>, u64)> = found.by_term.into_iter().filter(|(_, n)| *n > 0).collect();
    let mut terms = match occur {
        Occur::Should | Occur::Boost => most_frequent(found, lookup)?,
        // An excluded form that the reader sees in no document excludes none of theirs.
        Occur::MustNot if found.len() <= MAX_STRICT_EXPANSIONS => found,
        Occur::Must | Occur::MustNot => counted(found, lookup)?,
    };
    if matches!(occur, Occur::Must | Occur::MustNot) && terms.len() > MAX_STRICT_EXPANSIONS {
        let message = format!(
            "a word after + or - stands for {} words; a condition is checked against {} at most",
            terms.len(),
            MAX_STRICT_EXPANSIONS
        );
        return Err(Error::limit(message));
    }
    terms.sort();
    let with_worth = |(term, _): (Box<str>, u64)| {
        let worth = worth(&term);
        (term, worth)
    };
    Ok(terms.into_iter().map(with_worth).collect())
}

/// The terms that a reader may know of, with the document frequencies they may know.
fn counted(found: Vec<(Box<str>, u64)>, lookup: &TermLookup<'_>) -> Result<Vec<(Box<str>, u64)>> {
    let mut terms = Vec::with_capacity(found.len());
    for (term, of_all) in found {
        let frequency = lookup.frequency(&term, of_all)?;
        if frequency > 0 {
            terms.push((term, frequency));
        }
    }
    Ok(terms)
}

/// The [`MAX_EXPANSIONS`] terms with the highest document frequency that a reader may know of. Counting stops
/// once no other term can be among them: what the reader sees is never more than all there is.
fn most_frequent(
    mut found: Vec<(Box<str>, u64)>,
    lookup: &TermLookup<'_>,
) -> Result<Vec<(Box<str>, u64)>> {
    found.sort_by_key(|(_, of_all)| Reverse(*of_all));
    let mut least = BinaryHeap::with_capacity(MAX_EXPANSIONS + 1);
    let mut terms = Vec::new();
    for (term, of_all) in found {
        let full = least.len() == MAX_EXPANSIONS;
        if full && least.peek().is_some_and(|Reverse(least)| *least > of_all) {
            break;
        }
        let frequency = lookup.frequency(&term, of_all)?;
        if frequency > 0 {
            least.push(Reverse(frequency));
            if least.len() > MAX_EXPANSIONS {
                least.pop();
            }
            terms.push((term, frequency));
        }
    }
    terms.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    terms.truncate(MAX_EXPANSIONS);
    Ok(terms)
}

/// The weight of a fuzzy match: a half at one edit, a third at two.
fn fuzzy_weight(asked: &str, term: &str) -> f64 {
    let edits = u8::try_from(strsim::osa_distance(asked, term)).unwrap_or(u8::MAX);
    1.0 / (1.0 + f64::from(edits))
}

/// The document frequencies of the terms found so far.
struct TermFrequencies<'w> {
    by_term: BTreeMap<Box<str>, u64>,
    watch: &'w CancelCheck<'w>,
}

/// Adds the terms with this prefix.
fn add_prefix(prefix: &str, part: TextPart<'_>, counts: &mut TermFrequencies<'_>) -> Result<()> {
    match part {
        TextPart::Tail(tail) => {
            for (term, postings) in tail.terms() {
                counts.watch.step(1)?;
                if term.starts_with(prefix) {
                    counts.add(term, postings.len() as u64);
                }
            }
            Ok(())
        }
        TextPart::Segment(segment, gone) => {
            let terms = segment.inverted_index().terms().range().ge(prefix);
            let mut terms = terms.into_stream().map_err(Error::input)?;
            while terms.advance() && terms.key().starts_with(prefix.as_bytes()) {
                counts.watch.step(1)?;
                add_segment_term(terms.key(), terms.term_ord(), terms.value(), gone, counts);
            }
            Ok(())
        }
    }
}

/// Adds these terms.
fn add_terms(
    terms: &[Box<str>],
    part: TextPart<'_>,
    counts: &mut TermFrequencies<'_>,
) -> Result<()> {
    for term in terms {
        if let Some(found) = part.find(term)? {
            counts.add(term, part.frequency(&found));
        }
    }
    Ok(())
}

/// Adds the terms within this number of edits.
fn add_fuzzy(
    asked: &str,
    edits: u8,
    part: TextPart<'_>,
    counts: &mut TermFrequencies<'_>,
) -> Result<()> {
    match part {
        TextPart::Tail(tail) => {
            let slip = EditMatcher::of(asked, edits);
            for (term, postings) in tail.terms() {
                counts.watch.step(1)?;
                if slip.edits(IndexedForm::of(term)).is_some() {
                    counts.add(term, postings.len() as u64);
                }
            }
            Ok(())
        }
        TextPart::Segment(segment, gone) => {
            let query = FuzzyTermQuery::new(Term::from_field_text(field(), asked), edits, true);
            let terms = segment.inverted_index().terms().search(query.automaton()?);
            let mut terms = terms.into_stream().map_err(Error::input)?;
            while terms.advance() {
                counts.watch.step(1)?;
                add_segment_term(terms.key(), terms.term_ord(), terms.value(), gone, counts);
            }
            Ok(())
        }
    }
}

/// Adds a term of a segment with its number of live documents.
fn add_segment_term(
    key: &[u8],
    ordinal: u64,
    info: &TermInfo,
    gone: &DeletedDocs,
    counts: &mut TermFrequencies<'_>,
) {
    let Ok(term) = std::str::from_utf8(key) else { return };
    let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
    counts.add(term, u64::from(info.doc_freq.saturating_sub(gone.frequency(ordinal))));
}

impl TermFrequencies<'_> {
    fn add(&mut self, term: &str, frequency: u64) {
        match self.by_term.get_mut(term) {
            Some(sum) => *sum = sum.saturating_add(frequency),
            None => {
                self.by_term.insert(term.into(), frequency);
            }
        }
    }
}
