//! Export: what the store holds of an agent, as a signed document or container, with no more than was agreed to.
//!
//! In this order: what is asked for and consented to, redacted, encrypted, signed.
//!
//! - `options`: what is asked for, and what it came to.
//! - `stored`: layers from the store. `checks`: what an export must have, and what it may not do.
//! - `memory`: grains as a long-term memory, and encrypted files. `files`: which files go along.

mod checks;
mod files;
mod memory;
mod options;
mod stored;

use std::path::Path;

use grainstore::cal::Query;
use grainstore::{EpochMs, Session};
use serde_json::{Map, Value, json};

use super::classified::stored_classifications;
use super::container::whole_container;
use super::document::{Document, VERSION};
use super::finding::Level;
use super::freeze;
use super::kinds::{ExportType, Layer};
use super::native;
use super::schema::SCHEMA_URL;
use super::sign::Signer;
use super::store::AgentStore;
use super::time;
use super::validate::Verdict;
use crate::error::{Error, Result};
use crate::transfer;

pub use options::{ExportOptions, ExportReport, TransferRequest};
use stored::Hidden;
pub use stored::stored_document;

/// The long-term memory, which is encrypted unless its owner says otherwise.
const LONG_TERM: &str = "memory.longTerm";
/// The system prompt, which crosses no organization in plain.
pub(super) const SYSTEM_PROMPT: &str = "cognitive.systemPrompt";

/// Exports an agent as a signed document.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{
///     Document, ExportOptions, ExportType, ImportOptions, Layer, WalletKey, export_document, import_document,
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
/// #         "skills": {"selfReported": [{"name": "brewing tea"}]},
/// #         "taskHistory": {"recentTasks": []}}}"#,
/// # )?;
/// # document.sign(&key)?;
/// import_document(&session, &document, &ImportOptions::default())?;
/// let profile = ExportOptions { export_type: Some(ExportType::Profile), ..ExportOptions::default() };
/// let (exported, report) = export_document(&session, &profile, &key)?;
/// assert_eq!(report.layers, [Layer::Identity, Layer::Skills]);
/// assert_eq!(exported.layer(Layer::Skills), document.layer(Layer::Skills));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_NOT_FOUND` if the store has no such agent; `ERR_POLICY` without what must be there: a consent, a redaction, the
/// organization's signature; `ERR_WITHDRAWN` for a consent that expired or was withdrawn; `ERR_KEY` without a recipient
/// for what must be encrypted; `ERR_INVALIDATION_DENIED` if the redaction would take out what is held; `ERR_READ_ONLY`
/// for an agent that left; `ERR_SCHEMA` for what is not valid; the errors of the signer.
pub fn export_document(
    session: &Session,
    options: &ExportOptions<'_>,
    signer: &dyn Signer,
) -> Result<(Document, ExportReport)> {
    if options.grains.is_some() {
        return Err(Error::schema("grains go along in a container, not in a document alone"));
    }
    let mut export = Export::gather(session, options, signer)?;
    export.finish(options, signer)?;
    export.mark(options)?;
    Ok((export.document, export.report))
}

/// Exports an agent as a signed container: the document, its events by the line, its files, and grains as a long-term
/// memory ([`ExportOptions::grains`]).
///
/// # Errors
/// Those of [`export_document`], [`write_container`](super::write_container) and [`Session::export`].
pub fn export_container(
    session: &Session,
    path: impl AsRef<Path>,
    options: &ExportOptions<'_>,
    signer: &dyn Signer,
) -> Result<ExportReport> {
    let mut export = Export::gather(session, options, signer)?;
    let mut memory = memory::LongTerm::gather(&mut export, options)?;
    if let Some(query) = options.grains.as_ref().filter(|_| options.native_items) {
        export.add_native(query)?;
    }
    export.finish(options, signer)?;
    memory.encrypt(&export, options)?;
    let kept = super::import::open_files(session, export.store.wallet())?;
    let files = files::of(&export, &kept, memory, options)?;
    let (report, file) =
        whole_container(path.as_ref(), &export.document, files, export.now, signer)?;
    export.report.container = Some(report);
    // No container is out of which the audit log does not tell.
    export.mark(options)?;
    file.place()?;
    Ok(export.report)
}

