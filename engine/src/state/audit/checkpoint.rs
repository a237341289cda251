//! Checkpoints: the head of the audit chain, signed, to be kept where the store's host cannot write.
//!
//! Whoever has the file can write the whole chain again, head included. What they cannot do is make
//! it go through a head that was noted elsewhere before.

use data_encoding::{BASE64, HEXLOWER};
use grainstore_format::EpochMs;
use grainstore_format::cose::{
    Did, DidResolver, SigningKey, Verdict, sign_detached, verify_detached,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keys::AuditHead;
use crate::handle::store::Store;
use crate::operate::maintain::Problem;
use crate::state::view::View;

/// Where the audit chain of a store ended at some time, signed.
///
/// In JSON `store` is 32 and `head` 64 hex digits, `proof` base64. The proof is a COSE_Sign1
/// without payload over `"grainstore-checkpoint-v1"`, the store id (16 bytes), the number of
/// entries (u64), the head (32 bytes) and the time (epoch ms, i64).
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

/// What a checkpoint says, as bytes.
struct Said {
    store: [u8; 16],
    head: AuditHead,
}

impl Store {
    /// Signs where the audit chain ends now. Without a key of the host's it is signed with one that
    /// is derived from a secret in the store.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn checkpoint(&self, key: Option<&SigningKey>) -> Result<Checkpoint> {
        let view = self.inner().view()?;
        Checkpoint::of(&view, view.audit_head()?, self.inner().clock().now(), key)
    }

    /// Whether the audit chain still goes through a checkpoint of this store; if not, the problem.
    ///
    /// It compares the one entry the checkpoint names; that those before it are linked to it is for
    /// [`Store::verify`] to say.
    ///
    /// # Errors
    /// `ERR_SIGNATURE` for a checkpoint whose proof is not by its signer, or whose signer's key
    /// cannot be found; `ERR_SCHEMA` for one that is malformed; `ERR_CONFLICT` for one of another
    /// store; `ERR_IO`, `ERR_INTEGRITY`.
    pub fn passes(&self, checkpoint: &Checkpoint) -> Result<Option<Problem>> {
        let said = checkpoint.said()?;
        checkpoint.check_proof(&said, self.inner().resolver())?;
        let view = self.inner().view()?;
        if said.store != view.store_id()? {
            let message = format!(
                "it is a checkpoint of another store, {}; this one is {}",
                HEXLOWER.encode(&said.store),
                HEXLOWER.encode(&view.store_id()?)
            );
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("give it to the store it was made of, or to a copy of that one"));
        }
        goes_through(&view, &said.head)
    }
}

impl Checkpoint {
    /// Signs where the audit chain of a store ended.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn of(
        view: &View,
        head: AuditHead,
        time: EpochMs,
        key: Option<&SigningKey>,
    ) -> Result<Self> {
        let said = Said { store: view.store_id()?, head };
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

    /// The hash of the last entry, where its signer has signed it.
    ///
    /// # Errors
    /// `ERR_SIGNATURE`, `ERR_SCHEMA`.
    pub(crate) fn proven(&self, resolver: &dyn DidResolver) -> Result<AuditHead> {
        let said = self.said()?;
        self.check_proof(&said, resolver)?;
        Ok(said.head)
    }

    /// How many entries the chain had.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Who signed it, as it says; [`Store::passes`] checks that they did. Whether to trust them is for
    /// whoever asks: the store's own key is in the hands of whoever has the file.
    #[must_use]
    pub fn signer(&self) -> &str {
        &self.signer
    }

    /// When it was made, as it says.
    #[must_use]
    pub fn time(&self) -> EpochMs {
        EpochMs::new(self.time_ms)
    }

    fn said(&self) -> Result<Said> {
        let malformed =
            || schema("it is no checkpoint: store, head or proof is not written as one");
        let hex = |text: &str| HEXLOWER.decode(text.as_bytes()).map_err(|_| malformed());
        let store = hex(&self.store)?.try_into().map_err(|_| malformed())?;
        let hash = hex(&self.head)?.try_into().map_err(|_| malformed())?;
        Ok(Said { store, head: AuditHead { count: self.entries, hash } })
    }

    fn check_proof(&self, said: &Said, resolver: &dyn DidResolver) -> Result<()> {
        let signer: Did = self.signer.parse()?;
        let proof = BASE64.decode(self.proof.as_bytes());
        let proof = proof.map_err(|_| schema("the proof of a checkpoint is base64"))?;
        match verify_detached(&proof, &said.message(self.time()), resolver) {
            Verdict::Valid(did) if did == signer => Ok(()),
            Verdict::Valid(did) => {
                Err(signature(format!("it was signed by {did}, not by its signer")))
            }
            Verdict::Invalid(why) | Verdict::Unverifiable(why) => {
                Err(signature(format!("its proof does not hold: {why}")))
            }
        }
    }
}

impl Said {
    fn message(&self, time: EpochMs) -> Vec<u8> {
        let AuditHead { count, hash } = &self.head;
        let (count, time) = (count.to_be_bytes(), time.get().to_be_bytes());
        [&b"grainstore-checkpoint-v1"[..], &self.store, &count, hash, &time].concat()
    }
}

/// Whether the last entry a head counts is still there and still the same.
fn goes_through(view: &View, head: &AuditHead) -> Result<Option<Problem>> {
    let Some(last) = head.count.checked_sub(1) else {
        return Err(schema("a checkpoint counts at least the genesis of a chain"));
    };
    let problem = |detail: String| Some(Problem::of_audit(last, detail));
    let Some(entry) = view.audit()?.get(last)? else {
        let count = view.audit_len()?;
        return Ok(problem(format!(
            "the checkpoint counts {} entries, the chain {count}",
            head.count
        )));
    };
    Ok(match <[u8; 32]>::from(Sha256::digest(entry.value())) == head.hash {
        true => None,
        false => problem("it is not the entry the checkpoint was made of".to_owned()),
    })
}

fn schema(message: &str) -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
    Error::new(kind, message).with_hint("give one that `grain audit --checkpoint` has printed")
}

fn signature(message: String) -> Error {
    Error::new(ErrorKind::Signature, message)
}
