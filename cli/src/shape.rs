//! The JSON forms of answers, shared by commands and rpc (docs/rpc.md).

mod audit;

use data_encoding::BASE64;
use grainstore::embed::EmbeddingRef;
use grainstore::format::container::Compression;
use grainstore::format::cose::proof;
use grainstore::format::{
    Blob, Did, Encoding, Envelope, Header, OfflineResolver, REVIEW_FLAG, SignatureVerdict,
    SigningKey, VerificationStatus, sign, sign_detached,
};
use grainstore::{
    AccessCounts, Clock as _, ContentAddress, EpochMs, Grain, GrainState, PutOutcome, Session,
    StoredGrain, SystemClock,
};
use grainstore_sml::{Clock, Item, Level, project};
use serde::Serialize;
use zeroize::Zeroizing;

pub(crate) use self::audit::AuditAnswer;
use crate::error::{Code, Error, Result};
use crate::text::iso;

/// The version of the `.mg` format this program reads and writes (OMS 3.1.1).
pub(crate) const FORMAT_VERSION: u8 = 1;

/// The answer of a put.
#[derive(Debug, Serialize)]
pub(crate) struct PutAnswer {
    address: ContentAddress,
    duplicate: bool,
    /// The grain that stated the same fact, if it was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded: Option<ContentAddress>,
    /// Warnings about probable mistakes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl PutAnswer {
    pub(crate) fn new(put: PutOutcome, warnings: Vec<String>) -> Self {
        let superseded = match put {
            PutOutcome::Replaced { old, .. } => Some(old),
            _ => None,
        };
        Self { address: put.address(), duplicate: put.is_duplicate(), superseded, warnings }
    }
}

/// The answer of a supersession.
#[derive(Debug, Serialize)]
pub(crate) struct SupersedeAnswer {
    address: ContentAddress,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded: Option<ContentAddress>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl SupersedeAnswer {
    pub(crate) fn new(
        address: ContentAddress,
        superseded: Option<ContentAddress>,
        warnings: Vec<String>,
    ) -> Self {
        Self { address, superseded, warnings }
    }
}

/// The answer of an encoding.
#[derive(Debug, Serialize)]
pub(crate) struct Encoded {
    address: ContentAddress,
    blob: String,
}

impl From<&Blob> for Encoded {
    fn from(blob: &Blob) -> Self {
        Self { address: blob.address(), blob: BASE64.encode(blob.bytes()) }
    }
}

/// The answer of a signing.
#[derive(Debug, Serialize)]
pub(crate) struct SignedAnswer {
    address: ContentAddress,
    cose: String,
    did: Did,
}

/// Names of signature algorithms, for the command line and rpc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AlgorithmName {
    /// The key is the seed of an Ed25519 key
    #[default]
    Ed25519,
    /// The key is the scalar of a P-256 key
    P256,
}

impl AlgorithmName {
    /// Returns the key of a secret of 32 bytes.
    pub(crate) fn key(self, secret: &[u8]) -> Result<SigningKey> {
        let no_key = |_| {
            let message = format!("a key has 32 bytes, and this has {}", secret.len());
            Error::new(Code::Key, message, "`grain keys new` makes one")
        };
        let secret = Zeroizing::new(<[u8; 32]>::try_from(secret).map_err(no_key)?);
        Ok(match self {
            Self::Ed25519 => SigningKey::ed25519_from_seed(&secret),
            Self::P256 => SigningKey::p256_from_bytes(&secret)?,
        })
    }
}

/// Signs a blob. `iat` is the time of signing in epoch seconds, now by default.
pub(crate) fn signed(
    blob: &[u8],
    key: &SigningKey,
    iat: Option<i64>,
    now: EpochMs,
) -> Result<Envelope> {
    let iat = iat.unwrap_or_else(|| now.get().div_euclid(1000));
    Ok(sign(blob, key, Some(iat))?)
}

impl SignedAnswer {
    pub(crate) fn new(envelope: &Envelope, did: Did) -> Self {
        Self { address: envelope.address(), cose: BASE64.encode(envelope.bytes()), did }
    }
}

/// Operations for which a proof without a successor can be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProofOf {
    Contradict,
    Contest,
    Retract,
    LiftHold,
}

