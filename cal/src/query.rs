//! A recall without syntax: namespaces, types, time, predicates, visibility, order.
//!
//! A memory picks its driving index from the accessors and then asks [`Query::matches`] about each
//! candidate, so the meaning of a condition is decided in this crate only.

use std::sync::Arc;

use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState};

use crate::bounds::{Order, Reach, TimeRange, TypeSet, Visibility};
use crate::expansion::Expansion;
use crate::predicate::Predicate;
use crate::search::{self, Ask, Floor, Near, Rerank, Search};
use crate::temporal::{is_known_at, is_valid_at};

/// A recall in desugared form.
///
/// ```
/// use grainstore_cal::{Order, Predicate, Query, TimeRange, TypeSet};
/// use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef, GrainState, GrainType};
///
/// let query = Query::default()
///     .of_types(TypeSet::of(GrainType::Belief))
///     .during(TimeRange { from: EpochMs::new(0), ..TimeRange::ALWAYS })
///     .when(Predicate::text_is("subject", "alice")?)
///     .ordered(Order::Oldest);
/// # let now = EpochMs::new(1_768_471_200_000);
/// # let blob = BeliefBuilder::new(now, "alice", "mg:prefers", "tea", 0.9)
/// #     .build()?.encode(Encoding::MessagePack)?;
/// // `blob` holds what alice likes.
/// let grain = GrainRef::new(blob.bytes())?;
/// assert!(query.matches(&blob.address(), &grain, &GrainState::default(), now));
/// assert_eq!(query.subject_eq(), Some("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(crate) reach: Reach,
    pub(crate) types: TypeSet,
    pub(crate) address: Option<ContentAddress>,
    /// In ascending order.
    pub(crate) among: Option<Arc<[ContentAddress]>>,
    pub(crate) time: TimeRange,
    pub(crate) valid_at: Option<EpochMs>,
    pub(crate) known_at: Option<EpochMs>,
    pub(crate) predicates: Vec<Predicate>,
    pub(crate) search: Option<Search>,
    pub(crate) near: Option<Near>,
    pub(crate) expansion: Option<Expansion>,
    pub(crate) rerank: Option<Rerank>,
    pub(crate) floor: Option<Floor>,
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
            among: None,
            time: TimeRange::ALWAYS,
            valid_at: None,
            known_at: None,
            predicates: Vec::new(),
            search: None,
            near: None,
            expansion: None,
            rerank: None,
            floor: None,
            visibility: Visibility::default(),
            order: Order::Newest,
            limit: None,
        }
    }
}

impl Query {
    /// Restricts the query to these namespaces.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// Restricts the query to these types.
    #[must_use]
    pub fn of_types(mut self, types: TypeSet) -> Self {
        self.types = types;
        self
    }

    /// Includes opaque types, unless the query names types. For host queries; CAL statements know only the
    /// ten standard types (OMS 19.4).
    #[must_use]
    pub fn of_any_type(self) -> Self {
        if self.types == TypeSet::ALL { self.of_types(TypeSet::EVERYTHING) } else { self }
    }

    /// Restricts the query to times in this range as well.
    ///
    /// ```
    /// use grainstore_cal::{Query, TimeRange};
    /// use grainstore_format::EpochMs;
    ///
    /// let range = |from, to| TimeRange { from: EpochMs::new(from), to: EpochMs::new(to) };
    /// let query = Query::default().during(range(0, 20)).during(range(10, 30));
    /// assert_eq!(query.time_range(), range(10, 20));
    /// assert!(query.during(range(25, 30)).is_impossible());
    /// ```
    #[must_use]
    pub fn during(mut self, range: TimeRange) -> Self {
        self.time = self.time.and(range);
        self
    }

    /// Restricts the query to this grain.
    #[must_use]
    pub fn at_address(mut self, address: ContentAddress) -> Self {
        self.require_address(address);
        self
    }

    /// Restricts the query to these grains, replacing any set given before.
    #[must_use]
    pub fn among(mut self, mut addresses: Vec<ContentAddress>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        self.among = Some(addresses.into());
        self
    }

    /// Restricts the query to grains valid at this time: `valid_from <= at <= valid_to` of the payload,
    /// absent ends being open (OMS 15.2).
    #[must_use]
    pub fn valid_at(mut self, at: EpochMs) -> Self {
        self.valid_at = Some(at);
        self
    }

    /// Restricts the query to grains known at this time: in the store by then (`system_valid_from`, else
    /// `created_at`) and current until later (`system_valid_to` of the state). Later changes do not count:
    /// a grain that was superseded since is found.
    #[must_use]
    pub fn known_at(mut self, at: EpochMs) -> Self {
        self.known_at = Some(at);
        self
    }

