//! The operations `erase`, `erase_user`, `sweep` and `subject_report`.

use grainstore::limits::MAX_BATCH;
use grainstore::{EraseOptions, ErasureCertificate, Session, SubjectReport as Report, SweepReport};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::List;
use crate::arguments::Nothing;
use crate::error::{Error, Result};
use crate::json::{Address, Few};
use crate::shape::{Version, erased};

/// Erases a grain, or once more what certificates name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Erase {
    address: Option<Address>,
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

pub(crate) fn erase(given: Erase, session: &Session) -> Result<Value> {
    let how = options(given.dry_run, given.now, given.override_malformed_retention);
    let certificates = given.certificates.all("certificates")?;
    match (given.address, certificates.as_slice()) {
        (Some(grain), []) => Ok(erased(&session.erase(&grain.get()?, &given.reason, &how)?)),
        (None, certificates @ [_, ..]) => {
            let erasures = session.erase_returned(certificates, &given.reason, &how)?;
            Ok(json!({ "erasures": erasures.iter().map(erased).collect::<Vec<_>>() }))
        }
        _ => Err(Error::arguments("give either an address or certificates")),
    }
}

/// Erases all grains of a user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EraseUser {
    user_id: String,
    reason: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    now: bool,
    #[serde(default)]
    override_malformed_retention: bool,
}

pub(crate) fn erase_user(given: EraseUser, session: &Session) -> Result<Value> {
    let how = options(given.dry_run, given.now, given.override_malformed_retention);
    Ok(erased(&session.erase_user(&given.user_id, &given.reason, &how)?))
}

fn options(dry_run: bool, now: bool, override_malformed: bool) -> EraseOptions {
    EraseOptions::new().dry_run(dry_run).now(now).override_malformed_retention(override_malformed)
}

/// Erases what is due.
pub(crate) fn sweep(_: Nothing, session: &Session) -> Result<SweepReport> {
    Ok(session.sweep()?)
}

/// Reports all grains of a user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubjectReport {
    user_id: String,
    /// Answers the grains themselves, a part of them at a time.
    #[serde(default)]
    versions: bool,
    /// The number of grains to leave out.
    #[serde(default)]
    cursor: usize,
}

/// The answer of a report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Reported {
    Addresses(Report),
    Versions { versions: List, next_cursor: Option<u64> },
}

pub(crate) fn subject_report(given: SubjectReport, session: &Session) -> Result<Reported> {
    if !given.versions {
        return Ok(Reported::Addresses(session.subject_report(&given.user_id)?));
    }
    let (mut versions, mut next_cursor) = (List::default(), given.cursor);
    let all = session.subject_grains(&given.user_id)?;
    let count = all.len();
    for stored in all.into_iter().skip(given.cursor) {
        if !versions.try_push(&Version::try_from(stored)?)? {
            break;
        }
        next_cursor = next_cursor.saturating_add(1);
    }
    let next_cursor = (next_cursor < count).then_some(next_cursor as u64);
    Ok(Reported::Versions { versions, next_cursor })
}
