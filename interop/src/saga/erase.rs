//! The erasure of an agent: everything that SAGA documents brought into the store, in all versions.

use std::collections::BTreeMap;

use grainstore::{ContentAddress, EraseOptions, ErrorKind, Session};
use serde::Serialize;

use super::exit::forget_exit;
use super::fresh::{self, Latest};
use super::import::{CONSENT_KIND, FILES, open_files};
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
/// transfers, also of what a consent that has ended hides. What is held or must be retained stays, and is told; so do
/// the disputes of an exit, until they are decided. From then on no document is imported that the agent exported before:
/// the store keeps the time, and a hash of the address.
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
    erase_grains(&store, reason, keep_manifests, &mut report)?;
    fresh::mark_erased(session, agent)?;
    Latest::forget(&store)?;
    store.forget_past()?;
    store.forget_decisions()?;
    report.kept.extend(forget_exit(&store)?.map(|reason| KeptItem {
        kind: "disputes".to_owned(),
        address: String::new(),
        reason,
    }));
    super::freeze::clear(&store)?;
    Ok(report)
}

impl ErasureReport {
    /// Erases a grain, or notes why it stays.
    fn erase(
        &mut self,
        session: &Session,
        kind: &str,
        address: &ContentAddress,
        reason: &str,
    ) -> Result<()> {
        match session.erase(address, reason, &EraseOptions::new()) {
            Ok(_) => {
                let count = self.erased.entry(kind.to_owned()).or_default();
                *count = count.saturating_add(1);
            }
            Err(error) if is_retention(error.kind()) => {
                self.keep(kind, address, error.to_string());
            }
            // With another, meanwhile.
            Err(error) if error.kind() == ErrorKind::Erased => {}
            Err(error) => return Err(Error::from(error).in_entry(kind)),
        }
        Ok(())
    }

    fn keeps(&self, address: &ContentAddress) -> bool {
        let address = address.to_string();
        self.kept.iter().any(|kept| kept.address == address)
    }

    fn keep(&mut self, kind: &str, address: &ContentAddress, reason: String) {
        if !self.keeps(address) {
            self.kept.push(KeptItem {
                kind: kind.to_owned(),
                address: address.to_string(),
                reason,
            });
        }
    }
}

/// Erases every grain that documents brought of the agent, with those that took its place.
///
/// # Errors
/// Those of [`Session::erase`].
fn erase_grains(
    store: &AgentStore<'_>,
    reason: &str,
    keep_manifests: Option<&str>,
    report: &mut ErasureReport,
) -> Result<()> {
    let session = store.session();
    let mut grains = store.grains()?;
    // Once a consent is erased, what rests on it is hidden.
    grains.sort_by_key(|(kind, _)| kind == CONSENT_KIND.name);
    let mut erased = Vec::new();
    for (kind, stored) in grains {
        let kept_for = keep_manifests.filter(|_| kind == MANIFEST_KIND.name);
        for address in versions(session, &stored)? {
            match kept_for {
                Some(why) => report.keep(&kind, &address, why.to_owned()),
                None => report.erase(session, &kind, &address, reason)?,
            }
        }
        if !report.keeps(&stored) {
            erased.push(stored);
        }
    }
    store.forget_grains(&erased)
}

/// Returns `true` for the refusal of a hold, or of a rule on retention.
fn is_retention(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidationDenied | ErrorKind::Policy)
}

/// The versions of a grain, the newest first, whether a consent hides them or not.
fn versions(session: &Session, head: &ContentAddress) -> Result<Vec<ContentAddress>> {
    match session.versions_to_erase(head) {
        Ok(versions) => Ok(versions),
        // Erased already, or with another.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Erased) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}
