//! The withdrawal of consent, which is not subject to policies (OMS 8.10; rulings 39 and 40).

use std::collections::{BTreeSet, HashMap, HashSet};

use grainstore_format::{ContentAddress, Grain, GrainState, GrainType};
use grainstore_index::{Field, IndexLookup, Scope, Sequence, TimeOrder, TimeRange};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::{is_withdrawal, stored_grain, with_fields};
use crate::rules::policy::{Authority, PolicyRule, same_did};
use crate::state::audit::AuditRecord;
use crate::state::consent::parse_basis_address;
use crate::state::view::GrainRow;
use crate::state::visibility::is_in_namespace;

use super::implicit_supersession::parents;
use super::protection::parent_addresses;
use super::supersede::{Replacement, supersession_record};
use super::{PreparedGrain, Principal, PutOutcome, WritePlan};

/// Maximum number of renewals of a grant that is withdrawn.
const MAX_RENEWALS: usize = 100_000;
/// How many versions of a consent are looked at for a withdrawal among them.
const MAX_LOOKED_BACK: usize = 1024;

/// The versions of a consent, from one that a withdrawal names.
pub(super) struct GrantVersions {
    named: (ContentAddress, GrainRow),
    /// The last version that is stored.
    pub(super) last: (ContentAddress, GrainRow),
    /// The named version and those after it, in order.
    versions: Vec<Sequence>,
    /// The same, to be looked up.
    members: HashSet<Sequence>,
}

impl GrantVersions {
    /// Checks that a withdrawal is between the parties of the named version, and of the last.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a grain that is no consent; `ERR_INVALIDATION_DENIED` for one between other parties.
    pub(super) fn check_fits(&self, withdrawal: &Grain) -> Result<()> {
        self.misfit(withdrawal).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The version that a withdrawal does not fit, and why.
    fn misfit(&self, withdrawal: &Grain) -> Option<(&ContentAddress, Error)> {
        let ((named, row), (head, last)) = (&self.named, &self.last);
        let of_named = check_fits_grant(row, withdrawal).err().map(|error| (named, error));
        of_named.or_else(|| check_parties(last, withdrawal).err().map(|error| (head, error)))
    }
}

/// A withdrawal that came before what it is to end, and who withdraws by it now.
pub(super) struct KnownWithdrawal<'g> {
    pub(super) grain: &'g Grain,
    /// `None` if an import is about to store it.
    pub(super) sequence: Option<Sequence>,
    pub(super) who: Withdrawer,
}

impl KnownWithdrawal<'_> {
    fn is_by_third_party(&self) -> bool {
        self.who == Withdrawer::ThirdParty
    }
}

