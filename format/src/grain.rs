//! Grains: validated fields, and their encoding to and from blobs (OMS 4.9).

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::address::ContentAddress;
use crate::decode;
use crate::error::{Error, ErrorKind, Result};
use crate::fields::{self, NestedFields};
use crate::grain_type::GrainType;
use crate::header::{Flags, Header, Sensitivity, namespace_hash};
use crate::json::parse_json;
use crate::normalise;
use crate::payload::{self, PayloadKey};
use crate::profile::DeviceProfile;
use crate::state::{REVIEW_FLAG, VerificationStatus};
use crate::time::EpochMs;
use crate::validate;
use crate::value::{Map, Value};
use crate::wire::{Encoding, TokenWriter};

/// A grain: an immutable, valid set of fields of one type.
///
/// Fields have their full names, `type` included. Every `Grain` has passed validation, so encoding one
/// cannot fail on its schema.
///
/// ```
/// use grainstore_format::{BeliefBuilder, EpochMs, GrainType};
///
/// let created_at = EpochMs::new(1_768_471_200_000);
/// let grain = BeliefBuilder::new(created_at, "alice", "mg:prefers", "dark mode", 0.9)
///     .namespace("work")
///     .build()?;
/// assert_eq!(grain.grain_type(), GrainType::Belief);
/// assert_eq!((grain.text("subject"), grain.number("confidence")), (Some("alice"), Some(0.9)));
/// assert_eq!((grain.partition(), grain.created_at()), ("work", created_at));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grain {
    grain_type: GrainType,
    /// Shared between clones.
    fields: Arc<Map>,
    /// The header this grain was decoded from. Re-encoding repeats its flags.
    origin: Option<Header>,
}

/// The canonical bytes of a grain, with their address.
///
/// ```
/// use grainstore_format::{Blob, ContentAddress, Encoding, EpochMs, EventBuilder};
///
/// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
/// let blob = grain.encode(Encoding::MessagePack)?;
/// assert_eq!(blob.address(), ContentAddress::of(blob.bytes()));
/// assert_eq!(Blob::from_bytes(blob.bytes().to_vec()), blob);
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    bytes: Vec<u8>,
    address: ContentAddress,
}

impl Blob {
    /// Wraps bytes that are already a blob and computes their address. The bytes are not checked.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let address = ContentAddress::of(&bytes);
        Self { bytes, address }
    }

    /// Returns the header and the payload.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the header and the payload, owned.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the SHA-256 of the bytes.
    #[must_use]
    pub fn address(&self) -> ContentAddress {
        self.address
    }
}

/// Options of [`Grain::encode_with`].
///
/// ```
/// use grainstore_format::{DecodeOptions, EncodeOptions, EpochMs, EventBuilder, Grain, PayloadKey};
///
/// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
/// let (key, nonce) = (PayloadKey::new([7; 32]), [1; 12]);
/// let options =
///     EncodeOptions { compress: true, encrypt: Some((&key, nonce)), ..EncodeOptions::default() };
/// let blob = grain.encode_with(&options)?;
///
/// assert!(Grain::decode(blob.bytes()).is_err_and(|error| error.code() == "ERR_KEY"));
/// let options = DecodeOptions { key: Some(&key), ..DecodeOptions::default() };
/// assert_eq!(Grain::decode_with(blob.bytes(), &options)?.fields(), grain.fields());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct EncodeOptions<'a> {
    /// The encoding: MessagePack or CBOR.
    pub encoding: Encoding,
    /// The size and depth limits to enforce.
    pub profile: DeviceProfile,
    /// Compresses the payload inside the blob with zstd (flag bit 2).
    pub compress: bool,
    /// Encrypts the payload inside the blob with this AES-256-GCM key and this fresh 12-byte nonce
    /// (flag bit 1).
    pub encrypt: Option<(&'a PayloadKey, [u8; 12])>,
    /// The sensitivity a writer gives the grain, where its tags require less (OMS 13.1); `None` for what the
    /// tags require. A lower one is `ERR_SENSITIVITY_MISMATCH`.
    pub sensitivity: Option<Sensitivity>,
}

