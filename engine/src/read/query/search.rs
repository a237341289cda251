//! The answer to a search: the full text proposes, every grain is rechecked, the best come first.
//!
//! Few grains that meet the other conditions are scored one by one; else the full text is asked for
//! its best, and says of each whether it may be shown before it takes the place of another.

use std::cell::RefCell;
use std::ops::ControlFlow;

use grainstore_cal::{Reach, Score, Search, Stop, Visit};
use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState, Header};
use grainstore_index::Sequence;
use grainstore_index::text::{
    After, Asked, Hit, Language, Occur, Question, Reader, Settings, answers_in,
};

use super::access::Access;
use super::cursor::{Rank, Ranking};
use super::expand::{Linked, Seed};
use super::walk::{Halt, Walk};
use crate::base::error::Result;
use crate::handle::session::Session;
use crate::state::view::with_fields;

/// Grains that are scored one by one rather than found by their words.
pub(super) const FEW: u64 = 2048;
/// Grains with the words of a question that are judged rather than those that meet its other conditions.
const HARDLY_ANY: u64 = 128;
/// Answers the full text is asked for at once: at first, unless more are wanted, and at most.
const AT_FIRST: usize = 64;
const AT_ONCE: usize = 4096;

/// What a query searches for, in the terms of the full text.
pub(crate) struct Sought {
    /// Everything it asks for.
    whole: Question,
    /// What each part asks for, and in which field, where that has to be looked at by itself.
    parts: Vec<(Question, Option<&'static str>)>,
    settings: Settings,
    /// What reads the grains that are shown.
    reader: RefCell<Reader>,
}

impl Sought {
    /// What a query of a session searches for: its words are of the language of where it looks.
    ///
    /// # Errors
    /// `ERR_LIMIT` for too many words.
    pub(crate) fn of(session: &Session, reach: &Reach, search: &Search) -> Result<Self> {
        let language = language_of(session, reach);
        let settings = Settings::new(language);
        let mut parts = Vec::with_capacity(search.asks().len());
        for ask in search.asks() {
            parts.push((Question::parse(&ask.text, language)?, ask.field));
        }
        let whole = Question::all(parts.iter().map(|(question, _)| question));
        if let [(_, None)] = parts.as_slice() {
            parts.clear();
        }
        Ok(Self { whole, parts, settings, reader: RefCell::new(Reader::new(settings)) })
    }

    /// Everything it asks for.
    pub(super) fn question(&self) -> &Question {
        &self.whole
    }

    /// The fields of a grain that have something of it, under their payload names.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` never, for a grain of the store.
    pub(crate) fn fields_of(&self, grain: &Grain) -> Result<Vec<String>> {
        let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
        let blob = grain.encode(encoding)?;
        with_fields(blob.bytes(), |grain| Ok(self.matched(grain)))
    }

    /// As [`Sought::fields_of`], for a grain that is still encoded.
    pub(super) fn matched(&self, grain: &GrainRef<'_>) -> Vec<String> {
        let mut reader = self.reader.borrow_mut();
        let names = reader.matched_fields(grain, &self.whole);
        names.into_iter().map(str::to_owned).collect()
    }
}

/// What decides whether a walk shows a grain that is seen.
type Admitted<'w> = fn(&Walk<'w>, &[u8], &GrainRef<'_>, &GrainState) -> Option<ContentAddress>;

/// The language in which a session searches there.
pub(super) fn language_of(session: &Session, reach: &Reach) -> Language {
    let own = session.options().namespace.as_deref().unwrap_or_default();
    let namespace = match reach {
        Reach::Session => own,
        Reach::Exact(namespace) | Reach::Subtree(namespace) => namespace,
    };
    session.store().inner().library().wording().languages.of(namespace)
}

/// A search while it runs.
pub(super) struct Ranked<'r> {
    sought: Sought,
    asked: Asked<'r>,
    /// The parts that are asked of all fields together, each looked up once.
    parts: Vec<Asked<'r>>,
    /// The score of a grain that had everything in plenty.
    ceiling: f64,
}

