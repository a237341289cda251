//! The JSON forms of answers, shared by commands and rpc (docs/rpc.md).

mod audit;

use data_encoding::BASE64;
use grainstore::embed::EmbeddingRef;
use grainstore::format::cose::Algorithm;
use grainstore::format::{
    Blob, DecodeOptions, DeviceProfile, Did, DidResolver, Envelope, Header, OfflineResolver,
    SignatureVerdict, SigningKey, sign,
};
use grainstore::{
    AccessCounts, ApplicationCounts, ContentAddress, EpochMs, EraseOutcome, Grain, GrainState,
    PutOutcome, Session, StoredGrain,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

pub use self::audit::AuditAnswer;
use crate::error::{Code, Error, Result};

/// The version of the `.mg` format this program reads and writes (OMS 3.1.1).
///
/// ```
/// use grainstore_rpc::{FORMAT_VERSION, encode_grain};
///
/// let blob = encode_grain(
///     r#"{"type": "event", "content": "hello", "created_at": "2026-03-02T09:00:00Z"}"#,
///     Default::default(),
/// )?;
/// assert_eq!(blob.bytes().first(), Some(&FORMAT_VERSION));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub const FORMAT_VERSION: u8 = 1;

/// The answer of a put.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// let answer = grainstore_rpc::PutAnswer::new(session.put(grain)?, Vec::new());
/// assert_eq!(serde_json::to_value(&answer)?["duplicate"], false);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize, Deserialize)]
pub struct PutAnswer {
    /// The grain.
    pub address: ContentAddress,
    /// Whether it was stored already.
    pub duplicate: bool,
    /// The grain that stated the same fact, if it was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<ContentAddress>,
    /// Warnings about probable mistakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl PutAnswer {
    /// The answer of an outcome.
    pub fn new(put: PutOutcome, warnings: Vec<String>) -> Self {
        let superseded = match put {
            PutOutcome::Replaced { old, .. } => Some(old),
            _ => None,
        };
        Self { address: put.address(), duplicate: put.is_duplicate(), superseded, warnings }
    }
}

/// The answer of a supersession by [`supersede_by`](crate::supersede_by).
#[derive(Debug, Serialize, Deserialize)]
pub struct SupersedeAnswer {
    /// The new grain.
    pub address: ContentAddress,
    /// The replaced grain, where it was not named whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<ContentAddress>,
    /// Warnings about probable mistakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The answer of an encoding.
///
/// ```
/// use grainstore_rpc::{Encoded, encode_grain};
///
/// let blob = encode_grain(
///     r#"{"type": "event", "content": "hello", "created_at": "2026-03-02T09:00:00Z"}"#,
///     Default::default(),
/// )?;
/// let answer = serde_json::to_value(Encoded::from(&blob))?;
/// assert_eq!(answer["address"], blob.address().to_string());
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Encoded {
    address: ContentAddress,
    blob: String,
}

impl From<&Blob> for Encoded {
    fn from(blob: &Blob) -> Self {
        Self { address: blob.address(), blob: BASE64.encode(blob.bytes()) }
    }
}

/// The answer of a signing by [`sign_blob`].
#[derive(Debug, Serialize)]
pub struct SignedAnswer {
    address: ContentAddress,
    cose: String,
    did: Did,
}

/// Returns the key of a secret of 32 bytes, for [`sign_blob`] and [`Proved`](crate::Proved).
pub fn signing_key(algorithm: Algorithm, secret: &[u8]) -> Result<SigningKey> {
    let no_key = |_| {
        let message = format!("a key has 32 bytes, and this has {}", secret.len());
        Error::new(Code::Key, message, "`grain keys new` makes one")
    };
    let secret = Zeroizing::new(<[u8; 32]>::try_from(secret).map_err(no_key)?);
    Ok(match algorithm {
        Algorithm::EdDsa => SigningKey::ed25519_from_seed(&secret),
        Algorithm::Es256 => SigningKey::p256_from_bytes(&secret)?,
    })
}

/// Signs a blob. `iat` is the time of signing in epoch seconds, now by default.
///
/// ```
/// use grainstore_rpc::{SignedAnswer, VerdictAnswer, encode_grain, sign_blob, signing_key};
///
/// let key = signing_key(Default::default(), &[7; 32])?;
/// let json = r#"{"type": "event", "content": "hello", "created_at": "2026-03-02T09:00:00Z"}"#;
/// let blob = encode_grain(json, Default::default())?;
/// let envelope = sign_blob(blob.bytes(), &key, None, grainstore::EpochMs::new(1_772_442_000_000))?;
/// let answer = serde_json::to_value(SignedAnswer::new(&envelope, key.did()))?;
/// assert_eq!(answer["did"], key.did().as_str());
/// let verdict = VerdictAnswer::of(envelope.into_bytes())?.verdict;
/// assert_eq!(verdict.did(), Some(&key.did()));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn sign_blob(
    blob: &[u8],
    key: &SigningKey,
    iat: Option<i64>,
    now: EpochMs,
) -> Result<Envelope> {
    let iat = iat.unwrap_or_else(|| now.get().div_euclid(1000));
    Ok(sign(blob, key, Some(iat))?)
}

impl SignedAnswer {
    /// The answer of an envelope signed by `did`.
    pub fn new(envelope: &Envelope, did: Did) -> Self {
        Self { address: envelope.address(), cose: BASE64.encode(envelope.bytes()), did }
    }
}

/// The answer of a verification, of what [`sign_blob`] signed for instance.
#[derive(Debug, Serialize)]
pub struct VerdictAnswer {
    #[serde(flatten)]
    /// The verdict.
    pub verdict: SignatureVerdict,
    /// The address of the grain in the envelope.
    address: ContentAddress,
}

impl VerdictAnswer {
    /// Verifies an envelope without a store: only keys contained in their DID are found.
    pub fn of(cose: Vec<u8>) -> Result<Self> {
        Self::by(cose, &OfflineResolver)
    }

    /// Verifies an envelope without a store; the resolver finds the keys that are not contained in their DID.
    ///
    /// # Errors
    /// Those of [`Envelope::parse`] and [`Envelope::blob`].
    pub fn by(cose: Vec<u8>, resolver: &dyn DidResolver) -> Result<Self> {
        let envelope = Envelope::parse(cose)?;
        envelope.blob()?;
        let verdict = envelope.verify(resolver);
        Ok(Self { verdict, address: envelope.address() })
    }
}

/// The answer of a decoding: all parts of a blob.
///
/// ```
/// use grainstore_rpc::{Decoded, encode_grain};
///
/// let blob = encode_grain(
///     r#"{"type": "event", "content": "hello", "created_at": "2026-03-02T09:00:00Z"}"#,
///     Default::default(),
/// )?;
/// let answer = serde_json::to_value(Decoded::new(blob.bytes())?)?;
/// assert_eq!(answer["grain"]["content"], "hello");
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Decoded {
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
    pub fn new(blob: &[u8]) -> Result<Self> {
        Self::within(blob, DeviceProfile::EXTENDED)
    }

    /// Decodes and validates a bare blob within the limits of a device profile (OMS 18).
    ///
    /// # Errors
    /// Those of [`Grain::decode_with`].
    pub fn within(blob: &[u8], profile: DeviceProfile) -> Result<Self> {
        let options = DecodeOptions { profile, ..DecodeOptions::default() };
        let grain = Grain::decode_with(blob, &options)?;
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

/// The index-layer state of a grain, with its access counts before this read. [`StoredAnswer`] has one.
#[derive(Debug, Serialize)]
pub struct StateAnswer {
    /// The state without the counts.
    #[serde(flatten)]
    pub state: GrainState,
    #[serde(flatten)]
    access: AccessCounts,
    /// The vectors that the store has for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    embedding_refs: Vec<EmbeddingRef>,
}

impl StateAnswer {
    fn of(stored: &StoredGrain) -> Self {
        Self { state: stored.state, access: stored.access, embedding_refs: Vec::new() }
    }
}

/// A stored grain.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let answer = grainstore_rpc::StoredAnswer::new(&session, &session.get(&tea)?)?;
/// assert_eq!(serde_json::to_value(&answer)?["state"]["access_count"], 0);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct StoredAnswer {
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
    /// The answer for a grain of this session.
    pub fn new(session: &Session, stored: &StoredGrain) -> Result<Self> {
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
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::Version;
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// for stored in session.history(&tea)? {
///     let version = Version::try_from(stored)?;
///     assert_eq!(version.grain.text("object"), Some("tea"));
/// }
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Version {
    /// Its address.
    pub address: ContentAddress,
    /// Its content.
    pub grain: Grain,
    /// Its state.
    pub state: StateAnswer,
}

impl TryFrom<StoredGrain> for Version {
    type Error = Error;

    fn try_from(stored: StoredGrain) -> Result<Self> {
        let state = StateAnswer::of(&stored);
        Ok(Self { address: stored.address, grain: stored.grain()?, state })
    }
}

/// Returns the JSON answer of an erasure.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let erasure = session.erase(&tea, "a mistake", &grainstore::EraseOptions::new())?;
/// assert_eq!(grainstore_rpc::erased(&erasure)["counts"]["erased"], 1);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn erased(erasure: &EraseOutcome) -> Value {
    let mut told = json!({
        "counts": { "erased": erasure.erased, "skipped": erasure.skipped },
        "holds": erasure.holds,
        "scrubbed": erasure.scrubbed,
        "certificate": erasure.certificate,
    });
    if erasure.application != ApplicationCounts::default()
        && let Some(fields) = told.as_object_mut()
    {
        fields.insert("application".to_owned(), json!(erasure.application));
    }
    for (name, error) in [("refusal", &erasure.refusal), ("scrub_failure", &erasure.scrub_failure)]
    {
        if let (Some(error), Some(fields)) = (error, told.as_object_mut()) {
            let error = json!({ "code": error.code(), "message": error.to_string() });
            fields.insert(name.to_owned(), error);
        }
    }
    told
}
