//! Verification of a store that is not open: through the store if it can be opened, else of the truth alone,
//! with an index rebuilt from what can be read.

use std::fs;
use std::path::Path;

use super::index::RebuiltIndex;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation, VerifyReport};
use super::{VerifyContext, check_side_tables, log, pages};
use crate::base::error::{Error, Result, catch_storage_panic};
use crate::disk::directory;
use crate::handle::opening::open_truth;
use crate::handle::options::OpenOptions;
use crate::handle::store::Store;
use crate::operate::maintain::scratch::ScratchFile;
use crate::state::truth::Truth;

/// Checks the store in a directory like [`Store::verify`], even if it cannot be opened because its index is
/// missing or damaged and its log is damaged too. The index is one problem then,
/// [`ProblemKind::IndexUnreadable`], and the truth is checked as usual.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// Store::open(dir.path(), &OpenOptions::new().create(true))?.close()?;
/// let report = grainstore::verify(dir.path(), &OpenOptions::new(), true)?;
/// assert!(report.ok, "{:?}", report.problems);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_NOT_FOUND`, `ERR_BUSY`, `ERR_STORE_VERSION`, `ERR_IO`; `ERR_INTEGRITY` if not even the file of the
/// truth can be opened. Other damage is reported in the result.
pub fn verify(path: &Path, options: &OpenOptions, full: bool) -> Result<VerifyReport> {
    let opened = Store::open(path, &options.clone().create(false)).and_then(|store| {
        let found = store.verify(full);
        match store.close() {
            // What is damaged the findings tell.
            Err(error) if !error.is_integrity() => found.and(Err(error)),
            _ => found,
        }
    });
    match opened {
        Err(error) if error.is_integrity() => {
            catch_storage_panic(|| verify_truth(path, options, full, &error))
                .map_err(|error| error.at_path(path))
        }
        opened => opened,
    }
}

/// Checks the truth of a store that could not be opened because of `why`.
fn verify_truth(
    path: &Path,
    options: &OpenOptions,
    full: bool,
    why: &Error,
) -> Result<VerifyReport> {
    let _lock = match options.read_only {
        true => directory::lock_shared(path, options.wait)?,
        false => directory::lock(path, options.wait)?,
    };
    let db = open_truth(path, options)?;
    let beside = (!options.read_only).then_some(path);
    let copy = (full && !options.read_only).then(|| ScratchFile::within(beside));
    if let Some(file) = copy.as_ref().and_then(ScratchFile::file) {
        fs::copy(directory::truth_path(path), file)?;
    }
    let rebuilt = RebuiltIndex::build_from_readable(Truth::open(&db)?, beside)?;
    let check = VerifyContext::of(&rebuilt.view, full)?;
    let mut findings = ProblemCollector::new(check.unscrubbed);
    let found = &mut findings;
    found.add(ProblemKind::IndexUnreadable, ProblemLocation::All("index.redb"), why);
    log::check(&check, found)?;
    let places = found.checked.grains;
    check_side_tables(&check, places, Some(path), found)?;
    if let Some(copy) = &copy {
        pages::check("grains.redb", copy, rebuilt.view.transaction(), found)?;
    }
    Ok(findings.finish(full))
}
