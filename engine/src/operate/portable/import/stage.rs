//! The second pass over the files of an import, on the writer thread: writes grains, states, roots and audit
//! entries in one transaction, a chunk at a time.
//!
//! The order is chosen so that no order in a file lets a claim bypass a policy: first the grains, except
//! those claimed to supersede stored ones; then the states of new grains; their roots; the claims, each
//! judged with all of that in reader; grains that would replace another without a claim; withdrawals of
//! consent.
//!
//! Sequences of the log have no gap, so grains to be left out are found first, and the pass is restarted
//! without them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use grainstore_cal::CancelHandle;
use grainstore_format::container::{Container, ContainerEntry, ManifestEntry, ReadAt};
use grainstore_format::{
    ContentAddress, Envelope, Grain, GrainState, GrainType, VerificationStatus,
};
use grainstore_index::Sequence;
use sha2::{Digest, Sha256};

use super::arrivals::without_end;
use super::check::{
    CHECK_INTERVAL_GRAINS, CheckedFile, CheckedImport, ImportFiles, digest_entry, prepare_entry,
    signature_wrapper,
};
use super::staging::{PlanOutcome, StagingTables};
use super::{ImportReport, claims, input_error, with_file_name};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::truth_transaction::RowWriter;
use crate::read::query::ScanError;
use crate::rules::policy::PolicyRule;
use crate::state::audit::{AuditOperation, AuditRecord, ImportSummary};
use crate::state::erasure::check_not_erased;
use crate::state::visibility::Visibility;
use crate::write::plan::{
    ClaimedSuccessor, ConflictSubject, Conflicts, ImplicitSupersession, Principal, UncommittedLog,
    WritePlan, group_by_successor, imported_state, is_lift_refused, not_lifted, own_protection,
    parents, review_refusal, uncleared_review_record,
};
use crate::write::writer::WriteTxn;

/// Claims, or grains to protect, in one plan.
const CHUNK_ITEMS: usize = 256;
/// Most files whose checksums an audit entry names.
const MAX_NAMED_FILES: usize = 16;

/// Grains to leave out of an import, each with the grain it would replace without asking its policy.
pub(super) type ExcludedGrains = BTreeMap<ContentAddress, ContentAddress>;

/// Writes the grains of the files, except those left out, into a transaction. `None` if the store has changed
/// since the first pass in a way that matters, or if more grains are to be left out.
///
/// # Errors
/// Those of [`Session::import`](crate::Session::import).
pub(super) fn stage<S: ReadAt>(
    write_txn: &WriteTxn<'_>,
    rows: &mut RowWriter<'_>,
    (files, checked): (&ImportFiles<S>, &CheckedImport),
    author: &Principal,
    cancel: &CancelHandle,
    left_out: &mut ExcludedGrains,
) -> Result<Option<(ImportReport, Vec<AuditRecord>)>> {
    let reach = Visibility::new(&author.viewer, write_txn.view, write_txn.now);
    let stated = claims::stated_states(write_txn.view, files, &reach)?;
    if stated != checked.stated {
        return Ok(None);
    }
    // One sync for all users. If a grain is refused later, its user may have a slot without rows.
    write_txn.view.vault().enroll_users(checked.people.iter().map(String::as_str))?;
    let mut stage = ImportStage {
        write_txn,
        checked,
        author,
        cancel,
        staging: StagingTables::open(write_txn.view, write_txn.active_rules, rows)?,
        protecting: Vec::new(),
        withdrawals: Vec::new(),
        grants: Vec::new(),
        consents: Vec::new(),
        left_out,
        deriving: Vec::new(),
        suspects: Vec::new(),
        audit: Vec::new(),
        conflicts: checked.conflicts.clone(),
        counts: ImportReport::default(),
    };
    for ((name, container), found) in files.files.iter().zip(&checked.files) {
        stage.write_file(container, found).map_err(|error| with_file_name(name, error))?;
    }
    stage.write_states(files)?;
    stage.write_roots()?;
    stage.decide_claims()?;
    stage.break_cycles()?;
    let disguised = stage.find_disguised()?;
    if !disguised.is_empty() {
        drop(stage);
        left_out.extend(disguised);
        return Ok(None);
    }
    stage.apply_withdrawals()?;
    stage.record_consents()?;
    for (name, container) in &files.files {
        container.recheck().map_err(|error| input_error(name, error))?;
    }
    stage.finish(files).map(Some)
}

