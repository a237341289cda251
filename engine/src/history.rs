//! Versions: the supersession chain of a grain, and all versions of a subject's relation.

use std::collections::{HashSet, VecDeque};

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::{Order, Scope, Sequence, Shape, TimeRange};

use crate::error::{Error, ErrorKind, Result};
use crate::session::{Session, Stored};
use crate::view::{View, with_fields};

/// Versions one history holds at most.
pub const MAX_VERSIONS: usize = 10_000;
/// Bytes of blobs one history holds at most.
pub const MAX_HISTORY_BYTES: usize = 64 << 20;

impl Session {
    /// Every version of a grain: what it superseded and what superseded it, newest first.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` for an address this session cannot see; `ERR_LIMIT` beyond [`MAX_VERSIONS`]
    /// or [`MAX_HISTORY_BYTES`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn history(&self, address: &ContentAddress) -> Result<Vec<Stored>> {
        self.newest_versions(address, MAX_VERSIONS)
    }

    /// The newest `limit` of them.
    pub(crate) fn newest_versions(
        &self,
        address: &ContentAddress,
        limit: usize,
    ) -> Result<Vec<Stored>> {
        let view = self.view()?;
        let mut queue = VecDeque::from([*address]);
        let mut seen = HashSet::from([*address]);
        let mut found = Vec::new();
        while let Some(address) = queue.pop_front() {
            let Some(sequence) = view.sequence_of(&address)? else { continue };
            let Some(version) = self.lookup(&view, &address)? else { continue };
            let mut linked = predecessors(&view, &version)?;
            linked.extend(version.state.superseded_by);
            queue.extend(linked.into_iter().filter(|address| seen.insert(*address)));
            found.push(sequence);
            check_count(found.len())?;
        }
        if found.is_empty() {
            let message = format!("no grain {address} in this session's reach");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        newest_first(&view, found, limit)
    }

    /// Every grain that says something of a subject's relation, superseded ones included, newest
    /// first. `namespace` narrows to one partition; `as_of` to what was current at that system
    /// time (OMS 15.2).
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
    ) -> Result<Vec<Stored>> {
        let view = self.view()?;
        let scope = self.narrowed(namespace)?;
        let shape = Shape::SubjectRelation(subject.into(), relation.into());
        let mut found = Vec::new();
        for posting in view.index().scan(&scope, &shape, TimeRange::default(), Order::Newest)? {
            let sequence = posting?.sequence;
            let known = match as_of {
                None => true,
                Some(at) => known_at(&view, sequence, at)?,
            };
            found.extend(known.then_some(sequence));
            check_count(found.len())?;
        }
        newest_first(&view, found, MAX_VERSIONS)
    }

    /// The session's scope, or one partition of it.
    pub(crate) fn narrowed<'a>(&'a self, namespace: Option<&'a str>) -> Result<Scope<'a>> {
        let own = self.options().namespace.as_deref();
        match namespace {
            None => Ok(own.map_or(Scope::All, Scope::Subtree)),
            Some(namespace) if crate::view::in_scope(namespace, own) => {
                Ok(Scope::Exact(namespace.into()))
            }
            Some(namespace) => {
                let message = format!("namespace {namespace:?} is outside this session's");
                Err(Error::new(ErrorKind::Access, message))
            }
        }
    }
}

/// The grains a version superseded: those of its parents that say so.
fn predecessors(view: &View, version: &Stored) -> Result<Vec<ContentAddress>> {
    let parents: Vec<ContentAddress> = with_fields(&version.blob, |grain| {
        let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
        let texts = parents.into_iter().flat_map(|parents| parents.iter());
        Ok(texts.filter_map(|text| text.as_str()?.parse().ok()).collect())
    })?;
    let mut found = Vec::new();
    for parent in parents {
        let Some(sequence) = view.sequence_of(&parent)? else { continue };
        if view.record_at(sequence)?.state.superseded_by == Some(version.address) {
            found.push(parent);
        }
    }
    Ok(found)
}

/// Whether the store held a grain for current at this system time (OMS 15.2).
fn known_at(view: &View, sequence: Sequence, at: EpochMs) -> Result<bool> {
    let ended = view.record_at(sequence)?.state.system_valid_to;
    let from = view.with_blob(sequence, |blob| {
        with_fields(blob, |grain| Ok(grain.int("system_valid_from").or(grain.int("created_at"))))
    })?;
    Ok(from.is_some_and(|from| from <= at.get()) && ended.is_none_or(|to| at < to))
}

fn check_count(versions: usize) -> Result<()> {
    if versions <= MAX_VERSIONS {
        return Ok(());
    }
    let message = format!("more than {MAX_VERSIONS} versions");
    Err(Error::new(ErrorKind::Limit, message))
}

/// The newest `limit` of these places. The log's order is the order of versions: a successor is
/// always written after what it replaces.
fn newest_first(view: &View, mut found: Vec<Sequence>, limit: usize) -> Result<Vec<Stored>> {
    found.sort_unstable_by(|a, b| b.cmp(a));
    let mut bytes = 0_usize;
    let mut versions = Vec::new();
    for sequence in found.into_iter().take(limit) {
        let state = view.record_at(sequence)?.state;
        let blob = view.with_blob(sequence, |blob| Ok(blob.to_vec()))?;
        bytes = bytes.saturating_add(blob.len());
        if bytes > MAX_HISTORY_BYTES {
            let message = format!("a history of more than {MAX_HISTORY_BYTES} bytes");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        versions.push(Stored { address: view.address_of(sequence, &blob)?, blob, state });
    }
    Ok(versions)
}
