//! The plan of a query: its terms with their weights, from statistics over all live documents. It is the same
//! for every part, so that a document's score does not depend on the part it is in.

use std::borrow::Cow;

use super::expand::expand;
use super::part::{Found, Part, Words};
use super::prune::MOST_UNITS;
use super::question::{Ask, Clause, Occur, Question};
use super::score::{Extent, K1, Norms, rarity};
use super::watch::Watch;
use crate::error::Result;

/// The clauses of a query with their weights.
#[derive(Debug)]
pub(super) struct Plan {
    /// The scored clauses, in the order of the query; scores are added in this order.
    pub(super) units: Vec<Unit>,
    /// The excluded clauses; one excludes a document that has all its members.
    pub(super) barred: Vec<Vec<What>>,
    /// The length normalisation of BM25.
    pub(super) norms: Norms,
    /// The collection the weights were computed for.
    pub(super) extent: Extent,
}

/// A scored clause.
#[derive(Debug)]
pub(super) struct Unit {
    /// True if a document must match it.
    pub(super) must: bool,
    /// The most it adds to a score.
    pub(super) value: f64,
    /// The terms it matches.
    pub(super) what: What,
}

/// The terms of a clause.
#[derive(Debug)]
pub(super) enum What {
    /// A term.
    Term(Sought),
    /// Terms at these relative positions.
    Phrase(Vec<(Sought, u32)>),
    /// Any of several terms, each with a weight: the best of them counts.
    Group(Vec<(Sought, f64)>),
}

/// A term, looked up in all parts.
#[derive(Debug)]
pub(super) struct Sought {
    /// The term.
    pub(super) term: Box<str>,
    /// The term in each part, `None` where a part does not have it.
    found: Vec<Option<Found>>,
    /// Its document frequency among live documents.
    pub(super) frequency: u64,
}

