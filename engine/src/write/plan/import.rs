//! The plan's part of an import: decides claims about stored grains, and records what protects grains that
//! arrive in any order (ruling 37).
//!
//! There is no second set of rules: a claim is decided like the call with the same effect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use grainstore_format::container::ManifestEntry;
use grainstore_format::{
    ContentAddress, Envelope, EpochMs, Grain, GrainState, GrainType, VerificationStatus,
};
use grainstore_index::Sequence;

use super::conflict::{ConflictSubject, Conflicts};
use super::is_earlier_end;
use super::protection::GatheredProtectors;
use super::protection::parent_addresses;
use super::roots::merge_roots;
use super::supersede::{known_since, supersession_record};
use super::withdrawal::{
    GRANTED_ANEW, KnownWithdrawal, SUCCESSOR_GONE, Withdrawer, check_fits_grant,
    is_withdrawn_by_third_party, withdrawal_rules, withdrawn_grant,
};
use super::{
    PreparedGrain, Principal, StateChange, UncommittedLog, WritePlan, implicit_supersession,
    own_protection,
};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::{is_withdrawal, stored_grain, with_fields};
use crate::rules::policy::{PolicyRule, PolicyTerms, Proofs, Protector, RuleResult, review_rule};
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::consent::parse_basis_address;
use crate::state::view::{GrainRow, View};

/// A statement of a manifest about a stored grain that differs from the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManifestClaim {
    pub(crate) address: ContentAddress,
    pub(crate) stated: GrainState,
    /// Valid signers of the `supersession_auth` in its successor.
    pub(crate) cosigners: Vec<String>,
}

/// A grain that is claimed to have superseded a stored one.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedSuccessor {
    pub(crate) prepared: PreparedGrain,
    /// The state in the manifest.
    pub(crate) stated: ManifestEntry,
}

/// The decision on a claim.
enum ClaimDecision {
    /// The store agrees already.
    AlreadySo,
    Allowed {
        row: GrainRow,
        rules: Vec<&'static str>,
        needs_review: bool,
    },
    /// The store keeps its own state.
    Rejected {
        rules: Vec<&'static str>,
        is_protected: bool,
        why: String,
    },
}

/// How many later versions are asked before an earlier supersession takes their place.
const MAX_DISPLACED_VERSIONS: usize = 1024;

/// Returns `true` if a status prevails over another: the worse one does (ruling 37).
pub(crate) fn prevails(one: VerificationStatus, over: VerificationStatus) -> bool {
    const WORST_FIRST: [VerificationStatus; 4] = [
        VerificationStatus::Retracted,
        VerificationStatus::Contested,
        VerificationStatus::Verified,
        VerificationStatus::Unverified,
    ];
    let rank = |status| WORST_FIRST.iter().position(|other| *other == status);
    rank(one) < rank(over)
}

/// The state a grain that is new here comes with: as it is stated, but that a hold its policy
/// declares stays unless the file says that it was lifted.
/// `cleared` says whether the word of a file that it was verified is taken. One that is not current has
/// ended, now at the latest, or what is current now and what was as of now would not be the same.
pub(crate) fn imported_state(
    stated: &ManifestEntry,
    declares_hold: bool,
    cleared: bool,
    now: EpochMs,
) -> GrainState {
    let held = stated.state.held || (declares_hold && !stated.hold_lifted);
    let verification_status = match stated.state.verification_status {
        VerificationStatus::Verified if !cleared => VerificationStatus::Unverified,
        status => status,
    };
    let system_valid_to = match stated.state.is_current() {
        true => stated.state.system_valid_to,
        false => Some(ends_by(stated.state.system_valid_to, now)),
    };
    GrainState { held, verification_status, system_valid_to, ..stated.state }
}

/// When a grain ended that is stated to have ended then, or not when.
fn ends_by(stated: Option<EpochMs>, now: EpochMs) -> EpochMs {
    stated.map_or(now, |stated| stated.min(now))
}

