//! The manifest of a container (OMS 11.7, ruling 37): the state of its grains, as one map by address
//! that is written and read entry by entry.

use std::io::Read;

use super::embedding_summary::EmbeddingSummary;
use super::source::RangeReader;
use super::{ReadAt, io as failed, structure_error};
use crate::address::ContentAddress;
use crate::error::{Error, Result, corrupt};
use crate::state::{GrainState, VerificationStatus};
use crate::time::EpochMs;
use crate::value::Value;
use crate::wire::{Encoding, Token, TokenReader, TokenWriter};

/// The longest entry in bytes. Entries of this store take less than 400 bytes, and up to 26 KiB with
/// vectors of many models; the rest is room for keys of other exporters.
const MAX_ENTRY_BYTES: usize = 32 << 10;
/// Bytes per read.
const BLOCK_BYTES: usize = 64 << 10;

/// The manifest entry of one grain.
///
/// ```
/// # use grainstore_format::container::{Compression, ContainerPlan, ContainerWriter, PlannedEntry};
/// # use grainstore_format::{Encoding, Error, EpochMs, EventBuilder};
/// # let created_at = EpochMs::new(1_768_471_200_000);
/// # let blob = EventBuilder::new(created_at, "alice said hello").build()?.encode(Encoding::Cbor)?;
/// # let mut plan = ContainerPlan::new(Compression::None).with_manifest(1);
/// # plan.add(&PlannedEntry::of(blob.bytes(), created_at)?)?;
/// # let mut writer = ContainerWriter::new(Vec::new(), plan)?;
/// # writer.push(blob.bytes())?;
/// use grainstore_format::DecodeOptions;
/// use grainstore_format::container::{Container, ManifestEntry};
///
/// // `writer` has written one grain, `blob`, and its plan announces a manifest with one entry.
/// let read_often = ManifestEntry { access_count: 12, ..ManifestEntry::default() };
/// let (file, _) = writer.finish::<Error>([Ok((blob.address(), read_often.clone()))])?;
/// let container = Container::open(file, &DecodeOptions::default())?;
/// for entry in container.manifest().into_iter().flatten() {
///     assert_eq!(entry?, (blob.address(), read_often.clone()));
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestEntry {
    /// The index-layer state.
    pub state: GrainState,
    /// The number of reads of the grain. A local field: an importer may ignore it.
    pub access_count: u64,
    /// The time of the last read. A local field as well.
    pub last_accessed_at: Option<EpochMs>,
    /// `true` if the hold declared by the grain's policy was lifted: `x_held` is present and false.
    pub hold_lifted: bool,
    /// The vectors the exporting store has of the grain, ascending.
    pub embedded: Vec<EmbeddingSummary>,
}

impl ManifestEntry {
    /// Returns `true` if every value is the default, so that the grain needs no entry.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the keys and values to write. Defaults are left out.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        let GrainState {
            superseded_by,
            system_valid_to,
            verification_status,
            contradicted,
            needs_review,
            held,
        } = self.state;
        let status =
            Some(verification_status).filter(|status| *status != VerificationStatus::default());
        let embedded = self.embedded.iter().map(EmbeddingSummary::to_value).collect::<Vec<_>>();
        let embedded = (!embedded.is_empty()).then_some(Value::Array(embedded));
        let mark = |set: bool| set.then_some(Value::Bool(true));
        [
            ("sb", superseded_by.map(|by| by.to_string().into())),
            ("svt", system_valid_to.map(|at| at.get().into())),
            ("vstatus", status.map(|status| status.name().into())),
            ("ct", mark(contradicted)),
            ("x_review", mark(needs_review)),
            ("x_held", mark(held).or(self.hold_lifted.then_some(Value::Bool(false)))),
            ("ac", Some(self.access_count).filter(|count| *count > 0).map(Value::from)),
            ("x_er", embedded),
            ("laa", self.last_accessed_at.map(|at| at.get().into())),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }

    /// Reads the value of one key of an entry.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for a value of the wrong type or outside its vocabulary.
    fn read_field(&mut self, key: &str, reader: &mut TokenReader<'_>) -> Result<()> {
        let state = &mut self.state;
        match key {
            "sb" => state.superseded_by = Some(parse_address(read_text(reader)?)?),
            "svt" => state.system_valid_to = Some(read_time(reader)?),
            "vstatus" => {
                let status = VerificationStatus::from_name(read_text(reader)?);
                state.verification_status = status.ok_or_else(|| corrupt("no such status"))?;
            }
            "ct" => state.contradicted = read_bool(reader)?,
            "x_review" => state.needs_review = read_bool(reader)?,
            "x_held" => {
                state.held = read_bool(reader)?;
                self.hold_lifted = !state.held;
            }
            "x_er" => self.embedded = EmbeddingSummary::read_list(reader)?,
            "ac" => self.access_count = read_count(reader)?,
            "laa" => self.last_accessed_at = Some(read_time(reader)?),
            // Keys of other exporters and of later versions are skipped (ruling 37).
            _ => reader.skip()?,
        }
        Ok(())
    }
}

