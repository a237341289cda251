//! A condition on a grain and its evaluation: the meaning of WHERE (CAL 5.4, 6).
//!
//! Matching reads fields from the encoded grain and allocates nothing, except for a map object. A grain
//! without the field never matches, not even with `!=`; an absent tag list counts as empty.

mod build;
mod domain;
mod lookup;

use std::borrow::Cow;
use std::collections::HashSet;

use grainstore_format::{
    ArrayRef, ContentAddress, GrainRef, GrainState, Value, ValueRef, VerificationStatus,
};

pub use lookup::Lookup;

/// The payload field of tags.
const TAGS: &str = "structural_tags";

/// A condition on a grain and its index state.
///
/// ```
/// use grainstore_cal::{Comparator, Predicate};
/// use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef, GrainState};
///
/// let created_at = EpochMs::new(1_768_471_200_000);
/// let belief = BeliefBuilder::new(created_at, "alice", "mg:prefers", "tea", 0.9).build()?;
/// let blob = belief.encode(Encoding::MessagePack)?;
/// let (grain, state) = (GrainRef::new(blob.bytes())?, GrainState::default());
/// let sure = Predicate::field("confidence", Comparator::GreaterEqual, &0.8.into());
/// assert_eq!(sure.map(|sure| sure.matches(&grain, &state)), Some(true));
/// assert!(!Predicate::text_is("subject", "ann")?.matches(&grain, &state));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    /// The CAL name of the field, for `matched_fields`.
    name: Cow<'static, str>,
    check: Check,
}

/// The six comparators of a [`Predicate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterEqual,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `<`
    Less,
}

