//! What files say of the end of protected grains that are new here, where whoever imports is not the operator of
//! the whole store: a claim like one about a grain that is here already (ruling 37 of the project's reading).
//! Decides nothing.
//!
//! Otherwise a file could bring a grain that is still to be put, ended beforehand, and nobody could revive it.

use std::collections::{BTreeMap, BTreeSet};

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
        if takes_away(&carried.state) && protected.contains(&address) {
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

/// The grains of files that are new here and under a policy, their own or that of what they derive from.
fn protected<S: ReadAt>(view: &View, files: &ImportFiles<S>) -> Result<BTreeSet<ContentAddress>> {
    let mut found = BTreeSet::new();
    for (name, container) in &files.files {
        for entry in container.entries().map_err(|error| input_error(name, error))? {
            let entry = entry.map_err(|error| input_error(name, error))?;
            if is_protected(view, &entry)? && view.sequence_of(&entry.address())?.is_none() {
                claims::check_claim_limit(found.len())?;
                found.insert(entry.address());
            }
        }
    }
    Ok(found)
}

fn is_protected(view: &View, entry: &ContainerEntry) -> Result<bool> {
    // The end of a consent is taken from anybody: privacy fails closed.
    if entry.grain().grain_type() == GrainType::Consent {
        return Ok(false);
    }
    let (protects, holds) = own_protection(entry.blob())?;
    if protects || holds {
        return Ok(true);
    }
    for parent in parents(entry.grain()) {
        if let Some(sequence) = view.sequence_of(&parent)?
            && !view.roots_at(sequence)?.is_empty()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a state says less for a grain than that it is current.
fn takes_away(state: &GrainState) -> bool {
    !state.is_current() || state.system_valid_to.is_some() || is_worse(state.verification_status)
}

fn is_worse(status: VerificationStatus) -> bool {
    matches!(status, VerificationStatus::Retracted | VerificationStatus::Contested)
}
