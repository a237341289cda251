//! Proofs: signatures beside a message, by which invalidation policies know who agrees (OMS 23.2).
//!
//! Each message begins with the name of what it allows, so that no proof serves for something else
//! and none is a signed grain. Whose proof counts is for the policy to say.

use sha2::{Digest, Sha256};

use super::envelope::Envelope;
use super::keys::{DidResolver, SigningKey};
use super::sign1::{self, Sign1, kid_of};
use super::verdict::{Verdict, judge};
use crate::address::ContentAddress;
use crate::error::Result;
use crate::grain::{Blob, Grain};
use crate::header::Flags;
use crate::value::{Map, Value};

/// The field that carries the proofs of a supersession.
const AUTH: &str = "supersession_auth";
const PARENTS: &str = "derived_from";

/// A grain whose `supersession_auth` has one more proof.
#[derive(Debug, Clone)]
pub struct Cosigned {
    /// The grain, which derives from the one it is to supersede.
    pub grain: Grain,
    /// The proof that was added.
    pub cose: Vec<u8>,
}

/// Adds to a grain the proof of one more signer that it may supersede `old`. What the next signer is
/// given is the grain that comes back: proofs are over everything in it but the proofs.
///
/// `enveloped` is for a grain that will be delivered in an envelope: the proof is then over its form
/// with the signed flag set.
///
/// # Errors
/// As [`Grain::from_fields`].
pub fn cosign(
    old: &ContentAddress,
    new: &Grain,
    enveloped: bool,
    key: &SigningKey,
) -> Result<Cosigned> {
    let mut fields = new.fields().clone();
    add(&mut fields, PARENTS, Value::from(old.to_string()));
    let grain = Grain::from_fields(fields)?;
    let mut bytes = without_auth(&grain)?.into_bytes();
    if enveloped && let Some(flags) = bytes.get_mut(1) {
        *flags = Flags::from_byte(*flags).with(Flags::SIGNED).byte();
    }
    let cose = sign_detached(&supersede(old, &bytes), key)?;
    let mut fields = grain.into_fields();
    add(&mut fields, AUTH, Value::Bytes(cose.clone()));
    Ok(Cosigned { grain: Grain::from_fields(fields)?, cose })
}

/// Adds an entry to a list, unless it is there.
fn add(fields: &mut Map, name: &str, entry: Value) {
    match fields.get_mut(name) {
        Some(Value::Array(entries)) if entries.contains(&entry) => {}
        Some(Value::Array(entries)) => entries.push(entry),
        _ => {
            fields.insert(name.to_owned(), Value::Array(vec![entry]));
        }
    }
}

/// Signs a message that is not part of the answer: a COSE_Sign1 without a payload.
///
/// # Errors
/// `ERR_CORRUPT` never: what is built here can be encoded.
pub fn sign_detached(message: &[u8], key: &SigningKey) -> Result<Vec<u8>> {
    sign1::write(message, key, None, None)
}

/// What a COSE_Sign1 without a payload is worth as a signature of this message.
#[must_use]
pub fn verify_detached(cose: &[u8], message: &[u8], resolver: &dyn DidResolver) -> Verdict {
    if cose.len() > Envelope::MAX_WRAPPER {
        let most = Envelope::MAX_WRAPPER;
        return Verdict::Invalid(format!("a proof has at most {most} bytes"));
    }
    match Sign1::read(cose) {
        Ok(sign1) if sign1.payload.is_some() => {
            Verdict::Invalid("a proof does not carry what it signs".to_owned())
        }
        Ok(sign1) => judge(&sign1, message, None, resolver),
        Err(error) => Verdict::Invalid(error.to_string()),
    }
}

/// Who is said to have signed a proof: the text of its `kid`, with its fragment. No evidence.
#[must_use]
pub fn claimed_signer(cose: &[u8]) -> Option<String> {
    if cose.len() > Envelope::MAX_WRAPPER {
        return None;
    }
    kid_of(&Sign1::read(cose).ok()?)
}

/// What is signed to let `new` supersede `old`; `new` is encoded without its `supersession_auth`
/// ([`without_auth`]).
#[must_use]
pub fn supersede(old: &ContentAddress, new_without_auth: &[u8]) -> Vec<u8> {
    let new: [u8; 32] = Sha256::digest(new_without_auth).into();
    [b"oms-supersede-v1", &old.as_bytes()[..], &new].concat()
}

/// A grain encoded without its `supersession_auth`: with the flag byte and the encoding it was
/// decoded from, or as it would be written first.
///
/// # Errors
/// As [`Grain::encode`].
pub fn without_auth(grain: &Grain) -> Result<Blob> {
    let encoding = grain.decoded_header().map(crate::header::Header::encoding).unwrap_or_default();
    grain.without(AUTH).encode(encoding)
}

/// What is signed to mark a grain contradicted.
#[must_use]
pub fn contradict(address: &ContentAddress) -> Vec<u8> {
    about(b"oms-contradict-v1", address)
}

/// What is signed to contest a grain.
#[must_use]
pub fn contest(address: &ContentAddress) -> Vec<u8> {
    about(b"oms-contest-v1", address)
}

/// What is signed to retract a grain.
#[must_use]
pub fn retract(address: &ContentAddress) -> Vec<u8> {
    about(b"oms-retract-v1", address)
}

/// What is signed to lift the hold on a grain.
#[must_use]
pub fn lift_hold(address: &ContentAddress) -> Vec<u8> {
    about(b"oms-lift-hold-v1", address)
}

fn about(what: &[u8], address: &ContentAddress) -> Vec<u8> {
    [what, address.as_bytes()].concat()
}
