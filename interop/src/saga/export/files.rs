//! The files of a container that is exported: each goes along only with what it belongs to.

use std::io::{Cursor, Read};

use serde_json::Value;

use super::memory::{LongTerm, MemoryPlace, boxes_of, place_of};
use super::{Export, ExportOptions};
use crate::error::Result;
use crate::json;
use crate::kept::Files;
use crate::saga::container::{ARTIFACTS, ContainerFile, EPISODIC, LONG_TERM, MEMORY};
use crate::saga::document::{Document, at_path};
use crate::saga::encrypt::is_encrypted;
use crate::saga::kinds::{ExportType, Layer};

/// The files that go along.
///
/// # Errors
/// Those of the store, and of encryption.
pub(super) fn of<'f>(
    export: &Export<'_>,
    kept: &'f Files<'_>,
    memory: LongTerm,
    options: &ExportOptions<'_>,
) -> Result<Vec<ContainerFile<'f>>> {
    let document = &export.document;
    let mut files = Vec::new();
    let has_own = match memory.source()? {
        Some(source) => {
            files.push(ContainerFile::new(LONG_TERM, source));
            true
        }
        None => false,
    };
    let lines = event_lines(document)?;
    let has_lines = !lines.is_empty();
    if has_lines {
        files.push(ContainerFile::new(EPISODIC, Cursor::new(lines)));
    }
    for (name, entry) in kept.list() {
        let is_written = (name == LONG_TERM && has_own) || (name == EPISODIC && has_lines);
        if is_written || !goes_along(export, name, options) {
            continue;
        }
        let reader = kept.reader(entry)?;
        // The files of a memory that is encrypted are encrypted with it.
        let is_boxed = (is_of_memory(export, name) && place_of(document) == MemoryPlace::Boxed)
            || (name == EPISODIC && has_boxed_events(document));
        let source: Box<dyn Read> = match is_boxed {
            true => boxes_of(reader, options)?,
            false => Box::new(reader),
        };
        files.push(ContainerFile::new(name.as_str(), source));
    }
    Ok(files)
}

/// Returns `true` if the events of the document are in boxes.
fn has_boxed_events(document: &Document) -> bool {
    let memory = document.layer(Layer::Memory);
    let events = memory.and_then(|memory| memory.get("episodic"));
    memory.is_some_and(is_encrypted) || events.is_some_and(is_encrypted)
}

/// Returns `true` for a file of the long-term memory: by its place, or since the memory refers to it.
fn is_of_memory(export: &Export<'_>, name: &str) -> bool {
    let is_there = name.starts_with(MEMORY) && name != EPISODIC;
    is_there || export.memory_file.as_deref() == Some(name)
}

/// Returns `true` for a file that belongs to something in the document.
fn goes_along(export: &Export<'_>, name: &str, options: &ExportOptions<'_>) -> bool {
    let document = &export.document;
    let encrypts = |layer: &str| options.encrypt.iter().any(|path| path.starts_with(layer));
    let is_free = !options.crosses_organizations
        && options.redact.is_none()
        && options.layers.is_none()
        && export.report.narrowed.is_empty()
        && !matches!(export.export_type, ExportType::Identity | ExportType::Profile);
    match name {
        name if is_of_memory(export, name) => {
            match (export.redacted_memory, export.stored_memory) {
                // A redaction took the reference, and the file with it.
                (MemoryPlace::Absent, stored) => is_free && stored == MemoryPlace::Absent,
                (MemoryPlace::Plain, _) => is_free || export.memory_file.as_deref() == Some(name),
                (MemoryPlace::Boxed, _) => is_free || name == LONG_TERM,
            }
        }
        // What is encrypted in the document is in no file in plain.
        name if name.starts_with(ARTIFACTS) => {
            !encrypts("taskHistory") && (artifact_refers(document, name) || is_free)
        }
        EPISODIC => is_free && !encrypts("memory"),
        // Nobody knows what else they hold.
        _ => is_free,
    }
}

fn artifact_refers(document: &Document, name: &str) -> bool {
    let layers = document.get("layers");
    let artifacts = layers.and_then(|layers| at_path(layers, "taskHistory.artifacts"));
    let mut artifacts = artifacts.and_then(Value::as_array).into_iter().flatten();
    artifacts.any(|artifact| {
        let reference = artifact.get("storageRef").and_then(|it| it.get("ref"));
        reference.and_then(Value::as_str) == Some(name)
    })
}

/// The events of the document, one a line. None if they are encrypted: what is not in the document is in no file.
fn event_lines(document: &Document) -> Result<Vec<u8>> {
    let layers = document.get("layers");
    let events = layers.and_then(|layers| at_path(layers, "memory.episodic.events"));
    let mut lines = Vec::new();
    for event in events.and_then(Value::as_array).into_iter().flatten() {
        lines.extend_from_slice(json::canonical(event)?.as_bytes());
        lines.push(b'\n');
    }
    Ok(lines)
}
