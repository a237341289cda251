//! The plan of a query: its terms with their weights, from statistics over all live documents. It is the same
//! for every part, so that a document's score does not depend on the part it is in.

use std::borrow::Cow;

use super::cancel::CancelCheck;
use super::clause::{Clause, Occur, Phrase, TermMatch};
use super::expand::expand;
use super::lookup::TermLookup;
use super::part::{DocumentTerms, TermRef, TextPart};
use super::query::FullTextQuery;
use super::score::{CollectionStats, K1, LengthNorms, idf};
use crate::error::Result;

/// The most clauses a pruned search may have: the allowance for rounding, `MARGIN` in `prune.rs`, covers no more.
pub(super) const MAX_PRUNABLE_CLAUSES: usize = 64;

/// The clauses of a query with their weights.
#[derive(Debug)]
pub(super) struct ScoringPlan {
    /// The scored clauses, in the order of the query, then those that boost; scores are added in this order.
    pub(super) clauses: Vec<ScoredClause>,
    /// The excluded clauses; one excludes a document that has all its members.
    pub(super) must_not: Vec<Vec<ClauseTerms>>,
    /// The length normalisation of BM25.
    pub(super) norms: LengthNorms,
    /// The collection the weights were computed for.
    pub(super) collection: CollectionStats,
}

/// A scored clause.
#[derive(Debug)]
pub(super) struct ScoredClause {
    /// True if a document must match it.
    pub(super) must: bool,
    /// True if it adds to the score of a document that matches another clause, and finds none.
    pub(super) boosts: bool,
    /// The most it adds to a score.
    pub(super) value: f64,
    /// The terms it matches.
    pub(super) what: ClauseTerms,
}

/// The terms of a clause.
#[derive(Debug)]
pub(super) enum ClauseTerms {
    /// A term.
    Term(ResolvedTerm),
    /// Terms at these relative positions.
    Phrase(Vec<(ResolvedTerm, u32)>),
    /// Any of several terms, each with a weight: the best of them counts.
    Group(Vec<(ResolvedTerm, f64)>),
    /// The spellings of an identifier, its term first: the best of them counts.
    Spellings(Vec<ClauseTerms>),
}

/// A term, looked up in all parts.
#[derive(Debug)]
pub(super) struct ResolvedTerm {
    /// The term.
    pub(super) term: Box<str>,
    /// The term in each part, `None` where a part does not have it.
    found: Vec<Option<TermRef>>,
    /// Its document frequency among live documents, as the reader may know it.
    pub(super) doc_frequency: u64,
}

