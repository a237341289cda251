//! The engine's implementation of `grainstore_cal::Memory`: a session as CAL sees it.
//!
//! A statement runs on one view, so its sources agree with each other while others write; after a write of
//! its own it sees a newer view. A recall is driven by the smallest posting list its conditions name and
//! rechecks every candidate on the view: the index may miss none and can add none (invariant I4).

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use grainstore_cal::{
    self as cal, AccessPlan, CancelHandle, HashPrefix, Hit, HostInfo, Memory, MemoryError,
    NamedTemplate, PrefixMatch, Query, RecallStats, RecallVisitor, Score, StopReason,
    TemplateSaveOutcome,
};
use grainstore_format::{ContentAddress, Grain, GrainType, Header};
use grainstore_index::text::Language;
use grainstore_index::{Field, IndexLookup, OwnedTermValue, Scope, Sequence, TimeOrder, TimeRange};

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::{Session, StoredGrain};
use crate::handle::store::Store;
use crate::read::query::{CandidateScan, ParsedSearch, ScanError, explain};
use crate::read::read_log::ReadsDestination;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;
use crate::state::visibility::VisibilityOutcome;

/// Most namespaces DESCRIBE names.
const MAX_LISTED_NAMESPACES: usize = 100;
/// Most grains of a namespace that are read to find one that a session with a user can see.
const MAX_PROBED_GRAINS: usize = 256;
/// The conformance level of CAL (CAL 24) of this version;
/// [`Store::cal_conformance`](crate::Store::cal_conformance) tells that of a store. Of it and of the levels
/// above, all requirements hold but those in [`CAL_EXCEPTIONS`]; docs/rulings.md decides those of its own
/// level.
pub const CAL_CONFORMANCE: &str = "core";
/// Requirements of CAL this version does not meet, by section and with the level that has them:
/// [`Store::cal_exceptions`](crate::Store::cal_exceptions).
pub const CAL_EXCEPTIONS: [&str; 8] = [
    "2.3: a token is of prepare and execute, a statement in one step has none; that of a session without a namespace is bound to none",
    "3.6, D: reserved words are names where the position tells so: labels, names of assemblies, templates and LETs",
    "16.4 (extended): no cross-lingual search is claimed; whether a query in one language finds text in another is the embedder's",
    "11.3 (full): streams are an iterator, a listener or lines of JSON; none goes over SSE or WebSocket",
    "11.6 (full): none is paused or taken up again (CAL-E081), a stream has 60 seconds of patience in place of a buffer of 64 KB and a stall of 30, and nothing counts the 3 streams of a client",
    "8.1: next_cursor is always null; a statement goes on with OFFSET",
    "20.1: refusals have the codes of the registry, which tell causes apart, and come without jitter",
    "18.3: a namespace below that of the session, and any in a session without one, is taken from the statement; another is overwritten",
];
/// The further exception if the operator has switched the read log off.
const READ_LOG_OFF_EXCEPTION: &str = "21 (core): reads are recorded nowhere: the operator has switched the read log off; writes and what has a token are";

/// The further exception if the store was opened read-only.
const READ_ONLY_EXCEPTION: &str = "21 (core): reads are recorded nowhere: the store was opened to be read; where its rules want them recorded they are refused";

/// The level where not even what core asks for is there: without the audit of reads.
const NO_LEVEL: &str = "none";

impl Store {
    /// The level of CAL whose every requirement holds in this store: [`CAL_CONFORMANCE`], or `none` where reads are
    /// recorded nowhere.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// assert_eq!(store.cal_conformance(), grainstore::CAL_CONFORMANCE);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cal_conformance(&self) -> &'static str {
        match self.reads_recorded() {
            ReadsDestination::Nowhere => NO_LEVEL,
            _ => CAL_CONFORMANCE,
        }
    }

    /// The exceptions of this store to [`CAL_CONFORMANCE`], as DESCRIBE capabilities lists them.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// assert_eq!(store.cal_exceptions(), grainstore::CAL_EXCEPTIONS);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cal_exceptions(&self) -> Vec<String> {
        let unread = self.reads_recorded() == ReadsDestination::Nowhere;
        let own = unread.then_some(if self.is_read_only() {
            READ_ONLY_EXCEPTION
        } else {
            READ_LOG_OFF_EXCEPTION
        });
        CAL_EXCEPTIONS.into_iter().chain(own).map(str::to_owned).collect()
    }
}

