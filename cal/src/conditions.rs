//! CAL conditions without a statement, for `grain export --where`. They mean the same as after WHERE.

use grainstore_format::EpochMs;

use crate::check::{self, CheckContext};
use crate::error::Result;
use crate::memory::Memory;
use crate::params::Params;
use crate::parse::parse_conditions;
use crate::query::Query;

/// Returns the query for the grains that meet these conditions, such as `subject = "alice" AND time BETWEEN
/// "2025-01-01" AND "2025-12-31"`. Time phrases are resolved against `now`, address prefixes in `memory`.
/// Fields of one grain type need `type = ...` beside them.
///
/// # Errors
/// Those of a RECALL with these conditions, positioned in `source`; E008 for parameters.
///
/// ```
/// # use grainstore_cal::Memory;
/// # fn shown(memory: &dyn Memory, now: grainstore_format::EpochMs) -> grainstore_cal::Result<()> {
/// let query = grainstore_cal::conditions("subject = \"alice\"", memory, now)?;
/// assert_eq!(query.subject_eq(), Some("alice"));
/// # Ok(())
/// # }
/// ```
pub fn conditions(source: &str, memory: &dyn Memory, now: EpochMs) -> Result<Query> {
    let params = Params::new();
    let mut context = CheckContext::new(memory, &params, now, false);
    let query = parse_conditions(source).and_then(|given| check::conditions(&given, &mut context));
    query.map_err(|error| error.locate(source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testutil::Fake;

    #[test]
    fn conditions_alone_mean_what_they_mean_behind_where() {
        let memory = Fake::default();
        let of = |source| conditions(source, &memory, EpochMs::new(0));
        let query = of(r#"subject = "alice" AND tags INCLUDE ["x"]"#).unwrap();
        assert_eq!(query.subject_eq(), Some("alice"));
        assert_eq!(query.tags_all().collect::<Vec<_>>(), ["x"]);
        let goals = of(r#"type = "goal" AND goal_state = "active""#).unwrap();
        assert_eq!(goals.predicates().len(), 1, "the type is no predicate");
        for (source, code) in [
            ("", "CAL-E014"),
            (r#"WHERE subject = "a""#, "CAL-E002"),
            (r#"subject = "a" LIMIT 5"#, "CAL-E002"),
            (r#"subjekt = "a""#, "CAL-E004"),
            ("subject = $who", "CAL-E008"),
            (r#"goal_state = "active""#, "CAL-E061"),
            ("subject IN (RECALL beliefs | SUBJECTS)", "CAL-E002"),
        ] {
            let error = of(source).unwrap_err();
            assert_eq!(error.code(), code, "{source}: {error}");
        }
        let error = of("subjekt = 1").unwrap_err();
        assert_eq!(error.position().map(|place| (place.start, place.end)), Some((0, 7)));
    }
}
