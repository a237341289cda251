//! Reading: the list of entries is checked as a whole before one of them is read, and each is checked while it is read.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::DeflateDecoder;
use grainstore::{EpochMs, ErrorKind};
use rawzip::time::{UtcDateTime, ZipDateTimeKind};
use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
    ZipFileHeaderRecord, ZipReader, ZipVerifier,
};

use super::name;
use super::writer::FIRST_DAY;
use crate::error::{Error, Result};

/// How many times its size an archive inflates to at most, unless its reader says otherwise. What is written keeps to it.
pub(super) const RATIO: u64 = 200;
/// Inflated bytes up to which an entry may be packed as densely as it likes.
const SMALL_ENTRY_BYTES: u64 = 1 << 20;

/// What is read of an archive at most; `ERR_LIMIT` beyond.
///
/// ```
/// use grainstore_interop::archive::Limits;
///
/// let larger = Limits { inflated_bytes: 8 << 30, ..Limits::default() };
/// assert_eq!(larger.ratio, 200);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all entries, inflated. 2 GiB by default.
    pub inflated_bytes: u64,
    /// Inflated bytes for each packed byte, of all entries and of each beyond 1 MiB. 200 by default.
    pub ratio: u64,
    /// Entries. 100,000 by default.
    pub entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inflated_bytes: 2 << 30, ratio: RATIO, entries: 100_000 }
    }
}

/// An open ZIP archive whose list of entries is safe: relative names, none twice, no links, nothing encrypted, no data
/// that belongs to two entries, within [`Limits`].
///
/// ```
/// use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
///
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("a.zip");
/// let mut writer = ArchiveWriter::create(&path)?;
/// writer.add("notes/a.txt", &b"tea"[..])?;
/// writer.finish()?;
/// let archive = Archive::open(&path, Limits::default())?;
/// assert_eq!(archive.entries()[0].name(), "notes/a.txt");
/// assert_eq!(archive.read("notes/a.txt", 100)?, Some(b"tea".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Archive {
    zip: ZipArchive<FileReader>,
    entries: Vec<Entry>,
    /// Places in `entries` by name.
    by_name: HashMap<String, usize>,
}

/// An entry of an [`Archive`].
#[derive(Debug, Clone)]
pub struct Entry {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    modified: Option<EpochMs>,
}

