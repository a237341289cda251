//! Methods that change the state of a grain without writing another: `contradict`, `set_verification`,
//! `hold`, `lift_hold`; and `policy_explain`.

use serde_json::value::RawValue;

use super::params::{self, address};
use crate::explained::{Asked, Attempt, Explained};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Base64;
use crate::shape::verification_status;

pub(crate) fn policy_explain(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::PolicyExplain<'_> = params::read(params)?;
    if params.address.is_some() == params.has_offer() {
        return Err(Fault::params("give exactly one of address, grain, blob and cose"));
    }
    if params.supersede.is_none() && params.justification.is_some() {
        return Err(Fault::params("justification goes with supersede"));
    }
    let asked = match params.address.take() {
        Some(digits) => {
            let session = host.session()?;
            Asked::Stored(Box::new(session.inspect(&address(&digits)?)?), session.clone())
        }
        None => Asked::Offered(params.offer()?),
    };
    let attempt = match &params.supersede {
        None => None,
        Some(old) => Some(Attempt {
            session: host.session()?,
            old: address(old)?,
            justification: params.justification.as_deref(),
        }),
    };
    Answer::of(&Explained::of(asked, attempt.as_ref())?.json())
}

pub(crate) fn contradict(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Mark = params::read(params)?;
    let session = host.session()?;
    session.contradict(&address(&params.address)?, &params.reason, bytes(params.cose.as_ref()))?;
    Ok(Answer::empty())
}

pub(crate) fn set_verification(
    host: &mut Host,
    params: Option<&RawValue>,
) -> Result<Answer, Fault> {
    let params: params::SetVerification = params::read(params)?;
    let session = host.session()?;
    let status = verification_status(&params.status)?;
    let (of, proof) = (address(&params.address)?, bytes(params.cose.as_ref()));
    session.set_verification(&of, status, &params.reason, proof)?;
    Ok(Answer::empty())
}

/// Any session that sees a grain may hold it, so `cose` is not read.
pub(crate) fn hold(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Mark = params::read(params)?;
    host.session()?.hold(&address(&params.address)?, &params.reason)?;
    Ok(Answer::empty())
}

pub(crate) fn lift_hold(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Mark = params::read(params)?;
    let session = host.session()?;
    session.lift_hold(&address(&params.address)?, &params.reason, bytes(params.cose.as_ref()))?;
    Ok(Answer::empty())
}

fn bytes(cose: Option<&Base64>) -> Option<&[u8]> {
    cose.map(|Base64(bytes)| bytes.as_slice())
}
