//! The files of a container: checked against what the document says of them, and stored.

use std::fs::File;
use std::io;

use grainstore::format::container::{self, SeekSource};
use grainstore::format::{DecodeOptions, Envelope, OfflineResolver, SignatureVerdict};
use grainstore::{ErrorKind, Session};
use serde_json::Value;

use crate::archive::unread;
use crate::error::{Error, Result};
use crate::json;
use crate::kept::{Documents, Files, clamped};
use crate::saga::container::{Container, EPISODIC, LONG_TERM};
use crate::saga::document::{Document, at_path};
use crate::saga::encrypt::is_encrypted;
use crate::saga::map::PROFILE;
use crate::saga::native::{Candidates, Links};
use crate::saga::wallet::Wallet;
use crate::scratch;
use crate::vouch::Consents;

/// Bytes of a line of the events of a container, and memory of its value, at most.
const MAX_EVENT_BYTES: usize = 4 << 20;
const MAX_EVENT_MEMORY: u64 = 64 << 20;

/// The format of long-term memories that a Grainstore writes.
pub(in crate::saga) const OWN_FORMAT: &str = "oms-mg-1.3";
/// The list of files, and what ends its namespace.
pub(in crate::saga) const FILES: &str = "files";

/// The files of an agent.
///
/// # Errors
/// Those of [`Files::open`].
pub(in crate::saga) fn open<'s>(session: &'s Session, wallet: &Wallet) -> Result<Files<'s>> {
    let documents = Documents::new(session, PROFILE, &wallet.to_string());
    Files::open(documents, FILES, format!("{}:{FILES}", wallet.namespace()))
}

/// Checks the files that the document names: they are what it says. Events of the episodic memory are JSON, one a line.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_CORRUPT`, with the name of the file.
pub(super) fn check(container: &Container) -> Result<()> {
    let layers = container.document().get("layers");
    let long_term = layers.and_then(|layers| at_path(layers, "memory.longTerm.storageRef"));
    let artifacts = layers.and_then(|layers| at_path(layers, "taskHistory.artifacts"));
    let artifacts = artifacts.and_then(Value::as_array).into_iter().flatten();
    let references = artifacts.filter_map(|artifact| artifact.get("storageRef")).chain(long_term);
    for reference in references {
        let text = |name: &str| reference.get(name).and_then(Value::as_str);
        let (Some("inline"), Some(name), Some(said)) =
            (text("type"), text("ref"), text("checksum"))
        else {
            continue;
        };
        if container.checksum(name).is_some_and(|is| !is.eq_ignore_ascii_case(said)) {
            let message = "it is not what the document says: its storageRef has another checksum";
            return Err(Error::integrity(message).in_entry(name));
        }
    }
    if let Some(events) = container.reader(EPISODIC)? {
        for line in json::Lines::limited(events, MAX_EVENT_BYTES, MAX_EVENT_MEMORY) {
            line.and_then(|line| line.value).map_err(|error| error.in_entry(EPISODIC))?;
        }
    }
    Ok(())
}

/// The grains of a long-term memory.
pub(super) struct Memory {
    pub(super) file: File,
    pub(super) links: Links,
    /// Whether it takes back a consent that is here, without a signature of who consented.
    pub(super) withdraws: bool,
}

/// The grains of the long-term memory, in a file without a name, checked; `None` if it is not one of a Grainstore, or
/// encrypted.
///
/// # Errors
/// The codes of OMS section 19 for a damaged one; `ERR_SIGNATURE` for one that renews a consent which is here, and is not
/// signed by who consents.
pub(super) fn grains_of(session: &Session, container: &Container) -> Result<Option<Memory>> {
    let long_term =
        container.document().get("layers").and_then(|it| at_path(it, "memory.longTerm"));
    let Some(long_term) = long_term.filter(|it| !is_encrypted(it)) else { return Ok(None) };
    let is_own = long_term.get("format").and_then(Value::as_str) == Some(OWN_FORMAT)
        && long_term.get("encrypted") != Some(&Value::Bool(true));
    let Some(mut source) = container.reader(LONG_TERM)?.filter(|_| is_own) else {
        return Ok(None);
    };
    let at = |error: Error| error.in_entry(LONG_TERM);
    let mut file = scratch::file()?;
    io::copy(&mut source, &mut file).map_err(|error| at(unread(error)))?;
    let source = SeekSource::new(file.try_clone().map_err(scratch::failed)?);
    let (links, consents) = check_grains(session, source, container.document()).map_err(at)?;
    let withdraws = consents.check(session).map_err(at)?;
    Ok(Some(Memory { file, links, withdraws }))
}

/// Checks each grain of a `.mg` file, and the signatures around them, as far as their keys are in them. Returns which
/// items of the document are grains of it, and its consents.
///
/// # Errors
/// The codes of OMS section 19; `ERR_SIGNATURE`.
fn check_grains(
    session: &Session,
    source: SeekSource<File>,
    document: &Document,
) -> Result<(Links, Consents)> {
    let grains = container::Container::open(source, &DecodeOptions::default())?;
    grains.verify()?;
    let (candidates, mut links) = (Candidates::of(document)?, Links::new());
    let mut consents = Consents::default();
    for entry in grains.entries()? {
        let entry = entry?;
        candidates.link(entry.grain(), &entry.address(), &mut links)?;
        let envelope = entry.envelope().map(<[u8]>::to_vec).map(Envelope::parse).transpose()?;
        consents.add(session, entry.address(), entry.grain(), envelope.as_ref());
        let Some(envelope) = envelope else { continue };
        let verdict = envelope.verify(&OfflineResolver);
        if let SignatureVerdict::Invalid(reason) = verdict {
            let message = format!("the signature of a grain is invalid: {reason}");
            return Err(Error::new(ErrorKind::Signature, message));
        }
    }
    Ok((links, consents))
}

/// Stores the files that do not come back from the document, and returns how many.
///
/// # Errors
/// Those of [`Session::put_side_blob`]; `ERR_INTEGRITY` for a file that changed since it was checked.
pub(super) fn store(
    session: &Session,
    wallet: &Wallet,
    container: &Container,
    has_grains: bool,
) -> Result<u64> {
    let mut files = open(session, wallet)?;
    let mut stored = 0_u64;
    let names: Vec<_> = container.files().map(str::to_owned).collect();
    for name in names {
        let is_rewritten = (name == LONG_TERM && has_grains)
            || (name == EPISODIC && has_events(container.document()));
        if is_rewritten {
            continue;
        }
        let Some(source) = container.reader(&name)? else { continue };
        files.put(&name, source)?;
        let is_same = files.get(&name).is_some_and(|entry| {
            container.checksum(&name) == Some(format!("sha256:{}", entry.sha256).as_str())
        });
        if !is_same {
            return Err(Error::integrity("it changed while it was read").in_entry(&name));
        }
        stored = stored.saturating_add(1);
    }
    if stored > 0 {
        files.commit(clamped(session.now()), &[])?;
    }
    Ok(stored)
}

/// Returns `true` if the document has the events of its episodic memory.
pub(in crate::saga) fn has_events(document: &Document) -> bool {
    let layers = document.get("layers");
    let events = layers.and_then(|layers| at_path(layers, "memory.episodic.events"));
    events.and_then(Value::as_array).is_some_and(|events| !events.is_empty())
}