/// Encodes a manifest entry by entry.
#[derive(Debug)]
pub(super) struct ManifestWriter {
    writer: TokenWriter,
    entries: u32,
    written: u32,
    last: Option<ContentAddress>,
}

impl ManifestWriter {
    pub(super) fn new(encoding: Encoding, entries: u32) -> Self {
        Self { writer: TokenWriter::new(Vec::new(), encoding), entries, written: 0, last: None }
    }

    /// Returns the bytes of the next entry, with the head of the map before the first.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for more entries than announced, and for an entry out of order.
    pub(super) fn entry(
        &mut self,
        address: &ContentAddress,
        carried: &ManifestEntry,
    ) -> Result<&[u8]> {
        if self.written == self.entries {
            return Err(corrupt(format!("the manifest was to have {} entries", self.entries)));
        }
        if self.last.is_some_and(|last| last >= *address) {
            return Err(corrupt("entries of a manifest come by ascending address"));
        }
        self.writer.clear();
        if self.written == 0 {
            self.writer.map(usize::try_from(self.entries).unwrap_or(usize::MAX));
        }
        self.last = Some(*address);
        self.written += 1;
        self.writer.text(&address.to_string());
        let fields = carried.fields();
        let mut fields: Vec<_> = fields.iter().map(|(key, value)| (*key, value)).collect();
        self.writer.entries(&mut fields);
        Ok(self.writer.bytes())
    }

    /// Checks that the manifest is complete.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if entries are missing.
    pub(super) fn finish(self) -> Result<()> {
        if self.written == self.entries {
            return Ok(());
        }
        Err(corrupt(format!("{} of {} manifest entries were written", self.written, self.entries)))
    }
}

/// Iterates over each [`ManifestEntry`] of a manifest by ascending address, reading as it goes. After
/// the first error the iterator ends.
#[derive(Debug)]
pub struct ManifestIter<'s, S: ?Sized> {
    rest: RangeReader<'s, S>,
    buffer: Vec<u8>,
    encoding: Encoding,
    /// The number of entries still to be read, or `None` before the head was read.
    left: Option<usize>,
    last: Option<ContentAddress>,
    ended: bool,
}

impl<'s, S: ReadAt + ?Sized> ManifestIter<'s, S> {
    /// Creates an iterator over the manifest at the bytes `from..to`.
    pub(super) fn new(source: &'s S, from: u64, to: u64) -> Self {
        Self {
            rest: RangeReader::new(source, from, to),
            buffer: Vec::new(),
            encoding: Encoding::default(),
            left: None,
            last: None,
            ended: false,
        }
    }

    fn read(&mut self) -> Result<Option<(ContentAddress, ManifestEntry)>> {
        self.fill()?;
        let left = match self.left {
            Some(left) => left,
            None => self.head()?,
        };
        if left == 0 {
            return match self.buffer.is_empty() {
                true => Ok(None),
                false => Err(structure_error("bytes after the manifest", "")),
            };
        }
        self.left = Some(left - 1);
        let mut reader = TokenReader::new(&self.buffer, self.encoding);
        let (address, carried) = self.entry(&mut reader)?;
        let taken = self.buffer.len() - reader.rest().len();
        self.buffer.drain(..taken);
        self.last = Some(address);
        Ok(Some((address, carried)))
    }

