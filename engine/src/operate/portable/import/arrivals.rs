//! What files say of the end of protected grains that are new here, and of what takes the place of consents that
//! are, where whoever imports is not the operator of the whole store: a claim like one about a grain that is here
//! already (ruling 37 of the project's reading). Decides nothing.
//!
//! Otherwise a file could bring a grain that is still to be put, ended beforehand, and nobody could revive it; or a
//! consent of strangers in the place of a withdrawal, and what rests on it would be shown again.

use std::collections::BTreeMap;

use grainstore_cal::CancelHandle;
use grainstore_format::container::{ContainerEntry, ReadAt};
use grainstore_format::{ContentAddress, GrainState, GrainType, VerificationStatus};

use super::check::{CHECK_INTERVAL_GRAINS, ImportFiles};
use super::{claims, input_error};
use crate::base::error::{Error, ErrorKind, Result};
use crate::read::query::ScanError;
use crate::state::view::View;
use crate::write::plan::{own_protection, parents};

/// Maximum number of times that the files are read for grains under a policy of what they derive from.
const MAX_PASSES: usize = 64;

/// The claims, by the grains that they are about.
pub(super) type Arrivals = BTreeMap<ContentAddress, GrainState>;

/// All of them, as this view has it.
///
/// # Errors
/// `ERR_LIMIT` for too many claims, or too many grains in a row that come before what they derive from;
/// `ERR_TIMEOUT` if it was cancelled; those of a damaged file; `ERR_IO`.
pub(super) fn stated<S: ReadAt>(
    view: &View,
    files: &ImportFiles<S>,
    cancel: &CancelHandle,
) -> Result<Arrivals> {
    let mut ends = false;
    files.each_manifest_entry(|address, carried| {
        ends = ends || (takes_away(&carried.state) && view.sequence_of(&address)?.is_none());
        Ok(())
    })?;
    let mut found = Arrivals::new();
    if !ends {
        return Ok(found);
    }
    let protected = protected(view, files, cancel)?;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrivalKind {
    /// It is under a policy, its own or that of what it derives from.
    Protected,
    /// It is a consent under none.
    Consent,
}

/// The grains of files that are new here and consents or under a policy, their own or that of what they derive
/// from, stored or in the files.
fn protected<S: ReadAt>(
    view: &View,
    files: &ImportFiles<S>,
    cancel: &CancelHandle,
) -> Result<BTreeMap<ContentAddress, ArrivalKind>> {
    let mut found = BTreeMap::new();
    // A child may come before its parents: passes are made until one finds nothing more, or no child can.
    for _ in 0..MAX_PASSES {
        let (mut finds, mut waits) = (false, false);
        for (name, container) in &files.files {
            let entries = container.entries().map_err(|error| input_error(name, error))?;
            for (read, entry) in (0..).zip(entries) {
                if u64::is_multiple_of(read, CHECK_INTERVAL_GRAINS) {
                    cancel.check().map_err(ScanError::Stopped)?;
                }
                let entry = entry.map_err(|error| input_error(name, error))?;
                let address = entry.address();
                let known = found.get(&address).copied();
                if known == Some(ArrivalKind::Protected) || view.sequence_of(&address)?.is_some() {
                    continue;
                }
                let kind = arrival_kind(view, &entry, &found)?;
                if let Some(kind) = kind.filter(|_| kind != known) {
                    claims::check_claim_limit(found.len())?;
                    found.insert(address, kind);
                    finds = true;
                }
                if kind != Some(ArrivalKind::Protected) {
                    waits = waits || has_absent_parent(view, &entry)?;
                }
            }
        }
        if !finds || !waits {
            return Ok(found);
        }
    }
    let message =
        format!("more than {MAX_PASSES} grains in a row come before what they derive from");
    let hint = "a file has what others derive from first, as an export writes it";
    Err(Error::new(ErrorKind::Limit, message).with_hint(hint))
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
    let is_consent = entry.grain().grain_type() == GrainType::Consent;
    Ok(is_consent.then_some(ArrivalKind::Consent))
}

/// Whether a state says less for a grain than that it is current.
fn takes_away(state: &GrainState) -> bool {
    !state.is_current() || state.system_valid_to.is_some() || is_worse(state.verification_status)
}

fn is_worse(status: VerificationStatus) -> bool {
    matches!(status, VerificationStatus::Retracted | VerificationStatus::Contested)
}
