//! Whether the pages of a database hold against their checksums, also those no row lies on.
//!
//! The storage checks them all when it opens a file that was not closed, and a copy of a file in
//! use is one. What it falls back to where the newest commit is damaged is an older commit: then
//! the copy does not hold the same rows, and that shows too.

use redb::{ReadTransaction, ReadableDatabase};

use super::CACHE_BYTES;
use super::findings::{Fault, Findings, Place};
use crate::base::error::{Error, Result};
use crate::disk::source::Opening;
use crate::operate::maintain::copy::fingerprint;
use crate::operate::maintain::scratch::Scratch;

/// Checks a copy of the file of a database, made while nobody wrote, against a snapshot of it.
pub(super) fn check(
    name: &str,
    copy: &Scratch,
    snapshot: &ReadTransaction,
    findings: &mut Findings,
) -> Result<()> {
    let Some(file) = copy.file() else { return Ok(()) };
    findings.part(Fault::Pages, Place::All(name), |_| {
        let mut db = Opening::new(CACHE_BYTES).builder().open(file)?;
        if !db.check_integrity()? {
            return Err(Error::integrity("some pages contradict their checksums"));
        }
        if fingerprint(&db.begin_read()?)? != fingerprint(snapshot)? {
            return Err(Error::integrity("the pages of the newest commit are damaged"));
        }
        Ok(())
    })
}
