//! What a file says of consents: it vouches for nobody, and is taken as somebody else's word (OMS 8.10).

use std::collections::{BTreeMap, BTreeSet};

use grainstore::format::{Envelope, GrainType};
use grainstore::{ContentAddress, ErrorKind, Grain, Session, SessionOptions};

use crate::error::{Error, Result};

/// Who writes what a file says of consents: nobody whose word counts as that of the operator or of a party.
const FILE: &str = "file";

/// A session that writes what a file says of consents. A withdrawal by it hides at once, and is marked for review.
pub(crate) fn outsider(session: &Session) -> Session {
    session.part(SessionOptions { actor: Some(FILE.to_owned()), ..session.options().clone() })
}

/// Returns `true` for a signature that is verified, and that of the subject of a consent.
pub(crate) fn is_signed_by_subject(
    session: &Session,
    consent: &Grain,
    envelope: Option<&Envelope>,
) -> bool {
    let Some(envelope) = envelope else { return false };
    let verdict = session.store().verdict(envelope);
    let is_same = |did: &str, other: &str| did.split('#').next() == other.split('#').next();
    let subject = consent.text("subject_did");
    verdict.did().zip(subject).is_some_and(|(did, subject)| is_same(did.as_str(), subject))
}

/// Returns `true` if the store has a consent, whatever became of it.
///
/// # Errors
/// Those of [`Session::inspect`].
pub(crate) fn is_here(session: &Session, consent: &ContentAddress) -> Result<bool> {
    match session.inspect(consent) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Withdrawn => Ok(true),
        Err(error) if [ErrorKind::NotFound, ErrorKind::Erased].contains(&error.kind()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns `true` for a consent that grants something, rather than taking it back.
pub(crate) fn is_grant(grain: &Grain) -> bool {
    grain.grain_type() == GrainType::Consent && grain.flag("is_withdrawal") != Some(true)
}

/// The consents that a consent names before it: those that it derives from, and the one that it withdraws or renews. `None`
/// for what is no address.
pub(crate) fn named_by(consent: &Grain) -> Vec<Option<ContentAddress>> {
    let prior = consent.text("prior_consent").into_iter();
    let named = consent.texts("derived_from").chain(prior);
    named.map(|text| text.strip_prefix("sha256:").unwrap_or(text).parse().ok()).collect()
}

/// The consents of a file of grains.
#[derive(Debug, Default)]
pub(crate) struct Consents(BTreeMap<ContentAddress, Consent>);

#[derive(Debug)]
struct Consent {
    named: Vec<Option<ContentAddress>>,
    is_grant: bool,
    is_signed: bool,
}

impl Consents {
    /// Notes a grain of the file, if it is a consent.
    pub(crate) fn add(
        &mut self,
        session: &Session,
        address: ContentAddress,
        grain: &Grain,
        envelope: Option<&Envelope>,
    ) {
        if grain.grain_type() == GrainType::Consent {
            let is_signed = is_signed_by_subject(session, grain, envelope);
            let consent = Consent { named: named_by(grain), is_grant: is_grant(grain), is_signed };
            self.0.insert(address, consent);
        }
    }

    /// Refuses a file with a grant that is not signed by its subject, and that would take the place of a consent of the store:
    /// one that it names, by others of the file or not. Returns `true` if a withdrawal in it does.
    ///
    /// # Errors
    /// `ERR_SIGNATURE`; those of [`Session::inspect`].
    pub(crate) fn check(&self, session: &Session) -> Result<bool> {
        let mut withdraws = false;
        for (address, consent) in self.0.iter().filter(|(_, consent)| !consent.is_signed) {
            // What is here already changes nothing.
            if is_here(session, address)? || !self.reaches(session, *address)? {
                continue;
            }
            if consent.is_grant {
                let message =
                    "a consent in it renews one that is here: who consents has to sign it";
                return Err(Error::new(ErrorKind::Signature, message));
            }
            withdraws = true;
        }
        Ok(withdraws)
    }

    /// Returns `true` if a consent of the file leads to one of the store in whose place it does not stand already.
    fn reaches(&self, session: &Session, from: ContentAddress) -> Result<bool> {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = next.pop() {
            let Some(consent) = self.0.get(&at) else { continue };
            for named in consent.named.iter().flatten() {
                match session.inspect(named) {
                    Ok(stored) if stored.grain()?.grain_type() != GrainType::Consent => continue,
                    Ok(stored) if stored.state.superseded_by == Some(at) => continue,
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    // Also one that was erased, or is not shown.
                    _ => return Ok(true),
                }
                if seen.insert(*named) {
                    next.push(*named);
                }
            }
        }
        Ok(false)
    }
}
