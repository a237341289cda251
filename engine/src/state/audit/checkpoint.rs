//! Checkpoints: the signed head of the audit chain, to be stored outside the reach of the store's host.
//!
//! An attacker with the file can rewrite the whole chain, head included, but cannot make it contain a head
//! that was recorded elsewhere before.

use data_encoding::{BASE64, HEXLOWER};
use grainstore_format::EpochMs;
use grainstore_format::cose::{
    Did, DidResolver, SignatureVerdict, SigningKey, sign_detached, verify_detached,
};
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::AuditHead;
use crate::state::view::View;

/// The signed end of a store's audit chain at some time, made by
/// [`Store::checkpoint`](crate::Store::checkpoint).
///
/// In JSON `store` is 32 and `head` 64 hex digits, `proof` base64. The proof is a COSE_Sign1 without payload
/// over `"grainstore-checkpoint-v1"`, the store id (16 bytes), the number of entries (u64), the head (32
/// bytes) and the time (epoch ms, i64).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    store: String,
    entries: u64,
    head: String,
    time_ms: i64,
    signer: String,
    proof: String,
}

/// The signed fields of a checkpoint, decoded.
pub(crate) struct CheckpointStatement {
    pub(crate) store: [u8; 16],
    pub(crate) head: AuditHead,
}

impl Checkpoint {
    /// Signs the given head of a store's audit chain.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn sign(
        view: &View,
        head: AuditHead,
        time: EpochMs,
        key: Option<&SigningKey>,
    ) -> Result<Self> {
        let said = CheckpointStatement { store: view.store_id()?, head };
        let own = view.chain_before_genesis()?.checkpoint_key();
        let key = key.unwrap_or(&own);
        Ok(Self {
            store: HEXLOWER.encode(&said.store),
            entries: said.head.count,
            head: HEXLOWER.encode(&said.head.hash),
            time_ms: time.get(),
            signer: key.did().to_string(),
            proof: BASE64.encode(&sign_detached(&said.message(time), key)?),
        })
    }

    /// Returns the signed head after verifying the proof.
    ///
    /// # Errors
    /// `ERR_SIGNATURE`, `ERR_SCHEMA`.
    pub(crate) fn verified_head(&self, resolver: &dyn DidResolver) -> Result<AuditHead> {
        let said = self.statement()?;
        self.check_proof(&said, resolver)?;
        Ok(said.head)
    }

    /// Refuses one of another store, and one that somebody else than this store has signed. That its proof
    /// holds is for [`Checkpoint::verified_head`] to say.
    ///
    /// # Errors
    /// `ERR_CONFLICT`, `ERR_SIGNATURE`, `ERR_SCHEMA`; `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn check_own(&self, view: &View) -> Result<()> {
        if self.statement()?.store != view.store_id()? {
            let message = format!("the certificate is of another store, {}", self.store);
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("give it to the store it was made of, or to a copy of that one"));
        }
        let own = view.chain_before_genesis()?.checkpoint_key().did();
        match own.to_string() == self.signer {
            true => Ok(()),
            false => {
                Err(signature_error("the certificate was not signed by this store".to_owned()))
            }
        }
    }

    /// Number of entries in the chain.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The signer that the checkpoint names; [`Store::passes`](crate::Store::passes) verifies the signature.
    /// The caller decides whether to trust the signer: the store's own key is available to any holder of the
    /// file.
    #[must_use]
    pub fn signer(&self) -> &str {
        &self.signer
    }

    /// The time that the checkpoint states.
    #[must_use]
    pub fn time(&self) -> EpochMs {
        EpochMs::new(self.time_ms)
    }

    pub(crate) fn statement(&self) -> Result<CheckpointStatement> {
        let malformed =
            || malformed_error("it is no checkpoint: store, head or proof is not written as one");
        let hex = |text: &str| HEXLOWER.decode(text.as_bytes()).map_err(|_| malformed());
        let store = hex(&self.store)?.try_into().map_err(|_| malformed())?;
        let hash = hex(&self.head)?.try_into().map_err(|_| malformed())?;
        Ok(CheckpointStatement { store, head: AuditHead { count: self.entries, hash } })
    }

    pub(crate) fn check_proof(
        &self,
        said: &CheckpointStatement,
        resolver: &dyn DidResolver,
    ) -> Result<()> {
        let signer: Did = self.signer.parse()?;
        let proof = BASE64.decode(self.proof.as_bytes());
        let proof = proof.map_err(|_| malformed_error("the proof of a checkpoint is base64"))?;
        match verify_detached(&proof, &said.message(self.time()), resolver) {
            SignatureVerdict::Valid(did) if did == signer => Ok(()),
            SignatureVerdict::Valid(did) => {
                Err(signature_error(format!("it was signed by {did}, not by its signer")))
            }
            SignatureVerdict::Invalid(why) | SignatureVerdict::Unverifiable(why) => {
                Err(signature_error(format!("its proof does not hold: {why}")))
            }
        }
    }
}

impl CheckpointStatement {
    fn message(&self, time: EpochMs) -> Vec<u8> {
        let AuditHead { count, hash } = &self.head;
        let (count, time) = (count.to_be_bytes(), time.get().to_be_bytes());
        [&b"grainstore-checkpoint-v1"[..], &self.store, &count, hash, &time].concat()
    }
}

pub(crate) fn malformed_error(message: &str) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
    Error::new(kind, message).with_hint("give one that `grain audit --checkpoint` has printed")
}

fn signature_error(message: String) -> Error {
    Error::new(ErrorKind::Signature, message)
}
