//! Cases of invalidation policy as data (`vectors/policy`, its format in `vectors/README.md`): what is
//! stored, what is attempted, and what has to come of it. Knows no store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::format::cose::{Envelope, SigningKey, proof, sign, sign_detached};
use super::format::{Blob, ContentAddress, Encoding, Grain};
use data_encoding::{BASE64, HEXLOWER};
use serde::Deserialize;
use serde_json::Value as Json;

/// One case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The section of OMS it holds.
    #[serde(rename = "rule")]
    pub(crate) _section: String,
    grains: BTreeMap<String, Json>,
    pub(crate) steps: Vec<Step>,
    #[serde(default)]
    pub(crate) options: Options,
    /// The signatures in the `supersession_auth` of a grain.
    #[serde(default)]
    cosign: BTreeMap<String, Vec<Signed>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    #[serde(default)]
    pub(crate) locked_accepts_authorized_signature: bool,
    /// Whom the host names as the operator.
    pub(crate) operator: Option<String>,
}

/// One call, and what has to come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) op: String,
    pub(crate) grain: Option<String>,
    #[serde(default)]
    pub(crate) grains: Vec<String>,
    pub(crate) target: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) signed: Option<Signed>,
    pub(crate) actor: Option<String>,
    pub(crate) namespace: Option<String>,
    /// The time in epoch seconds.
    #[serde(default = "hundred")]
    pub(crate) now_s: i64,
    /// Versions a `chain` adds, each with this justification.
    #[serde(default)]
    pub(crate) length: usize,
    pub(crate) justification: Option<String>,
    #[serde(default = "ok")]
    pub(crate) code: String,
    /// The rules of the audit entry, where they are to be looked at.
    pub(crate) rules: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) state: Expected,
}

/// What the state of the target has to be afterwards.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) current: Option<bool>,
    pub(crate) contradicted: Option<bool>,
    pub(crate) held: Option<bool>,
    pub(crate) needs_review: Option<bool>,
    pub(crate) verification_status: Option<String>,
    pub(crate) ended: Option<bool>,
    pub(crate) ended_s: Option<i64>,
}

/// A signature: by the Ed25519 key of 32 bytes `seed`, over the message of an operation about a grain.
/// `by` is the new grain of a supersession, where it is another than the one that carries it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signed {
    #[serde(default)]
    pub(crate) seed: u8,
    pub(crate) message: Option<String>,
    #[serde(rename = "for")]
    pub(crate) about: Option<String>,
    by: Option<String>,
    /// Whether what is signed is a note on the target, and no word for what takes its place.
    #[serde(default)]
    pub(crate) note: bool,
    /// Bytes instead of a signature.
    hex: Option<String>,
}

fn hundred() -> i64 {
    100
}

fn ok() -> String {
    "OK".to_owned()
}

/// The key of a seed.
pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::ed25519_from_seed(&[seed; 32])
}

/// A COSE_Sign1 without a payload over the message of an operation about a grain.
pub(crate) fn proof_of(op: &str, about: &ContentAddress, seed: u8) -> Vec<u8> {
    let message = match op {
        "contradict" => proof::contradict_message(about),
        "contest" => proof::contest_message(about),
        "retract" => proof::retract_message(about),
        "lift_hold" => proof::lift_hold_message(about),
        other => panic!("no message {other:?}"),
    };
    sign_detached(&message, &key(seed)).unwrap()
}

/// All cases, by file.
pub(crate) fn all() -> Vec<(String, Case)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/policy");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let rows: Vec<Case> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        cases.extend(rows.into_iter().map(|case| (file.clone(), case)));
    }
    assert!(cases.len() >= 120, "{} cases", cases.len());
    cases
}

/// The grains of a case, encoded, by their names in it.
#[derive(Debug, Default)]
pub(crate) struct Grains {
    blobs: BTreeMap<String, Blob>,
    /// What stands around those that are signed themselves.
    envelopes: BTreeMap<String, Envelope>,
}

impl Grains {
    pub(crate) fn of(case: &Case) -> Self {
        let mut grains = Self::default();
        for name in case.grains.keys() {
            grains.encode(case, name);
        }
        grains
    }

