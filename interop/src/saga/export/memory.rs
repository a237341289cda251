//! Grains as the long-term memory of a container, and its encryption.

use std::fs::File;
use std::io::{Cursor, Read, Seek};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Export, ExportOptions, checks};
use crate::error::Result;
use crate::json;
use crate::saga::container::LONG_TERM;
use crate::saga::document::{Document, at_path};
use crate::saga::encrypt::{encrypted_bytes, is_encrypted};
use crate::saga::import::OWN_FORMAT;
use crate::saga::kinds::Layer;

/// Most bytes of a memory that is encrypted, which is done at once.
const MAX_ENCRYPTED_BYTES: u64 = 64 << 20;

/// The file of the long-term memory.
#[derive(Default)]
pub(super) struct LongTerm {
    /// The grains, as a `.mg` file; nothing if there are none, or the redaction kept it.
    file: Option<File>,
    /// The same as boxes, if it is encrypted.
    encrypted: Option<Vec<u8>>,
}

/// How a document has its long-term memory, and so its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryPlace {
    /// In boxes, or within a layer that is.
    Boxed,
    /// In plain, with a reference to the file.
    Plain,
    /// Without a reference to the file, or not at all.
    Absent,
}

/// How a document has its long-term memory.
pub(super) fn place_of(document: &Document) -> MemoryPlace {
    let Some(memory) = document.layer(Layer::Memory) else { return MemoryPlace::Absent };
    let long_term = memory.get("longTerm");
    if is_encrypted(memory) || long_term.is_some_and(is_encrypted) {
        return MemoryPlace::Boxed;
    }
    let reference = long_term.and_then(|part| at_path(part, "storageRef.ref"));
    match reference.and_then(Value::as_str) {
        Some(LONG_TERM) => MemoryPlace::Plain,
        _ => MemoryPlace::Absent,
    }
}

impl LongTerm {
    /// Exports the grains that are asked for, and notes them in the document, which is neither redacted nor encrypted
    /// yet.
    ///
    /// # Errors
    /// Those of [`grainstore::Session::export`].
    pub(super) fn gather(export: &mut Export<'_>, options: &ExportOptions<'_>) -> Result<Self> {
        let Some(query) = &options.grains else { return Ok(Self::default()) };
        if !export.wanted.contains(&Layer::Memory) {
            return Ok(Self::default());
        }
        let how = grainstore::ExportOptions {
            cancel: options.monitor.cancel.clone(),
            ..grainstore::ExportOptions::default()
        };
        let (mut file, report) = export.store.session().export_unnamed(query, &how)?;
        let checksum = checksum_of(&mut file)?;
        let long_term = json!({
            "type": "vector-store", "format": OWN_FORMAT, "dimensions": 0, "vectorCount": 0,
            "storageRef": {"type": "inline", "ref": LONG_TERM, "checksum": checksum},
            "encrypted": false,
        });
        if let Some(layers) = export.document.layers_mut() {
            let memory = layers.entry(Layer::Memory.name()).or_insert_with(|| json!({}));
            if let Some(memory) = memory.as_object_mut() {
                memory.insert("longTerm".to_owned(), long_term);
            }
        }
        export.report.grains = Some(report);
        Ok(Self { file: Some(file), ..Self::default() })
    }

    /// Drops the file if the redaction did, and encrypts it if the layer is.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`, `ERR_KEY`, `ERR_IO`.
    pub(super) fn encrypt(
        &mut self,
        export: &Export<'_>,
        options: &ExportOptions<'_>,
    ) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        if export.redacted_memory == MemoryPlace::Absent {
            return Ok(());
        }
        match place_of(&export.document) {
            MemoryPlace::Boxed => self.encrypted = Some(boxes_of(file, options)?),
            MemoryPlace::Plain => self.file = Some(file),
            MemoryPlace::Absent => {}
        }
        Ok(())
    }

    /// The bytes of the entry, if there are grains.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn source(self) -> Result<Option<Box<dyn Read>>> {
        match (self.encrypted, self.file) {
            (Some(bytes), _) => Ok(Some(Box::new(Cursor::new(bytes)))),
            (None, Some(mut file)) => {
                file.rewind()?;
                Ok(Some(Box::new(file)))
            }
            (None, None) => Ok(None),
        }
    }
}

/// The checksum of a file.
fn checksum_of(file: &mut File) -> Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(format!("sha256:{}", HEXLOWER.encode(&hash.finalize())));
        }
        hash.update(buffer.get(..read).unwrap_or_default());
    }
}

/// The boxes of a file, as JSON.
///
/// # Errors
/// `ERR_TOO_LARGE`, `ERR_KEY`, `ERR_IO`.
pub(super) fn boxes_of(mut file: impl Read, options: &ExportOptions<'_>) -> Result<Vec<u8>> {
    let mut plain = zeroize::Zeroizing::new(Vec::new());
    let read = file.by_ref().take(MAX_ENCRYPTED_BYTES.saturating_add(1)).read_to_end(&mut plain)?;
    if u64::try_from(read).is_ok_and(|read| read > MAX_ENCRYPTED_BYTES) {
        let message = format!("a memory that is encrypted has {MAX_ENCRYPTED_BYTES} bytes at most");
        return Err(checks::too_large(&message));
    }
    let boxes: Value = encrypted_bytes(&plain, &options.recipients)?;
    Ok(json::canonical(&boxes)?.into_bytes())
}
