//! Methods for signatures and disclosed views: `sign`, `prove`, `verify_signature`, `disclose`.

use data_encoding::BASE64;
use grainstore::Grain;
use grainstore::format::cose::proof::{CosignOutcome, cosign};
use grainstore::format::{Header, disclose as disclosed};
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::params::{self, Proved, address, encoded};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Base64;
use crate::shape::{ProofOf, SignedAnswer, VerdictAnswer, not_hidden, signed, signing_key};

pub(crate) fn sign(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::Sign<'_> = params::read(params)?;
    let blob = params.blob()?;
    let secret = Zeroizing::new(std::mem::take(&mut params.key.0));
    let key = signing_key(params.algorithm, &secret)?;
    let envelope = signed(&blob, &key, params.iat, host.now())?;
    Answer::of(&SignedAnswer::new(&envelope, key.did()))
}

pub(crate) fn prove(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::Prove<'_> = params::read(params)?;
    let secret = Zeroizing::new(std::mem::take(&mut params.key.0));
    let key = signing_key(params.algorithm, &secret)?;
    let target = address(&params.address)?;
    let did = key.did();
    let what = match (params.operation, params.grain) {
        (Proved::Supersede, Some(grain)) => {
            let new = Grain::from_json(grain.get())?;
            let CosignOutcome { grain, cose } = cosign(&target, &new, params.signed, &key)?;
            let cose = BASE64.encode(&cose);
            return Answer::of(&json!({ "cose": cose, "did": did, "grain": grain }));
        }
        (Proved::Supersede, None) => {
            return Err(Fault::params("supersede needs the grain that is to supersede"));
        }
        (_, Some(_)) => return Err(Fault::params("only supersede takes a grain")),
        (Proved::Contradict, None) => ProofOf::Contradict,
        (Proved::Contest, None) => ProofOf::Contest,
        (Proved::Retract, None) => ProofOf::Retract,
        (Proved::LiftHold, None) => ProofOf::LiftHold,
    };
    let cose = BASE64.encode(&what.prove(&target, &key)?);
    Answer::of(&json!({ "cose": cose, "did": did }))
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
    let hide = params.hide.all("hide")?;
    let view = disclosed(&original, &hide)?;
    let encoding = view.decoded_header().map(Header::encoding).unwrap_or_default();
    let blob = BASE64.encode(view.encode(encoding)?.bytes());
    let mut answer = json!({ "grain": view, "blob": blob });
    let absent = not_hidden(&view, &hide);
    if let (false, Some(members)) = (absent.is_empty(), answer.as_object_mut()) {
        members.insert("absent".to_owned(), json!(absent));
    }
    Answer::of(&answer)
}