/// Options of [`Grain::decode_with`], the counterpart of [`EncodeOptions`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DecodeOptions<'a> {
    /// The size and depth limits to enforce.
    pub profile: DeviceProfile,
    /// The key of payloads that are encrypted inside the blob.
    pub key: Option<&'a PayloadKey>,
    /// `true` if a COSE_Sign1 wraps the blob. The blob's signed flag must agree (OMS 9.2).
    pub enveloped: bool,
}

impl Grain {
    /// Builds a grain from JSON text with full field names.
    ///
    /// # Errors
    /// Any code of OMS section 19 that a grain can cause; see [`Grain::from_fields`] and
    /// [`crate::parse_json`].
    pub fn from_json(text: &str) -> Result<Self> {
        match parse_json(text, &DeviceProfile::EXTENDED)? {
            Value::Map(fields) => Self::from_fields(fields),
            other => {
                let message = format!("a grain is a JSON object, not {}", other.type_name());
                Err(Error::new(ErrorKind::NotMap, message))
            }
        }
    }

    /// Builds a grain from fields with full names. Brings them into canonical form: NFC text, no null
    /// entries, numbers by the field table, RFC 3339 dates as milliseconds.
    ///
    /// ```
    /// use grainstore_format::{Grain, Map, Value};
    ///
    /// let mut fields = Map::new();
    /// fields.insert("type".to_owned(), Value::from("event"));
    /// fields.insert("content".to_owned(), Value::from("alice said hello"));
    /// fields.insert("created_at".to_owned(), Value::from("2026-01-15T10:00:00Z"));
    /// let grain = Grain::from_fields(fields)?;
    /// assert_eq!(grain.int("created_at"), Some(1_768_471_200_000));
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_CORRUPT`, `ERR_FLOAT_INVALID`, `ERR_NO_TYPE`, `ERR_UNKNOWN_TYPE`, `ERR_SCHEMA`,
    /// `ERR_EMPTY`, `ERR_RANGE`, `ERR_HASH_LENGTH`, `ERR_HASH_FORMAT` (OMS section 19).
    pub fn from_fields(fields: Map) -> Result<Self> {
        Self::from_fields_for(fields, &DeviceProfile::EXTENDED)
    }

    /// Like [`Grain::from_fields`], within the limits of a device profile.
    ///
    /// # Errors
    /// As [`Grain::from_fields`].
    pub fn from_fields_for(fields: Map, profile: &DeviceProfile) -> Result<Self> {
        let (grain_type, mut fields) = normalise::fields(fields, profile.max_depth)?;
        if grain_type == GrainType::Belief && validate::is_ownership_belief(&fields) {
            // Readers assume 1.0 where it is missing (OMS 12.5.3); a writer stores it.
            fields.entry("confidence".to_owned()).or_insert_with(|| Value::from(1.0));
        }
        validate::check_written(grain_type, &fields, profile)?;
        Ok(Self { grain_type, fields: Arc::new(fields), origin: None })
    }

    /// Decodes and validates a bare blob within the limits of the extended profile.
    ///
    /// ```
    /// use grainstore_format::{Encoding, EpochMs, EventBuilder, Grain};
    ///
    /// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
    /// let mut bytes = grain.encode(Encoding::MessagePack)?.into_bytes();
    /// assert_eq!(Grain::decode(&bytes)?.text("content"), Some("alice said hello"));
    /// bytes.pop();
    /// assert!(Grain::decode(&bytes).is_err_and(|error| error.code() == "ERR_CORRUPT"));
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any code of OMS section 19, for the first check that fails: size, header, payload bytes, header
    /// against payload, then the checks of `validate`.
    pub fn decode(blob: &[u8]) -> Result<Self> {
        Self::decode_with(blob, &DecodeOptions::default())
    }

    /// Like [`Grain::decode`], with another profile, the key of an encrypted payload, or for the blob
    /// inside an envelope.
    ///
    /// # Errors
    /// As [`Grain::decode`]; `ERR_KEY` for a missing or wrong key.
    pub fn decode_with(blob: &[u8], options: &DecodeOptions<'_>) -> Result<Self> {
        options.profile.check_size(blob.len())?;
        let (header, stored) = Header::split_enveloped(blob, options.enveloped)?;
        let payload = payload::open(&header, stored, options.key, &options.profile)?;
        let grain_type = header.grain_type;
        let encoding = header.encoding();
        let fields = decode::payload(&payload, encoding, grain_type, options.profile.max_depth)?;
        check_against_header(&header, &fields)?;
        validate::check(grain_type, &fields, &options.profile)?;
        Ok(Self { grain_type, fields: Arc::new(fields), origin: Some(header) })
    }

