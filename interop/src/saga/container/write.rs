//! Writing: entries in one order, so that the same content gives the same bytes, but for the signature.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use grainstore::EpochMs;
use serde::Serialize;

use super::meta::{ContentHash, HashingReader, Meta};
use super::{ARTIFACTS, DOCUMENT, EPISODIC, LONG_TERM, META, SIGNATURE};
use crate::archive::{ArchiveWriter, NewFile, WholeFile};
use crate::error::{Error, Result};
use crate::saga::document::Document;
use crate::saga::sign::{Signer, bad_key};
use crate::saga::time;

/// A file of a [`Container`](super::Container): a name such as `artifacts/notes.md`, and where its bytes come from.
pub struct ContainerFile<'f> {
    name: String,
    source: Box<dyn Read + 'f>,
}

impl<'f> ContainerFile<'f> {
    /// A file.
    #[must_use]
    pub fn new(name: impl Into<String>, source: impl Read + 'f) -> Self {
        Self { name: name.into(), source: Box::new(source) }
    }
}

impl fmt::Debug for ContainerFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What [`write_container`] wrote of a [`Container`](super::Container).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContainerReport {
    /// The entries that have checksums, with them.
    pub checksums: BTreeMap<String, String>,
    /// The text that is signed: `sha256:` and the hash of all entries.
    pub content_hash: String,
    /// The length of all entries in bytes, unpacked.
    pub bytes: u64,
}

/// Writes a signed document and its files into a container, signed by the same wallet. An example is at
/// [`Container`](super::Container).
///
/// The container takes its name once it is whole.
///
/// # Errors
/// `ERR_KEY` for the key of another wallet; `ERR_SCHEMA` for two files of one name, or one that is not a file's;
/// `ERR_CORRUPT` for an unsafe name; `ERR_CONFLICT` for a path within a store; `ERR_IO`; the errors of the signer.
pub fn write_container(
    path: impl AsRef<Path>,
    document: &Document,
    files: Vec<ContainerFile<'_>>,
    at: EpochMs,
    signer: &dyn Signer,
) -> Result<ContainerReport> {
    let (report, file) = whole_container(path.as_ref(), document, files, at, signer)?;
    file.place()?;
    Ok(report)
}

/// As [`write_container`]; the container has not taken its name yet.
pub(in crate::saga) fn whole_container(
    path: &Path,
    document: &Document,
    mut files: Vec<ContainerFile<'_>>,
    at: EpochMs,
    signer: &dyn Signer,
) -> Result<(ContainerReport, WholeFile)> {
    if signer.wallet() != &document.wallet()? {
        return Err(bad_key("the key is not that of the document's wallet"));
    }
    files.sort_by(|one, other| order_of(&one.name).cmp(&order_of(&other.name)));
    let text = document.canonical()?;
    let mut writer = Writer::new(ArchiveWriter::create(path)?);
    writer.add(DOCUMENT, text.as_bytes())?;
    for file in files {
        writer.add(&file.name, file.source)?;
    }
    writer.finish(at, signer).map_err(|error| error.at_path(path))
}

/// The place of an entry.
fn order_of(name: &str) -> (u8, &str) {
    let group = match name {
        DOCUMENT => 0,
        LONG_TERM => 1,
        EPISODIC => 2,
        name if name.starts_with(ARTIFACTS) => 3,
        _ => 4,
    };
    (group, name)
}

struct Writer {
    archive: ArchiveWriter<NewFile>,
    content: ContentHash,
    report: ContainerReport,
}

impl Writer {
    fn new(archive: ArchiveWriter<NewFile>) -> Self {
        let report =
            ContainerReport { checksums: BTreeMap::new(), content_hash: String::new(), bytes: 0 };
        Self { archive, content: ContentHash::default(), report }
    }

    fn add(&mut self, name: &str, source: impl Read) -> Result<()> {
        let is_taken = !Meta::lists(name) || self.report.checksums.contains_key(name);
        if is_taken || name.ends_with('/') {
            let message = "a container has no file of this name, or has it already";
            return Err(Error::schema(message).in_entry(name));
        }
        let mut reader = HashingReader::new(source, &mut self.content);
        let bytes = self.archive.add(name, &mut reader)?;
        let checksum = reader.checksum();
        self.report.bytes = self.report.bytes.saturating_add(bytes);
        self.report.checksums.insert(name.to_owned(), checksum);
        Ok(())
    }

    fn finish(mut self, at: EpochMs, signer: &dyn Signer) -> Result<(ContainerReport, WholeFile)> {
        let checksums = self.report.checksums.clone();
        let meta = Meta { created_at: time::written(at), checksums }.written()?;
        let reader = HashingReader::new(meta.as_bytes(), &mut self.content);
        self.archive.add(META, reader)?;
        self.report.content_hash = self.content.text();
        let signature = signer.sign(self.report.content_hash.as_bytes())?;
        self.archive.add(SIGNATURE, signature.as_bytes())?;
        Ok((self.report, self.archive.whole()?))
    }
}
