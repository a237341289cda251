//! Answers to a text search: the full text proposes, every grain is rechecked, and the best come first.
//!
//! If few grains meet the other conditions, those are scored one by one. Else the full text is asked for its
//! best, and checks each candidate before it takes the place of another.

use std::cell::RefCell;
use std::ops::ControlFlow;

use grainstore_cal::{Reach, RecallVisitor, Score, Search, StopReason};
use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState, Header};
use grainstore_index::Sequence;
use grainstore_index::text::{
    DocumentReader, FullTextQuery, Hit, Language, Occur, PreparedSearch, SearchAfter, SeenFilter,
    Settings, field_matches,
};

use super::access_path::AccessPath;
use super::cursor::{RankingKind, ScorePosition};
use super::expand::{ExpansionSeed, LinkedAnswer};
use super::scan::{CandidateScan, ScanError};
use super::visible::VisibleGrains;
use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::handle::session::Session;

/// Most grains that are scored one by one rather than found by their terms.
pub(super) const MAX_SCORED_DIRECTLY: u64 = 2048;
/// Number of grains with the terms up to which these are checked rather than those that meet the other
/// conditions.
const MAX_CHECKED_BY_TERMS: u64 = 128;
/// Answers asked of the full text at once: the first time, unless more are wanted, and at most.
const FIRST_BATCH: usize = 64;
const MAX_BATCH: usize = 4096;

/// A text search parsed for the full text.
pub(crate) struct ParsedSearch {
    /// The union of all its parts.
    union: FullTextQuery,
    /// Each part with its field, if the parts have to be matched separately.
    parts: Vec<(FullTextQuery, Option<&'static str>)>,
    settings: Settings,
    /// Reader of the grains that are returned.
    reader: RefCell<DocumentReader>,
}

impl ParsedSearch {
    /// Parses the search of a query, in the language of the namespaces it searches.
    ///
    /// # Errors
    /// `ERR_LIMIT` for too many terms.
    pub(crate) fn parse(session: &Session, reach: &Reach, search: &Search) -> Result<Self> {
        let language = language_of(session, reach);
        let settings = Settings::new(language);
        let mut parts = Vec::with_capacity(search.asks().len());
        for ask in search.asks() {
            parts.push((FullTextQuery::parse(&ask.text, language)?, ask.field));
        }
        let whole = FullTextQuery::union(parts.iter().map(|(question, _)| question));
        if let [(_, None)] = parts.as_slice() {
            parts.clear();
        }
        Ok(Self {
            union: whole,
            parts,
            settings,
            reader: RefCell::new(DocumentReader::new(settings)),
        })
    }

    /// The union of all its parts.
    pub(super) fn query(&self) -> &FullTextQuery {
        &self.union
    }

    /// The fields of a grain that match any of it, under their payload names.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, which a grain of the store never gives.
    pub(crate) fn matched_fields(&self, grain: &Grain) -> Result<Vec<String>> {
        let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
        let blob = grain.encode(encoding)?;
        with_fields(blob.bytes(), |grain| Ok(self.matched_fields_in(grain)))
    }

    /// Like [`ParsedSearch::matched_fields`], for a grain that is still encoded.
    pub(super) fn matched_fields_in(&self, grain: &GrainRef<'_>) -> Vec<String> {
        let mut reader = self.reader.borrow_mut();
        let names = reader.matched_fields(grain, &self.union);
        names.into_iter().map(str::to_owned).collect()
    }
}

/// A rule that decides whether a visible grain is returned: gives its address if so.
type AdmitRule<'w> =
    fn(&CandidateScan<'w>, &[u8], &GrainRef<'_>, &GrainState) -> Option<ContentAddress>;

/// The language in which a session searches these namespaces.
pub(super) fn language_of(session: &Session, reach: &Reach) -> Language {
    let own = session.options().namespace.as_deref().unwrap_or_default();
    let namespace = match reach {
        Reach::Session => own,
        Reach::Exact(namespace) | Reach::Subtree(namespace) => namespace,
    };
    session.store().inner().library().settings().languages.of(namespace)
}

/// A text search while it runs.
pub(super) struct SearchRun<'r> {
    parsed: ParsedSearch,
    prepared: PreparedSearch<'r>,
    /// The parts without a field, each prepared separately.
    parts: Vec<PreparedSearch<'r>>,
    /// The score of a grain with every term at its highest weight.
    ceiling: f64,
}

