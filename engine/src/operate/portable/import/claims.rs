//! Claims: states in manifests that differ from those of grains stored here. Decides nothing.

use grainstore_format::container::{ManifestEntry, ReadAt};
use grainstore_format::{ContentAddress, GrainState, VerificationStatus};

use super::check::ImportFiles;
use crate::base::error::{Error, ErrorKind, Result};
use crate::state::view::View;
use crate::state::visibility::Visibility;
use crate::write::plan::{is_earlier_end, prevails};

/// Most claims about stored grains, and better signatures of such, in one
/// [`Session::import`](crate::Session::import); `ERR_LIMIT` beyond.
pub const MAX_IMPORT_CLAIMS: usize = 100_000;

/// A claim as a manifest states it.
pub(super) type StatedState = (ContentAddress, GrainState);

/// Returns all claims about grains that are visible, compared with this view.
///
/// # Errors
/// `ERR_LIMIT`, `ERR_CORRUPT` for a broken manifest, `ERR_IO`.
pub(super) fn stated_states<S: ReadAt>(
    view: &View,
    files: &ImportFiles<S>,
    reach: &Visibility<'_>,
) -> Result<Vec<StatedState>> {
    let mut found = Vec::new();
    files.each_manifest_entry(|address, ManifestEntry { state, .. }| {
        let Some(sequence) = view.sequence_of(&address)? else { return Ok(()) };
        if !states_a_difference(&state, &view.state_at(sequence)?) {
            return Ok(());
        }
        let seen = view.with_blob(sequence, |blob| reach.is_blob_visible(sequence, blob))?;
        if seen {
            check_claim_limit(found.len())?;
            found.push((address, state));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Refuses a further claim at the limit.
///
/// # Errors
/// `ERR_LIMIT` at [`MAX_IMPORT_CLAIMS`].
pub(super) fn check_claim_limit(claims: usize) -> Result<()> {
    if claims < MAX_IMPORT_CLAIMS {
        return Ok(());
    }
    let message =
        format!("the files contradict the store about more than {MAX_IMPORT_CLAIMS} grains");
    Err(Error::new(ErrorKind::Limit, message)
        .with_hint("import one file at a time, or into a store of its own"))
}

/// Returns `true` if a file states something that differs here. An absent statement is no claim.
fn states_a_difference(stated: &GrainState, own: &GrainState) -> bool {
    let status = stated.verification_status;
    let another = |by| own.superseded_by != Some(by);
    stated.superseded_by.is_some_and(another)
        || (stated.contradicted && !own.contradicted)
        || (stated.is_current() && stated.system_valid_to.is_some_and(|at| is_earlier_end(at, own)))
        || (status != VerificationStatus::Unverified && status != own.verification_status)
        || (stated.held && !own.held)
        || (stated.needs_review && !own.needs_review)
        || prevails(status, own.verification_status)
}