impl Entry {
    /// Its name: a relative path with `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length, inflated, in bytes. A read that finds another one fails.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.place.uncompressed_size_hint()
    }

    /// When it was changed last, as far as the archive says: a time without a zone is taken as UTC, and the first day
    /// that ZIP knows as none.
    #[must_use]
    pub fn modified(&self) -> Option<EpochMs> {
        self.modified
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens an archive, and checks its list of entries. Folders are no entries.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_IO`; `ERR_CORRUPT` if it is no ZIP archive, or unsafe; `ERR_LIMIT`. All of them name the
    /// entry.
    pub fn open(path: impl AsRef<Path>, limits: Limits) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| Error::from(error).at_path(path))?;
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            let folder = Error::new(ErrorKind::Io, "it is a folder, and an archive is a file");
            return Err(folder.with_hint("name the file").at_path(path));
        }
        Self::of(file, limits).map_err(|error| error.at_path(path))
    }

    /// Opens an archive in a file that is open, like [`Archive::open`].
    ///
    /// # Errors
    /// Those of [`Archive::open`].
    pub fn of(file: File, limits: Limits) -> Result<Self> {
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let zip = ZipArchive::from_file(file, &mut buffer).map_err(unreadable)?;
        let entries = entries(&zip, &mut buffer, limits)?;
        let mut by_name = HashMap::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            if by_name.insert(entry.name.clone(), place).is_some() {
                let error = Error::corrupt("two entries have this name");
                return Err(error.in_entry(&entry.name));
            }
        }
        Ok(Self { zip, entries, by_name })
    }

    /// Its entries, in the order of its directory.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry with a name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).and_then(|&place| self.entries.get(place))
    }

    /// Reads an entry bit by bit. The last read fails with [`io::ErrorKind::InvalidData`] if its bytes are not those that
    /// the archive has a checksum of.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, with the name of the entry.
    pub fn reader(&self, entry: &Entry) -> Result<EntryReader<'_>> {
        let found = self.zip.get_entry(entry.place).map_err(|error| at(entry, error))?;
        let packed = found.reader();
        let inflated = match entry.method {
            CompressionMethod::STORE => Inflated::Stored(packed),
            _ => Inflated::Deflated(Box::new(DeflateDecoder::new(packed))),
        };
        let left = entry.size_bytes();
        Ok(EntryReader { source: found.verifying_reader(inflated), left })
    }

    /// Reads the whole of an entry of so many bytes at most, `None` if there is no such entry.
    ///
    /// # Errors
    /// `ERR_LIMIT` if it is longer; `ERR_CORRUPT`, `ERR_IO`. All of them name the entry.
    pub fn read(&self, name: &str, most_bytes: u64) -> Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(name) else { return Ok(None) };
        if entry.size_bytes() > most_bytes {
            let message = format!("this entry has {most_bytes} bytes at most");
            return Err(Error::limit(message).in_entry(name));
        }
        let mut bytes = Vec::new();
        match self.reader(entry)?.read_to_end(&mut bytes) {
            Ok(_) => Ok(Some(bytes)),
            Err(error) => Err(unread(error).in_entry(name)),
        }
    }
}

/// Reads the bytes of an [`Entry`], checked against length and checksum.
pub struct EntryReader<'a> {
    source: ZipVerifier<Inflated<'a>>,
    left: u64,
}

impl fmt::Debug for EntryReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryReader").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Read for EntryReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        // More than was announced would be beyond the limits that were checked.
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "it is longer than its archive says")
        })?;
        Ok(read)
    }
}

/// The bytes of an entry before they are checked.
enum Inflated<'a> {
    Stored(ZipReader<&'a FileReader>),
    Deflated(Box<DeflateDecoder<ZipReader<&'a FileReader>>>),
}

impl Read for Inflated<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(bytes) => bytes.read(into),
            Self::Deflated(bytes) => bytes.read(into),
        }
    }
}

/// Checks the directory, and returns its files.
fn entries(zip: &ZipArchive<FileReader>, buffer: &mut [u8], limits: Limits) -> Result<Vec<Entry>> {
    let mut checked = Directory { limits, packed: 0, inflated: 0, count: 0 };
    let mut found = Vec::new();
    let mut records = zip.entries(buffer);
    while let Some(record) = records.next_entry().map_err(unreadable)? {
        found.extend(checked.check(&record)?);
    }
    if checked.count != zip.entries_hint() {
        return Err(Error::corrupt(
            "its directory has another number of entries than its end says",
        ));
    }
    check_places(zip, &found)?;
    Ok(found)
}

/// What the entries come to that were checked so far.
struct Directory {
    limits: Limits,
    packed: u64,
    inflated: u64,
    count: u64,
}

impl Directory {
    /// Checks an entry, `None` if it is a folder.
    fn check(&mut self, record: &ZipFileHeaderRecord<'_>) -> Result<Option<Entry>> {
        self.count = self.count.saturating_add(1);
        if self.count > self.limits.entries {
            return Err(Error::limit(format!(
                "an archive has {} entries at most",
                self.limits.entries
            )));
        }
        let name = name::checked(record.file_path().as_bytes())?;
        self.check_form(record).map_err(|error| error.in_entry(&name))?;
        if record.is_dir() {
            return Ok(None);
        }
        let (place, method) = (record.wayfinder(), record.compression_method());
        let modified = modified(&record.last_modified());
        Ok(Some(Entry { name, place, method, modified }))
    }

    fn check_form(&mut self, record: &ZipFileHeaderRecord<'_>) -> Result<()> {
        let flags = record.flags();
        if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
            return Err(Error::corrupt("it is encrypted").with_hint("decrypt the archive first"));
        }
        if record.mode().is_symlink() {
            return Err(Error::corrupt("it is a link"));
        }
        if ![CompressionMethod::STORE, CompressionMethod::DEFLATE]
            .contains(&record.compression_method())
        {
            let message = format!("it is packed by {}", record.compression_method());
            return Err(Error::corrupt(message).with_hint("pack it by deflate"));
        }
        let (packed, inflated) = (record.compressed_size_hint(), record.uncompressed_size_hint());
        self.packed = self.packed.saturating_add(packed);
        self.inflated = self.inflated.saturating_add(inflated);
        let Limits { inflated_bytes, ratio, .. } = self.limits;
        if self.inflated > inflated_bytes {
            return Err(Error::limit(format!(
                "an archive has {inflated_bytes} bytes inflated at most"
            )));
        }
        let is_dense = |packed: u64, inflated: u64| {
            inflated > SMALL_ENTRY_BYTES && inflated > packed.saturating_mul(ratio)
        };
        if is_dense(packed, inflated) || is_dense(self.packed, self.inflated) {
            return Err(Error::limit(format!("it inflates to more than {ratio} times its size")));
        }
        Ok(())
    }
}

/// Checks that each entry names itself as the directory does, and that no two share bytes.
fn check_places(zip: &ZipArchive<FileReader>, entries: &[Entry]) -> Result<()> {
    let mut buffer = vec![0; 1 << 17];
    let mut ranges = Vec::with_capacity(entries.len());
    for entry in entries {
        let found = zip.get_entry(entry.place).map_err(|error| at(entry, error))?;
        let header = found.local_header(&mut buffer).map_err(|error| at(entry, error))?;
        if header.file_path().as_bytes() != entry.name.as_bytes() {
            return Err(
                Error::corrupt("it has another name in its own header").in_entry(&entry.name)
            );
        }
        ranges.push((found.compressed_data_range(), entry));
    }
    ranges.sort_by_key(|(range, _)| *range);
    for pair in ranges.windows(2) {
        if let [((_, end), _), ((start, _), entry)] = pair
            && end > start
        {
            return Err(
                Error::corrupt("it shares its bytes with another entry").in_entry(&entry.name)
            );
        }
    }
    Ok(())
}

fn modified(time: &ZipDateTimeKind) -> Option<EpochMs> {
    let time = match time {
        ZipDateTimeKind::Utc(time) => *time,
        ZipDateTimeKind::Local(time) => UtcDateTime::from_components(
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.nanosecond(),
        )?,
    };
    let seconds = time.to_unix();
    (seconds > FIRST_DAY).then(|| EpochMs::new(seconds.saturating_mul(1000)))
}

fn unreadable(error: rawzip::Error) -> Error {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => error.into(),
        kind => Error::corrupt(format!("no ZIP archive that can be read: {kind}")),
    }
}

fn at(entry: &Entry, error: rawzip::Error) -> Error {
    unreadable(error).in_entry(&entry.name)
}

/// The error of a read of an [`EntryReader`].
pub(crate) fn unread(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::corrupt(format!("its bytes are not what its archive says: {error}"))
        }
        _ => error.into(),
    }
}