    /// Adds a condition. One that asks for contradicted or retracted grains makes them visible.
    #[must_use]
    pub fn when(mut self, predicate: Predicate) -> Self {
        self.require(predicate);
        self
    }

    /// Restricts the query to grains that match this full-text search; the best come first, whatever the
    /// order.
    #[must_use]
    pub fn searching(mut self, text: impl Into<String>) -> Self {
        self.require_search(Ask { text: text.into(), field: None });
        self
    }

    /// Adds a nearest-neighbour search by this vector; with a text search, grains are ranked by both.
    #[must_use]
    pub fn nearing(mut self, near: Near) -> Self {
        self.near = Some(near);
        self
    }

    /// Adds grains linked to the best answers. Without a search, all grains that meet the conditions are
    /// answers already, so linked grains must be free of the conditions
    /// ([`Expansion::freely`]); they come after the others.
    #[must_use]
    pub fn expanding(mut self, expansion: Expansion) -> Self {
        self.expansion = Some(expansion);
        self
    }

    /// Reorders the best answers.
    #[must_use]
    pub fn reranked(mut self, rerank: Rerank) -> Self {
        self.rerank = Some(rerank);
        self
    }

    /// Restricts the query to grains with at least this score.
    #[must_use]
    pub fn scoring(mut self, floor: Floor) -> Self {
        self.require_score(floor);
        self
    }

    /// Makes these non-current grains visible as well.
    #[must_use]
    pub fn seeing(mut self, visibility: Visibility) -> Self {
        self.visibility = self.visibility.or(visibility);
        self
    }

    /// Sets the order.
    #[must_use]
    pub fn ordered(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Returns `true` if a grain in this state matches at `now`. The memory checks the bounds of the
    /// session.
    #[must_use]
    pub fn matches(
        &self,
        address: &ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
        now: EpochMs,
    ) -> bool {
        self.allows(address) && self.suits(grain, state, now)
    }

    /// Returns `true` if the query does not exclude this address.
    #[must_use]
    pub fn allows(&self, address: &ContentAddress) -> bool {
        self.address.is_none_or(|wanted| wanted == *address)
            && self.among.as_ref().is_none_or(|set| set.binary_search(address).is_ok())
    }

    /// Returns `true` if the grain matches apart from its address; cheaper than [`Query::matches`], since
    /// the grain need not be hashed.
    #[must_use]
    pub fn suits(&self, grain: &GrainRef<'_>, state: &GrainState, now: EpochMs) -> bool {
        self.sees(grain, state, now)
            && self.types.contains(grain.grain_type())
            && (self.time == TimeRange::ALWAYS || self.time.contains(grain.time()))
            && (self.reach == Reach::Session || self.reach.contains(grain.partition()))
            && self.valid_at.is_none_or(|at| is_valid_at(grain, at))
            && self.predicates.iter().all(|predicate| predicate.matches(grain, state))
    }

    /// Returns `true` if a grain in this state may lie on the path between an answer and a linked grain: in
    /// the namespaces, of the user, visible, and valid at the time the query asks about. The other
    /// conditions apply to grains that are shown. The memory checks the bounds of the session.
    #[must_use]
    pub fn lets_through(&self, grain: &GrainRef<'_>, state: &GrainState, now: EpochMs) -> bool {
        let of_user = |predicate: &&Predicate| predicate.field_name() == "user_id";
        self.sees(grain, state, now)
            && (TypeSet::ALL.contains(grain.grain_type())
                || self.types.contains(grain.grain_type()))
            && (self.reach == Reach::Session || self.reach.contains(grain.partition()))
            && self.valid_at.is_none_or(|at| is_valid_at(grain, at))
            && self.predicates.iter().filter(of_user).all(|user| user.matches(grain, state))
    }

    /// Returns `true` if the grain is visible now, or was current at the time asked about.
    fn sees(&self, grain: &GrainRef<'_>, state: &GrainState, now: EpochMs) -> bool {
        match self.known_at {
            None => self.visibility.admits(state, now),
            Some(at) => is_known_at(grain, state, self.visibility, at),
        }
    }

    /// Returns `true` if the bounds contradict each other, so that no grain can match.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        self.types == TypeSet::NONE
            || self.time.from > self.time.to
            || self.among.as_ref().is_some_and(|set| set.is_empty())
            || self.floor.is_some_and(|floor| !floor.admits(1.0))
    }

    /// Adds a condition.
    pub(crate) fn require(&mut self, predicate: Predicate) {
        let (contradicted, retracted) = predicate.brings_in();
        self.visibility.contradicted |= contradicted;
        self.visibility.retracted |= retracted;
        self.predicates.push(predicate);
    }