/// An import in progress.
struct ImportStage<'s, 't> {
    write_txn: &'s WriteTxn<'s>,
    checked: &'s CheckedImport,
    author: &'s Principal,
    cancel: &'s CancelHandle,
    staging: StagingTables<'s, 't>,
    /// New grains that restrict their replacement, or derive from others.
    protecting: Vec<Sequence>,
    /// New withdrawals of consent.
    withdrawals: Vec<Sequence>,
    /// New grants of consent.
    grants: Vec<ContentAddress>,
    /// New consents, grants and withdrawals.
    consents: Vec<Sequence>,
    /// Grains to leave out, since they would replace others without asking their policies.
    left_out: &'s ExcludedGrains,
    /// New grains that derive from others.
    deriving: Vec<Sequence>,
    /// Grains whose supersession may close a cycle: it is only stated by a file, without a new grain that
    /// derives from them.
    suspects: Vec<Sequence>,
    /// Audit entries after that of the import itself.
    audit: Vec<AuditRecord>,
    conflicts: Conflicts,
    counts: ImportReport,
}

impl ImportStage<'_, '_> {
    /// Writes the grains of a file.
    fn write_file<S: ReadAt>(
        &mut self,
        container: &Container<'static, S>,
        found: &CheckedFile,
    ) -> Result<()> {
        let mut digest = Sha256::new();
        let (mut valid, mut left_out) =
            (found.valid.iter().peekable(), found.left_out.iter().peekable());
        let of_input = |error| Error::from(error).about_input();
        for (number, entry) in (0..).zip(container.entries().map_err(of_input)?) {
            let entry = entry.map_err(of_input)?;
            digest_entry(&mut digest, &entry);
            let is_valid = valid.next_if_eq(&&number).is_some();
            if left_out.next_if_eq(&&number).is_some() {
                self.counts.refused += 1;
            } else {
                self.write_grain(entry, is_valid)?;
            }
            if u64::from(number).is_multiple_of(CHECK_INTERVAL_GRAINS) {
                self.cancel.check().map_err(ScanError::Stopped)?;
            }
        }
        let same = <[u8; 32]>::from(digest.finalize()) == found.digest;
        same.then_some(()).ok_or_else(file_changed)
    }

    fn write_grain(&mut self, entry: ContainerEntry, is_valid: bool) -> Result<()> {
        let address = entry.address();
        // The user may have been erased since the first pass.
        if let Err(error) = check_not_erased(self.write_txn.view, &address, entry.grain()) {
            self.counts.refused += u64::from(error.is_erased());
            return if error.is_erased() { Ok(()) } else { Err(error) };
        }
        if let Some(sequence) = self.write_txn.view.sequence_of(&address)? {
            self.counts.duplicate += 1;
            if is_withdrawal_grain(entry.grain()) {
                self.withdrawals.push(sequence);
            }
            return self.improve_signature(entry, sequence, is_valid);
        }
        if let Some(sequence) = self.staging.sequence_of(&address)? {
            self.counts.duplicate += 1;
            return match signature_wrapper(&entry, is_valid)?.filter(|wrapping| wrapping.valid) {
                Some(better) => self.staging.improve_signature(sequence, &better),
                None => Ok(()),
            };
        }
        if let Some(old) = self.left_out.get(&address) {
            return self.leave_out(address, *old);
        }
        let withdraws = is_withdrawal_grain(entry.grain());
        if entry.grain().grain_type() == GrainType::Consent && !withdraws {
            self.grants.push(address);
        }
        if withdraws
            && let Err(error) = self.plan()?.check_withdrawal_fits(entry.grain(), self.author)
        {
            self.counts.refused += 1;
            self.conflicts.record(address, ConflictSubject::Withdrawal, error.to_string());
            return Ok(());
        }
        if self.checked.successors.contains_key(&address) {
            return Ok(());
        }
        let parents: Vec<_> = parents(entry.grain()).into_iter().collect();
        let wrapping = signature_wrapper(&entry, is_valid)?;
        let sequence = self.staging.append(&address, entry.blob(), wrapping.as_ref(), &parents)?;
        let (protects, declares_hold) = own_protection(entry.blob())?;
        if protects || !parents.is_empty() {
            self.protecting.push(sequence);
        }
        if !parents.is_empty() {
            self.deriving.push(sequence);
        }
        if withdraws {
            self.withdrawals.push(sequence);
        }
        if entry.grain().grain_type() == GrainType::Consent {
            self.consents.push(sequence);
        }
        if declares_hold {
            let state = GrainState { held: true, ..GrainState::default() };
            self.staging.put_state(sequence, state, self.import_entry())?;
        }
        Ok(())
    }

