//! Proofs: detached signatures that show an invalidation policy who authorised an action (OMS 23.2).
//!
//! Each message begins with the name of the action it authorises, so a proof is valid for that action
//! only and is never a signed grain. Which signers count is decided by the policy.

use sha2::{Digest, Sha256};

use super::envelope::Envelope;
use super::keys::{DidResolver, SigningKey};
use super::sign1::{self, Sign1, kid_of};
use super::verdict::{SignatureVerdict, verify_sign1};
use crate::address::ContentAddress;
use crate::error::Result;
use crate::grain::{Blob, Grain};
use crate::header::Flags;
use crate::value::{Map, Value};

/// The field that carries the proofs of a supersession.
const SUPERSESSION_AUTH: &str = "supersession_auth";
const DERIVED_FROM: &str = "derived_from";

/// The result of [`cosign`]: the grain with one more proof in its `supersession_auth`.
#[derive(Debug, Clone)]
pub struct CosignOutcome {
    /// The grain, with the address it is to supersede in its `derived_from`.
    pub grain: Grain,
    /// The proof that was added.
    pub cose: Vec<u8>,
}

/// Adds one more signer's proof that this grain may supersede `old`. The next signer signs the returned
/// grain: a proof covers everything in it except the proofs.
///
/// Set `enveloped` for a grain that will be delivered in an envelope: the proof is then over its
/// encoding with the signed flag set.
///
/// ```
/// use grainstore_format::cose::proof::{claimed_signer, cosign, supersede_message, without_auth};
/// use grainstore_format::{
///     ContentAddress, EpochMs, EventBuilder, OfflineResolver, SigningKey, verify_detached,
/// };
///
/// let old = ContentAddress::of(b"the blob to supersede");
/// let new = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice left").build()?;
/// let key = SigningKey::ed25519_from_seed(&[7; 32]);
/// let signed = cosign(&old, &new, false, &key)?;
/// let message = supersede_message(&old, without_auth(&signed.grain)?.bytes());
/// let verdict = verify_detached(&signed.cose, &message, &OfflineResolver);
/// assert_eq!(verdict.did(), Some(&key.did()));
/// assert!(claimed_signer(&signed.cose).is_some());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
///
/// # Errors
/// As [`Grain::from_fields`].
pub fn cosign(
    old: &ContentAddress,
    new: &Grain,
    enveloped: bool,
    key: &SigningKey,
) -> Result<CosignOutcome> {
    let mut fields = new.fields().clone();
    push_unique(&mut fields, DERIVED_FROM, Value::from(old.to_string()));
    let grain = Grain::from_fields(fields)?;
    let mut bytes = without_auth(&grain)?.into_bytes();
    if enveloped && let Some(flags) = bytes.get_mut(1) {
        *flags = Flags::from_byte(*flags).with(Flags::SIGNED).byte();
    }
    let cose = sign_detached(&supersede_message(old, &bytes), key)?;
    let mut fields = grain.into_fields();
    push_unique(&mut fields, SUPERSESSION_AUTH, Value::Bytes(cose.clone()));
    Ok(CosignOutcome { grain: Grain::from_fields(fields)?, cose })
}

/// Appends an entry to a list, unless it is there already.
fn push_unique(fields: &mut Map, name: &str, entry: Value) {
    match fields.get_mut(name) {
        Some(Value::Array(entries)) if entries.contains(&entry) => {}
        Some(Value::Array(entries)) => entries.push(entry),
        _ => {
            fields.insert(name.to_owned(), Value::Array(vec![entry]));
        }
    }
}

/// Signs a message without including it: the result is a COSE_Sign1 without a payload, whose
/// verification gives a [`SignatureVerdict`].
///
/// # Errors
/// `ERR_CORRUPT` if the COSE library cannot encode the result, which does not happen for the headers
/// built here.
pub fn sign_detached(message: &[u8], key: &SigningKey) -> Result<Vec<u8>> {
    sign1::write(message, key, None, None)
}