impl From<Error> for MemoryError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Timeout => Self::stopped(StopReason::Timeout),
            _ => Self::new(error.code(), error.to_string(), error.hint()),
        }
    }
}

impl From<ScanError> for MemoryError {
    fn from(halt: ScanError) -> Self {
        match halt {
            ScanError::Failed(error) => error.into(),
            ScanError::Stopped(stop) => stop.into(),
        }
    }
}

/// The memory of a session on one state of the store: [`Session::reading`].
#[derive(Debug)]
pub struct SessionMemory<'s> {
    session: &'s Session,
    view: RwLock<Arc<View>>,
    /// `None` unless somebody asks.
    given: Option<Arc<GivenGrains>>,
}

/// Where the grains lie that recalls have given: those that an answer shows are counted as accesses.
#[derive(Debug, Default)]
pub(crate) struct GivenGrains(Mutex<Vec<(ContentAddress, Sequence)>>);

impl GivenGrains {
    fn add(&self, grains: impl IntoIterator<Item = (ContentAddress, Sequence)>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(grains);
    }

    /// The grains so far, in the order of their addresses.
    pub(crate) fn sorted(&self) -> Vec<(ContentAddress, Sequence)> {
        let mut given = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        given.sort_unstable();
        given
    }
}

impl Session {
    /// The memory of this session as of now, for CAL or for a host with a structural query.
    ///
    /// ```
    /// use grainstore::cal::conditions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let query = conditions(r#"subject = "alice""#, &session.reading()?, session.now())?;
    /// assert_eq!(query.subject_eq(), Some("alice"));
    /// assert!(session.query(&query, &PageOptions::first(10))?.results.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub fn reading(&self) -> Result<SessionMemory<'_>> {
        Ok(SessionMemory { session: self, view: RwLock::new(self.view()?), given: None })
    }
}

