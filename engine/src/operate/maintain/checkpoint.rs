//! Makes checkpoints of a store, and compares its audit chain with one.

use data_encoding::HEXLOWER;
use grainstore_format::cose::SigningKey;
use sha2::{Digest, Sha256};

use super::Problem;
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::AuditHead;
use crate::handle::store::Store;
use crate::state::audit::{Checkpoint, checkpoint_schema as schema};
use crate::state::view::View;

impl Store {
    /// Signs the current end of the audit chain. Without a key of the host's it is signed with one derived
    /// from a secret in the store.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let checkpoint = store.checkpoint(None)?; // keep it elsewhere
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// assert!(store.passes(&checkpoint)?.is_none(), "the log has grown, and nothing else");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn checkpoint(&self, key: Option<&SigningKey>) -> Result<Checkpoint> {
        let view = self.inner().view()?;
        Checkpoint::sign(&view, view.audit_head()?, self.inner().clock().now(), key)
    }

    /// Checks that the audit chain still contains a checkpoint of this store. Returns the problem if it does
    /// not. [`Store::checkpoint`] makes one.
    ///
    /// Only the entry named by the checkpoint is compared; [`Store::verify`] checks that those before it are
    /// linked to it.
    ///
    /// # Errors
    /// `ERR_SIGNATURE` for a checkpoint whose proof is not by its signer, or whose signer's key cannot be
    /// found; `ERR_SCHEMA` for one that is malformed; `ERR_CONFLICT` for one of another store; `ERR_IO`,
    /// `ERR_INTEGRITY`.
    pub fn passes(&self, checkpoint: &Checkpoint) -> Result<Option<Problem>> {
        let said = checkpoint.statement()?;
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
        check_inclusion(&view, &said.head)
    }
}

/// Compares the last entry counted by a head with the stored one. Returns the problem if it is gone or
/// differs.
fn check_inclusion(view: &View, head: &AuditHead) -> Result<Option<Problem>> {
    let Some(last) = head.count.checked_sub(1) else {
        return Err(schema("a checkpoint counts at least the genesis of a chain"));
    };
    let problem = |detail: String| Some(Problem::in_audit_entry(last, detail));
    let Some(entry) = view.audit_rows()?.get(last)? else {
        let count = view.audit_len()?;
        return Ok(problem(format!(
            "the checkpoint counts {} entries, the chain {count}",
            head.count
        )));
    };
    Ok(match <[u8; 32]>::from(Sha256::digest(&entry)) == head.hash {
        true => None,
        false => problem("it is not the entry the checkpoint was made of".to_owned()),
    })
}
