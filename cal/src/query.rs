//! What a recall asks for, without syntax: namespaces, types, time, predicates, visibility, order.
//!
//! A memory picks its driving index from the accessors and then asks [`Query::matches`] about each
//! candidate, so what a condition means is decided here alone.

use grainstore_format::{ContentAddress, GrainRef, GrainState};

use crate::bounds::{Order, Reach, TimeRange, TypeSet, Visibility};
use crate::predicate::Predicate;

/// A recall, desugared.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(crate) reach: Reach,
    pub(crate) types: TypeSet,
    pub(crate) address: Option<ContentAddress>,
    pub(crate) time: TimeRange,
    pub(crate) predicates: Vec<Predicate>,
    pub(crate) visibility: Visibility,
    pub(crate) order: Order,
    pub(crate) limit: Option<usize>,
}

impl Default for Query {
    /// Every current grain of the session, newest first.
    fn default() -> Self {
        Self {
            reach: Reach::Session,
            types: TypeSet::ALL,
            address: None,
            time: TimeRange::ALWAYS,
            predicates: Vec::new(),
            visibility: Visibility::default(),
            order: Order::Newest,
            limit: None,
        }
    }
}

impl Query {
    /// The same query within these namespaces.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The same query for these types only.
    #[must_use]
    pub fn of_types(mut self, types: TypeSet) -> Self {
        self.types = types;
        self
    }

    /// The same query for times within this range too.
    #[must_use]
    pub fn during(mut self, range: TimeRange) -> Self {
        self.time = self.time.and(range);
        self
    }

    /// The same query with one more condition.
    #[must_use]
    pub fn when(mut self, predicate: Predicate) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// The same query letting these grains in.
    #[must_use]
    pub fn seeing(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    /// The same query in this order.
    #[must_use]
    pub fn ordered(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Whether a grain with this state is meant. The session's own bounds are the memory's duty.
    #[must_use]
    pub fn matches(
        &self,
        address: &ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
    ) -> bool {
        self.visibility.admits(state)
            && self.address.is_none_or(|wanted| wanted == *address)
            && self.types.contains(grain.grain_type())
            && (self.time == TimeRange::ALWAYS || self.time.contains(grain.time()))
            && (self.reach == Reach::Session || self.reach.contains(grain.partition()))
            && self.predicates.iter().all(|predicate| predicate.matches(grain, state))
    }

    /// Whether its bounds contradict each other, so that nothing can match.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        self.types == TypeSet::NONE || self.time.from > self.time.to
    }

    /// The namespaces it looks at.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The grain types it looks for.
    #[must_use]
    pub fn types(&self) -> TypeSet {
        self.types
    }

    /// The one address it can match, if it names one.
    #[must_use]
    pub fn address(&self) -> Option<ContentAddress> {
        self.address
    }

    /// The times it looks at; [`TimeRange::ALWAYS`] unless restricted.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.time
    }

    /// The conditions on fields; all must hold.
    #[must_use]
    pub fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }

    /// Which grains that are not current it lets in.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// The order to visit in.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// How many grains will be taken at most, where that is known.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// The subject every match has.
    #[must_use]
    pub fn subject_eq(&self) -> Option<&str> {
        self.text_eq("subject")
    }

    /// The relation every match has.
    #[must_use]
    pub fn relation_eq(&self) -> Option<&str> {
        self.text_eq("relation")
    }

    /// The object text every match has.
    #[must_use]
    pub fn object_eq(&self) -> Option<&str> {
        self.text_eq("object")
    }

    /// The user every match belongs to.
    #[must_use]
    pub fn user_eq(&self) -> Option<&str> {
        self.text_eq("user_id")
    }

    /// The session every match belongs to.
    #[must_use]
    pub fn session_eq(&self) -> Option<&str> {
        self.text_eq("session_id")
    }

    /// The value every match has in the payload field `name`, where a condition says so.
    #[must_use]
    pub fn text_eq(&self, name: &str) -> Option<&str> {
        self.predicates.iter().find_map(|predicate| predicate.text_eq(name))
    }

    /// The values one of which every match has in the payload field `name` (from `IN`).
    #[must_use]
    pub fn text_in(&self, name: &str) -> Option<&[String]> {
        self.predicates.iter().find_map(|predicate| predicate.text_in(name))
    }

    /// Tags every match carries, all of them.
    pub fn tags_all(&self) -> impl Iterator<Item = &str> {
        self.predicates.iter().flat_map(Predicate::tags_all).map(String::as_str)
    }
}