    /// Takes over the envelope of a grain that is stored already, if its signature is valid and that of the
    /// stored one is not.
    fn improve_signature(
        &mut self,
        entry: ContainerEntry,
        sequence: Sequence,
        is_valid: bool,
    ) -> Result<()> {
        let kept = || -> Result<bool> {
            Ok(self.write_txn.view.wrapping_at(sequence)?.is_some_and(|kept| kept.valid))
        };
        if !is_valid || kept()? {
            return Ok(());
        }
        claims::check_claim_limit(self.audit.len())?;
        let signer = signer(entry.envelope())?;
        let better = prepare_entry(entry, signer)?;
        let mut plan = self.plan()?;
        plan.upgrade_envelope(&better, self.author)?;
        let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
        self.write_outcome(outcome)
    }

    /// Sets the states of new grains that the manifests state.
    fn write_states<S: ReadAt>(&mut self, files: &ImportFiles<S>) -> Result<()> {
        let entry = self.import_entry();
        files.each_manifest_entry(|address, carried| {
            let Some(sequence) = self.staging.sequence_of(&address)? else { return Ok(()) };
            let before = self.staging.state_at(sequence)?;
            let lifts = is_lift_refused(&carried, before.held, self.author);
            let mut carried = carried;
            carried.hold_lifted &= !lifts;
            if self.checked.arrivals.contains_key(&address) {
                carried.state = without_end(&carried.state);
            }
            let refused = self.unreviewed(sequence, &carried)?;
            let state =
                imported_state(&carried, before.held, refused.is_none(), self.write_txn.now);
            // If several files state a state for one grain, the first counts.
            let is_first = before == GrainState { held: before.held, ..GrainState::default() };
            if lifts && is_first {
                claims::check_claim_limit(self.audit.len())?;
                let refusal = not_lifted(address, self.author, &mut self.conflicts);
                self.audit_refusal(refusal);
            }
            if let Some(rule) = refused.filter(|_| is_first) {
                claims::check_claim_limit(self.audit.len())?;
                let refusal =
                    uncleared_review_record(address, rule, self.author, &mut self.conflicts);
                self.audit_refusal(refusal);
            }
            if is_first && state != before {
                self.staging.put_state(sequence, state, entry)?;
                if let Some(by) = state.superseded_by
                    && !self.staging.derives(&by, &address)?
                {
                    self.suspects.push(sequence);
                }
            }
            Ok(())
        })
    }

    /// Returns the rule by which a file cannot confirm the review of a new grain, `None` if it can.
    fn unreviewed(
        &self,
        sequence: Sequence,
        carried: &ManifestEntry,
    ) -> Result<Option<PolicyRule>> {
        if carried.state.verification_status != VerificationStatus::Verified {
            return Ok(None);
        }
        let blob = self.staging.blob_at(sequence)?;
        let signer = match self.staging.wrapping_at(sequence)? {
            Some(kept) => Envelope::from_parts(&kept.prefix, &blob, &kept.suffix)?.kid(),
            None => None,
        };
        review_refusal(carried, &blob, signer.as_deref(), self.author)
    }

    /// Breaks the cycles that stated supersessions close.
    fn break_cycles(&mut self) -> Result<()> {
        let CheckedImport { claims, successors, .. } = self.checked;
        let claimed = claims.iter().filter(|claim| claim.stated.superseded_by.is_some());
        let mut suspects = std::mem::take(&mut self.suspects);
        for address in claimed.map(|claim| &claim.address).chain(successors.keys()) {
            suspects.extend(self.plan()?.locate(address)?);
        }
        if suspects.is_empty() {
            return Ok(());
        }
        let mut plan = plan(self.write_txn, &self.staging)?;
        plan.break_cycles(&suspects, self.author, &mut self.conflicts)?;
        let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
        self.write_outcome(outcome)
    }

    /// Records that a grain is left out, since it would replace this one without asking its policy.
    fn leave_out(&mut self, address: ContentAddress, old: ContentAddress) -> Result<()> {
        claims::check_claim_limit(self.audit.len())?;
        self.counts.refused += 1;
        let why = "left out: it would replace a grain that is protected here, without asking its \
                   policy";
        self.conflicts.record(address, ConflictSubject::Grain, why.to_owned());
        self.audit_refusal(WritePlan::implicit_supersession_record(&old, &address, self.author));
        Ok(())
    }

    /// Adds an audit entry for a refusal, unless an equal one was audited within the last minute.
    fn audit_refusal(&mut self, refusal: AuditRecord) {
        self.audit.extend(
            self.write_txn.refusals.borrow_mut().aggregate(vec![refusal], self.write_txn.now),
        );
    }

