//! What went into a store or out of it in a neighbouring format, in the audit log.
//!
//! Knows names and numbers of them, not the formats.

use grainstore_format::{Map, Value};
use serde::Serialize;

/// Most bytes of the name of a format ([`Session::record_transfer`](crate::Session::record_transfer)).
pub const MAX_TRANSFER_FORMAT_BYTES: usize = 64;

/// What [`Session::record_transfer`](crate::Session::record_transfer) tells the audit log of.
///
/// ```
/// use grainstore::TransferKind;
///
/// assert_eq!(TransferKind::EvidenceExport.name(), "export_evidence");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransferKind {
    /// Evidence of the decisions of the store was handed on.
    EvidenceExport,
    /// An archive was written of the store, or of a part of it.
    ArchiveExport,
    /// An archive was taken into the store.
    ArchiveImport,
    /// Records were removed for good, from the store or from an archive.
    ArchivePurge,
}

impl TransferKind {
    /// Name of the operation in the audit log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EvidenceExport => "export_evidence",
            Self::ArchiveExport => "export_archive",
            Self::ArchiveImport => "import_archive",
            Self::ArchivePurge => "purge_archive",
        }
    }
}

/// The format, size and hash of a transfer, in its audit entry.
///
/// ```
/// use grainstore::TransferSummary;
///
/// let summary = TransferSummary::new("alf", 12).with_digest([7; 32]);
/// assert_eq!((summary.format.as_str(), summary.items), ("alf", 12));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TransferSummary {
    /// Short name of the format, such as `alf`.
    pub format: String,
    /// Number of records, documents or steps.
    pub items: u64,
    /// SHA-256 of the file, if there was one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "hex")]
    pub digest: Option<[u8; 32]>,
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference")]
fn hex<S: serde::Serializer>(digest: &Option<[u8; 32]>, to: S) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => super::hex(digest, to),
        None => to.serialize_none(),
    }
}

impl TransferSummary {
    /// A summary without a hash.
    pub fn new(format: impl Into<String>, items: u64) -> Self {
        Self { format: format.into(), items, digest: None }
    }

    /// Adds the SHA-256 of the file.
    #[must_use]
    pub fn with_digest(self, digest: [u8; 32]) -> Self {
        Self { digest: Some(digest), ..self }
    }

    pub(super) fn fields(&self) -> Map {
        let mut fields = Map::from([
            ("format".to_owned(), Value::from(self.format.as_str())),
            ("items".to_owned(), Value::from(self.items.min(i64::MAX.unsigned_abs()))),
        ]);
        if let Some(digest) = self.digest {
            fields.insert("digest".to_owned(), Value::Bytes(digest.to_vec()));
        }
        fields
    }

    pub(super) fn from_fields(fields: &Value) -> Option<Self> {
        let Value::Map(fields) = fields else { return None };
        let digest = match fields.get("digest") {
            None => None,
            Some(Value::Bytes(digest)) => Some(digest.as_slice().try_into().ok()?),
            Some(_) => return None,
        };
        Some(Self {
            format: fields.get("format")?.as_str()?.to_owned(),
            items: u64::try_from(fields.get("items")?.as_i64()?).ok()?,
            digest,
        })
    }
}
