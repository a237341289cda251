//! The operations on archives of agents in the Agent Life Format: `alf_import`, `alf_export`, `alf_delta`, `alf_apply`,
//! `alf_purge`, `alf_validate`.

use std::path::PathBuf;

use grainstore::Session;
use grainstore_interop::alf::{
    self, ApplyReport, DeltaOptions, DeltaReport, ExportOptions, ExportReport, Granularity,
    ImportMode, ImportOptions, ImportReport, PurgeOptions, PurgeReason, PurgeReport, PurgeScope,
    Validation,
};
use grainstore_interop::archive::Limits;
use serde::{Deserialize, Serialize};

use super::followed::followed;
use super::stream::Events;
use crate::error::{Error, Result};

/// Takes an archive, or applies a delta.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    path: PathBuf,
    #[serde(default)]
    mirror: bool,
    #[serde(default)]
    lenient: bool,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    allow_purged: bool,
    peer: Option<String>,
    #[serde(default)]
    progress: bool,
}

impl Import {
    fn options(&self) -> ImportOptions {
        let usual = ImportOptions::default();
        ImportOptions {
            mode: if self.mirror { ImportMode::Mirror } else { ImportMode::Merge },
            lenient: self.lenient,
            strict: self.strict,
            dry_run: self.dry_run,
            allow_purged: self.allow_purged,
            peer: self.peer.clone().unwrap_or(usual.peer),
            limits: usual.limits,
        }
    }
}

pub(crate) fn alf_import(
    given: Import,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ImportReport> {
    let (options, path) = (given.options(), &given.path);
    followed(events, given.progress, |monitor| alf::import(session, path, &options, monitor))
}

pub(crate) fn alf_apply(
    given: Import,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ApplyReport> {
    let (options, path) = (given.options(), &given.path);
    followed(events, given.progress, |monitor| alf::apply_delta(session, path, &options, monitor))
}

/// Writes an archive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    path: PathBuf,
    agent_id: Option<String>,
    agent_name: Option<String>,
    #[serde(default)]
    granularity: Granularity,
    remember_sealed: Option<bool>,
    #[serde(default)]
    native: bool,
    user_id: Option<String>,
    #[serde(default)]
    progress: bool,
}

pub(crate) fn alf_export(
    given: Export,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ExportReport> {
    let options = ExportOptions {
        agent_id: given.agent_id,
        agent_name: given.agent_name,
        granularity: given.granularity,
        remember_sealed: given.remember_sealed.unwrap_or(true),
        native: given.native,
        of_user: given.user_id,
    };
    let path = given.path;
    followed(events, given.progress, |monitor| alf::export(session, &path, &options, monitor))
}

/// Writes what changed since a sequence number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delta {
    path: PathBuf,
    since: u64,
    agent_id: Option<String>,
    #[serde(default)]
    progress: bool,
}

/// A delta, `null` if nothing changed.
#[derive(Debug, Serialize)]
pub(crate) struct DeltaAnswer {
    delta: Option<DeltaReport>,
}

pub(crate) fn alf_delta(
    given: Delta,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<DeltaAnswer> {
    let Delta { path, since, agent_id, progress } = given;
    let options = DeltaOptions { agent_id, since };
    let delta =
        followed(events, progress, |monitor| alf::export_delta(session, &path, &options, monitor))?;
    Ok(DeltaAnswer { delta })
}

/// Removes records for good, from the store or, with `path` and `to`, from a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Purge {
    ids: Option<Vec<String>>,
    user_id: Option<String>,
    #[serde(default)]
    whole_agent: bool,
    path: Option<PathBuf>,
    to: Option<PathBuf>,
    agent_id: Option<String>,
    reason: PurgeReason,
    requested_by: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    partial: bool,
    #[serde(default)]
    keep_raw: bool,
    audit_file: Option<PathBuf>,
    #[serde(default)]
    progress: bool,
}

pub(crate) fn alf_purge(
    given: Purge,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<PurgeReport> {
    let mut options = PurgeOptions::new(given.reason, &given.requested_by);
    options.agent_id = given.agent_id;
    options.dry_run = given.dry_run;
    options.partial = given.partial;
    options.keep_raw = given.keep_raw;
    options.audit_file = given.audit_file;
    let scope = match (given.ids, given.user_id, given.whole_agent) {
        (Some(ids), None, false) => PurgeScope::Records(ids),
        (None, Some(user), false) => PurgeScope::User(user),
        (None, None, true) => PurgeScope::Agent,
        _ => return Err(Error::arguments("give exactly one of ids, user_id and whole_agent")),
    };
    match (&scope, given.path, given.to) {
        (_, None, None) => followed(events, given.progress, |monitor| {
            alf::purge(session, &scope, &options, monitor)
        }),
        (PurgeScope::Records(ids), Some(from), Some(to)) => {
            let (now, limits) = (session.now(), Limits::default());
            followed(events, given.progress, |monitor| {
                alf::purge_archive(&from, &to, ids, now, &options, limits, monitor)
            })
        }
        _ => Err(Error::arguments("a file is purged of ids, with path and to")),
    }
}

/// Checks an archive or a delta.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Validate {
    path: PathBuf,
}

pub(crate) fn alf_validate(given: Validate) -> Result<Validation> {
    let monitor = grainstore_interop::Monitor::default();
    Ok(alf::validate(&given.path, Limits::default(), &monitor)?)
}