    /// Builds a grain from fields that were checked when they were stored. They are not validated
    /// again.
    pub(crate) fn from_trusted(header: Header, fields: Map) -> Self {
        Self { grain_type: header.grain_type, fields: Arc::new(fields), origin: Some(header) }
    }

    /// Returns a copy without one field, which must be a field that no type requires.
    pub(crate) fn without_field(&self, name: &str) -> Self {
        let mut other = self.clone();
        Arc::make_mut(&mut other.fields).remove(name);
        other
    }

    /// Encodes this grain as a blob. A decoded grain repeats the flag byte it was decoded with, except
    /// for the bit of the encoding asked for.
    ///
    /// ```
    /// use grainstore_format::{Encoding, EpochMs, EventBuilder};
    ///
    /// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
    /// let blob = grain.encode(Encoding::MessagePack)?;
    /// assert_eq!(grain.encode(Encoding::MessagePack)?.address(), blob.address());
    /// assert_ne!(grain.encode(Encoding::Cbor)?.address(), blob.address());
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_KEY` for a grain decoded from an encrypted payload.
    pub fn encode(&self, encoding: Encoding) -> Result<Blob> {
        self.encode_with(&EncodeOptions { encoding, ..EncodeOptions::default() })
    }

    /// Like [`Grain::encode`], with a profile, payload compression, payload encryption or a sensitivity.
    ///
    /// # Errors
    /// As [`Grain::encode`]; `ERR_SENSITIVITY_MISMATCH`.
    pub fn encode_with(&self, options: &EncodeOptions<'_>) -> Result<Blob> {
        let header = self.header(options);
        if options.sensitivity.is_some() {
            check_sensitivity(&header, &self.fields)?;
        }
        let mut writer = TokenWriter::new(Vec::with_capacity(256), options.encoding);
        self.write_payload(&mut writer);
        let payload = payload::seal(&header, writer.into_bytes(), options.encrypt)?;
        let mut bytes = Vec::with_capacity(Header::LEN + payload.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(&payload);
        options.profile.check_size(bytes.len())?;
        Ok(Blob::from_bytes(bytes))
    }

    /// Returns the type, as encoded in the header byte.
    #[must_use]
    pub fn grain_type(&self) -> GrainType {
        self.grain_type
    }

    /// Returns the header this grain was decoded from, or `None` if it was not decoded.
    #[must_use]
    pub fn decoded_header(&self) -> Option<&Header> {
        self.origin.as_ref()
    }

    /// Returns all fields, by full name.
    #[must_use]
    pub fn fields(&self) -> &Map {
        &self.fields
    }

    /// Returns all fields, owned, to build another grain from.
    #[must_use]
    pub fn into_fields(self) -> Map {
        Arc::unwrap_or_clone(self.fields)
    }

    /// Returns one field by its full name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Returns a text field.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// Returns a numeric field, integer or float. An ownership belief without `confidence` has 1.0 (OMS
    /// 12.5.3).
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let assumed = || {
            let is_ownership = name == "confidence"
                && self.grain_type == GrainType::Belief
                && validate::is_ownership_belief(&self.fields);
            is_ownership.then_some(1.0)
        };
        self.get(name).map_or_else(assumed, Value::as_f64)
    }

    /// Returns an integer field.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    /// Returns a boolean field.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    /// Returns `true` if the grain asks for human review (`requires_human_review`, OMS 6.1).
    #[must_use]
    pub fn requires_review(&self) -> bool {
        self.flag(REVIEW_FLAG) == Some(true)
    }

    /// Returns `true` for a reasoning that asks for human review and has not been verified, given its
    /// status. Such a grain must not drive an automated decision (OMS 6.1).
    ///
    /// ```
    /// use grainstore_format::{Grain, VerificationStatus};
    ///
    /// let grain = Grain::from_json(
    ///     r#"{"type": "reasoning", "premises": ["a note"], "conclusion": "refund ann",
    ///         "inference_method": "deductive", "requires_human_review": true,
    ///         "created_at": "2026-01-15T10:00:00Z"}"#,
    /// )?;
    /// assert!(grain.awaits_review(VerificationStatus::Unverified));
    /// assert!(!grain.awaits_review(VerificationStatus::Verified));
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    #[must_use]
    pub fn awaits_review(&self, status: VerificationStatus) -> bool {
        status.awaits_review(self.grain_type(), self.requires_review())
    }

