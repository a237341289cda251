//! A question put to a full text: its answers, all by one set of statistics.

use super::best::{After, Best, Hit, Judge};
use super::exact::{Locals, answers};
use super::few::{few, offer};
use super::part::Part;
use super::plan::{Plan, Sought, Unit, What};
use super::prune::Pruned;
use super::question::Question;
use super::scan::scan;
use super::score::Extent;
use super::texts::Texts;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::posting::Sequence;

/// Documents that are scored without a look whether they have any of the words.
const FEW: usize = 8;

/// A question with what its words are worth among all live documents.
///
/// A question in which nothing counts (only what no answer has) has no answers.
pub struct Asked<'t> {
    texts: &'t Texts,
    /// One a question: no document is an answer to two of them.
    plans: Vec<Plan>,
    watch: Watch<'t>,
}

impl Texts {
    /// Looks up what a question asks for.
    ///
    /// # Errors
    /// `ERR_LIMIT` where a prefix or a misspelt word that must be there, or must not, stands for more
    /// than [`MOST_STRICT_TERMS`](super::MOST_STRICT_TERMS) words; `ERR_INTEGRITY` if a segment cannot be
    /// read.
    pub fn ask(&self, question: &Question) -> Result<Asked<'_>> {
        self.ask_until(std::slice::from_ref(question), None, || false)
    }

    /// As [`ask`](Self::ask), scored as an earlier full text of the same grains and more, or of some
    /// of them, scored the same question: by its [`Asked::statistics`].
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `ERR_INTEGRITY` if the statistics are of another question.
    pub fn ask_again(&self, question: &Question, statistics: &[u8]) -> Result<Asked<'_>> {
        self.ask_until(std::slice::from_ref(question), Some(statistics), || false)
    }

    /// As [`ask`](Self::ask), or as [`ask_again`](Self::ask_again) where statistics are given, until
    /// `stop` says that nobody waits any longer. It is asked now and then, here and for as long as the
    /// answers are looked for: what is under way then ends with `ERR_TIMEOUT`.
    ///
    /// Several questions are one in the tokens of several keyholders: a document has those of one, and
    /// answers one.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read, or the statistics are of another question;
    /// `ERR_TIMEOUT`.
    pub fn ask_until<'t>(
        &'t self,
        questions: &[Question],
        statistics: Option<&[u8]>,
        stop: impl Fn() -> bool + 't,
    ) -> Result<Asked<'t>> {
        let watch = Watch::new(stop);
        let parts: Vec<Part<'_>> = self.parts().collect();
        let plans = |extent| -> Result<Vec<Plan>> {
            questions.iter().map(|question| Plan::of(question, &parts, extent, &watch)).collect()
        };
        let Some(statistics) = statistics else {
            let plans = plans(self.extent())?;
            return Ok(Asked { texts: self, plans, watch });
        };
        let mut numbers =
            statistics.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let other = || Error::integrity("the statistics are of another question");
        let (Some(documents), Some(length)) = (numbers.next(), numbers.next()) else {
            return Err(other());
        };
        let mut plans = plans(Extent { documents, length })?;
        for unit in plans.iter_mut().flat_map(|plan| &mut plan.units) {
            let value = f64::from_bits(numbers.next().ok_or_else(other)?);
            unit.value = Some(value).filter(|value| value.is_finite()).ok_or_else(other)?;
        }
        if numbers.next().is_some() {
            return Err(other());
        }
        Ok(Asked { texts: self, plans, watch })
    }
}

