//! Methods about signatures and disclosed views: `sign`, `verify_signature`, `disclose`.

use data_encoding::BASE64;
use grainstore::format::{Header, disclose as disclosed};
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::answer::Answer;
use super::fault::Fault;
use super::host::Host;
use super::json::Base64;
use super::params::{self, address, encoded};
use crate::shape::{SignedAnswer, VerdictAnswer};

pub(crate) fn sign(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::Sign<'_> = params::read(params)?;
    let blob = params.blob()?;
    let secret = Zeroizing::new(std::mem::take(&mut params.key.0));
    Answer::of(&SignedAnswer::from(params.algorithm.sign(
        &blob,
        &secret,
        params.iat,
        host.now(),
    )?))
}

pub(crate) fn verify_signature(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params::VerifySignature { cose: Base64(cose) } = params::read(params)?;
    Answer::of(&VerdictAnswer::of(cose)?)
}

pub(crate) fn disclose(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Disclose<'_> = params::read(params)?;
    let original = match (&params.address, params.grain) {
        (Some(text), None) => host.session()?.get(&address(text)?)?.blob,
        (None, Some(grain)) => encoded(grain)?,
        _ => return Err(Fault::params("give exactly one of address and grain")),
    };
    let view = disclosed(&original, &params.hide)?;
    let encoding = view.decoded_header().map(Header::encoding).unwrap_or_default();
    let blob = BASE64.encode(view.encode(encoding)?.bytes());
    Answer::of(&json!({ "grain": view, "blob": blob }))
}
