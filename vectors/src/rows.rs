//! What a row holds. Grains stay JSON text, so that `1`, `1.0` and `-0.0` reach a codec as written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text;

/// The payload encoding of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowEncoding {
    /// Canonical MessagePack, the default of OMS 16.1.
    #[default]
    MsgPack,
    /// Deterministic CBOR of OMS 16.2.
    Cbor,
}

/// A grain and the blob it must encode to.
#[derive(Debug, Clone, Deserialize)]
pub struct EncodeRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The section of the standard or the reading of `README.md` it holds; empty in foreign rows.
    #[serde(default)]
    pub rule: String,
    grain: Box<RawValue>,
    decoded: Option<Box<RawValue>>,
    /// The encoding of the blob.
    #[serde(default)]
    pub encoding: RowEncoding,
    /// The content address: 64 lowercase hex digits.
    pub address: String,
    /// The bytes.
    #[serde(rename = "blob_hex", deserialize_with = "text::blob")]
    pub blob: Vec<u8>,
}

impl EncodeRow {
    /// The grain to encode, as JSON text with full field names.
    #[must_use]
    pub fn grain(&self) -> &str {
        self.grain.get()
    }

    /// The grain the blob reads back as: `grain` in canonical form (no null entries, NFC text,
    /// dates as milliseconds, numbers by the field table).
    #[must_use]
    pub fn decoded(&self) -> &str {
        self.decoded.as_ref().unwrap_or(&self.grain).get()
    }
}

/// A grain whose blob is told by size and address only.
#[derive(Debug, Clone, Deserialize)]
pub struct LargeRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The rule it holds.
    pub rule: String,
    /// The grain as JSON text.
    #[serde(deserialize_with = "text::text")]
    pub grain_text: String,
    /// The encoding of the blob.
    pub encoding: RowEncoding,
    /// The content address.
    pub address: String,
    /// The size of the blob in bytes, header included.
    pub size: usize,
}

/// JSON text that must be refused.
#[derive(Debug, Clone, Deserialize)]
pub struct RefuseEncodeRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The rule it breaks.
    pub rule: String,
    /// The text offered as a grain.
    #[serde(deserialize_with = "text::text")]
    pub grain_text: String,
    /// The error code, e.g. `ERR_SCHEMA`.
    pub code: String,
}

/// A blob that must be read.
#[derive(Debug, Clone, Deserialize)]
pub struct AcceptDecodeRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The rule it holds.
    pub rule: String,
    /// The bytes.
    #[serde(rename = "blob_hex", deserialize_with = "text::blob")]
    pub blob: Vec<u8>,
    grain: Box<RawValue>,
    /// Whether encoding the grain again must give the same bytes. Not so for compressed payloads,
    /// since compressors differ.
    #[serde(default = "yes")]
    pub exact: bool,
}

impl AcceptDecodeRow {
    /// The grain the blob holds, as JSON text with full field names.
    #[must_use]
    pub fn grain(&self) -> &str {
        self.grain.get()
    }
}

/// Bytes that must be refused.
#[derive(Debug, Clone, Deserialize)]
pub struct RefuseDecodeRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The rule it breaks.
    pub rule: String,
    /// The bytes offered as a blob.
    #[serde(rename = "blob_hex", deserialize_with = "text::blob")]
    pub blob: Vec<u8>,
    /// The error code, e.g. `ERR_CORRUPT`.
    pub code: String,
}

/// A COSE_Sign1, and what is to be said of it.
#[derive(Debug, Clone, Deserialize)]
pub struct CoseRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The rule it holds.
    pub rule: String,
    /// The bytes offered as an envelope.
    #[serde(rename = "cose_hex", deserialize_with = "text::blob")]
    pub cose: Vec<u8>,
    /// `valid`, `invalid` or `unverifiable`; nothing where the answer is `code`.
    pub verdict: Option<String>,
    /// Who signed, where it is valid.
    pub did: Option<String>,
    /// The error code where the bytes are no envelope of a blob.
    pub code: Option<String>,
    /// The content address of the blob inside.
    pub address: Option<String>,
    /// What must give these bytes when it is signed.
    pub signed: Option<Signed>,
}

/// A blob and the secret it is signed with.
#[derive(Debug, Clone, Deserialize)]
pub struct Signed {
    /// `ed25519` or `p256`.
    pub algorithm: String,
    /// The seed, or the scalar.
    #[serde(rename = "secret_hex", deserialize_with = "text::blob")]
    pub secret: Vec<u8>,
    /// The blob before it is signed.
    #[serde(rename = "blob_hex", deserialize_with = "text::blob")]
    pub blob: Vec<u8>,
    /// When, in epoch seconds.
    pub iat: Option<i64>,
}

/// A grain, and the view that hides some of its fields.
#[derive(Debug, Clone, Deserialize)]
pub struct DiscloseRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The rule it holds.
    pub rule: String,
    grain: Box<RawValue>,
    /// The bytes of the grain.
    #[serde(rename = "blob_hex", deserialize_with = "text::blob")]
    pub blob: Vec<u8>,
    /// The fields to hide.
    pub hide: Vec<String>,
    view: Box<RawValue>,
    /// The bytes of the view.
    #[serde(rename = "view_hex", deserialize_with = "text::blob")]
    pub view_blob: Vec<u8>,
    /// The content address of the view.
    pub view_address: String,
}

impl DiscloseRow {
    /// The grain, as JSON text with full field names.
    #[must_use]
    pub fn grain(&self) -> &str {
        self.grain.get()
    }

    /// The view, as JSON text with full field names.
    #[must_use]
    pub fn view(&self) -> &str {
        self.view.get()
    }
}

fn yes() -> bool {
    true
}

/// A portable container, and what is in it or why it is refused.
#[derive(Debug, Clone, Deserialize)]
pub struct ContainerRow {
    /// What the row shows; unique in its file.
    pub name: String,
    /// The section of the standard or the reading of `README.md` it holds.
    pub rule: String,
    /// The bytes.
    #[serde(rename = "container_hex", deserialize_with = "text::blob")]
    pub container: Vec<u8>,
    /// What is in it; nothing for one that is refused.
    #[serde(flatten)]
    pub held: Option<HeldRow>,
    /// The code it is refused with.
    pub code: Option<String>,
}

/// What is in a container.
#[derive(Debug, Clone, Deserialize)]
pub struct HeldRow {
    /// `none`, `zstd` or `lz4`.
    pub compression: String,
    /// The entries in order: blobs, or the envelopes around them.
    #[serde(rename = "entries_hex", deserialize_with = "text::blobs")]
    pub entries: Vec<Vec<u8>>,
    /// The known keys of the manifest by address.
    #[serde(default)]
    pub manifest: BTreeMap<String, StateRow>,
    /// Whether writing these entries and this manifest gives back the very bytes.
    #[serde(default)]
    pub exact: bool,
}

/// What a manifest says of one grain, under its short keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateRow {
    /// The address that superseded it.
    pub sb: Option<String>,
    /// When it stopped being current, epoch ms.
    pub svt: Option<i64>,
    /// Its verification status, unless it is unverified.
    pub vstatus: Option<String>,
    /// Whether it is contradicted.
    pub ct: bool,
    /// Whether it is under a hold.
    pub x_held: bool,
    /// Whether a person should look at it.
    pub x_review: bool,
    /// How often it was read.
    pub ac: u64,
    /// When it was read last, epoch ms.
    pub laa: Option<i64>,
}
