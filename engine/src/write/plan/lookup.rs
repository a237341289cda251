//! Lookups of a plan: grains, states and roots, staged by earlier members of the group or stored.

use std::sync::Arc;

use grainstore_format::{ContentAddress, Envelope, GrainRef, GrainState};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::disk::layout::SignatureWrapper;
use crate::state::consent::{Consent, ConsentLookup, ConsentVersions, consent_basis, last_version};
use crate::state::erasure::erased_error;
use crate::state::view::GrainRow;
use crate::state::visibility::{Visibility, VisibilityOutcome};

use super::{PreparedGrain, Principal, StagedGrain, WritePlan};

impl ConsentLookup for WritePlan<'_> {
    fn consent_of(&self, basis: &ContentAddress) -> Result<Option<Arc<Consent>>> {
        // A consent cached by the view may have been renewed or withdrawn in this group.
        let known = self.view.consent_of(basis)?;
        let from = known.map_or(*basis, |consent| consent.head);
        Ok(last_version(from, self)?.map(Arc::new))
    }

    fn has_erased_user(&self, grain: &GrainRef<'_>, at: Sequence) -> Result<bool> {
        self.view.has_erased_user(grain, at)
    }

    fn state_of(&self, at: Sequence) -> Result<GrainState> {
        self.state(at)
    }
}

impl ConsentVersions for WritePlan<'_> {
    fn version(&self, address: &ContentAddress) -> Result<Option<GrainRow>> {
        self.find(address)
    }

    fn was_erased(&self, address: &ContentAddress) -> Result<bool> {
        self.view.has_erased_grain(address)
    }
}

