//! Entries of a new archive: where their bytes are, with their hash, before they are written.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::archive::{Archive, ArchiveWriter, Entry, NewFile};
use crate::error::Result;
use crate::kept::{FileReader, Files};
use crate::monitor::Monitor;

/// An entry to write.
#[derive(Debug)]
pub(in super::super) struct NewEntry<'s> {
    pub(in super::super) name: String,
    pub(in super::super) content: Content<'s>,
    pub(in super::super) sha256: [u8; 32],
    pub(in super::super) size: u64,
}

/// Where the bytes of an entry are.
#[derive(Debug)]
pub(in super::super) enum Content<'s> {
    Text(String),
    /// A file without a name.
    Temporary(File),
    Kept(Option<FileReader<'s>>),
    /// An entry of another archive.
    Archived(&'s Archive, Entry),
}

impl<'s> NewEntry<'s> {
    pub(in super::super) fn text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            sha256: Sha256::digest(text).into(),
            size: text.len() as u64,
            content: Content::Text(text.to_owned()),
        }
    }

    /// An entry of a file that is kept under a path.
    pub(in super::super) fn file(
        name: &str,
        files: &Files<'s>,
        path: &str,
    ) -> Result<Option<Self>> {
        let Some(entry) = files.get(path) else { return Ok(None) };
        let mut sha256 = [0; 32];
        let digits = entry.sha256.as_bytes();
        if digits.len() == 64 {
            let _ = HEXLOWER.decode_mut(digits, &mut sha256);
        }
        let (size, name) = (entry.size, name.to_owned());
        let content = Content::Kept(Some(files.reader(entry)?));
        Ok(Some(Self { name, content, sha256, size }))
    }
}

/// Writes entries in this order, and returns them.
pub(in super::super) fn write_entries<'s>(
    mut writer: ArchiveWriter<NewFile>,
    mut entries: Vec<NewEntry<'s>>,
    monitor: &Monitor<'_>,
) -> Result<Vec<NewEntry<'s>>> {
    let count = entries.len() as u64;
    for (done, entry) in entries.iter_mut().enumerate() {
        monitor.step(done as u64, count)?;
        match &mut entry.content {
            Content::Text(text) => writer.add(&entry.name, text.as_bytes())?,
            Content::Temporary(file) => writer.add(&entry.name, from_start(file)?)?,
            Content::Archived(archive, from) => writer.add(&entry.name, archive.reader(from)?)?,
            Content::Kept(reader) => match reader.take() {
                Some(reader) => writer.add(&entry.name, reader)?,
                None => 0,
            },
        };
    }
    writer.finish()?;
    Ok(entries)
}

/// Reads a file from its start.
pub(super) fn from_start(file: &File) -> Result<impl Read> {
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}
