//! A document: its JSON, kept whole, and the members that the rest of the module asks for.
//!
//! Knows no rule but what it takes to be a document of a version that is known; `validate` has the others.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use serde_json::{Map, Value};

use super::kinds::{ExportType, Layer};
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::json;
use crate::other;

/// Most bytes of a [`Document`]; `ERR_LIMIT` beyond.
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// How a ZIP archive begins.
const ARCHIVE: &[u8] = b"PK\x03\x04";
/// How to get a document where a container was given.
const FROM_CONTAINER: &str = "take it out of the container: unzip -p FILE agent.saga.json > agent.json; or export a file that ends in .json";

/// Memory that the values of a document take at most.
const MAX_DOCUMENT_MEMORY: u64 = 256 << 20;

/// The version of the standard that is written, and the major version that is read.
pub(super) const VERSION: &str = "1.0";

/// The members that a document may have.
const MEMBERS: [&str; 11] = [
    "$schema",
    "sagaVersion",
    "documentId",
    "createdAt",
    "exportedAt",
    "exportType",
    "privacy",
    "signature",
    "consent",
    "redactionManifest",
    "layers",
];

/// A SAGA document. Unknown members stay in it; two are equal if their JSON is ([`json::equal`]).
///
/// ```
/// use grainstore_interop::saga::{Document, ExportType, Layer};
///
/// let document = Document::parse(
///     br#"{"$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_a1",
///         "exportedAt": "2026-03-20T10:00:00Z", "exportType": "identity", "layers": {"identity": {}}}"#,
/// )?;
/// assert_eq!(document.export_type()?, ExportType::Identity);
/// assert!(document.layer(Layer::Identity).is_some() && document.layer(Layer::Vault).is_none());
/// let later = Document::parse(br#"{"sagaVersion": "2.0"}"#);
/// assert_eq!(later.unwrap_err().code(), "ERR_VERSION");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Document {
    members: Map<String, Value>,
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.members.len() == other.members.len()
            && self.members.iter().all(|(name, value)| {
                other.members.get(name).is_some_and(|it| json::equal(value, it))
            })
    }
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_DOCUMENT_BYTES`]; `ERR_CORRUPT` if it is no JSON, such as a container; `ERR_VERSION` for another major
    /// version; `ERR_SCHEMA` if it is no SAGA document, or has a number that its signature cannot bind: an integer that
    /// no double equals.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.starts_with(ARCHIVE) {
            let message =
                "it is an archive, such as a container, and a document is asked for, which is JSON";
            return Err(Error::corrupt(message).with_hint(FROM_CONTAINER));
        }
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(Error::limit(format!("a document has {MAX_DOCUMENT_BYTES} bytes at most")));
        }
        Self::from_value(json::parse_within(bytes, MAX_DOCUMENT_MEMORY)?)
    }

    /// Reads a document from a file.
    ///
    /// # Errors
    /// Those of [`Document::parse`], with the file; `ERR_NOT_FOUND`, `ERR_IO`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let read = || {
            let mut bytes = Vec::new();
            let most = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
            File::open(path)?.take(most).read_to_end(&mut bytes)?;
            Self::parse(&bytes)
        };
        read().map_err(|error: Error| {
            let own = [other::Kind::SagaDocument, other::Kind::SagaContainer];
            other::told(error.at_path(path), path, "a SAGA document", &own)
        })
    }

    /// Takes a value as a document.
    ///
    /// # Errors
    /// Those of [`Document::parse`].
    pub fn from_value(value: Value) -> Result<Self> {
        let Value::Object(members) = value else {
            return Err(Error::schema("a SAGA document is a JSON object"));
        };
        check_version(&members)?;
        if let Some(integer) = members.values().find_map(unbound_integer) {
            let message = format!("the integer {integer} is beyond what a signature binds");
            return Err(Error::schema(message).with_hint("write it as text"));
        }
        Ok(Self { members })
    }

    /// Its JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.members.clone())
    }

    /// Its canonical form (RFC 8785), in which it is written.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if there is none, which a document that was read has.
    pub fn canonical(&self) -> Result<String> {
        json::canonical(&self.to_value())
    }

    /// What its signature is over: the canonical form of all but the member `signature`.
    ///
    /// # Errors
    /// Those of [`Document::canonical`].
    pub fn signed_text(&self) -> Result<String> {
        let mut members = self.members.clone();
        members.remove("signature");
        json::canonical(&Value::Object(members))
    }

    /// A member of it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    pub(super) fn members_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.members
    }

    /// The text of a member; empty if it has none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its `documentId`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.text("documentId")
    }

    /// What it was exported for.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for another word.
    pub fn export_type(&self) -> Result<ExportType> {
        self.text("exportType").parse()
    }

    /// When it was exported.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if that is no time.
    pub fn exported_at(&self) -> Result<EpochMs> {
        Ok(parse_datetime(self.text("exportedAt"))?)
    }

    /// A layer of it.
    #[must_use]
    pub fn layer(&self, layer: Layer) -> Option<&Value> {
        self.get("layers")?.get(layer.name())
    }

    /// Returns `true` if it has a layer of this name, whether that is known or not.
    pub(super) fn has_layer(&self, name: &str) -> bool {
        self.get("layers").is_some_and(|layers| layers.get(name).is_some())
    }

    /// The names of its layers, known or not.
    pub(super) fn layer_names(&self) -> impl Iterator<Item = &str> {
        let layers = self.get("layers").and_then(Value::as_object).into_iter().flatten();
        layers.map(|(name, _)| name.as_str())
    }

    /// The names and values of its layers that are not known.
    pub(super) fn unknown_layers(&self) -> impl Iterator<Item = (&str, &Value)> {
        let layers = self.get("layers").and_then(Value::as_object).into_iter().flatten();
        layers
            .filter(|(name, _)| name.parse::<Layer>().is_err())
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Its members that are not known.
    pub(super) fn unknown_members(&self) -> Map<String, Value> {
        let is_known = |name: &String| MEMBERS.contains(&name.as_str());
        let unknown = self.members.iter().filter(|(name, _)| !is_known(name));
        unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The layers that it has.
    pub fn layers(&self) -> impl Iterator<Item = Layer> + '_ {
        Layer::ALL.iter().copied().filter(|layer| self.layer(*layer).is_some())
    }

    pub(super) fn layers_mut(&mut self) -> Option<&mut Map<String, Value>> {
        self.members.get_mut("layers").and_then(Value::as_object_mut)
    }

    /// The wallet of its identity layer: whose document it is.
    ///
    /// # Errors
    /// `ERR_SCHEMA` without one, or for an address that is none of its chain.
    pub fn wallet(&self) -> Result<Wallet> {
        let identity = self
            .layer(Layer::Identity)
            .ok_or_else(|| Error::schema("a document has an identity layer"))?;
        let text = |name: &str| identity.get(name).and_then(Value::as_str).unwrap_or_default();
        Wallet::new(text("chain"), text("walletAddress"))
            .map_err(|error| error.in_entry("layers.identity"))
    }

    /// The paths of its layers that are encrypted, as it says.
    pub(super) fn encrypted_layers(&self) -> impl Iterator<Item = &str> {
        texts(self.get("privacy").and_then(|privacy| privacy.get("encryptedLayers")))
    }
}

/// The texts of a list.
pub(super) fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Looks a path such as `memory.longTerm` up in a value.
pub(super) fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// Looks a path up in the members of an object, to change what is there.
pub(super) fn at_path_mut<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    path.split('.').try_fold(value, |value, name| value.get_mut(name))
}

/// Checks that a document is of the major version that is known.
fn check_version(members: &Map<String, Value>) -> Result<()> {
    let version = members.get("sagaVersion").and_then(Value::as_str).ok_or_else(|| {
        Error::schema("a SAGA document has a sagaVersion").in_entry("sagaVersion")
    })?;
    let major = version.split('.').next().unwrap_or_default();
    let refusal = match major.parse::<u64>() {
        Ok(1) => return Ok(()),
        Ok(0) => Error::version(format!("SAGA {version} is before 1.0"))
            .with_hint("nothing says how to bring it to 1.0; ask for a newer export"),
        Ok(_) => Error::version(format!("SAGA {version} is not known here; 1.x is")),
        Err(_) => Error::schema(format!("{version:?} is no version")),
    };
    Err(refusal.in_entry("sagaVersion"))
}

/// An integer that no double equals. The canonical form has numbers as doubles, so that a signature would not tell it
/// from its neighbours (RFC 8785 section 3.1, RFC 7493 section 2.2).
fn unbound_integer(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) if !number.is_f64() => {
            let double = number.as_f64().unwrap_or(f64::NAN);
            let written = number.to_string();
            (format!("{double:.0}") != written).then_some(written)
        }
        Value::Array(items) => items.iter().find_map(unbound_integer),
        Value::Object(members) => members.values().find_map(unbound_integer),
        _ => None,
    }
}