    /// Adds a text search that every match must satisfy.
    pub(crate) fn require_search(&mut self, ask: Ask) {
        search::also(&mut self.search, ask);
    }

    /// Adds a minimum score for every match.
    pub(crate) fn require_score(&mut self, floor: Floor) {
        search::raise(&mut self.floor, floor);
    }

    /// Replaces the condition on this subject by a text search for it.
    pub(crate) fn searching_for_subject(mut self, subject: &str) -> Self {
        let exact = Predicate::own_text("subject", subject);
        if let Some(at) = self.predicates.iter().position(|predicate| *predicate == exact) {
            self.predicates.remove(at);
        }
        self.searching(subject)
    }

    /// Adds an address that every match must have; two different ones match no grain.
    pub(crate) fn require_address(&mut self, address: ContentAddress) {
        match self.address {
            Some(other) if other != address => self.types = TypeSet::NONE,
            _ => self.address = Some(address),
        }
    }

    /// Returns the namespaces it reads.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Returns the grain types it looks for.
    #[must_use]
    pub fn types(&self) -> TypeSet {
        self.types
    }

    /// Returns the one address it can match, if it names one.
    #[must_use]
    pub fn address(&self) -> Option<ContentAddress> {
        self.address
    }

    /// Returns the addresses it is restricted to, ascending and distinct, if it lists them.
    #[must_use]
    pub fn addresses(&self) -> Option<&[ContentAddress]> {
        self.among.as_deref()
    }

    /// Returns the time at which matches are valid, if it asks about one.
    #[must_use]
    pub fn valid_time(&self) -> Option<EpochMs> {
        self.valid_at
    }

    /// Returns the time at which matches were known, if it asks about one.
    #[must_use]
    pub fn known_time(&self) -> Option<EpochMs> {
        self.known_at
    }

    /// Returns the time range; [`TimeRange::ALWAYS`] unless restricted.
    #[must_use]
    pub fn time_range(&self) -> TimeRange {
        self.time
    }

