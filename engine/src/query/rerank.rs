//! The best answers in another order: newer ones first, those that were wanted before, no two that say
//! the same.
//!
//! The best [`Rerank::POOL`] are looked at and no others are given. Likeness is that of vectors where
//! both have one of the same model, else that of their own words.

use std::collections::HashMap;
use std::ops::ControlFlow;

use grainstore_cal::{Candidate, Diversity, Rerank, Score, Visit};
use grainstore_format::{ContentAddress, EpochMs, GrainState};
use grainstore_index::Sequence;
use grainstore_index::text::Document;
use grainstore_index::vectors::{Space, View as Spaces};

use super::cursor::{Last, Rank, Ranking};
use super::walk::{Halt, Walk};
use crate::error::{Error, ErrorKind, Result};
use crate::view::{View, with_fields};

/// What is left of the score of a grain that is old, or was never wanted.
const LEFT: f64 = 0.5;
/// Reads that make a grain count nearly as much as one can: each halves what is missing, of those an
/// access half-life ago half.
const READS: f64 = 4.0;
/// How long it takes a read to count half.
const ACCESS_HALF_LIFE_MS: f64 = 30.0 * 86_400_000.0;

/// An answer before it has its place.
struct Pooled {
    address: ContentAddress,
    sequence: Sequence,
    state: GrainState,
    score: Score,
}

