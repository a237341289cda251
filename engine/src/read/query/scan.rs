//! A scan over the candidates of a query: each is rechecked on its grain and state, and passed on in the
//! order of the answer.
//!
//! The order is by time, ties by ascending address. Postings already have it, except for grains of one
//! instant whose addresses share a prefix, which are sorted here.

use std::iter::Peekable;
use std::ops::ControlFlow;

use grainstore_cal::{
    self as cal, CancelHandle, Candidate, Query, RecallVisitor, Score, StopReason,
};
use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState, VerificationStatus};
use grainstore_index::{self as index, Posting, Sequence, TieBreaker};

use super::access_path::AccessPath;
use super::cursor::{LastRow, LogPoint, RankingKind, ScorePosition, TimePosition};
use super::expand::{self, ExpansionStats, RaisedAnswers};
use super::postings::{OldestFirstPostings, PostingsSource};
use super::rerank::RerankedOrder;
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::disk::layout::StateRecord;
use crate::handle::session::Session;
use crate::state::view::View;
use crate::state::visibility::Visibility;

/// Candidates between checks for cancellation.
const CHECK_INTERVAL_CANDIDATES: u64 = 64;

/// Grains passed on whose places are kept for the caller; of more it looks the rest up by their addresses.
const MAX_PASSED_ON: usize = 1_024;

/// Rows of the index up to which all matches are counted by it, those of superseded grains included.
const MAX_TOTAL_BY_INDEX: u64 = 256;

/// Reason a scan stopped early.
#[derive(Debug)]
pub(crate) enum ScanError {
    Failed(Error),
    Stopped(StopReason),
}

impl From<Error> for ScanError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<index::Error> for ScanError {
    fn from(error: index::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ScanError> for Error {
    fn from(halt: ScanError) -> Self {
        match halt {
            ScanError::Failed(error) => error,
            ScanError::Stopped(StopReason::Timeout) => {
                Self::new(ErrorKind::Timeout, "the query took too long")
            }
            ScanError::Stopped(StopReason::Cancelled) => {
                Self::new(ErrorKind::Timeout, "the host cancelled the query")
            }
        }
    }
}

/// A scan, with its progress.
pub(crate) struct CandidateScan<'w> {
    pub(crate) session: &'w Session,
    pub(crate) view: &'w View,
    /// Visibility of grains to the session.
    reach: Visibility<'w>,
    pub(crate) query: &'w Query,
    pub(crate) cancel: &'w CancelHandle,
    /// The end of the page before, and the state of the log it was read from.
    pub(crate) after: Option<(LogPoint, LastRow)>,
    /// Number of first matches that are given to a user and counted as accesses.
    pub(crate) given: usize,
    /// Visible grains that were checked. Others that a store-wide index proposes are not counted: their
    /// number would reveal what other sessions hold.
    pub(crate) scanned: u64,
    /// All candidates, counted to check for cancellation now and then.
    proposed: u64,
    /// Grains that match.
    pub(crate) matched: u64,
    /// The first of those that were passed on and not counted as accesses, if the caller wants to know where they lie.
    pub(crate) passed_on: Option<Vec<(ContentAddress, Sequence)>>,
    /// The last sequence of the view.
    pub(super) last: Sequence,
    /// Inputs of the scores of a search.
    pub(super) statistics: Vec<u8>,
    /// The ranking of the answer.
    pub(super) ranking: RankingKind,
    /// The order a rerank has chosen.
    pub(super) order: RerankedOrder,
    /// True if there may be more matches than were looked for.
    pub(crate) cut: bool,
    /// True while the minimum score is not applied, because a rerank may change scores.
    pub(super) floorless: bool,
    /// Scores of the grains passed on by a search, as the full text has them.
    pub(super) scores: Vec<f64>,
    /// Answers by text that links have raised.
    pub(super) raised: RaisedAnswers,
    /// Statistics of the expansion, once it was done.
    pub(crate) expanded: Option<ExpansionStats>,
}

/// A match held until all others with its sort key are known.
struct PendingMatch {
    time: EpochMs,
    address: ContentAddress,
    sequence: Sequence,
    state: GrainState,
}

/// Sort key of a posting; grains with equal keys are ordered by their full addresses.
type SortKey = (EpochMs, TieBreaker);

impl<'w> CandidateScan<'w> {
    /// Creates a scan of a query; the first `given` matches count as accesses.
    ///
    /// # Errors
    /// Those of [`expand::check_expansion`]; `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn new(
        (session, view): (&'w Session, &'w View),
        query: &'w Query,
        cancel: &'w CancelHandle,
        given: usize,
    ) -> Result<Self> {
        expand::check_expansion(query)?;
        Ok(Self {
            session,
            view,
            reach: session.visibility(view),
            query,
            cancel,
            after: None,
            given,
            scanned: 0,
            proposed: 0,
            matched: 0,
            passed_on: None,
            last: view.last_sequence()?,
            statistics: Vec::new(),
            ranking: RankingKind::Text,
            order: RerankedOrder::default(),
            cut: false,
            floorless: false,
            scores: Vec::new(),
            raised: RaisedAnswers::default(),
            expanded: None,
        })
    }