/// The part of a grain that is tested, and the test.
#[derive(Debug, Clone, PartialEq)]
enum Check {
    /// Text of a payload field.
    Text { payload: &'static str, want: Want },
    /// The object is this map.
    ObjectMap(Value),
    /// A payload field holds one of these addresses, as a text or in a list.
    Address { payload: &'static str, digits: Vec<String> },
    /// A cross-link of one of these kinds to one of these addresses (OMS 14.2).
    Related { kinds: &'static [&'static str], digits: Vec<String> },
    /// A numeric payload field.
    Number { payload: &'static str, comparator: Comparator, value: f64 },
    /// A boolean payload field.
    Flag { payload: &'static str, value: bool },
    /// A payload field in epoch milliseconds; both ends are included.
    Period { payload: &'static str, from: i64, to: i64 },
    /// A payload list that contains all of these.
    HoldsAll { payload: &'static str, values: Vec<String> },
    /// A payload list that contains none of these.
    HoldsNone { payload: &'static str, values: Vec<String> },
    /// The partition: the namespace, or `shared` if the grain names none.
    Namespace(String),
    /// The phase of an action; `complete` if absent.
    ActionPhase(String),
    /// The recall priority; `warm` if absent or unknown (OMS 22.8).
    RecallPriority(String),
    /// The id of a state's context, else its name.
    StateContext(Want),
    /// The purpose of a consent, else its scope joined by ", ".
    Purpose(Want),
    /// A field of a domain profile, at top level or in the context.
    Domain { name: String, test: DomainTest },
    /// Index state: contradicted.
    Contradicted(bool),
    /// Index state: verification status.
    Status(VerificationStatus),
}

/// A test of a text.
#[derive(Debug, Clone, PartialEq)]
enum Want {
    Is(String),
    IsNot(String),
    OneOf(Vec<String>),
}

/// A test of a domain field, whose values have no declared type.
#[derive(Debug, Clone, PartialEq)]
enum DomainTest {
    Text(Want),
    Number(Comparator, f64),
    Flag(bool),
    /// One of these values, if an IN list mixes kinds.
    OneOf(Vec<Value>),
}

impl Predicate {
    /// Returns the CAL name of the field: `subject`, `tags`, `hc:patient_id`.
    #[must_use]
    pub fn field_name(&self) -> &Cow<'static, str> {
        &self.name
    }

    /// Returns `true` if the condition holds for a grain in this state.
    #[must_use]
    pub fn matches(&self, grain: &GrainRef<'_>, state: &GrainState) -> bool {
        match &self.check {
            Check::Text { payload, want } => grain.get(payload).is_some_and(|v| want.holds(&v)),
            Check::ObjectMap(wanted) => grain
                .get("object")
                .is_some_and(|found| found.as_map().is_some() && found.to_value() == *wanted),
            Check::Address { payload, digits } => {
                grain.get(payload).is_some_and(|value| names_one_of(&value, digits))
            }
            Check::Related { kinds, digits } => related(grain, kinds, digits),
            Check::Number { payload, comparator, value } => {
                grain.number(payload).is_some_and(|found| comparator.holds(found, *value))
            }
            Check::Flag { payload, value } => {
                grain.get(payload).and_then(|found| found.as_bool()) == Some(*value)
            }
            Check::Period { payload, from, to } => {
                grain.int(payload).is_some_and(|at| (*from..=*to).contains(&at))
            }
            Check::HoldsAll { payload, values } => {
                list(grain, payload).is_some_and(|items| holds_all(&items, values))
            }
            Check::HoldsNone { payload, values } => {
                list(grain, payload).is_none_or(|items| !holds_any(&items, values))
            }
            Check::Namespace(namespace) => grain.partition() == namespace,
            Check::ActionPhase(phase) => grain.text("action_phase").unwrap_or("complete") == phase,
            Check::RecallPriority(wanted) => {
                let known = |found: &&str| matches!(*found, "hot" | "cold");
                grain.text("recall_priority").filter(known).unwrap_or("warm") == wanted
            }
            Check::StateContext(want) => {
                let context = grain.get("context").and_then(|context| context.as_map());
                let named = context.and_then(|map| map.get("id").or_else(|| map.get("name")));
                named.is_some_and(|value| want.holds(&value))
            }
            Check::Purpose(want) => purpose(grain, want),
            Check::Domain { name, test } => domain::matches(grain, name, test),
            Check::Contradicted(value) => state.contradicted == *value,
            Check::Status(status) => state.verification_status == *status,
        }
    }

    /// Returns which non-current grains the condition asks for: contradicted and retracted ones.
    pub(crate) fn brings_in(&self) -> (bool, bool) {
        match &self.check {
            Check::Contradicted(true) => (true, false),
            Check::Status(VerificationStatus::Retracted) => (false, true),
            _ => (false, false),
        }
    }
}

impl Want {
    /// Returns `true` if a value passes the test. A map equals no text, so it passes every `!=`.
    fn holds(&self, value: &ValueRef<'_>) -> bool {
        match value.as_str() {
            Some(text) => self.holds_text(text),
            None => matches!((self, value), (Self::IsNot(_), ValueRef::Map(_))),
        }
    }

    fn holds_text(&self, text: &str) -> bool {
        match self {
            Self::Is(wanted) => text == wanted,
            Self::IsNot(unwanted) => text != unwanted,
            Self::OneOf(wanted) => wanted.iter().any(|value| value == text),
        }
    }
}

impl Comparator {
    /// Returns `true` if `found` compares so with `value`.
    fn holds(self, found: f64, value: f64) -> bool {
        match self {
            Self::Equal => found == value,
            Self::NotEqual => found != value,
            Self::GreaterEqual => found >= value,
            Self::LessEqual => found <= value,
            Self::Greater => found > value,
            Self::Less => found < value,
        }
    }
}

/// Up to this many texts are searched linearly.
const FEW: usize = 8;

fn list<'g>(grain: &GrainRef<'g>, payload: &str) -> Option<ArrayRef<'g>> {
    grain.get(payload)?.as_array()
}

/// Returns `true` if a list has all of these texts. More than `FEW` of them are looked up in
/// a set.
fn holds_all(items: &ArrayRef<'_>, wanted: &[String]) -> bool {
    if wanted.len() <= FEW {
        return wanted.iter().all(|text| items.iter().any(|item| item.as_str() == Some(text)));
    }
    let held: HashSet<&str> = items.iter().filter_map(|item| item.as_str()).collect();
    wanted.iter().all(|text| held.contains(text.as_str()))
}

/// Returns `true` if a list has one of these texts.
fn holds_any(items: &ArrayRef<'_>, wanted: &[String]) -> bool {
    let mut items = items.iter().filter_map(|item| item.as_str());
    if wanted.len() <= FEW {
        return items.any(|item| wanted.iter().any(|text| text == item));
    }
    let wanted: HashSet<&str> = wanted.iter().map(String::as_str).collect();
    items.any(|item| wanted.contains(item))
}

/// Returns `true` if a text, or a member of a list, is one of these addresses, with or without `sha256:`.
fn names_one_of(value: &ValueRef<'_>, digits: &[String]) -> bool {
    match value.as_array() {
        Some(items) => items.iter().any(|item| is_one_of(&item, digits)),
        None => is_one_of(value, digits),
    }
}

fn is_one_of(value: &ValueRef<'_>, digits: &[String]) -> bool {
    let text = value.as_str().map(ContentAddress::digits);
    text.is_some_and(|text| digits.iter().any(|wanted| wanted == text))
}

fn related(grain: &GrainRef<'_>, kinds: &[&str], digits: &[String]) -> bool {
    let Some(links) = list(grain, "related_to") else { return false };
    links.iter().filter_map(|link| link.as_map()).any(|link| {
        let kind = link.get("relation_type");
        let kind = kind.as_ref().and_then(ValueRef::as_str);
        kind.is_some_and(|kind| kinds.contains(&kind))
            && link.get("hash").is_some_and(|hash| is_one_of(&hash, digits))
    })
}

fn purpose(grain: &GrainRef<'_>, want: &Want) -> bool {
    if let Some(purpose) = grain.get("purpose") {
        return want.holds(&purpose);
    }
    let Some(scope) = list(grain, "scope") else { return false };
    match want {
        Want::Is(wanted) => joins_to(&scope, wanted),
        Want::IsNot(unwanted) => !joins_to(&scope, unwanted),
        Want::OneOf(wanted) => wanted.iter().any(|value| joins_to(&scope, value)),
    }
}

/// Returns `true` if the texts of `items`, joined by ", ", are `wanted`.
fn joins_to(items: &ArrayRef<'_>, wanted: &str) -> bool {
    let mut rest = wanted;
    for (at, item) in items.iter().enumerate() {
        let separated = if at == 0 { Some(rest) } else { rest.strip_prefix(", ") };
        let Some(after) = separated.zip(item.as_str()).and_then(|(r, text)| r.strip_prefix(text))
        else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests;
