//! The JSON shapes of answers, the same for commands and for rpc (design: rpc.md).

use data_encoding::{BASE64, HEXLOWER};
use grainstore::embed::EmbeddingRef;
use grainstore::format::container::Compression;
use grainstore::format::cose::proof;
use grainstore::format::{
    Blob, Did, Encoding, Envelope, Header, OfflineResolver, REVIEW_FLAG, SigningKey, Verdict,
    VerificationStatus, sign, sign_detached,
};
use grainstore::{
    Access, AuditEntry, CalledEntry, Clock as _, ContentAddress, EpochMs, ErasedConsent, Grain,
    GrainState, Put, Session, Stored, StreamedEntry, SystemClock,
};
use grainstore_sml::{Clock, Item, Level, project};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::error::{Code, Error, Result};
use crate::text::{iso, printable};

/// The version of the `.mg` format this program reads and writes (OMS 3.1.1).
pub(crate) const FORMAT_VERSION: u8 = 1;

/// What a put came to.
#[derive(Debug, Serialize)]
pub(crate) struct PutAnswer {
    address: ContentAddress,
    duplicate: bool,
    /// What said the same before, where it was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded: Option<ContentAddress>,
    /// What is probably not meant so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl PutAnswer {
    pub(crate) fn new(put: Put, warnings: Vec<String>) -> Self {
        let superseded = match put {
            Put::Replaced { old, .. } => Some(old),
            _ => None,
        };
        Self { address: put.address(), duplicate: put.is_duplicate(), superseded, warnings }
    }
}

/// What a supersession came to.
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

/// A blob that was just encoded.
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

/// A grain that was just signed.
#[derive(Debug, Serialize)]
pub(crate) struct SignedAnswer {
    address: ContentAddress,
    cose: String,
    did: Did,
}

/// How a grain is signed, as it is asked for.
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
    /// The key of a secret of 32 bytes.
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

/// Signs a blob. `iat` says when, in epoch seconds: now, unless it is given.
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

/// What a proof without a successor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProofOf {
    Contradict,
    Contest,
    Retract,
    LiftHold,
}

impl ProofOf {
    /// Signs it for one grain.
    pub(crate) fn prove(self, address: &ContentAddress, key: &SigningKey) -> Result<Vec<u8>> {
        let message = match self {
            Self::Contradict => proof::contradict(address),
            Self::Contest => proof::contest(address),
            Self::Retract => proof::retract(address),
            Self::LiftHold => proof::lift_hold(address),
        };
        Ok(sign_detached(&message, key)?)
    }
}

/// What a signature is worth.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictAnswer {
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// The address of the grain it is around.
    address: ContentAddress,
}

impl VerdictAnswer {
    /// Verifies an envelope without a store: keys that do not lie in their DID are not found.
    pub(crate) fn of(cose: Vec<u8>) -> Result<Self> {
        let envelope = Envelope::parse(cose)?;
        envelope.blob()?;
        let verdict = envelope.verify(&OfflineResolver);
        Ok(Self { verdict, address: envelope.address() })
    }
}

/// Those of these fields that a view does not hide, since what it was made of does not have them.
pub(crate) fn not_hidden<'h>(view: &Grain, hide: &'h [String]) -> Vec<&'h str> {
    let elided = view.map("_elided");
    let is_hidden = |name: &str| elided.is_some_and(|elided| elided.contains_key(name));
    hide.iter().map(String::as_str).filter(|name| !is_hidden(name)).collect()
}

/// Everything a blob says.
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

/// The index-layer state of a grain, with how often it was read before; CAL leaves that out.
#[derive(Debug, Serialize)]
pub(crate) struct StateAnswer {
    #[serde(flatten)]
    state: GrainState,
    #[serde(flatten)]
    access: Option<Access>,
    /// The vectors that the store has of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    embedding_refs: Vec<EmbeddingRef>,
}

