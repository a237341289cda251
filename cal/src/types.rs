//! The names of the ten grain types (CAL 5.1): plural after RECALL, singular after ADD, old names as
//! aliases.

use grainstore_format::GrainType;

use crate::codes::ErrorKind;
use crate::error::Error;
use crate::suggest;

/// One name of a grain type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) grain_type: GrainType,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    /// True for an old name, which is accepted with warning W102.
    pub(crate) old: bool,
}

const fn name(grain_type: GrainType, plural: &'static str, singular: &'static str) -> TypeName {
    TypeName { grain_type, plural, singular, old: false }
}

const fn old(grain_type: GrainType, plural: &'static str, singular: &'static str) -> TypeName {
    TypeName { grain_type, plural, singular, old: true }
}

/// All names; the ten canonical ones first, in the order of their type bytes.
pub(crate) static TYPE_NAMES: [TypeName; 12] = [
    name(GrainType::Belief, "beliefs", "belief"),
    name(GrainType::Event, "events", "event"),
    name(GrainType::State, "states", "state"),
    name(GrainType::Workflow, "workflows", "workflow"),
    name(GrainType::Action, "actions", "action"),
    name(GrainType::Observation, "observations", "observation"),
    name(GrainType::Goal, "goals", "goal"),
    name(GrainType::Reasoning, "reasonings", "reasoning"),
    name(GrainType::Consensus, "consensuses", "consensus"),
    name(GrainType::Consent, "consents", "consent"),
    old(GrainType::Belief, "facts", "fact"),
    old(GrainType::Action, "tools", "tool"),
];

/// Returns the type that a plural names, in any case.
pub(crate) fn by_plural(word: &str) -> Option<&'static TypeName> {
    TYPE_NAMES.iter().find(|name| name.plural.eq_ignore_ascii_case(word))
}

/// Returns the type that a singular names, in any case.
pub(crate) fn by_singular(word: &str) -> Option<&'static TypeName> {
    TYPE_NAMES.iter().find(|name| name.singular.eq_ignore_ascii_case(word))
}

/// Returns the ten canonical plurals.
pub(crate) fn plurals() -> impl Iterator<Item = &'static str> {
    TYPE_NAMES.iter().filter(|name| !name.old).map(|name| name.plural)
}

/// Returns the ten canonical singulars.
pub(crate) fn singulars() -> impl Iterator<Item = &'static str> {
    TYPE_NAMES.iter().filter(|name| !name.old).map(|name| name.singular)
}

/// Returns E003 for a word that is not a plural.
pub(crate) fn unknown_plural(word: &str) -> Error {
    let suggestion = match by_singular(word) {
        Some(name) => format!("Did you mean \"{}\"?", plural_of(name.grain_type)),
        None => {
            let near = suggest::closest(word, all_plurals()).and_then(|(near, _)| by_plural(near));
            match near {
                Some(name) => format!("Did you mean \"{}\"?", plural_of(name.grain_type)),
                None => ErrorKind::UnknownType.advice().to_owned(),
            }
        }
    };
    unknown(word).suggest(suggestion).valid(plurals())
}

/// Returns E003 for a word that is not a singular.
pub(crate) fn unknown_singular(word: &str) -> Error {
    let advice = suggest::did_you_mean(word, singulars(), ErrorKind::UnknownType.advice());
    unknown(word).suggest(advice).valid(singulars())
}

fn unknown(word: &str) -> Error {
    Error::new(ErrorKind::UnknownType, format!("unknown grain type \"{word}\""))
}

/// Types that ADD can create (CAL 8.8).
pub(crate) const ADDABLE: [GrainType; 3] =
    [GrainType::Belief, GrainType::Observation, GrainType::Goal];

/// Returns the singulars that ADD accepts, old names last.
pub(crate) fn addable_singulars() -> impl Iterator<Item = &'static str> {
    TYPE_NAMES.iter().filter(|name| ADDABLE.contains(&name.grain_type)).map(|name| name.singular)
}

/// Returns every plural, old names last.
pub(crate) fn all_plurals() -> impl Iterator<Item = &'static str> {
    TYPE_NAMES.iter().map(|name| name.plural)
}

/// Returns every singular, old names last.
pub(crate) fn all_singulars() -> impl Iterator<Item = &'static str> {
    TYPE_NAMES.iter().map(|name| name.singular)
}

/// Returns the canonical plural of a standard type.
pub(crate) fn plural_of(grain_type: GrainType) -> &'static str {
    TYPE_NAMES.iter().find(|name| name.grain_type == grain_type).map_or("", |name| name.plural)
}

/// Returns the canonical singular of a standard type.
pub(crate) fn singular_of(grain_type: GrainType) -> &'static str {
    TYPE_NAMES.iter().find(|name| name.grain_type == grain_type).map_or("", |name| name.singular)
}