impl Ranked<'_> {
    /// Whether its parts have to be looked at one by one.
    pub(super) fn has_parts(&self) -> bool {
        !self.sought.parts.is_empty()
    }

    /// The score of a grain that had everything in plenty.
    pub(super) fn ceiling(&self) -> f64 {
        self.ceiling
    }

    /// Whether some grains are no answers however near they are.
    pub(super) fn is_strict(&self) -> bool {
        self.sought.whole.clauses().iter().any(|clause| clause.occur != Occur::Should)
    }

    /// Those of some grains that are answers, the best first.
    pub(super) fn scored(&self, few: &[Sequence]) -> Result<Vec<(Sequence, f64)>> {
        let scores = self.asked.scores_of(few)?;
        let scored = few.iter().zip(scores).filter_map(|(at, score)| Some((*at, score?)));
        let mut scored: Vec<(Sequence, f64)> = scored.collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(scored)
    }

    /// Whether a grain answers each part.
    fn is_answered(&self, at: Sequence, grain: &GrainRef<'_>) -> Result<bool> {
        for part in &self.parts {
            if !part.has(at)? {
                return Ok(false);
            }
        }
        let Sought { parts, settings, .. } = &self.sought;
        let in_fields = parts.iter().filter_map(|(question, field)| Some((question, (*field)?)));
        let mut answers =
            in_fields.map(|(question, field)| answers_in(grain, field, question, settings));
        Ok(answers.all(|answers| answers))
    }

    /// The scores of some grains; nothing for those that are no answers.
    pub(super) fn scores_of(&self, of: &[Sequence]) -> Result<Vec<Option<f64>>> {
        Ok(self.asked.scores_of(of)?)
    }
}

