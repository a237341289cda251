//! Writing: deflated, with one date for all entries, and in place once it is whole.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::name;
use super::new_file::{NewFile, WholeFile};
use super::reader::RATIO;
use crate::error::{Error, Result};

/// 1980-01-01, the first day that ZIP knows, in seconds.
pub(super) const FIRST_DAY: i64 = 315_532_800;
/// Bytes up to which no entry can be packed more densely than is read.
const SMALLEST_DENSE: u64 = 2 << 10;
/// A block of a deflated stream that says nothing, and is not the last one (RFC 1951, 3.2.4).
const EMPTY_BLOCK: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// Writes a ZIP archive: the same entries give the same bytes.
pub struct ArchiveWriter<W> {
    zip: ZipArchiveWriter<W>,
    names: HashSet<String>,
}

impl<W> fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveWriter").finish_non_exhaustive()
    }
}

impl ArchiveWriter<NewFile> {
    /// Begins an archive in a [`NewFile`]; see [`Archive`](super::Archive) for one that is written and read.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self::to(NewFile::create(path)?))
    }

    /// Writes the list of entries, and gives the file its name.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn finish(self) -> Result<()> {
        self.into_inner()?.finish()
    }

    /// Writes the list of entries, and ends the file, which has no name yet.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn whole(self) -> Result<WholeFile> {
        self.into_inner()?.whole()
    }
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive that is written to something.
    pub fn to(writer: W) -> Self {
        Self { zip: ZipArchiveWriter::new(writer), names: HashSet::new() }
    }

    /// Adds an entry, and returns its length in bytes. One that could be packed more densely than a reader takes by default
    /// ([`Limits::ratio`](super::Limits::ratio)) is packed a little less.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for a name that is unsafe, or there already; `ERR_IO`.
    pub fn add(&mut self, name: &str, mut bytes: impl Read) -> Result<u64> {
        let name = name::checked(name.as_bytes())?;
        if !self.names.insert(name.clone()) {
            return Err(Error::corrupt("two entries would have this name").in_entry(&name));
        }
        let begun = self
            .zip
            .new_file(name.as_str())
            .compression_method(CompressionMethod::DEFLATE)
            .last_modified(UtcDateTime::from_unix(FIRST_DAY))
            .start();
        let (mut entry, config) = begun.map_err(|error| unwritten(error, &name))?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        let length = io::copy(&mut bytes, &mut writer)
            .map_err(|error| Error::from(error).in_entry(&name))?;
        let (mut encoder, descriptor) = writer.finish().map_err(|error| unwritten(error, &name))?;
        loosen(&mut encoder).map_err(|error| Error::from(error).in_entry(&name))?;
        encoder.finish().map_err(|error| Error::from(error).in_entry(&name))?;
        entry.finish(descriptor).map_err(|error| unwritten(error, &name))?;
        Ok(length)
    }

    /// Writes the list of entries, and returns what the archive was written to.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn into_inner(self) -> Result<W> {
        self.zip.finish().map_err(|error| unwritten(error, "the list of entries"))
    }
}

/// Adds blocks that say nothing to what is packed, until it is no bomb for its reader.
fn loosen<W: Write>(encoder: &mut DeflateEncoder<W>) -> io::Result<()> {
    if encoder.total_in() <= SMALLEST_DENSE {
        return Ok(());
    }
    let least = encoder.total_in().div_ceil(RATIO);
    // What it holds back is written, up to the end of a byte.
    encoder.flush()?;
    let missing = least.saturating_sub(encoder.total_out());
    for _ in 0..missing.div_ceil(EMPTY_BLOCK.len() as u64) {
        encoder.get_mut().write_all(&EMPTY_BLOCK)?;
    }
    Ok(())
}

fn unwritten(error: rawzip::Error, name: &str) -> Error {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => Error::from(error).in_entry(name),
        kind => Error::corrupt(format!("it cannot be written: {kind}")).in_entry(name),
    }
}
