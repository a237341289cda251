//! The grain that a record carries in `raw_source_format`, byte for byte, with its signature.

use data_encoding::{BASE64, HEXLOWER};
use grainstore::format::{Envelope, GrainType};
use grainstore::{ContentAddress, ErrorKind, Grain, Offer, Session, StoredGrain};
use sha2::{Digest, Sha256};

use super::FORMAT;
use super::origin::may_be_carried;
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::vouch::{is_grant, is_here, is_signed_by_subject, named_by};

/// The byte of a blob with its type (OMS 3.1), and the digits of base64 that have it.
const TYPE_BYTE: usize = 2;
const HEAD_DIGITS: usize = 4;

/// A grain that a record carries.
#[derive(Debug)]
pub(in super::super) struct Carried {
    pub(in super::super) offer: Offer,
    pub(in super::super) address: ContentAddress,
    pub(in super::super) grain: Grain,
    envelope: Option<Envelope>,
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
            let parsed = Envelope::parse(envelope.clone())?;
            if parsed.blob()? != blob {
                return Err(Error::corrupt("the signature is that of another grain"));
            }
            let (offer, grain) = (Offer::Signed(envelope), parsed.grain()?);
            Carried { offer, address, grain, envelope: Some(parsed) }
        }
        None => {
            let grain = Grain::decode(&blob)?;
            Carried { offer: Offer::Blob(blob), address, grain, envelope: None }
        }
    };
    match may_be_carried(&carried.grain) {
        true => Ok(Some(carried)),
        false => Err(Error::schema("the grain it carries is a document, or of another format")),
    }
}

impl Carried {
    /// An archive vouches for nothing: it brings no consent in the place of another, a withdrawal or a grant, and none that
    /// names another before it, unless who consents has signed it (OMS 8.10). `old` is the grain whose place it would take.
    ///
    /// # Errors
    /// `ERR_SIGNATURE`.
    pub(in super::super) fn check_consent(
        &self,
        session: &Session,
        old: Option<&ContentAddress>,
    ) -> Result<()> {
        let is_signed = || is_signed_by_subject(session, &self.grain, self.envelope.as_ref());
        match is_grant(&self.grain) && self.renews(session, old) && !is_signed() {
            true => Err(Error::new(
                ErrorKind::Signature,
                "the consent it carries renews another: who consents has to sign it",
            )),
            false => Ok(()),
        }
    }

    /// Returns `true` if it is new here and names a consent before it, or would take the place of one. Of one in whose place
    /// it stands here already nothing changes.
    fn renews(&self, session: &Session, old: Option<&ContentAddress>) -> bool {
        let is_done = |address: &ContentAddress| {
            let stored = session.inspect(address);
            stored.is_ok_and(|stored| stored.state.superseded_by == Some(self.address))
        };
        let may_be_consent = |address: &ContentAddress| match session.inspect(address) {
            Ok(stored) => stored.grain().is_ok_and(|old| old.grain_type() == GrainType::Consent),
            Err(error) => error.kind() != ErrorKind::NotFound,
        };
        let has_prior = self.grain.text("prior_consent").is_some();
        old.is_some_and(|old| *old != self.address && !is_done(old))
            || !is_here(session, &self.address).is_ok_and(|is_here| is_here)
                && named_by(&self.grain).iter().any(|named| match named {
                    Some(named) => (has_prior || may_be_consent(named)) && !is_done(named),
                    None => true,
                })
    }
}

/// Returns `true` for a record that carries a consent, by the header of its grain (OMS 3.1).
pub(in super::super) fn carries_consent(record: &Value) -> bool {
    let said = |name: &str| record.get("raw_source_format")?.get(name)?.as_str();
    let head = said("blob").and_then(|text| text.get(..HEAD_DIGITS));
    let head = head.and_then(|digits| BASE64.decode(digits.as_bytes()).ok());
    let of_type = head.as_ref().and_then(|head| head.get(TYPE_BYTE));
    said("format") == Some(FORMAT) && of_type == Some(&GrainType::Consent.byte())
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