impl Asked<'_> {
    /// The best answers, best first: by descending score, of one score by ascending address.
    /// `after` is the last answer of the page before. The judge is asked about grains that could
    /// still come in, in any order, and about none twice; what it leaves out is no answer. It does
    /// not change the scores of others: those count all documents.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read; those of the judge; `ERR_TIMEOUT`.
    pub fn search(
        &self,
        limit: usize,
        after: Option<After>,
        judge: &mut Judge<'_>,
    ) -> Result<Vec<Hit>> {
        Ok(self.search_counted(limit, after, judge)?.0)
    }

    /// As [`search`](Self::search), with the number of documents that were scored one by one.
    pub(super) fn search_counted(
        &self,
        limit: usize,
        after: Option<After>,
        judge: &mut Judge<'_>,
    ) -> Result<(Vec<Hit>, u64)> {
        let mut best = Best::new(limit, after, judge);
        let mut scored = 0_u64;
        for plan in &self.plans {
            scored = scored.saturating_add(self.search_by(plan, &mut best)?);
        }
        Ok((best.finish(), scored))
    }

    fn search_by(&self, plan: &Plan, best: &mut Best<'_, '_>) -> Result<u64> {
        let Self { texts, watch, .. } = self;
        let mut pruned = None;
        let mut scored = 0_u64;
        for (at, part) in texts.parts().enumerate() {
            let locals = Locals::of(plan, at);
            if let Some(documents) = few(&locals, part)? {
                offer(&documents, &locals, plan, part, best, watch)?;
                scored = scored.saturating_add(documents.len() as u64);
                continue;
            }
            match part {
                Part::Segment(segment, gone) if plan.can_prune() => {
                    if pruned.is_none() {
                        pruned = Some(Pruned::of(plan, texts.searcher())?);
                    }
                    let Some(pruned) = &pruned else { continue };
                    let part = (segment, gone);
                    let more = pruned.search(plan, &locals, part, best, watch)?;
                    scored = scored.saturating_add(more);
                }
                _ => scan_best(plan, at, part, best, watch)?,
            }
        }
        Ok(scored)
    }

    /// How many grains answer, counted up to `at_most`.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub fn matches(&self, judge: &mut Judge<'_>, at_most: usize) -> Result<usize> {
        let mut count = 0;
        let parts = || self.texts.parts().enumerate();
        for (plan, (at, part)) in self.plans.iter().flat_map(|p| parts().map(move |at| (p, at))) {
            if count >= at_most {
                break;
            }
            scan(plan, at, part, &self.watch, &mut |document, _| {
                count += usize::from(judge(part.sequence(document)?)?.is_some());
                Ok(count >= at_most)
            })?;
        }
        Ok(count.min(at_most))
    }

    /// The score of one grain, bit for bit that of [`search`](Self::search); `None` if it is no
    /// answer.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read.
    pub fn score_of(&self, sequence: Sequence) -> Result<Option<f64>> {
        Ok(self.scores_of(&[sequence])?.pop().flatten())
    }

    /// The scores of several grains, in their order. Soonest done where they ascend.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read.
    pub fn scores_of(&self, sequences: &[Sequence]) -> Result<Vec<Option<f64>>> {
        let mut scores = vec![None; sequences.len()];
        for plan in &self.plans {
            self.score_by(plan, sequences, &mut scores)?;
        }
        Ok(scores)
    }

    /// Puts down the scores of those that answer by this plan.
    fn score_by(
        &self,
        plan: &Plan,
        sequences: &[Sequence],
        scores: &mut [Option<f64>],
    ) -> Result<()> {
        let ascend = sequences.is_sorted();
        for (at, part) in self.texts.parts().enumerate() {
            let locals = Locals::of(plan, at);
            if locals.is_empty() {
                continue;
            }
            let mut from = 0;
            let mut here = Vec::new();
            for (sequence, score) in sequences.iter().zip(scores.iter_mut()) {
                from = if ascend { from } else { 0 };
                let document = part.document_behind(*sequence, &mut from);
                here.extend(document.map(|document| (document, score)));
            }
            here.sort_unstable_by_key(|(document, _)| *document);
            let mut having = match here.len() > FEW {
                true => Some(locals.having(part)?),
                false => None,
            };
            for (document, score) in here {
                if having.as_mut().is_none_or(|having| having.any(document)) {
                    let by_this = locals.score(plan, part, document, &self.watch)?;
                    *score = by_this.or(*score);
                }
            }
        }
        Ok(())
    }

    /// How many documents of all can have something that is asked for, at most.
    #[must_use]
    pub fn most_answers(&self) -> u64 {
        self.units().map(|unit| unit.what.most_documents()).fold(0, u64::saturating_add)
    }

    /// Whether a grain is an answer, without its score, which takes longer.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a segment cannot be read; `ERR_TIMEOUT`.
    pub fn has(&self, sequence: Sequence) -> Result<bool> {
        for (at, part) in self.texts.parts().enumerate() {
            let Some(document) = part.document(sequence) else { continue };
            for plan in &self.plans {
                if answers(plan, (at, part), document, &self.watch)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Ok(false)
    }

    /// What no answer scores above: the score of a document that had all that is asked for in
    /// endless plenty. Words that no document has count too, so that a question whose words are
    /// mostly unknown has no answer near it. 0 if nothing in the question counts.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        self.plans.iter().map(Plan::ceiling).fold(0.0, f64::max)
    }

    /// What scores are made of, to score the same way again: 16 bytes and 8 for each thing that
    /// counts.
    #[must_use]
    pub fn statistics(&self) -> Vec<u8> {
        let extent = self.plans.first().map_or_else(|| self.texts.extent(), |plan| plan.extent);
        let Extent { documents, length } = extent;
        let mut bytes = [documents.to_le_bytes(), length.to_le_bytes()].concat();
        bytes.extend(self.units().flat_map(|unit| unit.value.to_bits().to_le_bytes()));
        bytes
    }

    /// The terms that count, each with the number of documents that have it, for people. A phrase
    /// stands as its terms.
    #[must_use]
    pub fn terms(&self) -> Vec<(String, u64)> {
        let told = |sought: &Sought| (sought.term.to_string(), sought.frequency);
        let terms = self.units().flat_map(|unit| match &unit.what {
            What::Term(term) => vec![told(term)],
            What::Phrase(terms) => terms.iter().map(|(term, _)| told(term)).collect(),
            What::Group(terms) => terms.iter().map(|(term, _)| told(term)).collect(),
        });
        terms.collect()
    }

    fn units(&self) -> impl Iterator<Item = &Unit> {
        self.plans.iter().flat_map(|plan| &plan.units)
    }
}

/// Offers all answers of a part.
fn scan_best(
    plan: &Plan,
    at: usize,
    part: Part<'_>,
    best: &mut Best<'_, '_>,
    watch: &Watch<'_>,
) -> Result<()> {
    scan(plan, at, part, watch, &mut |document, score| {
        if best.floor().is_none_or(|floor| score >= floor) {
            best.offer(score, part.sequence(document)?)?;
        }
        Ok(false)
    })?;
    Ok(())
}
