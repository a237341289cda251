//! The values ORDER BY and dedup look at, read alike from encoded and decoded grains.

use std::cmp::Ordering;

use grainstore_format::{EpochMs, Grain, GrainRef, GrainState};

use crate::check::plan::SortKey;
use crate::fields::Field;

/// A value to sort or compare by. Grains without one come last.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) enum SortValue {
    Whole(i64),
    Number(f64),
    Text(String),
    Missing,
}

/// What a grain can be asked for, encoded or not.
pub(super) trait Readable {
    fn text(&self, name: &str) -> Option<&str>;
    fn number(&self, name: &str) -> Option<f64>;
    fn time(&self) -> EpochMs;
}

impl Readable for GrainRef<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        GrainRef::text(self, name)
    }
    fn number(&self, name: &str) -> Option<f64> {
        GrainRef::number(self, name)
    }
    fn time(&self) -> EpochMs {
        GrainRef::time(self)
    }
}

impl Readable for Grain {
    fn text(&self, name: &str) -> Option<&str> {
        Grain::text(self, name)
    }
    fn number(&self, name: &str) -> Option<f64> {
        Grain::number(self, name)
    }
    fn time(&self) -> EpochMs {
        Grain::time(self)
    }
}

/// The value of a field.
pub(super) fn value(field: &Field, grain: &impl Readable, state: &GrainState) -> SortValue {
    match field.name {
        "time" => SortValue::Whole(grain.time().get()),
        // Every structural match scores the same, so only the tie-break orders.
        "score" => SortValue::Missing,
        "verification_status" => SortValue::Text(state.verification_status.name().to_owned()),
        _ => match (grain.text(field.payload), grain.number(field.payload)) {
            (Some(text), _) => SortValue::Text(text.to_owned()),
            (None, Some(number)) => SortValue::Number(number),
            (None, None) => SortValue::Missing,
        },
    }
}

/// The order of two values under a key; missing ones last either way.
pub(super) fn order(key: &SortKey, a: &SortValue, b: &SortValue) -> Ordering {
    match (a, b) {
        (SortValue::Missing, SortValue::Missing) => Ordering::Equal,
        (SortValue::Missing, _) => Ordering::Greater,
        (_, SortValue::Missing) => Ordering::Less,
        _ => {
            let ascending = a.partial_cmp(b).unwrap_or(Ordering::Equal);
            if key.descending { ascending.reverse() } else { ascending }
        }
    }
}
