//! The withdrawal of consent, which is not subject to policies (OMS 8.10; rulings 39 and 40).

use std::collections::HashMap;

use grainstore_format::{ContentAddress, Grain, GrainType};
use grainstore_index::{Field, IndexLookup, Scope, Sequence, TimeOrder, TimeRange};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::{is_withdrawal, stored_grain, with_fields};
use crate::rules::policy::{Authority, PolicyRule, same_did};
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
        let Some((prior, row)) = grant else {
            let sequence = self.stage(new, None)?;
            self.mark_for_review(sequence, who == Withdrawer::ThirdParty)?;
            return Ok(PutOutcome::Added(address));
        };
        let (head, row, fits) = self.withdrawal_target(prior, row, &new.grain)?;
        if let Err(error) = fits {
            return Err(self.withdrawal_refusal(&head, &address, author, error)?);
        }
        let ends = self.may_end(&row, who)?;
        let sequence = self.stage(new, Some(Replacement::new(&head)))?;
        self.mark_for_review(sequence, who == Withdrawer::ThirdParty)?;
        if ends {
            self.end_withdrawn((&head, &row), address, author)?;
        }
        Ok(PutOutcome::Added(address))
    }

    /// Ends the grant of a withdrawal that is stored already, if nothing has ended it: when it came its author did
    /// not see the grant, or a file had it without its effect.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a grant with too many renewals; `ERR_INTEGRITY`; `ERR_IO`.
    pub(super) fn withdraw_again(
        &mut self,
        withdrawal: &ContentAddress,
        (grain, signer): (&Grain, Option<&str>),
        author: &Principal,
    ) -> Result<()> {
        let Some(prior) = withdrawn_grant(grain) else { return Ok(()) };
        let Some(row) = self.visible(&prior, author)? else { return Ok(()) };
        let named = row.sequence;
        let (head, row, fits) = self.withdrawal_target(prior, row, grain)?;
        let who = Withdrawer::of_grain(grain, signer, author);
        if fits.is_ok() && self.has_effect(withdrawal, named, (&head, &row), who)? {
            self.end_withdrawn((&head, &row), *withdrawal, author)?;
        }
        Ok(())
    }

    /// Ends the last version of a grant by a withdrawal, with an audit record.
    pub(super) fn end_withdrawn(
        &mut self,
        (head, row): (&ContentAddress, &GrainRow),
        by: ContentAddress,
        author: &Principal,
    ) -> Result<()> {
        self.end_grain(row, by)?;
        self.audit.push(supersession_record(head, &by, author, withdrawal_rules(row), false));
        Ok(())
    }

    /// Ends a grant that was withdrawn before it arrived, by the first withdrawal between its parties that
    /// names it, as it would have been ended then. A withdrawal from a namespace that does not contain the
    /// grant may not have applied to it: then the grant stays and is marked for review.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a grant with too many renewals; `ERR_INTEGRITY`; `ERR_IO`.
    pub(crate) fn apply_earlier_withdrawals(
        &mut self,
        grant: &ContentAddress,
        author: &Principal,
    ) -> Result<()> {
        let Some(row) = self.find(grant)? else { return Ok(()) };
        let is_grant = with_fields(&row.blob, |grain| {
            Ok(grain.grain_type() == GrainType::Consent && !is_withdrawal(grain))
        })?;
        if !is_grant {
            return Ok(());
        }
        let mut is_doubtful = false;
        for at in self.withdrawals_of(grant)? {
            let (address, withdrawal) =
                self.with_grain(at, |address, grain| Ok((address, grain.to_grain()?)))?;
            if withdrawn_grant(&withdrawal) != Some(*grant)
                || check_fits_grant(&row, &withdrawal).is_err()
            {
                continue;
            }
            let (head, ended, fits) = self.withdrawal_target(*grant, row.clone(), &withdrawal)?;
            let reaches = with_fields(&ended.blob, |grain| {
                Ok(is_in_namespace(grain.partition(), Some(withdrawal.partition())))
            })?;
            if fits.is_err() || !reaches {
                is_doubtful = true;
                continue;
            }
            let who = match self.state(at)?.needs_review {
                true => Withdrawer::ThirdParty,
                false => Withdrawer::Grantee,
            };
            return match self.has_effect(&address, row.sequence, (&head, &ended), who)? {
                true => self.end_withdrawn((&head, &ended), address, author),
                false => Ok(()),
            };
        }
        self.mark_for_review(row.sequence, is_doubtful)
    }

    /// Returns `true` if a withdrawal can end this last version of a grant. What takes the place of a version that
    /// was erased, or of what ended a withdrawal elsewhere, is for the subject and the operator.
    fn may_end(&self, head: &GrainRow, who: Withdrawer) -> Result<bool> {
        let Some(next) = head.state.superseded_by else { return Ok(!has_ended(head)?) };
        let withdraws = with_fields(&head.blob, |grain| Ok(is_withdrawal(grain)))?;
        let is_for_subject = withdraws || self.view.has_erased_grain(&next)?;
        Ok(who == Withdrawer::SubjectOrOperator || !is_for_subject)
    }

    /// Returns `true` if a stored withdrawal replaced another consent than one of the versions from the named one on.
    fn replaced_another(&self, withdrawal: Sequence, named: Sequence) -> Result<bool> {
        let (address, others) =
            self.with_grain(withdrawal, |address, grain| Ok((address, parent_addresses(grain))))?;
        for other in others {
            let Some(at) = self.locate(&other)? else { continue };
            if self.state(at)?.superseded_by == Some(address)
                && self.leads_to(named, &other, &mut HashMap::new())? != Some(true)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a stored withdrawal ends the last version `head` of the grant that it names. It does not if
    /// it is among the versions from the named one on: it ended one of them, and those after it are a new grant. Nor
    /// if it leads to the last version from elsewhere: it cannot end what replaced it.
    pub(super) fn has_effect(
        &self,
        withdrawal: &ContentAddress,
        named: Sequence,
        (head, row): (&ContentAddress, &GrainRow),
        who: Withdrawer,
    ) -> Result<bool> {
        let leads = |from, to: &ContentAddress| {
            Ok::<_, Error>(self.leads_to(from, to, &mut HashMap::new())? != Some(false))
        };
        if let Some(at) = self.locate(withdrawal)?
            && (leads(at, head)?
                || (who == Withdrawer::ThirdParty && self.replaced_another(at, named)?))
        {
            return Ok(false);
        }
        Ok(self.may_end(row, who)? && !leads(named, withdrawal)?)
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

    /// Returns the grant that a withdrawal ends, which is the last version of the one it names, and whether
    /// it may. If the withdrawal does not fit the named grant, returns that grant and the error.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a grant with too many renewals.
    pub(super) fn withdrawal_target(
        &self,
        grant: ContentAddress,
        row: GrainRow,
        withdrawal: &Grain,
    ) -> Result<(ContentAddress, GrainRow, Result<()>)> {
        if let Err(error) = check_fits_grant(&row, withdrawal) {
            return Ok((grant, row, Err(error)));
        }
        let (head, row) = self.latest_version(grant, row)?;
        let fits = check_parties(&row, withdrawal);
        Ok((head, row, fits))
    }

    /// Returns the last stored version of a grant, regardless of its visibility.
    fn latest_version(
        &self,
        grant: ContentAddress,
        row: GrainRow,
    ) -> Result<(ContentAddress, GrainRow)> {
        let (mut head, mut row) = (grant, row);
        for _ in 0..MAX_RENEWALS {
            let Some(next) = row.state.superseded_by else { return Ok((head, row)) };
            // A file may state a successor that it does not contain.
            let Some(renewed) = self.find(&next)? else { return Ok((head, row)) };
            (head, row) = (next, renewed);
        }
        let message = format!("it was renewed more than {MAX_RENEWALS} times");
        Err(Error::new(ErrorKind::Limit, message)
            .with_hint("name the last version of the grant in prior_consent"))
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
    ["withdrawal"].into_iter().chain(takes_over.then_some(SUCCESSOR_GONE)).collect()
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
