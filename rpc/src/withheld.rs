//! What `verify` and `doctor` keep from whoever is not the operator of the whole store: details, which may
//! have addresses, words and figures of others. Whether the store is sound anybody is told.

use grainstore::{Diagnosis, VerifyReport};

/// What is said in place of a detail.
const WITHHELD_DETAIL: &str = "told to the operator, in a session without a namespace and a user";

/// Leaves of each problem the kind and the table, and no counts.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let mut report = store.verify(false)?;
/// grainstore_rpc::withhold_problems(&mut report);
/// assert!(report.ok && report.checked.is_none());
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn withhold_problems(found: &mut VerifyReport) {
    found.checked = None;
    for problem in &mut found.problems {
        let table = problem.place.split(' ').next().unwrap_or_default().to_owned();
        problem.place = table;
        WITHHELD_DETAIL.clone_into(&mut problem.detail);
    }
}

/// Leaves of each finding what it is about, and whether it is well.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let mut diagnosis = store.doctor();
/// grainstore_rpc::withhold_findings(&mut diagnosis);
/// assert!(diagnosis.findings.iter().all(|finding| finding.detail.starts_with("told to the op")));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn withhold_findings(diagnosis: &mut Diagnosis) {
    for finding in &mut diagnosis.findings {
        WITHHELD_DETAIL.clone_into(&mut finding.detail);
    }
}
