//! Verifies the checksums of all pages of a database, also those without rows.
//!
//! redb checks them all when it opens a file that was not closed cleanly, and a copy of a file in use is one.
//! If the newest commit is damaged it falls back to an older one: the copy then has other rows, which is
//! noticed, too.

use redb::{ReadTransaction, ReadableDatabase};

use super::VERIFY_CACHE_BYTES;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation};
use crate::base::error::{Error, Result};
use crate::disk::database::DatabaseOptions;
use crate::operate::maintain::copy::fingerprint;
use crate::operate::maintain::scratch::ScratchFile;

/// Checks a copy of a database file, made while no write was running, against a snapshot of the database.
pub(super) fn check(
    name: &str,
    copy: &ScratchFile,
    snapshot: &ReadTransaction,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let Some(file) = copy.file() else { return Ok(()) };
    findings.run_part(ProblemKind::Pages, ProblemLocation::All(name), |_| {
        let mut db = DatabaseOptions::new(VERIFY_CACHE_BYTES).builder().open(file)?;
        if !db.check_integrity()? {
            return Err(Error::integrity("some pages contradict their checksums"));
        }
        if fingerprint(&db.begin_read()?)? != fingerprint(snapshot)? {
            return Err(Error::integrity("the pages of the newest commit are damaged"));
        }
        Ok(())
    })
}
