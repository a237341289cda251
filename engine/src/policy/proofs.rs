//! Where signatures become facts: who signed validly, and nothing else, reaches a decision.
//!
//! Called on the caller's thread, before the writer sees a request.

use grainstore_format::cose::{DidResolver, Verdict, proof, verify_detached};
use grainstore_format::{ContentAddress, Grain, Value};

use super::facts::Act;
use crate::error::Result;

/// Signatures of one `supersession_auth` that are looked at.
const MAX_COSIGNATURES: usize = 1024;

/// Who signed validly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proofs {
    /// The signer of the superseding grain, or of the call where there is none.
    pub(crate) signer: Option<String>,
    /// The signers of `supersession_auth`, each as often as it signed.
    pub(crate) cosigners: Vec<String>,
}

/// Who agrees, in the `supersession_auth` of a grain, that it supersedes `old`. Signatures that do
/// not verify count nothing (OMS 23.2).
///
/// # Errors
/// Those of encoding the grain without that field.
pub(crate) fn cosigners(
    old: &ContentAddress,
    new: &Grain,
    resolver: &dyn DidResolver,
) -> Result<Vec<String>> {
    let Some(entries) = new.list("supersession_auth").filter(|entries| !entries.is_empty()) else {
        return Ok(Vec::new());
    };
    let message = proof::supersede(old, proof::without_auth(new)?.bytes());
    let entries = entries.iter().take(MAX_COSIGNATURES);
    let valid = entries.filter_map(|entry| match entry {
        Value::Bytes(cose) => signer_of(cose, &message, resolver),
        _ => None,
    });
    Ok(valid.collect())
}

/// Who signed a call about a grain that writes no other: `cose` is a COSE_Sign1 without a payload.
pub(crate) fn of_call(
    act: Act,
    address: &ContentAddress,
    cose: Option<&[u8]>,
    resolver: &dyn DidResolver,
) -> Proofs {
    let message = match act {
        Act::Contradict => proof::contradict(address),
        Act::Contest => proof::contest(address),
        Act::Retract => proof::retract(address),
        Act::LiftHold => proof::lift_hold(address),
        // A supersession is signed in its successor, and nobody has to sign a word in favour.
        Act::Supersede | Act::Verify => return Proofs::default(),
    };
    let signer = cose.and_then(|cose| signer_of(cose, &message, resolver));
    Proofs { signer, cosigners: Vec::new() }
}

fn signer_of(cose: &[u8], message: &[u8], resolver: &dyn DidResolver) -> Option<String> {
    match verify_detached(cose, message, resolver) {
        Verdict::Valid(did) => Some(did.as_str().to_owned()),
        Verdict::Invalid(_) | Verdict::Unverifiable(_) => None,
    }
}
