//! Matching of one grain against a query, without an index: whether its own terms match, and in which fields.
//! Terms shared by neighbours do not count.

use std::collections::HashSet;
use std::ops::ControlFlow;

use grainstore_format::GrainRef;

use super::clause::{Clause, Occur, TermMatch};
use super::document::{Document, DocumentTerm};
use super::edit_distance::{EditMatcher, IndexedForm};
use super::fields::for_each_text;
use super::query::FullTextQuery;
use super::reader::{DocumentReader, MAX_OCCURRENCES};
use super::settings::Settings;

/// Returns `true` if the terms of one field of a grain match a query by themselves.
///
/// ```
/// # use grainstore_format::{Encoding, EpochMs, EventBuilder, GrainRef};
/// # let time = EpochMs::new(1_768_471_200_000);
/// # let grain = EventBuilder::new(time, "Alice plans her travels").build()?;
/// # let blob = grain.encode(Encoding::Cbor)?;
/// # let grain = GrainRef::new(blob.bytes())?;
/// use grainstore_index::text::{FullTextQuery, Language, Settings, field_matches};
///
/// // `grain` is an event: "Alice plans her travels".
/// let settings = Settings::new(Language::English);
/// let query = FullTextQuery::parse("+plan +travel", Language::English)?;
/// assert!(field_matches(&grain, "content", &query, &settings));
/// assert!(!field_matches(&grain, "subject", &query, &settings));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn field_matches(
    grain: &GrainRef<'_>,
    field: &str,
    question: &FullTextQuery,
    settings: &Settings,
) -> bool {
    let fields = DocumentReader::new(*settings).by_field(grain);
    fields.iter().any(|(name, words)| *name == field && question.matches(words))
}