    /// Finds the new grains that would replace others without a supersession. Returns those to leave out,
    /// because what they would replace is protected; the others are marked for review.
    fn find_disguised(&mut self) -> Result<ExcludedGrains> {
        let mut deriving = std::mem::take(&mut self.deriving);
        for by in self.checked.successors.keys() {
            deriving.extend(self.staging.sequence_of(by)?);
        }
        let mut left_out = ExcludedGrains::new();
        let mut open = Vec::new();
        for chunk in deriving.chunks(CHUNK_ITEMS) {
            let mut plan = plan(self.write_txn, &self.staging)?;
            for sequence in chunk {
                let Some(found) = plan.implicit_supersession(*sequence, self.author)? else {
                    continue;
                };
                match found.protected {
                    Some(old) => drop(left_out.insert(found.address, old)),
                    None => {
                        plan.mark_for_review(*sequence, true)?;
                        open.push(found);
                    }
                }
                claims::check_claim_limit(left_out.len().max(open.len()))?;
            }
            let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
            self.write_outcome(outcome)?;
        }
        exclude_successors(&mut left_out, &open);
        Ok(left_out)
    }

    /// Records the roots of the new grains, and of the grains they protect.
    fn write_roots(&mut self) -> Result<()> {
        for chunk in std::mem::take(&mut self.protecting).chunks(CHUNK_ITEMS) {
            let mut plan = self.plan()?;
            chunk.iter().try_for_each(|sequence| plan.update_roots(*sequence))?;
            let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
            self.write_outcome(outcome)?;
        }
        Ok(())
    }

    /// Decides the claims about stored grains.
    fn decide_claims(&mut self) -> Result<()> {
        let CheckedImport { claims, successors, .. } = self.checked;
        let groups = group_by_successor(claims);
        for chunk in groups.chunks(CHUNK_ITEMS) {
            let mut plan = plan(self.write_txn, &self.staging)?;
            for (by, claims) in chunk {
                let (author, conflicts) = (self.author, &mut self.conflicts);
                let fits = |new: &&ClaimedSuccessor| {
                    plan.check_withdrawal_fits(&new.prepared.grain, author).is_ok()
                };
                let new = successors.get(by).filter(|_| !self.left_out.contains_key(by));
                let new = new.filter(fits);
                let here = plan.exists(by)?;
                let left_out =
                    plan.apply_supersession_claims(*by, new, claims, author, conflicts)?;
                if new.is_some() && !here {
                    self.counts.refused += u64::from(left_out);
                }
            }
            let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
            self.write_outcome(outcome)?;
            for (by, _) in chunk {
                let Some(new) = successors.get(by) else { continue };
                let Some(sequence) = self.staging.sequence_of(by)? else { continue };
                // One that a file names as successor of something else still ends its grant.
                if is_withdrawal_grain(&new.prepared.grain) {
                    self.withdrawals.push(sequence);
                }
                if new.prepared.grain.grain_type() == GrainType::Consent {
                    self.consents.push(sequence);
                }
            }
        }
        for chunk in claims.chunks(CHUNK_ITEMS) {
            let mut plan = plan(self.write_txn, &self.staging)?;
            for claim in chunk {
                plan.apply_state_claims(claim, self.author, &mut self.conflicts)?;
            }
            let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
            self.write_outcome(outcome)?;
        }
        Ok(())
    }

    /// Ends the grants that new withdrawals name, and the new grants that were withdrawn before.
    fn apply_withdrawals(&mut self) -> Result<()> {
        for chunk in std::mem::take(&mut self.grants).chunks(CHUNK_ITEMS) {
            let mut plan = plan(self.write_txn, &self.staging)?;
            chunk
                .iter()
                .try_for_each(|grant| plan.apply_earlier_withdrawals(grant, self.author))?;
            let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
            self.write_outcome(outcome)?;
        }
        for chunk in std::mem::take(&mut self.withdrawals).chunks(CHUNK_ITEMS) {
            let before = self.staging.sequence_before();
            let mut plan = plan(self.write_txn, &self.staging)?;
            for sequence in chunk {
                let signer = match *sequence > before {
                    true => self.staging.signer_at(*sequence)?,
                    false => None,
                };
                let conflicts = &mut self.conflicts;
                plan.apply_imported_withdrawal(
                    *sequence,
                    signer.as_deref(),
                    before,
                    self.author,
                    conflicts,
                )?;
            }
            let outcome = PlanOutcome::from_plan(plan, self.next_entry(), self.write_txn.refusals)?;
            self.write_outcome(outcome)?;
        }
        Ok(())
    }

