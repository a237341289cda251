//! Entries of a new archive: where their bytes are, with their hash, before they are written.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::archive::{Archive, ArchiveWriter, Entry, NewFile, WholeFile};
use crate::error::Result;
use crate::kept::{FileReader, Files};
use crate::monitor::Monitor;
use crate::scratch;

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
    /// A part of such a file.
    Spooled(Part),
    Kept(Option<FileReader<'s>>),
    /// An entry of another archive.
    Archived(&'s Archive, Entry),
}

/// A part of a file without a name.
#[derive(Debug, Clone)]
pub(in super::super) struct Part {
    file: Arc<File>,
    at: u64,
    size: u64,
}

impl Part {
    /// Reads it from its start.
    pub(super) fn reader(&self) -> Result<impl Read> {
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.at))?;
        Ok(BufReader::with_capacity(1 << 16, file).take(self.size))
    }
}

/// A file without a name that is written part by part: however many entries there are, one file is open. What is written
/// is read once it is flushed.
#[derive(Debug)]
pub(super) struct Spool {
    file: Arc<File>,
    writer: BufWriter<File>,
    begin: u64,
    end: u64,
}

impl Spool {
    pub(super) fn new() -> Result<Self> {
        let file = scratch::file()?;
        let writer = BufWriter::with_capacity(1 << 16, file.try_clone().map_err(scratch::failed)?);
        Ok(Self { file: Arc::new(file), writer, begin: 0, end: 0 })
    }

    /// Ends the part that was written, and begins the next.
    pub(super) fn part(&mut self) -> Part {
        let part =
            Part { file: Arc::clone(&self.file), at: self.begin, size: self.end - self.begin };
        self.begin = self.end;
        part
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.end = self.end.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
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

/// Writes entries in this order, and returns them, with the file, which has no name yet.
pub(in super::super) fn write_entries<'s>(
    mut writer: ArchiveWriter<NewFile>,
    mut entries: Vec<NewEntry<'s>>,
    monitor: &Monitor<'_>,
) -> Result<(Vec<NewEntry<'s>>, WholeFile)> {
    let count = entries.len() as u64;
    for (done, entry) in entries.iter_mut().enumerate() {
        monitor.step(done as u64, count)?;
        match &mut entry.content {
            Content::Text(text) => writer.add(&entry.name, text.as_bytes())?,
            Content::Temporary(file) => writer.add(&entry.name, from_start(file)?)?,
            Content::Spooled(part) => writer.add(&entry.name, part.reader()?)?,
            Content::Archived(archive, from) => writer.add(&entry.name, archive.reader(from)?)?,
            Content::Kept(reader) => match reader.take() {
                Some(reader) => writer.add(&entry.name, reader)?,
                None => 0,
            },
        };
    }
    Ok((entries, writer.whole()?))
}

/// Reads a file from its start.
fn from_start(file: &File) -> Result<impl Read> {
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}
