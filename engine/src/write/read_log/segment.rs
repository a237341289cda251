//! A file of the read log: its header, followed by groups, each linked to the previous one.
//!
//! | bytes | header |
//! |---|---|
//! | 0..8 | `GRNREAD` and the layout, 1 |
//! | 8..24 | the store id |
//! | 24..28 | the number of the file, u32, from 1 |
//! | 28..36 | number of entries before it, u64 |
//! | 36..68 | hash at the end of the group before it |
//! | 68..72 | CRC-32 of bytes 0..68 |
//!
//! | bytes | group |
//! |---|---|
//! | 0..4 | length of its body, u32 |
//! | 4..36 | SHA-256 of the hash of the previous group and the body |
//! | 36.. | the body |

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::group;
use crate::base::error::{Error, Result};
use crate::disk::layout::AuditHead;

const MAGIC: &[u8; 8] = b"GRNREAD\x01";
/// Size of the header, in bytes.
pub(crate) const HEADER_BYTES: usize = 72;
/// Size of a group without its body, in bytes.
const GROUP_HEADER_BYTES: usize = 36;
/// Maximum size of a body, in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Size of a file in bytes beyond which it takes no further group.
pub(crate) const FULL_FILE_BYTES: u64 = 4 << 20;
/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = FULL_FILE_BYTES + (MAX_BODY_BYTES as u64) + (GROUP_HEADER_BYTES as u64);

const _: () = assert!(HEADER_BYTES == 8 + 16 + 4 + 8 + 32 + 4);
const _: () = assert!(GROUP_HEADER_BYTES == 4 + 32);

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) number: u32,
    /// The end of the log when the file was created.
    pub(crate) at: AuditHead,
}

/// The end of an empty log.
pub(crate) fn genesis(store: &[u8; 16]) -> AuditHead {
    let hash = Sha256::new().chain_update(b"grainstore-reads-v1").chain_update(store);
    AuditHead { count: 0, hash: hash.finalize().into() }
}

/// Where a log goes on behind an end that nobody vouches for: no group and no file ends so.
pub(super) fn broken(end: &AuditHead) -> AuditHead {
    let hash = Sha256::new().chain_update(b"grainstore-reads-broken-v1").chain_update(end.hash);
    AuditHead { count: end.count, hash: hash.finalize().into() }
}

impl FileHeader {
    pub(crate) fn encode(&self, store: &[u8; 16]) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(store);
        header.extend_from_slice(&self.number.to_be_bytes());
        header.extend_from_slice(&self.at.count.to_be_bytes());
        header.extend_from_slice(&self.at.hash);
        header.extend_from_slice(&crc32fast::hash(&header).to_be_bytes());
        header
    }

    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are no header of this store and file number.
    pub(crate) fn decode(bytes: &[u8], store: &[u8; 16], number: u32) -> Result<Self> {
        let damaged = || Error::integrity("its header is damaged, or of another store or file");
        let header = bytes.get(..HEADER_BYTES).ok_or_else(damaged)?;
        let count = header.get(28..36).and_then(<[u8]>::first_chunk).ok_or_else(damaged)?;
        let hash = header.get(36..68).and_then(<[u8]>::first_chunk).ok_or_else(damaged)?;
        let at = AuditHead { count: u64::from_be_bytes(*count), hash: *hash };
        let start = Self { number, at };
        match start.encode(store) == header {
            true => Ok(start),
            false => Err(damaged()),
        }
    }
}

/// Encodes a group with its length and hash. Returns it and the new end of the log.
///
/// # Errors
/// `ERR_INTEGRITY` for an invalid body.
pub(crate) fn frame(before: &AuditHead, body: &[u8]) -> Result<(Vec<u8>, AuditHead)> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_BODY_BYTES);
    let length = length.ok_or_else(|| Error::integrity("a group of the read log is too long"))?;
    let end = link(before, body)?;
    let mut frame = Vec::with_capacity(GROUP_HEADER_BYTES.saturating_add(body.len()));
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&end.hash);
    frame.extend_from_slice(body);
    Ok((frame, end))
}

fn link(before: &AuditHead, body: &[u8]) -> Result<AuditHead> {
    let hash = Sha256::new().chain_update(before.hash).chain_update(body).finalize();
    let count = before.count.saturating_add(group::entry_count(body)?);
    Ok(AuditHead { count, hash: hash.into() })
}

