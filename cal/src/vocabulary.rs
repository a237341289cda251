//! The words of the language for who helps somebody to write it: an editor, a prompt.
//!
//! Everything is read from the tables the parser and the checker use themselves, so that what is
//! offered is what is understood. It knows no memory.

use crate::ast::StreamOption;
use crate::check::domain::DOMAINS;
use crate::fields::{self, Shape};
use crate::parse;
use crate::relations;
use crate::suggest;
use crate::types::{self, TYPE_NAMES, TypeName};
use crate::words;

/// The words of the grammar, in upper case.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    words::keywords()
}

/// The ten grain types as RECALL names them.
pub fn plurals() -> impl Iterator<Item = &'static str> {
    types::plurals()
}

/// The ten grain types as ADD and DESCRIBE name them.
pub fn singulars() -> impl Iterator<Item = &'static str> {
    types::singulars()
}

/// The fields of the type of this name, singular or plural, common ones included; without a type that
/// is known, the common ones.
pub fn fields_of(type_name: Option<&str>) -> impl Iterator<Item = &'static str> {
    fields::names_for(type_name.and_then(type_named).map(|named| named.grain_type))
}

/// The values of a field that has a closed list of them; none for others.
#[must_use]
pub fn values_of(field: &str) -> &'static [&'static str] {
    match fields::by_name(field).map(|field| field.shape) {
        Some(Shape::Word(vocabulary)) => vocabulary.values,
        _ => &[],
    }
}

/// The fields ORDER BY takes.
pub fn sortable() -> impl Iterator<Item = &'static str> {
    fields::sortable_names()
}

/// The fields GROUP BY takes.
pub fn groupable() -> impl Iterator<Item = &'static str> {
    fields::GROUPABLE.into_iter()
}

/// The options of WITH that this version acts on.
pub fn options() -> impl Iterator<Item = &'static str> {
    parse::option_names()
}

/// The options of STREAM.
pub fn streamed() -> impl Iterator<Item = &'static str> {
    StreamOption::NAMES.into_iter()
}

/// What DESCRIBE tells about.
pub fn described() -> impl Iterator<Item = &'static str> {
    parse::DESCRIBED.into_iter()
}

/// The categories of `relation IS`, in upper case.
pub fn categories() -> impl Iterator<Item = &'static str> {
    relations::CATEGORIES.iter().map(|category| category.keyword.text())
}

/// The relations of the `mg:` vocabulary.
pub fn relations() -> impl Iterator<Item = &'static str> {
    relations::vocabulary()
}

/// The prefixes of domain fields, without the colon.
pub fn domains() -> impl Iterator<Item = &'static str> {
    DOMAINS.into_iter().map(|(prefix, _)| prefix)
}

/// The known word that somebody probably meant; none where nothing is near.
pub fn meant(given: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    suggest::closest(given, known).map(|(word, _)| word)
}

/// Whether a word names a grain type, singular or plural, in any case.
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
        for what in described() {
            assert!(parse(&format!("DESCRIBE {what}")).is_ok(), "{what}");
        }
        for option in streamed().filter(|option| *option != "chunk_size") {
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
        for option in options() {
            let bare = format!("RECALL beliefs WITH {option}");
            let refused = parse(&bare).err().map(|error| error.message().to_owned());
            let refused = refused.filter(|message| message.contains("not in this version"));
            assert_eq!(refused, None, "{option}");
        }
        assert_eq!(values_of("goal_state").len(), 7);
        assert!(values_of("subject").is_empty() && values_of("nonsense").is_empty());
        assert!(keywords().all(|word| words::classify(word) != words::Word::Name));
        assert!(relations().all(|relation| !relations::is_unknown_mg(relation)));
        assert!(domains().all(|prefix| !prefix.contains(':')));
        assert!(is_type("facts") && is_type("Belief") && !is_type("thing"));
    }
}
