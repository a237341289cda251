//! What files say of the end of protected grains that are new here, and of what takes the place of consents that
//! are, where whoever imports is not the operator of the whole store: a claim like one about a grain that is here already (ruling 37 of the project's reading).
//! Decides nothing.
//!
//! Otherwise a file could bring a grain that is still to be put, ended beforehand, and nobody could revive it; or a
//! consent of strangers in the place of a withdrawal, and what rests on it would be shown again.

use std::collections::BTreeMap;

use grainstore_format::container::{ContainerEntry, ReadAt};
use grainstore_format::{ContentAddress, GrainState, GrainType, VerificationStatus};

use super::check::ImportFiles;
use super::{claims, input_error};
use crate::base::error::Result;
use crate::state::view::View;
use crate::write::plan::{own_protection, parents};

/// The claims, by the grains that they are about.
pub(super) type Arrivals = BTreeMap<ContentAddress, GrainState>;

/// All of them, as this view has it.
///
/// # Errors
/// `ERR_LIMIT`; those of a damaged file; `ERR_IO`.
pub(super) fn stated<S: ReadAt>(view: &View, files: &ImportFiles<S>) -> Result<Arrivals> {
    let mut ends = false;
    files.each_manifest_entry(|address, carried| {
        ends = ends || (takes_away(&carried.state) && view.sequence_of(&address)?.is_none());
        Ok(())
    })?;
    let mut found = Arrivals::new();
    if !ends {
        return Ok(found);
    }
    let protected = protected(view, files)?;
    files.each_manifest_entry(|address, carried| {
        // Of a consent only what takes its place is a claim: its other ends are taken from anybody, since privacy
        // fails closed.
        let is_claim = |kind: &ArrivalKind| match kind {
            ArrivalKind::Consent => carried.state.superseded_by.is_some(),
            ArrivalKind::Protected => true,
        };
        if takes_away(&carried.state) && protected.get(&address).is_some_and(is_claim) {
            claims::check_claim_limit(found.len())?;
            // Several files may speak of one grain: the first that does counts.
            found.entry(address).or_insert(carried.state);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The state with which such a grain comes in, before the claim is decided.
pub(super) fn without_end(stated: &GrainState) -> GrainState {
    GrainState {
        superseded_by: None,
        system_valid_to: None,
        contradicted: false,
        verification_status: match stated.verification_status {
            status if is_worse(status) => VerificationStatus::Unverified,
            status => status,
        },
        ..*stated
    }
}

/// Why the end of a grain that is new here is a claim.
#[derive(Debug, Clone, Copy)]
enum ArrivalKind {
    /// It is under a policy, its own or that of what it derives from.
    Protected,
    Consent,
}

/// The grains of files that are new here and consents or under a policy, their own or that of what they derive
/// from, stored or in the files.
fn protected<S: ReadAt>(
    view: &View,
    files: &ImportFiles<S>,
) -> Result<BTreeMap<ContentAddress, ArrivalKind>> {
    let mut found = BTreeMap::new();
    // A child may come before its parents: passes are made until one finds nothing more, or no child can.
    loop {
        let (before, mut waits) = (found.len(), false);
        for (name, container) in &files.files {
            for entry in container.entries().map_err(|error| input_error(name, error))? {
                let entry = entry.map_err(|error| input_error(name, error))?;
                let address = entry.address();
                if found.contains_key(&address) || view.sequence_of(&address)?.is_some() {
                    continue;
                }
                if let Some(kind) = arrival_kind(view, &entry, &found)? {
                    claims::check_claim_limit(found.len())?;
                    found.insert(address, kind);
                } else {
                    waits = waits || has_absent_parent(view, &entry)?;
                }
            }
        }
        if found.len() == before || !waits {
            return Ok(found);
        }
    }
}

/// Returns `true` if a grain derives from one that is not stored: it may come with the same files.
fn has_absent_parent(view: &View, entry: &ContainerEntry) -> Result<bool> {
    for parent in parents(entry.grain()) {
        if view.sequence_of(&parent)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn arrival_kind(
    view: &View,
    entry: &ContainerEntry,
    found: &BTreeMap<ContentAddress, ArrivalKind>,
) -> Result<Option<ArrivalKind>> {
    if entry.grain().grain_type() == GrainType::Consent {
        return Ok(Some(ArrivalKind::Consent));
    }
    let (protects, holds) = own_protection(entry.blob())?;
    if protects || holds {
        return Ok(Some(ArrivalKind::Protected));
    }
    for parent in parents(entry.grain()) {
        if let Some(ArrivalKind::Protected) = found.get(&parent) {
            return Ok(Some(ArrivalKind::Protected));
        }
        if let Some(sequence) = view.sequence_of(&parent)?
            && !view.roots_at(sequence)?.is_empty()
        {
            return Ok(Some(ArrivalKind::Protected));
        }
    }
    Ok(None)
}

/// Whether a state says less for a grain than that it is current.
fn takes_away(state: &GrainState) -> bool {
    !state.is_current() || state.system_valid_to.is_some() || is_worse(state.verification_status)
}

fn is_worse(status: VerificationStatus) -> bool {
    matches!(status, VerificationStatus::Retracted | VerificationStatus::Contested)
}
