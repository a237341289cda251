//! What is checked of a document before anything of it is stored.

use grainstore::{ErrorKind, Session};
use serde_json::Value;

use super::ImportOptions;
use crate::error::{Error, Result};
use crate::json;
use crate::saga::consent::check_record;
use crate::saga::document::Document;
use crate::saga::finding::{Finding, Level};
use crate::saga::freeze;
use crate::saga::kinds::{ExportType, Layer};
use crate::saga::map::LAYER;
use crate::saga::signature::SignatureVerdict;
use crate::saga::store::AgentStore;
use crate::saga::wallet::Wallet;

/// Members of an identity that never change.
const FIXED: [&str; 4] = ["handle", "createdAt", "parentSagaId", "cloneDepth"];

/// A document that was checked.
pub(super) struct Checked {
    pub(super) wallet: Wallet,
    pub(super) signature: SignatureVerdict,
    pub(super) warnings: Vec<Finding>,
}

/// Checks a document as a whole.
///
/// # Errors
/// `ERR_SCHEMA`, `ERR_SIGNATURE`, `ERR_READ_ONLY`, `ERR_ACCESS`.
pub(super) fn document(
    session: &Session,
    document: &Document,
    options: &ImportOptions<'_>,
) -> Result<Checked> {
    let mut found = document.findings(session.now());
    let export = document.export_type()?;
    if matches!(export, ExportType::Transfer | ExportType::Clone)
        && document.get("consent").is_none()
    {
        found.warn("consent", "a document that crosses organizations has the agent's consent");
    }
    let (findings, _) = found.into_parts();
    let least = if options.strict { Level::Schema } else { Level::Error };
    if let Some(worst) = findings.iter().find(|finding| finding.level >= least) {
        return Err(Error::schema(worst.message.clone()).in_entry(&worst.path));
    }
    let signature = document.verify();
    signature.require(options.allow_message_only)?;
    let wallet = document.wallet()?;
    if let Some(record) = document.get("consent") {
        check_record(record, &wallet)?;
    }
    if document.get("redactionManifest").is_some_and(|it| it.get("orgSignature").is_some()) {
        document.verify_manifest()?;
    }
    freeze::check_active(&AgentStore::new(session, &wallet))?;
    Ok(Checked { wallet, signature, warnings: findings })
}

/// Checks that a document changes nothing of an agent that never changes.
///
/// # Errors
/// `ERR_CONFLICT`; those of [`AgentStore::find`].
pub(super) fn identity(store: &AgentStore<'_>, document: &Document) -> Result<()> {
    let Some(new) = document.layer(Layer::Identity) else { return Ok(()) };
    let Some(old) = store.read(&LAYER, Layer::Identity.name())? else { return Ok(()) };
    let member = |of: &Value, name: &str| of.get(name).filter(|it| !it.is_null()).cloned();
    for name in FIXED {
        let (old, new) = (member(&old, name), member(new, name));
        let is_same = match (&old, &new) {
            (Some(old), Some(new)) => json::equal(old, new),
            // Lineage may be left out by those who do not write it, and 0 is the same as none.
            (None, Some(new)) => name != "parentSagaId" && new.as_u64() == Some(0),
            (Some(_), None) => name != "handle",
            (None, None) => true,
        };
        if !is_same {
            let message = format!("the {name} of an agent never changes, and another is stored");
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("a clone has a wallet of its own; a document with this wallet is the same agent")
                .in_entry(&format!("layers.identity.{name}")));
        }
    }
    Ok(())
}