    /// Returns the conditions on fields; all must hold.
    #[must_use]
    pub fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }

    /// Returns the text search, if there is one. Grains then come best first, ties by ascending address.
    #[must_use]
    pub fn search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    /// Returns the vector search, if there is one. Grains then come best first, as for a text search, and
    /// more grains have a score than are near.
    #[must_use]
    pub fn near(&self) -> Option<&Near> {
        self.near.as_ref()
    }

    /// Returns the options for following links, if links are followed.
    #[must_use]
    pub fn expansion(&self) -> Option<&Expansion> {
        self.expansion.as_ref()
    }

    /// Returns the reordering of the best answers, if there is one.
    #[must_use]
    pub fn rerank(&self) -> Option<Rerank> {
        self.rerank
    }

    /// Returns the minimum score of a match, if there is one. Grains below it are no matches and are not
    /// counted.
    #[must_use]
    pub fn floor(&self) -> Option<Floor> {
        self.floor
    }

    /// Returns the kinds of non-current grains that are included.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Returns the order of visiting, which applies unless something is searched for.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the number of grains that will be taken at most, if known.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Returns the subject that every match has, if a condition fixes it.
    #[must_use]
    pub fn subject_eq(&self) -> Option<&str> {
        self.text_eq("subject")
    }

    /// Returns the relation that every match has, if a condition fixes it.
    #[must_use]
    pub fn relation_eq(&self) -> Option<&str> {
        self.text_eq("relation")
    }

    /// Returns the object text that every match has, if a condition fixes it.
    #[must_use]
    pub fn object_eq(&self) -> Option<&str> {
        self.text_eq("object")
    }

    /// Returns the user that every match belongs to, if a condition fixes it.
    #[must_use]
    pub fn user_eq(&self) -> Option<&str> {
        self.text_eq("user_id")
    }

    /// Returns the session that every match belongs to, if a condition fixes it.
    #[must_use]
    pub fn session_eq(&self) -> Option<&str> {
        self.text_eq("session_id")
    }

    /// Returns the value that every match has in the payload field `name`, if a condition fixes it.
    #[must_use]
    pub fn text_eq(&self, name: &str) -> Option<&str> {
        self.predicates.iter().find_map(|predicate| predicate.text_eq(name))
    }

    /// Returns the values of an `IN` condition on the payload field `name`, one of which every match has.
    #[must_use]
    pub fn text_in(&self, name: &str) -> Option<&[String]> {
        self.predicates.iter().find_map(|predicate| predicate.one_of(name))
    }

    /// Returns the tags that every match carries.
    pub fn tags_all(&self) -> impl Iterator<Item = &str> {
        self.predicates.iter().flat_map(Predicate::tags_all).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use grainstore_format::{Encoding, Grain, VerificationStatus};

    use super::*;

    /// Returns `true` if a belief with these fields, in this state, matches.
    const NOW: EpochMs = EpochMs::new(5000);

    fn meant(query: &Query, fields: &str, state: &GrainState) -> bool {
        let json = format!(
            r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 0.5,
                "created_at": 1000 {fields}}}"#
        );
        let blob = Grain::from_json(&json).unwrap().encode(Encoding::MessagePack).unwrap();
        query.matches(&blob.address(), &GrainRef::new(blob.bytes()).unwrap(), state, NOW)
    }

    #[test]
    fn what_is_said_to_be_true_has_two_open_ends() {
        for (fields, from, to) in [
            ("", i64::MIN, i64::MAX),
            (r#", "valid_from": 5"#, 5, i64::MAX),
            (r#", "valid_to": 9"#, i64::MIN, 9),
            (r#", "valid_from": 5, "valid_to": 9"#, 5, 9),
        ] {
            for at in [i64::MIN, 4, 5, 9, 10, i64::MAX] {
                let query = Query::default().valid_at(EpochMs::new(at));
                let expected = (from..=to).contains(&at);
                let found = meant(&query, fields, &GrainState::default());
                assert_eq!(found, expected, "{fields} at {at}");
            }
        }
    }

    #[test]
    fn what_was_known_counts_what_happened_until_then_and_not_since() {
        let until = |at: i64| Some(EpochMs::new(at));
        let superseded = GrainState {
            superseded_by: Some(ContentAddress::of(b"successor")),
            system_valid_to: until(3000),
            ..GrainState::default()
        };
        let contradicted = GrainState {
            contradicted: true,
            system_valid_to: until(3000),
            ..GrainState::default()
        };
        let retracted = GrainState {
            verification_status: VerificationStatus::Retracted,
            system_valid_to: until(3000),
            ..GrainState::default()
        };
        let undated = GrainState { contradicted: true, ..GrainState::default() };
        let ended = GrainState { system_valid_to: until(3000), ..GrainState::default() };
        let ending = GrainState { system_valid_to: until(6000), ..GrainState::default() };
        let late = r#", "system_valid_from": 2000"#;
        #[rustfmt::skip]
        let table = [
            ("", GrainState::default(), [false, true, true, true]),
            (late, GrainState::default(), [false, false, true, true]),
            ("", superseded, [false, true, true, false]),
            ("", contradicted, [false, true, true, false]),
            ("", retracted, [false, true, true, false]),
            (late, retracted, [false, false, true, false]),
            ("", undated, [false, false, false, false]),
            ("", ended, [false, true, true, false]),
            ("", ending, [false, true, true, true]),
        ];
        for (fields, state, expected) in table {
            let found = [999, 1000, 2999, 3000].map(|at| {
                let query = Query::default().known_at(EpochMs::new(at));
                meant(&query, fields, &state)
            });
            assert_eq!(found, expected, "{fields} {state:?}");
            assert_eq!(meant(&Query::default(), fields, &state), state.is_current_at(NOW));
        }
    }

    #[test]
    fn addresses_bound_a_query_and_an_empty_set_of_them_is_impossible() {
        let (a, b) = (ContentAddress::of(b"a"), ContentAddress::of(b"b"));
        let query = Query::default().among(vec![b, a, b]);
        let mut expected = vec![a, b];
        expected.sort();
        assert_eq!(query.addresses(), Some(expected.as_slice()));
        assert!(!meant(&query, "", &GrainState::default()));
        assert!(!query.is_impossible());
        assert!(Query::default().among(Vec::new()).is_impossible());
        assert!(Query::default().at_address(a).at_address(b).is_impossible());
        assert_eq!(Query::default().at_address(a).at_address(a).address(), Some(a));
    }

    #[test]
    fn a_condition_on_index_state_lets_its_grains_in() {
        let contradicted = GrainState { contradicted: true, ..GrainState::default() };
        let retracted = GrainState {
            verification_status: VerificationStatus::Retracted,
            ..GrainState::default()
        };
        for (predicate, state, found) in [
            (Predicate::contradicted(true), &contradicted, true),
            (Predicate::contradicted(false), &contradicted, false),
            (Predicate::verification_status(VerificationStatus::Retracted), &retracted, true),
            (Predicate::verification_status(VerificationStatus::Retracted), &contradicted, false),
        ] {
            let query = Query::default().when(predicate);
            assert_eq!(meant(&query, "", state), found, "{query:?}");
        }
    }
}
