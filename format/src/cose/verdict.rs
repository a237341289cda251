//! Verification of signatures: valid, invalid, or unverifiable here (OMS 9.3).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::did::{Did, KeyInDid};
use super::keys::{Algorithm, DidResolver, VerifyingKey};
use super::sign1::{Label, ProtectedParams, Sign1};

/// The result of verifying a signature.
///
/// ```
/// use grainstore_format::{
///     OfflineResolver, SignatureVerdict, SigningKey, sign_detached, verify_detached,
/// };
///
/// let key = SigningKey::ed25519_from_seed(&[7; 32]);
/// let proof = sign_detached(b"lift the hold", &key)?;
/// let verdict = verify_detached(&proof, b"lift the hold", &OfflineResolver);
/// assert_eq!(verdict, SignatureVerdict::Valid(key.did()));
/// let verdict = verify_detached(&proof, b"another text", &OfflineResolver);
/// assert_eq!((verdict.name(), verdict.did()), ("invalid", None));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureVerdict {
    /// Signed with the key of this DID.
    Valid(Did),
    /// Not a signature of these bytes by the claimed signer, independent of any resolver; with the
    /// reason.
    Invalid(String),
    /// The signer's key cannot be found, or its kind or algorithm is not supported; with the reason.
    Unverifiable(String),
}

impl SignatureVerdict {
    /// Returns `valid`, `invalid` or `unverifiable`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Valid(_) => "valid",
            Self::Invalid(_) => "invalid",
            Self::Unverifiable(_) => "unverifiable",
        }
    }

    /// Returns the signer, if the signature is valid.
    #[must_use]
    pub fn did(&self) -> Option<&Did> {
        match self {
            Self::Valid(did) => Some(did),
            _ => None,
        }
    }

    /// Returns the reason, if the signature is not valid.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Valid(_) => None,
            Self::Invalid(reason) | Self::Unverifiable(reason) => Some(reason),
        }
    }
}

impl Serialize for SignatureVerdict {
    /// Serializes to an object of `verdict`, and `did` or `reason`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("verdict", self.name())?;
        match self {
            Self::Valid(did) => map.serialize_entry("did", did)?,
            Self::Invalid(reason) | Self::Unverifiable(reason) => {
                map.serialize_entry("reason", reason)?;
            }
        }
        map.end()
    }
}

/// Labels of header parameters (RFC 9052 3.1).
const ALGORITHM_LABEL: i64 = 1;
const CRITICAL_LABEL: i64 = 2;

/// Signature algorithms of the COSE registry that are not supported here: their signatures are
/// unverifiable, not invalid.
const UNSUPPORTED_ALGORITHMS: [i64; 14] =
    [-9, -35, -36, -37, -38, -39, -47, -48, -49, -50, -51, -52, -53, -257];

/// Verifies a COSE_Sign1 over a message. `content_type` is the only one its header may give; `None`
/// accepts any.
pub(super) fn verify_sign1(
    sign1: &Sign1<'_>,
    message: &[u8],
    content_type: Option<&str>,
    resolver: &dyn DidResolver,
) -> SignatureVerdict {
    let header = match check_header(sign1, content_type) {
        Ok(header) => header,
        Err(reason) => return SignatureVerdict::Invalid(reason),
    };
    let (did, algorithm) = match claimed_signer(&header) {
        Ok(signer) => signer,
        Err(verdict) => return verdict,
    };
    let key = match resolve_key(&did, resolver) {
        Ok(key) => key,
        Err(verdict) => return verdict,
    };
    if key.algorithm() != algorithm {
        return SignatureVerdict::Invalid(format!("its algorithm is not that of the key of {did}"));
    }
    match key.verifies(&sign1.signed_bytes(message), &sign1.signature) {
        true => SignatureVerdict::Valid(did),
        false => {
            SignatureVerdict::Invalid(format!("the signature is not one of {did} over these bytes"))
        }
    }
}

/// Returns the protected header, if the form of the headers is valid.
fn check_header(sign1: &Sign1<'_>, content_type: Option<&str>) -> Result<ProtectedParams, String> {
    if let Some(flaw) = sign1.flaw {
        return Err(flaw.to_owned());
    }
    let Some(header) = ProtectedParams::read(&sign1.protected) else {
        return Err("its protected header is no map in deterministic CBOR".to_owned());
    };
    if let Some(twice) = sign1.unprotected.iter().find(|label| header.labels.contains(label)) {
        return Err(format!("parameter {twice} is protected and unprotected"));
    }
    let anywhere = |label: i64| {
        let label = Label::number(label);
        header.labels.contains(&label) || sign1.unprotected.contains(&label)
    };
    if anywhere(CRITICAL_LABEL) {
        return Err("it has critical parameters (crit), of which none is known".to_owned());
    }
    if sign1.unprotected.contains(&Label::number(ALGORITHM_LABEL)) {
        return Err("its algorithm is not protected".to_owned());
    }
    let said = header.content_type.as_deref();
    if content_type.is_some() && said.is_some() && said != content_type {
        return Err("its content type is not that of the grain".to_owned());
    }
    Ok(header)
}

/// Returns the claimed signer and the algorithm.
fn claimed_signer(header: &ProtectedParams) -> Result<(Did, Algorithm), SignatureVerdict> {
    let invalid = |reason: &str| SignatureVerdict::Invalid(reason.to_owned());
    let number = header.algorithm.ok_or_else(|| invalid("its header names no algorithm"))?;
    let algorithm = match number {
        -8 | -19 => Some(Algorithm::EdDsa),
        -7 => Some(Algorithm::Es256),
        other if UNSUPPORTED_ALGORITHMS.contains(&other) => None,
        other => {
            return Err(SignatureVerdict::Invalid(format!(
                "{other} is no algorithm of signatures"
            )));
        }
    };
    let kid = header.kid.as_deref().and_then(|kid| std::str::from_utf8(kid).ok());
    let did = kid.and_then(|kid| Did::of_url(kid).ok());
    let did = did.ok_or_else(|| invalid("its protected header names no DID as signer (kid)"))?;
    let unknown =
        || SignatureVerdict::Unverifiable(format!("algorithm {number} cannot be verified here"));
    algorithm.map(|algorithm| (did, algorithm)).ok_or_else(unknown)
}

fn resolve_key(did: &Did, resolver: &dyn DidResolver) -> Result<VerifyingKey, SignatureVerdict> {
    match did.key() {
        KeyInDid::Key(key) => Ok(key),
        KeyInDid::Malformed(why) => Err(SignatureVerdict::Invalid(why.to_owned())),
        KeyInDid::UnsupportedKind(code) => {
            Err(SignatureVerdict::Unverifiable(format!("{did} holds a key of kind 0x{code:x}")))
        }
        KeyInDid::NotInDid => resolver.resolve(did).ok_or_else(|| {
            let why = resolver.why_not(did).map(|why| format!(": {why}")).unwrap_or_default();
            SignatureVerdict::Unverifiable(format!("the key of {did} cannot be found{why}"))
        }),
    }
}