/// The terms of a clause, resolved to one part.
pub(super) enum PartClause<'p> {
    /// A term.
    Term(&'p TermRef),
    /// Terms at these relative positions.
    Phrase(Vec<(&'p TermRef, u32)>),
    /// Terms, each with a weight.
    Group(Vec<(&'p TermRef, f64)>),
    /// Spellings of an identifier.
    Spellings(Vec<PartClause<'p>>),
    /// The part has no document that matches.
    NoMatch,
}

impl ResolvedTerm {
    fn of(term: &str, lookup: &TermLookup<'_>) -> Result<Self> {
        let (found, frequency) = lookup.find(term)?;
        Ok(Self { term: term.into(), found, doc_frequency: frequency })
    }

    /// The term in the part at this index.
    fn at(&self, part: usize) -> Option<&TermRef> {
        self.found.get(part)?.as_ref()
    }
}

impl ClauseTerms {
    /// Resolves the terms to the part at this index.
    pub(super) fn resolve(&self, part: usize) -> PartClause<'_> {
        match self {
            Self::Term(term) => term.at(part).map_or(PartClause::NoMatch, PartClause::Term),
            Self::Phrase(terms) => {
                let found = terms.iter().map(|(term, far)| Some((term.at(part)?, *far)));
                found.collect::<Option<_>>().map_or(PartClause::NoMatch, PartClause::Phrase)
            }
            Self::Group(terms) => {
                let found = terms.iter().filter_map(|(term, worth)| Some((term.at(part)?, *worth)));
                PartClause::Group(found.collect())
            }
            Self::Spellings(members) => {
                let found = members.iter().map(|member| member.resolve(part));
                let found = found.filter(|member| !matches!(member, PartClause::NoMatch));
                match found.collect::<Vec<_>>() {
                    found if found.is_empty() => PartClause::NoMatch,
                    found => PartClause::Spellings(found),
                }
            }
        }
    }

    /// Its terms, in the order of the query.
    pub(super) fn terms(&self) -> Vec<&ResolvedTerm> {
        match self {
            Self::Term(term) => vec![term],
            Self::Phrase(terms) => terms.iter().map(|(term, _)| term).collect(),
            Self::Group(terms) => terms.iter().map(|(term, _)| term).collect(),
            Self::Spellings(members) => members.iter().flat_map(Self::terms).collect(),
        }
    }

    /// An upper bound on the number of live documents that match and are seen.
    pub(super) fn max_documents(&self) -> u64 {
        match self {
            Self::Term(term) => term.doc_frequency,
            Self::Phrase(terms) => {
                terms.iter().map(|(term, _)| term.doc_frequency).min().unwrap_or_default()
            }
            Self::Group(terms) => {
                terms.iter().map(|(term, _)| term.doc_frequency).fold(0, u64::saturating_add)
            }
            Self::Spellings(members) => {
                members.iter().map(Self::max_documents).fold(0, u64::saturating_add)
            }
        }
    }

    /// The idf: of a phrase, the sum over its terms; of a group, that of a term in as many documents as the
    /// members in sum; of an identifier, that of its term, or if no document has it, of a term in as
    /// many documents as its other spellings.
    fn idf(&self, documents: u64) -> f64 {
        match self {
            Self::Term(term) => idf(documents, term.doc_frequency),
            Self::Phrase(terms) => {
                terms.iter().map(|(term, _)| idf(documents, term.doc_frequency)).sum()
            }
            Self::Group(terms) => {
                let sum = terms.iter().map(|(term, _)| term.doc_frequency).sum::<u64>();
                idf(documents, sum)
            }
            Self::Spellings(members) => {
                let most = members.iter().map(Self::max_documents).find(|most| *most > 0);
                idf(documents, most.unwrap_or_default())
            }
        }
    }
}

impl<'p> PartClause<'p> {
    /// Adds the terms of which every document that matches has one: of a phrase the rarest.
    pub(super) fn add_drivers(&self, part: TextPart<'_>, drivers: &mut Vec<&'p TermRef>) {
        match self {
            Self::Term(found) => drivers.push(found),
            Self::Phrase(terms) => {
                let terms = terms.iter().map(|(found, _)| *found);
                drivers.extend(terms.min_by_key(|found| part.frequency(found)));
            }
            Self::Group(members) => drivers.extend(members.iter().map(|(found, _)| *found)),
            Self::Spellings(members) => {
                members.iter().for_each(|member| member.add_drivers(part, drivers));
            }
            Self::NoMatch => {}
        }
    }
}

impl PartClause<'_> {
    /// The saturated term frequency of BM25 in one document, in [0, 1): 0 if the document does not match.
    ///
    /// A phrase counts as often as its least frequent term.
    ///
    /// # Errors
    /// `ERR_TIMEOUT`.
    pub(super) fn tf(
        &self,
        words: &DocumentTerms<'_>,
        (norms, code): (&LengthNorms, u8),
        watch: &CancelCheck<'_>,
    ) -> Result<f64> {
        let of = |found: &TermRef| match words.weight(found) {
            0 => 0.0,
            weight => norms.tf(weight, code),
        };
        Ok(match self {
            Self::Term(found) => of(found),
            Self::Phrase(terms) => {
                let least = terms.iter().map(|(found, _)| words.weight(found)).min().unwrap_or(0);
                if least == 0 || !phrase_occurs(words, terms, watch)? {
                    return Ok(0.0);
                }
                norms.tf(least, code)
            }
            Self::Group(members) => {
                watch.step(members.len())?;
                members.iter().map(|(found, worth)| worth * of(found)).fold(0.0, f64::max)
            }
            Self::Spellings(members) => {
                let mut best = 0.0_f64;
                for member in members {
                    best = best.max(member.tf(words, (norms, code), watch)?);
                }
                best
            }
            Self::NoMatch => 0.0,
        })
    }
}

/// Returns `true` if terms occur at their relative positions anywhere in a document. Each position of the
/// rarest term is tried, checking the next rarest first.
fn phrase_occurs(
    words: &DocumentTerms<'_>,
    terms: &[(&TermRef, u32)],
    watch: &CancelCheck<'_>,
) -> Result<bool> {
    let mut known: Vec<(&TermRef, Cow<'_, [u32]>)> = Vec::new();
    for (found, _) in terms {
        if !known.iter().any(|(other, _)| other.is_same_term(found)) {
            let places = words.positions(found);
            watch.step(places.len())?;
            known.push((found, places));
        }
    }
    known.sort_by_key(|(_, places)| places.len());
    let mut stands: Vec<(usize, u32)> = Vec::with_capacity(terms.len());
    for (found, distance) in terms {
        let at = known.iter().position(|(other, _)| other.is_same_term(found));
        stands.extend(at.map(|at| (at, *distance)));
    }
    stands.sort_unstable();
    stands.dedup();
    let places = |at: usize| known.get(at).map_or([].as_slice(), |(_, places)| places);
    let Some(((rarest, from), others)) = stands.split_first() else { return Ok(false) };
    for start in places(*rarest).iter().filter_map(|place| place.checked_sub(*from)) {
        let mut stand = 0;
        let all = others.iter().all(|(at, distance)| {
            stand += 1;
            let place = start.checked_add(*distance);
            place.is_some_and(|place| places(*at).binary_search(&place).is_ok())
        });
        watch.step(1 + stand)?;
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

impl ScoringPlan {
    /// Looks up the terms of a query in all parts.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a condition that expands to too many terms; `ERR_INTEGRITY` if a segment cannot be
    /// read; `ERR_TIMEOUT`.
    pub(super) fn of(
        question: &FullTextQuery,
        extent: CollectionStats,
        lookup: &TermLookup<'_>,
    ) -> Result<Self> {
        let norms = LengthNorms::new(extent.average_length());
        let mut plan =
            Self { clauses: Vec::new(), must_not: Vec::new(), norms, collection: extent };
        for clause in question.clauses() {
            match clause.occur {
                Occur::MustNot => plan.must_not.push(clause_terms(clause, lookup)?),
                Occur::Should | Occur::Must => plan.add_scored(clause, lookup)?,
                Occur::Boost => {}
            }
        }
        for clause in question.clauses().iter().filter(|clause| clause.occur == Occur::Boost) {
            plan.add_scored(clause, lookup)?;
        }
        plan.must_not.retain(|whats| !whats.is_empty());
        Ok(plan)
    }

    /// An upper bound on scores: that of a document with every term at unlimited frequency.
    pub(super) fn max_score(&self) -> f64 {
        self.clauses.iter().map(|unit| unit.value).sum()
    }

    /// Returns `true` if the search library can prune the single terms of the query: there are some, no
    /// exclusions, and no other clause is required.
    pub(super) fn can_prune(&self) -> bool {
        let is_term = |unit: &ScoredClause| matches!(unit.what, ClauseTerms::Term(_));
        self.must_not.is_empty()
            && self.clauses.len() <= MAX_PRUNABLE_CLAUSES
            && self.clauses.iter().any(|unit| is_term(unit) && !unit.boosts)
            && self.clauses.iter().all(|unit| is_term(unit) || !(unit.must || unit.boosts))
    }

    /// Returns `false` if the library would score every document with a boosting term, since too few match.
    pub(super) fn is_worth_pruning(&self, wanted: u64) -> bool {
        let has_boosts = self.clauses.iter().any(|unit| unit.boosts);
        let found = self.clauses.iter().filter(|unit| !unit.boosts);
        let most = found.map(|unit| unit.what.max_documents()).fold(0, u64::saturating_add);
        !has_boosts || most > wanted.saturating_mul(4)
    }

    fn add_scored(&mut self, clause: &Clause, lookup: &TermLookup<'_>) -> Result<()> {
        let (must, boosts) = (clause.occur == Occur::Must, clause.occur == Occur::Boost);
        for what in clause_terms(clause, lookup)? {
            let value = (K1 + 1.0) * what.idf(self.collection.documents);
            self.clauses.push(ScoredClause { must, boosts, value, what });
        }
        Ok(())
    }
}

/// The terms of a clause. A word of several terms gives a scored clause for each.
fn clause_terms(clause: &Clause, lookup: &TermLookup<'_>) -> Result<Vec<ClauseTerms>> {
    // An excluded term is not scored: its frequency is nobody's to know, and need not be counted.
    let seen = lookup.seen.filter(|_| clause.occur != Occur::MustNot);
    let unscored = TermLookup { parts: lookup.parts, watch: lookup.watch, seen };
    let sought = |term: &str| ResolvedTerm::of(term, &unscored);
    let phrase = |terms: &Phrase| -> Result<ClauseTerms> {
        let terms = terms.iter().map(|(term, far)| Ok((sought(term)?, *far)));
        Ok(ClauseTerms::Phrase(terms.collect::<Result<_>>()?))
    };
    let ask = &clause.ask;
    match ask {
        TermMatch::Word(terms) => {
            terms.iter().map(|term| Ok(ClauseTerms::Term(sought(term)?))).collect()
        }
        TermMatch::Phrase(terms) if terms.is_empty() => Ok(Vec::new()),
        TermMatch::Phrase(terms) => Ok(vec![phrase(terms)?]),
        TermMatch::Identifier(term, phrases) => {
            let mut spellings = vec![ClauseTerms::Term(sought(term)?)];
            for terms in phrases.iter().filter(|terms| !terms.is_empty()) {
                spellings.push(phrase(terms)?);
            }
            Ok(vec![ClauseTerms::Spellings(spellings)])
        }
        TermMatch::Prefix(_) | TermMatch::Begin(..) | TermMatch::Fuzzy(..) => {
            let terms = expand(clause, lookup)?.into_iter();
            let terms = terms.map(|(term, worth)| Ok((sought(&term)?, worth)));
            Ok(vec![ClauseTerms::Group(terms.collect::<Result<_>>()?)])
        }
    }
}