impl ProofOf {
    /// Signs the proof for one grain.
    pub(crate) fn prove(self, address: &ContentAddress, key: &SigningKey) -> Result<Vec<u8>> {
        let message = match self {
            Self::Contradict => proof::contradict_message(address),
            Self::Contest => proof::contest_message(address),
            Self::Retract => proof::retract_message(address),
            Self::LiftHold => proof::lift_hold_message(address),
        };
        Ok(sign_detached(&message, key)?)
    }
}

/// The answer of a verification.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictAnswer {
    #[serde(flatten)]
    pub(crate) verdict: SignatureVerdict,
    /// The address of the grain in the envelope.
    address: ContentAddress,
}

impl VerdictAnswer {
    /// Verifies an envelope without a store: only keys contained in their DID are found.
    pub(crate) fn of(cose: Vec<u8>) -> Result<Self> {
        let envelope = Envelope::parse(cose)?;
        envelope.blob()?;
        let verdict = envelope.verify(&OfflineResolver);
        Ok(Self { verdict, address: envelope.address() })
    }
}

/// Returns the names of fields that a view does not hide, because the original does not have them.
pub(crate) fn not_hidden<'h>(view: &Grain, hide: &'h [String]) -> Vec<&'h str> {
    let elided = view.map("_elided");
    let is_hidden = |name: &str| elided.is_some_and(|elided| elided.contains_key(name));
    hide.iter().map(String::as_str).filter(|name| !is_hidden(name)).collect()
}

/// The answer of a decoding: all parts of a blob.
#[derive(Debug, Serialize)]
pub(crate) struct Decoded {
    address: ContentAddress,
    header: HeaderAnswer,
    encoding: &'static str,
    grain: Grain,
}

/// The fixed header (OMS 3.1), as numbers.
#[derive(Debug, Serialize)]
struct HeaderAnswer {
    version: u8,
    flags: u8,
    #[serde(rename = "type")]
    grain_type: u8,
    ns_hash: u16,
    created_at_sec: u32,
}

impl Decoded {
    /// Decodes and validates a bare blob.
    pub(crate) fn new(blob: &[u8]) -> Result<Self> {
        let grain = Grain::decode(blob)?;
        let (header, _) = Header::split(blob)?;
        Ok(Self {
            address: ContentAddress::of(blob),
            header: HeaderAnswer {
                version: FORMAT_VERSION,
                flags: header.flags.byte(),
                grain_type: header.grain_type.byte(),
                ns_hash: header.ns_hash,
                created_at_sec: header.created_at_sec,
            },
            encoding: header.encoding().name(),
            grain,
        })
    }
}

/// The index-layer state of a grain, with its access counts before this read; CAL answers have none.
#[derive(Debug, Serialize)]
pub(crate) struct StateAnswer {
    #[serde(flatten)]
    state: GrainState,
    #[serde(flatten)]
    access: Option<AccessCounts>,
    /// The vectors that the store has for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    embedding_refs: Vec<EmbeddingRef>,
}

impl StateAnswer {
    fn of(stored: &StoredGrain) -> Self {
        let access = Some(stored.access);
        Self { state: stored.state, access, embedding_refs: Vec::new() }
    }
}

/// A stored grain.
#[derive(Debug, Serialize)]
pub(crate) struct StoredAnswer {
    address: ContentAddress,
    grain: Grain,
    blob: String,
    /// The envelope of a signed grain.
    #[serde(skip_serializing_if = "Option::is_none")]
    cose: Option<String>,
    /// The verdict on its signature, verified now.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<SignatureVerdict>,
    state: StateAnswer,
}

impl StoredAnswer {
    pub(crate) fn new(session: &Session, stored: &StoredGrain) -> Result<Self> {
        Ok(Self {
            address: stored.address,
            grain: stored.grain()?,
            blob: BASE64.encode(&stored.blob),
            cose: stored.envelope.as_ref().map(|envelope| BASE64.encode(envelope.bytes())),
            signature: session.signature(stored),
            state: StateAnswer {
                embedding_refs: session.embedding_refs(&stored.address)?,
                ..StateAnswer::of(stored)
            },
        })
    }
}

