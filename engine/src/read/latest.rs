//! The newest value of a subject's relation, now or as of some time (OMS 15.2).

use std::cmp::Reverse;

use grainstore_cal::{Visibility, is_known_at, is_valid_at};
use grainstore_format::{ContentAddress, EpochMs, GrainRef, GrainState};
use grainstore_index::{IndexLookup, Posting};

use crate::base::error::{Result, catch_storage_panic};
use crate::handle::session::{Session, StoredGrain};
use crate::read::graph::{GraphOptions, GraphReader, VisibleGrain, normalised};
use crate::read::history::is_in_partition;

/// The two times of a bi-temporal read, [`Session::latest_as_of`] (ruling 29).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AsOf {
    /// System time: counts grains that were current in the store then; `None` for those current now.
    pub known_at: Option<EpochMs>,
    /// Valid time: counts grains true then by their `valid_from` and `valid_to`, both inclusive and open if
    /// absent; `None` for any time.
    pub valid_at: Option<EpochMs>,
}

impl AsOf {
    /// Returns `true` if a grain counts at these times.
    pub(crate) fn admits(&self, grain: &GrainRef<'_>, state: &GrainState, now: EpochMs) -> bool {
        let current = Visibility::default();
        let known = match self.known_at {
            None => current.admits(state, now),
            Some(at) => is_known_at(grain, state, current, at),
        };
        known && self.valid_at.is_none_or(|at| is_valid_at(grain, at))
    }
}

impl Session {
    /// The newest current grain of a subject's relation, by the grain's time; of several of one instant the
    /// one with the least address. Counts as an access.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// for drink in ["tea", "coffee"] {
    ///     std::thread::sleep(std::time::Duration::from_millis(2));
    ///     session.put(BeliefBuilder::new(session.now(), "alice", "drank", drink, 0.9).build()?)?;
    /// }
    /// let last = session.latest("alice", "drank")?.ok_or("she drank nothing")?;
    /// assert_eq!(last.grain()?.text("object"), Some("coffee"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` if more than [`MAX_GRAPH_STEPS`](crate::limits::MAX_GRAPH_STEPS) grains had to be read;
    /// `ERR_TIMEOUT`; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn latest(&self, subject: &str, relation: &str) -> Result<Option<StoredGrain>> {
        self.latest_as_of(subject, relation, None, &AsOf::default())
    }

    /// Like [`Session::latest`], at other times. `namespace` limits it to one partition.
    ///
    /// ```
    /// use grainstore::{AsOf, format::parse_datetime};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let home = BeliefBuilder::new(session.now(), "alice", "lives_in", "Berlin", 0.9);
    /// let home = home.valid_from(parse_datetime("2020-01-01T00:00:00Z")?);
    /// session.put(home.valid_to(parse_datetime("2024-12-31T00:00:00Z")?).build()?)?;
    /// let then = AsOf { valid_at: Some(parse_datetime("2022-06-01T00:00:00Z")?), known_at: None };
    /// assert!(session.latest_as_of("alice", "lives_in", None, &then)?.is_some());
    /// let now = AsOf { valid_at: Some(session.now()), known_at: None };
    /// assert!(session.latest_as_of("alice", "lives_in", None, &now)?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::latest`]; `ERR_ACCESS` for a namespace outside the session's.
    pub fn latest_as_of(
        &self,
        subject: &str,
        relation: &str,
        namespace: Option<&str>,
        as_of: &AsOf,
    ) -> Result<Option<StoredGrain>> {
        let (subject, relation) = (normalised(subject)?, normalised(relation)?);
        let options = GraphOptions::default();
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, &options);
            let scope = self.scope_within(namespace)?;
            let shape =
                IndexLookup::subject_relation(subject.as_str().into(), relation.as_str().into());
            let now = reader.now();
            let mut best: Option<LatestCandidate> = None;
            for posting in reader.postings_in(&scope, &[shape])? {
                let posting = posting?;
                if best.as_ref().is_some_and(|best| best.posting.time != posting.time) {
                    break;
                }
                let read = |seen: &VisibleGrain<'_>| {
                    let says = is_in_partition(seen.grain.partition(), namespace)
                        && seen.grain.text("subject") == Some(&subject)
                        && seen.grain.text("relation") == Some(&relation);
                    let counts = says && as_of.admits(seen.grain, &seen.state, now);
                    Ok(counts.then(|| LatestCandidate::of(seen, posting)))
                };
                let rival = match as_of.known_at {
                    // A grain that is not current now need not be read.
                    None => reader.read_current(posting.sequence, read)?,
                    Some(_) => reader.read_any(posting.sequence, read)?,
                };
                best = best.into_iter().chain(rival).max_by_key(|one| one.sort_key);
            }
            let Some(LatestCandidate { posting, sort_key: (_, Reverse(address)) }) = best else {
                return Ok(None);
            };
            self.store().inner().touch(posting.sequence);
            self.audit_read([address])?;
            self.lookup(&view, &address)
        })
    }
}

/// The best grain so far: the latest, then the one of the least address.
struct LatestCandidate {
    posting: Posting,
    sort_key: (EpochMs, Reverse<ContentAddress>),
}

impl LatestCandidate {
    fn of(seen: &VisibleGrain<'_>, posting: Posting) -> Self {
        Self { posting, sort_key: (seen.grain.time(), Reverse(seen.address())) }
    }
}