impl StateAnswer {
    fn of(stored: &Stored) -> Self {
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
    /// The envelope it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    cose: Option<String>,
    /// What its signature is worth now.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Verdict>,
    state: StateAnswer,
}

impl StoredAnswer {
    pub(crate) fn new(session: &Session, stored: &Stored) -> Result<Self> {
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

impl TryFrom<Stored> for Version {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
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
    /// The version on one line: address, standing, when it was created, what it says.
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

/// Where a grain stands, in one word.
pub(crate) fn standing(state: &GrainState) -> &'static str {
    match state {
        GrainState { superseded_by: Some(_), .. } => "superseded",
        GrainState { verification_status: VerificationStatus::Retracted, .. } => "retracted",
        GrainState { contradicted: true, .. } => "contradicted",
        state if state.has_ended(SystemClock.now()) => "ended",
        _ => "current",
    }
}

/// What a grain of this status says on a line, behind its subject; that it waits for its review, where it does.
pub(crate) fn says(grain: Grain, status: VerificationStatus) -> String {
    if grain.awaits_review(status) {
        return format!("({REVIEW_FLAG})");
    }
    let subject = grain.text("subject").map(|subject| format!("{subject}: "));
    let says = text(grain, status);
    let subject = subject.filter(|_| !says.is_empty()).unwrap_or_default();
    format!("{subject}{says}")
}

/// What a grain says, as its formatted text would.
fn text(grain: Grain, status: VerificationStatus) -> String {
    let clock = Clock { now: grain.time(), iso_timestamps: true };
    let verification = Some(status.name().to_owned());
    let item = Item { grain, verification, chosen: None, score: None };
    project(&item, Level::Summary, &clock).map_or_else(String::new, |shown| shown.text.into_owned())
}

/// One entry of the audit log.
#[derive(Debug, Serialize)]
pub(crate) struct AuditAnswer {
    sequence: u64,
    time_ms: EpochMs,
    operation: String,
    actor: String,
    subjects: Vec<ContentAddress>,
    decision: String,
    rules: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<VerificationStatus>,
    /// The grain whose policy refused, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_by: Option<ContentAddress>,
    /// Why it was refused, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import: Option<ImportAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The call in CAL it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallAnswer>,
    /// What the read log came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<ReadsAnswer>,
    /// The key a signature that did not hold was said to be by.
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    /// How many equal refusals it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// What is left of a consent whose contents were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    consent: Option<ConsentAnswer>,
}

/// A consent without its contents, in its audit entry.
#[derive(Debug, Serialize)]
struct ConsentAnswer {
    kind: &'static str,
    scope: Vec<String>,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<i64>,
}

impl From<ErasedConsent> for ConsentAnswer {
    fn from(consent: ErasedConsent) -> Self {
        let kind = consent.kind();
        let ErasedConsent { scope, created_at, valid_from, valid_to, .. } = consent;
        Self { kind, scope, created_at, valid_from, valid_to }
    }
}

/// Where the read log stood, in its audit entry.
#[derive(Debug, Serialize)]
struct ReadsAnswer {
    entries: u64,
    first: u64,
    head: String,
}

/// A call in CAL, in its audit entry.
#[derive(Debug, Serialize)]
struct CallAnswer {
    query_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
    tier: u64,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(flatten)]
    write: Option<WriteAnswer>,
    #[serde(flatten)]
    stream: Option<StreamAnswer>,
}

/// What a call wrote, in its audit entry (CAL section 21).
#[derive(Debug, Serialize)]
struct WriteAnswer {
    operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_hash: Option<ContentAddress>,
    new_hash: ContentAddress,
}

impl WriteAnswer {
    /// Of an entry that tells of a write that was done.
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

/// The events of a streamed call, in its audit entry.
#[derive(Debug, Serialize)]
struct StreamAnswer {
    stream_enabled: bool,
    stream_options: Vec<String>,
    events_emitted: u64,
    cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<String>,
    sources_failed: u64,
}

impl From<StreamedEntry> for StreamAnswer {
    fn from(stream: StreamedEntry) -> Self {
        Self {
            stream_enabled: true,
            cancelled: stream.is_cancelled(),
            stream_options: named(&stream.options),
            events_emitted: stream.events_emitted,
            cancel_reason: stream.cancel_reason,
            sources_failed: stream.sources_failed,
        }
    }
}

/// The options of a stream one by one, of which an entry has the text.
fn named(options: &str) -> Vec<String> {
    options.split(", ").filter(|option| !option.is_empty()).map(str::to_owned).collect()
}

impl CallAnswer {
    fn of(call: CalledEntry, write: Option<WriteAnswer>) -> Self {
        Self {
            query_hash: format!("sha256:{}", HEXLOWER.encode(&call.query_hash)),
            statement: call.statement,
            tier: call.tier,
            duration_ms: call.duration_ms,
            token_id: call.token_id,
            namespace: call.namespace,
            agent: call.agent,
            result_count: call.result_count,
            code: call.code,
            write,
            stream: call.stream.map(StreamAnswer::from),
        }
    }

