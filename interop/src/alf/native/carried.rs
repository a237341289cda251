//! The grain that a record carries in `raw_source_format`, byte for byte, with its signature.

use data_encoding::{BASE64, HEXLOWER};
use grainstore::format::{GrainType, Value as Field};
use grainstore::{ContentAddress, ErrorKind, Grain, Offer, StoredGrain};
use sha2::{Digest, Sha256};

use super::{FORMAT, is_native};
use crate::error::{Error, Result};
use crate::json::{self, Value};

/// A grain that a record carries.
#[derive(Debug)]
pub(in super::super) struct Carried {
    pub(in super::super) offer: Offer,
    pub(in super::super) address: ContentAddress,
    pub(in super::super) grain: Grain,
}

/// Returns the grain that a record carries; `None` if it carries none, or was changed since.
///
/// # Errors
/// `ERR_CORRUPT` for a grain that cannot be read, and other codes of the format.
pub(in super::super) fn carried(rest: &Value) -> Result<Option<Carried>> {
    let Some(raw) = rest.get("raw_source_format") else { return Ok(None) };
    let said = |name: &str| raw.get(name).and_then(Value::as_str);
    if said("format") != Some(FORMAT) || said("view_sha256") != Some(&digest_of_view(rest)?) {
        return Ok(None);
    }
    let bytes = |name: &str| {
        let bytes = said(name).map(|text| BASE64.decode(text.as_bytes()));
        bytes.transpose().map_err(|_| Error::corrupt(format!("{name} of the grain is no base64")))
    };
    let Some(blob) = bytes("blob")? else { return Ok(None) };
    let address = ContentAddress::of(&blob);
    let carried = match bytes("cose")? {
        Some(envelope) => {
            let parsed = grainstore::format::Envelope::parse(envelope.clone())?;
            if parsed.blob()? != blob {
                return Err(Error::corrupt("the signature is that of another grain"));
            }
            let (grain, signer) = (parsed.grain()?, parsed.kid());
            (Carried { offer: Offer::Signed(envelope), address, grain }, signer)
        }
        None => {
            let grain = Grain::decode(&blob)?;
            (Carried { offer: Offer::Blob(blob), address, grain }, None)
        }
    };
    check(&carried.0.grain, carried.1.as_deref())?;
    Ok(Some(carried.0))
}

/// An archive vouches for nothing: it brings no document, whose checks a grain would pass by, and no consent in the place of
/// a withdrawal, unless who consents has signed it (OMS 8.10).
fn check(grain: &Grain, signer: Option<&str>) -> Result<()> {
    if !is_native(grain) {
        return Err(Error::schema("the grain it carries is a document, or of another format"));
    }
    let renews = grain.grain_type() == GrainType::Consent
        && grain.get("prior_consent").is_some()
        && grain.get("is_withdrawal").and_then(Field::as_bool) != Some(true);
    let is_signed = signer.is_some_and(|kid| {
        grain.text("subject_did").is_some_and(|did| kid.split('#').next() == Some(did))
    });
    match renews && !is_signed {
        true => Err(Error::new(
            ErrorKind::Signature,
            "the consent it carries renews another: who consents has to sign it",
        )),
        false => Ok(()),
    }
}

/// Adds the bytes of its grain to a record that was kept without them.
pub(in super::super) fn with_grain(mut view: Value, stored: &StoredGrain) -> Value {
    if let Some(raw) = view.get_mut("raw_source_format") {
        json::set(raw, "blob", Value::from(BASE64.encode(&stored.blob)));
        if let Some(envelope) = &stored.envelope {
            json::set(raw, "cose", Value::from(BASE64.encode(envelope.bytes())));
        }
    }
    view
}

/// Takes the bytes of its grain from a record.
pub(in super::super) fn without_grain(mut rest: Value) -> Value {
    if let Some(Value::Object(raw)) = rest.get_mut("raw_source_format") {
        raw.remove("blob");
        raw.remove("cose");
    }
    rest
}

/// The hash of what other readers see of a record: it shows whether one of them changed it.
pub(super) fn digest_of_view(rest: &Value) -> Result<String> {
    let mut view = rest.clone();
    if let Value::Object(members) = &mut view {
        members.remove("raw_source_format");
    }
    Ok(HEXLOWER.encode(&Sha256::digest(json::canonical(&view)?)))
}
