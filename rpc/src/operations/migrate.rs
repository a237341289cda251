//! The operations `migrate` and `migrate_formats`: memory from the tools that people leave.

use std::path::PathBuf;

use grainstore::Session;
use grainstore_interop::archive::Limits;
use grainstore_interop::migrate::{self, Format, MigrateOptions, MigrateReport, Undated};
use serde::{Deserialize, Serialize};

use super::followed::followed;
use super::stream::Events;
use crate::arguments::Nothing;
use crate::error::{Error, Result};

/// Takes an export of another tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Migrate {
    format: String,
    path: PathBuf,
    beside: Option<PathBuf>,
    namespace: Option<String>,
    user_id: Option<String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    strict: bool,
    /// Records without a date take the time of the migration.
    #[serde(default)]
    undated: bool,
    #[serde(default)]
    return_erased: bool,
    /// Records take the place of what is newer.
    #[serde(default)]
    allow_older: bool,
    #[serde(default)]
    progress: bool,
}

pub(crate) fn migrate(
    given: Migrate,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<MigrateReport> {
    let Migrate { format, path, beside, namespace, user_id: user, dry_run, strict, .. } = given;
    let format: Format = format.parse().map_err(Error::from)?;
    let undated = if given.undated { Undated::ImportTime } else { Undated::LeaveOut };
    let options = MigrateOptions {
        dry_run,
        strict,
        namespace,
        user,
        undated,
        return_erased: given.return_erased,
        allow_older: given.allow_older,
        beside,
        limits: Limits::default(),
    };
    followed(events, given.progress, |monitor| {
        migrate::run(session, format, &path, &options, monitor)
    })
}

/// The formats that [`migrate`] reads.
#[derive(Debug, Serialize)]
pub(crate) struct Formats {
    formats: Vec<FormatAnswer>,
}

#[derive(Debug, Serialize)]
struct FormatAnswer {
    name: &'static str,
    reads: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<&'static str>,
}

pub(crate) fn migrate_formats(_: Nothing) -> Result<Formats> {
    let formats = Format::ALL.iter().map(|format| FormatAnswer {
        name: format.name(),
        reads: format.reads(),
        beside: format.beside(),
    });
    Ok(Formats { formats: formats.collect() })
}
