//! Exits: an agent leaves an organization. What would be taken out is shown, may be disputed for a time, and is decided
//! then.
//!
//! The process is one mark of the agent, and the export is like any other.
//!
//! - `process`: the mark: times, decisions, disputes.

mod process;

use std::path::Path;

use grainstore::{EpochMs, ErrorKind, Session};
use serde::Serialize;

use super::classified::stored_classifications;
use super::classify::{Classification, Classifications, ItemType};
use super::document::Document;
use super::encrypt::Recipient;
use super::export::{ExportOptions, ExportReport, SYSTEM_PROMPT, agent_document, export_container};
use super::freeze;
use super::kinds::ExportType;
use super::manifest::Manifest;
use super::redact::{ClassifiedItem, RedactOptions};
use super::sign::Signer;
use super::store::AgentStore;
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::monitor::Monitor;

use process::Process;
pub use process::{Dispute, DisputeDecision, DisputeStatus, ExitKind};

/// How an exit begins: [`begin_exit`].
#[derive(Debug, Clone)]
pub struct ExitOptions {
    /// Why.
    pub kind: ExitKind,
    /// The id of the organization.
    pub organization: String,
    /// Hours for disputes; the least that the kind has by default, which is also the least that is taken.
    pub window_hours: Option<u64>,
    /// What the organization decided of single items.
    pub classifications: Classifications,
}

/// What an exit would come to now: [`begin_exit`], [`exit_preview`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExitPreview {
    /// The document, redacted and not signed.
    pub document: Document,
    /// What is redacted and taken out.
    pub manifest: Manifest,
    /// How each item is classified.
    pub items: Vec<ClassifiedItem>,
    /// When the time for disputes ends.
    pub closes_at: EpochMs,
    /// The disputes.
    pub disputes: Vec<Dispute>,
    /// What is to be watched: an emergency is due in seven days.
    pub warnings: Vec<String>,
}

/// Begins the exit of an agent, and shows what will be taken out. Disputes are taken from now on.
///
/// ```
/// use grainstore::EpochMs;
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{
///     Document, ExitKind, ExitOptions, ImportOptions, ItemType, Signer, WalletKey, begin_exit, dispute,
///     import_document,
/// };
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// # let key = WalletKey::ed25519("solana:mainnet", &[0x11; 32])?;
/// # let mut document = Document::parse(
/// #     br#"{"$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_a1",
/// #         "exportedAt": "2026-03-20T10:00:00Z", "exportType": "full", "layers": {
/// #         "identity": {"handle": "aria", "walletAddress": "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4",
/// #             "chain": "solana:mainnet", "createdAt": "2026-01-15T08:00:00Z"},
/// #         "taskHistory": {"recentTasks": [{"taskId": "t1", "status": "completed", "title": "My own work"}]}}}"#,
/// # )?;
/// # document.sign(&key)?;
/// # import_document(&session, &document, &ImportOptions::default())?;
/// let options = ExitOptions {
///     kind: ExitKind::Voluntary, organization: "company_a".into(), window_hours: None,
///     classifications: Default::default(),
/// };
/// let preview = begin_exit(&session, key.wallet(), &options)?;
/// assert_eq!(preview.manifest.entries[0].id, "t1");
/// dispute(&session, key.wallet(), ItemType::Task, "t1", "I did this before I came")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_CONFLICT` if an exit is under way; `ERR_POLICY` for too short a time; `ERR_NOT_FOUND` for an agent that is not
/// known; `ERR_READ_ONLY` for one that left.
pub fn begin_exit(session: &Session, agent: &Wallet, options: &ExitOptions) -> Result<ExitPreview> {
    let store = AgentStore::new(session, agent);
    freeze::check_active(&store)?;
    if Process::read(&store)?.is_some() {
        let message = format!("an exit of {agent} is under way");
        return Err(
            Error::new(ErrorKind::Conflict, message).with_hint("finalize it, or cancel it first")
        );
    }
    let mut options = options.clone();
    options.classifications.add_missing(stored_classifications(session, agent)?);
    let process = Process::begin(&options, session.now())?;
    let preview = preview(&store, &process)?;
    process.write(&store)?;
    Ok(preview)
}

/// What the exit that is under way ([`begin_exit`]) would come to now.
///
/// # Errors
/// `ERR_NOT_FOUND` if none is.
pub fn exit_preview(session: &Session, agent: &Wallet) -> Result<ExitPreview> {
    let store = AgentStore::new(session, agent);
    preview(&store, &Process::of(&store)?)
}

/// Files a dispute about an entry of the manifest that [`begin_exit`] shows, with the agent's reasons. A second one
/// replaces the first, unless that was decided.
///
/// # Errors
/// `ERR_NOT_FOUND` without an exit, or without such an entry; `ERR_CONFLICT` once the time for disputes is over, or for
/// one that was decided.
pub fn dispute(
    session: &Session,
    agent: &Wallet,
    item_type: ItemType,
    id: &str,
    justification: &str,
) -> Result<()> {
    let store = AgentStore::new(session, agent);
    let mut process = Process::of(&store)?;
    let preview = preview(&store, &process)?;
    let is_it =
        |entry: &&super::manifest::ManifestEntry| entry.item_type == item_type && entry.id == id;
    if !preview.manifest.entries.iter().any(|entry| is_it(&entry)) {
        let message = format!("the manifest has no entry of {item_type} {id}");
        return Err(Error::new(ErrorKind::NotFound, message)
            .with_hint("dispute an entry of the preview's manifest"));
    }
    process.file(item_type, id, justification, session.now())?;
    process.write(&store)
}

/// Decides a dispute in an exit ([`begin_exit`]), for the organization. An accepted one changes how the item is
/// classified; a rejected one stands in the manifest; an escalated one keeps the exit open until it is decided.
///
/// # Errors
/// `ERR_NOT_FOUND` if there is none; `ERR_CONFLICT` if it was accepted or rejected before.
pub fn resolve_dispute(
    session: &Session,
    agent: &Wallet,
    item_type: ItemType,
    id: &str,
    decision: DisputeDecision,
) -> Result<()> {
    let store = AgentStore::new(session, agent);
    let mut process = Process::of(&store)?;
    process.decide(item_type, id, decision)?;
    process.write(&store)
}

/// Ends an exit ([`begin_exit`]) without an export.
///
/// # Errors
/// `ERR_NOT_FOUND` if none is under way.
pub fn cancel_exit(session: &Session, agent: &Wallet) -> Result<()> {
    let store = AgentStore::new(session, agent);
    Process::of(&store)?;
    Process::clear(&store)
}

/// How an exit that [`begin_exit`] began is finalized: [`finalize_exit`].
#[derive(Debug, Default)]
pub struct FinalizeOptions<'o> {
    /// To whom layers are encrypted: the agent's own key, or that of where it goes.
    pub recipients: Vec<Recipient>,
    /// True to leave the long-term memory in plain, which its owner may.
    pub plain_long_term: bool,
    /// The signed consent of the agent, if the container goes to another organization.
    pub consent: Option<serde_json::Value>,
    /// Follows the export.
    pub monitor: Monitor<'o>,
}

