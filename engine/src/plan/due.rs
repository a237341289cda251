//! Which roots a stored grain should have and has not: what verification asks of a plan, so that it
//! follows the very rules the rows were written by. Stages nothing.

use std::collections::BTreeSet;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use crate::error::Result;
use crate::policy::Tie;
use crate::view::with_fields;

use super::Plan;
use super::protection::{MAX_ANCESTORS, RELEASED, TOO_MANY_ROOTS, above, own_terms, parents_in};

impl Plan<'_> {
    /// The roots that the grain at this place should be noted with, by its own policy and by the rows
    /// of the parents that were stored before it, and is not.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the rows it depends on are damaged; `ERR_IO`.
    pub(crate) fn missing_roots(&self, at: Sequence) -> Result<Vec<Sequence>> {
        let (address, blob) = self.at(at)?;
        let noted = self.roots(at)?;
        if noted.contains(&TOO_MANY_ROOTS) {
            return Ok(Vec::new());
        }
        let (protects, _) = own_terms(&blob)?;
        let mut due = BTreeSet::from_iter(protects.then_some(at));
        for parent in self.ties(above(Tie::Version, &noted), &address, parents_of(&blob)?)? {
            if parent.sequence < at && !self.inherit(&mut due, parent.sequence, parent.tie)? {
                due = BTreeSet::from([TOO_MANY_ROOTS]);
                break;
            }
        }
        // What arrived late is noted with so many descendants and no more.
        due.retain(|root| (*root <= at || *root == TOO_MANY_ROOTS) && !noted.contains(root));
        let only_own = due.iter().all(|root| *root == at);
        if !only_own && self.has_late_ancestor(at)? {
            due.retain(|root| *root == at);
        }
        Ok(due.into_iter().collect())
    }

    /// Whether the row of a grain says that its writing was authorised under the policies before it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a damaged row; `ERR_IO`.
    pub(crate) fn is_released(&self, at: Sequence) -> Result<bool> {
        Ok(self.roots(at)?.contains(&RELEASED))
    }

    /// Whether something it derives from was stored after the grain at this place, or there is too
    /// much of it to say.
    fn has_late_ancestor(&self, at: Sequence) -> Result<bool> {
        let mut open = vec![at];
        let mut seen = BTreeSet::from([at]);
        while let Some(next) = open.pop() {
            for parent in parents_of(&self.at(next)?.1)? {
                let Some(parent) = self.locate(&parent)? else { continue };
                if parent > at || seen.len() > MAX_ANCESTORS {
                    return Ok(true);
                }
                if seen.insert(parent) {
                    open.push(parent);
                }
            }
        }
        Ok(false)
    }
}

fn parents_of(blob: &[u8]) -> Result<BTreeSet<ContentAddress>> {
    with_fields(blob, |grain| Ok(parents_in(grain)))
}
