//! Versions: the supersession chain of a grain, and all versions of a subject's relation.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::{Order, Scope, Sequence, Shape, TimeRange};

use crate::error::{Error, ErrorKind, Result, guarded};
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
        let view = self.view()?;
        guarded(|| self.versions_in(&view, address, MAX_VERSIONS))
    }

    /// The newest `limit` versions as one view has them: from the head of the chain back, level by
    /// level, since several grains may be superseded by one.
    pub(crate) fn versions_in(
        &self,
        view: &View,
        address: &ContentAddress,
        limit: usize,
    ) -> Result<Vec<Stored>> {
        let Some(mut head) = self.lookup(view, address)? else {
            let message = format!("no grain {address} in this session's reach");
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        while let Some(by) = head.state.superseded_by {
            let Some(successor) = self.lookup(view, &by)? else { break };
            head = successor;
        }
        let mut bytes = 0_usize;
        let mut versions = Vec::new();
        let mut level = vec![head];
        while !level.is_empty() && versions.len() < limit {
            let mut before = Vec::new();
            for version in level {
                for address in predecessors(view, &version)? {
                    before.extend(self.lookup(view, &address)?);
                }
                bytes = bytes.saturating_add(version.blob.len());
                check_size(versions.len(), bytes)?;
                versions.push(version);
            }
            level = before;
        }
        if limit >= MAX_VERSIONS && !level.is_empty() {
            return Err(too_many());
        }
        versions.truncate(limit);
        Ok(versions)
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
            check_size(found.len(), 0)?;
        }
        newest_first(&view, found)
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
    let parents: BTreeSet<ContentAddress> = with_fields(&version.blob, |grain| {
        let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
        let parents = parents.into_iter().flat_map(|parents| parents.iter());
        let texts = parents.filter_map(|parent| parent.as_str());
        // A withdrawal of consent names its grant here, and need not derive from it.
        let prior = grain.text("prior_consent");
        Ok(texts.chain(prior).filter_map(|text| text.parse().ok()).collect::<BTreeSet<_>>())
    })?;
    let mut found = Vec::new();
    for parent in parents {
        let Some(sequence) = view.sequence_of(&parent)? else { continue };
        if view.state_at(sequence)?.superseded_by == Some(version.address) {
            found.push(parent);
        }
    }
    Ok(found)
}

/// Whether the store held a grain for current at this system time (OMS 15.2).
fn known_at(view: &View, sequence: Sequence, at: EpochMs) -> Result<bool> {
    let ended = view.state_at(sequence)?.system_valid_to;
    let from = view.with_blob(sequence, |blob| {
        with_fields(blob, |grain| Ok(grain.int("system_valid_from").or(grain.int("created_at"))))
    })?;
    Ok(from.is_some_and(|from| from <= at.get()) && ended.is_none_or(|to| at < to))
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
    Error::new(ErrorKind::Limit, message)
}

/// The grains at these places, the last written first.
fn newest_first(view: &View, mut found: Vec<Sequence>) -> Result<Vec<Stored>> {
    found.sort_unstable_by(|a, b| b.cmp(a));
    let mut bytes = 0_usize;
    let mut versions = Vec::new();
    for sequence in found {
        let state = view.state_at(sequence)?;
        let blob = view.with_blob(sequence, |blob| Ok(blob.to_vec()))?;
        bytes = bytes.saturating_add(blob.len());
        check_size(versions.len(), bytes)?;
        versions.push(Stored { address: view.address_of(sequence, &blob)?, blob, state });
    }
    Ok(versions)
}
