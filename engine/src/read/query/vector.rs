//! Answers to a vector query, alone or with text: the nearest grains, those with the terms, and both scores
//! of each.
//!
//! Each leg (vector and text) gives its best, and what one leg found is scored by the other too. The sum
//! decides: text relative to the best text score, closeness relative to the nearest, weighted three to two
//! (docs/adr/0008). A turn of a conversation counts half by its own vector and half by those of its
//! neighbouring turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use grainstore_cal::{CancelHandle, Expansion, Near, RecallVisitor, Score, Search};
use grainstore_format::ContentAddress;
use grainstore_index::Sequence;
use grainstore_index::vectors::{
    Metric, NearestQuery, SearchEffort, Space, Vector, VectorView as Spaces,
};

use super::cursor::RankingKind;
use super::expand::{self, ExpansionSeed, LinkedAnswer};
use super::scan::{CandidateScan, ScanError};
use super::text::SearchRun;
use crate::base::error::{Error, ErrorKind, Result};
use crate::search::texts::ConversationWindow;
use crate::state::view::View;

/// Fewest and most answers of each leg.
const MIN_LEG_ANSWERS: usize = 128;
const MAX_LEG_ANSWERS: usize = 1024;
/// Weight of the text score where text is searched for beside a vector; the rest is the vector's.
const TEXT_WEIGHT: f64 = 0.6;

/// A query vector with its space.
struct ResolvedVector<'v> {
    spaces: Spaces,
    space: Space,
    vector: Vector,
    /// Cancels the search.
    cancel: &'v CancelHandle,
}

/// The scores of a grain that one of the legs found.
#[derive(Debug, Clone, Copy, Default)]
struct LegScores {
    /// Its address, if it was checked.
    address: Option<ContentAddress>,
    /// Its full-text score; 0 if it has none of the terms.
    text: f64,
    /// Its closeness, from 0 to 1; 0 if it has no vector.
    near: f64,
    /// Its closeness averaged with that of its neighbouring turns.
    around: f64,
    /// That average in the form that is added to the text score, see `worth`.
    worth: f64,
}

impl<'w> CandidateScan<'w> {
    /// Passes `visit` the grains nearest to a vector, and those that match a search as well, the best first,
    /// until it has enough.
    pub(super) fn nearest(
        &mut self,
        near: &Near,
        search: Option<&Search>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let view = self.view;
        self.rank_by(RankingKind::Vector)?;
        let Some(resolved) = self.resolve_vector(view, near)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let ranked = match search {
            Some(search) => self.looked_up(search)?,
            None => None,
        };
        let mut found = BTreeMap::new();
        self.by_vector(&resolved, ranked.as_ref(), &mut found)?;
        if let Some(ranked) = &ranked {
            self.add_words(ranked, &mut found)?;
            score_vectors(&resolved, &mut found)?;
        }
        add_context_closeness(view, &resolved, &mut found)?;
        self.give_both(&resolved, ranked.as_ref(), &found, visit)
    }