    /// Returns the items of a list field.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<&[Value]> {
        self.get(name).and_then(Value::as_array)
    }

    /// Returns the entries of a map field.
    ///
    /// ```
    /// use grainstore_format::{EpochMs, EventBuilder, Map, Value};
    ///
    /// let policy = Map::from([("mode".to_owned(), Value::from("locked"))]);
    /// let event = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice signed the lease");
    /// let grain = event.invalidation_policy(policy).build()?;
    /// let mode = grain.map("invalidation_policy").and_then(|policy| policy.get("mode"));
    /// assert_eq!(mode.and_then(Value::as_str), Some("locked"));
    /// # Ok::<(), grainstore_format::Error>(())
    /// ```
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&Map> {
        self.get(name).and_then(Value::as_map)
    }

    /// Iterates over the texts of a list field. Other items are left out.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.list(name).unwrap_or_default().iter().filter_map(Value::as_str)
    }

    /// Returns the creation time, or the epoch for an opaque grain without one.
    #[must_use]
    pub fn created_at(&self) -> EpochMs {
        EpochMs::new(self.int("created_at").unwrap_or_default())
    }

    /// Returns the grain's time: `timestamp_ms`, else `created_at` (OMS 3.1.1).
    #[must_use]
    pub fn time(&self) -> EpochMs {
        self.int("timestamp_ms").map_or_else(|| self.created_at(), EpochMs::new)
    }

    /// Returns the partition: the namespace, or `shared` without one (OMS 28.2).
    #[must_use]
    pub fn partition(&self) -> &str {
        match self.text("namespace") {
            None | Some("") => SHARED_PARTITION,
            Some(namespace) => namespace,
        }
    }

    fn header(&self, options: &EncodeOptions<'_>) -> Header {
        let mut flags = self.origin.map_or_else(|| self.initial_flags(), |header| header.flags);
        flags = flags.without(Flags::CBOR);
        if options.encoding == Encoding::Cbor {
            flags = flags.with(Flags::CBOR);
        }
        if options.compress {
            flags = flags.with(Flags::COMPRESSED);
        }
        if options.encrypt.is_some() {
            flags = flags.with(Flags::ENCRYPTED);
        }
        if let Some(sensitivity) = options.sensitivity {
            flags = flags.with_sensitivity(sensitivity);
        }
        let second = self.int("created_at").and_then(|ms| EpochMs::new(ms).header_second());
        let kept = self.origin.map_or(0, |header| header.created_at_sec);
        Header {
            flags,
            grain_type: self.grain_type,
            ns_hash: namespace_hash(self.text("namespace")),
            created_at_sec: second.unwrap_or(kept),
        }
    }

    /// Returns the flags a writer sets: references (OMS 3.1.1) and sensitivity (13.4).
    fn initial_flags(&self) -> Flags {
        let mut flags = Flags::default().with_sensitivity(required_sensitivity(&self.fields));
        for (name, flag) in
            [("content_refs", Flags::CONTENT_REFS), ("embedding_refs", Flags::EMBEDDING_REFS)]
        {
            if self.list(name).is_some_and(|entries| !entries.is_empty()) {
                flags = flags.with(flag);
            }
        }
        flags
    }

    fn write_payload(&self, writer: &mut TokenWriter) {
        let encoding = writer.encoding();
        let mut entries: Vec<(&str, &str, &Value)> = self
            .fields
            .iter()
            .map(|(name, value)| {
                let def = fields::by_name(name, self.grain_type);
                (def.map_or(name.as_str(), |def| def.key), name.as_str(), value)
            })
            .collect();
        entries.sort_unstable_by(|(a, ..), (b, ..)| encoding.compare_keys(a, b));
        writer.map(entries.len());
        for (key, name, value) in entries {
            writer.text(key);
            write_field(writer, name, value);
        }
    }

    /// Encodes the value of one field in MessagePack, as it is in a payload.
    pub(crate) fn encode_field(name: &str, value: &Value) -> Vec<u8> {
        let mut writer = TokenWriter::new(Vec::new(), Encoding::MessagePack);
        write_field(&mut writer, name, value);
        writer.into_bytes()
    }

    /// Returns the header this grain would have if it were encoded for the first time.
    pub(crate) fn initial_header(&self) -> Header {
        Self { origin: None, ..self.clone() }.header(&EncodeOptions::default())
    }
}

