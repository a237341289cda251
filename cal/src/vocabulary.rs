//! The words of the language, for editors and prompts that help to write it.
//!
//! All lists come from the tables that parser and checker use, so every word offered is understood. This
//! module knows no memory.

use crate::ast::StreamOption;
use crate::check::domain::DOMAINS;
use crate::fields::{self, ValueKind};
use crate::parse;
use crate::relations;
use crate::suggest;
use crate::types::{self, TYPE_NAMES, TypeName};
use crate::words;

/// Returns the keywords of the grammar, in upper case.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    words::keywords()
}

/// Returns the names of the ten grain types after RECALL.
pub fn plurals() -> impl Iterator<Item = &'static str> {
    types::plurals()
}

/// Returns the names of the ten grain types after ADD and DESCRIBE.
pub fn singulars() -> impl Iterator<Item = &'static str> {
    types::singulars()
}

/// Returns the fields of the type of this name, singular or plural, with the common ones; the common ones
/// if the type is missing or unknown.
pub fn fields_of(type_name: Option<&str>) -> impl Iterator<Item = &'static str> {
    fields::names_for(type_name.and_then(type_named).map(|named| named.grain_type))
}

/// Returns the values of a field with a closed list; empty for others.
#[must_use]
pub fn values_of(field: &str) -> &'static [&'static str] {
    match fields::by_name(field).map(|field| field.shape) {
        Some(ValueKind::ClosedList(vocabulary)) => vocabulary.values,
        _ => &[],
    }
}

/// Returns the fields that ORDER BY takes.
pub fn sortable() -> impl Iterator<Item = &'static str> {
    fields::sortable_names()
}

/// Returns the fields that GROUP BY takes.
pub fn groupable() -> impl Iterator<Item = &'static str> {
    fields::GROUPABLE.into_iter()
}

/// Returns the options of WITH that this version supports.
pub fn with_options() -> impl Iterator<Item = &'static str> {
    parse::option_names()
}

/// Returns the options of STREAM.
pub fn stream_options() -> impl Iterator<Item = &'static str> {
    StreamOption::NAMES.into_iter()
}

/// Returns the targets of DESCRIBE.
pub fn describe_targets() -> impl Iterator<Item = &'static str> {
    parse::DESCRIBED.into_iter()
}

/// Returns the categories of `relation IS`, in upper case.
pub fn categories() -> impl Iterator<Item = &'static str> {
    relations::CATEGORIES.iter().map(|category| category.keyword.text())
}

/// Returns the relations of the `mg:` vocabulary.
pub fn relations() -> impl Iterator<Item = &'static str> {
    relations::vocabulary()
}

/// Returns the prefixes of domain fields, without the colon.
pub fn domains() -> impl Iterator<Item = &'static str> {
    DOMAINS.into_iter().map(|(prefix, _)| prefix)
}

/// Returns the known word closest to `given`; `None` if none is near.
pub fn closest(given: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    suggest::closest(given, known).map(|(word, _)| word)
}

/// Returns `true` if a word names a grain type, singular or plural, in any case.
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
        for plural in plurals() {
            assert!(parse(&format!("RECALL {plural}")).is_ok(), "{plural}");
        }
        for singular in singulars() {
            assert!(parse(&format!("DESCRIBE fields {singular}")).is_ok(), "{singular}");
        }
        for what in describe_targets() {
            assert!(parse(&format!("DESCRIBE {what}")).is_ok(), "{what}");
        }
        for option in stream_options().filter(|option| *option != "chunk_size") {
            let query = format!("ASSEMBLE FROM (RECALL) STREAM {{ {option} }}");
            assert!(parse(&query).is_ok(), "{query}");
        }
        for category in categories() {
            let query = format!("RECALL beliefs WHERE relation IS {category}");
            assert!(parse(&query).is_ok(), "{query}");
        }
        for field in sortable() {
            let query = format!("RECALL beliefs | ORDER BY {field}");
            assert!(parse(&query).is_ok(), "{query}");
        }
        for option in with_options() {
            let bare = format!("RECALL beliefs WITH {option}");
            let refused = parse(&bare).err().map(|error| error.message().to_owned());
            let refused = refused.filter(|message| message.contains("not in this version"));
            assert_eq!(refused, None, "{option}");
        }
        assert_eq!(values_of("goal_state").len(), 7);
        assert!(values_of("subject").is_empty() && values_of("nonsense").is_empty());
        assert!(keywords().all(|word| words::classify(word) != words::WordClass::Name));
        assert!(relations().all(|relation| !relations::is_unknown_mg(relation)));
        assert!(domains().all(|prefix| !prefix.contains(':')));
        assert!(is_type("facts") && is_type("Belief") && !is_type("thing"));
    }
}
