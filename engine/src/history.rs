//! Versions: the supersession chain of a grain, and all versions of a subject's relation.

use std::collections::{HashSet, VecDeque};

use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::{Order, Scope, Sequence, Shape, TimeRange};

use crate::error::{Error, ErrorKind, Result};
use crate::session::{Session, Stored};
use crate::view::{View, with_fields};

/// Versions one history holds at most.
pub const MAX_VERSIONS: usize = 10_000;

impl Session {
    /// Every version of a grain: what it superseded and what superseded it, newest first.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` for an address this session cannot see; `ERR_LIMIT` beyond
    /// [`MAX_VERSIONS`]; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn history(&self, address: &ContentAddress) -> Result<Vec<Stored>> {
        let view = self.view()?;
        let mut queue = VecDeque::from([*address]);
        let mut seen = HashSet::from([*address]);
        let mut versions = Vec::new();
        while let Some(address) = queue.pop_front() {
            let Some((sequence, version)) = self.version(&view, &address)? else {
                continue;
            };
            let mut linked = self.predecessors(&view, &version)?;
            linked.extend(version.state.superseded_by);
            queue.extend(linked.into_iter().filter(|address| seen.insert(*address)));
            versions.push((sequence, version));
            check_count(versions.len())?;
        }
        if versions.is_empty() {
            let message = format!("no grain {address} in this session's reach");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(newest_first(versions))
    }

    /// Every grain that says something of a subject's relation, superseded ones included, newest
    /// first. `namespace` narrows to one partition; `as_of` to what was current at that system
    /// time (OMS 15.2).
    ///
    /// # Errors
    /// `ERR_ACCESS` for a namespace outside the session's; `ERR_LIMIT` beyond [`MAX_VERSIONS`];
    /// `ERR_INTEGRITY`; `ERR_IO`.
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
        let mut versions = Vec::new();
        for posting in view.index().scan(&scope, &shape, TimeRange::default(), Order::Newest)? {
            let sequence = posting?.sequence;
            let state = view.record_at(sequence)?.state;
            let version = view.with_blob(sequence, |blob| {
                let known = match as_of {
                    None => true,
                    Some(at) => with_fields(blob, |grain| {
                        let from = grain.int("system_valid_from").or(grain.int("created_at"));
                        Ok(from.is_some_and(|from| from <= at.get())
                            && state.system_valid_to.is_none_or(|to| at < to))
                    })?,
                };
                let address = ContentAddress::of(blob);
                Ok(known.then(|| Stored { address, blob: blob.to_vec(), state }))
            })?;
            versions.extend(version.map(|version| (sequence, version)));
            check_count(versions.len())?;
        }
        Ok(newest_first(versions))
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

    fn version(&self, view: &View, address: &ContentAddress) -> Result<Option<(Sequence, Stored)>> {
        let Some(stored) = self.lookup(view, address)? else {
            return Ok(None);
        };
        let sequence = view.sequence_of(address)?;
        Ok(sequence.map(|sequence| (sequence, stored)))
    }

    /// The grains this one superseded: those of its parents that say so.
    fn predecessors(&self, view: &View, version: &Stored) -> Result<Vec<ContentAddress>> {
        let parents: Vec<ContentAddress> = with_fields(&version.blob, |grain| {
            let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
            let texts = parents.into_iter().flat_map(|parents| parents.iter());
            Ok(texts.filter_map(|text| text.as_str()?.parse().ok()).collect())
        })?;
        let mut found = Vec::new();
        for parent in parents {
            let Some(sequence) = view.sequence_of(&parent)? else {
                continue;
            };
            if view.record_at(sequence)?.state.superseded_by == Some(version.address) {
                found.push(parent);
            }
        }
        Ok(found)
    }
}

fn check_count(versions: usize) -> Result<()> {
    if versions <= MAX_VERSIONS {
        return Ok(());
    }
    let message = format!("more than {MAX_VERSIONS} versions");
    Err(Error::new(ErrorKind::Limit, message))
}

/// The log's order is the order of versions: a successor is always written after what it replaces.
fn newest_first(mut versions: Vec<(Sequence, Stored)>) -> Vec<Stored> {
    versions.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
    versions.into_iter().map(|(_, version)| version).collect()
}
