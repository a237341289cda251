//! Times of the same work by two, taken in turns so that both meet the same machine.

use std::time::Instant;

use crate::Result;

/// Runs of each before anything is timed.
const WARM: usize = 20;

/// Medians in microseconds of two kinds of work over the same questions, `rounds` times each.
pub(crate) fn in_turns<Q>(
    questions: &[Q],
    rounds: usize,
    mut ours: impl FnMut(&Q) -> Result<usize>,
    mut theirs: impl FnMut(&Q) -> Result<usize>,
) -> Result<(f64, f64)> {
    for question in questions.iter().cycle().take(WARM) {
        ours(question)?;
        theirs(question)?;
    }
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for question in questions {
            own.push(micros(|| ours(question))?.0);
            other.push(micros(|| theirs(question))?.0);
        }
    }
    Ok((median(own), median(other)))
}

/// How long something took, in microseconds, and what came of it.
pub(crate) fn micros<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let began = Instant::now();
    let result = std::hint::black_box(work()?);
    Ok((began.elapsed().as_secs_f64() * 1e6, result))
}

/// The middle of some times; 0 of none.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