    /// It in words, for a line.
    fn words(&self) -> Vec<String> {
        let stream = self.stream.as_ref();
        let words = [
            ("cal", self.statement.clone()),
            ("query", self.query_hash.get(..19).map(str::to_owned)),
            ("token", self.token_id.clone()),
            ("results", self.result_count.map(|count| count.to_string())),
            ("code", self.code.clone()),
            ("events", stream.map(|stream| stream.events_emitted.to_string())),
            ("cancelled", stream.and_then(|stream| stream.cancel_reason.clone())),
        ];
        words.into_iter().filter_map(|(name, word)| Some(format!("{name}={}", word?))).collect()
    }
}

/// What an import came to, in its audit entry.
#[derive(Debug, Serialize)]
struct ImportAnswer {
    first: u64,
    added: u64,
    digest: String,
    duplicate: u64,
    refused: u64,
}

impl From<AuditEntry> for AuditAnswer {
    fn from(entry: AuditEntry) -> Self {
        let write = WriteAnswer::of(&entry);
        Self {
            why: entry.why(),
            refused_by: entry.refused_by,
            sequence: entry.sequence,
            time_ms: entry.time,
            operation: entry.operation,
            actor: entry.actor,
            subjects: entry.subjects,
            decision: entry.decision,
            rules: entry.rules,
            status: entry.status,
            import: entry.import.map(|note| ImportAnswer {
                first: note.first,
                added: note.added,
                digest: HEXLOWER.encode(&note.digest),
                duplicate: note.duplicate,
                refused: note.refused,
            }),
            reason: entry.reason,
            call: entry.call.map(|call| CallAnswer::of(call, write)),
            reads: entry.reads.map(|note| ReadsAnswer {
                entries: note.entries,
                first: note.first,
                head: HEXLOWER.encode(&note.head),
            }),
            kid: entry.kid,
            count: entry.count,
            consent: entry.consent.map(ConsentAnswer::from),
        }
    }
}

impl AuditAnswer {
    /// The entry on one line.
    pub(crate) fn line(&self) -> String {
        let Self { sequence, operation, actor, decision, .. } = self;
        let time = iso(self.time_ms);
        let mut line = format!("{sequence:>6}  {time}  {operation:<9}  {decision:<7}  {actor}");
        let status = self.status.map(|status| format!("status={}", status.name()));
        let by = self.refused_by.map(|by| format!("by={by}"));
        let why = self.why.map(|why| format!("({why})"));
        let reason = self.reason.as_deref().map(|reason| format!("reason={reason:?}"));
        let subjects = self.subjects.iter().map(ToString::to_string);
        let words = self.rules.iter().cloned().chain(status).chain(subjects).chain(by);
        let call = self.call.iter().flat_map(CallAnswer::words);
        let kid = self.kid.as_ref().map(|kid| format!("kid={kid}"));
        let count = self.count.map(|count| format!("count={count}"));
        let consent = self.consent.as_ref();
        let consent =
            consent.map(|consent| format!("{}={}", consent.kind, consent.scope.join(",")));
        let after = kid.into_iter().chain(count).chain(consent);
        for word in words.chain(why).chain(reason).chain(call).chain(after) {
            line.push_str("  ");
            line.push_str(&printable(&word));
        }
        line
    }
}

/// The verification status of a name.
pub(crate) fn verification_status(name: &str) -> Result<VerificationStatus> {
    VerificationStatus::from_name(name).ok_or_else(|| {
        let message = format!("{name:?} is no verification status");
        let names = VerificationStatus::ALL.map(VerificationStatus::name).join(", ");
        Error::new(Code::Schema, message, format!("use one of {names}"))
    })
}

/// The name of an encoding, as it is asked for.
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

/// How a container is packed, as it is asked for.
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

/// What a put does when a current grain says the same, as it is asked for.
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
