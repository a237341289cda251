//! Vectors: generated ones that stand in crowds, as embeddings of text do, or real ones.

use std::fs;
use std::path::Path;

use crate::Result;
use compare_facts::Random;

/// Numbers of a real vector.
const REAL: usize = 384;

/// Unit vectors.
pub(crate) struct Data {
    pub(crate) rows: Vec<Vec<f32>>,
    pub(crate) queries: Vec<Vec<f32>>,
    /// For the head of a table.
    pub(crate) origin: String,
}

impl Data {
    /// Crowds of about a hundred, twenty crowds around a topic; queries are drawn as rows are.
    pub(crate) fn generated(rows: usize, queries: usize, dimension: usize) -> Self {
        let mut random = Random::new(7);
        let topics: Vec<_> = (0..=rows / 2000).map(|_| normal(&mut random, dimension)).collect();
        let crowds: Vec<Vec<f32>> = (0..=rows / 100)
            .map(|_| {
                let topic = random.pick(&topics).cloned().unwrap_or_default();
                sum(&topic, &normal(&mut random, dimension), 1.0)
            })
            .collect();
        let mut one = || {
            let crowd = random.pick(&crowds).cloned().unwrap_or_default();
            unit(sum(&crowd, &normal(&mut random, dimension), 1.2))
        };
        let rows: Vec<_> = (0..rows).map(|_| one()).collect();
        let queries = (0..queries).map(|_| one()).collect();
        Self { rows, queries, origin: format!("generated vectors of {dimension}") }
    }

    /// All turns of all conversations, and all questions.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let mut names: Vec<_> =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        names.sort();
        let (mut rows, mut queries) = (Vec::new(), Vec::new());
        for path in names {
            let name = path.to_string_lossy();
            let into = if name.ends_with(".turns.f32") {
                &mut rows
            } else if name.ends_with(".qa.f32") {
                &mut queries
            } else {
                continue;
            };
            let bytes = fs::read(&path)?;
            let numbers: Vec<f32> =
                bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            into.extend(numbers.chunks_exact(REAL).map(|row| unit(row.to_vec())));
        }
        Ok(Self { rows, queries, origin: "turns of conversations (MiniLM)".to_owned() })
    }

    /// The nearest rows of each query, by a scan of all numbers.
    pub(crate) fn truth(&self, limit: usize) -> Vec<Vec<usize>> {
        self.truth_of(&self.queries, limit)
    }

    /// The same of other queries.
    pub(crate) fn truth_of(&self, queries: &[Vec<f32>], limit: usize) -> Vec<Vec<usize>> {
        let nearest = |query: &Vec<f32>| {
            let mut all: Vec<(f32, usize)> =
                self.rows.iter().enumerate().map(|(at, row)| (dot(query, row), at)).collect();
            let last = limit.min(all.len()).saturating_sub(1);
            if !all.is_empty() {
                all.select_nth_unstable_by(last, |a, b| b.0.total_cmp(&a.0));
            }
            all.truncate(limit);
            all.into_iter().map(|(_, at)| at).collect()
        };
        queries.iter().map(nearest).collect()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest = a.as_chunks::<16>().1.iter().zip(b.as_chunks::<16>().1).map(|(a, b)| a * b);
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

fn sum(a: &[f32], b: &[f32], share: f32) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| share.mul_add(*b, *a)).collect()
}

fn unit(mut values: Vec<f32>) -> Vec<f32> {
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    for value in &mut values {
        *value /= length;
    }
    values
}

/// About normal: the sum of twelve even numbers.
fn normal(random: &mut Random, dimension: usize) -> Vec<f32> {
    let mut even = || f32::from(u16::try_from(random.below(1 << 16)).unwrap_or(0)) / 65_536.0;
    (0..dimension).map(|_| (0..12).map(|_| even()).sum::<f32>() - 6.0).collect()
}
