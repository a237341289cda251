//! The words of the language, for editors and prompts that help to write it. Which of them may stand somewhere,
//! [`next_words`](crate::next_words) says.
//!
//! All lists come from the tables that parser and checker use, so every word offered is understood. This
//! module knows no memory.

use crate::fields::{self, ValueKind};
use crate::relations;
use crate::suggest;
use crate::types::{self, TYPE_NAMES, TypeName};

/// Returns the names of the ten grain types after ADD and DESCRIBE.
///
/// ```
/// use grainstore_cal::vocabulary;
///
/// assert_eq!(vocabulary::singulars().next(), Some("belief"));
/// assert_eq!(vocabulary::singulars().count(), 10);
/// ```
pub fn singulars() -> impl Iterator<Item = &'static str> {
    types::singulars()
}

/// Returns the fields of the type of this name, singular or plural, with the common ones; the common ones
/// if the type is missing or unknown.
///
/// ```
/// use grainstore_cal::vocabulary;
///
/// assert!(vocabulary::fields_of(Some("goals")).any(|field| field == "goal_state"));
/// assert!(!vocabulary::fields_of(None).any(|field| field == "goal_state"));
/// ```
pub fn fields_of(type_name: Option<&str>) -> impl Iterator<Item = &'static str> {
    fields::names_for(type_name.and_then(type_named).map(|named| named.grain_type))
}

/// Returns the values of a field with a closed list; empty for others.
///
/// ```
/// use grainstore_cal::vocabulary;
///
/// assert!(vocabulary::values_of("goal_state").contains(&"active"));
/// assert!(vocabulary::values_of("subject").is_empty());
/// ```
#[must_use]
pub fn values_of(field: &str) -> &'static [&'static str] {
    match fields::by_name(field).map(|field| field.shape) {
        Some(ValueKind::ClosedList(vocabulary)) => vocabulary.values,
        _ => &[],
    }
}

/// Returns the relations of the `mg:` vocabulary.
///
/// ```
/// use grainstore_cal::vocabulary;
///
/// assert!(vocabulary::relations().any(|relation| relation == "mg:prefers"));
/// ```
pub fn relations() -> impl Iterator<Item = &'static str> {
    relations::vocabulary()
}

/// Returns the known word closest to `given`; `None` if none is near.
///
/// ```
/// use grainstore_cal::vocabulary;
///
/// assert_eq!(vocabulary::closest("gaols", ["beliefs", "goals"]), Some("goals"));
/// assert_eq!(vocabulary::closest("weather", ["beliefs", "goals"]), None);
/// ```
pub fn closest(given: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    suggest::closest(given, known).map(|(word, _)| word)
}

/// Returns `true` if a word names a grain type, singular or plural, in any case.
///
/// ```
/// use grainstore_cal::vocabulary;
///
/// assert!(vocabulary::is_type("Goal") && vocabulary::is_type("goals"));
/// assert!(!vocabulary::is_type("goal_state"));
/// ```
#[must_use]
pub fn is_type(word: &str) -> bool {
    type_named(word).is_some()
}

fn type_named(word: &str) -> Option<&'static TypeName> {
    let is_named = |name: &&TypeName| {
        name.plural.eq_ignore_ascii_case(word) || name.singular.eq_ignore_ascii_case(word)
    };
    TYPE_NAMES.iter().find(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn fields_are_those_of_the_type_by_either_name() {
        for (type_name, has, has_not) in [
            (Some("goals"), "goal_state", "role"),
            (Some("GOAL"), "goal_state", "role"),
            (Some("tools"), "tool_name", "goal_state"),
            (None, "subject", "goal_state"),
            (Some("nonsense"), "subject", "goal_state"),
        ] {
            let fields: Vec<_> = fields_of(type_name).collect();
            assert!(fields.contains(&has) && !fields.contains(&has_not), "{type_name:?}");
        }
    }

    #[test]
    fn what_is_offered_is_understood() {
        for singular in singulars() {
            assert!(parse(&format!("DESCRIBE fields {singular}")).is_ok(), "{singular}");
        }
        assert_eq!(values_of("goal_state").len(), 7);
        assert!(values_of("subject").is_empty() && values_of("nonsense").is_empty());
        assert!(relations().all(|relation| !relations::is_unknown_mg(relation)));
        assert!(is_type("facts") && is_type("Belief") && !is_type("thing"));
    }
}
