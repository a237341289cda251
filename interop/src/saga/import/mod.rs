//! Import: everything is checked before the first write, and what is refused leaves the store as it was.
//!
//! - `check`: the document, its signatures, and what it may change of an agent that is known.
//! - `consent`: the record, as a grain that the others rest on. `files`: what a container has beside the document.
//! - `whole`: what was redacted does not replace what is whole.

mod check;
mod consent;
mod files;
mod whole;

use std::path::Path;

use grainstore::Session;
use serde::Serialize;
use serde_json::Value;

use super::container::{Container, LONG_TERM};
use super::document::Document;
use super::finding::Finding;
use super::fresh::{self, Latest};
use super::kinds::Layer;
use super::map::{ENVELOPE, LAYER, MANIFEST_KIND, MEMBERS, Origin, split};
use super::native::Links;
use super::signature::SignatureVerdict;
use super::store::{AgentStore, Counts, Plan};
use crate::archive::Limits;
use crate::error::Result;
use crate::kept::exclusive;
use crate::monitor::Monitor;
use crate::transfer;
use crate::vouch::outsider;

use consent::Bases;
pub(super) use consent::{CONSENT_KIND, consent_id, is_withdrawal, last_withdrawal};
pub(super) use files::{FILES, OWN_FORMAT, open as open_files};

/// The namespace of what belongs to a document as a whole.
pub(super) const ENVELOPE_LAYER: &str = "envelope";

/// Options of [`import_document`] and [`import_container`].
#[derive(Debug, Default)]
pub struct ImportOptions<'m> {
    /// Refuses what the published schema refuses: unknown words and members, which are kept otherwise.
    pub strict: bool,
    /// Takes a document whose signature is over a message that says nothing of its content.
    pub allow_message_only: bool,
    /// Takes a container whose signature cannot be told to be over its content.
    pub allow_integrity_only: bool,
    /// Takes a document that is older than the one that was imported last, or has an older vault: to go back to it. Also
    /// takes one that was redacted, in the place of what is whole here.
    pub allow_older: bool,
    /// What is read of a container at most.
    pub limits: Limits,
    /// Whom the consent of the document is given to, as a DID. Without one the consent says so.
    pub destination: Option<String>,
    /// Follows the import. Cancelled before its first write, it leaves nothing.
    pub monitor: Monitor<'m>,
}

/// What an import came to: [`import_document`].
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The id of the document.
    pub document_id: String,
    /// The agent: chain and address.
    pub agent: String,
    /// What the signature of the document came to.
    pub signature: SignatureVerdict,
    /// The layers that it has.
    pub layers: Vec<Layer>,
    /// What became of its items.
    pub items: Counts,
    /// Files of the container that were stored.
    pub files: u64,
    /// What became of the grains in its long-term memory, if it has any.
    pub grains: Option<grainstore::ImportReport>,
    /// What is unusual about it.
    pub warnings: Vec<Finding>,
}

/// Imports a document: each item becomes a grain, or the successor of the one it was.
///
/// The session is the operator's. Nothing that is stored is removed: a layer that the document lacks stays, and items
/// that it no longer has are grains that it no longer names. A new consent in the place of one that has ended is stored
/// first, even if the rest is refused: what rests on the old one cannot be looked at before.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{Document, ImportOptions, WalletKey, import_document, stored_document};
///
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// let session = store.session(SessionOptions::default());
/// let key = WalletKey::ed25519("solana:mainnet", &[0x11; 32])?;
/// let mut document = Document::parse(
///     br#"{"$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_a1",
///         "exportedAt": "2026-03-20T10:00:00Z", "exportType": "profile", "layers": {
///         "identity": {"handle": "aria", "walletAddress": "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4",
///             "chain": "solana:mainnet", "createdAt": "2026-01-15T08:00:00Z"},
///         "skills": {"selfReported": [{"name": "brewing tea"}]}}}"#,
/// )?;
/// document.sign(&key)?;
/// let report = import_document(&session, &document, &ImportOptions::default())?;
/// assert_eq!(report.items.added, 4); // two layers, a skill, the envelope
/// let tea = session.ask(r#"RECALL beliefs WHERE relation = "mg:has_capability""#)?;
/// assert_eq!(tea.answer.grains_given().len(), 1);
/// assert_eq!(stored_document(&session, &document.wallet()?)?, Some(document));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_SCHEMA` for a document that is not valid; `ERR_SIGNATURE`; `ERR_WITHDRAWN` if its consent was withdrawn or has
/// expired, or an item rests on one to which it is no renewal; `ERR_CONFLICT` if it changes what never changes of an
/// agent, or is older than what is stored, or was redacted and would replace what is whole
/// ([`ImportOptions::allow_older`]); `ERR_ERASED` for what was erased;
/// `ERR_INVALIDATION_DENIED` for an item that would take the place of one that is protected; `ERR_ACCESS` unless the
/// session is the operator's; the errors of [`Session::put`]. All of them name the layer and the item; nothing was
/// written then.
pub fn import_document(
    session: &Session,
    document: &Document,
    options: &ImportOptions<'_>,
) -> Result<ImportReport> {
    let _writing = exclusive();
    let checked = check::document(session, document, options)?;
    Import::plan(session, document, options, checked, &Links::new())?.write(document, options)
}

