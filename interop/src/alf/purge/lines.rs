//! Files of records without some of them; the other lines are the same bytes.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};

use sha2::{Digest, Sha256};

use crate::alf::record::Record;
use crate::error::Result;
use crate::json;

/// A file of records without some of them.
pub(super) struct Left {
    pub(super) file: File,
    pub(super) sha256: [u8; 32],
    pub(super) size: u64,
    /// The ids of the records that are left.
    pub(super) ids: Vec<u128>,
    pub(super) lines: u64,
    pub(super) removed: u64,
    /// What was removed.
    pub(super) gone: Vec<Record>,
}

/// Copies a file of records without those that are to go. The other lines are the same bytes.
pub(super) fn without_lines(source: impl Read, mut goes: impl FnMut(&str) -> bool) -> Result<Left> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let mut file = BufWriter::with_capacity(1 << 16, tempfile::tempfile()?);
    let (mut hasher, mut size) = (Sha256::new(), 0_u64);
    let (mut ids, mut lines, mut gone) = (Vec::new(), 0_u64, Vec::new());
    loop {
        let mut line = Vec::new();
        let most = json::MAX_LINE_BYTES as u64 + 2;
        if (&mut source).take(most).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let record = json::parse(line.trim_ascii()).ok().and_then(Record::of);
        if let Some(record) = &record {
            let is_change = record.change_of.as_deref().is_some_and(&mut goes);
            if goes(&record.id) || is_change {
                gone.extend(Some(record.clone()));
                continue;
            }
            ids.push(record.number);
        }
        lines += u64::from(!line.trim_ascii().is_empty());
        hasher.update(&line);
        size = size.saturating_add(line.len() as u64);
        file.write_all(&line)?;
    }
    let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.rewind()?;
    let removed = gone.len() as u64;
    let sha256 = hasher.finalize().into();
    Ok(Left { file, sha256, size, ids, lines, removed, gone })
}