/// The terms of a clause, resolved to one part.
pub(super) enum Local<'p> {
    /// A term.
    Term(&'p Found),
    /// Terms at these relative positions.
    Phrase(Vec<(&'p Found, u32)>),
    /// Terms, each with a weight.
    Group(Vec<(&'p Found, f64)>),
    /// The part has no document that matches.
    Nothing,
}

impl Sought {
    fn of(term: &str, parts: &[Part<'_>], watch: &Watch<'_>) -> Result<Self> {
        watch.step(parts.len())?;
        let mut sought =
            Self { term: term.into(), found: Vec::with_capacity(parts.len()), frequency: 0 };
        for part in parts {
            let found = part.find(term)?;
            let frequency = found.as_ref().map_or(0, |found| part.frequency(found));
            sought.frequency = sought.frequency.saturating_add(frequency);
            sought.found.push(found);
        }
        Ok(sought)
    }

    /// The term in the part at this index.
    fn at(&self, part: usize) -> Option<&Found> {
        self.found.get(part)?.as_ref()
    }
}

impl What {
    /// Resolves the terms to the part at this index.
    pub(super) fn localize(&self, part: usize) -> Local<'_> {
        match self {
            Self::Term(term) => term.at(part).map_or(Local::Nothing, Local::Term),
            Self::Phrase(terms) => {
                let found = terms.iter().map(|(term, far)| Some((term.at(part)?, *far)));
                found.collect::<Option<_>>().map_or(Local::Nothing, Local::Phrase)
            }
            Self::Group(terms) => {
                let found = terms.iter().filter_map(|(term, worth)| Some((term.at(part)?, *worth)));
                Local::Group(found.collect())
            }
        }
    }

    /// An upper bound on the number of live documents that match.
    pub(super) fn most_documents(&self) -> u64 {
        match self {
            Self::Term(term) => term.frequency,
            Self::Phrase(terms) => {
                terms.iter().map(|(term, _)| term.frequency).min().unwrap_or_default()
            }
            Self::Group(terms) => {
                terms.iter().map(|(term, _)| term.frequency).fold(0, u64::saturating_add)
            }
        }
    }

    /// The idf: of a phrase, the sum over its terms; of a group, that of a term in as many documents as the
    /// members in sum.
    fn rarity(&self, documents: u64) -> f64 {
        match self {
            Self::Term(term) => rarity(documents, term.frequency),
            Self::Phrase(terms) => {
                terms.iter().map(|(term, _)| rarity(documents, term.frequency)).sum()
            }
            Self::Group(terms) => {
                let sum = terms.iter().map(|(term, _)| term.frequency).sum::<u64>();
                rarity(documents, sum)
            }
        }
    }
}

impl Local<'_> {
    /// The saturated term frequency of BM25 in one document, in [0, 1): 0 if the document does not match.
    ///
    /// A phrase counts as often as its least frequent term.
    ///
    /// # Errors
    /// `ERR_TIMEOUT`.
    pub(super) fn share(
        &self,
        words: &Words<'_>,
        (norms, code): (&Norms, u8),
        watch: &Watch<'_>,
    ) -> Result<f64> {
        let of = |found: &Found| match words.weight(found) {
            0 => 0.0,
            weight => norms.share(weight, code),
        };
        Ok(match self {
            Self::Term(found) => of(found),
            Self::Phrase(terms) => {
                let least = terms.iter().map(|(found, _)| words.weight(found)).min().unwrap_or(0);
                if least == 0 || !occurs(words, terms, watch)? {
                    return Ok(0.0);
                }
                norms.share(least, code)
            }
            Self::Group(members) => {
                watch.step(members.len())?;
                members.iter().map(|(found, worth)| worth * of(found)).fold(0.0, f64::max)
            }
            Self::Nothing => 0.0,
        })
    }
}

/// Returns `true` if terms occur at their relative positions anywhere in a document. Each position of the
/// rarest term is tried, checking the next rarest first.
fn occurs(words: &Words<'_>, terms: &[(&Found, u32)], watch: &Watch<'_>) -> Result<bool> {
    let mut known: Vec<(&Found, Cow<'_, [u32]>)> = Vec::new();
    for (found, _) in terms {
        if !known.iter().any(|(other, _)| other.is(found)) {
            let places = words.places(found);
            watch.step(places.len())?;
            known.push((found, places));
        }
    }
    known.sort_by_key(|(_, places)| places.len());
    let mut stands: Vec<(usize, u32)> = Vec::with_capacity(terms.len());
    for (found, distance) in terms {
        let at = known.iter().position(|(other, _)| other.is(found));
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

impl Plan {
    /// Looks up the terms of a query in all parts.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a condition that expands to too many terms; `ERR_INTEGRITY` if a segment cannot be
    /// read; `ERR_TIMEOUT`.
    pub(super) fn of(
        question: &Question,
        parts: &[Part<'_>],
        extent: Extent,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let norms = Norms::new(extent.average());
        let mut plan = Self { units: Vec::new(), barred: Vec::new(), norms, extent };
        for clause in question.clauses() {
            match clause.occur {
                Occur::MustNot => plan.barred.push(whats(clause, parts, watch)?),
                Occur::Should | Occur::Must => plan.count(clause, parts, watch)?,
            }
        }
        plan.barred.retain(|whats| !whats.is_empty());
        Ok(plan)
    }

    /// An upper bound on scores: that of a document with every term at unlimited frequency.
    pub(super) fn ceiling(&self) -> f64 {
        self.units.iter().map(|unit| unit.value).sum()
    }

    /// Returns `true` if the search library can prune the query: some single terms, and no exclusions.
    pub(super) fn can_prune(&self) -> bool {
        let plain = |unit: &Unit| matches!(unit.what, What::Term(_));
        self.barred.is_empty()
            && !self.units.is_empty()
            && self.units.len() <= MOST_UNITS
            && self.units.iter().all(plain)
    }

    fn count(&mut self, clause: &Clause, parts: &[Part<'_>], watch: &Watch<'_>) -> Result<()> {
        let must = clause.occur == Occur::Must;
        for what in whats(clause, parts, watch)? {
            let value = (K1 + 1.0) * what.rarity(self.extent.documents);
            self.units.push(Unit { must, value, what });
        }
        Ok(())
    }
}

/// The terms of a clause. A word of several terms gives a scored clause for each.
fn whats(clause: &Clause, parts: &[Part<'_>], watch: &Watch<'_>) -> Result<Vec<What>> {
    let sought = |term: &str| Sought::of(term, parts, watch);
    let ask = &clause.ask;
    match ask {
        Ask::Word(terms) => terms.iter().map(|term| Ok(What::Term(sought(term)?))).collect(),
        Ask::Phrase(terms) if terms.is_empty() => Ok(Vec::new()),
        Ask::Phrase(terms) => {
            let terms = terms.iter().map(|(term, far)| Ok((sought(term)?, *far)));
            Ok(vec![What::Phrase(terms.collect::<Result<_>>()?)])
        }
        Ask::Prefix(_) | Ask::Begin(..) | Ask::Fuzzy(..) => {
            let terms = expand(clause, parts, watch)?.into_iter();
            let terms = terms.map(|(term, worth)| Ok((sought(&term)?, worth)));
            Ok(vec![What::Group(terms.collect::<Result<_>>()?)])
        }
    }
}