/// Iterator over the groups of a file, up to the first invalid one.
pub(crate) struct GroupIter<'b> {
    rest: &'b [u8],
    /// The end of the log after the last group read.
    pub(crate) end: AuditHead,
    /// Number of bytes read.
    pub(crate) read_bytes: usize,
}

impl<'b> GroupIter<'b> {
    /// The groups after the header of a file.
    pub(crate) fn of(file: &'b [u8], start: &FileHeader) -> Self {
        let rest = file.get(HEADER_BYTES..).unwrap_or_default();
        Self { rest, end: start.at, read_bytes: HEADER_BYTES.min(file.len()) }
    }

    /// Returns `true` if no bytes are left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn next_valid(&self) -> Option<(&'b [u8], &'b [u8], AuditHead)> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (body, rest) = rest.split_at_checked(length).filter(|_| length <= MAX_BODY_BYTES)?;
        let end = link(&self.end, body).ok()?;
        (end.hash == *hash).then_some((body, rest, end))
    }
}

impl<'b> Iterator for GroupIter<'b> {
    /// The number of the first entry, and the body.
    type Item = (u64, &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (body, rest, end) = self.next_valid()?;
        let first = self.end.count;
        self.rest = rest;
        self.end = end;
        self.read_bytes =
            self.read_bytes.saturating_add(GROUP_HEADER_BYTES).saturating_add(body.len());
        Some((first, body))
    }
}

/// The path of a file.
pub(crate) fn path_of(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08}.log"))
}

/// Returns the numbers of the existing files, ascending; empty if there is no directory.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn file_numbers(dir: &Path) -> Result<Vec<u32>> {
    let listed = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut numbers = Vec::new();
    for entry in listed {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(".log"));
        let digits = digits.filter(|digits| digits.len() == 8);
        numbers.extend(digits.and_then(|digits| digits.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads a file.
///
/// # Errors
/// `ERR_IO`; `ERR_INTEGRITY` for a file beyond the maximum size.
pub(crate) fn read_file(dir: &Path, number: u32) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path_of(dir, number))?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    match group::as_u64(bytes.len()) > MAX_FILE_BYTES {
        true => Err(Error::integrity("a file of the read log is too long")),
        false => Ok(bytes),
    }
}

/// Reads the header of a file.
///
/// # Errors
/// `ERR_IO`; `ERR_INTEGRITY` for an invalid header.
pub(crate) fn read_header(dir: &Path, number: u32, store: &[u8; 16]) -> Result<FileHeader> {
    let mut header = Vec::new();
    let length = group::as_u64(HEADER_BYTES);
    File::open(path_of(dir, number))?.take(length).read_to_end(&mut header)?;
    FileHeader::decode(&header, store, number)
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    #[test]
    fn the_bytes_of_a_header_and_a_group_are_those_of_the_format() {
        let store = [1; 16];
        let at = genesis(&store);
        let header = FileHeader { number: 1, at }.encode(&store);
        let expected = [
            "47524e5245414401",                 // GRNREAD, layout 1
            "01010101010101010101010101010101", // the store
            "00000001",                         // the first file
            "0000000000000000",                 // no entries before it
            &HEXLOWER.encode(&at.hash),
            &HEXLOWER.encode(&crc32fast::hash(&header[..68]).to_be_bytes()),
        ];
        assert_eq!(HEXLOWER.encode(&header), expected.concat());
        let seed = [&b"grainstore-reads-v1"[..], &store].concat();
        assert_eq!(at.hash, <[u8; 32]>::from(Sha256::digest(seed)));
        // One entry; the rest is not a valid group, but framing does not decode it.
        let body = [1, 0];
        let (bytes, end) = frame(&at, &body).unwrap();
        let hash = Sha256::digest([&at.hash[..], &body].concat());
        assert_eq!(bytes, [&[0, 0, 0, 2][..], &hash, &body].concat());
        assert_eq!((end.count, end.hash), (1, hash.into()));
    }

    #[test]
    fn a_header_is_of_one_store_and_one_file() {
        let start = FileHeader { number: 7, at: AuditHead { count: 9, hash: [3; 32] } };
        let header = start.encode(&[1; 16]);
        assert_eq!(FileHeader::decode(&header, &[1; 16], 7).unwrap(), start);
        assert!(FileHeader::decode(&header, &[2; 16], 7).is_err());
        assert!(FileHeader::decode(&header, &[1; 16], 8).is_err());
        assert!(FileHeader::decode(&header[..71], &[1; 16], 7).is_err());
    }
}