/// One version of a history.
#[derive(Debug, Serialize)]
pub(crate) struct Version {
    address: ContentAddress,
    grain: Grain,
    state: StateAnswer,
}

impl TryFrom<StoredGrain> for Version {
    type Error = Error;

    fn try_from(stored: StoredGrain) -> Result<Self> {
        let state = StateAnswer::of(&stored);
        Ok(Self { address: stored.address, grain: stored.grain()?, state })
    }
}

impl From<grainstore::cal::Version> for Version {
    fn from(version: grainstore::cal::Version) -> Self {
        let state = StateAnswer { state: version.state, access: None, embedding_refs: Vec::new() };
        Self { address: version.address, grain: version.grain, state }
    }
}

impl Version {
    /// Formats the version on one line: address, status, creation time, content.
    pub(crate) fn line(self) -> String {
        let Self { address, grain, state } = self;
        let standing = standing(&state.state);
        let created = iso(grain.created_at());
        format!(
            "{address}  {standing:<12}  {created}  {}",
            says(grain, state.state.verification_status)
        )
        .trim_end()
        .to_owned()
    }
}

/// Returns the status of a grain in one word.
pub(crate) fn standing(state: &GrainState) -> &'static str {
    match state {
        GrainState { superseded_by: Some(_), .. } => "superseded",
        GrainState { verification_status: VerificationStatus::Retracted, .. } => "retracted",
        GrainState { contradicted: true, .. } => "contradicted",
        state if state.has_ended(SystemClock.now()) => "ended",
        _ => "current",
    }
}

/// Returns the content of a grain on one line, after its subject; for a grain that awaits its review, only
/// that.
pub(crate) fn says(grain: Grain, status: VerificationStatus) -> String {
    if grain.awaits_review(status) {
        return format!("({REVIEW_FLAG})");
    }
    let subject = grain.text("subject").map(|subject| format!("{subject}: "));
    let says = text(grain, status);
    let subject = subject.filter(|_| !says.is_empty()).unwrap_or_default();
    format!("{subject}{says}")
}

/// Returns the content of a grain, as its formatted text has it.
fn text(grain: Grain, status: VerificationStatus) -> String {
    let clock = Clock { now: grain.time(), iso_timestamps: true };
    let verification = Some(status.name().to_owned());
    let item = Item { grain, verification, chosen: None, score: None };
    project(&item, Level::Summary, &clock).map_or_else(String::new, |shown| shown.text.into_owned())
}

/// Parses a verification status.
pub(crate) fn verification_status(name: &str) -> Result<VerificationStatus> {
    VerificationStatus::from_name(name).ok_or_else(|| {
        let message = format!("{name:?} is no verification status");
        let names = VerificationStatus::ALL.map(VerificationStatus::name).join(", ");
        Error::new(Code::Schema, message, format!("use one of {names}"))
    })
}

/// Names of encodings, for the command line and rpc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub(crate) enum EncodingName {
    /// Canonical MessagePack
    #[default]
    MsgPack,
    /// Deterministic CBOR
    Cbor,
}

impl From<EncodingName> for Encoding {
    fn from(name: EncodingName) -> Self {
        match name {
            EncodingName::MsgPack => Self::MessagePack,
            EncodingName::Cbor => Self::Cbor,
        }
    }
}

/// Names of container compressions, for the command line and rpc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CompressionName {
    /// Not at all
    None,
    /// zstd, level 3
    #[default]
    Zstd,
    /// lz4: larger, and faster
    Lz4,
}

impl From<CompressionName> for Compression {
    fn from(name: CompressionName) -> Self {
        match name {
            CompressionName::None => Self::None,
            CompressionName::Zstd => Self::Zstd,
            CompressionName::Lz4 => Self::Lz4,
        }
    }
}

/// Choices for a put when a current grain states the same fact, for the command line and rpc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SameFact {
    /// Store it beside the other
    #[default]
    Add,
    /// Keep the stored one
    Keep,
    /// Supersede the stored one
    Supersede,
}

impl From<SameFact> for grainstore::SameFact {
    fn from(name: SameFact) -> Self {
        match name {
            SameFact::Add => Self::Add,
            SameFact::Keep => Self::Keep,
            SameFact::Supersede => Self::Supersede,
        }
    }
}