/// Verifies a COSE_Sign1 without a payload as a signature of this message; the
/// [`SignatureVerdict`] names the signer.
#[must_use]
pub fn verify_detached(
    cose: &[u8],
    message: &[u8],
    resolver: &dyn DidResolver,
) -> SignatureVerdict {
    if cose.len() > Envelope::MAX_WRAPPER_BYTES {
        let most = Envelope::MAX_WRAPPER_BYTES;
        return SignatureVerdict::Invalid(format!("a proof has at most {most} bytes"));
    }
    match Sign1::read(cose) {
        Ok(sign1) if sign1.payload.is_some() => {
            SignatureVerdict::Invalid("a proof does not carry what it signs".to_owned())
        }
        Ok(sign1) => verify_sign1(&sign1, message, None, resolver),
        Err(error) => SignatureVerdict::Invalid(error.to_string()),
    }
}

/// Returns the claimed signer of a proof, such as one of [`cosign`]: the text of its `kid`, with its
/// fragment. Not verified.
#[must_use]
pub fn claimed_signer(cose: &[u8]) -> Option<String> {
    if cose.len() > Envelope::MAX_WRAPPER_BYTES {
        return None;
    }
    kid_of(&Sign1::read(cose).ok()?)
}

/// Returns the message that authorises `new` to supersede `old`, which [`cosign`] signs. `new` is encoded
/// without its `supersession_auth` ([`without_auth`]).
#[must_use]
pub fn supersede_message(old: &ContentAddress, new_without_auth: &[u8]) -> Vec<u8> {
    let new: [u8; 32] = Sha256::digest(new_without_auth).into();
    [b"oms-supersede-v1", &old.as_bytes()[..], &new].concat()
}

/// Encodes a grain without its `supersession_auth`, as [`cosign`] signs it: with the flag byte and the
/// encoding it was decoded from, or as it would be encoded for the first time.
///
/// # Errors
/// As [`Grain::encode`].
pub fn without_auth(grain: &Grain) -> Result<Blob> {
    let encoding = grain.decoded_header().map(crate::header::Header::encoding).unwrap_or_default();
    grain.without_field(SUPERSESSION_AUTH).encode(encoding)
}

/// Returns the message that authorises marking a grain contradicted.
///
/// ```
/// use grainstore_format::cose::proof::{contradict_message, retract_message};
/// use grainstore_format::{
///     ContentAddress, OfflineResolver, SigningKey, sign_detached, verify_detached,
/// };
///
/// let address = ContentAddress::of(b"a blob");
/// let proof =
///     sign_detached(&contradict_message(&address), &SigningKey::ed25519_from_seed(&[7; 32]))?;
/// let verdict = |message: &[u8]| verify_detached(&proof, message, &OfflineResolver);
/// assert_eq!(verdict(&contradict_message(&address)).name(), "valid");
/// assert_eq!(verdict(&retract_message(&address)).name(), "invalid");
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[must_use]
pub fn contradict_message(address: &ContentAddress) -> Vec<u8> {
    action_message(b"oms-contradict-v1", address)
}

/// Returns the message that authorises contesting a grain; it is signed like a
/// [`contradict_message`].
#[must_use]
pub fn contest_message(address: &ContentAddress) -> Vec<u8> {
    action_message(b"oms-contest-v1", address)
}

/// Returns the message that authorises retracting a grain; it is signed like a
/// [`contradict_message`].
#[must_use]
pub fn retract_message(address: &ContentAddress) -> Vec<u8> {
    action_message(b"oms-retract-v1", address)
}

/// Returns the message that authorises lifting the hold on a grain; it is signed like a
/// [`contradict_message`].
#[must_use]
pub fn lift_hold_message(address: &ContentAddress) -> Vec<u8> {
    action_message(b"oms-lift-hold-v1", address)
}

fn action_message(what: &[u8], address: &ContentAddress) -> Vec<u8> {
    [what, address.as_bytes()].concat()
}
