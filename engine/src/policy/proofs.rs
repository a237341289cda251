//! Where signatures become facts: who signed validly, and nothing else, reaches a decision.
//!
//! Called on the caller's thread, before the writer sees a request.

use grainstore_format::{ContentAddress, Grain};

use super::facts::Act;

/// Who signed validly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proofs {
    /// The signer of the superseding grain, or of the call where there is none.
    pub(crate) signer: Option<String>,
    /// The signers of `supersession_auth`, each as often as it signed.
    pub(crate) cosigners: Vec<String>,
}

/// Who signed a grain that is to supersede `old`.
pub(crate) fn of_successor(_old: &ContentAddress, _new: &Grain) -> Proofs {
    Proofs::default()
}

/// Who signed a call about a grain that writes no other: `proof` is a COSE_Sign1.
pub(crate) fn of_call(_act: Act, _address: &ContentAddress, _proof: Option<&[u8]>) -> Proofs {
    Proofs::default()
}
