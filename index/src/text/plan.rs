//! A question with its statistics: which terms count how much, over all live documents. The same
//! for every part, so that a document scores the same wherever it is.

use std::borrow::Cow;

use super::expand::expand;
use super::part::{Found, Part, Words};
use super::prune::MOST_UNITS;
use super::question::{Ask, Clause, Occur, Question};
use super::score::{Extent, K1, Norms, rarity};
use super::watch::Watch;
use crate::error::Result;

/// What is to be matched and what it is worth.
#[derive(Debug)]
pub(super) struct Plan {
    /// What counts, in the order of the question; scores are added in this order.
    pub(super) units: Vec<Unit>,
    /// What no answer has: of each, all together.
    pub(super) barred: Vec<Vec<What>>,
    /// What lengths take from words.
    pub(super) norms: Norms,
    /// The documents it was made for.
    pub(super) extent: Extent,
}

/// One thing that counts.
#[derive(Debug)]
pub(super) struct Unit {
    /// Whether an answer must have it.
    pub(super) must: bool,
    /// What it adds at most.
    pub(super) value: f64,
    /// What it is.
    pub(super) what: What,
}

/// What counts.
#[derive(Debug)]
pub(super) enum What {
    /// A term.
    Term(Sought),
    /// Terms at these distances.
    Phrase(Vec<(Sought, u32)>),
    /// Any of several terms: the best of them counts, at what it is worth of the whole.
    Group(Vec<(Sought, f64)>),
}

/// A term, looked up in all parts.
#[derive(Debug)]
pub(super) struct Sought {
    /// The term.
    pub(super) term: Box<str>,
    /// As each part has it.
    found: Vec<Option<Found>>,
    /// How many live documents have it.
    pub(super) frequency: u64,
}

/// What counts, in the terms of one part.
pub(super) enum Local<'p> {
    /// A term.
    Term(&'p Found),
    /// Terms at these distances.
    Phrase(Vec<(&'p Found, u32)>),
    /// Terms, and what each is worth of the whole.
    Group(Vec<(&'p Found, f64)>),
    /// The part has no document with it.
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

    /// As the part of this position has it.
    fn at(&self, part: usize) -> Option<&Found> {
        self.found.get(part)?.as_ref()
    }
}

impl What {
    /// In the terms of the part of this position.
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

    /// How many live documents can have it, at most.
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

    /// What it says about a document that has it: a phrase what its terms say together, a group
    /// what a term would that is in as many documents as its members in sum.
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
    /// How far it goes towards its value in one document: 0 where the document has it not.
    ///
    /// A phrase counts as often as the rarest of its words.
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

/// Whether terms stand at their distances anywhere in a document: looked for around each place of the
/// rarest of them, beside the next rarest first.
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
    /// Looks up what a question asks for in all parts.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a condition that stands for too many words; `ERR_INTEGRITY` if a segment cannot
    /// be read; `ERR_TIMEOUT`.
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

    /// What no document scores above, even if it had all words of the question in plenty.
    pub(super) fn ceiling(&self) -> f64 {
        self.units.iter().map(|unit| unit.value).sum()
    }

    /// Whether the search library can prune it: some terms, and nothing barred.
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

/// What a clause counts by. A word of several terms counts by each.
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
