//! Operations that change the state of a grain without writing another: `contradict`, `set_verification`,
//! `hold`, `lift_hold`.

use grainstore::Session;
use grainstore::format::VerificationStatus;
use serde::Deserialize;

use crate::arguments::Nothing;
use crate::error::{Code, Error, Result};
use crate::json::{Address, Base64};

/// Arguments of `contradict`, `hold` and `lift_hold`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The grain.
    pub address: Address,
    /// The reason, for the audit log.
    pub reason: String,
    /// A COSE_Sign1 with a detached payload.
    pub cose: Option<Base64>,
}

/// Marks a grain as contradicted.
pub fn contradict(mark: Mark, session: &Session) -> Result<Nothing> {
    let Mark { address, reason, cose } = mark;
    session.contradict(&address.get()?, &reason, proof_bytes(cose.as_ref()))?;
    Ok(Nothing {})
}

/// Holds a grain. Any session that sees it may, so `cose` is not read.
pub fn hold(mark: Mark, session: &Session) -> Result<Nothing> {
    session.hold(&mark.address.get()?, &mark.reason)?;
    Ok(Nothing {})
}

/// Lifts the hold on a grain.
pub fn lift_hold(mark: Mark, session: &Session) -> Result<Nothing> {
    let Mark { address, reason, cose } = mark;
    session.lift_hold(&address.get()?, &reason, proof_bytes(cose.as_ref()))?;
    Ok(Nothing {})
}

/// Arguments of [`set_verification`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetVerification {
    /// The grain.
    pub address: Address,
    /// The name of the status.
    pub status: String,
    /// The reason, for the audit log.
    pub reason: String,
    /// A COSE_Sign1 with a detached payload.
    pub cose: Option<Base64>,
}

/// Sets the verification status of a grain.
pub fn set_verification(given: SetVerification, session: &Session) -> Result<Nothing> {
    let SetVerification { address, status, reason, cose } = given;
    let status = VerificationStatus::from_name(&status).ok_or_else(|| {
        let message = format!("{status:?} is no verification status");
        let names = VerificationStatus::ALL.map(VerificationStatus::name).join(", ");
        Error::new(Code::Schema, message, format!("use one of {names}"))
    })?;
    session.set_verification(&address.get()?, status, &reason, proof_bytes(cose.as_ref()))?;
    Ok(Nothing {})
}

fn proof_bytes(cose: Option<&Base64>) -> Option<&[u8]> {
    cose.map(|Base64(bytes)| bytes.as_slice())
}
