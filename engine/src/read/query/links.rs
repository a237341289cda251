//! The links of one grain, among the grains a query admits.
//!
//! Grains that name this one are looked up newest first, up to the fan-out. The index proposes; whether a
//! grain is linked is read from the grain.

use std::collections::BTreeSet;

use grainstore_cal::{Expansion, Link};
use grainstore_format::{ContentAddress, EpochMs, GrainRef};
use grainstore_index::{
    self as index, Field, IndexLookup, Object, ScopeNamespaces, Sequence, TieBreaker, TimeRange,
};

use super::access_path::{AccessPath, PostingUnion, scope};
use super::postings::PostingsSource;
use super::scan::{CandidateScan, ScanError};
use crate::disk::blob::with_fields;
use crate::read::graph::{addresses_in, cross_links};
use crate::state::consent::parse_basis_address;

/// Most grains one expansion reads: some tenths of a second.
const MAX_EXPANSION_READS: u64 = 65_536;
/// Most index ranges it opens. A lookup has one in each namespace it searches.
const MAX_EXPANSION_RANGES: usize = 1_000_000;
/// Most grains of one lookup that are skipped because they are not visible.
const MAX_SKIPPED_GRAINS: usize = 1_024;

/// A linked grain.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkedGrain {
    pub(super) sequence: Sequence,
    pub(super) address: ContentAddress,
    time: EpochMs,
}

/// The state of an expansion along links, with the work done so far.
pub(super) struct ExpansionState<'e> {
    pub(super) expansion: &'e Expansion,
    namespaces: ScopeNamespaces<'e>,
    /// The last sequence it may see.
    last_sequence: Sequence,
    /// Most grains it holds.
    pub(super) max_grains: usize,
    ranges: usize,
    /// Grains read.
    pub(super) reads: u64,
    /// Grains among them that the query may pass through; a session is told only of these.
    pub(super) visible_reads: u64,
    /// True if there was more than it may read.
    pub(super) truncated: bool,
}

/// The links a grain has of its own, and the texts by which others link to it.
struct GrainLinks {
    sequence: Sequence,
    address: ContentAddress,
    subject: Option<String>,
    object: Option<String>,
    parents: Vec<ContentAddress>,
    related: Vec<ContentAddress>,
    answered: Option<ContentAddress>,
}

/// An index lookup, and the condition that a grain found by it must meet.
type CheckedLookup<'l> = (IndexLookup<'l>, &'l dyn Fn(&GrainRef<'_>) -> bool);