impl SessionMemory<'_> {
    /// Keeps where the grains lie that its recalls give.
    pub(crate) fn note_given(&mut self) -> Arc<GivenGrains> {
        Arc::clone(self.given.get_or_insert_default())
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns `true` if a session with a user can see a grain of a namespace: one of its user, or among the
    /// newest.
    fn has_visible_grain(&self, view: &View, namespace: &str) -> Result<bool> {
        let (scope, reach) = (Scope::Exact(namespace.into()), self.session.visibility(view));
        let user = self.session.options().user_id.as_deref().unwrap_or_default();
        for shape in [IndexLookup::Value(Field::User, user.into()), IndexLookup::All] {
            let found =
                view.index().scan(&scope, &shape, TimeRange::default(), TimeOrder::Newest)?;
            for posting in found.take(MAX_PROBED_GRAINS) {
                let at = posting?.sequence;
                if ok_if_readable(view.with_blob(at, |blob| reach.is_blob_visible(at, blob)))?
                    .unwrap_or(false)
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The grain with this address, if it is of one of the ten standard types: CAL treats them as a closed
    /// set (CAL 1.5).
    fn lookup(&self, view: &View, address: &ContentAddress) -> Result<Option<StoredGrain>> {
        let found = self.session.lookup(view, address)?;
        Ok(match found {
            Some(stored) if is_standard(&stored)? => Some(stored),
            _ => None,
        })
    }

    /// The newest `limit` versions of a chain that are of a standard type and of one that `shows` names; empty
    /// if the grain itself is not visible.
    pub(super) fn versions(
        &self,
        address: &ContentAddress,
        limit: usize,
        shows: &dyn Fn(GrainType) -> bool,
    ) -> Result<Vec<Hit>> {
        let view = self.view();
        if self.lookup(&view, address)?.is_none() {
            return Ok(Vec::new());
        }
        let shown = |blob: &[u8]| shown(blob, shows);
        let versions = self.session.versions_in(&view, address, limit, &shown)?;
        versions.iter().map(to_hit).collect()
    }

    /// The number of versions that [`SessionMemory::versions`] returns without a limit.
    pub(super) fn number_of_versions(
        &self,
        address: &ContentAddress,
        cancel: &CancelHandle,
        shows: &dyn Fn(GrainType) -> bool,
    ) -> Result<u64, MemoryError> {
        let view = self.view();
        let shown = |blob: &[u8]| shown(blob, shows);
        let counted = self.session.count_versions_in(&view, address, cancel, &shown);
        counted.map_err(|error| match cancel.stop_reason() {
            // Timeouts and cancellations have one kind here.
            Some(stop) if error.kind() == ErrorKind::Timeout => stop.into(),
            _ => error.into(),
        })
    }

    /// Moves on to the newest view, which has the writes just made.
    fn refresh(&self) -> Result<()> {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = self.session.view()?;
        Ok(())
    }
}

impl Memory for SessionMemory<'_> {
    fn scope(&self) -> &cal::SessionScope {
        self.session.cal_scope()
    }

    fn recall(
        &self,
        query: &Query,
        cancel: &CancelHandle,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<RecallStats, MemoryError> {
        let view = self.session.view_for_query(self.view(), query)?;
        let given = Cell::new(false);
        let counts = self.given.is_some() && self.session.store().inner().counts_access();
        let (mut walk, ended) = view.retry_text(
            || {
                let mut walk = CandidateScan::new((self.session, &view), query, cancel, 0)?;
                walk.passed_on = counts.then(Vec::new);
                let ended = walk.run(&mut |candidate| {
                    given.set(true);
                    visit(candidate)
                })?;
                Ok::<_, ScanError>((walk, ended))
            },
            || !given.get(),
        )?;
        if let Some(given) = &self.given {
            given.add(walk.passed_on.take().into_iter().flatten());
        }
        let total = match ended.is_continue() && !walk.cut {
            true => Some(walk.matched),
            false => walk.total_by_index()?,
        };
        Ok(RecallStats { scanned: walk.scanned, total })
    }

    fn matched_fields(
        &self,
        query: &Query,
        hits: &[Hit],
        cancel: &CancelHandle,
    ) -> Result<Vec<Vec<String>>, MemoryError> {
        let Some(search) = query.search() else { return Ok(vec![Vec::new(); hits.len()]) };
        let parsed = ParsedSearch::parse(self.session, query.reach(), search)?;
        let fields = hits.iter().map(|hit| {
            cancel.check().map_err(MemoryError::stopped)?;
            Ok(parsed.matched_fields(&hit.grain)?)
        });
        fields.collect()
    }

    fn locate(&self, prefix: &HashPrefix) -> Result<PrefixMatch, MemoryError> {
        let view = self.view();
        // Grains of opaque types do not make a prefix ambiguous either.
        let mut found = Vec::new();
        for address in self.session.resolve_in(&view, prefix.digits(), usize::MAX)? {
            if self.lookup(&view, &address)?.is_some() {
                found.push(address);
            }
        }
        match (found.as_slice(), prefix.full_address()) {
            ([one], _) => Ok(PrefixMatch::One(*one)),
            ([], Some(whole)) => Ok(match self.session.visibility_of(&view, &whole)? {
                Some(VisibilityOutcome::Outside) => PrefixMatch::Elsewhere,
                _ => PrefixMatch::Nothing,
            }),
            ([], _) => Ok(PrefixMatch::Nothing),
            _ => Ok(PrefixMatch::Several),
        }
    }

    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError> {
        Ok(self.lookup(&self.view(), address)?.is_some())
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError> {
        Ok(self.lookup(&self.view(), address)?.as_ref().map(to_hit).transpose()?)
    }

    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError> {
        let view = self.view();
        Ok(self.session.templates_in(view.transaction(), view.vault())?)
    }

    fn save_template(&self, template: &NamedTemplate) -> Result<TemplateSaveOutcome, MemoryError> {
        let kept = self.session.store_template(template)?;
        self.refresh()?;
        Ok(kept)
    }

    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError> {
        Ok(self.versions(address, limit, &|_| true)?)
    }

    fn count_versions(
        &self,
        address: &ContentAddress,
        cancel: &CancelHandle,
    ) -> Result<u64, MemoryError> {
        self.number_of_versions(address, cancel, &|_| true)
    }

    fn thread(
        &self,
        message: &ContentAddress,
        limit: usize,
        cancel: &CancelHandle,
    ) -> Result<Vec<ContentAddress>, MemoryError> {
        Ok(self.session.thread_members(&self.view(), message, limit, cancel)?)
    }

    fn uses_external_service(&self, query: &Query) -> bool {
        let embeds = self.session.store().inner().meaning(&self.view());
        query.search().is_some() && embeds.is_ok_and(|keeping| keeping.is_some())
    }

    fn explain(&self, query: &Query, cancel: &CancelHandle) -> Result<AccessPlan, MemoryError> {
        let view = self.session.view_for_query(self.view(), query)?;
        let plan = explain(&view, self.session, query, cancel)?;
        let lookups = plan.lists.into_iter().flat_map(|list| list.lookups).collect();
        Ok(AccessPlan {
            index: plan.index,
            lookups,
            search: plan.search,
            estimated: plan.estimated,
            scans_at_most: plan.at_most,
        })
    }

    fn describe(&self) -> Result<HostInfo, MemoryError> {
        let view = self.view();
        let scope = self.session.scope_within(None)?;
        let names = view.index().namespaces(&scope, MAX_LISTED_NAMESPACES).map_err(Error::from)?;
        let mut namespaces: Vec<String> = names.into_iter().filter_map(plain_name).collect();
        if self.session.viewer().has_user() {
            let mut told = Vec::new();
            for name in namespaces {
                if self.has_visible_grain(&view, &name)? {
                    told.push(name);
                }
            }
            namespaces = told;
        }
        namespaces.sort_unstable();
        let inner = self.session.store().inner();
        let embedder = inner.meaning(&view)?.or(inner.keeping());
        Ok(HostInfo {
            name: "grainstore".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cal_conformance: self.session.store().cal_conformance(),
            exceptions: self.session.store().cal_exceptions(),
            namespaces,
            full_text: true,
            embedding_model: embedder.map(|keeping| keeping.space().model().to_owned()),
            supported_languages: Language::all().map(|of| of.code().to_owned()).collect(),
            ..HostInfo::default()
        })
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

/// Returns `true` if a grain is of one of the ten standard types, by its header byte.
fn is_standard(stored: &StoredGrain) -> Result<bool> {
    shown(&stored.blob, &|_| true)
}

/// Returns `true` if a blob is of a standard type, and of one that `shows` names.
fn shown(blob: &[u8], shows: &dyn Fn(GrainType) -> bool) -> Result<bool> {
    let of = Header::read(blob)?.0.grain_type;
    Ok(of.is_standard() && shows(of))
}

fn to_hit(stored: &StoredGrain) -> Result<Hit> {
    let (grain, score) = (stored.grain()?, Score::STRUCTURAL);
    Ok(Hit { address: stored.address, grain, state: stored.state, score })
}

fn plain_name(name: OwnedTermValue) -> Option<String> {
    match name {
        OwnedTermValue::Plain(text) => Some(text),
        OwnedTermValue::Token(_) => None,
    }
}