    /// The query vector the serving model's embedder makes of the text that is searched for in all fields;
    /// `None` without an embedder. If the embedder fails, text alone is searched; the failure is in the
    /// store's statistics.
    pub(super) fn meant_by(&self, search: &Search) -> Result<Option<Near>, ScanError> {
        let keeping = self.session.store().inner().meaning(self.view)?;
        let Some(keeping) = keeping else { return Ok(None) };
        let everywhere = search.asks().iter().filter(|ask| ask.field.is_none());
        let text = everywhere.map(|ask| ask.text.trim()).collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return Ok(None);
        }
        let model = Some(keeping.space().model().to_owned());
        let values = keeping.embed_query(&text);
        Ok(values.ok().map(|values| Near { model, values: values.into() }))
    }

    /// Finds the space of a query vector; `None` if no vector of its model is stored.
    fn resolve_vector(&self, view: &'w View, near: &Near) -> Result<Option<ResolvedVector<'w>>> {
        let vector = Vector::new(near.values.to_vec())?;
        let known = view.spaces()?;
        let space = match &near.model {
            Some(model) => {
                let space = known.values().find(|space| space.model() == model);
                let own = self.session.store().inner().keeping();
                let is_awaited = own.is_some_and(|own| own.space().model() == model);
                if space.is_none() && !known.is_empty() && !is_awaited {
                    let message = format!("no vector of the model {model:?} is stored");
                    let hint = "spell the model as its vectors were given with";
                    return Err(Error::new(ErrorKind::NotFound, message).with_hint(hint));
                }
                space
            }
            None => match view.serving_space()? {
                None if known.len() > 1 => {
                    let message = "vectors of several models are stored; which one is this of?";
                    let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
                    return Err(Error::new(schema, message).with_hint("name the model"));
                }
                serving => serving,
            },
        };
        let Some(space) = space.cloned() else { return Ok(None) };
        space.admit(&vector)?;
        let spaces = view.vectors(self.session.store().inner().vectors(), self.cancel)?;
        Ok(Some(ResolvedVector { spaces, space, vector, cancel: self.cancel }))
    }

    /// Number of answers each leg gives.
    fn leg(&self) -> usize {
        let wanted = self.query.limit().unwrap_or(0).max(self.given);
        wanted.saturating_mul(4).clamp(MIN_LEG_ANSWERS, MAX_LEG_ANSWERS)
    }

    /// The vector leg. For a search in several parts it finds only grains that match each part.
    fn by_vector(
        &mut self,
        resolved: &ResolvedVector<'_>,
        ranked: Option<&SearchRun<'_>>,
        found: &mut BTreeMap<Sequence, LegScores>,
    ) -> Result<(), ScanError> {
        let few = self.few()?;
        let ask = NearestQuery {
            vector: &resolved.vector,
            limit: self.leg(),
            within: few.as_deref(),
            care: SearchEffort::Usual,
        };
        let parts = ranked.filter(|ranked| ranked.has_parts());
        let mut judged = HashMap::new();
        let answer =
            resolved.spaces.search::<ScanError>(&resolved.space, &ask, &mut |sequence| {
                let address = self.judge(parts, sequence)?;
                judged.extend(address.map(|address| (sequence, address)));
                Ok(address.map(|address| *address.as_bytes()))
            })?;
        self.cut |= answer.near.len() >= self.leg();
        for near in answer.near {
            let address = judged.get(&near.sequence).copied();
            let near_by = near.closeness(resolved.space.metric()).into();
            found.insert(
                near.sequence,
                LegScores { address, near: near_by, ..LegScores::default() },
            );
        }
        Ok(())
    }

    /// The text leg, and the text scores of what the vector leg found.
    fn add_words(
        &mut self,
        ranked: &SearchRun<'_>,
        found: &mut BTreeMap<Sequence, LegScores>,
    ) -> Result<(), ScanError> {
        let hits = self.best_words(ranked, self.leg(), None)?;
        self.cut |= hits.len() >= self.leg();
        for hit in hits {
            let found = found.entry(hit.sequence).or_default();
            found.text = hit.score;
            found.address = Some(ContentAddress::from_bytes(hit.address));
        }
        Ok(score_text(ranked, found)?)
    }

    /// Passes what was found to `visit`, the best sum first.
    fn give_both(
        &mut self,
        resolved: &ResolvedVector<'_>,
        ranked: Option<&SearchRun<'_>>,
        found: &BTreeMap<Sequence, LegScores>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let scale = ScoreScale::of(ranked, found);
        let mut rows = Vec::with_capacity(found.len());
        for (sequence, found) in found {
            let Some(address) = found.address else { continue };
            let score = scale.score(found);
            rows.push(LinkedAnswer { address, sequence: *sequence, rank: score.value, score });
        }
        expand::sort_by_rank(&mut rows);
        if let Some(expansion) = self.query.expansion() {
            rows = self.link(expansion, (resolved, ranked, &scale), rows)?;
            expand::sort_by_rank(&mut rows);
        }
        let behind = self.rank().map(|rank| (rank.score, rank.address));
        rows.retain(|row| behind.is_none_or(|rank| expand::ranks_after(row, rank)));
        for LinkedAnswer { sequence, rank, score, .. } in rows {
            if self.give(sequence, rank, score, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds the grains linked to the best answers.
    fn link(
        &mut self,
        expansion: &'w Expansion,
        (resolved, ranked, scale): (&ResolvedVector<'_>, Option<&SearchRun<'_>>, &ScoreScale),
        answers: Vec<LinkedAnswer>,
    ) -> Result<Vec<LinkedAnswer>, ScanError> {
        let good = |row: &&LinkedAnswer| self.query.floor().is_none_or(|f| f.admits(row.rank));
        let best = answers.iter().take(expansion.seeds).filter(good);
        let seed = |row: &LinkedAnswer| {
            let LinkedAnswer { sequence, address, rank, .. } = *row;
            ExpansionSeed { sequence, address, rank }
        };
        let seeds: Vec<ExpansionSeed> = best.map(seed).collect();
        let reached = self.reach(expansion, &seeds)?;
        let mut rows: BTreeMap<Sequence, LinkedAnswer> =
            answers.into_iter().map(|row| (row.sequence, row)).collect();
        let new = reached.keys().filter(|sequence| !rows.contains_key(sequence));
        let new: Vec<Sequence> = new.copied().collect();
        let new = self.looked_at((resolved, ranked), &new)?;
        for (sequence, found) in new {
            let parts = ranked.filter(|ranked| ranked.has_parts());
            let Some((address, meets)) = self.linked_by(parts, sequence)? else { continue };
            let score = match meets {
                true => scale.score(&found),
                false => Score { value: 0.0, ..Score::STRUCTURAL },
            };
            let Some(reached) = reached.get(&sequence) else { continue };
            let due = reached.best_offer(expansion.decay, score.value, true);
            rows.extend(due.map(|due| (sequence, due.to_answer(address, sequence, score))));
        }
        for (sequence, row) in &mut rows {
            let offers = reached.get(sequence).filter(|_| row.score.graph.is_none());
            let due = offers.and_then(|offers| offers.best_offer(expansion.decay, row.rank, false));
            if let Some(due) = due {
                *row = due.to_answer(row.address, *sequence, row.score);
            }
        }
        Ok(rows.into_values().collect())
    }

    /// Scores grains by text and vector; leaves out those that miss a required term.
    fn looked_at(
        &self,
        (resolved, ranked): (&ResolvedVector<'_>, Option<&SearchRun<'_>>),
        sequences: &[Sequence],
    ) -> Result<BTreeMap<Sequence, LegScores>> {
        let mut found: BTreeMap<Sequence, LegScores> =
            sequences.iter().map(|sequence| (*sequence, LegScores::default())).collect();
        if let Some(ranked) = ranked {
            score_text(ranked, &mut found)?;
        }
        score_vectors(resolved, &mut found)?;
        add_context_closeness(self.view, resolved, &mut found)?;
        Ok(found)
    }
}

/// The maxima that the scores of an answer are normalised by.
struct ScoreScale {
    text: f64,
    closeness: f64,
    gain: f64,
    /// The highest text score any grain could have; `None` without a text search.
    ceiling: Option<f64>,
    /// Absolute score of the best answer: the better of its text and vector scores. The others are in
    /// proportion.
    quality: f64,
}

impl ScoreScale {
    fn of(ranked: Option<&SearchRun<'_>>, found: &BTreeMap<Sequence, LegScores>) -> Self {
        let best = |of: fn(&LegScores) -> f64| found.values().map(of).fold(0.0, f64::max);
        let (text, near) = (best(|found| found.text), best(|found| found.around));
        let ceiling = ranked.map(SearchRun::ceiling);
        let quality = near.max((text / ceiling.unwrap_or(1.0)).min(1.0));
        Self { text, closeness: near, gain: best(|found| found.worth), ceiling, quality }
    }

    /// The scores of an answer.
    fn score(&self, found: &LegScores) -> Score {
        // A grain found by links only may exceed the maxima, which are of grains found directly.
        let share = |value: f64, best: f64| if best > 0.0 { (value / best).min(1.0) } else { 0.0 };
        let merit = match self.ceiling {
            Some(_) => {
                let worth = share(found.worth, self.gain);
                TEXT_WEIGHT * share(found.text, self.text) + (1.0 - TEXT_WEIGHT) * worth
            }
            None => share(found.around, self.closeness),
        };
        let text = self.ceiling.map(|ceiling| (found.text / ceiling).min(1.0));
        let vector = Some(found.near);
        Score { value: self.quality * merit, text, vector, graph: None }
    }
}

/// Adds text scores to grains without one; removes those that miss a required term.
fn score_text(ranked: &SearchRun<'_>, found: &mut BTreeMap<Sequence, LegScores>) -> Result<()> {
    let unscored = found.iter().filter(|(_, found)| found.text == 0.0);
    let unscored: Vec<Sequence> = unscored.map(|(sequence, _)| *sequence).collect();
    for (sequence, score) in unscored.iter().zip(ranked.scores_of(&unscored)?) {
        match (score, found.get_mut(sequence)) {
            (Some(score), Some(found)) => found.text = score,
            (None, _) if ranked.is_strict() => {
                found.remove(sequence);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds the closeness of grains that only the text leg found.
fn score_vectors(
    resolved: &ResolvedVector<'_>,
    found: &mut BTreeMap<Sequence, LegScores>,
) -> Result<()> {
    let missing = found.iter().filter(|(_, found)| found.near == 0.0);
    let missing: Vec<Sequence> = missing.map(|(sequence, _)| *sequence).collect();
    for (sequence, near) in closeness_of(resolved, &missing)? {
        if let Some(found) = found.get_mut(&sequence) {
            found.near = near;
        }
    }
    Ok(())
}

/// Adds the average closeness with neighbouring turns.
fn add_context_closeness(
    view: &View,
    resolved: &ResolvedVector<'_>,
    found: &mut BTreeMap<Sequence, LegScores>,
) -> Result<()> {
    let mut turns = ConversationWindow::of(view);
    let mut lenders = BTreeMap::new();
    for sequence in found.keys() {
        resolved.cancel.check().map_err(ScanError::Stopped)?;
        lenders.insert(*sequence, turns.contributors(*sequence)?);
    }
    let others: BTreeSet<Sequence> = lenders.values().flatten().copied().collect();
    let others: Vec<Sequence> = others.into_iter().collect();
    let near = closeness_of(resolved, &others)?;
    let metric = resolved.space.metric();
    for (sequence, found) in found {
        let others = lenders.get(sequence).into_iter().flatten();
        let others: Vec<f64> = others.filter_map(|lender| near.get(lender).copied()).collect();
        found.around = blend_with_neighbours(found.near, &others, |near| near);
        found.worth = blend_with_neighbours(found.near, &others, |near| cosine_gain(metric, near));
    }
    Ok(())
}

/// The mean of a grain's own value and of the mean of its neighbours' values; its own if it has none.
fn blend_with_neighbours(own: f64, others: &[f64], value: impl Fn(f64) -> f64) -> f64 {
    match u32::try_from(others.len()).unwrap_or(u32::MAX) {
        0 => value(own),
        count => {
            let sum: f64 = others.iter().map(|near| value(*near)).sum();
            f64::midpoint(value(own), sum / f64::from(count))
        }
    }
}

/// Rescales closeness so that it can be added to a text score: 0 at a right angle and beyond, as text scores
/// 0 if no term is shared. Otherwise texts without anything in common, whose angle makes them half as close
/// as identical ones, would get half of the vector's weight. Distances have no right angle and are kept.
fn cosine_gain(metric: Metric, closeness: f64) -> f64 {
    match metric {
        Metric::Cosine | Metric::Dot => (2.0 * closeness - 1.0).max(0.0),
        _ => closeness,
    }
}

/// Closeness of grains, from 0 to 1; those without a vector are left out.
fn closeness_of(resolved: &ResolvedVector<'_>, of: &[Sequence]) -> Result<BTreeMap<Sequence, f64>> {
    if of.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ask = NearestQuery {
        vector: &resolved.vector,
        limit: of.len(),
        within: Some(of),
        care: SearchEffort::Exact,
    };
    // The grains are given, so the address that breaks ties does not matter.
    let found =
        resolved.spaces.search::<Error>(&resolved.space, &ask, &mut |_| Ok(Some([0; 32])))?;
    let metric = resolved.space.metric();
    Ok(found.near.iter().map(|near| (near.sequence, near.closeness(metric).into())).collect())
}
