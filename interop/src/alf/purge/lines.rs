//! Files of records without some of them; the other lines are the same bytes.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};

use sha2::{Digest, Sha256};

use crate::alf::agent::has_embeddings;
use crate::alf::bundle::MAX_LINE_MEMORY;
use crate::alf::names::CHANGE_OF;
use crate::alf::record::key_of;
use crate::alf::schema::is_uuid;
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::scratch;

/// The length of a UUID in text.
const UUID_BYTES: usize = 36;

/// A file of records without some of them.
pub(super) struct Left {
    pub(super) file: File,
    pub(super) sha256: [u8; 32],
    pub(super) size: u64,
    /// The ids of the records that are left.
    pub(super) ids: Vec<u128>,
    pub(super) lines: u64,
    pub(super) removed: u64,
    /// True if a record that is left has embeddings.
    pub(super) has_embeddings: bool,
}

/// A line of a file of records.
pub(super) struct RecordLine {
    bytes: Vec<u8>,
    /// `None` for one that cannot be read.
    pub(super) value: Option<Value>,
}

impl RecordLine {
    /// The id of its record, in lower case.
    pub(super) fn id(&self) -> Option<String> {
        self.text("id")
    }

    /// The record that it is a change of.
    pub(super) fn change_of(&self) -> Option<String> {
        self.text(CHANGE_OF)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value.as_ref()?.get(name)?.as_str().map(str::to_ascii_lowercase)
    }

    /// Returns `true` if it is to go. One that cannot be read goes if it names a record that does.
    fn goes(&self, goes: impl Fn(&str) -> bool) -> bool {
        if self.value.is_some() {
            return [self.id(), self.change_of()].iter().flatten().any(|id| goes(id));
        }
        let windows = self.bytes.windows(UUID_BYTES);
        let ids = windows.filter_map(|window| std::str::from_utf8(window).ok());
        let mut ids = ids.filter(|text| is_uuid(text));
        ids.any(|id| goes(&id.to_ascii_lowercase()))
    }
}

/// Calls `each` with the lines of a file of records, as they are.
///
/// # Errors
/// `ERR_LIMIT` for a line that is too long; those of the source and of `each`.
pub(super) fn each_line(
    source: impl Read,
    mut each: impl FnMut(RecordLine) -> Result<()>,
) -> Result<()> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    loop {
        let mut bytes = Vec::new();
        let most = json::MAX_LINE_BYTES as u64 + 2;
        if (&mut source).take(most).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
        if bytes.len() as u64 == most && bytes.last() != Some(&b'\n') {
            return Err(Error::limit(format!("a line has {} bytes at most", json::MAX_LINE_BYTES)));
        }
        let value = json::parse_within(bytes.trim_ascii(), MAX_LINE_MEMORY).ok();
        each(RecordLine { bytes, value })?;
    }
}

/// Copies a file of records without those that are to go, with changes of them. The other lines are the same bytes.
///
/// # Errors
/// Those of [`each_line`]; `ERR_IO`.
pub(super) fn without_lines(source: impl Read, goes: impl Fn(&str) -> bool) -> Result<Left> {
    without(source, goes, |_| ())
}

/// The same, and calls `gone` with the records that go.
///
/// # Errors
/// As [`without_lines`].
pub(super) fn without(
    source: impl Read,
    goes: impl Fn(&str) -> bool,
    mut gone: impl FnMut(&Value),
) -> Result<Left> {
    let mut file = BufWriter::with_capacity(1 << 16, scratch::file()?);
    let (mut hasher, mut size) = (Sha256::new(), 0_u64);
    let (mut ids, mut lines, mut removed) = (Vec::new(), 0_u64, 0_u64);
    let mut embeds = false;
    each_line(source, |line| {
        if line.goes(&goes) {
            removed += 1;
            line.value.iter().for_each(&mut gone);
            return Ok(());
        }
        if let Some(value) = &line.value {
            ids.extend(key_of(value).map(|(number, _)| number));
            embeds |= has_embeddings(value);
        }
        lines += u64::from(!line.bytes.trim_ascii().is_empty());
        hasher.update(&line.bytes);
        size = size.saturating_add(line.bytes.len() as u64);
        file.write_all(&line.bytes).map_err(scratch::failed)
    })?;
    let mut file = file.into_inner().map_err(|error| scratch::failed(error.into_error()))?;
    file.rewind().map_err(scratch::failed)?;
    let sha256 = hasher.finalize().into();
    Ok(Left { file, sha256, size, ids, lines, removed, has_embeddings: embeds })
}