impl SearchRun<'_> {
    /// Returns `true` if its parts have to be matched separately.
    pub(super) fn has_parts(&self) -> bool {
        !self.parsed.parts.is_empty()
    }

    /// The score of a grain with every term at its highest weight.
    pub(super) fn ceiling(&self) -> f64 {
        self.ceiling
    }

    /// Returns `true` if some terms are required or excluded, so that even a near grain may not be an answer.
    pub(super) fn is_strict(&self) -> bool {
        let clauses = self.parsed.union.clauses();
        clauses.iter().any(|clause| matches!(clause.occur, Occur::Must | Occur::MustNot))
    }

    /// The grains among these that match, the best first.
    pub(super) fn best_of(&self, few: &[Sequence]) -> Result<Vec<(Sequence, f64)>> {
        let scores = self.prepared.scores_of(few)?;
        let scored = few.iter().zip(scores).filter_map(|(at, score)| Some((*at, score?)));
        let mut scored: Vec<(Sequence, f64)> = scored.collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(scored)
    }

    /// Returns `true` if a grain matches each part.
    fn matches_parts(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<bool> {
        for part in &self.parts {
            if !part.is_match(at)? {
                return Ok(false);
            }
        }
        let ParsedSearch { parts, settings, .. } = &self.parsed;
        let in_fields = parts.iter().filter_map(|(question, field)| Some((question, (*field)?)));
        let mut answers =
            in_fields.map(|(question, field)| field_matches(grain, field, question, settings));
        Ok(answers.all(|answers| answers))
    }

    /// The scores of grains; `None` for those that do not match.
    pub(super) fn scores_of(&self, of: &[Sequence]) -> Result<Vec<Option<f64>>> {
        Ok(self.prepared.scores_of(of)?)
    }
}

