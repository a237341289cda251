//! What CAL may ask of a session: the engine's side of `grainstore_cal::Memory`.
//!
//! A statement runs on one view, so its sources agree with each other however fast others write;
//! what it writes itself it sees. A recall is driven by the smallest posting list its conditions name and rechecks every candidate
//! on the view: the index may miss nothing and can add nothing (invariant I4).

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use grainstore_cal::{
    Cancel, Candidate, HashPrefix, Hit, Located, Memory, MemoryError, Query, Reach, Recalled,
    Scope, Visit,
};
use grainstore_format::{ContentAddress, EpochMs, Grain, GrainRef, GrainState, SHARED};
use grainstore_index as index;
use grainstore_index::{Posting, Sequence, Shape};

use crate::error::{Error, Result};
use crate::session::{Session, Stored};
use crate::view::{View, in_scope, with_fields};

/// How often a scan asks whether it should stop.
const CHECK_EVERY: u64 = 64;
/// How far the lengths of two posting lists are compared.
const ESTIMATE_CAP: usize = 1000;

impl From<Error> for MemoryError {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

/// A session reading from one state of the store.
#[derive(Debug)]
pub struct Reading<'s> {
    session: &'s Session,
    view: RwLock<Arc<View>>,
}

impl Session {
    /// A reading of the store as it is now: what CAL, or a host with a structural query, asks.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub fn reading(&self) -> Result<Reading<'_>> {
        Ok(Reading { session: self, view: RwLock::new(self.view()?) })
    }
}

impl Reading<'_> {
    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on from the newest state, which has what was just written.
    fn refresh(&self) -> Result<()> {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = self.session.view()?;
        Ok(())
    }
}

impl Memory for Reading<'_> {
    fn scope(&self) -> &Scope {
        self.session.cal_scope()
    }

    fn recall(
        &self,
        query: &Query,
        cancel: &Cancel,
        visit: &mut Visit<'_>,
    ) -> Result<Recalled, MemoryError> {
        let view = self.view();
        let mut scan =
            Scan { session: self.session, view: &view, query, cancel, scanned: 0, matched: 0 };
        let ended = match query.address() {
            Some(address) => scan.one(&address, visit)?,
            None => scan.all(visit)?,
        };
        let total = ended.is_continue().then_some(scan.matched);
        Ok(Recalled { scanned: scan.scanned, total })
    }

    fn locate(&self, prefix: &HashPrefix) -> Result<Located, MemoryError> {
        let view = self.view();
        let found = self.session.resolve_in(&view, prefix.digits(), 2)?;
        match (found.as_slice(), prefix.whole()) {
            ([one], _) => Ok(Located::One(*one)),
            ([], Some(whole)) if view.sequence_of(&whole)?.is_some() => Ok(Located::Elsewhere),
            ([], _) => Ok(Located::Nothing),
            _ => Ok(Located::Several),
        }
    }

    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError> {
        Ok(self.session.lookup(&self.view(), address)?.is_some())
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError> {
        Ok(self.session.lookup(&self.view(), address)?.as_ref().map(hit).transpose()?)
    }

    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError> {
        let view = self.view();
        if self.session.lookup(&view, address)?.is_none() {
            return Ok(Vec::new());
        }
        let versions = self.session.versions_in(&view, address, limit)?;
        Ok(versions.iter().map(hit).collect::<Result<_>>()?)
    }

    fn add(&self, grain: Grain, reason: &str) -> Result<ContentAddress, MemoryError> {
        let put = self.session.put_with_reason(grain, reason)?;
        self.refresh()?;
        Ok(put.address())
    }

    fn supersede(
        &self,
        old: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError> {
        let new = self.session.supersede(old, grain, Some(reason))?;
        self.refresh()?;
        Ok(new)
    }
}

fn hit(stored: &Stored) -> Result<Hit> {
    Ok(Hit { address: stored.address, grain: stored.grain()?, state: stored.state })
}

/// One recall on one view.
struct Scan<'s> {
    session: &'s Session,
    view: &'s View,
    query: &'s Query,
    cancel: &'s Cancel,
    scanned: u64,
    matched: u64,
}

/// Candidates of one instant that match, waiting to be put in the order of their addresses. An
/// instant may hold any number of grains, so their blobs stay on disk.
type Instant = Vec<(ContentAddress, Sequence, GrainState)>;