/// Returns the rule that rejects a file's statement that a new grain was reviewed, if the grain requires a
/// review that the importing caller could not have cleared. `signer` is the claimed signer of the grain.
pub(crate) fn review_refusal(
    stated: &ManifestEntry,
    blob: &[u8],
    signer: Option<&str>,
    author: &Principal,
) -> Result<Option<PolicyRule>> {
    if stated.state.verification_status != VerificationStatus::Verified {
        return Ok(None);
    }
    with_fields(blob, |grain| {
        let by = [grain.text("author_did"), signer];
        let rule = || review_rule(author.may_review(), author.actor.as_deref(), by);
        Ok(grain.requires_review().then(rule).filter(|rule| !rule.info().passes))
    })
}

/// Records that the review of an imported grain was not accepted.
pub(crate) fn uncleared_review_record(
    address: ContentAddress,
    rule: PolicyRule,
    author: &Principal,
    conflicts: &mut Conflicts,
) -> AuditRecord {
    let why = format!("verified in the file, and unverified here: {}", rule.info().text);
    conflicts.record(address, ConflictSubject::Verification, why);
    let operation = AuditOperation::SetVerification(VerificationStatus::Verified);
    let rules = vec![rule.info().name];
    let results = vec![RuleResult::Fail];
    AuditRecord { rules, results, refused: true, ..author.record(operation, vec![address]) }
}

/// Whether the word of a file that the hold of a policy was lifted is not taken: whoever imports could not have
/// lifted it.
pub(crate) fn is_lift_refused(
    stated: &ManifestEntry,
    declares_hold: bool,
    author: &Principal,
) -> bool {
    stated.hold_lifted && declares_hold && !author.is_store_operator()
}

/// Notes that a hold was not lifted by the word of a file.
pub(crate) fn not_lifted(
    address: ContentAddress,
    author: &Principal,
    conflicts: &mut Conflicts,
) -> AuditRecord {
    let rule = PolicyRule::LiftNotOperator;
    let why = format!("lifted in the file, and held here: {}", rule.info().text);
    conflicts.record(address, ConflictSubject::Grain, why);
    let rules = vec![rule.info().name];
    let (results, record) =
        (vec![RuleResult::Fail], author.record(AuditOperation::LiftHold, vec![address]));
    AuditRecord { rules, results, refused: true, ..record }
}

impl<'v> WritePlan<'v> {
    /// A plan on top of what an import has written.
    pub(crate) fn on_uncommitted(
        view: &'v View,
        beneath: &'v dyn UncommittedLog,
        now: EpochMs,
    ) -> Result<Self> {
        Ok(Self {
            uncommitted: Some(beneath),
            last_stored: beneath.last_sequence(),
            ..Self::new(view, now)?
        })
    }

