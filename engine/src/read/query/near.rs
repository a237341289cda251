//! The answer to a vector, alone or beside words: the grains that are nearest, those that have the
//! words, and each of them judged by both.
//!
//! Both legs give their best, what one leg found is scored by the other, and the sum decides: words
//! against the best words, meaning against the nearest, three parts to two (docs/adr/0008). A turn of
//! a conversation counts half by its own vector and half by those of the turns around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use grainstore_cal::{Cancel, Expansion, Near, Score, Search, Visit};
use grainstore_format::ContentAddress;
use grainstore_index::Sequence;
use grainstore_index::vectors::{Ask, Care, Metric, Space, Vector, View as Spaces};

use super::cursor::Ranking;
use super::expand::{self, Linked, Seed};
use super::search::Ranked;
use super::walk::{Halt, Walk};
use crate::base::error::{Error, ErrorKind, Result};
use crate::search::texts::Around;
use crate::state::view::View;

/// Answers each leg gives at least, and at most.
const LEG: usize = 128;
const LONGEST_LEG: usize = 1024;
/// How much of a score is due to words, where they are asked for beside a vector; the rest is due to
/// the vector.
const WORDS: f64 = 0.6;

/// A vector that is asked for, with the space it is of.
struct Sighted<'v> {
    spaces: &'v Spaces,
    space: Space,
    vector: Vector,
    /// When to give up.
    cancel: &'v Cancel,
}

/// A grain one of the legs has found.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Its address, where it was judged.
    address: Option<ContentAddress>,
    /// As the full text scores it; 0 where it has none of the words.
    text: f64,
    /// How near it is, from 0 to 1; 0 where it has no vector.
    near: f64,
    /// The same with what is around it.
    around: f64,
    /// What that is worth beside words.
    worth: f64,
}

impl<'w> Walk<'w> {
    /// Shows the grains that are nearest to a vector, and those that answer a search as well, the
    /// best first, until `visit` has enough.
    pub(super) fn nearest(
        &mut self,
        near: &Near,
        search: Option<&Search>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        let view = self.view;
        self.rank_by(Ranking::Near)?;
        let Some(sighted) = self.sighted(view, near)? else { return Ok(ControlFlow::Continue(())) };
        let ranked = match search {
            Some(search) => self.looked_up(search)?,
            None => None,
        };
        let mut found = BTreeMap::new();
        self.by_vector(&sighted, ranked.as_ref(), &mut found)?;
        if let Some(ranked) = &ranked {
            self.add_words(ranked, &mut found)?;
            complete(&sighted, &mut found)?;
        }
        look_around(view, &sighted, &mut found)?;
        self.give_both(&sighted, ranked.as_ref(), &found, visit)
    }

