//! The two questions about a time (OMS 15.2): whether a grain was known to be current then, and whether it
//! was said to be true then. The one answer to each, for every way to ask.

use grainstore_format::{EpochMs, GrainRef, GrainState};

use crate::bounds::Visibility;

/// Whether a grain was known to be current at this time: from `system_valid_from`, else `created_at`,
/// until the end its state has. Without an end nothing tells when the state was reached, so what is
/// not current then was so at no time, unless `visibility` lets it in.
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

/// Whether the payload says that it is true at this time; absent ends are open.
#[must_use]
pub fn is_valid_at(grain: &GrainRef<'_>, at: EpochMs) -> bool {
    grain.int("valid_from").is_none_or(|from| from <= at.get())
        && grain.int("valid_to").is_none_or(|to| at.get() <= to)
}
