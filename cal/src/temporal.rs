//! Tests of a grain against a time (OMS 15.2): known to be current then, and valid then. Every caller uses
//! these two functions, so that all queries agree.

use grainstore_format::{EpochMs, GrainRef, GrainState};

use crate::bounds::Visibility;

/// Returns `true` if the grain was known to be current at `at`: from `system_valid_from`, else
/// `created_at`, until `system_valid_to` of its state. Without `system_valid_to` it is unknown when the
/// state was reached, so a grain that is not current now counts as never current, unless `visibility`
/// admits it.
///
/// ```
/// use grainstore_cal::{Visibility, is_known_at};
/// use grainstore_format::{EpochMs, Encoding, EventBuilder, GrainRef, GrainState};
///
/// let at = EpochMs::new;
/// let blob = EventBuilder::new(at(1_000), "alice moved").build()?.encode(Encoding::MessagePack)?;
/// let grain = GrainRef::new(blob.bytes())?;
/// let state = GrainState { system_valid_to: Some(at(5_000)), ..GrainState::default() };
/// let known = |time| is_known_at(&grain, &state, Visibility::default(), at(time));
/// assert_eq!((known(999), known(1_000), known(5_000)), (false, true, false));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
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
///
/// ```
/// use grainstore_cal::is_valid_at;
/// use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
///
/// let created_at = EpochMs::new(1_768_471_200_000);
/// let blob = BeliefBuilder::new(created_at, "alice", "works_at", "Acme", 0.9)
///     .valid_to(EpochMs::new(1_800_000_000_000))
///     .build()?
///     .encode(Encoding::MessagePack)?;
/// let grain = GrainRef::new(blob.bytes())?;
/// assert!(is_valid_at(&grain, EpochMs::new(1_800_000_000_000)));
/// assert!(!is_valid_at(&grain, EpochMs::new(1_800_000_000_001)));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[must_use]
pub fn is_valid_at(grain: &GrainRef<'_>, at: EpochMs) -> bool {
    grain.int("valid_from").is_none_or(|from| from <= at.get())
        && grain.int("valid_to").is_none_or(|to| at.get() <= to)
}
