//! Writing evidence: the segments that are asked for, each as a pack in a file.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use grainstore::limits::MAX_AUDIT_ENTRIES;
use grainstore::{EpochMs, Power, Session, SessionOptions, TransferKind, TransferSummary};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::PACK_VERSION;
use super::chain::Chain;
use super::decision::{self, Mapping};
use super::segments::{Segment, Segmenter, each_entry, segments};
use crate::Monitor;
use crate::archive::NewFile;
use crate::error::{Error, Result};
use crate::json;

/// Which segments are exported, and for whom: [`export`]. By default all of them.
///
/// ```
/// use grainstore_interop::ages::ExportOptions;
///
/// let one = ExportOptions { segment: Some(0), ..ExportOptions::default() };
/// assert_eq!(one.tenant_id, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The segment at this place alone.
    pub segment: Option<u64>,
    /// Segments with an entry at this time or later.
    pub since: Option<EpochMs>,
    /// Segments with an entry at this time or before.
    pub until: Option<EpochMs>,
    /// Segments with an entry about a grain of this namespace, or of one below it.
    pub namespace: Option<String>,
    /// The tenant that the evidence is of. It goes into the hashes: another one makes other chains. By default
    /// `tnt_` and the first half of a hash of the store's number.
    pub tenant_id: Option<String>,
}

/// What [`export`] wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// The tenant in all packs.
    pub tenant_id: String,
    /// The packs, oldest first.
    pub packs: Vec<ExportedPack>,
}

/// A pack that [`export`] wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportedPack {
    /// The file.
    pub path: PathBuf,
    /// The segment.
    #[serde(flatten)]
    pub segment: Segment,
    /// Names the chain.
    pub request_id: String,
    /// Names the pack.
    pub evidence_ref: String,
    /// Number of steps, the GENESIS included.
    pub steps: u64,
    /// Hash of the last step. Kept where the host of the store cannot write it shows a later truncation.
    pub root_hash: String,
}

/// Writes Evidence Packs of the audit log (AGES v1): each a whole segment. Into a directory they are written under the names
/// `<evidence_ref>.ages.json`; one alone may have a file name of its own. A directory whose name ends in `/` is made.
///
/// The segment that is open gets an EXPORT step, which an entry of the audit log keeps, so that the next export has it, too. A
/// closed one is exported as it is, and gives the same bytes each time but for `exported_at`.
///
/// ```
/// use grainstore_interop::{Monitor, ages};
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
///
/// let report = ages::export(&session, dir.path(), &ages::ExportOptions::default(), &Monitor::default())?;
/// assert_eq!(report.packs[0].steps, 3);
/// assert!(ages::verify_file(&report.packs[0].path)?.is_valid());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_NOT_FOUND` if there is no such
/// segment; `ERR_SCHEMA` for a file name and several packs; `ERR_EMPTY` for a tenant without a name; `ERR_READ_ONLY` for the
/// open segment of a store that was opened read-only; `ERR_CONFLICT` for a file within a store; `ERR_TIMEOUT` if it was
/// cancelled; `ERR_IO`, `ERR_INTEGRITY`.
pub fn export(
    session: &Session,
    to: impl AsRef<Path>,
    options: &ExportOptions,
    monitor: &Monitor<'_>,
) -> Result<ExportReport> {
    session.check_power(Power::Evidence)?;
    let to = to.as_ref();
    let tenant_id = tenant(session, options)?;
    let chosen = choose(session, options)?;
    let inside = to.join("evidence");
    // A name with a separator at its end is that of a directory, whether it is there or not.
    let is_new = !to.exists() && to.as_os_str().as_encoded_bytes().ends_with(b"/");
    let is_directory = is_new || to.is_dir();
    if chosen.len() > 1 && !is_directory {
        let message = format!("{} segments are as many files", chosen.len());
        return Err(Error::schema(message)
            .with_hint("name a directory, with a / at its end if it is new, or one segment"));
    }
    grainstore::check_outside(if is_directory { &inside } else { to })?;
    if is_new {
        std::fs::create_dir_all(to).map_err(|error| Error::from(error).at_path(to))?;
    }
    let last = last_entry(session, &chosen)?;
    let mut writer = PackWriter {
        to,
        is_directory,
        exported_at: session.now(),
        store: session.store().id()?,
        tenant_id: &tenant_id,
        mapping: Mapping { has_tokens: session.store().stats()?.encrypted },
        chosen: chosen.iter().map(|segment| segment.first).collect(),
        before: None,
        packs: Vec::new(),
    };
    writer.write_all(session, last, monitor)?;
    let packs = writer.packs;
    Ok(ExportReport { tenant_id, packs })
}

/// The tenant of the options, or that of the store.
fn tenant(session: &Session, options: &ExportOptions) -> Result<String> {
    match options.tenant_id.as_deref() {
        Some("") => {
            let kind = grainstore::format::ErrorKind::Empty;
            Err(Error::new(grainstore::ErrorKind::Format(kind), "the tenant is empty"))
        }
        Some(tenant) => Ok(tenant.to_owned()),
        None => {
            let hash = HEXLOWER.encode(&Sha256::digest(session.store().id()?));
            Ok(format!("tnt_{}", hash.get(..16).unwrap_or_default()))
        }
    }
}