    /// Decides all claims that one grain superseded others, and stores that grain unless it must be left out.
    /// Returns `true` if it was left out.
    pub(crate) fn apply_supersession_claims(
        &mut self,
        by: ContentAddress,
        successor: Option<&ClaimedSuccessor>,
        claims: &[&ManifestClaim],
        author: &Principal,
        conflicts: &mut Conflicts,
    ) -> Result<bool> {
        let decided = claims.iter().map(|claim| self.decide_claim(claim, by, successor, author));
        let decided = decided.collect::<Result<Vec<_>>>()?;
        let here = self.locate(&by)?;
        let protected =
            |w: &ClaimDecision| matches!(w, ClaimDecision::Rejected { is_protected: true, .. });
        let left_out = here.is_none() && decided.iter().any(protected);
        let (mut review, mut asked) = (false, false);
        for (claim, decided) in claims.iter().zip(decided) {
            match decided {
                ClaimDecision::AlreadySo => {}
                ClaimDecision::Allowed { row, rules, needs_review } if !left_out => {
                    asked |= needs_review;
                    self.apply_claim(&row, claim, by, rules, author, conflicts)?;
                }
                ClaimDecision::Allowed { rules, .. } => {
                    let why = format!("{by}, which was to supersede it, is left out");
                    conflicts.record(claim.address, ConflictSubject::Supersession, why);
                    self.audit.push(supersession_record(&claim.address, &by, author, rules, true));
                }
                ClaimDecision::Rejected { rules, why, .. } => {
                    review = true;
                    conflicts.record(claim.address, ConflictSubject::Supersession, why);
                    self.audit.push(supersession_record(&claim.address, &by, author, rules, true));
                }
            }
        }
        if left_out {
            let why = "left out: it is not allowed to supersede a grain that is protected here";
            conflicts.record(by, ConflictSubject::Grain, why.to_owned());
            return Ok(true);
        }
        match (here, successor) {
            (Some(sequence), _) => {
                // A lost claim changes nothing about a grain that is stored already. A withdrawal was marked or not
                // when it came.
                let withdraws = self.with_grain(sequence, |_, grain| Ok(is_withdrawal(grain)))?;
                self.mark_for_review(sequence, asked && !withdraws)?;
                self.update_roots(sequence)?;
            }
            (None, Some(ClaimedSuccessor { prepared, stated })) => {
                let blob = prepared.blob.bytes();
                let declares_hold = own_protection(blob)?.1;
                let signer = match prepared.wrapping.as_deref() {
                    Some(kept) => Envelope::from_parts(&kept.prefix, blob, &kept.suffix)?.kid(),
                    None => None,
                };
                let refused = review_refusal(stated, blob, signer.as_deref(), author)?;
                let sequence = self.stage(prepared.clone(), None)?;
                let lifts = is_lift_refused(stated, declares_hold, author);
                let hold_lifted = stated.hold_lifted && !lifts;
                let stated = ManifestEntry { hold_lifted, ..stated.clone() };
                let state = imported_state(&stated, declares_hold, refused.is_none(), self.now);
                self.audit.extend(lifts.then(|| not_lifted(by, author, conflicts)));
                self.audit.extend(
                    refused.map(|rule| uncleared_review_record(by, rule, author, conflicts)),
                );
                let by_third_party = is_withdrawn_by_third_party(prepared, author);
                let needs_review = state.needs_review || review || asked || by_third_party;
                self.states.insert(sequence, GrainState { needs_review, ..state });
                self.update_roots(sequence)?;
            }
            (None, None) => {}
        }
        Ok(false)
    }

    fn decide_claim(
        &self,
        claim: &ManifestClaim,
        by: ContentAddress,
        successor: Option<&ClaimedSuccessor>,
        author: &Principal,
    ) -> Result<ClaimDecision> {
        let stays = |rules, is_protected, why: &str| {
            Ok(ClaimDecision::Rejected { rules, is_protected, why: why.to_owned() })
        };
        let Some(row) = self.visible(&claim.address, author)? else {
            return Ok(ClaimDecision::AlreadySo);
        };
        if row.state.superseded_by == Some(by) {
            return Ok(ClaimDecision::AlreadySo);
        }
        let Some(ClaimedSuccessor { prepared, .. }) = successor else {
            return stays(vec![], false, "what is to supersede it is in neither file nor store");
        };
        let grain = &prepared.grain;
        let signer = prepared.proofs.signer.clone();
        let proofs = Proofs { cosigners: claim.cosigners.clone(), signer, failure: None };
        if withdrawn_grant(grain) == Some(claim.address) {
            return self.decide_withdrawal_claim(claim, by, row, (prepared, author));
        }
        let (decision, gathered) =
            self.decide_supersession(&claim.address, &row, grain, &proofs, author)?;
        let is_protected = has_protector(&gathered);
        if let Err(error) = implicit_supersession::check_successor(&claim.address, &row, grain) {
            return stays(vec![], is_protected, &error.to_string());
        }
        // Of other types a circle is undone where the grains bear it out least.
        if grain.grain_type() == GrainType::Consent
            && let Some(at) = self.locate(&by)?
            && self.leads_to(at, &claim.address, &mut HashMap::new())? == Some(true)
        {
            return stays(vec!["earlier"], is_protected, "its supersession would run in a circle");
        }
        let parties = (&claim.address, &row);
        let signer = proofs.signer.as_deref();
        if let Err(error) = self.check_same_parties(parties, grain, signer, author) {
            return stays(
                vec![PolicyRule::WithdrawalByOthers.info().name],
                true,
                &error.to_string(),
            );
        }
        if row.state.superseded_by.is_some() && !is_earlier(&claim.stated, &row.state) {
            let why = "it is superseded already, and not later, by another grain";
            return stays(vec!["earlier"], is_protected, why);
        }
        let displaces = match self.decide_displacement(&row, grain, &proofs, author)? {
            Ok(needs_review) => needs_review,
            Err(why) => return stays(vec!["earlier"], is_protected, why),
        };
        if let Some(rule) = decision.refusal() {
            let what = format!("cannot supersede {}", claim.address);
            let error = self.denial_error(&what, rule, &decision, &gathered, author)?;
            return stays(decision.names(), true, &error.to_string());
        }
        let needs_review = decision.needs_review || displaces;
        let mut rules = decision.names();
        let anew = self.is_granted_anew(&row, grain, proofs.signer.as_deref(), author)?;
        rules.extend(anew.then_some(GRANTED_ANEW));
        Ok(ClaimDecision::Allowed { row, rules, needs_review })
    }

