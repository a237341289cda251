//! Derivation (OMS 14): the grains a grain was derived from, and those derived from it.

use std::collections::{BTreeSet, HashSet};

use grainstore_format::{ContentAddress, GrainState};
use grainstore_index::{Field, IndexLookup};
use serde::Serialize;

use super::reader::{GraphReader, addresses_in};
use super::{BoundedList, BoundedListBuilder, GraphOptions};
use crate::base::error::{Result, catch_storage_panic};
use crate::handle::session::Session;

/// Most relatives of one answer of [`Session::ancestry`]; `ERR_LIMIT` for a limit beyond.
pub const MAX_RELATIVES: usize = 10_000;
/// Bytes a relative is counted as: its address and state.
const RELATIVE_BYTES: usize = size_of::<Relative>();

/// A grain in the derivation of another: [`Session::ancestry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Relative {
    /// The grain.
    pub address: ContentAddress,
    /// Steps of derivation to it, by the shortest path.
    pub hops: usize,
    /// Its index-layer state.
    pub state: GrainState,
}

impl Session {
    /// The grains this one was derived from, directly and through others, level by level, each level by
    /// ascending address. Superseded ancestors are always walked through; the options decide whether they are
    /// listed. An ancestor outside the session ends its line.
    ///
    /// ```
    /// use grainstore::graph::GraphOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let said = EventBuilder::new(session.now(), "alice: tea, please").build()?;
    /// let said = session.put(said)?.address();
    /// let tea = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9);
    /// let tea = session.put(tea.derived_from(vec![said.to_string().into()]).build()?)?.address();
    /// let ancestors = session.ancestry(&tea, 3, 10, &GraphOptions::default())?;
    /// assert_eq!((ancestors.items[0].address, ancestors.items[0].hops), (said, 1));
    /// assert_eq!(session.children(&said, 10, &GraphOptions::default())?.items[0].address, tea);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` for an address this session cannot see; `ERR_LIMIT` for a limit beyond
    /// [`MAX_RELATIVES`], and if more than [`MAX_GRAPH_STEPS`](super::MAX_GRAPH_STEPS) grains and links had
    /// to be read; `ERR_TIMEOUT`; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn ancestry(
        &self,
        address: &ContentAddress,
        max_hops: usize,
        limit: usize,
        options: &GraphOptions,
    ) -> Result<BoundedList<Relative>> {
        let mut found = BoundedListBuilder::new(limit, MAX_RELATIVES)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, options);
            let parents = |seen: &super::reader::VisibleGrain<'_>| {
                let parents: BTreeSet<_> = addresses_in(seen.grain, PARENTS).collect();
                Ok(Some((seen.state, parents)))
            };
            let mut met = HashSet::from([*address]);
            let (_, mut level) = reader.read_start(address, parents)?;
            for hops in 1..=max_hops {
                let mut above = BTreeSet::new();
                for address in level {
                    if !met.insert(address) {
                        continue;
                    }
                    let Some((state, parents)) = reader.read_by_address(&address, parents)? else {
                        continue;
                    };
                    for parent in parents {
                        reader.tick()?;
                        above.insert(parent);
                    }
                    if !reader.admits_state(&state) {
                        continue;
                    }
                    let relative = Relative { address, hops, state };
                    if let Some(full) = found.push(relative, RELATIVE_BYTES) {
                        return Ok(full);
                    }
                }
                if above.is_empty() {
                    break;
                }
                level = above;
            }
            Ok(found.end())
        })
    }

    /// The grains that name this one in their `derived_from`, newest first.
    ///
    /// # Errors
    /// As [`Session::ancestry`].
    pub fn children(
        &self,
        address: &ContentAddress,
        limit: usize,
        options: &GraphOptions,
    ) -> Result<BoundedList<Relative>> {
        let mut found = BoundedListBuilder::new(limit, MAX_RELATIVES)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, options);
            reader.read_start(address, |_| Ok(Some(())))?;
            let digits = address.to_string();
            let shape = IndexLookup::Value(Field::Derived, digits.as_str().into());
            for posting in reader.postings(&[shape])? {
                let child = reader.read_current(posting?.sequence, |seen| {
                    let derives =
                        addresses_in(seen.grain, PARENTS).any(|parent| parent == *address);
                    Ok(derives.then(|| (seen.address(), seen.state)))
                })?;
                let Some((address, state)) = child else { continue };
                let relative = Relative { address, hops: 1, state };
                if let Some(full) = found.push(relative, RELATIVE_BYTES) {
                    return Ok(full);
                }
            }
            Ok(found.end())
        })
    }
}

const PARENTS: &str = "derived_from";