    /// Fills the buffer until it holds a whole entry, or the end of the manifest.
    fn fill(&mut self) -> Result<()> {
        if self.buffer.len() >= MAX_ENTRY_BYTES || self.rest.remaining() == 0 {
            return Ok(());
        }
        let block = (BLOCK_BYTES - self.buffer.len()) as u64;
        let read = (&mut self.rest).take(block).read_to_end(&mut self.buffer);
        read.map(drop).map_err(|error| failed(&error))
    }

    /// Reads the number of entries, and checks it: each takes more bytes than an address has digits.
    fn head(&mut self) -> Result<usize> {
        let first = self.buffer.first().copied();
        let encoding = first.and_then(TokenReader::encoding_of_map);
        self.encoding = encoding.ok_or_else(|| structure_error("a manifest is a map", ""))?;
        let mut reader = TokenReader::new(&self.buffer, self.encoding);
        let entries = reader.map_head()?;
        let taken = self.buffer.len() - reader.rest().len();
        self.buffer.drain(..taken);
        let bytes = self.buffer.len() as u64 + self.rest.remaining();
        if entries as u64 > bytes / (2 * ContentAddress::LEN as u64) {
            return Err(structure_error(
                "the manifest declares more entries than there are bytes",
                "",
            ));
        }
        Ok(entries)
    }

    fn entry(&self, reader: &mut TokenReader<'_>) -> Result<(ContentAddress, ManifestEntry)> {
        let address = parse_address(reader.key()?)?;
        if self.last.is_some_and(|last| last >= address) {
            return Err(
                corrupt("entries are not in order, or one occurs twice").at(address.to_string())
            );
        }
        let carried = read_entry(reader).map_err(|error| error.in_context(&address.to_string()))?;
        Ok((address, carried))
    }
}

impl<S: ReadAt + ?Sized> Iterator for ManifestIter<'_, S> {
    type Item = Result<(ContentAddress, ManifestEntry)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.read().map_err(|error| error.in_context("manifest"));
        self.ended = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    }
}

/// Reads the value of one address.
fn read_entry(reader: &mut TokenReader<'_>) -> Result<ManifestEntry> {
    let encoding = reader.encoding();
    let Token::Map(keys) = reader.token()? else { return Err(corrupt("an entry is a map")) };
    let mut carried = ManifestEntry::default();
    let mut last: Option<&str> = None;
    for _ in 0..keys {
        let key = reader.key()?;
        if last.is_some_and(|last| encoding.compare_keys(last, key).is_ge()) {
            return Err(corrupt("keys are not in order, or one occurs twice").at(key));
        }
        last = Some(key);
        carried.read_field(key, reader).map_err(|error| error.in_context(key))?;
    }
    Ok(carried)
}

fn parse_address(text: &str) -> Result<ContentAddress> {
    text.parse().map_err(|error: Error| corrupt(error.to_string()))
}

fn read_text<'a>(reader: &mut TokenReader<'a>) -> Result<&'a str> {
    match reader.token()? {
        Token::Str(text) => Ok(text),
        _ => Err(corrupt("not text")),
    }
}

fn read_bool(reader: &mut TokenReader<'_>) -> Result<bool> {
    match reader.token()? {
        Token::Bool(set) => Ok(set),
        _ => Err(corrupt("neither true nor false")),
    }
}

fn read_time(reader: &mut TokenReader<'_>) -> Result<EpochMs> {
    match reader.token()? {
        Token::Int(ms) => ms.as_i64().map(EpochMs::new).ok_or_else(|| corrupt("no time")),
        _ => Err(corrupt("no whole number of milliseconds")),
    }
}

fn read_count(reader: &mut TokenReader<'_>) -> Result<u64> {
    match reader.token()? {
        Token::Int(count) => count.as_u64().ok_or_else(|| corrupt("a count below zero")),
        _ => Err(corrupt("no whole number")),
    }
}