/// Imports a container like [`import_document`], with its files. The grains of a long-term memory that a Grainstore
/// wrote are imported as grains ([`Session::import`]); any other memory is kept as a file.
///
/// # Errors
/// Those of [`Container::open`] and [`import_document`]; `ERR_INTEGRITY` for a file that is not what the document says;
/// `ERR_SIGNATURE` for a long-term memory that renews a consent of the store, without the signature of who consents.
pub fn import_container(
    session: &Session,
    path: impl AsRef<Path>,
    options: &ImportOptions<'_>,
) -> Result<ImportReport> {
    let path = path.as_ref();
    let take = || {
        let container = Container::open(path, options.limits)?;
        container.verdict().require(options.allow_integrity_only)?;
        let document = container.document();
        let _writing = exclusive();
        let checked = check::document(session, document, options)?;
        files::check(&container)?;
        let memory = files::grains_of(session, &container)?;
        let links = memory.as_ref().map(|memory| memory.links.clone()).unwrap_or_default();
        let import = Import::plan(session, document, options, checked, &links)?;
        let mut report = import.write(document, options)?;
        let wallet = document.wallet()?;
        report.files = files::store(session, &wallet, &container, memory.is_some())?;
        if let Some(memory) = memory {
            let how = grainstore::ImportOptions {
                cancel: options.monitor.cancel.clone(),
                progress: None,
            };
            // A withdrawal in a file is nobody's word: it hides, and is marked for review.
            let by = if memory.withdraws { outsider(session) } else { session.clone() };
            let imported = by.import_opened([(LONG_TERM.to_owned(), memory.file)], &how);
            let imported =
                imported.map_err(|error| crate::Error::from(error).in_entry(LONG_TERM))?;
            report.grains = Some(imported);
            AgentStore::new(session, &wallet).link(&memory.links)?;
        }
        Ok(report)
    };
    take().map_err(|error: crate::Error| error.at_path(path))
}

/// An import that is checked and planned.
struct Import<'s> {
    plan: Plan<'s>,
    report: ImportReport,
}

impl<'s> Import<'s> {
    fn plan(
        session: &'s Session,
        document: &Document,
        options: &ImportOptions<'_>,
        checked: check::Checked,
        links: &Links,
    ) -> Result<Self> {
        let check::Checked { wallet, signature, warnings } = checked;
        let store = AgentStore::new(session, &wallet);
        fresh::check_erased(session, &wallet, document)?;
        if !options.allow_older {
            fresh::check_document(&store, document)?;
        }
        consent::renew(&store, document, options)?;
        check::identity(&store, document)?;
        if let Some(vault) = document.layer(Layer::Vault).filter(|_| !options.allow_older) {
            fresh::check_vault(&store, vault)?;
        }
        let mut plan = Plan::new(store.clone()).knowing(consent::bases_of(&store)?);
        let bases = consent::plan(&mut plan, &store, document, options)?;
        let at = document.exported_at()?;
        let basis = |layer: &str| bases.get(layer).map(String::as_str);
        let origin = |layer| Origin { wallet: &wallet, at, basis: basis(layer), layer };
        for layer in document.layers() {
            let Some(value) = document.layer(layer) else { continue };
            let whole = split(layer, value);
            for item in &whole.items {
                // What comes as a grain of its own is not made into another.
                let is_linked = links.contains_key(&(item.kind.name, item.id.clone()));
                if is_linked && store.find(item.kind, &item.id)?.is_none() {
                    continue;
                }
                plan.add(item.kind, &item.id, &item.value, &[], origin(layer.name()))?;
            }
            let (name, kinds) = (layer.name(), &whole.kinds);
            plan.add(&LAYER, name, &whole.skeleton, kinds, origin(name))?;
        }
        add_unknown(&mut plan, document, &bases, origin(ENVELOPE_LAYER))?;
        if !options.allow_older {
            whole::check(&store, document)?;
        }
        // What the document says of itself rests on nothing: it must stay readable, to tell what became of it.
        let origin = Origin { basis: None, ..origin(ENVELOPE_LAYER) };
        if let Some(manifest) = document.get("redactionManifest") {
            plan.add(&MANIFEST_KIND, document.id(), manifest, &[], origin)?;
        }
        plan.add(&ENVELOPE, document.id(), &envelope_of(document), &[], origin)?;
        let report = ImportReport {
            document_id: document.id().to_owned(),
            agent: wallet.to_string(),
            signature,
            layers: document.layers().collect(),
            items: Counts::default(),
            files: 0,
            grains: None,
            warnings,
        };
        Ok(Self { plan, report })
    }

    fn write(self, document: &Document, options: &ImportOptions<'_>) -> Result<ImportReport> {
        let Self { plan, mut report } = self;
        let store = plan.store().clone();
        report.items = plan.write(&options.monitor)?;
        Latest::write(&store, document)?;
        let items = report.items.added.saturating_add(report.items.replaced);
        transfer::imported(store.session(), "saga", items)?;
        Ok(report)
    }
}

/// Plans what nobody knows of a document: its layers, each on the consent that covers it, and its members, on that to
/// the identity.
fn add_unknown(
    plan: &mut Plan<'_>,
    document: &Document,
    bases: &Bases,
    origin: Origin<'_>,
) -> Result<()> {
    let on = |name: &str| Origin { basis: bases.get(name).map(String::as_str), ..origin };
    for (name, value) in document.unknown_layers() {
        plan.add(&LAYER, name, value, &[], on(name))?;
    }
    let members = document.unknown_members();
    match members.is_empty() {
        true => Ok(()),
        false => {
            let origin = on(Layer::Identity.name());
            plan.add(&MEMBERS, document.id(), &Value::Object(members), &[], origin)
        }
    }
}

/// The known members of a document, with the names of its layers in their place.
fn envelope_of(document: &Document) -> Value {
    let mut members = document.members().clone();
    for name in document.unknown_members().keys() {
        members.remove(name);
    }
    let layers = document.layer_names().map(Value::from).collect();
    members.insert("layers".to_owned(), Value::Array(layers));
    Value::Object(members)
}