    /// Adds the audit records of what took the place of new consents.
    fn record_consents(&mut self) -> Result<()> {
        let consents = std::mem::take(&mut self.consents);
        if consents.is_empty() {
            return Ok(());
        }
        let recorded = self.audit.iter().filter(|record| record.is_supersession());
        let recorded: BTreeSet<_> = recorded.map(|record| record.subjects.clone()).collect();
        for chunk in consents.chunks(CHUNK_ITEMS) {
            let mut plan = self.plan()?;
            for at in chunk {
                plan.record_stated_supersession(*at, &recorded, self.author)?;
            }
            self.audit.append(&mut plan.audit);
            self.cancel.check().map_err(ScanError::Stopped)?;
        }
        Ok(())
    }

    fn finish<S: ReadAt>(self, files: &ImportFiles<S>) -> Result<(ImportReport, Vec<AuditRecord>)> {
        let mut digest = Sha256::new();
        let mut added = 0;
        for row in self.staging.new_blobs()? {
            let address = ContentAddress::of(&row?.1);
            digest.update(self.write_txn.view.vault().address_key(&address).as_bytes());
            added += 1;
        }
        let ImportReport { duplicate, refused, .. } = self.counts;
        let first = self.staging.sequence_before().get().saturating_add(1);
        let note = ImportSummary::new(first, added, digest.finalize().into(), duplicate, refused);
        self.staging.finish()?;
        let named = files.files.iter().take(MAX_NAMED_FILES);
        let named = named.map(|(_, file)| ContentAddress::from_bytes(file.checksum()));
        let mut audit = vec![self.author.record(AuditOperation::Import(note), named.collect())];
        audit.extend(self.audit);
        let Conflicts { listed, count } = self.conflicts;
        let imported =
            ImportReport { added, duplicate, refused, conflicts: listed, conflict_count: count };
        Ok((imported, audit))
    }

    fn plan(&self) -> Result<WritePlan<'_>> {
        plan(self.write_txn, &self.staging)
    }

    fn write_outcome(&mut self, (outcome, audit): (PlanOutcome, Vec<AuditRecord>)) -> Result<()> {
        self.audit.extend(audit);
        let entry = self.import_entry();
        self.staging.write(outcome, entry)
    }

    /// Sequence of the audit entry of the import itself.
    fn import_entry(&self) -> u64 {
        self.write_txn.first_entry
    }

    /// Sequence of the next audit entry.
    fn next_entry(&self) -> u64 {
        self.import_entry().saturating_add(1).saturating_add(self.audit.len() as u64)
    }
}

/// Returns a plan that sees the uncommitted rows of the import.
fn plan<'p>(
    write_txn: &'p WriteTxn<'_>,
    staging: &'p StagingTables<'_, '_>,
) -> Result<WritePlan<'p>> {
    let plan = WritePlan::on_uncommitted(write_txn.view, staging, write_txn.now)?;
    Ok(plan.with_locked_signatures(write_txn.locked_accepts_signature))
}

/// Leaves out, too, each grain that would replace one that is left out.
fn exclude_successors(left_out: &mut ExcludedGrains, open: &[ImplicitSupersession]) {
    let mut successors = BTreeMap::<ContentAddress, Vec<ContentAddress>>::new();
    for one in open {
        for old in &one.replaced {
            successors.entry(*old).or_default().push(one.address);
        }
    }
    let mut added: Vec<ContentAddress> = left_out.keys().copied().collect();
    while let Some(gone) = added.pop() {
        let Some(protected) = left_out.get(&gone).copied() else { continue };
        for next in successors.remove(&gone).unwrap_or_default() {
            if let Entry::Vacant(place) = left_out.entry(next) {
                place.insert(protected);
                added.push(next);
            }
        }
    }
}

fn is_withdrawal_grain(grain: &Grain) -> bool {
    grain.grain_type() == GrainType::Consent && grain.flag("is_withdrawal") == Some(true)
}

fn signer(envelope: Option<&[u8]>) -> Result<Option<String>> {
    let Some(envelope) = envelope else { return Ok(None) };
    Ok(Envelope::parse(envelope.to_vec())?.kid())
}

fn file_changed() -> Error {
    let integrity = grainstore_format::ErrorKind::Integrity;
    Error::new(ErrorKind::Format(integrity), "the file changed while it was imported")
        .with_hint("import it once nobody writes to it")
        .about_input()
}