impl WritePlan<'_> {
    /// Stores a withdrawal of consent and ends the grant it names, whatever the grant's policy. If the grant
    /// was renewed, its last version is ended. A grant that is not stored is ended when it arrives:
    /// [`WritePlan::apply_earlier_withdrawals`].
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED` for a consent that is no withdrawal; `ERR_SCHEMA` if it names no consent;
    /// `ERR_INVALIDATION_DENIED` for one between other parties.
    pub(super) fn withdraw(
        &mut self,
        prior: &str,
        new: PreparedGrain,
        author: &Principal,
    ) -> Result<PutOutcome> {
        let address = new.blob.address();
        let grant = match parse_basis_address(prior) {
            Some(prior) => self.visible(&prior, author)?.map(|row| (prior, row)),
            None => None,
        };
        if new.grain.flag("is_withdrawal") != Some(true) {
            let replaced: Vec<_> = grant.into_iter().map(|(prior, _)| prior).collect();
            let what = "a new grant that names a prior consent replaces it".to_owned();
            return Err(self.implicit_supersession_error(&replaced, &new, author, what)?);
        }
        let who = Withdrawer::of(&new, author);
        let is_by_third_party = who == Withdrawer::ThirdParty;
        let Some((prior, row)) = grant else {
            let sequence = self.stage(new, None)?;
            self.mark_for_review(sequence, is_by_third_party)?;
            return Ok(PutOutcome::Added(address));
        };
        let grant = self.grant_versions(prior, row)?;
        if let Some((misfit, error)) = grant.misfit(&new.grain) {
            return Err(self.withdrawal_refusal(misfit, &address, author, error)?);
        }
        let (head, last) = &grant.last;
        let ends = self.may_end(last, who)?;
        let sequence = self.stage(new, Some(Replacement::new(head)))?;
        self.mark_for_review(sequence, is_by_third_party)?;
        if ends {
            self.end_withdrawn(&grant, address, author)?;
        }
        Ok(PutOutcome::Added(address))
    }

    /// Ends the grant of a withdrawal that is stored already, if nothing has ended it: when it came its author did
    /// not see the grant, or a file had it without its effect. Who withdraws now decides on the mark.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a grant with too many renewals; `ERR_INTEGRITY`; `ERR_IO`.
    pub(super) fn withdraw_again(
        &mut self,
        sequence: Sequence,
        new: &PreparedGrain,
        author: &Principal,
    ) -> Result<()> {
        let Some(prior) = withdrawn_grant(&new.grain) else { return Ok(()) };
        let Some(row) = self.visible(&prior, author)? else { return Ok(()) };
        let grant = self.grant_versions(prior, row)?;
        let who = Withdrawer::of(new, author);
        let known = KnownWithdrawal { grain: &new.grain, sequence: Some(sequence), who };
        if grant.check_fits(&new.grain).is_ok() && self.has_effect(&known, &grant, author)? {
            self.end_withdrawn(&grant, new.blob.address(), author)?;
            self.set_mark(sequence, known.is_by_third_party())?;
        }
        Ok(())
    }

    /// Marks a grain for review, or takes the mark away.
    pub(super) fn set_mark(&mut self, sequence: Sequence, needs_review: bool) -> Result<()> {
        let state = self.state(sequence)?;
        if state.needs_review != needs_review {
            self.states.insert(sequence, GrainState { needs_review, ..state });
        }
        Ok(())
    }

    /// Ends the last version of a grant by a withdrawal, with an audit record.
    pub(super) fn end_withdrawn(
        &mut self,
        grant: &GrantVersions,
        by: ContentAddress,
        author: &Principal,
    ) -> Result<()> {
        let (head, last) = &grant.last;
        self.end_grain(last, by)?;
        let rules = withdrawal_rules(last);
        self.audit.push(supersession_record(head, &by, author, rules, false));
        // One that was here before its grant is protected by what it replaces now, too.
        if let Some(at) = self.locate(&by)? {
            self.update_roots(at)?;
        }
        Ok(())
    }

    /// Ends a grant that was withdrawn before it arrived, by the first withdrawal between its parties that
    /// names it and has an effect, as it would have been ended then. A withdrawal from a namespace that does not
    /// contain the grant may not have applied to it: then the grant stays and is marked for review.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a grant with too many renewals; `ERR_INTEGRITY`; `ERR_IO`.
    pub(crate) fn apply_earlier_withdrawals(
        &mut self,
        grant: &ContentAddress,
        author: &Principal,
    ) -> Result<()> {
        let Some(row) = self.find(grant)? else { return Ok(()) };
        let (sequence, is_grant) = with_fields(&row.blob, |grain| {
            let is_consent = grain.grain_type() == GrainType::Consent;
            Ok((row.sequence, is_consent && !is_withdrawal(grain)))
        })?;
        if !is_grant {
            return Ok(());
        }
        let stored = self.withdrawals_of(grant)?;
        if stored.is_empty() {
            return Ok(());
        }
        let versions = self.grant_versions(*grant, row)?;
        let mut is_doubtful = false;
        for at in stored {
            let (address, withdrawal) =
                self.with_grain(at, |address, grain| Ok((address, grain.to_grain()?)))?;
            if withdrawn_grant(&withdrawal) != Some(*grant)
                || check_parties(&versions.named.1, &withdrawal).is_err()
            {
                continue;
            }
            let reaches = with_fields(&versions.last.1.blob, |grain| {
                Ok(is_in_namespace(grain.partition(), Some(withdrawal.partition())))
            })?;
            if versions.check_fits(&withdrawal).is_err() || !reaches {
                is_doubtful = true;
                continue;
            }
            // Of one without a mark nobody can tell whether the subject or the grantee wrote it.
            let who = match (self.state(at)?.needs_review, author.is_store_operator()) {
                (true, _) => Withdrawer::ThirdParty,
                (false, true) => Withdrawer::SubjectOrOperator,
                (false, false) => Withdrawer::Grantee,
            };
            let known = KnownWithdrawal { grain: &withdrawal, sequence: Some(at), who };
            if self.has_effect(&known, &versions, author)? {
                return self.end_withdrawn(&versions, address, author);
            }
        }
        self.mark_for_review(sequence, is_doubtful)
    }

    /// Returns `true` if a withdrawal can end this last version of a grant. What takes the place of a version that
    /// was erased, or of what ended a withdrawal elsewhere, is for the subject and the operator.
    fn may_end(&self, last: &GrainRow, who: Withdrawer) -> Result<bool> {
        let Some(next) = last.state.superseded_by else { return Ok(!has_ended(last)?) };
        if who == Withdrawer::SubjectOrOperator {
            return Ok(true);
        }
        let withdraws = with_fields(&last.blob, |grain| Ok(is_withdrawal(grain)))?;
        Ok(!withdraws && !self.view.has_erased_grain(&next)?)
    }

    /// Returns `true` if a withdrawal ends the last version of the grant that it names. It does not:
    ///
    /// - if it is among the versions from the named one on: it ended one of them, and those after it are new grants;
    /// - if it leads to the last version from elsewhere: it cannot end what replaced it;
    /// - if its subject or the operator has granted anew since it came;
    /// - by a third party, if it replaced another consent: a mark would put off what ended with that.
    pub(super) fn has_effect(
        &self,
        withdrawal: &KnownWithdrawal<'_>,
        grant: &GrantVersions,
        author: &Principal,
    ) -> Result<bool> {
        let last = &grant.last.1;
        if !self.may_end(last, withdrawal.who)? {
            return Ok(false);
        }
        if let Some(at) = withdrawal.sequence
            && (grant.members.contains(&at)
                || self.versions_from(at)?.contains(&last.sequence)
                || (withdrawal.is_by_third_party() && self.replaced_another(at, grant)?))
        {
            return Ok(false);
        }
        Ok(!self.is_granted_since(withdrawal, grant, author)?)
    }

    /// Returns `true` if a stored withdrawal replaced another consent than one of the versions of this grant.
    fn replaced_another(&self, withdrawal: Sequence, grant: &GrantVersions) -> Result<bool> {
        let (address, others) =
            self.with_grain(withdrawal, |address, grain| Ok((address, parent_addresses(grain))))?;
        for other in others {
            let Some(at) = self.locate(&other)? else { continue };
            if self.state(at)?.superseded_by == Some(address) && !grant.members.contains(&at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if after another withdrawal the subject or the operator has granted anew since a withdrawal
    /// came. Of one that comes with an import the dates decide.
    fn is_granted_since(
        &self,
        withdrawal: &KnownWithdrawal<'_>,
        grant: &GrantVersions,
        author: &Principal,
    ) -> Result<bool> {
        let last = self.view.last_sequence()?;
        let is_imported = |at: Sequence| self.uncommitted.is_some() && at > last;
        let stored = withdrawal.sequence.filter(|at| !is_imported(*at));
        let mut is_withdrawn = false;
        for (before, at) in grant.versions.iter().zip(grant.versions.iter().skip(1)) {
            let (withdraws, created) =
                self.with_grain(*at, |_, it| Ok((is_withdrawal(it), it.int("created_at"))))?;
            is_withdrawn |= withdraws;
            let is_later = match stored {
                Some(stored) => *at > stored,
                None => created >= withdrawal.grain.int("created_at"),
            };
            if is_withdrawn
                && !withdraws
                && is_later
                && self.is_granted_by_right(*before, *at, author)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a version of a consent took the place of one before by the word of the subject or the
    /// operator, as the audit log tells; of what comes with an import, if they import it.
    fn is_granted_by_right(
        &self,
        before: Sequence,
        at: Sequence,
        author: &Principal,
    ) -> Result<bool> {
        let old = self.with_grain(before, |address, _| Ok(address))?;
        let (new, grant) = self.with_grain(at, |address, it| Ok((address, it.to_grain()?)))?;
        let tells =
            |record: &&AuditRecord| record.is_supersession() && record.subjects == [old, new];
        if let Some(record) = self.audit.iter().find(tells) {
            return Ok(record.rules.contains(&GRANTED_ANEW));
        }
        if at > self.view.last_sequence()? {
            let signer = self.imported_signer(at)?;
            return Ok(is_authorized_by(&grant, signer.as_deref(), author, &["subject_did"]));
        }
        let since = self.view.state_record_at(before)?.ended_by_entry;
        let entry = self.view.supersession_entry(since, &old, &new)?;
        Ok(entry.is_some_and(|entry| entry.rules.iter().any(|rule| rule == GRANTED_ANEW)))
    }

    /// Returns the valid signer of a grain of an import that is not committed.
    fn imported_signer(&self, at: Sequence) -> Result<Option<String>> {
        match self.uncommitted {
            Some(import) if at > self.view.last_sequence()? => import.signer_at(at),
            _ => Ok(None),
        }
    }

    /// Returns the sequences of the withdrawals that name this grant, in log order.
    fn withdrawals_of(&self, grant: &ContentAddress) -> Result<Vec<Sequence>> {
        let index = self.view.index();
        let mut places = Vec::new();
        for spelling in [grant.to_string(), format!("sha256:{grant}")] {
            let shape = IndexLookup::Value(Field::PriorConsent, spelling.as_str().into());
            for posting in
                index.scan(&Scope::All, &shape, TimeRange::default(), TimeOrder::Newest)?
            {
                let at = posting?.sequence;
                if !self.view.is_erased(at)? {
                    places.push(at);
                }
            }
        }
        places.sort_unstable();
        places.extend(self.withdrawals.get(grant).into_iter().flatten());
        Ok(places)
    }

    /// Returns the versions of a consent from this one on, regardless of their visibility.
    ///
    /// # Errors
    /// `ERR_LIMIT` for one with too many renewals.
    pub(super) fn grant_versions(
        &self,
        grant: ContentAddress,
        row: GrainRow,
    ) -> Result<GrantVersions> {
        let versions = self.versions_from(row.sequence)?;
        let mut last = (grant, row.clone());
        if let Some(at) = versions.last().filter(|at| **at != row.sequence) {
            let head = self.with_grain(*at, |address, _| Ok(address))?;
            let gone = || Error::integrity("the last version of a consent is not where it was");
            last = (head, self.find(&head)?.ok_or_else(gone)?);
        }
        let members = versions.iter().copied().collect();
        Ok(GrantVersions { named: (grant, row), last, versions, members })
    }

    /// Returns the sequences of a grain and of what took its place, in order, as far as that is stored. A circle
    /// ends where it comes back.
    ///
    /// # Errors
    /// `ERR_LIMIT` for one with too many versions.
    fn versions_from(&self, first: Sequence) -> Result<Vec<Sequence>> {
        let (mut versions, mut members) = (vec![first], HashSet::from([first]));
        let mut at = first;
        while let Some(next) = self.state(at)?.superseded_by {
            // A file may state a successor that it does not contain.
            let Some(next) = self.locate(&next)?.filter(|next| members.insert(*next)) else {
                break;
            };
            if versions.len() > MAX_RENEWALS {
                let message = format!("it was renewed more than {MAX_RENEWALS} times");
                return Err(Error::new(ErrorKind::Limit, message)
                    .with_hint("name the last version of the grant in prior_consent"));
            }
            versions.push(next);
            at = next;
        }
        Ok(versions)
    }

    /// The error of a refused withdrawal; one by other parties is recorded in the audit log.
    fn withdrawal_refusal(
        &mut self,
        grant: &ContentAddress,
        withdrawal: &ContentAddress,
        author: &Principal,
        error: Error,
    ) -> Result<Error> {
        if error.kind() != ErrorKind::InvalidationDenied {
            return Ok(error);
        }
        let rule = PolicyRule::WithdrawalByOthers.info();
        self.audit.push(supersession_record(grant, withdrawal, author, vec![rule.name], true));
        let message =
            format!("cannot withdraw {}: {}", self.display_address(grant, author)?, rule.text);
        Ok(Error::new(ErrorKind::InvalidationDenied, message))
    }
}

impl WritePlan<'_> {
    /// Adds an audit record of what a file states took the place of a consent that is new here, if that bears it
    /// out: the sweep asks the audit log who granted anew, and what came after a version that was erased since.
    /// `recorded` are the supersessions with a record already.
    pub(crate) fn record_stated_supersession(
        &mut self,
        at: Sequence,
        recorded: &BTreeSet<Vec<ContentAddress>>,
        author: &Principal,
    ) -> Result<()> {
        let Some(next) = self.state(at)?.superseded_by else { return Ok(()) };
        let old = self.with_grain(at, |address, _| Ok(address))?;
        let Some(by) = self.locate(&next)?.filter(|_| !recorded.contains(&vec![old, next])) else {
            return Ok(());
        };
        let new = self.with_grain(by, |_, grain| grain.to_grain().map_err(Error::from))?;
        let Some(row) = self.find(&old)? else { return Ok(()) };
        let withdrawn = withdrawn_grant(&new);
        let ends = withdrawn.map_or(Ok(None), |grant| self.locate(&grant))?;
        let is_named = parents(&new).contains(&old)
            || new.text("prior_consent").and_then(parse_basis_address) == Some(old)
            || ends.map_or(Ok(false), |grant| {
                Ok::<_, Error>(self.versions_from(grant)?.contains(&at))
            })?;
        if !is_named {
            return Ok(());
        }
        let rules = match withdrawn {
            Some(_) => vec![WITHDRAWAL],
            None => self
                .is_granted_anew(&row, &new, self.imported_signer(by)?.as_deref(), author)?
                .then_some(GRANTED_ANEW)
                .into_iter()
                .collect(),
        };
        self.audit.push(supersession_record(&old, &next, author, rules, false));
        Ok(())
    }

    /// Whether a grant takes the place of a withdrawal, or of a grant that others gave in the place of one,
    /// and its subject or the operator gives it.
    pub(super) fn is_granted_anew(
        &self,
        old: &GrainRow,
        new: &Grain,
        signer: Option<&str>,
        author: &Principal,
    ) -> Result<bool> {
        let grants =
            new.grain_type() == GrainType::Consent && new.flag("is_withdrawal") != Some(true);
        Ok(grants
            && is_authorized_by(new, signer, author, &["subject_did"])
            && check_parties(old, new).is_ok()
            && self.was_withdrawn(old)?)
    }

    /// Checks that what replaces a consent is between the same two parties and replaces no other, unless its
    /// subject or the operator replaces it: a grain that rests on it is judged by its last version, and would end
    /// with the other. Other types have no parties.
    ///
    /// # Errors
    /// `ERR_INVALIDATION_DENIED`; `ERR_INTEGRITY`.
    pub(super) fn check_same_parties(
        &self,
        (old, row): (&ContentAddress, &GrainRow),
        new: &Grain,
        signer: Option<&str>,
        author: &Principal,
    ) -> Result<()> {
        if new.grain_type() != GrainType::Consent
            || is_authorized_by(&stored_grain(&row.blob)?, signer, author, &["subject_did"])
        {
            return Ok(());
        }
        let named = withdrawn_grant(new);
        for other in parents(new).into_iter().chain(named).filter(|other| other != old) {
            let Some(at) = self.locate(&other)? else { continue };
            let is_consent =
                self.with_grain(at, |_, it| Ok(it.grain_type() == GrainType::Consent))?;
            let is_older =
                named == Some(other) && self.leads_to(at, old, &mut HashMap::new())? == Some(true);
            if is_consent && !is_older {
                let message =
                    "one consent in the place of several is for their subject and the operator";
                return Err(Error::new(ErrorKind::InvalidationDenied, message));
            }
        }
        check_parties(row, new)
    }

    /// Whether this version of a consent, or one before it, is a withdrawal. Of one with too many versions
    /// to follow it is taken to be.
    fn was_withdrawn(&self, consent: &GrainRow) -> Result<bool> {
        let mut row = consent.clone();
        for _ in 0..MAX_LOOKED_BACK {
            let (withdraws, parents) = with_fields(&row.blob, |stored| {
                let is_consent = stored.grain_type() == GrainType::Consent;
                Ok((is_consent && is_withdrawal(stored), parent_addresses(stored)))
            })?;
            if withdraws {
                return Ok(true);
            }
            let address = ContentAddress::of(&row.blob);
            let mut before = None;
            for parent in parents {
                let found = self.find(&parent)?;
                before = found.filter(|found| found.state.superseded_by == Some(address));
                if before.is_some() {
                    break;
                }
            }
            match before {
                Some(earlier) => row = earlier,
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The grant that a withdrawal names.
pub(super) fn withdrawn_grant(grain: &Grain) -> Option<ContentAddress> {
    let withdraws = grain.grain_type() == GrainType::Consent && grain.flag("is_withdrawal")?;
    withdraws.then(|| grain.text("prior_consent"))?.and_then(parse_basis_address)
}

/// Returns `true` if the last version of a grant is a withdrawal: an earlier one stays in force. Where a successor
/// of it was stated that is not stored, or no more, nobody can say.
pub(super) fn has_ended(head: &GrainRow) -> Result<bool> {
    let is_last = head.state.superseded_by.is_none();
    Ok(is_last && with_fields(&head.blob, |grain| Ok(is_withdrawal(grain)))?)
}

/// What an audit entry is told of a withdrawal that ends this version.
pub(super) fn withdrawal_rules(ended: &GrainRow) -> Vec<&'static str> {
    let takes_over = ended.state.superseded_by.is_some();
    [WITHDRAWAL].into_iter().chain(takes_over.then_some(SUCCESSOR_GONE)).collect()
}

/// Checks that a withdrawal names a grant of consent between the same two parties.
///
/// # Errors
/// `ERR_SCHEMA` for a grain that is no consent; `ERR_INVALIDATION_DENIED` for one between other parties.
pub(super) fn check_fits_grant(named: &GrainRow, withdrawal: &Grain) -> Result<()> {
    let schema =
        |message| Err(Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Schema), message));
    with_fields(&named.blob, |stored| {
        if stored.grain_type() != GrainType::Consent {
            return schema("prior_consent names a grain that is no consent");
        }
        Ok(())
    })?;
    check_parties(named, withdrawal)
}

/// Checks that a withdrawal is between the same two parties as a consent.
fn check_parties(consent: &GrainRow, withdrawal: &Grain) -> Result<()> {
    let between_them = with_fields(&consent.blob, |stored| {
        let same = |name: &str| stored.text(name) == withdrawal.text(name);
        Ok(same("subject_did") && same("grantee_did"))
    })?;
    if between_them {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidationDenied, PolicyRule::WithdrawalByOthers.info().text))
}

/// What an audit entry is told of a withdrawal.
const WITHDRAWAL: &str = "withdrawal";

/// What an audit entry is told where a withdrawal takes the place of a successor that is not stored, or no more.
pub(crate) const SUCCESSOR_GONE: &str = "successor_gone";

/// What an audit entry is told where the subject or the operator grants anew what was withdrawn, also where
/// others granted in between.
pub(crate) const GRANTED_ANEW: &str = "granted_anew";

/// Who withdraws a consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawer {
    /// Its subject, by actor or signature, or the operator.
    SubjectOrOperator,
    Grantee,
    /// Anybody else: the withdrawal is honoured all the same and marked for review.
    ThirdParty,
}

impl Withdrawer {
    pub(super) fn of(new: &PreparedGrain, author: &Principal) -> Self {
        Self::of_grain(&new.grain, new.proofs.signer.as_deref(), author)
    }

    /// Who withdraws by a grain whose valid signature is by `signer`.
    pub(super) fn of_grain(grain: &Grain, signer: Option<&str>, author: &Principal) -> Self {
        let is = |parties: &[&str]| is_authorized_by(grain, signer, author, parties);
        match (is(&["subject_did"]), is(&["grantee_did"])) {
            (true, _) => Self::SubjectOrOperator,
            (false, true) => Self::Grantee,
            (false, false) => Self::ThirdParty,
        }
    }
}

/// Returns `true` if a grain is a withdrawal of consent by a third party.
pub(super) fn is_withdrawn_by_third_party(new: &PreparedGrain, author: &Principal) -> bool {
    new.grain.grain_type() == GrainType::Consent
        && new.grain.flag("is_withdrawal") == Some(true)
        && Withdrawer::of(new, author) == Withdrawer::ThirdParty
}

/// Returns `true` if a consent is written by the operator or one of these parties, or signed by its subject.
fn is_authorized_by(
    consent: &Grain,
    signer: Option<&str>,
    author: &Principal,
    parties: &[&str],
) -> bool {
    let is = |who: &str, name: &str| consent.text(name).is_some_and(|party| same_did(party, who));
    let signed = signer.is_some_and(|who| is(who, "subject_did"));
    let actor = author.actor.as_deref();
    let is_party = actor.is_some_and(|who| parties.iter().any(|name| is(who, name)));
    // An actor that counts as the operator only because the host named none is still reviewed.
    let is_operator = author.authority == Authority::Operator && author.is_store_operator();
    signed || is_party || is_operator
}
