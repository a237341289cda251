//! Operations on disclosed views (OMS 10): `check_view`, `restore_view`.

use data_encoding::BASE64;
use grainstore::format::{
    self, DecodeOptions, DeviceProfile, Envelope, Header, Map, Value, disclosure_of, parse_json,
};
use grainstore::{ContentAddress, Grain, Session};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::codec::encode_grain;
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::json::Base64;
use crate::shape::FORMAT_VERSION;

/// The first bytes of a COSE_Sign1, tagged or not.
const COSE_STARTS: [u8; 2] = [0xd2, 0x84];

/// The error of revealed values: where they differ, it is about them, and not about the view.
fn other_value(error: format::Error) -> Error {
    Error::from(error).with_hint_for(Code::Integrity.name(), OTHER_VALUE)
}

/// What to do about a revealed value that is not the one of the grain.
const OTHER_VALUE: &str = "a revealed value is another than that of the grain, or the view was changed: ask for both again";

/// Checks a view against its original, or revealed values against the view.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckView<'p> {
    #[serde(borrow)]
    view: Option<&'p RawValue>,
    view_blob: Option<Base64>,
    original: Option<Base64>,
    #[serde(borrow)]
    revealed: Option<&'p RawValue>,
}

pub(crate) fn check_view(given: CheckView<'_>, host: &mut Host) -> Result<CheckedView> {
    let view = GivenView::one_of(given.view, given.view_blob)?;
    let revealed = given.revealed.map(RawValue::get);
    match (given.original, revealed) {
        (Some(Base64(original)), revealed) => view.check(Some(&original), revealed),
        (None, Some(revealed)) => view.check(None, Some(revealed)),
        (None, None) => view.check_stored(host.session()?),
    }
}

/// Rebuilds the original of a view.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreView<'p> {
    #[serde(borrow)]
    view: Option<&'p RawValue>,
    view_blob: Option<Base64>,
    #[serde(borrow)]
    revealed: &'p RawValue,
}

pub(crate) fn restore_view(given: RestoreView<'_>, _: &mut Host) -> Result<RestoredView> {
    GivenView::one_of(given.view, given.view_blob)?.restore(given.revealed.get())
}

/// A disclosed view somebody gave.
///
/// ```
/// use grainstore_rpc::{GivenView, View, encode_grain};
///
/// let json = r#"{"type": "event", "content": "hi", "user_id": "alice", "created_at": 1768471200000}"#;
/// let original = encode_grain(json, Default::default())?;
/// let view = View::of(original.bytes(), vec!["user_id".into()])?;
/// let given = GivenView::of(view.blob)?;
/// assert!(given.check(Some(original.bytes()), None)?.whole);
/// assert!(given.check(None, Some(r#"{"user_id": "bob"}"#)).is_err());
/// let restored = given.restore(r#"{"user_id": "alice"}"#)?;
/// assert_eq!(restored.blob, original.bytes());
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug)]
pub struct GivenView(Grain);

/// The answer of a check that a view has passed ([`GivenView::check`]; [`GivenView`] shows it).
#[derive(Debug, Serialize, Deserialize)]
pub struct CheckedView {
    /// The grain it is a view of, as the view says.
    pub original: ContentAddress,
    /// True if the whole view was compared with that grain; false if revealed values alone were, with the
    /// hashes of the view.
    pub whole: bool,
    /// The fields the view hides.
    pub hidden: Vec<String>,
    /// Of those the fields whose values were revealed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revealed: Vec<String>,
}

/// The original of a view ([`GivenView::restore`]; [`GivenView`] shows it).
#[derive(Debug, Serialize)]
pub struct RestoredView {
    /// Its address, which the view names.
    pub address: ContentAddress,
    /// Its fields.
    pub grain: Grain,
    /// Its bytes, as they are addressed; of a signed grain those within its envelope.
    #[serde(serialize_with = "base64")]
    pub blob: Vec<u8>,
}

impl GivenView {
    /// Reads a view in JSON or as a blob.
    ///
    /// # Errors
    /// Those of [`Grain::decode`]; `ERR_CORRUPT` for text that is not UTF-8.
    pub fn of(bytes: Vec<u8>) -> Result<Self> {
        if bytes.first() == Some(&FORMAT_VERSION) {
            return Ok(Self(Grain::decode(&bytes)?));
        }
        let text = String::from_utf8(bytes).map_err(|_| no_text("the view"))?;
        Ok(Self(Grain::from_json(&text)?))
    }