    /// Continues after an earlier page.
    pub(crate) fn behind(self, after: Option<(LogPoint, LastRow)>) -> Self {
        Self { after, ..self }
    }
}

impl CandidateScan<'_> {
    /// The number of all matches where the index and the states of the grains tell it without reading any: the
    /// query asks for types alone, or for everything, of a session with neither namespace nor user, and the index
    /// has few. `None` otherwise: what hides grains of others must not show in the total of a limited session.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn total_by_index(&self) -> Result<Option<u64>, ScanError> {
        let query = self.query;
        let is_more = !query.predicates().is_empty()
            || query.search().is_some()
            || query.near().is_some()
            || query.rerank().is_some()
            || query.expansion().is_some()
            || query.address().is_some()
            || query.addresses().is_some()
            || query.floor().is_some()
            || query.valid_time().is_some()
            || query.known_time().is_some()
            || query.types() == cal::TypeSet::ALL
            || self.after.is_some();
        if is_more
            || !self.session.viewer().is_unrestricted()
            || self.reach.has_read_rules()
            || self.view.may_have_consents()?
            || self.view.is_unscrubbed()?
        {
            return Ok(None);
        }
        let reader = self.view.index();
        let access = AccessPath::choose(&reader, self.session, query)?;
        let [list] = access.lists.as_slice() else { return Ok(None) };
        let by_type =
            |lookup: &index::IndexLookup<'_>| matches!(lookup, index::IndexLookup::Type(_));
        if query.types() != cal::TypeSet::EVERYTHING && !list.lookups.iter().all(by_type) {
            return Ok(None);
        }
        let rows = list.estimate_rows(&reader, (&access.namespaces, access.times))?;
        if rows.postings > MAX_TOTAL_BY_INDEX {
            return Ok(None);
        }
        let mut total = 0;
        for posting in self.postings_of(&access)? {
            total += u64::from(self.state(posting?.sequence)?.is_some());
        }
        Ok(Some(total))
    }

    /// Passes every match to `visit` in order until it has enough.
    pub(crate) fn run(
        &mut self,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let ended = match self.query.rerank() {
            Some(rerank) => self.reranked(rerank, visit),
            None => self.plain(visit),
        };
        // A callback that only polls for cancellation reports a timeout without the reason; restore it.
        ended.map_err(|halt| match (halt, self.cancel.stop_reason()) {
            (ScanError::Failed(error), Some(stop)) if error.kind() == ErrorKind::Timeout => {
                ScanError::Stopped(stop)
            }
            (halt, _) => halt,
        })
    }

    /// The matches before any reranking.
    pub(super) fn plain(
        &mut self,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        match (self.query.near(), self.query.search()) {
            (Some(near), search) => return self.nearest(near, search, visit),
            (None, Some(search)) => {
                return match self.meant_by(search)? {
                    Some(near) => self.nearest(&near, Some(search), visit),
                    None => self.ranked(search, visit),
                };
            }
            (None, None) => {}
        }
        match self.query.expansion() {
            Some(expansion) => self.by_conditions_and_links(expansion, visit),
            None => self.by_conditions(visit),
        }
    }

    /// The grains that meet the conditions, in the order of the query.
    pub(super) fn by_conditions(
        &mut self,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let listed = self.query.address().map(|address| vec![address]);
        let among = || self.query.addresses().map(<[_]>::to_vec);
        if let Some(addresses) = listed.or_else(among) {
            return self.listed(&addresses, visit);
        }
        let reader = self.view.index();
        let access = AccessPath::choose(&reader, self.session, self.query)?;
        self.over(&access, visit)
    }

    /// The grains a query names by address.
    fn listed(
        &mut self,
        addresses: &[ContentAddress],
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let mut waiting = Vec::new();
        for address in addresses {
            let Some(sequence) = self.view.sequence_of(address)? else { continue };
            self.tick()?;
            if self.after.as_ref().is_none_or(|(origin, _)| sequence <= origin.sequence) {
                self.collect(sequence, &mut waiting)?;
            }
        }
        self.release(&mut waiting, visit)
    }

    /// The postings of an access path, the newest first.
    pub(super) fn postings_of<'a>(
        &'a self,
        access: &'a AccessPath<'a>,
    ) -> Result<impl Iterator<Item = Result<Posting, ScanError>> + 'a, ScanError> {
        let (cancel, vault) = (self.cancel, self.view.vault());
        let found = PostingsSource { reader: self.view.index(), access, cancel, vault };
        found.open(access.times, index::TimeOrder::Newest, None)
    }

    fn over(
        &mut self,
        access: &AccessPath<'_>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let reader = self.view.index();
        let mut times = access.times;
        if let Some(place) = self.place() {
            match access.order {
                index::TimeOrder::Newest => times.to = Some(place.time),
                index::TimeOrder::Oldest => times.from = Some(place.time),
            }
        }
        let found =
            PostingsSource { reader, access, cancel: self.cancel, vault: self.view.vault() };
        let place = self.place().copied();
        match access.order {
            index::TimeOrder::Newest => {
                let postings = found.open(times, index::TimeOrder::Newest, place)?;
                self.stream(postings.peekable(), visit)
            }
            index::TimeOrder::Oldest => {
                self.stream(OldestFirstPostings::new(found, times, place)?.peekable(), visit)
            }
        }
    }

    fn stream(
        &mut self,
        mut postings: Peekable<impl Iterator<Item = Result<Posting, ScanError>>>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        let mut waiting = Vec::new();
        while let Some(posting) = postings.next() {
            let posting = posting?;
            self.tick()?;
            if self.is_behind(&posting) {
                continue;
            }
            let tied = match postings.peek() {
                Some(Ok(next)) => sort_key(next) == sort_key(&posting),
                _ => false,
            };
            if tied || !waiting.is_empty() {
                self.collect(posting.sequence, &mut waiting)?;
                if tied {
                    continue;
                }
                if self.release(&mut waiting, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            } else if self.show(posting.sequence, None, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // The last posting of a group may have been skipped.
        self.release(&mut waiting, visit)
    }

    /// Returns `true` if a posting is before the cursor, or newer than the first page.
    fn is_behind(&self, posting: &Posting) -> bool {
        let Some((origin, _)) = &self.after else { return false };
        let stands_before = |place: &TimePosition| {
            posting.time == place.time
                && posting.tie < self.view.vault().tie_breaker(&place.address)
        };
        posting.sequence > origin.sequence || self.place().is_some_and(stands_before)
    }

    /// The last row of an earlier page of an answer by time.
    fn place(&self) -> Option<&TimePosition> {
        match &self.after {
            Some((_, LastRow::ByTime(place))) => Some(place),
            _ => None,
        }
    }

    /// The last row of an earlier page of an answer by score.
    pub(super) fn rank(&self) -> Option<&ScorePosition> {
        match &self.after {
            Some((_, LastRow::ByScore(rank))) => Some(rank),
            _ => None,
        }
    }

    /// Sets the ranking of the answer.
    ///
    /// # Errors
    /// `ERR_CURSOR` if its first page was ranked otherwise, as when an embedder was added or has failed.
    pub(super) fn rank_by(&mut self, ranking: RankingKind) -> Result<()> {
        // Under a rerank, the ranking it reorders is not recorded.
        if self.ranking != RankingKind::Reranked {
            self.ranking = ranking;
            if self.rank().is_some_and(|rank| rank.ranking != ranking) {
                let message = "the first page of this answer was ranked in another way";
                return Err(Error::new(ErrorKind::Cursor, message));
            }
        }
        Ok(())
    }

    pub(super) fn tick(&mut self) -> Result<(), ScanError> {
        if self.proposed.is_multiple_of(CHECK_INTERVAL_CANDIDATES) {
            self.cancel.check().map_err(ScanError::Stopped)?;
        }
        self.proposed += 1;
        Ok(())
    }

    /// Returns `true` if the session may see a grain, and counts it. A grain it may not see must not be used
    /// further.
    pub(super) fn look_at(&mut self, at: Sequence, grain: &GrainRef<'_>) -> Result<bool> {
        let seen = self.reach.is_visible(at, grain)?;
        self.scanned += u64::from(seen);
        Ok(seen)
    }

    /// Passes a grain to `visit` if it matches. One checked before comes with its state and score.
    pub(super) fn show(
        &mut self,
        sequence: Sequence,
        checked: Option<(&GrainState, Score)>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        // The visitor may take long.
        self.cancel.check().map_err(ScanError::Stopped)?;
        let state = match checked {
            Some((state, _)) => *state,
            None => match self.state(sequence)? {
                Some(state) => state,
                None => return Ok(ControlFlow::Continue(())),
            },
        };
        let mut shown = None;
        let flow = self.view.with_live_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                let address = match checked {
                    Some(_) => {
                        self.reach.is_visible(sequence, grain)?.then(|| ContentAddress::of(blob))
                    }
                    None if self.look_at(sequence, grain)? => self.admitted(blob, grain, &state),
                    None => None,
                };
                shown = address;
                let score = checked.map_or(Score::STRUCTURAL, |(_, score)| score);
                let show = |address| visit(Candidate { address, grain, state: &state, score });
                Ok(address.map(show))
            })
        })?;
        if flow.is_some() {
            if self.matched < self.given as u64 {
                self.session.store().inner().touch(sequence);
            } else if let (Some(passed_on), Some(address)) = (&mut self.passed_on, shown)
                && passed_on.len() < MAX_PASSED_ON
            {
                passed_on.push((address, sequence));
            }
            self.matched += 1;
        }
        Ok(flow.unwrap_or(ControlFlow::Continue(())))
    }

    /// Holds a grain that matches until all with its sort key are known.
    fn collect(
        &mut self,
        sequence: Sequence,
        waiting: &mut Vec<PendingMatch>,
    ) -> Result<(), ScanError> {
        let Some(state) = self.state(sequence)? else { return Ok(()) };
        let found = self.view.with_live_blob(sequence, |blob| {
            with_fields(blob, |grain| {
                if !self.look_at(sequence, grain)? {
                    return Ok(None);
                }
                let address = self.admitted(blob, grain, &state);
                let time = grain.time();
                Ok(address.map(|address| PendingMatch { time, address, sequence, state }))
            })
        })?;
        waiting.extend(found);
        Ok(())
    }

    /// Passes on the grains held, in order.
    fn release(
        &mut self,
        waiting: &mut Vec<PendingMatch>,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<ControlFlow<()>, ScanError> {
        waiting.sort_unstable_by(|a, b| {
            let by_time = match self.query.order() {
                grainstore_cal::Order::Newest => b.time.cmp(&a.time),
                grainstore_cal::Order::Oldest => a.time.cmp(&b.time),
            };
            by_time.then(a.address.cmp(&b.address))
        });
        for PendingMatch { sequence, state, .. } in waiting.drain(..) {
            let checked = Some((&state, Score::STRUCTURAL));
            if self.show(sequence, checked, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The session's now.
    pub(super) fn now(&self) -> EpochMs {
        self.reach.now()
    }

    /// The state a grain is checked against; `None` if no grain in that state can match.
    pub(super) fn state(&self, sequence: Sequence) -> Result<Option<GrainState>> {
        if self.view.is_hidden(sequence)? {
            return Ok(None);
        }
        let StateRecord { mut state, ended_by_entry: since } =
            self.view.state_record_at(sequence)?;
        if let Some((origin, _)) = &self.after
            && since >= origin.entries
        {
            state = as_current(state);
        }
        let visibility = self.query.visibility();
        let hopeless = self.query.known_time().is_none() && !visibility.admits(&state, self.now());
        Ok((!hopeless).then_some(state))
    }

    /// The address of a visible grain if it matches the query and comes after the page before. Only grains
    /// that match are hashed.
    pub(super) fn admitted(
        &self,
        blob: &[u8],
        grain: &GrainRef<'_>,
        state: &GrainState,
    ) -> Option<ContentAddress> {
        if !self.query.suits(grain, state, self.now()) {
            return None;
        }
        let address = ContentAddress::of(blob);
        let behind = self.place().is_none_or(|place| {
            let time = grain.time();
            let later = match self.query.order() {
                grainstore_cal::Order::Newest => time < place.time,
                grainstore_cal::Order::Oldest => time > place.time,
            };
            later || (time == place.time && address > place.address)
        });
        (behind && self.query.allows(&address)).then_some(address)
    }
}

/// The state a grain had before it was ended. Its verification status before a retraction is not recorded.
fn as_current(state: GrainState) -> GrainState {
    let verification_status = match state.verification_status {
        VerificationStatus::Retracted => VerificationStatus::Unverified,
        status => status,
    };
    GrainState {
        superseded_by: None,
        system_valid_to: None,
        contradicted: false,
        verification_status,
        ..state
    }
}

fn sort_key(posting: &Posting) -> SortKey {
    (posting.time, posting.tie)
}