/// Finalizes an exit ([`begin_exit`]): the container, redacted as was decided, signed by the agent, its manifest by the
/// organization. The agent's departure is then pending, until [`freeze`](super::freeze()) notes that it has its
/// container.
///
/// The organization keeps what it had: a backup of the store ([`Store::backup`](grainstore::Store::backup)), which is
/// no SAGA document.
///
/// # Errors
/// `ERR_NOT_FOUND` without an exit; `ERR_CONFLICT` before the time for disputes is over, or while one is not decided;
/// those of [`export_container`].
pub fn finalize_exit(
    session: &Session,
    path: impl AsRef<Path>,
    options: FinalizeOptions<'_>,
    agent: &dyn Signer,
    organization: &dyn Signer,
) -> Result<ExportReport> {
    let store = AgentStore::new(session, agent.wallet());
    let process = Process::of(&store)?;
    process.check_closed(session.now())?;
    let FinalizeOptions { recipients, plain_long_term, consent, monitor } = options;
    let how = ExportOptions {
        export_type: Some(ExportType::Full),
        crosses_organizations: consent.is_some(),
        consent,
        redact: Some(redaction(&process, session.now())),
        organization: Some(organization),
        recipients,
        // It leaves the house with the agent.
        encrypt: vec![SYSTEM_PROMPT.to_owned()],
        plain_long_term,
        monitor,
        ..ExportOptions::default()
    };
    let report = export_container(session, path, &how, agent)?;
    freeze::mark_pending(&store, &report.document_id, session.now())?;
    Process::clear(&store)?;
    Ok(report)
}

/// Forgets the exit of an agent, unless disputes in it are to be decided: then it says so.
pub(super) fn forget_exit(store: &AgentStore<'_>) -> Result<Option<String>> {
    match Process::read(store)? {
        Some(process) if process.is_disputed() => {
            Ok(Some("disputes are to be decided before they may be erased".to_owned()))
        }
        Some(_) => Process::clear(store).map(|()| None),
        None => Ok(None),
    }
}

fn redaction(process: &Process, at: EpochMs) -> RedactOptions {
    RedactOptions {
        organization: process.organization.clone(),
        reason: "organizational-exit".to_owned(),
        at,
        classifications: process.classifications(),
    }
}

fn preview(store: &AgentStore<'_>, process: &Process) -> Result<ExitPreview> {
    let now = store.session().now();
    let mut document = agent_document(store, now)?;
    let redact = redaction(process, now);
    let items = document.classified(&redact.classifications);
    let manifest = document.redact_for_a_look(&redact)?;
    let warnings = match process.kind() {
        ExitKind::Emergency => vec!["an emergency exit is due within seven days".to_owned()],
        _ => Vec::new(),
    };
    let (closes_at, disputes) = (process.closes_at(), process.disputes.clone());
    Ok(ExitPreview { document, manifest, items, closes_at, disputes, warnings })
}

/// A classification that an organization decided in the course of an exit.
#[derive(Debug, Clone, Serialize, serde::Deserialize)]
struct Decided {
    item_type: String,
    id: String,
    classification: String,
}

impl Decided {
    fn parts(&self) -> Option<(ItemType, &str, Classification)> {
        Some((self.item_type.parse().ok()?, &self.id, self.classification.parse().ok()?))
    }
}
