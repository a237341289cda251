//! What an index can answer about a condition, so that a memory can drive a recall by it.

use grainstore_format::{Value, VerificationStatus};

use super::{Check, DomainTest, Predicate, TAGS, Want};

/// A question to an index whose answer holds every grain the condition matches, and maybe more:
/// [`Predicate::matches`] has the last word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup<'p> {
    /// The text of the payload field `field`.
    Text {
        /// The payload field.
        field: &'static str,
        /// Its text.
        value: &'p str,
    },
    /// One of several texts of the payload field `field`.
    OneOf {
        /// The payload field.
        field: &'static str,
        /// The texts; may be empty, then nothing matches.
        values: &'p [String],
    },
    /// One of several addresses in the payload field `field`, a text or a list of them, or of
    /// `related_to` a list of links. They are given without `sha256:`, grains hold them with or
    /// without.
    Address {
        /// The payload field.
        field: &'static str,
        /// The addresses; 64 hex digits, or whatever a grain of that field may be asked for.
        digits: &'p [String],
    },
    /// Tags a grain carries, all of them.
    Tags(&'p [String]),
    /// One of several texts of a domain field, at top level or in the context. `int:` fields are
    /// also stored under the short keys of OMS appendix C.
    Domain {
        /// The name with its prefix, such as `hc:patient_id`.
        name: &'p str,
        /// The texts.
        values: &'p [String],
    },
    /// The object, a map; equal by canonical content.
    ObjectMap(&'p Value),
    /// What review made of the grain: index state.
    Status(VerificationStatus),
    /// The partition: the namespace, or `shared` where a grain names none.
    Namespace(&'p str),
}

impl Predicate {
    /// What an index can answer about it; none where only looking at each grain helps.
    #[must_use]
    pub fn lookup(&self) -> Option<Lookup<'_>> {
        match &self.check {
            Check::Text { payload, want } => text(payload, want),
            Check::ObjectMap(map) => Some(Lookup::ObjectMap(map)),
            Check::Address { payload, digits } => Some(Lookup::Address { field: payload, digits }),
            Check::Related { digits, .. } => Some(Lookup::Address { field: "related_to", digits }),
            Check::HoldsAll { payload: TAGS, values } if !values.is_empty() => {
                Some(Lookup::Tags(values))
            }
            Check::Domain { name, test: DomainTest::Text(want) } => Some(match want {
                Want::Is(value) => Lookup::Domain { name, values: std::slice::from_ref(value) },
                Want::OneOf(values) => Lookup::Domain { name, values },
                Want::IsNot(_) => return None,
            }),
            Check::Status(status) => Some(Lookup::Status(*status)),
            Check::Namespace(namespace) => Some(Lookup::Namespace(namespace)),
            _ => None,
        }
    }

    /// The text this asks of the payload field `name`, if it asks for exactly one.
    pub(crate) fn text_eq(&self, name: &str) -> Option<&str> {
        match self.lookup() {
            Some(Lookup::Text { field, value }) if field == name => Some(value),
            _ => None,
        }
    }

    /// The texts one of which this asks of the payload field `name`.
    pub(crate) fn one_of(&self, name: &str) -> Option<&[String]> {
        match self.lookup() {
            Some(Lookup::OneOf { field, values }) if field == name => Some(values),
            _ => None,
        }
    }

    /// The tags this asks for, all of them.
    pub(crate) fn tags_all(&self) -> &[String] {
        match self.lookup() {
            Some(Lookup::Tags(tags)) => tags,
            _ => &[],
        }
    }
}

fn text<'p>(field: &'static str, want: &'p Want) -> Option<Lookup<'p>> {
    match want {
        Want::Is(value) => Some(Lookup::Text { field, value }),
        Want::OneOf(values) => Some(Lookup::OneOf { field, values }),
        Want::IsNot(_) => None,
    }
}