    /// Decides a claim that a withdrawal superseded the grant that it names: it ends the last version, as a put of
    /// it would.
    fn decide_withdrawal_claim(
        &self,
        claim: &ManifestClaim,
        by: ContentAddress,
        row: GrainRow,
        (prepared, author): (&PreparedGrain, &Principal),
    ) -> Result<ClaimDecision> {
        let grant = self.grant_versions(claim.address, row)?;
        let sequence = self.locate(&by)?;
        let who = Withdrawer::of(prepared, author);
        let known = KnownWithdrawal { grain: &prepared.grain, sequence, who };
        let stays = |rule, is_protected, why: String| {
            Ok(ClaimDecision::Rejected { rules: vec![rule], is_protected, why })
        };
        match grant.check_fits(&prepared.grain) {
            Err(error) => stays("withdrawal", true, error.to_string()),
            Ok(()) if !self.has_effect(&known, &grant, author)? => {
                stays("earlier", false, "it was withdrawn before".to_owned())
            }
            Ok(()) => {
                let (_, row) = grant.last;
                let rules = withdrawal_rules(&row);
                let needs_review = who == Withdrawer::ThirdParty;
                Ok(ClaimDecision::Allowed { row, rules, needs_review })
            }
        }
    }

    /// Decides whether an earlier supersession may take the place of the one there is, and whether it asks for
    /// review. It may not if a version after it is protected from whoever imports, a consent was withdrawn since,
    /// or what replaced it cannot be asked.
    fn decide_displacement(
        &self,
        old: &GrainRow,
        new: &Grain,
        proofs: &Proofs,
        author: &Principal,
    ) -> Result<Result<bool, &'static str>> {
        let is_consent = new.grain_type() == GrainType::Consent;
        let (mut next, mut looked, mut needs_review) = (old.state.superseded_by, 0, false);
        while let Some(address) = next {
            if is_consent && !author.is_store_operator() {
                return Ok(Err("what took the place of a consent here stays"));
            }
            looked += 1;
            let Some(row) = self.find(&address)?.filter(|_| looked <= MAX_DISPLACED_VERSIONS)
            else {
                return Ok(Err("what superseded it here cannot be asked"));
            };
            if with_fields(&row.blob, |grain| Ok(is_withdrawal(grain)))? {
                return Ok(Err("it was withdrawn here"));
            }
            let (decision, _) = self.decide_supersession(&address, &row, new, proofs, author)?;
            if decision.refusal().is_some() {
                return Ok(Err("a later version of it is protected here"));
            }
            needs_review |= decision.needs_review;
            next = row.state.superseded_by;
        }
        Ok(Ok(needs_review))
    }

    /// Ends a grain as claimed, or the last version of the grant that a claimed withdrawal ends; a later supersession
    /// that it replaces is marked for review.
    fn apply_claim(
        &mut self,
        row: &GrainRow,
        claim: &ManifestClaim,
        by: ContentAddress,
        mut rules: Vec<&'static str>,
        author: &Principal,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let ends = row.state.system_valid_to.into_iter().chain(claim.stated.system_valid_to).min();
        let ends = ends_by(ends, self.now.max(known_since(row)?));
        let old = ContentAddress::of(&row.blob);
        if let Some(other) = row.state.superseded_by.filter(|_| !rules.contains(&SUCCESSOR_GONE)) {
            rules.push("earlier");
            let other_named = self.display_address(&other, author)?;
            let why = format!(
                "the earlier supersession, by {by}, takes the place of that by {other_named}"
            );
            conflicts.record(claim.address, ConflictSubject::Supersession, why);
            // One that the author does not see, or may not write, is not theirs to mark.
            if let Some(other) = self.visible(&other, author)?
                && author.viewer.check_writes(&stored_grain(&other.blob)?).is_ok()
            {
                self.mark_for_review(other.sequence, true)?;
            }
        }
        let state = self.state(row.sequence)?;
        let state = GrainState { superseded_by: Some(by), system_valid_to: Some(ends), ..state };
        self.states.insert(row.sequence, state);
        self.ends_with_next_record(row.sequence);
        self.audit.push(supersession_record(&old, &by, author, rules, false));
        Ok(())
    }

    /// Decides the other statements of a manifest about a stored grain. Holds and review marks are set, never
    /// lifted.
    pub(crate) fn apply_state_claims(
        &mut self,
        claim: &ManifestClaim,
        author: &Principal,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let ManifestClaim { address, stated, .. } = claim;
        let Some(row) = self.visible(address, author)? else { return Ok(()) };
        let (own, status) = (row.state.verification_status, stated.verification_status);
        let marks = [
            (stated.contradicted, StateChange::Contradict, ConflictSubject::Contradiction),
            (prevails(status, own), StateChange::Status(status), ConflictSubject::Verification),
            (stated.held && !row.state.held, StateChange::Hold, ConflictSubject::Grain),
        ];
        let ends = stated.system_valid_to.filter(|_| stated.is_current());
        let ends = ends
            .map(|at| (is_earlier_end(at, &row.state), StateChange::End(at), ConflictSubject::End));
        for (_, mark, about) in marks.into_iter().chain(ends).filter(|(wanted, ..)| *wanted) {
            match self.change_one_state(address, mark, &Proofs::default(), author) {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => {
                    conflicts.record(*address, about, error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        if prevails(own, status) && status != VerificationStatus::Unverified {
            let why =
                format!("{} here, which stays, and {} in the file", own.name(), status.name());
            conflicts.record(*address, ConflictSubject::Verification, why);
        }
        let state = self.state(row.sequence)?;
        let ended_now = row.state.system_valid_to.is_none() && state.system_valid_to.is_some();
        let ends = stated.system_valid_to.filter(|_| ended_now);
        let ends = match state.is_current() {
            true => ends,
            false => ends.map(|ends| ends.min(self.now)),
        };
        let ends = GrainState { system_valid_to: ends.or(state.system_valid_to), ..state };
        // A mark on a withdrawal puts off what it erases.
        let asks = stated.needs_review
            && (author.is_store_operator() || !with_fields(&row.blob, |g| Ok(is_withdrawal(g)))?);
        let after = GrainState { needs_review: state.needs_review || asks, ..ends };
        if after != row.state {
            self.states.insert(row.sequence, after);
        }
        Ok(())
    }

    /// Checks that a withdrawal fits the grant it names, if that is stored.
    ///
    /// # Errors
    /// Those of [`WritePlan::put`] for a withdrawal.
    pub(crate) fn check_withdrawal_fits(
        &self,
        withdrawal: &Grain,
        author: &Principal,
    ) -> Result<()> {
        match self.grant_of(withdrawal, author)? {
            Some((_, row)) => check_fits_grant(&row, withdrawal),
            None => Ok(()),
        }
    }

    /// Ends the grant that an imported withdrawal names, whatever the grant's policy (ruling 40). `before` is
    /// the last sequence before the import: an older grant gets an audit entry of its own.
    pub(crate) fn apply_imported_withdrawal(
        &mut self,
        sequence: Sequence,
        signer: Option<&str>,
        before: Sequence,
        author: &Principal,
        conflicts: &mut Conflicts,
    ) -> Result<()> {
        let (address, withdrawal) =
            self.with_grain(sequence, |address, grain| Ok((address, grain.to_grain()?)))?;
        let who = Withdrawer::of_grain(&withdrawal, signer, author);
        let by_third_party = who == Withdrawer::ThirdParty;
        if sequence > before {
            // The operator's file tells whose it was.
            let marked = author.is_store_operator() && self.state(sequence)?.needs_review;
            self.set_mark(sequence, by_third_party || marked)?;
        }
        let Some((grant, row)) = self.grant_of(&withdrawal, author)? else { return Ok(()) };
        let grant = self.grant_versions(grant, row)?;
        match grant.check_fits(&withdrawal) {
            Ok(()) => {}
            Err(error) if is_refusal(&error) => {
                conflicts.record(address, ConflictSubject::Withdrawal, error.to_string());
                return self.mark_for_review(sequence, sequence > before);
            }
            Err(error) => return Err(error),
        }
        let known = KnownWithdrawal { grain: &withdrawal, sequence: Some(sequence), who };
        if self.has_effect(&known, &grant, author)? {
            self.end_withdrawn(&grant, address, author)?;
            if sequence <= before {
                self.set_mark(sequence, by_third_party)?;
            }
        }
        Ok(())
    }

    fn grant_of(
        &self,
        withdrawal: &Grain,
        author: &Principal,
    ) -> Result<Option<(ContentAddress, GrainRow)>> {
        let Some(grant) = withdrawal.text("prior_consent").and_then(parse_basis_address) else {
            return Ok(None);
        };
        Ok(self.visible(&grant, author)?.map(|row| (grant, row)))
    }

    /// Updates the roots of a grain of the log, and those of its descendants.
    pub(crate) fn update_roots(&mut self, sequence: Sequence) -> Result<()> {
        let before = self.roots(sequence)?;
        let (address, parents, protects) = self.with_grain(sequence, |address, grain| {
            Ok((address, parent_addresses(grain), PolicyTerms::of(grain).protects()))
        })?;
        let mut more: BTreeSet<_> = protects.then_some(sequence).into_iter().collect();
        more.extend(self.inherited_roots(&address, &before, parents)?);
        let roots = merge_roots(sequence, &before, &more);
        if roots == before {
            return Ok(());
        }
        self.roots.insert(sequence, roots);
        self.propagate_roots(address, sequence)
    }
}

/// The claims about supersession, by the grain that is to have superseded: of a chain the older first, since
/// what protects a version is known by what it replaced.
pub(crate) fn group_by_successor(
    claims: &[ManifestClaim],
) -> Vec<(ContentAddress, Vec<&ManifestClaim>)> {
    let mut groups: BTreeMap<ContentAddress, Vec<&ManifestClaim>> = BTreeMap::new();
    for claim in claims {
        if let Some(by) = claim.stated.superseded_by {
            groups.entry(by).or_default().push(claim);
        }
    }
    let (mut order, mut seen) = (Vec::with_capacity(groups.len()), BTreeSet::new());
    for by in groups.keys() {
        let mut stack = vec![(*by, false)];
        while let Some((by, is_next)) = stack.pop() {
            if is_next {
                order.push(by);
            } else if let Some(claims) = groups.get(&by)
                && seen.insert(by)
            {
                stack.push((by, true));
                stack.extend(claims.iter().map(|claim| (claim.address, false)));
            }
        }
    }
    order.into_iter().filter_map(|by| groups.remove_entry(&by)).collect()
}

fn is_earlier(stated: &GrainState, own: &GrainState) -> bool {
    matches!((stated.system_valid_to, own.system_valid_to), (Some(stated), Some(own)) if stated < own)
}

fn has_protector(gathered: &GatheredProtectors) -> bool {
    // A hold that was lifted leaves the grain as if there were no policy.
    let bears = |protector: &Protector| protector.applies() && !protector.terms.holds;
    gathered.facts.is_truncated || gathered.facts.protectors.iter().any(|p| p.held || bears(p))
}

/// Returns `true` for an error that is a refusal rather than a failure.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidationDenied
            | ErrorKind::EvidenceRequired
            | ErrorKind::Conflict
            | ErrorKind::Format(grainstore_format::ErrorKind::Schema)
    )
}
