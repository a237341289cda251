//! Versions: the supersession chain of a grain, and all versions of a subject's relation.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use grainstore_cal::{CancelHandle, Visibility, is_known_at};
use grainstore_format::{ContentAddress, EpochMs, GrainRef};
use grainstore_index::{IndexLookup, Scope, Sequence, TimeOrder, TimeRange};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::blob::{is_withdrawal, with_fields};
use crate::handle::session::{Session, StoredGrain};
use crate::read::graph::{BoundedList, normalised};
use crate::read::query::ScanError;
use crate::state::view::{GrainRow, View};
use crate::state::visibility::is_in_namespace;

/// Most versions of one [`Session::history`]; `ERR_LIMIT` beyond.
pub const MAX_VERSIONS: usize = 10_000;
/// Most bytes of blobs of one [`Session::history`]; `ERR_LIMIT` beyond.
pub const MAX_HISTORY_BYTES: usize = 64 << 20;
/// Time limit of one [`Session::history`]; `ERR_TIMEOUT` beyond.
pub const HISTORY_TIMEOUT: Duration = Duration::from_secs(5);

impl Session {
    /// Every version of a grain: what it superseded and what superseded it, newest first.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let prefers = |drink: &str| {
    ///     BeliefBuilder::new(session.now(), "alice", "prefers", drink, 0.9).build()
    /// };
    /// let tea = session.put(prefers("tea")?)?.address();
    /// let coffee = session.supersede(&tea, prefers("coffee")?, None)?;
    /// let versions = session.history(&tea)?;
    /// assert_eq!(versions.iter().map(|version| version.address).collect::<Vec<_>>(), [coffee, tea]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` for an address this session cannot see; `ERR_LIMIT` beyond [`MAX_VERSIONS`] or
    /// [`MAX_HISTORY_BYTES`]; `ERR_TIMEOUT` beyond [`HISTORY_TIMEOUT`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn history(&self, address: &ContentAddress) -> Result<Vec<StoredGrain>> {
        let view = self.view()?;
        self.audited(catch_storage_panic(|| self.versions_in(&view, address, MAX_VERSIONS, &all))?)
    }

    /// The newest `limit` versions in one view that `shows` lets through, of blobs: from the head of the
    /// chain back.
    pub(crate) fn versions_in(
        &self,
        view: &View,
        address: &ContentAddress,
        limit: usize,
        shows: BlobFilter<'_>,
    ) -> Result<Vec<StoredGrain>> {
        let found = self.lookup(view, address)?.ok_or_else(|| self.not_visible(view, address))?;
        let time = HistoryDeadline::start();
        let head = self.head(view, found, &time)?;
        let (versions, more) =
            self.versions_back_from(view, &head.address, limit, (&time, shows))?;
        if more && limit >= MAX_VERSIONS {
            return Err(too_many());
        }
        Ok(versions)
    }

    /// The number of versions that [`Session::versions_in`] returns without a limit. No blob is kept or
    /// decoded as a whole.
    ///
    /// # Errors
    /// `ERR_TIMEOUT` once `cancel` is due; as [`Session::history`] but for its limits.
    pub(crate) fn count_versions_in(
        &self,
        view: &View,
        address: &ContentAddress,
        cancel: &CancelHandle,
        shows: BlobFilter<'_>,
    ) -> Result<u64> {
        let found = self.lookup(view, address)?.ok_or_else(|| self.not_visible(view, address))?;
        let time = HistoryDeadline(cancel.clone());
        let head = self.head(view, found, &time)?;
        let mut walk = ChainWalk::from(self, view, &head.address, (&time, shows));
        let mut count = 0_u64;
        while let Some((address, row)) = walk.next()? {
            count = count.saturating_add(1);
            walk.go_behind(&address, &row.blob)?;
        }
        Ok(count)
    }

    /// The newest version of a chain that the session can see.
    fn head(&self, view: &View, from: StoredGrain, time: &HistoryDeadline) -> Result<StoredGrain> {
        let (mut address, mut state) = (from.address, from.state);
        let most = view.last_sequence()?.get();
        let mut steps = 0_u64;
        let reach = self.visibility(view);
        while let Some(by) = state.superseded_by {
            time.check()?;
            let Some(sequence) = view.sequence_of(&by)? else { break };
            if !view.with_blob(sequence, |blob| reach.is_blob_visible(sequence, blob))? {
                break;
            }
            steps += 1;
            if steps > most {
                return Err(Error::integrity("a supersession chain runs in a circle"));
            }
            (address, state) = (by, view.state_at(sequence)?);
        }
        if address == from.address {
            return Ok(from);
        }
        self.lookup(view, &address)?.ok_or_else(|| self.not_visible(view, &address))
    }

    /// At most `limit` versions from one back, and `true` if there are more.
    fn versions_back_from(
        &self,
        view: &View,
        from: &ContentAddress,
        limit: usize,
        (time, shows): (&HistoryDeadline, BlobFilter<'_>),
    ) -> Result<(Vec<StoredGrain>, bool)> {
        let mut walk = ChainWalk::from(self, view, from, (time, shows));
        let mut bytes = 0_usize;
        let mut versions = Vec::new();
        while let Some((address, row)) = walk.next()? {
            if versions.len() >= limit {
                return Ok((versions, true));
            }
            bytes = bytes.saturating_add(row.blob.len());
            check_size(versions.len(), bytes)?;
            walk.go_behind(&address, &row.blob)?;
            versions.push(self.to_stored_grain(view, address, row)?);
        }
        Ok((versions, false))
    }

    /// A version and those before it, newest first, for reading a chain of any length in parts. The next part
    /// starts from the last version, which is returned again; where one grain superseded several, from each
    /// of them.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// # let prefers = |drink: &str| {
    /// #     BeliefBuilder::new(session.now(), "alice", "prefers", drink, 0.9).build()
    /// # };
    /// # let tea = session.put(prefers("tea")?)?.address();
    /// # let coffee = session.supersede(&tea, prefers("coffee")?, None)?;
    /// let part = session.older_versions(&coffee, 1)?;
    /// assert_eq!((part.items[0].address, part.more), (coffee, true));
    /// let rest = session.older_versions(&part.items[0].address, 10)?;
    /// assert_eq!((rest.items[1].address, rest.more), (tea, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` for an address this session cannot see; `ERR_LIMIT` for a limit beyond
    /// [`MAX_VERSIONS`] and for versions of more than [`MAX_HISTORY_BYTES`]; `ERR_TIMEOUT` beyond
    /// [`HISTORY_TIMEOUT`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn older_versions(
        &self,
        address: &ContentAddress,
        limit: usize,
    ) -> Result<BoundedList<StoredGrain>> {
        check_size(limit, 0)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            self.lookup(&view, address)?.ok_or_else(|| self.not_visible(&view, address))?;
            let time = HistoryDeadline::start();
            let (items, more) = self.versions_back_from(&view, address, limit, (&time, &all))?;
            Ok(BoundedList { items: self.audited(items)?, more })
        })
    }

    /// A version and those after it, oldest first. The next part starts from the last version, which is
    /// returned again.
    ///
    /// # Errors
    /// As [`Session::older_versions`].
    pub fn newer_versions(
        &self,
        address: &ContentAddress,
        limit: usize,
    ) -> Result<BoundedList<StoredGrain>> {
        check_size(limit, 0)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let from =
                self.lookup(&view, address)?.ok_or_else(|| self.not_visible(&view, address))?;
            let time = HistoryDeadline::start();
            let mut bytes = 0_usize;
            let mut items = Vec::new();
            let mut next = Some(from);
            while let Some(version) = next {
                time.check()?;
                if items.len() == limit {
                    return Ok(BoundedList { items: self.audited(items)?, more: true });
                }
                bytes = bytes.saturating_add(version.blob.len());
                check_size(items.len(), bytes)?;
                let by = version.state.superseded_by;
                items.push(version);
                next = by.map_or(Ok(None), |by| self.lookup(&view, &by))?;
            }
            Ok(BoundedList { items: self.audited(items)?, more: false })
        })
    }

    /// Every grain with this subject and relation, superseded ones included, newest first. `namespace` limits
    /// them to one partition; `as_of` to those that were current at that system time (OMS 15.2).
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// # let prefers = |drink: &str| {
    /// #     BeliefBuilder::new(session.now(), "alice", "prefers", drink, 0.9).build()
    /// # };
    /// # let tea = session.put(prefers("tea")?)?.address();
    /// # let coffee = session.supersede(&tea, prefers("coffee")?, None)?;
    /// let versions = session.history_of("alice", "prefers", None, None)?;
    /// assert_eq!(versions.len(), 2);
    /// assert_eq!(session.history_of("alice", "prefers", None, Some(session.now()))?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` for a namespace outside the session's; `ERR_LIMIT` beyond [`MAX_VERSIONS`] or
    /// [`MAX_HISTORY_BYTES`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn history_of(
        &self,
        subject: &str,
        relation: &str,
        namespace: Option<&str>,
        as_of: Option<EpochMs>,
    ) -> Result<Vec<StoredGrain>> {
        self.audited(self.history_in(&*self.view()?, (subject, relation), namespace, as_of)?)
    }

    /// [`Session::history_of`] on one view.
    fn history_in(
        &self,
        view: &View,
        (subject, relation): (&str, &str),
        namespace: Option<&str>,
        as_of: Option<EpochMs>,
    ) -> Result<Vec<StoredGrain>> {
        let (subject, relation) = (normalised(subject)?, normalised(relation)?);
        let scope = self.scope_within(namespace)?;
        let shape =
            IndexLookup::subject_relation(subject.as_str().into(), relation.as_str().into());
        catch_storage_panic(|| {
            let time = HistoryDeadline::start();
            let reach = self.visibility(view);
            let mut found = Vec::new();
            for posting in
                view.index().scan(&scope, &shape, TimeRange::default(), TimeOrder::Newest)?
            {
                time.check()?;
                let sequence = posting?.sequence;
                if view.is_erased(sequence)? {
                    continue;
                }
                let state = view.state_at(sequence)?;
                // The index only proposes: it may be damaged, or that of another store.
                let says = |grain: &GrainRef<'_>| {
                    is_in_partition(grain.partition(), namespace)
                        && grain.text("subject") == Some(&subject)
                        && grain.text("relation") == Some(&relation)
                        && as_of
                            .is_none_or(|at| is_known_at(grain, &state, Visibility::default(), at))
                };
                let admitted = view.with_blob(sequence, |blob| {
                    with_fields(blob, |grain| Ok(says(grain) && reach.is_visible(sequence, grain)?))
                })?;
                found.extend(admitted.then_some(sequence));
                check_size(found.len(), 0)?;
            }
            self.newest_first(view, found, &time)
        })
    }

    /// Reads the grains at these sequences, the last written first.
    fn newest_first(
        &self,
        view: &View,
        mut found: Vec<Sequence>,
        time: &HistoryDeadline,
    ) -> Result<Vec<StoredGrain>> {
        found.sort_unstable_by(|a, b| b.cmp(a));
        let mut bytes = 0_usize;
        let mut versions = Vec::new();
        for sequence in found {
            time.check()?;
            let state = view.state_at(sequence)?;
            let blob = view.with_blob(sequence, |blob| Ok(blob.to_vec()))?;
            bytes = bytes.saturating_add(blob.len());
            check_size(versions.len(), bytes)?;
            let address = ContentAddress::of(&blob);
            versions.push(self.to_stored_grain(
                view,
                address,
                GrainRow { sequence, blob, state },
            )?);
        }
        Ok(versions)
    }

    /// The session's scope, or one partition of it.
    pub(crate) fn scope_within<'a>(&'a self, namespace: Option<&'a str>) -> Result<Scope<'a>> {
        let viewer = self.viewer();
        match namespace {
            None => Ok(viewer.index_scope()),
            Some(namespace) => {
                viewer.check_namespace(namespace)?;
                Ok(Scope::Exact(namespace.into()))
            }
        }
    }
}

