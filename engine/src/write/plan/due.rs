//! Which roots a stored grain should have and has not: what verification asks of a plan, so that it
//! follows the very rules the rows were written by. Stages nothing.

use std::collections::BTreeSet;

use grainstore_index::Sequence;

use crate::base::error::Result;
use crate::rules::policy::Terms;

use super::Plan;
use super::protection::parents_in;
use super::roots::{RELEASED, TOO_MANY_ROOTS};

impl Plan<'_> {
    /// The roots that the grain at this place should be noted with, by its own policy and by the rows
    /// of its parents, and is not.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the rows it depends on are damaged; `ERR_IO`.
    pub(crate) fn missing_roots(&self, at: Sequence) -> Result<Vec<Sequence>> {
        if self.view.is_erased(at)? {
            // Its row goes with it, and its own policy protects nothing any more.
            return Ok(Vec::new());
        }
        let noted = self.roots(at)?;
        let (address, parents, protects) = self.read(at, |address, grain| {
            Ok((address, parents_in(grain), Terms::of(grain).protects()))
        })?;
        let mut due = protects.then_some(at).into_iter().collect::<BTreeSet<_>>();
        if !noted.contains(&TOO_MANY_ROOTS) {
            due.extend(self.inherited(&address, &noted, parents)?);
        }
        due.retain(|root| !noted.contains(root));
        Ok(due.into_iter().collect())
    }

    /// Whether the row of a grain says that its writing was authorised under the policies before it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a damaged row; `ERR_IO`.
    pub(crate) fn is_released(&self, at: Sequence) -> Result<bool> {
        Ok(self.roots(at)?.contains(&RELEASED))
    }
}