    pub(crate) fn blob(&self, name: &str) -> &Blob {
        self.blobs.get(name).unwrap_or_else(|| panic!("no grain {name:?} in this case"))
    }

    /// The envelope of a grain that is signed itself.
    pub(crate) fn envelope(&self, name: &str) -> Option<&Envelope> {
        self.envelopes.get(name)
    }

    pub(crate) fn address(&self, name: &str) -> ContentAddress {
        self.blob(name).address()
    }

    /// A COSE_Sign1 for a call about `target`.
    pub(crate) fn sign(&self, signed: &Signed, op: &str, target: &str) -> Vec<u8> {
        let about = self.address(signed.about.as_deref().unwrap_or(target));
        proof_of(signed.message.as_deref().unwrap_or(op), &about, signed.seed)
    }

    fn encode(&mut self, case: &Case, name: &str) -> ContentAddress {
        if let Some(blob) = self.blobs.get(name) {
            return blob.address();
        }
        let json = case.grains.get(name).unwrap_or_else(|| panic!("no grain {name:?}"));
        let mut json = self.resolve(case, json);
        if let Some(signatures) = case.cosign.get(name) {
            let plain = encoded(&json);
            let entries = signatures.iter().map(|signed| self.cosignature(case, signed, &plain));
            let entries: Vec<_> = entries.map(|cose| Json::from(BASE64.encode(&cose))).collect();
            json["supersession_auth"] = Json::from(entries);
        }
        let mut blob = encoded(&json);
        let signed = case.steps.iter().find(|step| step.grain.as_deref() == Some(name));
        if let Some(Signed { seed, .. }) = signed.and_then(|step| step.signed.as_ref()) {
            let envelope = sign(blob.bytes(), &key(*seed), None).unwrap();
            blob = Blob::from_bytes(envelope.blob().unwrap().to_vec());
            self.envelopes.insert(name.to_owned(), envelope);
        }
        let address = blob.address();
        self.blobs.insert(name.to_owned(), blob);
        address
    }

    fn cosignature(&mut self, case: &Case, signed: &Signed, new: &Blob) -> Vec<u8> {
        if let Some(hex) = &signed.hex {
            return HEXLOWER.decode(hex.as_bytes()).unwrap();
        }
        let old = self.encode(case, signed.about.as_deref().unwrap());
        let message = match (signed.message.as_deref(), &signed.by) {
            (Some("contradict"), _) => proof::contradict_message(&old),
            (Some("retract"), _) => proof::retract_message(&old),
            (Some(other), _) => panic!("no message {other:?}"),
            (None, None) => proof::supersede_message(&old, new.bytes()),
            (None, Some(by)) => {
                self.encode(case, by);
                proof::supersede_message(&old, self.blob(by).bytes())
            }
        };
        sign_detached(&message, &key(signed.seed)).unwrap()
    }

    /// The JSON with addresses for `$name` and DIDs for `$did:seed`.
    fn resolve(&mut self, case: &Case, json: &Json) -> Json {
        match json {
            Json::String(text) => Json::from(self.word(case, text)),
            Json::Array(items) => items.iter().map(|item| self.resolve(case, item)).collect(),
            Json::Object(fields) => {
                let fields = fields.iter();
                fields.map(|(name, value)| (name.clone(), self.resolve(case, value))).collect()
            }
            other => other.clone(),
        }
    }

    fn word(&mut self, case: &Case, text: &str) -> String {
        let Some(name) = text.strip_prefix('$') else { return text.to_owned() };
        let Some(seed) = name.strip_prefix("did:") else {
            return self.encode(case, name).to_string();
        };
        let (seed, fragment) = seed.split_at(seed.find('#').unwrap_or(seed.len()));
        format!("{}{fragment}", key(seed.parse().unwrap()).did())
    }
}

/// The DID an actor stands for.
pub(crate) fn actor(step: &Step) -> Option<String> {
    step.actor.as_ref().map(|actor| match actor.strip_prefix("$did:") {
        Some(seed) => key(seed.parse().unwrap()).did().to_string(),
        None => actor.clone(),
    })
}

fn encoded(json: &Json) -> Blob {
    let grain = Grain::from_json(&json.to_string()).unwrap();
    grain.encode(Encoding::MessagePack).unwrap()
}