/// Returns `true` if a partition is the named one, or none is named.
pub(crate) fn is_in_partition(partition: &str, namespace: Option<&str>) -> bool {
    // Two names, each in the scope of the other, are equal.
    namespace.is_none_or(|namespace| {
        is_in_namespace(partition, Some(namespace)) && is_in_namespace(namespace, Some(partition))
    })
}

/// The deadline of a history.
struct HistoryDeadline(CancelHandle);

impl HistoryDeadline {
    fn start() -> Self {
        Self(CancelHandle::default().with_deadline(HISTORY_TIMEOUT))
    }

    /// # Errors
    /// `ERR_TIMEOUT` after the deadline.
    fn check(&self) -> Result<()> {
        let passed = |stop| {
            let hint = "take it in parts: newer_versions and older_versions of one of its grains";
            Error::from(ScanError::Stopped(stop)).with_hint(hint)
        };
        self.0.check().map_err(passed)
    }
}

/// The addresses of all versions of a stored grain that are not erased, newest first, whether anybody sees them or not.
///
/// # Errors
/// `ERR_LIMIT` beyond [`MAX_VERSIONS`]; `ERR_TIMEOUT` beyond [`HISTORY_TIMEOUT`]; `ERR_INTEGRITY`; `ERR_IO`.
pub(crate) fn version_addresses(
    view: &View,
    address: &ContentAddress,
) -> Result<Vec<ContentAddress>> {
    let time = HistoryDeadline::start();
    let mut head = *address;
    let mut steps = 0_usize;
    while let Some(newer) = successor(view, &head)? {
        time.check()?;
        if view.sequence_of(&newer)?.is_none() {
            break;
        }
        head = newer;
        steps += 1;
        check_size(steps, 0)?;
    }
    let (mut found, mut waiting) = (Vec::new(), VecDeque::from([head]));
    while let Some(address) = waiting.pop_front() {
        time.check()?;
        let Some(sequence) = view.sequence_of(&address)? else { continue };
        let blob = view.with_blob(sequence, |blob| Ok(blob.to_vec()))?;
        waiting.extend(predecessors(view, &address, &blob, &time)?);
        found.push(address);
        check_size(found.len(), 0)?;
    }
    Ok(found)
}

