//! The JSON form of an audit entry.

use grainstore::{AuditEntry, AuditedCall, ContentAddress};
use serde::Serialize;

/// An entry of the audit log.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// for entry in session.audit(None, 10)? {
///     let answer = serde_json::to_value(grainstore_rpc::AuditAnswer::from(entry))?;
///     assert_eq!(answer["operation"], "create");
/// }
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct AuditAnswer {
    /// Without its call.
    #[serde(flatten)]
    entry: AuditEntry,
    /// The reason of a refusal, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    /// The CAL call it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallAnswer>,
}

/// A CAL call, in its audit entry.
#[derive(Debug, Serialize)]
struct CallAnswer {
    #[serde(flatten)]
    call: AuditedCall,
    #[serde(flatten)]
    write: Option<WriteAnswer>,
}

/// The write of a call, in its audit entry (CAL 21).
#[derive(Debug, Serialize)]
struct WriteAnswer {
    operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_hash: Option<ContentAddress>,
    new_hash: ContentAddress,
}

impl WriteAnswer {
    /// Returns the write of an entry, `None` if it records none that was done.
    fn of(entry: &AuditEntry) -> Option<Self> {
        let operation = entry.call.as_ref()?.statement.clone()?;
        let (target_hash, new_hash) = match (operation.as_str(), entry.subjects.as_slice()) {
            ("add", [new]) => (None, *new),
            ("supersede" | "revert", [old, new]) => (Some(*old), *new),
            _ => return None,
        };
        (entry.decision == "done").then_some(Self { operation, target_hash, new_hash })
    }
}

impl From<AuditEntry> for AuditAnswer {
    fn from(mut entry: AuditEntry) -> Self {
        let (write, why) = (WriteAnswer::of(&entry), entry.why());
        let call = entry.call.take().map(|call| CallAnswer { call, write });
        Self { entry, why, call }
    }
}