/// The segments that the options ask for.
fn choose(session: &Session, options: &ExportOptions) -> Result<Vec<Segment>> {
    let all = segments(session)?;
    let of_namespace = match &options.namespace {
        None => None,
        Some(namespace) => Some(sequences_in(session, namespace)?),
    };
    let is_wanted = |segment: &Segment| {
        options.segment.is_none_or(|number| segment.segment == number)
            && options.since.is_none_or(|since| segment.until >= since)
            && options.until.is_none_or(|until| segment.since <= until)
            && of_namespace.as_ref().is_none_or(|sequences| {
                sequences.range(segment.first..=segment.last).next().is_some()
            })
    };
    let chosen: Vec<_> = all.into_iter().filter(is_wanted).collect();
    if chosen.is_empty() {
        let message = "no segment of the audit log is as asked for";
        return Err(Error::new(grainstore::ErrorKind::NotFound, message)
            .with_hint("list the segments, and ask for one of them"));
    }
    Ok(chosen)
}

/// The entries about grains of a namespace.
fn sequences_in(session: &Session, namespace: &str) -> Result<BTreeSet<u64>> {
    let options =
        SessionOptions { namespace: Some(namespace.to_owned()), ..session.options().clone() };
    let part = session.store().session(options);
    let (mut found, mut after) = (BTreeSet::new(), None);
    loop {
        let page = part.audit(after, MAX_AUDIT_ENTRIES)?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.sequence);
        found.extend(page.iter().map(|entry| entry.sequence));
    }
}

/// The last entry of what is exported. If the open segment is among it, that is the one which tells of the export.
fn last_entry(session: &Session, chosen: &[Segment]) -> Result<u64> {
    match chosen.last() {
        Some(open) if !open.closed => {
            let packs = u64::try_from(chosen.len()).unwrap_or(u64::MAX);
            let summary = TransferSummary::new("ages", packs);
            Ok(session.record_transfer(TransferKind::EvidenceExport, summary)?)
        }
        Some(closed) => Ok(closed.last),
        None => Ok(0),
    }
}

/// Follows the log, and writes the packs that were asked for.
struct PackWriter<'w> {
    to: &'w Path,
    is_directory: bool,
    exported_at: EpochMs,
    store: [u8; 16],
    tenant_id: &'w str,
    mapping: Mapping,
    /// First entries of the segments that are wanted.
    chosen: BTreeSet<u64>,
    /// The chain of the segment before, and its root.
    before: Option<(String, String)>,
    packs: Vec<ExportedPack>,
}

/// The chain of the segment that is read.
struct Open {
    chain: Chain,
    /// Empty unless the segment is wanted.
    steps: Vec<Value>,
    segment: Segment,
}

impl PackWriter<'_> {
    fn write_all(&mut self, session: &Session, last: u64, monitor: &Monitor<'_>) -> Result<()> {
        let (mut segmenter, mut open) = (Segmenter::default(), None::<Open>);
        each_entry(session, last, monitor, |entry| {
            if let Some(before) = segmenter.next(&entry) {
                self.close(open.take(), before)?;
            }
            let Some(segment) = segmenter.current() else { return Ok(()) };
            let open = open.get_or_insert_with(|| self.begin(segment));
            let before = open.chain.last_hash().unwrap_or_default().to_owned();
            let place = (before.as_str(), open.chain.next_index());
            let step = open.chain.append(&self.mapping.step(&entry, &open.segment, place));
            if self.chosen.contains(&open.segment.first) {
                open.steps.push(step);
            }
            Ok(())
        })?;
        match segmenter.finish() {
            Some(segment) => self.close(open, segment),
            None => Ok(()),
        }
    }

    /// Begins the chain of a segment.
    fn begin(&self, segment: &Segment) -> Open {
        let mut chain = Chain::new(self.tenant_id, &segment.id(&self.store));
        let before = self.before.as_ref().map(|(id, root)| (id.as_str(), root.as_str()));
        let genesis = chain.append(&decision::genesis(segment, before));
        let is_wanted = self.chosen.contains(&segment.first);
        let steps = if is_wanted { vec![genesis] } else { Vec::new() };
        Open { chain, steps, segment: segment.clone() }
    }

    /// Ends the chain of a segment, and writes its pack if it is wanted.
    fn close(&mut self, open: Option<Open>, segment: Segment) -> Result<()> {
        let Some(Open { chain, steps, .. }) = open else { return Ok(()) };
        let root_hash = chain.last_hash().unwrap_or_default().to_owned();
        if self.chosen.contains(&segment.first) {
            let name = format!("{}.ages.json", chain.evidence_ref());
            let path = if self.is_directory { self.to.join(name) } else { self.to.to_owned() };
            let count = chain.next_index();
            let pack = json!({
                "schema_version": PACK_VERSION,
                "exported_at": self.exported_at.to_string(),
                "tenant_id": self.tenant_id,
                "request_id": chain.request_id(),
                "steps": steps,
                "root_hash": root_hash,
            });
            let mut file = NewFile::create(&path)?;
            file.write_all(json::line(&pack).as_bytes())?;
            file.finish()?;
            self.packs.push(ExportedPack {
                path,
                segment,
                request_id: chain.request_id().to_owned(),
                evidence_ref: chain.evidence_ref().to_owned(),
                steps: count,
                root_hash: root_hash.clone(),
            });
        }
        self.before = Some((chain.request_id().to_owned(), root_hash));
        Ok(())
    }
}