/// Decides of a blob whether its grain is among the versions.
type BlobFilter<'f> = &'f dyn Fn(&[u8]) -> Result<bool>;

/// Lets every blob through.
fn all(_: &[u8]) -> Result<bool> {
    Ok(true)
}

/// A walk along a chain, newest first, level by level, since one grain may supersede several. They wait as
/// addresses, and are read one by one.
struct ChainWalk<'w> {
    session: &'w Session,
    view: &'w View,
    time: &'w HistoryDeadline,
    shows: BlobFilter<'w>,
    waiting: VecDeque<ContentAddress>,
}

impl<'w> ChainWalk<'w> {
    fn from(
        session: &'w Session,
        view: &'w View,
        head: &ContentAddress,
        (time, shows): (&'w HistoryDeadline, BlobFilter<'w>),
    ) -> Self {
        Self { session, view, time, shows, waiting: VecDeque::from([*head]) }
    }

    /// Returns the next version that the session sees and the filter lets through.
    fn next(&mut self) -> Result<Option<(ContentAddress, GrainRow)>> {
        while let Some(address) = self.waiting.pop_front() {
            self.time.check()?;
            let Some(row) = self.session.visible_row(self.view, &address)? else { continue };
            if (self.shows)(&row.blob)? {
                return Ok(Some((address, row)));
            }
            self.go_behind(&address, &row.blob)?;
        }
        Ok(None)
    }

