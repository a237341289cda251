//! Whether a file is what the standard says (ALF 10.1): an answer for people and programs, without a store.

use std::path::Path;

use serde::Serialize;

use super::bundle::Bundle;
use super::issue::{Issue, Issues, Place, Severity};
use super::survey::Survey;
use crate::archive::Limits;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::other;

/// What is wrong with a file, and what is not known of it: [`validate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Validation {
    /// True without errors.
    pub valid: bool,
    /// Where it is not what the standard says: the first [`MAX_ISSUES`](super::MAX_ISSUES).
    pub errors: Vec<Issue>,
    /// Number of errors.
    pub error_count: u64,
    /// What is not known, or points nowhere: the first of them. None is in the way of an import.
    pub warnings: Vec<Issue>,
    /// Number of warnings.
    pub warning_count: u64,
    /// Number of records that are well formed.
    pub records: u64,
}

/// Checks an archive or a delta against the standard, without a store.
///
/// ```
/// use grainstore_interop::Monitor;
/// use grainstore_interop::alf::validate;
/// use grainstore_interop::archive::{ArchiveWriter, Limits};
///
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("agent.alf");
/// let mut archive = ArchiveWriter::create(&path)?;
/// archive.add("manifest.json", &br#"{"alf_version": "1.0.0"}"#[..])?;
/// archive.finish()?;
/// let found = validate(&path, Limits::default(), &Monitor::default())?;
/// assert_eq!((found.valid, found.errors[0].path.as_str()), (false, "manifest.json/created_at"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_NOT_FOUND`, `ERR_IO`, `ERR_TIMEOUT`. What is wrong with the file is in the result.
pub fn validate(
    path: impl AsRef<Path>,
    limits: Limits,
    monitor: &Monitor<'_>,
) -> Result<Validation> {
    let path = path.as_ref();
    let bundle = match Bundle::open_any(path, limits) {
        Ok(bundle) => bundle,
        Err(error) if is_of_storage(&error) => return Err(error),
        Err(error) => {
            let own = [other::Kind::AlfArchive, other::Kind::AlfDelta];
            let error = other::told(error, path, "an ALF archive", &own);
            let mut issues = Issues::default();
            let entry = error.entry().unwrap_or_default().to_owned();
            issues.add(Severity::Error, &Place::entry(&entry), error.message());
            return Ok(Validation::of(issues, 0));
        }
    };
    let survey = Survey::of(&bundle, false, monitor)?;
    let records = survey.ids.len() as u64;
    Ok(Validation::of(survey.issues, records))
}

fn is_of_storage(error: &Error) -> bool {
    matches!(error.kind(), grainstore::ErrorKind::Io | grainstore::ErrorKind::NotFound)
}

impl Validation {
    fn of(issues: Issues, records: u64) -> Self {
        let Issues { errors, warnings, .. } = issues;
        Self {
            valid: errors.count == 0,
            errors: errors.listed,
            error_count: errors.count,
            warnings: warnings.listed,
            warning_count: warnings.count,
            records,
        }
    }
}
