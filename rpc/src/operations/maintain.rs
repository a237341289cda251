//! Operations for maintenance: `verify`, `doctor`, `stats`, `reindex`, `compact`, `remove_vectors`, `backup`;
//! and `checkpoint`.
//!
//! They concern the whole store, and need its operator in a session without a namespace and a user; `verify`
//! and `doctor` tell other sessions only whether the store is sound.

use std::path::PathBuf;

use grainstore::format::cose::Algorithm;
use grainstore::limits::MAX_BATCH;
use grainstore::{
    BackupReport, CompactionReport, Diagnosis, ErasureCertificate, Power, Session, Store,
    VerifyReport,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::arguments::Nothing;
use crate::error::{Code, Error, Result};
use crate::json::{Few, SecretBytes};
use crate::shape::signing_key;
use crate::withheld::{withhold_findings, withhold_problems};

/// Verifies a store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verify {
    full: Option<bool>,
    checkpoint: Option<grainstore::Checkpoint>,
    signer: Option<String>,
    #[serde(default)]
    certificates: Few<ErasureCertificate, MAX_BATCH>,
}

pub(crate) fn verify(given: Verify, session: &Session) -> Result<VerifyReport> {
    let certificates = given.certificates.all("certificates")?;
    let store = session.store();
    if let Some(checkpoint) = &given.checkpoint {
        expect_signer(checkpoint, given.signer.as_deref())?;
    }
    let mut found = store.verify(given.full.unwrap_or_default())?;
    found = compared(found, store, given.checkpoint.as_ref(), &certificates)?;
    if !session.has_powers() {
        withhold_problems(&mut found);
    }
    Ok(found)
}

/// Adds to a report what a checkpoint and certificates of erasures say otherwise than the store.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let checkpoint = store.checkpoint(None)?;
/// let report = grainstore_rpc::compared(store.verify(false)?, &store, Some(&checkpoint), &[])?;
/// assert!(report.ok);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn compared(
    found: VerifyReport,
    store: &Store,
    checkpoint: Option<&grainstore::Checkpoint>,
    certificates: &[ErasureCertificate],
) -> Result<VerifyReport> {
    let mut found = match checkpoint {
        Some(checkpoint) => found.with_problem(store.passes(checkpoint)?),
        None => found,
    };
    for returned in store.returned(certificates)? {
        found = returned.problems().fold(found, |found, one| found.with_problem(Some(one)));
    }
    Ok(found)
}

/// Refuses a checkpoint of another signer.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Code, expect_signer};
///
/// let checkpoint = store.checkpoint(None)?;
/// expect_signer(&checkpoint, Some(checkpoint.signer()))?;
/// let other = expect_signer(&checkpoint, Some("did:web:else.example"));
/// assert!(other.is_err_and(|error| error.has_code(Code::Signature)));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn expect_signer(checkpoint: &grainstore::Checkpoint, signer: Option<&str>) -> Result<()> {
    match signer {
        Some(signer) if signer != checkpoint.signer() => {
            let message =
                format!("the checkpoint is signed by {}, not by {signer}", checkpoint.signer());
            Err(Error::new(Code::Signature, message, "give one that was signed with that key"))
        }
        _ => Ok(()),
    }
}

/// Signs where the audit log ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// The secret of an Ed25519 key; without it, the store's own signs.
    key: Option<SecretBytes>,
}

pub(crate) fn checkpoint(given: Checkpoint, session: &Session) -> Result<grainstore::Checkpoint> {
    session.check_power(Power::Checkpoint)?;
    let key = given.key.map(|SecretBytes(secret)| signing_key(Algorithm::EdDsa, &secret));
    Ok(session.store().checkpoint(key.transpose()?.as_ref())?)
}

/// Examines what an open store needs around it.
pub(crate) fn doctor(_: Nothing, session: &Session) -> Result<Diagnosis> {
    let mut diagnosis = session.store().doctor();
    if !session.has_powers() {
        withhold_findings(&mut diagnosis);
    }
    Ok(diagnosis)
}

/// Arguments of [`stats`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// Whether to read what the bytes of the files are used for, too.
    pub pages: Option<bool>,
}

/// Reads the figures of a store.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let stats = grainstore_rpc::stats(grainstore_rpc::Stats::default(), &session)?;
/// assert_eq!(stats["grains"], 0);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn stats(given: Stats, session: &Session) -> Result<Value> {
    session.check_power(Power::Stats)?;
    let store = session.store();
    let mut figures = serde_json::to_value(store.stats()?)?;
    if given.pages.unwrap_or_default()
        && let Some(figures) = figures.as_object_mut()
    {
        figures.insert("pages".to_owned(), serde_json::to_value(store.pages()?)?);
    }
    Ok(figures)
}

/// The outcome of [`reindex`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Reindexed {
    /// Number of indexed grains.
    pub grains: u64,
}

/// Builds the indexes again from the log.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Nothing, reindex};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// assert_eq!(reindex(Nothing {}, &session)?.grains, 1);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn reindex(_: Nothing, session: &Session) -> Result<Reindexed> {
    session.check_power(Power::Reindex)?;
    Ok(Reindexed { grains: session.store().reindex()? })
}

/// Rewrites the files without free pages.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let sizes = grainstore_rpc::compact(grainstore_rpc::Nothing {}, &session)?;
/// assert!(sizes.truth_bytes_after <= sizes.truth_bytes_before);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn compact(_: Nothing, session: &Session) -> Result<CompactionReport> {
    session.check_power(Power::Compact)?;
    Ok(session.store().compact()?)
}

/// Arguments of [`remove_vectors`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveVectors {
    /// The model.
    pub model: String,
}

/// The outcome of [`remove_vectors`].
#[derive(Debug, Serialize, Deserialize)]
pub struct RemovedVectors {
    /// Number of vectors that were removed.
    pub removed: u64,
}

/// Removes the vectors of a model.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore::embed::{Embedding, Metric};
/// use grainstore_rpc::{RemoveVectors, remove_vectors};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// for model in ["first", "second"] {
///     session.embed(&tea, vec![Embedding::new(model, Metric::Cosine, vec![0.6, 0.8])?])?;
/// }
/// let removed = remove_vectors(RemoveVectors { model: "second".into() }, &session)?;
/// assert_eq!(removed.removed, 1);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn remove_vectors(given: RemoveVectors, session: &Session) -> Result<RemovedVectors> {
    session.check_power(Power::RemoveVectors)?;
    Ok(RemovedVectors { removed: session.store().remove_vectors(&given.model)? })
}

/// Arguments of [`backup`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// The directory.
    #[serde(deserialize_with = "path")]
    pub path: PathBuf,
}

fn path<'de, D: Deserializer<'de>>(source: D) -> Result<PathBuf, D::Error> {
    String::deserialize(source).map(PathBuf::from)
}

/// Copies the store into a new directory.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{Backup, backup};
///
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let report = backup(Backup { path: dir.path().join("backup") }, &session)?;
/// assert_eq!(report.grains, 1);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn backup(given: Backup, session: &Session) -> Result<BackupReport> {
    session.check_power(Power::Backup)?;
    Ok(session.store().backup(&given.path)?)
}