    /// Goes on to the versions that this one superseded.
    fn go_behind(&mut self, address: &ContentAddress, blob: &[u8]) -> Result<()> {
        self.waiting.extend(predecessors(self.view, address, blob, self.time)?);
        Ok(())
    }
}

/// The grains a version superseded: the parents it names whose state says so, and the grant it withdraws.
fn predecessors(
    view: &View,
    address: &ContentAddress,
    blob: &[u8],
    time: &HistoryDeadline,
) -> Result<Vec<ContentAddress>> {
    let (named, withdrawn) = with_fields(blob, |grain| {
        let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
        let parents = parents.into_iter().flat_map(|parents| parents.iter());
        let texts = parents.filter_map(|parent| parent.as_str());
        let prior = grain.text("prior_consent").map(ContentAddress::digits);
        let named = texts.chain(prior).filter_map(|text| text.parse().ok());
        let withdrawn = prior.filter(|_| is_withdrawal(grain)).and_then(|text| text.parse().ok());
        Ok((named.collect::<BTreeSet<_>>(), withdrawn))
    })?;
    let mut found = BTreeSet::new();
    for parent in named {
        time.check()?;
        if successor(view, &parent)? == Some(*address) {
            found.insert(parent);
        }
    }
    // A withdrawal need not derive from its grant, and ends the last version of the grant it names.
    let mut ended: Option<ContentAddress> = withdrawn;
    while let Some(grant) = ended {
        time.check()?;
        ended = successor(view, &grant)?;
        if ended == Some(*address) {
            found.insert(grant);
            break;
        }
    }
    Ok(found.into_iter().collect())
}

/// The grain that superseded the one with this address, if any.
fn successor(view: &View, address: &ContentAddress) -> Result<Option<ContentAddress>> {
    let Some(sequence) = view.sequence_of(address)? else { return Ok(None) };
    Ok(view.state_at(sequence)?.superseded_by)
}

fn check_size(versions: usize, bytes: usize) -> Result<()> {
    if versions <= MAX_VERSIONS && bytes <= MAX_HISTORY_BYTES {
        return Ok(());
    }
    Err(too_many())
}

fn too_many() -> Error {
    let message =
        format!("a history of more than {MAX_VERSIONS} versions or {MAX_HISTORY_BYTES} bytes");
    let hint = "take it in parts: newer_versions and older_versions of one of its grains";
    Error::new(ErrorKind::Limit, message).with_hint(hint)
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