impl DocumentReader {
    /// The fields of a grain that match a positive clause of a query, by their full names, in the order of
    /// the table of fields: titles first.
    #[must_use]
    pub fn matched_fields<'a>(
        &mut self,
        grain: &GrainRef<'a>,
        question: &FullTextQuery,
    ) -> Vec<&'a str> {
        let wanted: Vec<&TermMatch> = positive_matches(question).collect();
        let has_phrase = |ask: &&TermMatch| match ask {
            TermMatch::Phrase(_) => true,
            TermMatch::Identifier(_, phrases) => !phrases.is_empty(),
            _ => false,
        };
        if wanted.iter().any(has_phrase) {
            let mut fields = self.by_field(grain);
            fields.retain(|(_, words)| wanted.iter().any(|ask| words.has(ask)));
            return fields.into_iter().map(|(name, _)| name).collect();
        }
        let mut slips = FuzzyMatcher::of(&wanted);
        let mut matched: Vec<(usize, &'a str)> = Vec::new();
        let mut occurrences = 0;
        for_each_text(grain, &self.settings, &mut |text| {
            let field = (text.field_index, text.field);
            if occurrences >= MAX_OCCURRENCES || matched.last() == Some(&field) {
                return;
            }
            let found = self.analyser.analyse(text.text, &mut |token| {
                occurrences += 1;
                let enough = wanted.iter().any(|ask| matches_term(ask, token.term))
                    || slips.matches(token.term);
                if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if found.is_break() {
                matched.push(field);
            }
        });
        matched.sort_unstable();
        matched.into_iter().map(|(_, name)| name).collect()
    }
}

impl FullTextQuery {
    /// Returns `true` if the own terms of a grain match: all required clauses, no excluded one, and if none
    /// is required, one of the others.
    #[must_use]
    pub fn matches(&self, document: &Document) -> bool {
        let has = |clause: &Clause| document.has(&clause.ask);
        let of = |occur| self.clauses().iter().filter(move |clause| clause.occur == occur);
        if of(Occur::MustNot).any(has) || !of(Occur::Must).all(has) {
            return false;
        }
        of(Occur::Must).next().is_some() || of(Occur::Should).any(has)
    }
}

impl Document {
    /// Returns `true` if it matches a clause: any term of a word, every term of a phrase in its position, an
    /// identifier as its term or as one of its phrases.
    #[must_use]
    pub fn has(&self, ask: &TermMatch) -> bool {
        match ask {
            TermMatch::Word(terms) => terms.iter().any(|term| self.term(term).is_some()),
            TermMatch::Phrase(terms) => self.has_phrase(terms),
            TermMatch::Identifier(term, phrases) => {
                self.term(term).is_some() || phrases.iter().any(|terms| self.has_phrase(terms))
            }
            TermMatch::Prefix(prefix) => self.has_prefix(prefix),
            TermMatch::Begin(prefix, terms) => {
                self.has_prefix(prefix) || terms.iter().any(|term| self.term(term).is_some())
            }
            TermMatch::Fuzzy(term, edits) => {
                let slip = EditMatcher::of(term, *edits);
                self.terms().iter().any(|word| slip.edits(IndexedForm::of(&word.term)).is_some())
            }
        }
    }

    fn has_prefix(&self, prefix: &str) -> bool {
        let first = self.terms().partition_point(|word| *word.term < *prefix);
        self.terms().get(first).is_some_and(|word| word.term.starts_with(prefix))
    }

    fn has_phrase(&self, terms: &[(Box<str>, u32)]) -> bool {
        let Some(words) = terms
            .iter()
            .map(|(term, at)| Some((self.term(term)?, *at)))
            .collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        let rarest = words.iter().min_by_key(|(word, _)| word.places.len());
        let Some((rarest, at)) = rarest else { return false };
        rarest.places.iter().filter_map(|place| place.checked_sub(*at)).any(|start| {
            words.iter().all(|(word, at)| has_position(word, start.saturating_add(*at)))
        })
    }
}

/// The clauses a document can match by.
fn positive_matches(question: &FullTextQuery) -> impl Iterator<Item = &TermMatch> {
    let finds = |clause: &&Clause| matches!(clause.occur, Occur::Should | Occur::Must);
    let found = question.clauses().iter().filter(finds);
    found.map(|clause| &clause.ask)
}

/// The fuzzy terms of a query, with a cache of the terms that match none of them.
struct FuzzyMatcher {
    slips: Vec<EditMatcher>,
    rejected_terms: HashSet<Box<str>>,
}

impl FuzzyMatcher {
    fn of(asks: &[&TermMatch]) -> Self {
        let slips = asks.iter().filter_map(|ask| match ask {
            TermMatch::Fuzzy(term, edits) => Some(EditMatcher::of(term, *edits)),
            _ => None,
        });
        Self { slips: slips.collect(), rejected_terms: HashSet::new() }
    }

    fn matches(&mut self, term: &str) -> bool {
        if self.slips.is_empty() || self.rejected_terms.contains(term) {
            return false;
        }
        let form = IndexedForm::of(term);
        let met = self.slips.iter().any(|slip| slip.edits(form).is_some());
        if !met {
            self.rejected_terms.insert(term.into());
        }
        met
    }
}

/// Returns `true` if one term matches a clause by itself. Phrases need more than one term, and fuzzy terms
/// are matched by [`FuzzyMatcher`].
fn matches_term(ask: &TermMatch, term: &str) -> bool {
    match ask {
        TermMatch::Word(terms) => terms.iter().any(|wanted| **wanted == *term),
        TermMatch::Identifier(wanted, _) => **wanted == *term,
        TermMatch::Prefix(prefix) => term.starts_with(&**prefix),
        TermMatch::Begin(prefix, terms) => {
            term.starts_with(&**prefix) || terms.iter().any(|wanted| **wanted == *term)
        }
        TermMatch::Fuzzy(..) | TermMatch::Phrase(_) => false,
    }
}

fn has_position(word: &DocumentTerm, place: u32) -> bool {
    word.places.binary_search(&place).is_ok()
}

#[cfg(test)]
#[path = "matched_tests.rs"]
mod tests;
