//! Graph expansion of a query: grains linked to the best answers are ranked among them.
//!
//! Links are followed from the best answers level by level, the strongest first. Each grain keeps the best
//! offer of every distance, and its own score decides which offer counts. All of it is computed anew for each
//! page, on the state of the log that the first page saw.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::ControlFlow;

use grainstore_cal::{Candidate, Expansion, Query, RecallVisitor, Score};
use grainstore_format::ContentAddress;
use grainstore_index::Sequence;
use grainstore_index::text::Hit;
use serde::Serialize;

use super::cursor::{LastRow, RankingKind, ScorePosition};
use super::links::{ExpansionState, LinkedGrain};
use super::scan::{CandidateScan, ScanError};
use super::text::SearchRun;
use crate::base::error::{Error, ErrorKind, Result};

/// Statistics of an expansion, in the plan of a page of [`Session::query`](crate::Session::query).
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct ExpansionStats {
    /// Answers whose links were followed.
    pub seeds: usize,
    /// Grains reached by links, without those answers.
    pub reached: usize,
    /// Visible grains whose links were read or looked up.
    pub looked: u64,
    /// True if more is linked than the limits allowed to follow.
    pub cut: bool,
}

/// An answer whose links are followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpansionSeed {
    pub(super) sequence: Sequence,
    pub(super) address: ContentAddress,
    /// Its score.
    pub(super) rank: f64,
}

/// A grain reached by links.
#[derive(Debug, Clone, Default)]
pub(super) struct ReachedGrain {
    /// Pairs of distance in links and score of the best answer at that distance.
    offers: Vec<(usize, f64)>,
}

/// An answer with the score that links gave it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkedAnswer {
    pub(super) address: ContentAddress,
    pub(super) sequence: Sequence,
    pub(super) rank: f64,
    pub(super) score: Score,
}

/// Answers to a text search whose rank links have raised, merged into the others as these are returned.
#[derive(Debug, Default)]
pub(super) struct RaisedAnswers {
    /// Those not returned yet, the best first.
    waiting: VecDeque<LinkedAnswer>,
    /// All of them: their ranks by text alone are skipped.
    all: BTreeSet<Sequence>,
}

/// The score a grain gets by its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinkOffer {
    /// Its new score.
    pub(super) rank: f64,
    /// The score of the deciding answer after decay over the distance.
    pub(super) graph: f64,
}

