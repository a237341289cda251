//! Tests of a grain against a time (OMS 15.2): known to be current then, and valid then. Every caller uses
//! these two functions, so that all queries agree.

use grainstore_format::{EpochMs, GrainRef, GrainState};

use crate::bounds::Visibility;

/// Returns `true` if the grain was known to be current at `at`: from `system_valid_from`, else
/// `created_at`, until `system_valid_to` of its state. Without `system_valid_to` it is unknown when the
/// state was reached, so a grain that is not current now counts as never current, unless `visibility`
/// admits it.
#[must_use]
pub fn is_known_at(
    grain: &GrainRef<'_>,
    state: &GrainState,
    visibility: Visibility,
    at: EpochMs,
) -> bool {
    let from = grain.int("system_valid_from").or_else(|| grain.int("created_at"));
    from.is_some_and(|from| EpochMs::new(from) <= at)
        && match state.system_valid_to {
            Some(until) => at < until,
            None => visibility.admits(state, at),
        }
}

/// Returns `true` if the payload says it is valid at `at`; absent ends are open.
#[must_use]
pub fn is_valid_at(grain: &GrainRef<'_>, at: EpochMs) -> bool {
    grain.int("valid_from").is_none_or(|from| from <= at.get())
        && grain.int("valid_to").is_none_or(|to| at.get() <= to)
}