impl WritePlan<'_> {
    /// Returns the sequence of the grain with this address.
    pub(crate) fn locate(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        if let Some(staged) = self.staged(address) {
            return Ok(Some(staged.sequence));
        }
        match self.uncommitted.map_or(Ok(None), |beneath| beneath.sequence_of(address))? {
            Some(sequence) => Ok(Some(sequence)),
            None => self.view.sequence_of(address),
        }
    }

    /// Returns `true` if there is a grain with this address.
    pub(crate) fn exists(&self, address: &ContentAddress) -> Result<bool> {
        Ok(self.locate(address)?.is_some())
    }

    /// Returns the grain with this address.
    pub(super) fn find(&self, address: &ContentAddress) -> Result<Option<GrainRow>> {
        if let Some(staged) = self.staged(address) {
            let (sequence, blob) = (staged.sequence, staged.prepared.blob.bytes().to_vec());
            return Ok(Some(GrainRow { sequence, blob, state: self.state(sequence)? }));
        }
        if let Some(beneath) = self.uncommitted {
            let Some(sequence) = self.locate(address)? else { return Ok(None) };
            let (blob, state) = (beneath.blob_at(sequence)?, self.state(sequence)?);
            return Ok(Some(GrainRow { sequence, blob, state }));
        }
        let Some(mut row) = self.view.row(address)? else { return Ok(None) };
        if let Some(state) = self.states.get(&row.sequence) {
            row.state = *state;
        }
        Ok(Some(row))
    }

    /// Like [`WritePlan::find`], if the caller sees the grain.
    pub(super) fn visible(
        &self,
        address: &ContentAddress,
        author: &Principal,
    ) -> Result<Option<GrainRow>> {
        let Some(row) = self.find(address)? else { return Ok(None) };
        Ok((self.visibility_of(&row, author)? == VisibilityOutcome::Seen).then_some(row))
    }

    /// Like [`WritePlan::visible`], for a grain that must exist.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_WITHDRAWN` if the consent it rests on is not valid.
    pub(super) fn visible_or_error(
        &self,
        address: &ContentAddress,
        author: &Principal,
    ) -> Result<GrainRow> {
        let Some(row) = self.find(address)? else { return Err(self.not_found_error(address)?) };
        match self.visibility_of(&row, author)? {
            VisibilityOutcome::Seen => Ok(row),
            other => Err(other.refusal(address)),
        }
    }

    /// Like [`WritePlan::visible_or_error`], regardless of the consent that the grain rests on.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`.
    pub(super) fn in_scope_or_error(
        &self,
        address: &ContentAddress,
        author: &Principal,
    ) -> Result<GrainRow> {
        match self.find(address)? {
            Some(row) if self.visibility_of(&row, author)? != VisibilityOutcome::Outside => Ok(row),
            _ => Err(self.not_found_error(address)?),
        }
    }

    /// Checks the visibility of a grain to the caller.
    fn visibility_of(&self, row: &GrainRow, author: &Principal) -> Result<VisibilityOutcome> {
        Visibility::new(&author.viewer, self, self.now).check_blob(row.sequence, &row.blob)
    }

    /// Refuses a grain that rests on a consent that was withdrawn or is not valid now.
    ///
    /// # Errors
    /// `ERR_WITHDRAWN`.
    pub(super) fn check_basis(&self, new: &PreparedGrain, author: &Principal) -> Result<()> {
        if new.grain.get("processing_basis").is_none() {
            return Ok(());
        }
        let reach = Visibility::new(&author.viewer, self, self.now);
        let reached = with_fields(new.blob.bytes(), |grain| match consent_basis(grain) {
            Some(basis) => reach.check_consent(&basis),
            None => Ok(VisibilityOutcome::Seen),
        })?;
        reached.refused("this grain").map_or(Ok(()), Err)
    }

    /// The error for an address at which the caller sees no grain.
    pub(super) fn not_found_error(&self, address: &ContentAddress) -> Result<Error> {
        Ok(match self.view.has_erased_grain(address)? {
            true => erased_error(address),
            false => Error::new(ErrorKind::NotFound, format!("no grain {address}")),
        })
    }

    /// Returns the state of the grain at a sequence.
    pub(super) fn state(&self, sequence: Sequence) -> Result<GrainState> {
        match self.states.get(&sequence) {
            Some(state) => Ok(*state),
            None => match self.uncommitted {
                Some(beneath) => beneath.state_at(sequence),
                None => self.view.state_at(sequence),
            },
        }
    }

    /// Returns `true` if the envelope stored with a grain was verified as valid.
    pub(super) fn has_valid_signature(
        &self,
        address: &ContentAddress,
        sequence: Sequence,
    ) -> Result<bool> {
        let valid = |wrapping: &SignatureWrapper| wrapping.valid;
        match (self.wrappings.get(&sequence), self.staged(address)) {
            (Some(wrapping), _) => Ok(valid(wrapping)),
            (None, Some(staged)) => Ok(staged.prepared.wrapping.as_deref().is_some_and(valid)),
            (None, None) => Ok(self.view.wrapping_at(sequence)?.as_ref().is_some_and(valid)),
        }
    }

    /// Returns the claimed signer of a grain: the key id of its envelope, valid or not.
    pub(super) fn claimed_signer(
        &self,
        address: &ContentAddress,
        sequence: Sequence,
        blob: &[u8],
    ) -> Result<Option<String>> {
        let kid = |kept: &SignatureWrapper| -> Result<Option<String>> {
            Ok(Envelope::from_parts(&kept.prefix, blob, &kept.suffix)?.kid())
        };
        match (self.wrappings.get(&sequence), self.staged(address)) {
            (Some(wrapping), _) => kid(wrapping),
            (None, Some(staged)) => match staged.prepared.wrapping.as_deref() {
                Some(wrapping) => kid(wrapping),
                None => Ok(None),
            },
            (None, None) => match self.view.wrapping_at(sequence)? {
                Some(wrapping) => kid(&wrapping),
                None => Ok(None),
            },
        }
    }

    /// Returns the roots recorded with the grain at a sequence. Erased roots no longer protect and are left
    /// out.
    pub(super) fn roots(&self, sequence: Sequence) -> Result<Vec<Sequence>> {
        let noted = match self.roots.get(&sequence) {
            Some(roots) => roots.clone(),
            None => match self.uncommitted {
                Some(beneath) => beneath.roots_at(sequence)?,
                None => self.view.roots_at(sequence)?,
            },
        };
        if !self.view.has_erased()? {
            return Ok(noted);
        }
        let mut left = Vec::with_capacity(noted.len());
        for root in noted {
            if !self.view.is_erased(root)? {
                left.push(root);
            }
        }
        Ok(left)
    }

    /// Runs `read` on the grain at a sequence, without copying it if possible, and on the address of its
    /// bytes.
    pub(super) fn with_grain<T>(
        &self,
        sequence: Sequence,
        read: impl FnOnce(ContentAddress, &GrainRef<'_>) -> Result<T>,
    ) -> Result<T> {
        if let Some(staged) = self.staged_at(sequence) {
            let blob = &staged.prepared.blob;
            return with_fields(blob.bytes(), |grain| read(blob.address(), grain));
        }
        if let Some(beneath) = self.uncommitted {
            let blob = beneath.blob_at(sequence)?;
            return with_fields(&blob, |grain| read(ContentAddress::of(&blob), grain));
        }
        self.view.with_blob(sequence, |blob| {
            with_fields(blob, |grain| read(ContentAddress::of(blob), grain))
        })
    }

    /// Returns the grain at a sequence if this group stages it.
    pub(super) fn staged_at(&self, sequence: Sequence) -> Option<&StagedGrain> {
        let first = self.last_stored.get().saturating_add(1);
        let at = sequence.get().checked_sub(first)?;
        self.grains.get(usize::try_from(at).ok()?)
    }

    /// Returns the place of a staged grain among the new ones.
    pub(crate) fn place_of_new(&self, address: &ContentAddress) -> Option<usize> {
        self.by_address.get(address).copied()
    }

    pub(super) fn staged(&self, address: &ContentAddress) -> Option<&StagedGrain> {
        self.grains.get(self.place_of_new(address)?)
    }
}