/// Writes one value. The maps of the three nested fields are compacted one level down (OMS 4.7).
fn write_field(writer: &mut TokenWriter, name: &str, value: &Value) {
    match (NestedFields::under(name), value) {
        (Some(nested), Value::Array(items)) => write_nested(writer, nested, items),
        _ => writer.value(value),
    }
}

/// The partition of a [`Grain`] without a namespace (OMS 28.2).
pub const SHARED_PARTITION: &str = "shared";

impl Serialize for Grain {
    /// Serializes to a JSON object with full field names. Bytes are base64.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields())
    }
}

fn write_nested(writer: &mut TokenWriter, nested: &'static NestedFields, items: &[Value]) {
    writer.array(items.len());
    for item in items {
        let Value::Map(map) = item else {
            writer.value(item);
            continue;
        };
        let mut entries: Vec<(&str, &Value)> = map
            .iter()
            .map(|(name, value)| (nested.by_name(name).map_or(name.as_str(), |f| f.key), value))
            .collect();
        writer.entries(&mut entries);
    }
}

/// Returns the highest sensitivity any tag requires (OMS 13.4).
fn required_sensitivity(fields: &Map) -> Sensitivity {
    let tags = fields.get("structural_tags").and_then(Value::as_array).unwrap_or_default();
    let tags = tags.iter().filter_map(Value::as_str);
    tags.map(Sensitivity::of_tag).max().unwrap_or(Sensitivity::Public)
}

/// Checks that header and payload agree on type, namespace, second and sensitivity (OMS 3.1.1, 13.4).
fn check_against_header(header: &Header, fields: &Map) -> Result<()> {
    check_type(header.grain_type, fields)?;
    let namespace = fields.get("namespace");
    if namespace.is_none_or(|ns| ns.as_str().is_some())
        && namespace_hash(namespace.and_then(Value::as_str)) != header.ns_hash
    {
        return Err(header_mismatch("namespace hash", "namespace"));
    }
    if let Some(Value::Int(ms)) = fields.get("created_at")
        && ms.get().div_euclid(1000) != i128::from(header.created_at_sec)
    {
        return Err(header_mismatch("second", "created_at"));
    }
    check_sensitivity(header, fields)
}

/// Checks that the header's sensitivity is not below the one that the tags require (OMS 13.4).
fn check_sensitivity(header: &Header, fields: &Map) -> Result<()> {
    let needed = required_sensitivity(fields);
    if header.flags.sensitivity() < needed {
        let message = format!(
            "the header says {:?}, the tags ask for {needed:?}",
            header.flags.sensitivity()
        );
        return Err(Error::new(ErrorKind::SensitivityMismatch, message).at("structural_tags"));
    }
    Ok(())
}

/// Checks that the payload names the type of the header byte. An opaque type byte allows any
/// non-standard name.
fn check_type(header: GrainType, fields: &Map) -> Result<()> {
    let named = fields.get("type").and_then(Value::as_str).and_then(GrainType::from_name);
    match (header, named) {
        (GrainType::Opaque(_), None) if fields.contains_key("type") => Ok(()),
        (GrainType::Opaque(_), Some(_)) => Err(header_mismatch("type byte", "type")),
        (_, Some(named)) if named != header => Err(header_mismatch("type byte", "type")),
        _ => normalise::grain_type(fields).map(|_| ()),
    }
}

fn header_mismatch(header_part: &str, field: &str) -> Error {
    let message = format!("the header's {header_part} and the payload disagree");
    Error::new(ErrorKind::Corrupt, message).at(field)
}
