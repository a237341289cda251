//! The roots that a stored grain should have but has not, for verification. Implemented on the plan, so that
//! it follows the same rules by which the rows were written. Stages nothing.

use std::collections::BTreeSet;

use grainstore_index::Sequence;

use crate::base::error::Result;
use crate::rules::policy::PolicyTerms;

use super::WritePlan;
use super::protection::parent_addresses;
use super::roots::{RELEASED, TOO_MANY_ROOTS};

impl WritePlan<'_> {
    /// Returns the roots that the grain at a sequence should have, by its own policy and the rows of its
    /// parents, but has not.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the rows it depends on are damaged; `ERR_IO`.
    pub(crate) fn missing_roots(&self, at: Sequence) -> Result<Vec<Sequence>> {
        if self.view.is_erased(at)? {
            // An erased grain loses its row, and its own policy protects nothing any more.
            return Ok(Vec::new());
        }
        let noted = self.roots(at)?;
        let (address, parents, protects) = self.with_grain(at, |address, grain| {
            Ok((address, parent_addresses(grain), PolicyTerms::of(grain).protects()))
        })?;
        let mut due = protects.then_some(at).into_iter().collect::<BTreeSet<_>>();
        if !noted.contains(&TOO_MANY_ROOTS) {
            due.extend(self.inherited_roots(&address, &noted, parents)?);
        }
        due.retain(|root| !noted.contains(root));
        Ok(due.into_iter().collect())
    }

    /// Returns `true` if the row of a grain says that its writing was authorised under the policies of the
    /// versions before it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a damaged row; `ERR_IO`.
    pub(crate) fn is_released(&self, at: Sequence) -> Result<bool> {
        Ok(self.roots(at)?.contains(&RELEASED))
    }
}
