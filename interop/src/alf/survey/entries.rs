//! The bytes of an archive against the checksums in its manifest.

use std::io::Read;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::Survey;
use crate::alf::bundle::Bundle;
use crate::alf::issue::Place;
use crate::alf::names::{CHECKSUM_SCHEME, DELTA_MANIFEST_ENTRY, MANIFEST_ENTRY};
use crate::archive::{Entry, unread};
use crate::error::{Error, Result};
use crate::json::Value;
use crate::monitor::Monitor;

const BUFFER_BYTES: usize = 64 << 10;

impl Survey {
    /// Reads every entry once: whatever is damaged is found before anything is written.
    pub(super) fn check_entries(&mut self, bundle: &Bundle, monitor: &Monitor<'_>) -> Result<()> {
        let entries = bundle.archive.entries();
        for (done, entry) in entries.iter().enumerate() {
            monitor.step(done as u64, entries.len() as u64)?;
            match hash_of(bundle, entry) {
                Ok(hash) => drop(self.hashes.insert(entry.name().to_owned(), hash)),
                Err(error) => self.refuse(error, &Place::entry(entry.name())),
            }
        }
        for partition in &bundle.partitions {
            let Some(said) = &partition.checksum else { continue };
            let found = self.hashes.get(&partition.file);
            let found = found.map(|(hash, _)| format!("sha256:{}", HEXLOWER.encode(hash)));
            if found.is_some_and(|found| found != *said) {
                let error =
                    Error::integrity("it is not the file that the manifest has a checksum of");
                self.refuse(error, &Place::entry(&partition.file));
            }
        }
        Ok(())
    }

    /// Compares the checksum of the archive, if this crate knows what it is made of.
    pub(super) fn check_checksum(&mut self, bundle: &Bundle) {
        let text = |name: &str| bundle.manifest.get(name).and_then(Value::as_str);
        let at = Place::entry(bundle.manifest_entry);
        let at = at.member("checksum");
        let Some(said) = text("checksum") else { return };
        if text("checksum_scheme") != Some(CHECKSUM_SCHEME) {
            self.warn(&at, "it does not say what it is made of, and is not verified");
            return;
        }
        let entries =
            self.hashes.iter().map(|(name, (hash, length))| (name.as_str(), hash, *length));
        if checksum(entries) != said {
            self.refuse(Error::integrity("the archive is not what its checksum is of"), &at);
        }
    }
}

/// Returns the checksum of an archive with these entries, in order of their names. Manifests do not count.
pub(in super::super) fn checksum<'e>(
    entries: impl IntoIterator<Item = (&'e str, &'e [u8; 32], u64)>,
) -> String {
    let mut hasher = Sha256::new();
    for (name, hash, length) in entries {
        if [MANIFEST_ENTRY, DELTA_MANIFEST_ENTRY].contains(&name) {
            continue;
        }
        hasher.update(name);
        hasher.update([0]);
        hasher.update(length.to_string());
        hasher.update([0]);
        hasher.update(hash);
    }
    format!("sha256:{}", HEXLOWER.encode(&hasher.finalize()))
}

fn hash_of(bundle: &Bundle, entry: &Entry) -> Result<([u8; 32], u64)> {
    let mut reader = bundle.archive.reader(entry)?;
    let (mut hasher, mut length, mut buffer) = (Sha256::new(), 0_u64, vec![0; BUFFER_BYTES]);
    loop {
        let read = reader.read(&mut buffer).map_err(unread)?;
        if read == 0 {
            return Ok((hasher.finalize().into(), length));
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
        length = length.saturating_add(read as u64);
    }
}
