//! Grains as the long-term memory of a container, and its encryption.

use std::fs::File;
use std::io::{Cursor, Read, Seek};

use data_encoding::HEXLOWER;
use grainstore::cal::{Predicate, Query, TypeSet};
use grainstore::format::Value as GrainValue;
use grainstore::{Grain, PageOptions};
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
use crate::saga::map::PROFILE;
use crate::saga::native;

/// Most bytes of a memory that is encrypted, which is done at once.
const MAX_ENCRYPTED_BYTES: u64 = 64 << 20;

/// Grains that are looked at together.
const PAGE: usize = 1000;

/// The file of the long-term memory.
#[derive(Default)]
pub(super) struct LongTerm {
    /// The grains, as a `.mg` file; nothing if there are none, or the redaction kept it.
    file: Option<File>,
    /// The same as boxes, if it is encrypted.
    encrypted: Option<Box<dyn Read>>,
}

/// How a document has its long-term memory, and so its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryPlace {
    /// In boxes, or within a layer that is.
    Boxed,
    /// In plain, with a reference to a file.
    Plain,
    /// Without a reference to a file, or not at all.
    Absent,
}

/// How a document has its long-term memory.
pub(super) fn place_of(document: &Document) -> MemoryPlace {
    let Some(memory) = document.layer(Layer::Memory) else { return MemoryPlace::Absent };
    let long_term = memory.get("longTerm");
    if is_encrypted(memory) || long_term.is_some_and(is_encrypted) {
        return MemoryPlace::Boxed;
    }
    match file_of(document) {
        Some(_) => MemoryPlace::Plain,
        None => MemoryPlace::Absent,
    }
}

/// The file of the container that a long-term memory in plain refers to.
pub(super) fn file_of(document: &Document) -> Option<&str> {
    let reference = at_path(document.layer(Layer::Memory)?, "longTerm.storageRef")?;
    let text = |name: &str| reference.get(name).and_then(Value::as_str);
    text("ref").filter(|_| text("type") == Some("inline"))
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
        if let Some(memory) = export.document.layer(Layer::Memory) {
            native::check_plain(memory, Layer::Memory.name())?;
        }
        let query = &within(query.clone(), export, options)?;
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
            (Some(boxes), _) => Ok(Some(boxes)),
            (None, Some(mut file)) => {
                file.rewind()?;
                Ok(Some(Box::new(file)))
            }
            (None, None) => Ok(None),
        }
    }
}

/// The conditions on the grains of a long-term memory, held to what may go: items of layers go with their layers alone,
/// and what a redaction shows as items is not beside them as it was.
///
/// # Errors
/// Those of [`grainstore::Session::query`].
fn within(query: Query, export: &Export<'_>, options: &ExportOptions<'_>) -> Result<Query> {
    let is_whole = !options.crosses_organizations
        && options.layers.is_none()
        && options.redact.is_none()
        && options.consent.is_none()
        && export.report.narrowed.is_empty();
    let query = match is_whole && !has_others(export, &query)? {
        true => query,
        false => query.when(Predicate::tags_exclude(vec![PROFILE.tag()])),
    };
    if options.redact.is_none() || !options.native_items {
        return Ok(query);
    }
    let types = query.types();
    let rest = types.iter().filter(|of| !native::TYPES.contains(of)).map(TypeSet::of);
    Ok(query.of_types(rest.fold(TypeSet::NONE, TypeSet::or)))
}

/// Returns `true` if items of another agent are among the grains that match.
fn has_others(export: &Export<'_>, query: &Query) -> Result<bool> {
    let tagged = query.clone().when(Predicate::tags_include(vec![PROFILE.tag()]));
    let own = export.store.wallet().to_string();
    let mut cursor = None;
    loop {
        let page =
            export.store.session().query(&tagged, &PageOptions::first(PAGE).after(cursor))?;
        let is_other = |grain: &Grain| {
            let context = grain.fields().get("context").and_then(GrainValue::as_map);
            let agent = context.and_then(|it| it.get(&PROFILE.key("agent_id"))?.as_str());
            agent != Some(&own)
        };
        if page.results.iter().any(|row| is_other(&row.grain)) {
            return Ok(true);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(false);
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

/// How boxes begin in their canonical form.
const BOXES: &[u8] = br#"{"encrypted":true,"recipients":[{"#;

/// The boxes of a file, as JSON; what is boxes already stays as it is.
///
/// # Errors
/// `ERR_TOO_LARGE`, `ERR_KEY`, `ERR_IO`.
pub(super) fn boxes_of<'f>(
    mut file: impl Read + 'f,
    options: &ExportOptions<'_>,
) -> Result<Box<dyn Read + 'f>> {
    let mut plain = zeroize::Zeroizing::new(Vec::new());
    let read = file.by_ref().take(MAX_ENCRYPTED_BYTES.saturating_add(1)).read_to_end(&mut plain)?;
    if u64::try_from(read).is_ok_and(|read| read > MAX_ENCRYPTED_BYTES) {
        // So large a file is not looked at as a whole; boxes grow by a third, and with each recipient.
        if plain.starts_with(BOXES) {
            return Ok(Box::new(Cursor::new(plain.to_vec()).chain(file)));
        }
        let message = format!("a memory that is encrypted has {MAX_ENCRYPTED_BYTES} bytes at most");
        return Err(checks::too_large(&message));
    }
    let is_boxes = plain.starts_with(b"{") && json::parse(&plain).is_ok_and(|it| is_encrypted(&it));
    if is_boxes {
        return Ok(Box::new(Cursor::new(plain.to_vec())));
    }
    let boxes: Value = encrypted_bytes(&plain, &options.recipients)?;
    Ok(Box::new(Cursor::new(json::canonical(&boxes)?.into_bytes())))
}
