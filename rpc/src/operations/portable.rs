//! The operations `export` and `import`: grains in portable `.mg` files.

use std::path::PathBuf;

use grainstore::cal::{self, Query};
use grainstore::format::container::Compression;
use grainstore::{ExportOptions, ExportReport, ImportOptions, ImportReport, Session};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::followed::monitored;
use super::query;
use super::stream::Events;
use crate::error::{Error, Result};

/// Writes grains into a portable file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export<'p> {
    path: PathBuf,
    #[serde(rename = "where", borrow)]
    conditions: Option<&'p RawValue>,
    #[serde(default)]
    compress: Compression,
    /// All of this user, whatever `where` would say.
    subject: Option<String>,
    /// For the person that it is about, who asked for it.
    #[serde(default)]
    access_request: bool,
    #[serde(default)]
    progress: bool,
}

pub(crate) fn export(
    given: Export<'_>,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ExportReport> {
    let query = match given.conditions {
        None => Query::default(),
        Some(_) if given.subject.is_some() => {
            return Err(Error::arguments("give either where or subject"));
        }
        Some(conditions) => match serde_json::from_str::<String>(conditions.get()) {
            Ok(text) => conditions_of(session, &text)?,
            Err(_) => query::conditions(conditions)?,
        },
    };
    if given.access_request && given.subject.is_none() {
        return Err(Error::arguments("access_request goes with subject"));
    }
    monitored(events, given.progress, |progress, cancel| {
        let how = ExportOptions {
            compression: given.compress,
            progress: Some(progress),
            cancel,
            ..ExportOptions::default()
        };
        Ok(match (&given.subject, given.access_request) {
            (None, _) => session.export(&given.path, &query, &how)?,
            (Some(user), true) => session.access_request(&given.path, user, &how)?,
            (Some(user), false) => session.export_subject(&given.path, user, &how)?,
        })
    })
}

/// Returns the query of conditions, as CAL has them behind WHERE.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let query = grainstore_rpc::conditions_of(&session, r#"subject = "alice""#)?;
/// assert_eq!(query.subject_eq(), Some("alice"));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn conditions_of(session: &Session, text: &str) -> Result<Query> {
    let found = cal::conditions(text, &session.reading()?, session.now());
    found.map_err(|error| Error::from_cal(&error, text))
}

/// Takes the grains of one portable file, or of several of one export.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    path: Paths,
    #[serde(default)]
    progress: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Paths {
    One(String),
    Several(Vec<String>),
}

pub(crate) fn import(
    given: Import,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ImportReport> {
    let files = match given.path {
        Paths::One(file) => vec![file],
        Paths::Several(files) => files,
    };
    monitored(events, given.progress, |progress, cancel| {
        let how = ImportOptions { progress: Some(progress), cancel };
        Ok(session.import(&files, &how)?)
    })
}
