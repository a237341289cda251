//! The methods `erase`, `erase_user`, `sweep` and `subject_report`.

use grainstore::Erasing;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::Answer;
use super::fault::Fault;
use super::host::Host;
use super::params::{self, Nothing, address};
use crate::commands::erase::told;

/// Parameters of `erase`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Erase {
    address: String,
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
    let how = Erasing::new()
        .dry_run(params.dry_run)
        .now(params.now)
        .override_malformed_retention(params.override_malformed_retention);
    let session = host.session()?;
    Answer::of(&told(&session.erase(&address(&params.address)?, &params.reason, &how)?))
}

pub(crate) fn erase_user(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: EraseUser = params::read(params)?;
    let how = Erasing::new()
        .dry_run(params.dry_run)
        .now(params.now)
        .override_malformed_retention(params.override_malformed_retention);
    Answer::of(&told(&host.session()?.erase_user(&params.user_id, &params.reason, &how)?))
}

pub(crate) fn sweep(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    Answer::of(&host.session()?.sweep()?)
}

pub(crate) fn subject_report(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: SubjectReport = params::read(params)?;
    Answer::of(&host.session()?.subject_report(&params.user_id)?)
}
