//! Verification of signatures into facts: only the names of valid signers reach a decision. The reason why
//! one is not valid is kept for the message of a refusal.
//!
//! Runs on the caller's thread, before the writer sees a request.

use grainstore_format::cose::{DidResolver, SignatureVerdict, proof, verify_detached};
use grainstore_format::{ContentAddress, Grain, Value};

use super::facts::PolicyAction;
use crate::base::error::{Error, Result};

/// Maximum number of signatures of one `supersession_auth` that are verified.
pub(super) const MAX_COSIGNATURES: usize = 1024;
/// Maximum length of a failure reason in a message, in characters.
const MAX_REASON_CHARS: usize = 240;

/// Valid signers of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proofs {
    /// The signer of the superseding grain, or of the call if there is none.
    pub(crate) signer: Option<String>,
    /// The signers of `supersession_auth`, once per signature.
    pub(crate) cosigners: Vec<String>,
    /// The first proof that failed, to be reported if the attempt is refused.
    pub(crate) failure: Option<Box<ProofFailure>>,
}

/// The failure of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProofFailure {
    why: String,
    /// The claimed key id, for the audit log.
    claimed_kid: Option<String>,
    /// True if it could not be checked, such as where its key was not found.
    is_unchecked: bool,
}

impl Proofs {
    /// Converts the verdict on an envelope or a proof.
    pub(crate) fn from_verdict(
        verdict: SignatureVerdict,
        kid: impl FnOnce() -> Option<String>,
    ) -> Self {
        match verdict {
            SignatureVerdict::Valid(did) => {
                Self { signer: Some(did.to_string()), ..Self::default() }
            }
            SignatureVerdict::Invalid(why) => Self::failed(&why, kid(), false),
            SignatureVerdict::Unverifiable(why) => Self::failed(&why, kid(), true),
        }
    }

    fn failed(why: &str, claimed_kid: Option<String>, is_unchecked: bool) -> Self {
        let failure = ProofFailure { why: truncate_reason(why), claimed_kid, is_unchecked };
        Self { failure: Some(Box::new(failure)), ..Self::default() }
    }

    /// Returns `true` if the first proof that failed could not be checked.
    pub(crate) fn is_unchecked(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.is_unchecked)
    }

    /// Returns the key id for the entry of a refusal: the claimed one of the first failed proof, else the
    /// signer of a valid one, which was not enough.
    pub(crate) fn claimed_kid(&self) -> Option<String> {
        let failed = self.failure.as_ref().and_then(|failure| failure.claimed_kid.clone());
        failed.or_else(|| self.signer.clone()).or_else(|| self.cosigners.first().cloned())
    }

    /// Adds the reason why a proof failed to a refusal.
    pub(crate) fn add_failure_reason(&self, refusal: Error) -> Error {
        match &self.failure {
            None => refusal,
            Some(flaw) => {
                refusal.with_suffix(&format!("; a proof given does not hold: {}", flaw.why))
            }
        }
    }
}

/// Returns the valid signers of a grain's `supersession_auth` for superseding `old`.
///
/// # Errors
/// The errors of [`verify_supersession_auth`].
pub(crate) fn verified_cosigners(
    old: &ContentAddress,
    new: &Grain,
    resolver: &dyn DidResolver,
) -> Result<Vec<String>> {
    Ok(verify_supersession_auth(old, new, resolver)?.cosigners)
}

/// Verifies the `supersession_auth` of a grain for superseding `old`. Signatures that do not verify are
/// ignored (OMS 23.2).
///
/// # Errors
/// Those of encoding the grain without that field.
pub(crate) fn verify_supersession_auth(
    old: &ContentAddress,
    new: &Grain,
    resolver: &dyn DidResolver,
) -> Result<Proofs> {
    let mut proofs = Proofs::default();
    let Some(entries) = new.list("supersession_auth").filter(|entries| !entries.is_empty()) else {
        return Ok(proofs);
    };
    let message = proof::supersede_message(old, proof::without_auth(new)?.bytes());
    for entry in entries.iter().take(MAX_COSIGNATURES) {
        let verdict = match entry {
            Value::Bytes(cose) => verify_detached(cose, &message, resolver),
            _ => SignatureVerdict::Invalid("an entry of supersession_auth is not bytes".to_owned()),
        };
        let kid = || match entry {
            Value::Bytes(cose) => proof::claimed_signer(cose),
            _ => None,
        };
        let one = Proofs::from_verdict(verdict, kid);
        proofs.cosigners.extend(one.signer);
        proofs.failure = proofs.failure.or(one.failure);
    }
    Ok(proofs)
}

/// Verifies the signature of a call that writes no grain: `cose` is a COSE_Sign1 without a payload.
pub(crate) fn verify_call_signature(
    act: PolicyAction,
    address: &ContentAddress,
    cose: Option<&[u8]>,
    resolver: &dyn DidResolver,
) -> Proofs {
    let message = match act {
        PolicyAction::Contradict => proof::contradict_message(address),
        PolicyAction::Contest => proof::contest_message(address),
        PolicyAction::Retract => proof::retract_message(address),
        PolicyAction::LiftHold => proof::lift_hold_message(address),
        // A supersession is signed in its successor, and a more favourable status needs no signature.
        PolicyAction::Supersede | PolicyAction::Verify | PolicyAction::Review => {
            return Proofs::default();
        }
    };
    let Some(cose) = cose else { return Proofs::default() };
    let verdict = verify_detached(cose, &message, resolver);
    Proofs::from_verdict(verdict, || proof::claimed_signer(cose))
}

/// Truncates a reason for a message: it may quote a DID of any length.
fn truncate_reason(why: &str) -> String {
    match why.char_indices().nth(MAX_REASON_CHARS) {
        None => why.to_owned(),
        Some((cut, _)) => format!("{}...", why.get(..cut).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    #[test]
    fn a_refusal_tells_the_first_proof_that_does_not_hold_and_no_more_than_a_line_of_it() {
        let refusal = || Error::new(ErrorKind::InvalidationDenied, "no");
        assert_eq!(Proofs::default().add_failure_reason(refusal()).to_string(), "no");
        let long = format!("the key of did:web:{} cannot be found", "é".repeat(2000));
        for (verdict, end) in [
            (SignatureVerdict::Invalid("bad".to_owned()), "does not hold: bad"),
            (SignatureVerdict::Unverifiable("far".to_owned()), "does not hold: far"),
            (SignatureVerdict::Unverifiable(long), "éé..."),
        ] {
            let told =
                Proofs::from_verdict(verdict, || None).add_failure_reason(refusal()).to_string();
            assert!(told.starts_with("no; a proof given does not hold: "), "{told}");
            assert!(told.ends_with(end) && told.chars().count() < 300, "{told}");
        }
        let entries = vec![Value::Bytes(b"first".to_vec()), Value::Bytes(vec![0; 70_000])];
        let mut fields = Grain::from_json(
            r#"{"type": "belief", "subject": "s", "relation": "r", "object": "o",
                "confidence": 1, "created_at": 0}"#,
        )
        .unwrap()
        .into_fields();
        fields.insert("supersession_auth".to_owned(), Value::Array(entries));
        let grain = Grain::from_fields(fields).unwrap();
        let old = ContentAddress::from_bytes([1; 32]);
        let proofs =
            verify_supersession_auth(&old, &grain, &grainstore_format::OfflineResolver).unwrap();
        assert_eq!(
            proofs.failure.as_ref().map(|flaw| &*flaw.why),
            Some("these bytes are no COSE_Sign1")
        );
    }
}
