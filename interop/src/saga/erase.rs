//! The erasure of an agent: everything that SAGA documents brought into the store, in all versions.

use std::collections::BTreeMap;

use grainstore::{ContentAddress, EraseOptions, ErrorKind, Session};
use serde::Serialize;

use super::exit::forget_exit;
use super::import::{CONSENT_KIND, FILES, LATEST, open_files};
use super::map::{MANIFEST_KIND, PROFILE};
use super::store::AgentStore;
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::kept::{ANCHOR_LAYER, Documents, clamped};

/// Something that [`erase_agent`] left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeptItem {
    /// Its kind.
    pub kind: String,
    /// Its address, if it is a grain.
    pub address: String,
    /// Why it stays.
    pub reason: String,
}

/// What [`erase_agent`] erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[non_exhaustive]
pub struct ErasureReport {
    /// Grains that were erased, by kind.
    pub erased: BTreeMap<String, u64>,
    /// Files that were removed.
    pub files: u64,
    /// What stays.
    pub kept: Vec<KeptItem>,
}

/// Erases what SAGA documents brought of an agent: layers, items, consents and files, in all versions, and the marks of
/// transfers. What is held or must be retained stays, and is told; so do the disputes of an exit, until they are
/// decided.
///
/// Grains that came in a long-term memory are grains as others, and are erased as such ([`Session::erase`]), but those
/// that the document shows as items.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{Wallet, erase_agent};
///
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let agent = Wallet::new("eip155:8453", "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a")?;
/// let report = erase_agent(&session, &agent, "the agent asked", None)?;
/// assert!(report.erased.is_empty() && report.kept.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `keep_manifests` says why redaction manifests stay, which the standard permits; without it they are erased too.
///
/// # Errors
/// Those of [`Session::erase`], but the refusals of holds and retention. What was erased before stays erased; the same
/// call again takes the rest.
pub fn erase_agent(
    session: &Session,
    agent: &Wallet,
    reason: &str,
    keep_manifests: Option<&str>,
) -> Result<ErasureReport> {
    let store = AgentStore::new(session, agent);
    let mut report = ErasureReport::default();
    let documents = Documents::new(session, PROFILE, &agent.to_string());
    let mut files = open_files(session, agent)?;
    let names: Vec<_> = files.list().keys().cloned().collect();
    for name in &names {
        files.remove(name);
        report.files = report.files.saturating_add(1);
    }
    files.commit(clamped(session.now()), &[])?;
    for layer in [FILES, ANCHOR_LAYER] {
        documents.erase(layer, None, reason)?;
    }
    let mut heads = store.heads()?;
    // Once a consent is erased, what rests on it is hidden.
    heads.sort_by_key(|(kind, _)| kind == CONSENT_KIND.name);
    for (kind, head) in heads {
        if let Some(why) = keep_manifests.filter(|_| kind == MANIFEST_KIND.name) {
            report.kept.push(KeptItem { kind, address: head.to_string(), reason: why.to_owned() });
            continue;
        }
        for address in versions(session, head)? {
            match session.erase(&address, reason, &EraseOptions::new()) {
                Ok(_) => {
                    let count = report.erased.entry(kind.clone()).or_default();
                    *count = count.saturating_add(1);
                }
                Err(error) if is_retention(error.kind()) => report.kept.push(KeptItem {
                    kind: kind.clone(),
                    address: address.to_string(),
                    reason: error.to_string(),
                }),
                Err(error) => return Err(Error::from(error).in_entry(&kind)),
            }
        }
    }
    store.set_mark(LATEST, None::<&String>)?;
    store.forget_decisions()?;
    report.kept.extend(forget_exit(&store)?.map(|reason| KeptItem {
        kind: "disputes".to_owned(),
        address: String::new(),
        reason,
    }));
    super::freeze::clear(&store)?;
    Ok(report)
}

/// Returns `true` for the refusal of a hold, or of a rule on retention.
fn is_retention(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidationDenied | ErrorKind::Policy)
}

/// The versions of a grain, the newest first. Of one that rests on a consent which has ended, only this one is told.
fn versions(session: &Session, head: ContentAddress) -> Result<Vec<ContentAddress>> {
    match session.history(&head) {
        Ok(history) => Ok(history.iter().map(|version| version.address).collect()),
        // Erased already, or with another.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Erased) => {
            Ok(Vec::new())
        }
        Err(error) if error.kind() == ErrorKind::Withdrawn => Ok(vec![head]),
        Err(error) => Err(error.into()),
    }
}
