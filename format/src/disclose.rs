//! Selective disclosure: a view of a grain in which hashes stand for some of its fields (OMS 10).
//!
//! A view is made for one recipient and is not a grain of its own. As the standard prescribes, the
//! hashes are not salted: a recipient who can guess a value can confirm the guess. A view can be
//! checked against the original, or once every hidden value is revealed: then the original is rebuilt,
//! and its address, and with it its signature, can be verified.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result, schema};
use crate::fields::ELIDABLE;
use crate::grain::{Blob, DecodeOptions, Grain};
use crate::header::{Flags, Header};
use crate::profile::DeviceProfile;
use crate::validate;
use crate::value::{Map, Value};

const ELIDED: &str = "_elided";
const DISCLOSURE_OF: &str = "_disclosure_of";
const SHA256_PREFIX: &str = "sha256:";

/// Makes a view of the grain in a blob, signed or not, without the given fields. Fields the grain does
/// not have are ignored. A view of a view hides more of the same original.
///
/// ```
/// use grainstore_format::{Encoding, Grain, Map, Value, check_view, disclose, restore_original};
///
/// let grain = Grain::from_json(
///     r#"{"type": "event", "content": "hi", "user_id": "alice", "created_at": 1768471200000}"#,
/// )?;
/// let blob = grain.encode(Encoding::MessagePack)?;
/// let view = disclose(blob.bytes(), &["user_id"])?;
/// assert_eq!(view.text("user_id"), None);
/// check_view(&view, blob.bytes())?;
/// let revealed = Map::from([("user_id".to_owned(), Value::from("alice"))]);
/// assert_eq!(restore_original(&view, &revealed)?.address(), blob.address());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
///
/// # Errors
/// `ERR_SCHEMA` for a field that may not be elided (OMS 10.2); the errors of [`Grain::decode`] for the
/// blob.
pub fn disclose<S: AsRef<str>>(blob: &[u8], hide: &[S]) -> Result<Grain> {
    let hide = hide.iter().map(AsRef::as_ref);
    if let Some(shown) = hide.clone().find(|name| !ELIDABLE.contains(name)) {
        let message = format!("{shown} may not be elided; these may: {}", ELIDABLE.join(", "));
        return Err(schema(shown, message));
    }
    let (header, original) = decode(blob)?;
    let mut elided = original.map(ELIDED).cloned().unwrap_or_default();
    for name in hide {
        if let Some(hash) = field_hash(&original, name) {
            elided.insert(name.to_owned(), Value::from(hash));
        }
    }
    let mut fields = original.into_fields();
    fields.retain(|name, _| !elided.contains_key(name));
    if !elided.is_empty() {
        fields.insert(ELIDED.to_owned(), Value::Map(elided));
    }
    let origin = || Value::from(format!("{SHA256_PREFIX}{}", ContentAddress::of(blob)));
    fields.entry(DISCLOSURE_OF.to_owned()).or_insert_with(origin);
    validate::check(header.grain_type, &fields, &DeviceProfile::EXTENDED)?;
    let flags = header.flags.without(Flags::SIGNED);
    Ok(Grain::from_trusted(Header { flags, ..header }, fields))
}

/// Returns `true` if a grain is a disclosed view of another grain, as [`disclose`] makes them.
#[must_use]
pub fn is_disclosed_view(grain: &Grain) -> bool {
    grain.get(ELIDED).is_some() || grain.get(DISCLOSURE_OF).is_some()
}

/// Returns the address of the grain that [`disclose`] made a view of.
///
/// # Errors
/// `ERR_SCHEMA` for a grain that names no original; `ERR_HASH_LENGTH`, `ERR_HASH_FORMAT`.
pub fn disclosure_of(view: &Grain) -> Result<ContentAddress> {
    let text = view
        .text(DISCLOSURE_OF)
        .ok_or_else(|| schema(DISCLOSURE_OF, "this is no disclosed view"))?;
    text.strip_prefix(SHA256_PREFIX)
        .unwrap_or(text)
        .parse()
        .map_err(|error: Error| error.at(DISCLOSURE_OF))
}

