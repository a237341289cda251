//! Vectors for tests, and the naive scan that searches are compared with. Knows nothing of codes or graphs.

use std::sync::atomic::AtomicBool;

use super::approximate::BuildOptions;
use super::neighbour::Neighbour;
use super::space::{Metric, Space, Vector};
use super::vector_index::VectorIndex;
use super::work::{SavedGraph, WorkOutcome};
use crate::error::Result;
use crate::posting::Sequence;

/// A deterministic pseudo-random generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn place(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }

    /// A number in -1..1, more often near 0.
    fn number(&mut self) -> f32 {
        let mut part = || f32::from(u16::try_from(self.next() >> 48).unwrap()) / 65_536.0;
        part() + part() - 1.0
    }

    pub(crate) fn vector(&mut self, dimension: usize) -> Vec<f32> {
        (0..dimension).map(|_| self.number()).collect()
    }
}

/// Vectors around `count / 40` centres, which are clustered themselves.
pub(crate) fn clustered(random: &mut Random, count: usize, dimension: usize) -> Vec<Vec<f32>> {
    let add = |a: &[f32], b: Vec<f32>, share: f32| -> Vec<f32> {
        a.iter().zip(b).map(|(a, b)| a + share * b).collect()
    };
    let groups: Vec<Vec<f32>> = (0..=count / 500).map(|_| random.vector(dimension)).collect();
    let middles: Vec<Vec<f32>> = (0..=count / 40)
        .map(|at| add(&groups[at % groups.len()], random.vector(dimension), 0.7))
        .collect();
    (0..count)
        .map(|_| {
            let middle = random.place(middles.len());
            add(&middles[middle], random.vector(dimension), 0.8)
        })
        .collect()
}

pub(crate) fn vector(values: &[f32]) -> Vector {
    Vector::new(values.to_vec()).unwrap()
}

pub(crate) fn space(dimension: usize, metric: Metric) -> Space {
    Space::new("test", dimension, metric).unwrap()
}

/// Addresses in another order than the sequences.
pub(crate) fn address(sequence: Sequence) -> [u8; 32] {
    let mut address = [7; 32];
    address[..8].copy_from_slice(&sequence.get().wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    address
}

/// Accepts every grain.
pub(crate) fn anyone(sequence: Sequence) -> Result<Option<[u8; 32]>> {
    Ok(Some(address(sequence)))
}

/// The best of all these, in `f64`, one after the other.
pub(crate) fn naive(
    metric: Metric,
    query: &[f32],
    rows: &[(Sequence, u32, Vec<f32>)],
    limit: usize,
    may: impl Fn(Sequence) -> bool,
) -> Vec<Neighbour> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let score = |row: &[f32]| match metric {
        Metric::Cosine => dot(query, row) / (dot(query, query).sqrt() * dot(row, row).sqrt()),
        Metric::Dot => dot(query, row),
        Metric::L2 => {
            let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
            -query.iter().zip(row).map(square).sum::<f64>().sqrt()
        }
    };
    let mut all: Vec<Neighbour> = Vec::new();
    for (sequence, chunk, row) in rows.iter().filter(|(sequence, ..)| may(*sequence)) {
        #[expect(clippy::cast_possible_truncation, reason = "scores are rounded once")]
        let score = score(row) as f32 + 0.0;
        let near = Neighbour { sequence: *sequence, chunk: *chunk, score };
        match all.iter_mut().find(|other| other.sequence == *sequence) {
            None => all.push(near),
            Some(other) if (score, other.chunk) > (other.score, *chunk) => *other = near,
            Some(_) => {}
        }
    }
    all.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(address(a.sequence).cmp(&address(b.sequence)))
    });
    all.truncate(limit);
    all
}

/// Runs the work due until none is left.
pub(crate) fn settle(vector_index: &mut VectorIndex) -> (Vec<WorkOutcome>, Option<SavedGraph>) {
    let stop = AtomicBool::new(false);
    let (mut outcomes, mut saved) = (Vec::new(), None);
    while let Some(work) = vector_index.next_work() {
        let done = work.run(&BuildOptions { threads: 2, stop: &stop });
        let (outcome, file) = vector_index.adopt(done);
        outcomes.push(outcome);
        saved = file.or(saved);
    }
    (outcomes, saved)
}
