//! Which grains of a file may come in: the rules on what is stored, asked of each that is new here. A
//! consent may lie in the files themselves, behind the grains that rest on it.

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::container::ReadAt;
use grainstore_format::{ContentAddress, Grain, GrainType};

use super::check::Files;
use super::of_file;
use crate::error::Result;
use crate::preset::{Basis, Deed, Facts, Named, Refusal, RuleSet, basis_of};
use crate::session::Session;
use crate::view::{View, with_fields};

/// The rules on one import.
pub(super) struct Entering<'v> {
    session: &'v Session,
    view: &'v View,
    rules: Arc<RuleSet>,
    /// Consents that the files bring.
    consents: HashMap<ContentAddress, Named>,
}

impl<'v> Entering<'v> {
    /// # Errors
    /// As [`Files::check`].
    pub(super) fn new<S: ReadAt>(
        session: &'v Session,
        view: &'v View,
        files: &Files<S>,
    ) -> Result<Self> {
        let rules = session.store().rules();
        let mut consents = HashMap::new();
        if rules.asks_basis(Deed::Put) || rules.asks_basis(Deed::Supersede) {
            for (name, container) in &files.files {
                let entries = container.entries().map_err(|error| of_file(name, error))?;
                for entry in entries {
                    let entry = entry.map_err(|error| of_file(name, error))?;
                    if entry.grain().grain_type() == GrainType::Consent {
                        consents.insert(entry.address(), Named::of_grain(entry.grain(), None));
                    }
                }
            }
            files.each_manifest_entry(|address, carried| {
                if let Some(consent) = consents.get_mut(&address) {
                    consent.succeeded_by(carried.state.superseded_by);
                }
                Ok(())
            })?;
        }
        Ok(Self { session, view, rules, consents })
    }

    /// What refuses a grain; nothing where it may come in, or is here already.
    pub(super) fn refusal(
        &self,
        address: &ContentAddress,
        grain: &Grain,
        supersedes: bool,
    ) -> Result<Option<Refusal>> {
        let deed = if supersedes { Deed::Supersede } else { Deed::Put };
        // A withdrawal of consent waits for no rule.
        let withdraws =
            grain.grain_type() == GrainType::Consent && grain.flag("is_withdrawal") == Some(true);
        if withdraws || !self.rules.rules_on(deed) || self.view.sequence_of(address)?.is_some() {
            return Ok(None);
        }
        let basis = match self.rules.asks_basis(deed) {
            true => self.basis(grain)?,
            false => Basis::Missing,
        };
        let facts = Facts {
            grain,
            basis: &basis,
            purposes: &[],
            held: false,
            verified: false,
            encrypted: self.session.store().inner().regime().encrypts(grain),
        };
        Ok(self.rules.decide(deed, &facts).refusal)
    }

    fn basis(&self, grain: &Grain) -> Result<Basis> {
        basis_of(grain.text("processing_basis"), &mut |address| {
            let Some(row) = self.view.row(address)? else {
                return Ok(self.consents.get(address).cloned());
            };
            let successor = row.state.superseded_by;
            with_fields(&row.blob, |grain| Ok(Some(Named::of(grain, successor))))
        })
    }
}
