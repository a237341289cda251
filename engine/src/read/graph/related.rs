//! Cross-links (OMS 14.2): the grains a grain names in `related_to`, and those that name it.

use std::collections::HashSet;

use grainstore_cal::Direction;
use grainstore_format::{ContentAddress, GrainRef};
use grainstore_index::{Field, IndexLookup};
use serde::Serialize;

use super::lineage::MAX_RELATIVES;
use super::reader::GraphReader;
use super::{BoundedList, BoundedListBuilder, GraphOptions};
use crate::base::error::{Result, catch_storage_panic};
use crate::handle::session::Session;
use crate::state::consent::parse_basis_address;

/// A cross-link between two grains: [`Session::related`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CrossLink {
    /// The grain at the other end.
    pub address: ContentAddress,
    /// The `relation_type`, such as `contradicts`.
    pub kind: String,
    /// [`Direction::Out`] if the grain asked about has the link, [`Direction::In`] if the other one does.
    pub direction: Direction,
    /// True if the grain with the link is a reasoning that waits for the review it requires (OMS 6.1).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_human_review: bool,
}

impl Session {
    /// Cross-links of a grain in both directions: its own in their order, then those that name it, newest
    /// first. `kind` limits them to one `relation_type`.
    ///
    /// ```
    /// use grainstore::graph::GraphOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let tea = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(tea)?.address();
    /// let link = [("hash", tea.to_string()), ("relation_type", "supports".to_owned())];
    /// let link = link.map(|(name, value)| (name.to_owned(), value.into())).into();
    /// let pot = BeliefBuilder::new(session.now(), "alice", "bought", "a teapot", 0.9);
    /// let pot = pot.related_to(vec![link]);
    /// let pot = session.put(pot.build()?)?.address();
    /// let links = session.related(&tea, Some("supports"), 10, &GraphOptions::default())?;
    /// assert_eq!(links.items[0].address, pot);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::ancestry`].
    pub fn related(
        &self,
        address: &ContentAddress,
        kind: Option<&str>,
        limit: usize,
        options: &GraphOptions,
    ) -> Result<BoundedList<CrossLink>> {
        let mut found = BoundedListBuilder::new(limit, MAX_RELATIVES)?;
        let wanted = |link: &(ContentAddress, String)| kind.is_none_or(|kind| kind == link.1);
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, options);
            let own = reader.read_start(address, |seen| {
                Ok(Some((cross_links(seen.grain).collect::<Vec<_>>(), seen.awaits_review())))
            })?;
            let (own, requires_human_review) = own;
            let mut met = HashSet::new();
            for link in own.into_iter().filter(wanted) {
                if !met.insert(link.clone()) {
                    continue;
                }
                let (other, kind) = link;
                let state = reader.read_by_address(&other, |seen| Ok(Some(seen.state)))?;
                if !state.is_some_and(|state| reader.admits_state(&state)) {
                    continue;
                }
                let direction = Direction::Out;
                let link = CrossLink { address: other, kind, direction, requires_human_review };
                if let Some(full) = found.push(link, LINK_BYTES) {
                    return Ok(full);
                }
            }
            let digits = address.to_string();
            let shape = IndexLookup::Value(Field::Related, digits.as_str().into());
            for posting in reader.postings(&[shape])? {
                let links = reader.read_current(posting?.sequence, |seen| {
                    let to_it =
                        cross_links(seen.grain).filter(|link| link.0 == *address && wanted(link));
                    let kinds: Vec<String> = distinct(to_it.map(|(_, kind)| kind));
                    Ok((!kinds.is_empty()).then(|| (seen.address(), kinds, seen.awaits_review())))
                })?;
                let Some((address, kinds, requires_human_review)) = links else { continue };
                for kind in kinds {
                    let direction = Direction::In;
                    let link = CrossLink { address, kind, direction, requires_human_review };
                    if let Some(full) = found.push(link, LINK_BYTES) {
                        return Ok(full);
                    }
                }
            }
            Ok(found.end())
        })
    }
}

/// Bytes a link is counted as; the kinds are a closed list of short words.
const LINK_BYTES: usize = size_of::<CrossLink>();

/// The links of a grain that lead to grains, with their `relation_type`.
pub(crate) fn cross_links<'g>(
    grain: &GrainRef<'g>,
) -> impl Iterator<Item = (ContentAddress, String)> + use<'g> {
    let list = grain.get("related_to").and_then(|list| list.as_array());
    list.into_iter().flat_map(|list| list.iter()).filter_map(|link| {
        let link = link.as_map()?;
        let address = parse_basis_address(link.get("hash")?.as_str()?)?;
        Some((address, link.get("relation_type")?.as_str()?.to_owned()))
    })
}

/// The texts without duplicates, in the order of their first occurrence.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}
