//! The withdrawal of consent, which waits for no policy (OMS 8.10; rulings 39 and 40 of the project's
//! reading).

use grainstore_format::{ContentAddress, GrainType};

use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Rule, same_did};
use crate::view::{Row, is_withdrawal, with_fields};

use super::replace::{Succession, supersession};
use super::{Author, Plan, Prepared, Put};

/// How many times a grant may have been renewed before it is withdrawn.
const MAX_RENEWALS: usize = 100_000;

impl Plan<'_> {
    /// Stores a withdrawal of consent and ends the grant it names, whatever the grant's policy says:
    /// a withdrawal never waits. One that was renewed is ended as it stands now. A grant the store
    /// does not have is withdrawn when it arrives, which is not built yet.
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
        let by_third_party = is_by_third_party(&new, author);
        let Some((prior, row)) = grant else {
            let sequence = self.stage(new, None)?;
            self.review(sequence, by_third_party)?;
            return Ok(Put::Added(address));
        };
        self.check_parties(&prior, &row, &new, author)?;
        let (head, row) = self.renewed(prior, row)?;
        self.check_parties(&head, &row, &new, author)?;
        let sequence = self.stage(new, Some(Succession::of(&head)))?;
        self.review(sequence, by_third_party)?;
        // What was withdrawn before stays so.
        if !with_fields(&row.blob, |head| Ok(is_withdrawal(head)))? {
            self.end(&row, address)?;
            self.audit.push(supersession(&head, &address, author, vec!["withdrawal"], false));
        }
        Ok(Put::Added(address))
    }

    /// What has become of a grant: its last version, whoever sees that.
    fn renewed(&self, grant: ContentAddress, row: Row) -> Result<(ContentAddress, Row)> {
        let (mut head, mut row) = (grant, row);
        for _ in 0..MAX_RENEWALS {
            let Some(next) = row.state.superseded_by else { return Ok((head, row)) };
            let Some(renewed) = self.find(&next)? else {
                return Err(Error::truth_damaged(format!(
                    "{next}, which replaces {head}, is gone"
                )));
            };
            (head, row) = (next, renewed);
        }
        let message = format!("it was renewed more than {MAX_RENEWALS} times");
        Err(Error::new(ErrorKind::Limit, message)
            .with_hint("name the last version of the grant in prior_consent"))
    }

    /// Checks that a withdrawal fits a grant: a consent between the same two.
    fn check_parties(
        &mut self,
        grant: &ContentAddress,
        row: &Row,
        withdrawal: &Prepared,
        author: &Author,
    ) -> Result<()> {
        let between_them = with_fields(&row.blob, |stored| {
            if stored.grain_type() != GrainType::Consent {
                let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
                return Err(Error::new(schema, "prior_consent names a grain that is no consent"));
            }
            let same = |name: &str| stored.text(name) == withdrawal.grain.text(name);
            Ok(same("subject_did") && same("grantee_did"))
        })?;
        if between_them {
            return Ok(());
        }
        let rule = Rule::WithdrawalByOthers.row();
        let address = withdrawal.blob.address();
        self.audit.push(supersession(grant, &address, author, vec![rule.name], true));
        let message = format!("cannot withdraw {}: {}", self.name_for(grant, author)?, rule.text);
        Err(Error::new(ErrorKind::InvalidationDenied, message))
    }
}

/// Whether a consent is withdrawn by somebody else than the two it is between, without a signature
/// of the one who gave it. It is honoured all the same, and somebody should look at it.
fn is_by_third_party(withdrawal: &Prepared, author: &Author) -> bool {
    let party = |name: &str| withdrawal.grain.text(name);
    let is = |who: &str, name: &str| party(name).is_some_and(|party| same_did(party, who));
    let signed = withdrawal.proofs.signer.as_deref().is_some_and(|who| is(who, "subject_did"));
    let actor = author.actor.as_deref();
    let is_party = actor.is_none_or(|who| is(who, "subject_did") || is(who, "grantee_did"));
    !signed && !is_party
}
