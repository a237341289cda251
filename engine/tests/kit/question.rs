//! Questions as data: what a test asks of a store, and the [`Query`] that asks it.
//!
//! Knows the constructors of queries and conditions, and no meaning of any; that is `naive`'s.

use super::engine::cal::{
    Comparator, Order, Predicate, Query, Reach, TimeRange, TypeSet, Visibility,
};
use super::engine::format::{ContentAddress, EpochMs, GrainType, Value, VerificationStatus};

/// What is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Question {
    pub(crate) reach: Reach,
    /// One type, or all ten.
    pub(crate) of_type: Option<GrainType>,
    pub(crate) conditions: Vec<Condition>,
    /// First and last millisecond.
    pub(crate) during: Option<(i64, i64)>,
    pub(crate) valid_at: Option<i64>,
    pub(crate) known_at: Option<i64>,
    pub(crate) address: Option<ContentAddress>,
    pub(crate) among: Option<Vec<ContentAddress>>,
    pub(crate) seeing: Visibility,
    pub(crate) order: Order,
}

/// A condition on a grain, one of every kind a host can ask.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    TextIs(&'static str, String),
    TextIn(&'static str, Vec<String>),
    Object(Value),
    Field(&'static str, Comparator, Value),
    FieldIn(&'static str, Vec<String>),
    Domain(String, Comparator, Value),
    DomainIn(String, Vec<Value>),
    Names(&'static str, Vec<ContentAddress>),
    Related(&'static [&'static str], Vec<ContentAddress>),
    TagsInclude(Vec<String>),
    TagsExclude(Vec<String>),
    Contradicted(bool),
    Status(VerificationStatus),
}

impl Question {
    /// A question that asks this alone.
    pub(crate) fn when(condition: Condition) -> Self {
        Self { conditions: vec![condition], ..Self::default() }
    }

    pub(crate) fn query(&self) -> Query {
        let mut query = Query::default().within(self.reach.clone()).ordered(self.order);
        query = query.seeing(self.seeing);
        if let Some(of_type) = self.of_type {
            query = query.of_types(TypeSet::of(of_type));
        }
        if let Some((from, to)) = self.during {
            query = query.during(TimeRange { from: EpochMs::new(from), to: EpochMs::new(to) });
        }
        if let Some(at) = self.valid_at {
            query = query.valid_at(EpochMs::new(at));
        }
        if let Some(at) = self.known_at {
            query = query.known_at(EpochMs::new(at));
        }
        if let Some(address) = self.address {
            query = query.at_address(address);
        }
        if let Some(among) = &self.among {
            query = query.among(among.clone());
        }
        self.conditions.iter().fold(query, |query, condition| query.when(condition.predicate()))
    }
}

impl Condition {
    fn predicate(&self) -> Predicate {
        let built = match self.clone() {
            Self::TextIs(payload, text) => Predicate::text_is(payload, text).ok(),
            Self::TextIn(payload, texts) => Predicate::text_in(payload, texts).ok(),
            Self::Object(object) => Predicate::object_is(object),
            Self::Field(name, comparator, value) => Predicate::field(name, comparator, &value),
            Self::FieldIn(name, values) => Predicate::field_in(name, values),
            Self::Domain(name, comparator, value) => Predicate::domain(name, comparator, &value),
            Self::DomainIn(name, values) => Some(Predicate::domain_in(name, values)),
            Self::Names(payload, addresses) => Some(Predicate::names(payload, &addresses)),
            Self::Related(kinds, addresses) => Some(Predicate::related(kinds, &addresses)),
            Self::TagsInclude(tags) => Some(Predicate::tags_include(tags)),
            Self::TagsExclude(tags) => Some(Predicate::tags_exclude(tags)),
            Self::Contradicted(value) => Some(Predicate::contradicted(value)),
            Self::Status(status) => Some(Predicate::verification_status(status)),
        };
        built.unwrap_or_else(|| panic!("no condition: {self:?}"))
    }
}