impl<'w> Walk<'w> {
    /// Shows every answer to the search of the query, the best first, until `visit` has enough.
    pub(super) fn ranked(
        &mut self,
        search: &Search,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        self.rank_by(Ranking::Words)?;
        let Some(ranked) = self.looked_up(search)? else { return Ok(ControlFlow::Continue(())) };
        // Where hardly any grain has the words, the other conditions are soonest looked at there.
        let few = match ranked.asked.most_answers() <= HARDLY_ANY {
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
            && let Some(Linked { sequence, rank, score, .. }) = self.raised.next()
        {
            if self.give(sequence, rank, score, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ended)
    }

    /// The answers among grains of one score, in their order.
    pub(super) fn in_order(
        &mut self,
        ranked: &Ranked<'_>,
        equal: &[(Sequence, f64)],
    ) -> Result<Vec<Seed>, Halt> {
        let mut answers = Vec::with_capacity(equal.len());
        for (sequence, rank) in equal {
            let address = self.judge(Some(ranked), *sequence)?;
            let seed = |address| Seed { sequence: *sequence, address, rank: *rank };
            answers.extend(address.map(seed));
        }
        answers.sort_unstable_by_key(|seed| seed.address);
        Ok(answers)
    }

    /// What the query searches for, looked up; nothing where it asks for nothing.
    pub(super) fn looked_up(&mut self, search: &Search) -> Result<Option<Ranked<'w>>, Halt> {
        let view = self.view;
        let sought = Sought::of(self.session, self.query.reach(), search)?;
        if sought.whole.is_empty() {
            return Ok(None);
        }
        let cancel = self.cancel;
        let texts = view.texts(self.session.store().inner().library(), cancel)?;
        let texts = texts.ok_or(Halt::Stopped(Stop::Cancelled))?;
        let stop = || cancel.stopped().is_some();
        let statistics = self.rank().map(|rank| rank.statistics.as_slice());
        let asked = texts.ask_until(&view.in_tokens(&sought.whole)?, statistics, stop)?;
        let everywhere = sought.parts.iter().filter(|(_, field)| field.is_none());
        let mut parts = Vec::new();
        for (question, _) in everywhere {
            parts.push(texts.ask_until(&view.in_tokens(question)?, None, stop)?);
        }
        self.statistics = asked.statistics();
        let ceiling = asked.ceiling();
        Ok(Some(Ranked { sought, asked, parts, ceiling }))
    }

    /// The grains that can meet the other conditions, ascending, where they are few.
    pub(super) fn few(&mut self) -> Result<Option<Vec<Sequence>>, Halt> {
        let listed = self.query.address().map(|address| vec![address]);
        let among = || self.query.addresses().map(<[_]>::to_vec);
        let mut found = Vec::new();
        if let Some(addresses) = listed.or_else(among) {
            for address in addresses {
                found.extend(self.view.sequence_of(&address)?);
            }
        } else {
            let reader = self.view.index();
            let access = Access::choose(&reader, self.session, self.query)?;
            let Some(shortest) = access.lists.first() else { return Ok(None) };
            let size = shortest.measure(&reader, (&access.spaces, access.times))?;
            if size.postings > FEW {
                return Ok(None);
            }
            for posting in self.postings_of(&access)? {
                found.push(posting?.sequence);
            }
        }
        found.sort_unstable();
        Ok(Some(found))
    }

    /// Scores few grains and looks at those that have a score.
    fn one_by_one(
        &mut self,
        ranked: &Ranked<'_>,
        few: &[Sequence],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        let mut scored = ranked.scored(few)?;
        if let Some(rank) = self.rank() {
            scored.retain(|(_, score)| *score <= rank.score);
        }
        for equal in scored.chunk_by(|a, b| a.1 == b.1) {
            for seed in self.in_order(ranked, equal)? {
                let Seed { address, rank: score, .. } = seed;
                let is_behind =
                    self.rank().is_none_or(|rank| (score, &rank.address) < (rank.score, &address));
                if is_behind && self.give_words(ranked, seed, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Asks the full text for its best, and for more as long as they are wanted.
    fn by_words(
        &mut self,
        ranked: &Ranked<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        let after = |rank: &Rank| After { score: rank.score, address: *rank.address.as_bytes() };
        let mut after = self.rank().map(after);
        let wanted = match (self.query.limit(), self.given) {
            (None, 0) => AT_FIRST,
            // One more tells whether there is another page.
            (limit, given) => limit.unwrap_or(0).max(given.saturating_add(1)),
        };
        let mut at_once = wanted.clamp(1, AT_ONCE);
        loop {
            let hits = self.best_words(ranked, at_once, after)?;
            for Hit { sequence, score, address } in &hits {
                let address = ContentAddress::from_bytes(*address);
                let answer = Seed { sequence: *sequence, address, rank: *score };
                if self.give_words(ranked, answer, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if hits.len() < at_once {
                return Ok(ControlFlow::Continue(()));
            }
            after = hits.last().map(|hit| After { score: hit.score, address: hit.address });
            at_once = at_once.saturating_mul(16).min(AT_ONCE);
        }
    }

    /// The best answers by words, behind one of them.
    pub(super) fn best_words(
        &mut self,
        ranked: &Ranked<'_>,
        limit: usize,
        after: Option<After>,
    ) -> Result<Vec<Hit>, Halt> {
        let mut failed = None;
        let hits = ranked.asked.search(limit, after, &mut |sequence| {
            // What has failed is told below; there is no other way out of here.
            if failed.is_some() {
                return Ok(None);
            }
            let judged = self.judge(Some(ranked), sequence);
            let judged = judged.unwrap_or_else(|halt| {
                failed = Some(halt);
                None
            });
            Ok(judged.map(|address| *address.as_bytes()))
        })?;
        failed.map_or(Ok(hits), Err)
    }

    /// The address of a grain that may be shown. Where the parts of a search have to be looked at, it
    /// answers each of them.
    pub(super) fn judge(
        &mut self,
        ranked: Option<&Ranked<'_>>,
        sequence: Sequence,
    ) -> Result<Option<ContentAddress>, Halt> {
        self.judge_by(ranked, sequence, Self::admitted)
    }

    /// As [`Walk::judge`], by another rule.
    pub(super) fn judge_by(
        &mut self,
        ranked: Option<&Ranked<'_>>,
        sequence: Sequence,
        admitted: Admitted<'w>,
    ) -> Result<Option<ContentAddress>, Halt> {
        let origin = self.after.as_ref().map(|(origin, _)| origin.sequence);
        // The full text may have followed a later view.
        if sequence > origin.unwrap_or(self.last) {
            return Ok(None);
        }
        self.tick()?;
        if ranked.is_some_and(Ranked::has_parts) {
            // Words in one field are read from the grain, which may be large.
            self.cancel.check().map_err(Halt::Stopped)?;
        }
        let Some(state) = self.state(sequence)? else { return Ok(None) };
        let address = self.view.with_live_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                if !self.look_at(sequence, grain)? {
                    return Ok(None);
                }
                let Some(address) = admitted(self, blob, grain, &state) else { return Ok(None) };
                let answers = match ranked {
                    Some(ranked) => ranked.is_answered(sequence, grain)?,
                    None => true,
                };
                Ok(answers.then_some(address))
            })
        })?;
        Ok(address)
    }

    /// Shows an answer by words whose score is enough, behind those that links have raised above it.
    fn give_words(
        &mut self,
        ranked: &Ranked<'_>,
        Seed { sequence, address, rank: score }: Seed,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        while let Some(Linked { sequence, rank, score, .. }) = self.raised.before(score, address) {
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

    /// Shows an answer whose score is enough; `rank` is what it is ranked by.
    pub(super) fn give(
        &mut self,
        sequence: Sequence,
        rank: f64,
        score: Score,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        let floor = self.query.floor().filter(|_| !self.floorless);
        if floor.is_some_and(|floor| !floor.admits(score.value)) {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(state) = self.state(sequence)? else { return Ok(ControlFlow::Continue(())) };
        self.scores.push(rank);
        self.show(sequence, Some((&state, score)), visit)
    }
}
