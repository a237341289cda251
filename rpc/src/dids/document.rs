//! DID documents: the key that a DID signs claims with (W3C DID Core 5.3.2).

use data_encoding::BASE64URL_NOPAD;
use grainstore::EpochMs;
use grainstore::format::{Did, VerifyingKey, parse_datetime};
use serde::Deserialize;

/// A DID document, or the answer of a resolver around one.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "one of them lacks its `id`, or has it twice, or its `verificationMethod` or `assertionMethod` is no list of methods"
)]
pub(super) enum Answer {
    /// The answer of a resolver (W3C DID Resolution).
    #[serde(rename_all = "camelCase")]
    Resolution {
        did_document: Document,
        #[serde(default)]
        did_document_metadata: Metadata,
    },
    /// The document alone.
    Plain(Document),
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    deactivated: bool,
}

/// The members of a document that are read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    id: String,
    #[serde(default)]
    verification_method: Vec<Method>,
    #[serde(default)]
    assertion_method: Vec<Reference>,
}

/// A verification method, or the name of one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Reference {
    Name(String),
    Method(Method),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Method {
    id: String,
    public_key_multibase: Option<String>,
    public_key_jwk: Option<Jwk>,
    revoked: Option<serde_json::Value>,
    expires: Option<String>,
}

/// A public key (RFC 7517, 8037).
#[derive(Debug, Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    x: String,
    y: Option<String>,
}

impl Answer {
    /// Returns the document, unless its DID was deactivated.
    pub(super) fn document(self) -> Option<Document> {
        match self {
            Self::Resolution { did_document_metadata: Metadata { deactivated: true }, .. } => None,
            Self::Resolution { did_document, .. } | Self::Plain(did_document) => Some(did_document),
        }
    }
}

impl Document {
    /// Returns the DID it is about.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the first key of `assertionMethod` that is Ed25519 or P-256, not revoked and, at `now_ms`, not
    /// expired.
    pub(super) fn key(&self, now_ms: i64) -> Option<VerifyingKey> {
        let methods = self.assertion_method.iter().filter_map(|of| self.method(of));
        methods.filter(|method| method.holds(now_ms)).find_map(Method::key)
    }

    fn method<'d>(&'d self, reference: &'d Reference) -> Option<&'d Method> {
        match reference {
            Reference::Method(method) => Some(method),
            Reference::Name(name) => {
                let whole = self.whole(name);
                self.verification_method.iter().find(|method| self.whole(&method.id) == whole)
            }
        }
    }

    /// The name of a method with the DID before its fragment.
    fn whole(&self, name: &str) -> String {
        if name.starts_with('#') { format!("{}{name}", self.id) } else { name.to_owned() }
    }
}

impl Method {
    /// Returns `true` if it is neither revoked nor expired. An end that cannot be read has come.
    fn holds(&self, now_ms: i64) -> bool {
        let ends = |text: &String| parse_datetime(text).map_or(i64::MIN, EpochMs::get);
        self.revoked.is_none() && self.expires.as_ref().is_none_or(|text| ends(text) > now_ms)
    }

    fn key(&self) -> Option<VerifyingKey> {
        match (&self.public_key_multibase, &self.public_key_jwk) {
            // The text of a did:key is the same multibase.
            (Some(text), None) => format!("did:key:{text}").parse::<Did>().ok()?.verifying_key(),
            (None, Some(jwk)) => jwk.key(),
            _ => None,
        }
    }
}

impl Jwk {
    fn key(&self) -> Option<VerifyingKey> {
        let x: [u8; 32] = number(&self.x)?;
        match (self.kty.as_str(), self.crv.as_str(), &self.y) {
            ("OKP", "Ed25519", None) => VerifyingKey::ed25519(&x).ok(),
            ("EC", "P-256", Some(y)) => {
                let y: [u8; 32] = number(y)?;
                let odd = y.last()? & 1;
                let mut point = [2 | odd; 33];
                point.get_mut(1..)?.copy_from_slice(&x);
                VerifyingKey::p256(&point).ok()
            }
            _ => None,
        }
    }
}

/// The 32 bytes of a number in base64url.
fn number(text: &str) -> Option<[u8; 32]> {
    BASE64URL_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use grainstore::format::SigningKey;
    use serde_json::{Value, json};

    use super::*;

    fn key(document: &Value) -> Option<VerifyingKey> {
        serde_json::from_value::<Answer>(document.clone()).ok()?.document()?.key(1_000)
    }

    #[test]
    fn a_key_of_p256_is_read_from_its_coordinates() {
        // RFC 7515 A.3.
        let jwk = json!({ "kty": "EC", "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" });
        let secret = number("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI").unwrap();
        let expected = SigningKey::p256_from_bytes(&secret).unwrap().verifying_key();
        let document = |jwk: &Value| json!({ "id": "did:web:a", "assertionMethod": [{ "id": "#1", "publicKeyJwk": jwk }] });
        assert_eq!(key(&document(&jwk)), Some(expected));
        for (member, value) in [("kty", "OKP"), ("crv", "P-384"), ("y", "AA"), ("x", "!")] {
            let mut other = jwk.clone();
            other[member] = json!(value);
            assert_eq!(key(&document(&other)), None, "{member}");
        }
    }

    #[test]
    fn the_first_key_that_may_assert_and_holds_is_taken() {
        let keys = [1, 2].map(|seed| SigningKey::ed25519_from_seed(&[seed; 32]));
        let [one, two] = keys.each_ref().map(|key| {
            let did = key.did().to_string();
            json!({ "id": format!("#{seed}", seed = did.len()), "publicKeyMultibase": did.trim_start_matches("did:key:") })
        });
        let of = |asserting: &[&Value]| json!({ "id": "did:web:a", "assertionMethod": asserting });
        assert_eq!(key(&of(&[&one, &two])), Some(keys[0].verifying_key()));
        for (member, value, holds) in [
            ("revoked", json!("2020-01-01T00:00:00Z"), false),
            ("expires", json!("1970-01-01T00:00:01Z"), false),
            ("expires", json!("1970-01-01T00:00:02Z"), true),
            ("expires", json!("some day"), false),
        ] {
            let mut ending = one.clone();
            ending[member] = value.clone();
            let expected = if holds { &keys[0] } else { &keys[1] };
            assert_eq!(
                key(&of(&[&ending, &two])),
                Some(expected.verifying_key()),
                "{member} {value}"
            );
        }
        let unnamed = json!({ "id": "did:web:a", "verificationMethod": [one] });
        assert_eq!(key(&unnamed), None, "a key for another purpose");
        let named =
            json!({ "id": "did:web:a", "verificationMethod": [one], "assertionMethod": ["#56"] });
        assert_eq!(key(&named), Some(keys[0].verifying_key()));
        let ended = json!({ "didDocument": named, "didDocumentMetadata": { "deactivated": true } });
        assert_eq!(key(&ended), None);
        assert!(key(&json!({ "didDocument": named })).is_some());
    }
}
