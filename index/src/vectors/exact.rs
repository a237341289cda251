//! Exact search: codes first, then full numbers for rows that may be among the best. Knows nothing of graphs.
//!
//! A row is skipped only if the upper bound from its codes is below the worst grain kept. The result is that
//! of a scan of all numbers.

use super::query::QueryVector;
use super::rows::VectorRows;
use super::top_neighbours::TopNeighbours;

/// The number of rows refined in the first round, for each result requested, and at least.
const REFINED_PER_RESULT: usize = 8;
const MIN_REFINED_ROWS: usize = 256;
/// The growth factor of each further round.
const REFINE_GROWTH: usize = 8;

/// An upper bound on a row's score, and the row.
type RowBound = (f32, u32);

/// Offers every row of `among` that can be among the best.
pub(crate) fn search<E>(
    rows: &VectorRows,
    query: &QueryVector<'_>,
    among: &(impl Iterator<Item = u32> + Clone),
    best: &mut TopNeighbours<'_, E>,
    limit: usize,
) -> Result<(), E> {
    let mut close =
        limit.saturating_mul(REFINED_PER_RESULT).max(MIN_REFINED_ROWS).min(rows.len().max(1));
    let mut done: Option<RowBound> = None;
    loop {
        let bounds = greatest_bounds(rows, query, among.clone(), best.floor(), done, close);
        let more = bounds.len() == close;
        done = bounds.last().copied();
        for (bound, row) in bounds {
            if best.floor().is_some_and(|floor| bound < floor) {
                return Ok(());
            }
            if let (Some(key), Some(score)) = (rows.key(row), query.score(rows, row)) {
                best.offer(key, score)?;
            }
        }
        if !more {
            return Ok(());
        }
        close = close.saturating_mul(REFINE_GROWTH).min(rows.len().max(1));
    }
}

/// The `close` greatest bounds after `done`, greatest first.
fn greatest_bounds(
    rows: &VectorRows,
    query: &QueryVector<'_>,
    among: impl Iterator<Item = u32>,
    floor: Option<f32>,
    done: Option<RowBound>,
    close: usize,
) -> Vec<RowBound> {
    let mut bounds: Vec<RowBound> = Vec::with_capacity(close.saturating_mul(2));
    let mut least = floor.unwrap_or(f32::NEG_INFINITY);
    for row in among {
        if rows.is_dead(row) {
            continue;
        }
        let bound = (query.upper_bound(rows, row), row);
        let is_done = done.is_some_and(|done| by_bound(&bound, &done).is_le());
        if bound.0 < least || is_done {
            continue;
        }
        bounds.push(bound);
        if bounds.len() >= close.saturating_mul(2) {
            bounds.select_nth_unstable_by(close.saturating_sub(1), by_bound);
            bounds.truncate(close);
            least = bounds.last().map_or(least, |bound| bound.0.max(least));
        }
    }
    bounds.sort_unstable_by(by_bound);
    bounds.truncate(close);
    bounds
}

/// Greater bounds first, then ascending rows.
fn by_bound(a: &RowBound, b: &RowBound) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
