//! The operations `export` and `import`: grains in portable `.mg` files.

use grainstore::cal::{self, Query};
use grainstore::format::container::Compression;
use grainstore::{ExportOptions, ExportReport, ImportOptions, ImportReport, Session};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::query;
use crate::error::{Error, Result};

/// Writes grains into a portable file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export<'p> {
    path: String,
    #[serde(rename = "where", borrow)]
    conditions: Option<&'p RawValue>,
    #[serde(default)]
    compress: Compression,
}

pub(crate) fn export(given: Export<'_>, session: &Session) -> Result<ExportReport> {
    let query = match given.conditions {
        None => Query::default(),
        Some(conditions) => match serde_json::from_str::<String>(conditions.get()) {
            Ok(text) => conditions_of(session, &text)?,
            Err(_) => query::conditions(conditions)?,
        },
    };
    let how = ExportOptions { compression: given.compress, ..ExportOptions::default() };
    Ok(session.export(&given.path, &query, &how)?)
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
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Paths {
    One(String),
    Several(Vec<String>),
}

pub(crate) fn import(given: Import, session: &Session) -> Result<ImportReport> {
    let files = match given.path {
        Paths::One(file) => vec![file],
        Paths::Several(files) => files,
    };
    Ok(session.import(files, &ImportOptions::default())?)
}