/// Checks a view made by [`disclose`] against the blob of its original: the address, every field the
/// view shows, and the hash of every field it hides.
///
/// # Errors
/// `ERR_INTEGRITY` for any difference; the errors of [`Grain::decode`] for the blob.
pub fn check_view(view: &Grain, original: &[u8]) -> Result<()> {
    disclosure_of(view)?.verify(original)?;
    let (_, original) = decode(original)?;
    let elided = view.map(ELIDED).cloned().unwrap_or_default();
    for name in original.fields().keys().filter(|name| !elided.contains_key(*name)) {
        if view.get(name) != original.get(name) {
            return Err(view_mismatch(name, "the original says otherwise"));
        }
    }
    for name in
        view.fields().keys().filter(|name| ![ELIDED, DISCLOSURE_OF].contains(&name.as_str()))
    {
        if elided.contains_key(name) || original.get(name).is_none() {
            return Err(view_mismatch(name, "the original does not show it so"));
        }
    }
    for (name, value) in &elided {
        if field_hash(&original, name).as_deref() != value.as_str() {
            return Err(view_mismatch(name, "its hash is not that of the original's value"));
        }
    }
    Ok(())
}

/// Checks one revealed value against the hash that [`disclose`] put in its place.
///
/// # Errors
/// `ERR_SCHEMA` for a field the view does not hide; `ERR_INTEGRITY` for any other value.
pub fn check_revealed(view: &Grain, name: &str, value: &Value) -> Result<()> {
    let hidden = view.map(ELIDED).and_then(|elided| elided.get(name)).and_then(Value::as_str);
    let hidden = hidden.ok_or_else(|| schema(name, "the view does not hide this field"))?;
    if hidden == sha256_text(&Grain::encode_field(name, value)) {
        return Ok(());
    }
    Err(view_mismatch(name, "this is not the value that was hidden"))
}

/// Rebuilds the original from a view made by [`disclose`] and all the values it hides. The blob has the
/// address the view names, so a signature of the original can be verified over it.
///
/// # Errors
/// As [`check_revealed`]; `ERR_SCHEMA` for a hidden field that is not revealed; `ERR_INTEGRITY` if the
/// result is not the original.
pub fn restore_original(view: &Grain, revealed: &Map) -> Result<Blob> {
    let origin = disclosure_of(view)?;
    let mut fields = view.fields().clone();
    fields.remove(DISCLOSURE_OF);
    let elided = match fields.remove(ELIDED) {
        Some(Value::Map(elided)) => elided,
        _ => Map::new(),
    };
    for (name, value) in revealed {
        check_revealed(view, name, value)?;
        fields.insert(name.clone(), value.clone());
    }
    if let Some(hidden) = elided.keys().find(|name| !revealed.contains_key(*name)) {
        return Err(schema(hidden, "its value must be revealed as well"));
    }
    let header = match view.decoded_header() {
        Some(header) => {
            validate::check(header.grain_type, &fields, &DeviceProfile::EXTENDED)?;
            *header
        }
        None => {
            let whole = Grain::from_fields(fields)?;
            let header = whole.initial_header();
            fields = whole.into_fields();
            header
        }
    };
    // A view does not tell whether the original was signed, and a view from JSON not which encoding it
    // had: all four combinations are tried.
    let unsaid = [Flags::default(), Flags::SIGNED, Flags::CBOR, Flags::SIGNED.with(Flags::CBOR)];
    for unsaid in unsaid {
        let header = Header { flags: header.flags.with(unsaid), ..header };
        let blob = Grain::from_trusted(header, fields.clone()).encode(header.encoding())?;
        if blob.address() == origin {
            return Ok(blob);
        }
    }
    Err(view_mismatch(DISCLOSURE_OF, "the values do not make the grain the view names"))
}

/// Decodes the header and the grain of a blob, bare or taken from an envelope.
fn decode(blob: &[u8]) -> Result<(Header, Grain)> {
    let (header, _) = Header::read(blob)?;
    let enveloped = header.flags.contains(Flags::SIGNED);
    let grain = Grain::decode_with(blob, &DecodeOptions { enveloped, ..DecodeOptions::default() })?;
    Ok((header, grain))
}

/// Returns the hash that stands for a field in a view: that of its MessagePack, whatever the encoding
/// of the blob.
fn field_hash(grain: &Grain, name: &str) -> Option<String> {
    Some(sha256_text(&Grain::encode_field(name, grain.get(name)?)))
}

fn sha256_text(bytes: &[u8]) -> String {
    format!("{SHA256_PREFIX}{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

fn view_mismatch(field: &str, why: &str) -> Error {
    Error::new(ErrorKind::Integrity, format!("the view and its original differ: {why}")).at(field)
}
