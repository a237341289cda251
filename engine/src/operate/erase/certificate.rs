//! The certificate of an erasure: an audit entry and a signed checkpoint that ends with it, which can be
//! verified without the store.

use data_encoding::{BASE64, HEXLOWER};
use grainstore_format::cose::DidResolver;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};
use crate::state::audit::{AuditEntry, Checkpoint};

/// Proof that an erasure is in the audit chain of a store.
///
/// ```
/// use grainstore::EraseOptions;
/// use grainstore::format::OfflineResolver;
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
///
/// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9).user_id("ann");
/// session.put(grain.build()?)?;
/// let done = session.erase_user("ann", "she asked for it", &EraseOptions::new())?;
/// let certificate = done.certificate.ok_or("nothing was erased")?;
/// let entry = certificate.verify(&OfflineResolver)?;
/// assert_eq!((entry.operation.as_str(), entry.sequence), ("erase_user", certificate.sequence));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ErasureCertificate {
    /// Sequence of its audit entry.
    pub sequence: u64,
    /// The SHA-256 of the entry, 64 hex digits.
    pub hash: String,
    /// The entry itself, canonical MessagePack in base64.
    pub entry: String,
    /// The signed head of the chain when this was its last entry.
    pub checkpoint: Checkpoint,
}

impl ErasureCertificate {
    pub(super) fn new(sequence: u64, entry: &[u8], checkpoint: Checkpoint) -> Self {
        let hash = HEXLOWER.encode(&Sha256::digest(entry));
        Self { sequence, hash, entry: BASE64.encode(entry), checkpoint }
    }

    /// Verifies the signature of the checkpoint, and that it ends with the entry, which is returned. The
    /// caller decides whether to trust the signer.
    ///
    /// # Errors
    /// `ERR_SIGNATURE` for an invalid signature; `ERR_SCHEMA` for parts that do not belong together.
    pub fn verify(&self, resolver: &dyn DidResolver) -> Result<AuditEntry> {
        let head = self.checkpoint.verified_head(resolver)?;
        let entry = BASE64.decode(self.entry.as_bytes()).map_err(|_| certificate_error())?;
        let hash: [u8; 32] = Sha256::digest(&entry).into();
        let told = AuditEntry::decode(&entry).map_err(|_| certificate_error())?;
        let fits = hash == head.hash
            && HEXLOWER.encode(&hash) == self.hash
            && told.sequence == self.sequence
            && head.count.checked_sub(1) == Some(self.sequence);
        fits.then_some(told).ok_or_else(certificate_error)
    }
}

fn certificate_error() -> Error {
    let kind = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
    Error::new(kind, "entry, hash and checkpoint of this certificate do not fit together")
        .with_hint("give one as an erasure has answered it")
}