impl<'w> CandidateScan<'w> {
    /// An expansion from this many grains, on the state of the log that is shown.
    pub(super) fn tour(&self, expansion: &'w Expansion, seeds: usize) -> ExpansionState<'w> {
        let origin = self.after.as_ref().map(|(origin, _)| origin.sequence);
        ExpansionState {
            expansion,
            namespaces: ScopeNamespaces::of(scope(self.session, self.query)),
            last_sequence: origin.unwrap_or(self.last),
            max_grains: expansion.reached.saturating_add(seeds),
            ranges: 0,
            reads: 0,
            visible_reads: 0,
            truncated: false,
        }
    }

    /// The grains linked to one, each once.
    pub(super) fn linked(
        &mut self,
        tour: &mut ExpansionState<'_>,
        of: Sequence,
    ) -> Result<Vec<LinkedGrain>, ScanError> {
        let Some(ends) = self.ends(tour, of)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let Expansion { links, direction, .. } = *tour.expansion;
        for link in links.iter() {
            if direction.goes_out() || link == Link::Subject {
                found.extend(self.ahead(tour, &ends, link)?);
            }
            if direction.goes_in() {
                found.extend(self.named_by(tour, &ends, link)?);
            }
        }
        let mut met = BTreeSet::new();
        found.retain(|one| one.sequence != of && met.insert(one.sequence));
        Ok(found)
    }

    /// The grains that a grain links to by one kind of link.
    fn ahead(
        &mut self,
        tour: &mut ExpansionState<'_>,
        ends: &GrainLinks,
        link: Link,
    ) -> Result<Vec<LinkedGrain>, ScanError> {
        match link {
            Link::Triple => self.of_subject(tour, ends, ends.object.as_deref()),
            Link::Subject => self.of_subject(tour, ends, ends.subject.as_deref()),
            Link::DerivedFrom => self.named(tour, &ends.parents),
            Link::RelatedTo => self.named(tour, &ends.related),
            Link::Reply => self.named(tour, ends.answered.as_slice()),
        }
    }

    /// The grains that link to a grain by one kind of link. A shared subject has no direction and is found by
    /// `ahead`.
    fn named_by(
        &mut self,
        tour: &mut ExpansionState<'_>,
        to: &GrainLinks,
        link: Link,
    ) -> Result<Vec<LinkedGrain>, ScanError> {
        let digits = to.address.to_string();
        let (field, holds): (_, &dyn Fn(&GrainRef<'_>) -> bool) = match link {
            Link::Subject => return Ok(Vec::new()),
            Link::Triple => {
                let Some(node) = to.subject.as_deref() else { return Ok(Vec::new()) };
                let object = Some(Object::Text(node.into()));
                let shape = IndexLookup::Triple { subject: None, relation: None, object };
                return self.looked_up_at(
                    tour,
                    to.sequence,
                    (shape, &|grain| grain.text("object") == Some(node)),
                );
            }
            Link::DerivedFrom => (Field::Derived, &|grain| {
                addresses_in(grain, "derived_from").any(|parent| parent == to.address)
            }),
            Link::RelatedTo => {
                (Field::Related, &|grain| cross_links(grain).any(|(other, _)| other == to.address))
            }
            Link::Reply => (Field::Parent, &|grain| parent_message(grain) == Some(to.address)),
        };
        let shape = IndexLookup::Value(field, digits.as_str().into());
        self.looked_up_at(tour, to.sequence, (shape, holds))
    }

    /// The grains with this subject.
    fn of_subject(
        &mut self,
        tour: &mut ExpansionState<'_>,
        ends: &GrainLinks,
        node: Option<&str>,
    ) -> Result<Vec<LinkedGrain>, ScanError> {
        let Some(node) = node else { return Ok(Vec::new()) };
        let shape =
            IndexLookup::Triple { subject: Some(node.into()), relation: None, object: None };
        let holds = |grain: &GrainRef<'_>| grain.text("subject") == Some(node);
        self.looked_up_at(tour, ends.sequence, (shape, &holds))
    }

    /// The first `fan_out` of these grains that exist.
    fn named(
        &mut self,
        tour: &mut ExpansionState<'_>,
        addresses: &[ContentAddress],
    ) -> Result<Vec<LinkedGrain>, ScanError> {
        let mut found = Vec::new();
        for address in addresses {
            if found.len() >= tour.expansion.fan_out || tour.reads >= MAX_EXPANSION_READS {
                tour.truncated = true;
                break;
            }
            let Some(sequence) = self.view.sequence_of(address)? else { continue };
            if sequence <= tour.last_sequence {
                let met = self.meet(tour, sequence, &|_| true)?;
                found.extend(met.filter(|met| met.address == *address));
            }
        }
        Ok(found)
    }

    /// The newest grains of a lookup without the grain itself; within one instant, those with the smallest
    /// addresses.
    fn looked_up_at(
        &mut self,
        tour: &mut ExpansionState<'_>,
        at: Sequence,
        (shape, holds): CheckedLookup<'_>,
    ) -> Result<Vec<LinkedGrain>, ScanError> {
        self.cancel.check().map_err(ScanError::Stopped)?;
        let reader = self.view.index();
        let ranges = reader.range_count(&tour.namespaces, &[shape])?;
        tour.ranges = tour.ranges.saturating_add(ranges);
        if tour.ranges > MAX_EXPANSION_RANGES || tour.reads >= MAX_EXPANSION_READS {
            tour.truncated = true;
            return Ok(Vec::new());
        }
        let (spaces, times) = (tour.namespaces.clone(), TimeRange::default());
        let lists = vec![PostingUnion { lookups: vec![shape], estimate: None }];
        let access =
            AccessPath { namespaces: spaces, times, order: index::TimeOrder::Newest, lists };
        let (cancel, vault) = (self.cancel, self.view.vault());
        let postings = PostingsSource { reader, access: &access, cancel, vault };
        let (mut found, mut passed) = (Vec::new(), 0);
        let mut instant: Option<(EpochMs, TieBreaker)> = None;
        for posting in postings.open(times, index::TimeOrder::Newest, None)? {
            let posting = posting?;
            if posting.sequence > tour.last_sequence || posting.sequence == at {
                self.tick()?;
                continue;
            }
            // Grains of one instant are ordered by address, so all of them are read first.
            let enough = found.len() >= tour.expansion.fan_out || passed >= MAX_SKIPPED_GRAINS;
            let goes_on = instant == Some((posting.time, posting.tie));
            if (enough && !goes_on) || tour.reads >= MAX_EXPANSION_READS {
                tour.truncated = true;
                break;
            }
            instant = Some((posting.time, posting.tie));
            match self.meet(tour, posting.sequence, holds)? {
                Some(met) => found.push(met),
                None => passed += 1,
            }
        }
        found.sort_unstable_by(|a, b| b.time.cmp(&a.time).then(a.address.cmp(&b.address)));
        tour.truncated |= found.len() > tour.expansion.fan_out;
        found.truncate(tour.expansion.fan_out);
        Ok(found)
    }

    /// Reads a grain that the query may pass through and that meets the condition.
    fn meet(
        &mut self,
        tour: &mut ExpansionState<'_>,
        at: Sequence,
        holds: &dyn Fn(&GrainRef<'_>) -> bool,
    ) -> Result<Option<LinkedGrain>, ScanError> {
        self.passing(tour, at, |blob, grain| {
            let met = || LinkedGrain {
                sequence: at,
                address: ContentAddress::of(blob),
                time: grain.time(),
            };
            holds(grain).then(met)
        })
    }

    /// Reads the links of a grain.
    fn ends(
        &mut self,
        tour: &mut ExpansionState<'_>,
        at: Sequence,
    ) -> Result<Option<GrainLinks>, ScanError> {
        self.passing(tour, at, |blob, grain| {
            let text = |name: &str| grain.text(name).map(str::to_owned);
            Some(GrainLinks {
                sequence: at,
                address: ContentAddress::of(blob),
                subject: text("subject"),
                object: text("object"),
                parents: addresses_in(grain, "derived_from").collect(),
                related: cross_links(grain).map(|(address, _)| address).collect(),
                answered: parent_message(grain),
            })
        })
    }

    /// Reads a grain that the query may pass through; `None` for any other.
    fn passing<T>(
        &mut self,
        tour: &mut ExpansionState<'_>,
        at: Sequence,
        read: impl FnOnce(&[u8], &GrainRef<'_>) -> Option<T>,
    ) -> Result<Option<T>, ScanError> {
        self.tick()?;
        tour.reads += 1;
        let Some(state) = self.state(at)? else { return Ok(None) };
        Ok(self.view.with_live_blob(at, |blob| {
            with_fields(blob, |grain| {
                let passes =
                    self.look_at(at, grain)? && self.query.lets_through(grain, &state, self.now());
                tour.visible_reads += u64::from(passes);
                Ok(if passes { read(blob, grain) } else { None })
            })
        })?)
    }
}

/// The message a grain replies to.
fn parent_message(grain: &GrainRef<'_>) -> Option<ContentAddress> {
    grain.text("parent_message_id").and_then(parse_basis_address)
}