/// An export under way.
struct Export<'s> {
    store: AgentStore<'s>,
    export_type: ExportType,
    now: EpochMs,
    document: Document,
    /// The layers that are asked for and agreed to.
    wanted: Vec<Layer>,
    /// Items that are held, by kind and id.
    held: Vec<native::ItemName>,
    /// How the long-term memory is stored.
    stored_memory: memory::MemoryPlace,
    /// The file that it refers to, as it is stored, or as the grains of this export are.
    memory_file: Option<String>,
    /// How it is after the redaction, which may have taken its file, and before what is left is encrypted.
    redacted_memory: memory::MemoryPlace,
    report: ExportReport,
}

impl<'s> Export<'s> {
    /// Reads what is asked for and agreed to.
    fn gather(
        session: &'s Session,
        options: &ExportOptions<'_>,
        signer: &dyn Signer,
    ) -> Result<Self> {
        let store = AgentStore::new(session, signer.wallet());
        freeze::check_active(&store)?;
        let export_type = options.export_type.unwrap_or(ExportType::Full);
        let now = session.now();
        let (layers, narrowed) = checks::layers(&store, export_type, options, now)?;
        let document_id = match &options.document_id {
            Some(id) => id.clone(),
            None => format!("saga_{}", time::random_id()?),
        };
        let missing_consents = checks::transfer(&store, export_type, options, &document_id)?;
        options.monitor.step(0, 3)?;
        let mut gathered = stored::gather(&store, &layers, Hidden::LeftOut)?;
        let hidden = std::mem::take(&mut gathered.hidden);
        let mut members = stored::kept_members(&store, &gathered.layers, export_type, options)?;
        let at = time::written(now);
        let fixed = json!({
            "$schema": SCHEMA_URL, "sagaVersion": VERSION, "documentId": document_id,
            "exportedAt": at, "exportType": export_type.name(),
        });
        if let Value::Object(fixed) = fixed {
            members.extend(fixed);
        }
        if let Some(consent) = &options.consent {
            members.insert("consent".to_owned(), consent.clone());
        }
        members.insert("layers".to_owned(), Value::Object(gathered.layers));
        let report = ExportReport {
            document_id,
            layers: Vec::new(),
            narrowed: narrowed.into_iter().chain(hidden.iter().copied()).collect(),
            absent: gathered.absent,
            encrypted: Vec::new(),
            redacted: 0,
            removed: 0,
            grains: None,
            container: None,
            missing_consents,
            verdict: Verdict::Valid,
        };
        let document = Document::from_value(Value::Object(members))?;
        let held = gathered.held;
        let stored_memory = memory::place_of(&document);
        let redacted_memory = stored_memory;
        let memory_file = memory::file_of(&document).map(str::to_owned);
        Ok(Self {
            store,
            export_type,
            now,
            document,
            wanted: layers.into_iter().filter(|layer| !hidden.contains(layer)).collect(),
            held,
            stored_memory,
            memory_file,
            redacted_memory,
            report,
        })
    }

    /// Adds items of grains, but to layers that are not consented to or asked for.
    fn add_native(&mut self, query: &Query) -> Result<()> {
        let session = self.store.session();
        let held = native::add_items(&mut self.document, &self.wanted, session, query)?;
        self.held.extend(held);
        Ok(())
    }

