//! The methods `erase`, `erase_user`, `sweep` and `subject_report`.

use grainstore::limits::MAX_BATCH;
use grainstore::{EraseOptions, ErasureCertificate};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::params::{self, Nothing, address};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Few;
use crate::shape::erased;

/// Parameters of `erase`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Erase {
    address: Option<String>,
    /// What is erased once more.
    #[serde(default)]
    certificates: Few<ErasureCertificate, MAX_BATCH>,
    reason: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    now: bool,
    #[serde(default)]
    override_malformed_retention: bool,
}

/// Parameters of `erase_user`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EraseUser {
    user_id: String,
    reason: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    now: bool,
    #[serde(default)]
    override_malformed_retention: bool,
}

/// Parameters of `subject_report`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectReport {
    user_id: String,
}

pub(crate) fn erase(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Erase = params::read(params)?;
    let how = EraseOptions::new()
        .dry_run(params.dry_run)
        .now(params.now)
        .override_malformed_retention(params.override_malformed_retention);
    let session = host.session()?;
    let certificates = params.certificates.all("certificates")?;
    match (&params.address, certificates.as_slice()) {
        (Some(grain), []) => {
            Answer::of(&erased(&session.erase(&address(grain)?, &params.reason, &how)?))
        }
        (None, certificates @ [_, ..]) => {
            let erasures = session.erase_returned(certificates, &params.reason, &how)?;
            Answer::of(&json!({ "erasures": erasures.iter().map(erased).collect::<Vec<_>>() }))
        }
        _ => Err(Fault::params("give either an address or certificates")),
    }
}

pub(crate) fn erase_user(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: EraseUser = params::read(params)?;
    let how = EraseOptions::new()
        .dry_run(params.dry_run)
        .now(params.now)
        .override_malformed_retention(params.override_malformed_retention);
    Answer::of(&erased(&host.session()?.erase_user(&params.user_id, &params.reason, &how)?))
}

pub(crate) fn sweep(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    Answer::of(&host.session()?.sweep()?)
}

pub(crate) fn subject_report(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: SubjectReport = params::read(params)?;
    Answer::of(&host.session()?.subject_report(&params.user_id)?)
}
