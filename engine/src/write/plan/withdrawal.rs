//! The withdrawal of consent, which waits for no policy (OMS 8.10; rulings 39 and 40 of the project's
//! reading).

use std::collections::HashMap;

use grainstore_format::{ContentAddress, Grain, GrainType};
use grainstore_index::{Field, Order, Scope, Sequence, Shape, TimeRange};

use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::policy::{Rule, Standing, same_did};
use crate::state::reach::in_scope;
use crate::state::view::{Row, is_withdrawal, with_fields};

use super::replace::{Succession, supersession};
use super::{Author, Plan, Prepared, Put};

/// How many times a grant may have been renewed before it is withdrawn.
const MAX_RENEWALS: usize = 100_000;

impl Plan<'_> {
    /// Stores a withdrawal of consent and ends the grant it names, whatever the grant's policy says:
    /// a withdrawal never waits. One that was renewed is ended as it stands now. A grant the store
    /// does not have is withdrawn when it arrives: [`Plan::honour_withdrawals`].
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED` for what is no withdrawal; `ERR_SCHEMA` where it names no consent;
    /// `ERR_INVALIDATION_DENIED` for one between others.
    pub(super) fn withdraw(&mut self, prior: &str, new: Prepared, author: &Author) -> Result<Put> {
        let address = new.blob.address();
        let grant = match prior.parse() {
            Ok(prior) => self.visible(&prior, author)?.map(|row| (prior, row)),
            Err(_) => None,
        };
        if new.grain.flag("is_withdrawal") != Some(true) {
            let replaced: Vec<_> = grant.into_iter().map(|(prior, _)| prior).collect();
            let what = "a new grant that names a prior consent replaces it".to_owned();
            return Err(self.in_disguise(&replaced, &new, author, what)?);
        }
        let signer = new.proofs.signer.as_deref();
        let by_third_party = is_by_third_party(&new.grain, signer, author);
        let Some((prior, row)) = grant else {
            let sequence = self.stage(new, None)?;
            self.review(sequence, by_third_party)?;
            return Ok(Put::Added(address));
        };
        let (head, row, fits) = self.ended_by(prior, row, &new.grain)?;
        if let Err(error) = fits {
            return Err(self.not_withdrawn(&head, &address, author, error)?);
        }
        let sequence = self.stage(new, Some(Succession::of(&head)))?;
        self.review(sequence, by_third_party)?;
        if !is_over(&row)? {
            self.end(&row, address)?;
            self.audit.push(supersession(&head, &address, author, vec!["withdrawal"], false));
        }
        Ok(Put::Added(address))
    }

    /// Ends a grant that was withdrawn before it came, by the first withdrawal between its parties that
    /// names it, as it would have been ended then. One of another namespace may not have reached it: then
    /// the grant stays, and somebody should look at it.
    ///
    /// # Errors
    /// `ERR_LIMIT` for a grant that was renewed too often; `ERR_INTEGRITY`; `ERR_IO`.
    pub(crate) fn honour_withdrawals(
        &mut self,
        grant: &ContentAddress,
        author: &Author,
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
                self.read(at, |address, grain| Ok((address, grain.to_grain()?)))?;
            if withdrawn_by(&withdrawal) != Some(*grant) || check_named(&row, &withdrawal).is_err()
            {
                continue;
            }
            let (head, ended, fits) = self.ended_by(*grant, row.clone(), &withdrawal)?;
            let reaches = with_fields(&ended.blob, |grain| {
                Ok(in_scope(grain.partition(), Some(withdrawal.partition())))
            })?;
            if fits.is_err() || !reaches {
                is_doubtful = true;
                continue;
            }
            if is_over(&ended)? || self.has_ended(row.sequence, &address)? {
                return Ok(());
            }
            self.end(&ended, address)?;
            self.audit.push(supersession(&head, &address, author, vec!["withdrawal"], false));
            return Ok(());
        }
        self.review(row.sequence, is_doubtful)
    }

    /// Whether a withdrawal is among the versions that came after a grant: it ended one of them, and what
    /// came after it was granted again.
    pub(super) fn has_ended(&self, grant: Sequence, withdrawal: &ContentAddress) -> Result<bool> {
        let mut known = HashMap::new();
        Ok(self.leads_to(grant, withdrawal, &mut known)? == Some(true))
    }

    /// Where the withdrawals lie that name this grant, the first that was written first.
    fn withdrawals_of(&self, grant: &ContentAddress) -> Result<Vec<Sequence>> {
        let digits = grant.to_string();
        let shape = Shape::Value(Field::PriorConsent, digits.as_str().into());
        let index = self.view.index();
        let found = index.scan(&Scope::All, &shape, TimeRange::default(), Order::Newest)?;
        let mut places = Vec::new();
        for posting in found {
            let at = posting?.sequence;
            if !self.view.is_erased(at)? {
                places.push(at);
            }
        }
        places.sort_unstable();
        places.extend(self.withdrawals.get(grant).into_iter().flatten());
        Ok(places)
    }

    /// What a withdrawal ends that names this grant: its last version; and whether it may. Where it does
    /// not even fit the grant it names, that grant.
    ///
    /// # Errors
    /// `ERR_LIMIT` for one that was renewed too often.
    pub(super) fn ended_by(
        &self,
        grant: ContentAddress,
        row: Row,
        withdrawal: &Grain,
    ) -> Result<(ContentAddress, Row, Result<()>)> {
        if let Err(error) = check_named(&row, withdrawal) {
            return Ok((grant, row, Err(error)));
        }
        let (head, row) = self.renewed(grant, row)?;
        let fits = check_parties(&row, withdrawal);
        Ok((head, row, fits))
    }

    /// What has become of a grant: its last version that is here, whoever sees that.
    fn renewed(&self, grant: ContentAddress, row: Row) -> Result<(ContentAddress, Row)> {
        let (mut head, mut row) = (grant, row);
        for _ in 0..MAX_RENEWALS {
            let Some(next) = row.state.superseded_by else { return Ok((head, row)) };
            // A file may state a successor that it does not bring.
            let Some(renewed) = self.find(&next)? else { return Ok((head, row)) };
            (head, row) = (next, renewed);
        }
        let message = format!("it was renewed more than {MAX_RENEWALS} times");
        Err(Error::new(ErrorKind::Limit, message)
            .with_hint("name the last version of the grant in prior_consent"))
    }

    /// The refusal of a withdrawal; one by other parties is in the audit log with it.
    fn not_withdrawn(
        &mut self,
        grant: &ContentAddress,
        withdrawal: &ContentAddress,
        author: &Author,
        error: Error,
    ) -> Result<Error> {
        if error.kind() != ErrorKind::InvalidationDenied {
            return Ok(error);
        }
        let rule = Rule::WithdrawalByOthers.row();
        self.audit.push(supersession(grant, withdrawal, author, vec![rule.name], true));
        let message = format!("cannot withdraw {}: {}", self.name_for(grant, author)?, rule.text);
        Ok(Error::new(ErrorKind::InvalidationDenied, message))
    }
}

/// The grant that a withdrawal names.
pub(super) fn withdrawn_by(grain: &Grain) -> Option<ContentAddress> {
    let withdraws = grain.grain_type() == GrainType::Consent && grain.flag("is_withdrawal")?;
    withdraws.then(|| grain.text("prior_consent"))?.and_then(|grant| grant.parse().ok())
}

/// Whether the last version of a grant ended already: what was withdrawn before stays so.
pub(super) fn is_over(head: &Row) -> Result<bool> {
    let ended = head.state.superseded_by.is_some();
    Ok(ended || with_fields(&head.blob, |grain| Ok(is_withdrawal(grain)))?)
}

/// Checks that a withdrawal fits the grain it names: a grant of consent between the same two.
///
/// # Errors
/// `ERR_SCHEMA` for what is no grant; `ERR_INVALIDATION_DENIED` for one between others.
pub(super) fn check_named(named: &Row, withdrawal: &Grain) -> Result<()> {
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

/// Checks that a withdrawal is between the same two as a consent.
fn check_parties(consent: &Row, withdrawal: &Grain) -> Result<()> {
    let between_them = with_fields(&consent.blob, |stored| {
        let same = |name: &str| stored.text(name) == withdrawal.text(name);
        Ok(same("subject_did") && same("grantee_did"))
    })?;
    if between_them {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidationDenied, Rule::WithdrawalByOthers.row().text))
}

/// What an audit entry is told where the subject or the operator grants anew what was withdrawn.
pub(crate) const GRANTED_ANEW: &str = "granted_anew";

/// Whether a consent is withdrawn by somebody else than the two it is between, without a signature
/// of the one who gave it. It is honoured all the same, and somebody should look at it.
pub(super) fn is_by_third_party(withdrawal: &Grain, signer: Option<&str>, author: &Author) -> bool {
    !is_said_by(withdrawal, signer, author, &["subject_did", "grantee_did"])
}

/// Whether a grant takes the place of a withdrawal, and its subject or the operator gives it.
pub(super) fn is_granted_anew(
    old: &Row,
    new: &Grain,
    signer: Option<&str>,
    author: &Author,
) -> Result<bool> {
    let withdrawn = with_fields(&old.blob, |stored| {
        Ok(stored.grain_type() == GrainType::Consent && is_withdrawal(stored))
    })?;
    let grants = new.grain_type() == GrainType::Consent && new.flag("is_withdrawal") != Some(true);
    Ok(withdrawn
        && grants
        && check_parties(old, new).is_ok()
        && is_said_by(new, signer, author, &["subject_did"]))
}

/// Whether a consent is the word of the operator, of one of these parties to it, or signed by its subject.
fn is_said_by(consent: &Grain, signer: Option<&str>, author: &Author, parties: &[&str]) -> bool {
    let is = |who: &str, name: &str| consent.text(name).is_some_and(|party| same_did(party, who));
    let signed = signer.is_some_and(|who| is(who, "subject_did"));
    let actor = author.actor.as_deref();
    let is_party = actor.is_some_and(|who| parties.iter().any(|name| is(who, name)));
    // Who counts as the operator because the host named none is looked at all the same.
    signed || is_party || author.standing == Standing::Operator
}
