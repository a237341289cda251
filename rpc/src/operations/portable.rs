//! The methods `export` and `import`: grains in portable `.mg` files.

use grainstore::cal::{self, Query};
use grainstore::format::container::Compression;
use grainstore::{ExportOptions, ImportOptions, Session};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{params, query};
use crate::error::Error;
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;

/// Parameters of `export`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Export<'p> {
    path: String,
    #[serde(rename = "where", borrow)]
    conditions: Option<&'p RawValue>,
    #[serde(default)]
    compress: Compression,
}

pub(crate) fn export(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Export<'_> = params::read(params)?;
    let session = host.session()?;
    let query = match params.conditions {
        Some(conditions) => selected(session, conditions)?,
        None => Query::default(),
    };
    let how = ExportOptions { compression: params.compress, ..ExportOptions::default() };
    Answer::of(&session.export(&params.path, &query, &how)?)
}

/// Parameters of `import`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    path: Paths,
}

/// One file, or several of one export.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Paths {
    One(String),
    Several(Vec<String>),
}

pub(crate) fn import(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Import = params::read(params)?;
    let files = match params.path {
        Paths::One(file) => vec![file],
        Paths::Several(files) => files,
    };
    Answer::of(&host.session()?.import(files, &ImportOptions::default())?)
}

/// Returns the query of `where`: CAL conditions as text, or those of `query` as an object.
fn selected(session: &Session, conditions: &RawValue) -> Result<Query, Fault> {
    let Ok(text) = serde_json::from_str::<String>(conditions.get()) else {
        return query::conditions(conditions);
    };
    let found = cal::conditions(&text, &session.reading()?, session.now());
    Ok(found.map_err(|error| Error::cal(&error, &text))?)
}
