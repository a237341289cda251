//! The storage rules on import: decides for each new grain if it may be stored. A consent may be in the files
//! themselves, behind the grains that rest on it.

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::container::ReadAt;
use grainstore_format::{ContentAddress, Grain, GrainType};

use super::check::ImportFiles;
use super::input_error;
use crate::base::error::Result;
use crate::handle::session::Session;
use crate::rules::preset::{Action, ProcessingBasis, RuleFacts, RuleRefusal, RuleSet};
use crate::state::basis::resolve_basis;
use crate::state::consent::parse_basis_address;
use crate::state::view::View;

/// A consent in a file.
struct FileConsent {
    withdraws: bool,
    scope: Vec<String>,
    /// Its successor by the manifest.
    successor: Option<ContentAddress>,
}

impl FileConsent {
    fn of(consent: &Grain) -> Self {
        Self {
            withdraws: consent.flag("is_withdrawal") == Some(true),
            scope: consent.texts("scope").map(str::to_owned).collect(),
            successor: None,
        }
    }
}

/// The storage rules, applied to one import.
pub(super) struct ImportFilter<'v> {
    session: &'v Session,
    view: &'v View,
    rules: Arc<RuleSet>,
    /// Consents in the files.
    consents: HashMap<ContentAddress, FileConsent>,
}

impl<'v> ImportFilter<'v> {
    /// Collects the consents in the files, if a rule depends on consent.
    ///
    /// # Errors
    /// As [`ImportFiles::check`].
    pub(super) fn new<S: ReadAt>(
        session: &'v Session,
        view: &'v View,
        files: &ImportFiles<S>,
    ) -> Result<Self> {
        let rules = session.store().rules();
        let mut consents = HashMap::new();
        if rules.uses_basis(Action::Put) || rules.uses_basis(Action::Supersede) {
            for (name, container) in &files.files {
                let entries = container.entries().map_err(|error| input_error(name, error))?;
                for entry in entries {
                    let entry = entry.map_err(|error| input_error(name, error))?;
                    if entry.grain().grain_type() == GrainType::Consent {
                        consents.insert(entry.address(), FileConsent::of(entry.grain()));
                    }
                }
            }
            files.each_manifest_entry(|address, carried| {
                if let Some(consent) = consents.get_mut(&address) {
                    consent.successor = carried.state.superseded_by;
                }
                Ok(())
            })?;
        }
        Ok(Self { session, view, rules, consents })
    }

    /// Returns the refusal of a grain, `None` if it may be stored or is stored already.
    pub(super) fn refusal(
        &self,
        address: &ContentAddress,
        grain: &Grain,
        supersedes: bool,
    ) -> Result<Option<RuleRefusal>> {
        let deed = if supersedes { Action::Supersede } else { Action::Put };
        // No rule delays a withdrawal of consent.
        let withdraws =
            grain.grain_type() == GrainType::Consent && grain.flag("is_withdrawal") == Some(true);
        if withdraws || !self.rules.has_rules_on(deed) || self.view.sequence_of(address)?.is_some()
        {
            return Ok(None);
        }
        let basis = match self.rules.uses_basis(deed) {
            true => self.basis(grain)?,
            false => ProcessingBasis::Missing,
        };
        let facts = RuleFacts {
            grain,
            basis: &basis,
            purposes: &[],
            held: false,
            verified: false,
            encrypted: self.session.store().inner().active_rules().encrypts(grain),
        };
        Ok(self.rules.decide(deed, &facts).refusal)
    }

    /// Returns the basis of a grain, from the store, else from the consents in the files.
    fn basis(&self, grain: &Grain) -> Result<ProcessingBasis> {
        let basis = resolve_basis(self.view, grain.text("processing_basis"))?;
        let address = grain.text("processing_basis").and_then(parse_basis_address);
        let (ProcessingBasis::Unknown, Some(mut address)) = (&basis, address) else {
            return Ok(basis);
        };
        // Bounded by the number of consents: a file may state a cycle.
        for _ in 0..=self.consents.len() {
            match self.consents.get(&address) {
                None => return Ok(basis),
                Some(consent) if consent.withdraws => return Ok(ProcessingBasis::Withdrawn),
                Some(FileConsent { successor: Some(next), .. })
                    if self.consents.contains_key(next) =>
                {
                    address = *next;
                }
                Some(consent) => return Ok(ProcessingBasis::Consent(consent.scope.clone())),
            }
        }
        Ok(basis)
    }
}