/// Checks the expansion options of a query.
///
/// # Errors
/// `ERR_LIMIT` beyond the bounds of [`Expansion`]; `ERR_SCHEMA` for what cannot be done.
pub(crate) fn check_expansion(query: &Query) -> Result<()> {
    let Some(expansion) = query.expansion() else { return Ok(()) };
    let Expansion { hops, seeds, links, fan_out, reached, decay, freely, .. } = *expansion;
    for (name, given, most) in [
        ("hops", hops, Expansion::MAX_HOPS),
        ("seeds", seeds, Expansion::MAX_SEEDS),
        ("fan_out", fan_out, Expansion::MAX_FAN_OUT),
        ("reached", reached, Expansion::MAX_REACHED),
    ] {
        if given == 0 {
            return Err(schema(format!("an expansion of no {name} is none"), "ask for 1 at least"));
        }
        if given > most {
            let message = format!("an expansion has {most} {name} at most, not {given}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
    }
    if links.iter().next().is_none() {
        return Err(schema(
            "an expansion along no links".to_owned(),
            "name some, or leave them out",
        ));
    }
    if !(decay > 0.0 && decay < 1.0) {
        let message = format!("what is left of a score behind a link is no {decay}");
        return Err(schema(message, "choose a decay above 0 and below 1"));
    }
    if query.search().is_none() && query.near().is_none() && !freely {
        let message =
            "all that meets the conditions is an answer already, whatever is linked to it";
        let hint = "search for words or a vector, or let what is linked be free of the conditions";
        return Err(schema(message.to_owned(), hint));
    }
    Ok(())
}

fn schema(message: String, hint: &'static str) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
    Error::new(kind, message).with_hint(hint)
}

/// The position before the best answer, with the statistics of a cursor.
fn before_first(last: &LastRow) -> ScorePosition {
    let statistics = match last {
        LastRow::ByScore(rank) => rank.statistics.clone(),
        LastRow::ByTime(_) => Vec::new(),
    };
    let address = ContentAddress::from_bytes([0; 32]);
    ScorePosition { score: f64::INFINITY, address, ranking: RankingKind::Reranked, statistics }
}

impl ReachedGrain {
    /// Adds an offer, unless one at least as near and as good is there. Returns `true` if it was added.
    fn add_offer(&mut self, hops: usize, rank: f64) -> bool {
        let is_better = |(near, other): &(usize, f64)| *near <= hops && *other >= rank;
        if self.offers.iter().any(is_better) {
            return false;
        }
        self.offers.retain(|(near, _)| *near != hops);
        self.offers.push((hops, rank));
        true
    }

    /// The best offer to a grain with this score; `None` if none raises it. A grain that is not an answer
    /// itself (`is_new`) always takes the best offer, and its own score counts no more than the offered one.
    pub(super) fn best_offer(&self, decay: f64, own: f64, is_new: bool) -> Option<LinkOffer> {
        let due = |(hops, rank): &(usize, f64)| {
            let left = (0..*hops).fold(1.0, |left, _| left * decay);
            let own = if is_new { own.min(*rank) } else { own };
            let raised = (own + left * (rank - own)).min(*rank);
            (is_new || raised > own).then_some(LinkOffer { rank: raised, graph: left * rank })
        };
        let dues = self.offers.iter().filter_map(due);
        dues.reduce(|best, due| if due.rank > best.rank { due } else { best })
    }
}

impl LinkOffer {
    /// The row of a grain with this offer, and with its own scores otherwise.
    pub(super) fn to_answer(
        self,
        address: ContentAddress,
        sequence: Sequence,
        own: Score,
    ) -> LinkedAnswer {
        let Self { rank, graph } = self;
        let score = Score { value: rank, graph: Some(graph), ..own };
        LinkedAnswer { address, sequence, rank, score }
    }
}

impl RaisedAnswers {
    /// Takes all raised rows, and queues those after the position of a cursor.
    fn new(mut rows: Vec<LinkedAnswer>, behind: Option<(f64, ContentAddress)>) -> Self {
        let all = rows.iter().map(|row| row.sequence).collect();
        rows.retain(|row| behind.is_none_or(|rank| ranks_after(row, rank)));
        sort_by_rank(&mut rows);
        Self { waiting: rows.into(), all }
    }

    /// Returns `true` if a grain was raised and is returned from here.
    pub(super) fn has(&self, sequence: Sequence) -> bool {
        self.all.contains(&sequence)
    }

    /// The next raised row, if it ranks before an answer.
    pub(super) fn pop_before(
        &mut self,
        rank: f64,
        address: ContentAddress,
    ) -> Option<LinkedAnswer> {
        let first = self.waiting.front()?;
        let is_before = first.rank > rank || (first.rank == rank && first.address < address);
        if is_before { self.waiting.pop_front() } else { None }
    }

    /// The next raised row.
    pub(super) fn pop(&mut self) -> Option<LinkedAnswer> {
        self.waiting.pop_front()
    }
}

/// Sorts the best first, ties by ascending address.
pub(super) fn sort_by_rank(rows: &mut [LinkedAnswer]) {
    rows.sort_by(|a, b| b.rank.total_cmp(&a.rank).then(a.address.cmp(&b.address)));
}

/// Returns `true` if a row ranks after a position.
pub(super) fn ranks_after(row: &LinkedAnswer, (rank, address): (f64, ContentAddress)) -> bool {
    row.rank < rank || (row.rank == rank && row.address > address)
}

impl<'w> CandidateScan<'w> {
    /// The grains reached by links from the best answers, and these themselves.
    pub(super) fn reach(
        &mut self,
        expansion: &'w Expansion,
        seeds: &[ExpansionSeed],
    ) -> Result<BTreeMap<Sequence, ReachedGrain>, ScanError> {
        let mut tour = self.tour(expansion, seeds.len());
        let mut found: BTreeMap<Sequence, ReachedGrain> = BTreeMap::new();
        for seed in seeds {
            found.entry(seed.sequence).or_default().add_offer(0, seed.rank);
        }
        let mut known: HashMap<Sequence, Vec<LinkedGrain>> = HashMap::new();
        let mut level = seeds.to_vec();
        for hops in 1..=expansion.hops {
            level = self.step(&mut tour, (hops, level), &mut known, &mut found)?;
        }
        self.cut |= tour.truncated;
        self.expanded = Some(ExpansionStats {
            seeds: seeds.len(),
            reached: found.len().saturating_sub(seeds.len()),
            looked: tour.visible_reads,
            cut: tour.truncated,
        });
        Ok(found)
    }

    /// Follows one link from every grain of a level, the strongest first.
    fn step(
        &mut self,
        tour: &mut ExpansionState<'_>,
        (hops, mut level): (usize, Vec<ExpansionSeed>),
        known: &mut HashMap<Sequence, Vec<LinkedGrain>>,
        found: &mut BTreeMap<Sequence, ReachedGrain>,
    ) -> Result<Vec<ExpansionSeed>, ScanError> {
        level.sort_by(|a, b| b.rank.total_cmp(&a.rank).then(a.address.cmp(&b.address)));
        let mut next = BTreeMap::new();
        for ExpansionSeed { sequence, rank, .. } in level {
            let linked = match known.entry(sequence) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.linked(tour, sequence)?),
            };
            for met in linked {
                if !found.contains_key(&met.sequence) && found.len() >= tour.max_grains {
                    tour.truncated = true;
                    continue;
                }
                if found.entry(met.sequence).or_default().add_offer(hops, rank) {
                    let LinkedGrain { sequence, address, .. } = *met;
                    next.insert(sequence, ExpansionSeed { sequence, address, rank });
                }
            }
        }
        Ok(next.into_values().collect())
    }

    /// The best answers by text as of the first page, without those below the minimum score.
    pub(super) fn best(
        &mut self,
        ranked: &SearchRun<'_>,
        few: Option<&[Sequence]>,
        most: usize,
    ) -> Result<Vec<ExpansionSeed>, ScanError> {
        let mut best = match few {
            None => {
                let hits = self.best_words(ranked, most, None)?;
                let seed = |hit: Hit| {
                    let address = ContentAddress::from_bytes(hit.address);
                    ExpansionSeed { sequence: hit.sequence, address, rank: hit.score }
                };
                hits.into_iter().map(seed).collect()
            }
            Some(few) => {
                let mut best = Vec::new();
                let scored = ranked.best_of(few)?;
                for equal in scored.chunk_by(|a, b| a.1 == b.1) {
                    best.extend(self.in_order(ranked, equal)?);
                    if best.len() >= most {
                        break;
                    }
                }
                best
            }
        };
        best.truncate(most);
        if let Some(floor) = self.query.floor() {
            best.retain(|seed| floor.admits((seed.rank / ranked.ceiling()).min(1.0)));
        }
        Ok(best)
    }

    /// Computes the answers to a text search that links raise.
    pub(super) fn raise(
        &mut self,
        ranked: &SearchRun<'_>,
        seeds: &[ExpansionSeed],
        expansion: &'w Expansion,
    ) -> Result<(), ScanError> {
        let reached = self.reach(expansion, seeds)?;
        let sequences: Vec<Sequence> = reached.keys().copied().collect();
        let scores = ranked.scores_of(&sequences)?;
        let mut rows = Vec::new();
        for ((sequence, reached), own) in reached.iter().zip(scores) {
            if own.is_none() && ranked.is_strict() {
                continue;
            }
            let parts = Some(ranked).filter(|ranked| ranked.has_parts());
            let Some((address, meets)) = self.linked_by(parts, *sequence)? else { continue };
            let own = own.filter(|_| meets);
            let worth = |rank: f64| (rank / ranked.ceiling()).min(1.0);
            let due = reached.best_offer(expansion.decay, own.unwrap_or(0.0), own.is_none());
            let Some(LinkOffer { rank, graph }) = due else { continue };
            let text = meets.then(|| worth(own.unwrap_or(0.0)));
            let graph = Some(worth(graph));
            let score = Score { value: worth(rank), text, vector: None, graph };
            rows.push(LinkedAnswer { address, sequence: *sequence, rank, score });
        }
        let behind = self.rank().map(|rank| (rank.score, rank.address));
        self.raised = RaisedAnswers::new(rows, behind);
        Ok(())
    }

    /// The address of a linked grain, if it may be returned, and `true` if it meets the conditions of the
    /// query. `parts` are required terms of the search to check, if there are any.
    pub(super) fn linked_by(
        &mut self,
        parts: Option<&SearchRun<'_>>,
        sequence: Sequence,
    ) -> Result<Option<(ContentAddress, bool)>, ScanError> {
        if let Some(address) = self.judge(parts, sequence)? {
            return Ok(Some((address, true)));
        }
        let freely = self.query.expansion().is_some_and(|expansion| expansion.freely);
        if !freely {
            return Ok(None);
        }
        let address = self.judge_by(parts, sequence, |walk, blob, grain, state| {
            walk.query.lets_through(grain, state, walk.now()).then(|| ContentAddress::of(blob))
        })?;
        Ok(address.map(|address| (address, false)))
    }

    /// Returns the answers to conditions without a search, and after them what is linked to the first ones.
    pub(super) fn by_conditions_and_links(
        &mut self,
        expansion: &'w Expansion,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let behind = self.rank().filter(|rank| rank.score < Score::STRUCTURAL.value);
        let behind = behind.map(|rank| (rank.score, rank.address));
        if behind.is_none() && self.by_conditions(visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut rows = self.at_the_top(|walk| walk.linked_to_first(expansion))?;
        rows.retain(|row| behind.is_none_or(|rank| ranks_after(row, rank)));
        sort_by_rank(&mut rows);
        for LinkedAnswer { sequence, rank, score, .. } in rows {
            if self.give(sequence, rank, score, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Grains linked to the first answers that do not meet the conditions themselves.
    fn linked_to_first(
        &mut self,
        expansion: &'w Expansion,
    ) -> Result<Vec<LinkedAnswer>, ScanError> {
        let mut first = Vec::new();
        let (given, matched) = (std::mem::take(&mut self.given), self.matched);
        let _ = self.by_conditions(&mut |candidate: Candidate<'_>| {
            first.push(candidate.address);
            match first.len() < expansion.seeds {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        (self.given, self.matched) = (given, matched);
        let mut seeds = Vec::with_capacity(first.len());
        for address in first {
            let sequence = self.view.sequence_of(&address)?;
            seeds.extend(sequence.map(|sequence| ExpansionSeed { sequence, address, rank: 1.0 }));
        }
        let mut rows = Vec::new();
        for (sequence, reached) in self.reach(expansion, &seeds)? {
            let Some((address, false)) = self.linked_by(None, sequence)? else { continue };
            let Some(due) = reached.best_offer(expansion.decay, 0.0, true) else { continue };
            rows.push(due.to_answer(address, sequence, Score::STRUCTURAL));
        }
        Ok(rows)
    }

    /// Runs work on the state of the first page, as if it were for the first page.
    pub(super) fn at_the_top<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ScanError>,
    ) -> Result<T, ScanError> {
        let after = self.after.take();
        self.after =
            after.as_ref().map(|(origin, last)| (*origin, LastRow::ByScore(before_first(last))));
        let done = work(self);
        self.after = after;
        done
    }
}
