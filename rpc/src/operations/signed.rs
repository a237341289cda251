//! Operations for signatures and disclosed views: `sign`, `prove`, `verify_signature`, `disclose`.

use data_encoding::BASE64;
use grainstore::format::cose::Algorithm;
use grainstore::format::cose::proof::{self, CosignOutcome, cosign};
use grainstore::format::{Did, Encoding, Header, SigningKey, sign_detached};
use grainstore::{ContentAddress, Grain, format};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::codec::encode_grain;
use crate::arguments::MAX_NAMES;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::json::{Address, Base64, Few, SecretBytes};
use crate::shape::{SignedAnswer, VerdictAnswer, sign_blob, signing_key};

/// Signs a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sign<'p> {
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    key: SecretBytes,
    #[serde(default)]
    algorithm: Algorithm,
    iat: Option<i64>,
}

pub(crate) fn sign(given: Sign<'_>, host: &mut Host) -> Result<SignedAnswer> {
    let blob = match (given.grain, given.blob) {
        (Some(grain), None) => encode_grain(grain.get(), Encoding::default())?.into_bytes(),
        (None, Some(Base64(blob))) => blob,
        _ => return Err(Error::arguments("give exactly one of grain and blob")),
    };
    let key = signing_key(given.algorithm, &given.key.0)?;
    Ok(SignedAnswer::new(&sign_blob(&blob, &key, given.iat, host.now())?, key.did()))
}

/// The operation that a proof is for.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Proved, signing_key};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let key = signing_key(Default::default(), &[7; 32])?;
/// let proof = Proved::Contradict.prove(&tea, &key)?;
/// session.contradict(&tea, "she never drinks any", Some(&proof))?;
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proved {
    /// A supersession.
    Supersede,
    /// A contradiction.
    Contradict,
    /// The status contested.
    Contest,
    /// The status retracted.
    Retract,
    /// The end of a hold.
    LiftHold,
}

impl Proved {
    /// Signs the proof for one grain, without a successor.
    pub fn prove(self, address: &ContentAddress, key: &SigningKey) -> Result<Vec<u8>> {
        let message = match self {
            Self::Supersede => {
                return Err(Error::arguments("supersede needs the grain that is to supersede"));
            }
            Self::Contradict => proof::contradict_message(address),
            Self::Contest => proof::contest_message(address),
            Self::Retract => proof::retract_message(address),
            Self::LiftHold => proof::lift_hold_message(address),
        };
        Ok(sign_detached(&message, key)?)
    }
}

/// Signs what an invalidation policy asks a signature for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prove<'p> {
    operation: Proved,
    address: Address,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    /// True if the grain will be in a signed envelope.
    #[serde(default)]
    signed: bool,
    key: SecretBytes,
    #[serde(default)]
    algorithm: Algorithm,
}

/// A proof, and the grain that carries it in a supersession.
#[derive(Debug, Serialize)]
pub(crate) struct Proof {
    cose: String,
    did: Did,
    #[serde(skip_serializing_if = "Option::is_none")]
    grain: Option<Grain>,
}

pub(crate) fn prove(given: Prove<'_>, _: &mut Host) -> Result<Proof> {
    let key = signing_key(given.algorithm, &given.key.0)?;
    let target = given.address.get()?;
    let (cose, grain) = match (given.operation, given.grain) {
        (Proved::Supersede, Some(grain)) => {
            let new = Grain::from_json(grain.get())?;
            let CosignOutcome { grain, cose } = cosign(&target, &new, given.signed, &key)?;
            (cose, Some(grain))
        }
        (_, Some(_)) => return Err(Error::arguments("only supersede takes a grain")),
        (operation, None) => (operation.prove(&target, &key)?, None),
    };
    Ok(Proof { cose: BASE64.encode(&cose), did: key.did(), grain })
}

/// Verifies the signature of an envelope.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifySignature {
    cose: Base64,
}

pub(crate) fn verify_signature(given: VerifySignature, host: &mut Host) -> Result<VerdictAnswer> {
    match host.resolver() {
        Some(resolver) => VerdictAnswer::by(given.cose.0, resolver),
        None => VerdictAnswer::of(given.cose.0),
    }
}

/// Hides fields of a grain behind their hashes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disclose<'p> {
    address: Option<Address>,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    hide: Few<String, MAX_NAMES>,
}

pub(crate) fn disclose(given: Disclose<'_>, host: &mut Host) -> Result<View> {
    let original = match (given.address, given.grain) {
        (Some(address), None) => host.session()?.get(&address.get()?)?.blob,
        (None, Some(grain)) => encode_grain(grain.get(), Encoding::default())?.into_bytes(),
        _ => return Err(Error::arguments("give exactly one of address and grain")),
    };
    View::of(&original, given.hide.all("hide")?)
}

/// A view of a grain with hashes in place of some fields.
///
/// ```
/// use grainstore_rpc::{View, encode_grain};
///
/// let blob = encode_grain(
///     r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "tea",
///         "confidence": 0.9, "created_at": "2026-03-02T09:00:00Z", "user_id": "alice"}"#,
///     Default::default(),
/// )?;
/// let view = View::of(blob.bytes(), vec!["user_id".into()])?;
/// assert_eq!(view.grain.text("user_id"), None);
/// assert!(view.absent.is_empty());
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct View {
    /// The view as a grain.
    pub grain: Grain,
    /// The same as a blob.
    #[serde(serialize_with = "base64")]
    pub blob: Vec<u8>,
    /// The names of fields that are not hidden, because the original does not have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

impl View {
    /// Hides these fields of a blob.
    pub fn of(original: &[u8], mut hide: Vec<String>) -> Result<Self> {
        let grain = format::disclose(original, &hide)?;
        let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
        let blob = grain.encode(encoding)?.into_bytes();
        let elided = grain.map("_elided");
        hide.retain(|name| elided.is_none_or(|elided| !elided.contains_key(name)));
        Ok(Self { blob, absent: hide, grain })
    }
}

fn base64<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}