    /// The vector of what is searched for everywhere, where the store has the embedder of the model that
    /// serves. One that fails leaves the words; its failure is among the figures of the store.
    pub(super) fn meant_by(&self, search: &Search) -> Result<Option<Near>, Halt> {
        let keeping = self.session.store().inner().meaning(self.view)?;
        let Some(keeping) = keeping else { return Ok(None) };
        let everywhere = search.asks().iter().filter(|ask| ask.field.is_none());
        let text = everywhere.map(|ask| ask.text.trim()).collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return Ok(None);
        }
        let model = Some(keeping.space().model().to_owned());
        let values = keeping.question(&text);
        Ok(values.ok().map(|values| Near { model, values: values.into() }))
    }

    /// The vector in its space. None where no vector of its model is stored.
    fn sighted(&self, view: &'w View, near: &Near) -> Result<Option<Sighted<'w>>> {
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
            None => match view.serving()? {
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
        Ok(Some(Sighted { spaces, space, vector, cancel: self.cancel }))
    }

    /// How many answers each leg gives.
    fn leg(&self) -> usize {
        let wanted = self.query.limit().unwrap_or(0).max(self.given);
        wanted.saturating_mul(4).clamp(LEG, LONGEST_LEG)
    }

    /// The vector leg. With a search in several parts, what it finds answers each of them.
    fn by_vector(
        &mut self,
        sighted: &Sighted<'_>,
        ranked: Option<&Ranked<'_>>,
        found: &mut BTreeMap<Sequence, Found>,
    ) -> Result<(), Halt> {
        let few = self.few()?;
        let ask = Ask {
            vector: &sighted.vector,
            limit: self.leg(),
            within: few.as_deref(),
            care: Care::Usual,
        };
        let parts = ranked.filter(|ranked| ranked.has_parts());
        let mut judged = HashMap::new();
        let answer = sighted.spaces.search::<Halt>(&sighted.space, &ask, &mut |sequence| {
            let address = self.judge(parts, sequence)?;
            judged.extend(address.map(|address| (sequence, address)));
            Ok(address.map(|address| *address.as_bytes()))
        })?;
        self.cut |= answer.near.len() >= self.leg();
        for near in answer.near {
            let address = judged.get(&near.sequence).copied();
            let near_by = near.closeness(sighted.space.metric()).into();
            found.insert(near.sequence, Found { address, near: near_by, ..Found::default() });
        }
        Ok(())
    }

    /// The leg of words, and the words of what the other leg has found.
    fn add_words(
        &mut self,
        ranked: &Ranked<'_>,
        found: &mut BTreeMap<Sequence, Found>,
    ) -> Result<(), Halt> {
        let hits = self.best_words(ranked, self.leg(), None)?;
        self.cut |= hits.len() >= self.leg();
        for hit in hits {
            let found = found.entry(hit.sequence).or_default();
            found.text = hit.score;
            found.address = Some(ContentAddress::from_bytes(hit.address));
        }
        Ok(score_words(ranked, found)?)
    }

    /// Shows what was found, the best sum first.
    fn give_both(
        &mut self,
        sighted: &Sighted<'_>,
        ranked: Option<&Ranked<'_>>,
        found: &BTreeMap<Sequence, Found>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        let scale = Scale::of(ranked, found);
        let mut rows = Vec::with_capacity(found.len());
        for (sequence, found) in found {
            let Some(address) = found.address else { continue };
            let score = scale.score(found);
            rows.push(Linked { address, sequence: *sequence, rank: score.value, score });
        }
        expand::sort(&mut rows);
        if let Some(expansion) = self.query.expansion() {
            rows = self.link(expansion, (sighted, ranked, &scale), rows)?;
            expand::sort(&mut rows);
        }
        let behind = self.rank().map(|rank| (rank.score, rank.address));
        rows.retain(|row| behind.is_none_or(|rank| expand::is_behind(row, rank)));
        for Linked { sequence, rank, score, .. } in rows {
            if self.give(sequence, rank, score, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The answers with what is linked to the best of them.
    fn link(
        &mut self,
        expansion: &'w Expansion,
        (sighted, ranked, scale): (&Sighted<'_>, Option<&Ranked<'_>>, &Scale),
        answers: Vec<Linked>,
    ) -> Result<Vec<Linked>, Halt> {
        let good = |row: &&Linked| self.query.floor().is_none_or(|f| f.admits(row.rank));
        let best = answers.iter().take(expansion.seeds).filter(good);
        let seed = |row: &Linked| {
            let Linked { sequence, address, rank, .. } = *row;
            Seed { sequence, address, rank }
        };
        let seeds: Vec<Seed> = best.map(seed).collect();
        let reached = self.reach(expansion, &seeds)?;
        let mut rows: BTreeMap<Sequence, Linked> =
            answers.into_iter().map(|row| (row.sequence, row)).collect();
        let new = reached.keys().filter(|sequence| !rows.contains_key(sequence));
        let new: Vec<Sequence> = new.copied().collect();
        let new = self.looked_at((sighted, ranked), &new)?;
        for (sequence, found) in new {
            let parts = ranked.filter(|ranked| ranked.has_parts());
            let Some((address, meets)) = self.linked_by(parts, sequence)? else { continue };
            let score = match meets {
                true => scale.score(&found),
                false => Score { value: 0.0, ..Score::STRUCTURAL },
            };
            let Some(reached) = reached.get(&sequence) else { continue };
            let due = reached.due(expansion.decay, score.value, true);
            rows.extend(due.map(|due| (sequence, due.row(address, sequence, score))));
        }
        for (sequence, row) in &mut rows {
            let offers = reached.get(sequence).filter(|_| row.score.graph.is_none());
            let due = offers.and_then(|offers| offers.due(expansion.decay, row.rank, false));
            if let Some(due) = due {
                *row = due.row(row.address, *sequence, row.score);
            }
        }
        Ok(rows.into_values().collect())
    }

    /// What words and the vector make of some grains; without those that are no answers however near.
    fn looked_at(
        &self,
        (sighted, ranked): (&Sighted<'_>, Option<&Ranked<'_>>),
        sequences: &[Sequence],
    ) -> Result<BTreeMap<Sequence, Found>> {
        let mut found: BTreeMap<Sequence, Found> =
            sequences.iter().map(|sequence| (*sequence, Found::default())).collect();
        if let Some(ranked) = ranked {
            score_words(ranked, &mut found)?;
        }
        complete(sighted, &mut found)?;
        look_around(self.view, sighted, &mut found)?;
        Ok(found)
    }
}

/// What the signals of an answer are measured by: the best of what was found.
struct Scale {
    text: f64,
    near: f64,
    worth: f64,
    /// The score of words of a grain that had everything in plenty; nothing where no words are asked for.
    ceiling: Option<f64>,
    /// The best answer is as good as its better side; the others stand in proportion.
    quality: f64,
}

impl Scale {
    fn of(ranked: Option<&Ranked<'_>>, found: &BTreeMap<Sequence, Found>) -> Self {
        let best = |of: fn(&Found) -> f64| found.values().map(of).fold(0.0, f64::max);
        let (text, near) = (best(|found| found.text), best(|found| found.around));
        let ceiling = ranked.map(Ranked::ceiling);
        let quality = near.max((text / ceiling.unwrap_or(1.0)).min(1.0));
        Self { text, near, worth: best(|found| found.worth), ceiling, quality }
    }

    /// How good an answer is.
    fn score(&self, found: &Found) -> Score {
        // What only links have found may have better company than the best that was found by itself.
        let share = |value: f64, best: f64| if best > 0.0 { (value / best).min(1.0) } else { 0.0 };
        let merit = match self.ceiling {
            Some(_) => {
                let worth = share(found.worth, self.worth);
                WORDS * share(found.text, self.text) + (1.0 - WORDS) * worth
            }
            None => share(found.around, self.near),
        };
        let text = self.ceiling.map(|ceiling| (found.text / ceiling).min(1.0));
        let vector = Some(found.near);
        Score { value: self.quality * merit, text, vector, graph: None }
    }
}

/// What words make of grains that they have not found; those that are no answers however near go.
fn score_words(ranked: &Ranked<'_>, found: &mut BTreeMap<Sequence, Found>) -> Result<()> {
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

/// How near the grains are that only their words have found.
fn complete(sighted: &Sighted<'_>, found: &mut BTreeMap<Sequence, Found>) -> Result<()> {
    let missing = found.iter().filter(|(_, found)| found.near == 0.0);
    let missing: Vec<Sequence> = missing.map(|(sequence, _)| *sequence).collect();
    for (sequence, near) in closeness_of(sighted, &missing)? {
        if let Some(found) = found.get_mut(&sequence) {
            found.near = near;
        }
    }
    Ok(())
}

/// Takes the turns around each turn into account.
fn look_around(
    view: &View,
    sighted: &Sighted<'_>,
    found: &mut BTreeMap<Sequence, Found>,
) -> Result<()> {
    let mut turns = Around::of(view);
    let mut lenders = BTreeMap::new();
    for sequence in found.keys() {
        sighted.cancel.check().map_err(Halt::Stopped)?;
        lenders.insert(*sequence, turns.lenders(*sequence)?);
    }
    let others: BTreeSet<Sequence> = lenders.values().flatten().copied().collect();
    let others: Vec<Sequence> = others.into_iter().collect();
    let near = closeness_of(sighted, &others)?;
    let metric = sighted.space.metric();
    for (sequence, found) in found {
        let others = lenders.get(sequence).into_iter().flatten();
        let others: Vec<f64> = others.filter_map(|lender| near.get(lender).copied()).collect();
        found.around = in_company(found.near, &others, |near| near);
        found.worth = in_company(found.near, &others, |near| worth(metric, near));
    }
    Ok(())
}

/// Half by itself, half by what is around it, where there is something.
fn in_company(own: f64, others: &[f64], value: impl Fn(f64) -> f64) -> f64 {
    match u32::try_from(others.len()).unwrap_or(u32::MAX) {
        0 => value(own),
        count => {
            let sum: f64 = others.iter().map(|near| value(*near)).sum();
            f64::midpoint(value(own), sum / f64::from(count))
        }
    }
}

/// What a closeness is worth beside words: nothing at a right angle and beyond, as words are worth
/// nothing where none is shared. By angle, texts that have nothing in common are half as close as one
/// text is to itself, and would take half of what the vector has to give. Distances have no right angle.
fn worth(metric: Metric, closeness: f64) -> f64 {
    match metric {
        Metric::Cosine | Metric::Dot => (2.0 * closeness - 1.0).max(0.0),
        _ => closeness,
    }
}

/// How near some grains are, from 0 to 1; those without a vector are left out.
fn closeness_of(sighted: &Sighted<'_>, of: &[Sequence]) -> Result<BTreeMap<Sequence, f64>> {
    if of.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ask = Ask { vector: &sighted.vector, limit: of.len(), within: Some(of), care: Care::Exact };
    // Who is asked about is known; in which order they come is of no matter.
    let found = sighted.spaces.search::<Error>(&sighted.space, &ask, &mut |_| Ok(Some([0; 32])))?;
    let metric = sighted.space.metric();
    Ok(found.near.iter().map(|near| (near.sequence, near.closeness(metric).into())).collect())
}
