//! Self-checks of the newest grains of this store as CAL returns them.

use grainstore_cal::{AdmissionGate, Answer, RecallAnswer, Tier, WriteLimits};
use grainstore_format::{BeliefBuilder, ContentAddress, Encoding, Grain};

use super::{SelfCheckContext, SelfCheckOutcome, params, query_failed};
use crate::read::calls::CallGate;
use crate::state::consent::{ConsentLookup, parse_basis_address};

/// Reads the newest grains, a sample of which is checked.
const NEWEST_QUERY: &str = "RECALL LIMIT 100";

impl SelfCheckContext {
    /// The newest grains, as CAL returns them.
    fn newest(&self) -> Result<Vec<(ContentAddress, Grain)>, grainstore_cal::Error> {
        let answer = self.ask(NEWEST_QUERY, params(&[])?)?;
        let Answer::Grains(RecallAnswer { results, .. }) = answer.answer else {
            return Ok(Vec::new());
        };
        Ok(results.into_iter().map(|row| (row.content_address, row.grain)).collect())
    }
}

/// Checks that a query for a user finds all grains about that user.
pub(super) fn dsar_completeness(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let newest = match subject.newest() {
        Ok(newest) => newest,
        Err(error) => return query_failed(&error),
    };
    let users: Vec<_> = newest.iter().filter_map(|(_, grain)| grain.text("user_id")).collect();
    let Some(user) = users.iter().find(|user| !user.is_empty()) else {
        return Ok(Ok("none of the newest grains are about a person".to_owned()));
    };
    let seen = users.iter().filter(|other| other == &user).count();
    let bound = params(&[("user", user)]);
    let asked = bound.and_then(|bound| subject.ask("RECALL WHERE user_id = $user | COUNT", bound));
    match asked {
        Ok(answer) => match answer.answer {
            Answer::Count { count, .. } if count >= seen as u64 => {
                Ok(Ok(format!("asking for a person finds {count}, of the newest {seen}")))
            }
            _ => Ok(Err(format!("asking for a person finds fewer than the {seen} there are"))),
        },
        Err(error) => query_failed(&error),
    }
}

/// Checks that health data is not returned whole where the rules require the minimum necessary.
pub(super) fn hipaa_minimum_necessary(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let rules = subject.session.store().rules();
    if !rules.settings.phi_by_field.value {
        return Ok(Ok(format!("the rules of the store ({}) do not ask for it", rules.preset)));
    }
    let made = BeliefBuilder::new(subject.session.now(), "a", "has", "b", 1.0).build()?;
    let mut fields = made.into_fields();
    fields.insert("structural_tags".to_owned(), vec!["phi:condition".to_owned()].into());
    let grain = Grain::from_fields(fields)?;
    let guard = CallGate {
        session: &subject.session,
        token: None,
        is_prepare: true,
        requested_tier: Tier::Read,
    };
    match guard.admit_whole_grain(&grain) {
        Err(_) => Ok(Ok("health data is given out by named fields alone".to_owned())),
        Ok(()) => Ok(Err("health data is given out whole".to_owned())),
    }
}

/// Checks that writes through CAL have a limit per minute, no higher than the language's.
pub(super) fn rate_limiting(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let limits = subject.session.store().inner().writes().limits();
    let in_words = |of: &WriteLimits| {
        format!("ADD {}, SUPERSEDE {}, REVERT {}", of.adds, of.supersedes, of.reverts)
    };
    let told = format!("in a minute at most {}", in_words(&limits));
    let usual = WriteLimits::default();
    match limits.adds <= usual.adds
        && limits.supersedes <= usual.supersedes
        && limits.reverts <= usual.reverts
    {
        true => Ok(Ok(told)),
        false => {
            Ok(Err(format!("{told}, which is more than the language has: {}", in_words(&usual))))
        }
    }
}

/// Checks that the grains CAL returns can be stored elsewhere as the same grains.
pub(super) fn portability_format(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let newest = match subject.newest() {
        Ok(newest) => newest,
        Err(error) => return query_failed(&error),
    };
    let mut looked = 0_usize;
    for (address, grain) in &newest {
        let json = serde_json::to_string(grain).unwrap_or_default();
        let Ok(back) = Grain::from_json(&json) else {
            return Ok(Err(format!("the grain {address} is answered as what is no grain")));
        };
        let same = [Encoding::MessagePack, Encoding::Cbor]
            .into_iter()
            .any(|encoding| back.encode(encoding).is_ok_and(|blob| blob.address() == *address));
        // Compressed and encrypted payloads have other bytes, and so another address.
        looked += usize::from(same);
        if !same && &back != grain {
            return Ok(Err(format!("the grain {address} is answered as another")));
        }
    }
    Ok(Ok(format!("{looked} of the newest {} grains are the same when read back", newest.len())))
}

/// Checks that no grain is returned whose consent was withdrawn or has lapsed.
pub(super) fn consent_on_read(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let newest = match subject.newest() {
        Ok(newest) => newest,
        Err(error) => return query_failed(&error),
    };
    let mut looked = 0_usize;
    for (address, grain) in &newest {
        let basis = grain.text("processing_basis").unwrap_or_default();
        let Some(basis) = parse_basis_address(basis) else { continue };
        let Some(consent) = subject.view.consent_of(&basis)? else { continue };
        looked += 1;
        if consent.withdrawn || consent.is_lapsed(subject.session.now()) {
            return Ok(Err(format!("{address} is given out, and its consent does not hold")));
        }
    }
    Ok(Ok(format!("{looked} of the newest grains rest on a consent, which holds")))
}