    /// Redacts, encrypts and signs.
    fn finish(&mut self, options: &ExportOptions<'_>, signer: &dyn Signer) -> Result<()> {
        options.monitor.step(1, 3)?;
        self.redact(options)?;
        self.redacted_memory = memory::place_of(&self.document);
        self.encrypt(options)?;
        if self.document.layer(Layer::Vault).is_some() {
            self.document.note_encrypted(Layer::Vault.name());
        }
        options.monitor.step(2, 3)?;
        self.document.sign(signer)?;
        let validation = self.document.validate(self.now);
        let least = if options.strict_schema { Level::Schema } else { Level::Error };
        if let Some(worst) = validation.findings.iter().find(|finding| finding.level >= least) {
            return Err(Error::schema(worst.message.clone()).in_entry(&worst.path));
        }
        if options.strict_schema && validation.verdict != Verdict::Valid {
            let message = "the published schema has no vault, consent or redaction manifest";
            return Err(Error::schema(message)
                .with_hint("leave the vault out, or do not ask for the strict schema"));
        }
        self.report.verdict = match validation.verdict {
            Verdict::Valid => Verdict::Valid,
            _ => Verdict::ValidWithExtensions,
        };
        self.report.layers = self.document.layers().collect();
        self.report.encrypted = self.document.encrypted_layers().map(str::to_owned).collect();
        options.monitor.step(3, 3)
    }

    fn redact(&mut self, options: &ExportOptions<'_>) -> Result<()> {
        let agent = self.store.wallet();
        let Some(redact) = checks::redaction(&self.document, agent, self.export_type, options)?
        else {
            return Ok(());
        };
        let mut redact = redact.clone();
        let (session, agent) = (self.store.session(), self.store.wallet());
        redact.classifications.add_missing(stored_classifications(session, agent)?);
        let before = self.document.get("layers").cloned().unwrap_or_default();
        let manifest = self.document.redact(&redact, options.organization)?;
        checks::held(&manifest, &self.held)?;
        checks::held_whole(&before, &self.document, &self.held)?;
        for entry in &manifest.entries {
            let count = match entry.action {
                super::manifest::RedactionAction::Redacted => &mut self.report.redacted,
                super::manifest::RedactionAction::Removed => &mut self.report.removed,
            };
            *count = count.saturating_add(1);
        }
        Ok(())
    }

    fn encrypt(&mut self, options: &ExportOptions<'_>) -> Result<()> {
        for path in &options.encrypt {
            self.document.encrypt(path, &options.recipients)?;
        }
        if !options.plain_long_term {
            self.document.encrypt(LONG_TERM, &options.recipients)?;
        }
        if options.crosses_organizations {
            self.document.encrypt(SYSTEM_PROMPT, &options.recipients)?;
        }
        Ok(())
    }

    /// Tells the audit log of it, and notes that a transfer began, if one did.
    fn mark(&self, options: &ExportOptions<'_>) -> Result<()> {
        transfer::exported(self.store.session(), "saga", self.report.layers.len() as u64)?;
        match options.export_type {
            Some(ExportType::Transfer) => {
                freeze::mark_pending(&self.store, &self.report.document_id, self.now)
            }
            _ => Ok(()),
        }
    }
}

/// All that the store has of an agent, as a document that is not signed.
///
/// # Errors
/// `ERR_NOT_FOUND`; those of [`AgentStore::find`].
pub(super) fn agent_document(store: &AgentStore<'_>, now: EpochMs) -> Result<Document> {
    let options = ExportOptions::default();
    let (layers, _) = checks::layers(store, ExportType::Full, &options, now)?;
    let layers = stored::gather(store, &layers, Hidden::LeftOut)?.layers;
    let mut members = stored::kept_members(store, &layers, ExportType::Full, &options)?;
    let fixed = json!({
        "$schema": SCHEMA_URL, "sagaVersion": VERSION, "documentId": "saga_preview",
        "exportedAt": time::written(now), "exportType": ExportType::Full.name(), "layers": layers,
    });
    if let Value::Object(fixed) = fixed {
        members.extend(fixed);
    }
    Document::from_value(Value::Object(members))
}

/// The members of a document that an export writes anew.
const WRITTEN: [&str; 7] =
    ["$schema", "sagaVersion", "documentId", "exportedAt", "exportType", "signature", "consent"];

/// Takes out the members that an export writes anew.
fn without_written(mut members: Map<String, Value>) -> Map<String, Value> {
    members.retain(|name, _| !WRITTEN.contains(&name.as_str()));
    members
}