    fn one_of(json: Option<&RawValue>, blob: Option<Base64>) -> Result<Self> {
        match (json, blob) {
            (Some(json), None) => Ok(Self(Grain::from_json(json.get())?)),
            (None, Some(Base64(blob))) => Ok(Self(Grain::decode(&blob)?)),
            _ => Err(Error::arguments("give exactly one of view and view_blob")),
        }
    }

    /// Checks the view against its original, if that is given (a blob, a COSE_Sign1 around one, or JSON), and
    /// revealed values, a JSON object by the names of fields, against the hashes in their places.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for any difference; `ERR_SCHEMA` for a grain that is no view, and for a value of a
    /// field that it does not hide.
    pub fn check(&self, original: Option<&[u8]>, revealed: Option<&str>) -> Result<CheckedView> {
        let address = disclosure_of(&self.0)?;
        if let Some(original) = original {
            format::check_view(&self.0, &original_blob(original)?)?;
        }
        let revealed = revealed.map(|text| self.revealed(text)).transpose()?.unwrap_or_default();
        for (name, value) in &revealed {
            format::check_revealed(&self.0, name, value).map_err(other_value)?;
        }
        let hidden = self.0.map("_elided").into_iter().flat_map(Map::keys).cloned();
        Ok(CheckedView {
            original: address,
            whole: original.is_some(),
            hidden: hidden.collect(),
            revealed: revealed.into_keys().collect(),
        })
    }

    /// Checks the view against the grain it names, which the session must see.
    ///
    /// # Errors
    /// As [`GivenView::check`]; those of [`Session::get`].
    pub fn check_stored(&self, session: &Session) -> Result<CheckedView> {
        let original = session.get(&disclosure_of(&self.0)?)?.blob;
        self.check(Some(&original), None)
    }

    /// Rebuilds the original from the values of all hidden fields, a JSON object by their names.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a grain that is no view, for a hidden field without a value, and for a value of a
    /// field that is not hidden; `ERR_INTEGRITY` for values that make another grain.
    pub fn restore(&self, revealed: &str) -> Result<RestoredView> {
        let revealed = self.revealed(revealed)?;
        let blob = format::restore_original(&self.0, &revealed).map_err(other_value)?;
        let (header, _) = Header::read(blob.bytes())?;
        let enveloped = header.flags.contains(format::Flags::SIGNED);
        let options = DecodeOptions { enveloped, ..DecodeOptions::default() };
        let grain = Grain::decode_with(blob.bytes(), &options)?;
        Ok(RestoredView { address: blob.address(), grain, blob: blob.into_bytes() })
    }

    /// Reads revealed values, in the form they have in a grain where the view and they make one.
    fn revealed(&self, text: &str) -> Result<Map> {
        let Value::Map(mut revealed) = parse_json(text, &DeviceProfile::EXTENDED)? else {
            let message = "the revealed values are no JSON object";
            return Err(Error::new(
                Code::Schema,
                message,
                "give them by the names of their fields",
            ));
        };
        let mut fields = self.0.fields().clone();
        fields.retain(|name, _| !["_elided", "_disclosure_of"].contains(&name.as_str()));
        fields.extend(revealed.clone());
        // Where some are still hidden they may make no grain: then the values are taken as they are.
        if let Ok(whole) = Grain::from_fields(fields) {
            for (name, value) in &mut revealed {
                if let Some(normalised) = whole.get(name) {
                    value.clone_from(normalised);
                }
            }
        }
        Ok(revealed)
    }
}

/// The blob of an original: as it is, from its envelope, or of its JSON.
fn original_blob(given: &[u8]) -> Result<Vec<u8>> {
    match given.first() {
        Some(&FORMAT_VERSION) => Ok(given.to_vec()),
        Some(start) if COSE_STARTS.contains(start) => {
            Ok(Envelope::parse(given.to_vec())?.blob()?.to_vec())
        }
        _ => {
            let text = std::str::from_utf8(given).map_err(|_| no_text("the original"))?;
            Ok(encode_grain(text, format::Encoding::default())?.into_bytes())
        }
    }
}

fn no_text(what: &str) -> Error {
    let message = format!("{what} is neither a blob nor text in UTF-8");
    Error::new(Code::Corrupt, message, "give JSON, or the bytes of a grain")
}

fn base64<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}