impl Scan<'_> {
    /// The one grain a query names.
    fn one(
        &mut self,
        address: &ContentAddress,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, MemoryError> {
        let Some(sequence) = self.view.sequence_of(address)? else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut instant = Instant::new();
        self.check(sequence, &mut instant)?;
        self.show(&mut instant, visit)
    }

    /// Every grain of the driving posting list, in order.
    fn all(&mut self, visit: &mut Visit<'_>) -> Result<ControlFlow<()>, MemoryError> {
        let scope = self.scope();
        let times = times(self.query);
        let order = match self.query.order() {
            grainstore_cal::Order::Newest => index::Order::Newest,
            grainstore_cal::Order::Oldest => index::Order::Oldest,
        };
        let reader = self.view.index();
        let shape = self.driving_shape(&scope, times)?;
        let postings = reader.scan(&scope, &shape, times, order).map_err(Error::from)?;
        let mut instant = Instant::new();
        let mut now: Option<EpochMs> = None;
        for posting in postings {
            let Posting { time, sequence } = posting.map_err(Error::from)?;
            if now != Some(time) {
                if self.show(&mut instant, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                now = Some(time);
            }
            if self.scanned.is_multiple_of(CHECK_EVERY) {
                self.cancel.check()?;
            }
            self.check(sequence, &mut instant)?;
        }
        self.show(&mut instant, visit)
    }

    /// Keeps a candidate that is visible and matches.
    fn check(&mut self, sequence: Sequence, instant: &mut Instant) -> Result<()> {
        self.scanned += 1;
        let state = self.view.state_at(sequence)?;
        self.view.with_blob(sequence, |blob| {
            let address = ContentAddress::of(blob);
            let matches = with_fields(blob, |grain: &GrainRef<'_>| {
                let namespace = self.session.options().namespace.as_deref();
                Ok(in_scope(grain.partition(), namespace)
                    && self.query.matches(&address, grain, &state))
            })?;
            if matches {
                let address = self.view.address_of(sequence, blob)?;
                instant.push((address, sequence, state));
            }
            Ok(())
        })
    }

    /// Shows the grains of one instant, ascending by address.
    fn show(
        &mut self,
        instant: &mut Instant,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, MemoryError> {
        instant.sort_unstable_by_key(|(address, ..)| *address);
        for (address, sequence, state) in instant.drain(..) {
            self.matched += 1;
            let flow = self.view.with_blob(sequence, |blob| {
                with_fields(blob, |grain| Ok(visit(Candidate { address, grain, state: &state })))
            })?;
            if flow.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The namespaces to look in: the query's, which the executor keeps within the session's.
    fn scope(&self) -> index::Scope<'_> {
        match self.query.reach() {
            Reach::Session => match self.session.options().namespace.as_deref() {
                None => index::Scope::All,
                Some("") => index::Scope::Subtree(SHARED),
                Some(namespace) => index::Scope::Subtree(namespace),
            },
            Reach::Exact(namespace) => index::Scope::Exact(namespace.as_str().into()),
            Reach::Subtree(namespace) => index::Scope::Subtree(namespace),
        }
    }

    /// The shortest posting list among those every match must be in.
    fn driving_shape(
        &self,
        scope: &index::Scope<'_>,
        times: index::TimeRange,
    ) -> Result<Shape<'_>> {
        let reader = self.view.index();
        let mut best = (Shape::All, usize::MAX);
        for shape in self.shapes() {
            let estimate = reader.estimate(scope, &shape, times, ESTIMATE_CAP)?;
            if estimate < best.1 {
                best = (shape, estimate);
            }
            if estimate == 0 {
                break;
            }
        }
        Ok(best.0)
    }

    /// The posting lists every match must be in, the most selective kind first.
    fn shapes(&self) -> Vec<Shape<'_>> {
        let query = self.query;
        let mut shapes = Vec::new();
        if let Some(subject) = query.subject_eq() {
            shapes.push(match query.relation_eq() {
                Some(relation) => Shape::SubjectRelation(subject.into(), relation.into()),
                None => Shape::Subject(subject.into()),
            });
        }
        shapes.extend(query.session_eq().map(|session| Shape::Session(session.into())));
        shapes.extend(query.tags_all().map(|tag| Shape::Tag(tag.into())));
        let mut types = query.types().iter();
        if let (Some(only), None) = (types.next(), types.next()) {
            shapes.push(Shape::Type(only));
        }
        shapes
    }
}

/// The query's time range as bounds of the index.
fn times(query: &Query) -> index::TimeRange {
    let range = query.time_range();
    let open = |bound: EpochMs, end: i64| (bound.get() != end).then_some(bound);
    index::TimeRange { from: open(range.from, i64::MIN), to: open(range.to, i64::MAX) }
}