impl<'w> CandidateScan<'w> {
    /// Passes every answer to the text search to `visit`, the best first, until it has enough.
    pub(super) fn ranked(
        &mut self,
        search: &Search,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        self.rank_by(RankingKind::Text)?;
        let Some(ranked) = self.looked_up(search)? else { return Ok(ControlFlow::Continue(())) };
        // If hardly any grain has the terms, checking the other conditions on those is cheapest.
        let few = match ranked.prepared.max_matches() <= MAX_CHECKED_BY_TERMS {
            true => None,
            false => self.few()?,
        };
        if let Some(expansion) = self.query.expansion() {
            let seeds = self.best(&ranked, few.as_deref(), expansion.seeds)?;
            self.raise(&ranked, &seeds, expansion)?;
        }
        let ended = match few {
            Some(few) => self.one_by_one(&ranked, &few, visit)?,
            None => self.by_words(&ranked, visit)?,
        };
        while ended.is_continue()
            && let Some(LinkedAnswer { sequence, rank, score, .. }) = self.raised.pop()
        {
            if self.give(sequence, rank, score, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ended)
    }

    /// The answers among grains of one score, by address.
    pub(super) fn in_order(
        &mut self,
        ranked: &SearchRun<'_>,
        equal: &[(Sequence, f64)],
    ) -> Result<Vec<ExpansionSeed>, ScanError> {
        let mut answers = Vec::with_capacity(equal.len());
        for (sequence, rank) in equal {
            let address = self.judge(Some(ranked), *sequence)?;
            let seed = |address| ExpansionSeed { sequence: *sequence, address, rank: *rank };
            answers.extend(address.map(seed));
        }
        answers.sort_unstable_by_key(|seed| seed.address);
        Ok(answers)
    }

    /// Prepares the text search of the query; `None` if it has no terms.
    pub(super) fn looked_up(
        &mut self,
        search: &Search,
    ) -> Result<Option<SearchRun<'w>>, ScanError> {
        let view = self.view;
        let sought = ParsedSearch::parse(self.session, self.query.reach(), search)?;
        if sought.union.is_empty() {
            return Ok(None);
        }
        let cancel = self.cancel;
        let texts = view.texts(self.session.store().inner().library(), cancel)?;
        let texts = texts.ok_or(ScanError::Stopped(StopReason::Cancelled))?;
        let stop = || cancel.stop_reason().is_some();
        let statistics = self.rank().map(|rank| rank.statistics.as_slice());
        let visible = VisibleGrains::of(self.session, view)?;
        let sees = visible.as_ref().map(|visible| |sequence| visible.has(sequence));
        let seen = sees.as_ref().map(|sees| sees as &SeenFilter<'_>);
        let ask = |question: &FullTextQuery, statistics| -> Result<_, ScanError> {
            let asked =
                texts.prepare_cancellable(&view.blinded_query(question)?, statistics, seen, stop);
            visible.as_ref().map_or(Ok(()), VisibleGrains::failed)?;
            Ok(asked?)
        };
        let asked = ask(&sought.union, statistics)?;
        let everywhere = sought.parts.iter().filter(|(_, field)| field.is_none());
        let mut parts = Vec::new();
        for (question, _) in everywhere {
            parts.push(ask(question, None)?);
        }
        self.statistics = asked.statistics();
        let ceiling = asked.max_score();
        Ok(Some(SearchRun { parsed: sought, prepared: asked, parts, ceiling }))
    }

    /// The grains that can meet the other conditions, ascending; `None` if they are more than
    /// `FEW`.
    pub(super) fn few(&mut self) -> Result<Option<Vec<Sequence>>, ScanError> {
        let listed = self.query.address().map(|address| vec![address]);
        let among = || self.query.addresses().map(<[_]>::to_vec);
        let mut found = Vec::new();
        if let Some(addresses) = listed.or_else(among) {
            for address in addresses {
                found.extend(self.view.sequence_of(&address)?);
            }
        } else {
            let reader = self.view.index();
            let access = AccessPath::choose(&reader, self.session, self.query)?;
            let Some(shortest) = access.lists.first() else { return Ok(None) };
            let size = shortest.estimate_rows(&reader, (&access.namespaces, access.times))?;
            if size.postings > MAX_SCORED_DIRECTLY {
                return Ok(None);
            }
            for posting in self.postings_of(&access)? {
                found.push(posting?.sequence);
            }
        }
        found.sort_unstable();
        Ok(Some(found))
    }

    /// Scores a few grains, and checks those that match.
    fn one_by_one(
        &mut self,
        ranked: &SearchRun<'_>,
        few: &[Sequence],
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let mut scored = ranked.best_of(few)?;
        if let Some(rank) = self.rank() {
            scored.retain(|(_, score)| *score <= rank.score);
        }
        for equal in scored.chunk_by(|a, b| a.1 == b.1) {
            for seed in self.in_order(ranked, equal)? {
                let ExpansionSeed { address, rank: score, .. } = seed;
                let is_behind =
                    self.rank().is_none_or(|rank| (score, &rank.address) < (rank.score, &address));
                if is_behind && self.give_words(ranked, seed, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Asks the full text for its best answers, and for more as long as they are wanted.
    fn by_words(
        &mut self,
        ranked: &SearchRun<'_>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let after = |rank: &ScorePosition| SearchAfter {
            score: rank.score,
            address: *rank.address.as_bytes(),
        };
        let mut after = self.rank().map(after);
        let wanted = match (self.query.limit(), self.given) {
            (None, 0) => FIRST_BATCH,
            // One more shows whether there is another page.
            (limit, given) => limit.unwrap_or(0).max(given.saturating_add(1)),
        };
        let mut at_once = wanted.clamp(1, MAX_BATCH);
        loop {
            let hits = self.best_words(ranked, at_once, after)?;
            for Hit { sequence, score, address } in &hits {
                let address = ContentAddress::from_bytes(*address);
                let answer = ExpansionSeed { sequence: *sequence, address, rank: *score };
                if self.give_words(ranked, answer, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if hits.len() < at_once {
                return Ok(ControlFlow::Continue(()));
            }
            after = hits.last().map(|hit| SearchAfter { score: hit.score, address: hit.address });
            at_once = at_once.saturating_mul(16).min(MAX_BATCH);
        }
    }

    /// The best answers by text, after one of them.
    pub(super) fn best_words(
        &mut self,
        ranked: &SearchRun<'_>,
        limit: usize,
        after: Option<SearchAfter>,
    ) -> Result<Vec<Hit>, ScanError> {
        let mut failed = None;
        let hits = ranked.prepared.search(limit, after, &mut |sequence| {
            // The callback cannot return this error; it is returned below.
            if failed.is_some() {
                return Ok(None);
            }
            let judged = self.judge(Some(ranked), sequence);
            let judged = judged.unwrap_or_else(|halt| {
                failed = Some(halt);
                None
            });
            Ok(judged.map(|address| *address.as_bytes()))
        });
        match failed {
            Some(halt) => Err(halt),
            None => Ok(hits?),
        }
    }

    /// Checks a grain found by the full text or a vector; returns its address if it may be returned. If the
    /// search has parts, it must match each of them.
    pub(super) fn judge(
        &mut self,
        ranked: Option<&SearchRun<'_>>,
        sequence: Sequence,
    ) -> Result<Option<ContentAddress>, ScanError> {
        self.judge_by(ranked, sequence, Self::admitted)
    }

    /// Like [`CandidateScan::judge`], by another rule.
    pub(super) fn judge_by(
        &mut self,
        ranked: Option<&SearchRun<'_>>,
        sequence: Sequence,
        admitted: AdmitRule<'w>,
    ) -> Result<Option<ContentAddress>, ScanError> {
        let origin = self.after.as_ref().map(|(origin, _)| origin.sequence);
        // The full text may have followed a later view.
        if sequence > origin.unwrap_or(self.last) {
            return Ok(None);
        }
        self.tick()?;
        if ranked.is_some_and(SearchRun::has_parts) {
            // Text in one field is read from the grain, which may be large.
            self.cancel.check().map_err(ScanError::Stopped)?;
        }
        let Some(state) = self.state(sequence)? else { return Ok(None) };
        let address = self.view.with_live_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                if !self.look_at(sequence, grain)? {
                    return Ok(None);
                }
                let Some(address) = admitted(self, blob, grain, &state) else { return Ok(None) };
                let answers = match ranked {
                    Some(ranked) => ranked.matches_parts(sequence, grain)?,
                    None => true,
                };
                Ok(answers.then_some(address))
            })
        })?;
        Ok(address)
    }

    /// Passes on an answer by text if its score is enough, after those that links have raised above it.
    fn give_words(
        &mut self,
        ranked: &SearchRun<'_>,
        ExpansionSeed { sequence, address, rank: score }: ExpansionSeed,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        while let Some(LinkedAnswer { sequence, rank, score, .. }) =
            self.raised.pop_before(score, address)
        {
            if self.give(sequence, rank, score, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if self.raised.has(sequence) {
            return Ok(ControlFlow::Continue(()));
        }
        // Rounding may take the best possible score a little above 1.
        let value = (score / ranked.ceiling).min(1.0);
        self.give(sequence, score, Score { value, text: Some(value), ..Score::STRUCTURAL }, visit)
    }

    /// Passes on an answer if its score is enough; `rank` is the score it is ordered by.
    pub(super) fn give(
        &mut self,
        sequence: Sequence,
        rank: f64,
        score: Score,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let floor = self.query.floor().filter(|_| !self.floorless);
        if floor.is_some_and(|floor| !floor.admits(score.value)) {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(state) = self.state(sequence)? else { return Ok(ControlFlow::Continue(())) };
        self.scores.push(rank);
        self.show(sequence, Some((&state, score)), visit)
    }
}
