//! The part of a predicate that an index can answer, so that a memory can drive a recall by it.

use grainstore_format::{Value, VerificationStatus};

use super::{Check, DomainTest, Predicate, TAGS, Want};

/// An index lookup whose result contains every grain the predicate matches, and maybe more;
/// [`Predicate::matches`] decides.
///
/// ```
/// use grainstore_cal::{Lookup, Predicate};
///
/// let predicate = Predicate::text_is("subject", "alice")?;
/// assert_eq!(predicate.lookup(), Some(Lookup::Text { field: "subject", value: "alice" }));
/// assert_eq!(Predicate::contradicted(true).lookup(), None);
/// # Ok::<(), grainstore_cal::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup<'p> {
    /// Grains with this text in the payload field `field`.
    Text {
        /// The payload field.
        field: &'static str,
        /// The text.
        value: &'p str,
    },
    /// Grains with one of several texts in the payload field `field`.
    OneOf {
        /// The payload field.
        field: &'static str,
        /// The texts; if empty, no grain matches.
        values: &'p [String],
    },
    /// Grains with one of several addresses in the payload field `field`: a text, a list of them, or for
    /// `related_to` a list of links. Given without `sha256:`; grains hold them with or without it.
    Address {
        /// The payload field.
        field: &'static str,
        /// The addresses: 64 hex digits, or any other text that the query compares with the field.
        digits: &'p [String],
    },
    /// Grains with all of these tags.
    Tags(&'p [String]),
    /// Grains with one of several texts in a domain field, at top level or in the context. `int:` fields
    /// are also stored under the short keys of OMS appendix C.
    Domain {
        /// The name with its prefix, such as `hc:patient_id`.
        name: &'p str,
        /// The texts.
        values: &'p [String],
    },
    /// Grains whose object is this map, equal by canonical content.
    ObjectMap(&'p Value),
    /// Grains with this verification status (index state).
    Status(VerificationStatus),
    /// Grains of this partition: the namespace, or `shared` if a grain names none.
    Namespace(&'p str),
}

impl Predicate {
    /// Returns a lookup that an index can answer; `None` if each grain must be read.
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

    /// Returns the text that the payload field `name` must equal, if the predicate asks for exactly one.
    pub(crate) fn text_eq(&self, name: &str) -> Option<&str> {
        match self.lookup() {
            Some(Lookup::Text { field, value }) if field == name => Some(value),
            _ => None,
        }
    }

    /// Returns the texts one of which the payload field `name` must equal, if the predicate lists them.
    pub(crate) fn one_of(&self, name: &str) -> Option<&[String]> {
        match self.lookup() {
            Some(Lookup::OneOf { field, values }) if field == name => Some(values),
            _ => None,
        }
    }

    /// Returns the tags that it requires; empty if it requires none.
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
