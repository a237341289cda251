//! The operations `ages_segments`, `ages_export` and `ages_verify`: evidence of the decisions of a store.

use std::path::{Path, PathBuf};

use grainstore::Session;
use grainstore_interop::ages::{self, ExportOptions, ExportReport, Segment, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::followed::followed;
use super::stream::Events;
use crate::arguments::{Nothing, epoch_ms};
use crate::error::{Error, Result};

/// The segments of the audit log.
#[derive(Debug, Serialize)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
}

pub(crate) fn ages_segments(_: Nothing, session: &Session) -> Result<Segments> {
    let segments = ages::segments(session)?;
    Ok(Segments { segments })
}

/// Writes evidence into a file or a directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    path: PathBuf,
    segment: Option<u64>,
    since: Option<i64>,
    until: Option<i64>,
    namespace: Option<String>,
    tenant_id: Option<String>,
    #[serde(default)]
    progress: bool,
}

pub(crate) fn ages_export(
    given: Export,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ExportReport> {
    let Export { path, segment, since, until, namespace, tenant_id, progress } = given;
    let (since, until) = (epoch_ms(since), epoch_ms(until));
    let options = ExportOptions { segment, since, until, namespace, tenant_id };
    followed(events, progress, |monitor| ages::export(session, &path, &options, monitor))
}

/// Verifies a pack, in a file or as it is. Needs no store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verify<'p> {
    path: Option<PathBuf>,
    #[serde(borrow)]
    pack: Option<&'p RawValue>,
}

pub(crate) fn ages_verify(given: Verify<'_>) -> Result<Verdict> {
    match (given.path, given.pack) {
        (Some(path), None) => Ok(ages::verify_file(Path::new(&path))?),
        (None, Some(pack)) => Ok(ages::verify(pack.get().as_bytes())),
        _ => Err(Error::arguments("give exactly one of path and pack")),
    }
}