impl Walk<'_> {
    /// Shows the best answers of the walk in the order a rerank gives them.
    pub(super) fn reranked(
        &mut self,
        rerank: Rerank,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Halt> {
        self.rank_by(Ranking::Reranked)?;
        let after = self.after.take();
        // A page behind another goes on in the same order, which begins with the best again, as of the
        // state the first page saw.
        self.after = after.as_ref().map(|(origin, last)| (*origin, Last::Rank(before_all(last))));
        let mut pool = self.pool()?;
        self.weigh(rerank, &mut pool)?;
        if let Some(diversity) = rerank.diversity {
            pool = diverse(pool, diversity, &Likeness::of(self)?)?;
        }
        let start = match &after {
            Some((_, Last::Rank(rank))) => {
                let last = pool.iter().position(|pooled| pooled.address == rank.address);
                let gone = || Error::new(ErrorKind::Cursor, "the last answer is no longer there");
                last.ok_or_else(gone)? + 1
            }
            _ => 0,
        };
        self.after = after;
        for Pooled { sequence, state, score, .. } in pool.into_iter().skip(start) {
            if self.query.floor().is_some_and(|floor| !floor.admits(score.value)) {
                continue;
            }
            self.scores.push(score.value);
            if self.show(sequence, Some((&state, score)), visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The best answers in their own order.
    fn pool(&mut self) -> Result<Vec<Pooled>, Halt> {
        let (given, floor) = (std::mem::take(&mut self.given), self.floorless);
        self.floorless = true;
        let mut found: Vec<(ContentAddress, GrainState, Score)> = Vec::new();
        let _ = self.plain(&mut |candidate: Candidate<'_>| {
            found.push((candidate.address, *candidate.state, candidate.score));
            match found.len() < Rerank::POOL {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        (self.given, self.floorless) = (given, floor);
        self.matched = 0;
        self.scores.clear();
        let mut pool = Vec::with_capacity(found.len());
        for (address, state, score) in found {
            if let Some(sequence) = self.view.sequence_of(&address)? {
                pool.push(Pooled { address, sequence, state, score });
            }
        }
        Ok(pool)
    }

    /// Lets age and access change the scores, and the order with them.
    fn weigh(&self, rerank: Rerank, pool: &mut [Pooled]) -> Result<()> {
        if rerank.recency_ms.is_none() && !rerank.access {
            return Ok(());
        }
        let now = self.session.now();
        for pooled in pool.iter_mut() {
            if let Some(half_life) = rerank.recency_ms {
                let read = |blob: &[u8]| with_fields(blob, |grain| Ok(grain.time()));
                let time = self.view.with_blob(pooled.sequence, read)?;
                pooled.score.value *= LEFT + (1.0 - LEFT) * decayed(now, time, half_life as f64);
            }
            if rerank.access {
                let inner = self.session.store().inner();
                let access = inner.access_of(self.view, pooled.sequence)?;
                let last = access.last_accessed_at.unwrap_or_default();
                let reads = access.count as f64 * decayed(now, last, ACCESS_HALF_LIFE_MS);
                let wanted = 1.0 - (-reads / READS).exp2();
                pooled.score.value *= LEFT + (1.0 - LEFT) * wanted;
            }
        }
        pool.sort_by(|a, b| {
            b.score.value.total_cmp(&a.score.value).then(a.address.cmp(&b.address))
        });
        Ok(())
    }
}

/// The place before the best answer, with the statistics of a cursor.
pub(super) fn before_all(last: &Last) -> Rank {
    let statistics = match last {
        Last::Rank(rank) => rank.statistics.clone(),
        Last::Place(_) => Vec::new(),
    };
    let address = ContentAddress::from_bytes([0; 32]);
    Rank { score: f64::INFINITY, address, ranking: Ranking::Reranked, statistics }
}

/// What is left of something by now: halved in each half-life since.
fn decayed(now: EpochMs, since: EpochMs, half_life_ms: f64) -> f64 {
    let age = now.get().saturating_sub(since.get()).max(0) as f64;
    if half_life_ms > 0.0 { (-age / half_life_ms).exp2() } else { 0.0 }
}

/// The answers so that none is too like one before it.
fn diverse(pool: Vec<Pooled>, by: Diversity, like: &Likeness<'_>) -> Result<Vec<Pooled>> {
    let best = pool.first().map_or(0.0, |pooled| pooled.score.value);
    let mut left = pool;
    let mut chosen: Vec<Pooled> = Vec::with_capacity(left.len());
    // How like each of those left is to what is most like it among the chosen.
    let mut nearest = vec![0.0_f64; left.len()];
    let mut known = Known::default();
    while !left.is_empty() {
        let worth = |at: usize, pooled: &Pooled| match by {
            Diversity::Mmr { lambda } => {
                let relevance = if best > 0.0 { pooled.score.value / best } else { 0.0 };
                lambda * relevance - (1.0 - lambda) * nearest.get(at).copied().unwrap_or(0.0)
            }
            Diversity::Threshold(_) => -(at as f64),
        };
        let worths = left.iter().enumerate().map(|(at, pooled)| (at, worth(at, pooled)));
        // Of equals the first, which is the better answer.
        let next = worths.reduce(|best, other| if other.1 > best.1 { other } else { best });
        let Some((next, _)) = next else { break };
        let pooled = left.remove(next);
        let likeness = nearest.remove(next);
        if matches!(by, Diversity::Threshold(most) if likeness > most) {
            continue;
        }
        for (other, nearest) in left.iter().zip(&mut nearest) {
            *nearest = nearest.max(like.between(&mut known, pooled.sequence, other.sequence)?);
        }
        chosen.push(pooled);
    }
    Ok(chosen)
}

/// What tells how like two grains are, from 0 to 1.
struct Likeness<'v> {
    view: &'v View,
    spaces: Option<(&'v Spaces, Vec<Space>)>,
    wording: &'v crate::texts::Wording,
}

/// Words of grains that were read.
type Known = HashMap<Sequence, Document>;

impl<'v> Likeness<'v> {
    fn of(walk: &Walk<'v>) -> Result<Self> {
        let inner = walk.session.store().inner();
        let known: Vec<Space> = walk.view.spaces()?.values().cloned().collect();
        let spaces = match known.is_empty() {
            true => None,
            false => Some((walk.view.vectors(inner.vectors())?, known)),
        };
        Ok(Self { view: walk.view, spaces, wording: inner.library().wording() })
    }

    fn between(&self, known: &mut Known, a: Sequence, b: Sequence) -> Result<f64> {
        if let Some((spaces, all)) = &self.spaces {
            let near = all.iter().find_map(|space| spaces.between(space, a, b));
            if let Some(near) = near {
                // A cosine of nothing in common is the middle of closeness.
                return Ok((2.0 * f64::from(near) - 1.0).clamp(0.0, 1.0));
            }
        }
        self.read(known, a)?;
        self.read(known, b)?;
        Ok(match (known.get(&a), known.get(&b)) {
            (Some(a), Some(b)) => cosine(a, b),
            _ => 0.0,
        })
    }

    fn read(&self, known: &mut Known, at: Sequence) -> Result<()> {
        if known.contains_key(&at) {
            return Ok(());
        }
        let document = self
            .view
            .with_blob(at, |blob| with_fields(blob, |grain| Ok(self.wording.document(grain))))?;
        known.insert(at, document);
        Ok(())
    }
}

/// The cosine of two grains' words, by their weights.
fn cosine(a: &Document, b: &Document) -> f64 {
    let square =
        |of: &Document| of.words().iter().map(|word| f64::from(word.weight).powi(2)).sum::<f64>();
    let shared = a
        .words()
        .iter()
        .filter_map(|word| Some(f64::from(word.weight) * f64::from(b.word(&word.term)?.weight)));
    let lengths = (square(a) * square(b)).sqrt();
    if lengths > 0.0 { shared.sum::<f64>() / lengths } else { 0.0 }
}
