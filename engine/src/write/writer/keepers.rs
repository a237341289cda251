//! Under whose key a group's rows are written: that of the person a grain is about, or the store's.
//! Writes nothing.

use std::collections::HashMap;

use grainstore_format::ContentAddress;
use grainstore_index::Sequence;

use crate::base::error::Result;
use crate::disk::vault::{Keeper, Vault};
use crate::rules::preset::Regime;
use crate::state::audit::AuditRecord;
use crate::state::view::{View, with_fields};
use crate::write::plan::{Plan, Staged};

/// The keepers of staged grains, and of those that are stored.
pub(crate) struct Keepers<'k> {
    pub(crate) vault: &'k Vault,
    view: &'k View,
    staged: HashMap<Sequence, Keeper>,
    places: HashMap<ContentAddress, Sequence>,
}

impl<'k> Keepers<'k> {
    /// # Errors
    /// As [`Vault::keeper_of`].
    pub(crate) fn of(
        view: &'k View,
        plan: &Plan<'_>,
        (vault, regime): (&'k Vault, &Regime),
    ) -> Result<Self> {
        let mut keepers = Self { vault, view, staged: HashMap::new(), places: HashMap::new() };
        if vault.keyring().is_none() {
            return Ok(keepers);
        }
        for Staged { sequence, prepared } in &plan.grains {
            let blob = &prepared.blob;
            let keeper = with_fields(blob.bytes(), |grain| vault.keeper_of(grain, regime))?;
            keepers.staged.insert(*sequence, keeper);
            keepers.places.insert(blob.address(), *sequence);
        }
        Ok(keepers)
    }

    /// Under whose key rows of the grain at this place are.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, `ERR_ERASED`.
    pub(crate) fn at(&self, sequence: Sequence) -> Result<Keeper> {
        if self.vault.keyring().is_none() {
            return Ok(Keeper::default());
        }
        match self.staged.get(&sequence) {
            Some(keeper) => Ok(keeper.clone()),
            None => self.view.keeper_at(sequence),
        }
    }

    /// Under whose key the reason of an audit record is: that of the first person whose grain it is about,
    /// or the store's.
    ///
    /// # Errors
    /// As [`Keepers::at`].
    pub(crate) fn of_record(&self, record: &AuditRecord) -> Result<Keeper> {
        if self.vault.keyring().is_none() {
            return Ok(Keeper::default());
        }
        for subject in &record.subjects {
            let place = match self.places.get(subject) {
                Some(place) => Some(*place),
                None => self.view.sequence_of(subject)?,
            };
            let keeper = place.map_or(Ok(Keeper::default()), |place| self.at(place))?;
            if keeper.is_a_persons() {
                return Ok(keeper);
            }
        }
        Ok(self.vault.keeper())
    }
}
