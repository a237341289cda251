//! Where a page ended: what the next page needs to go on, and to know that it may.
//!
//! A cursor names its query, its store and the state of the log its first page was taken from. It
//! holds no data of any grain but an address and a time.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::Sequence;

use crate::error::{Error, ErrorKind, Result};

/// Bytes of a cursor.
///
/// | bytes | meaning |
/// |---|---|
/// | 0 | version, 1 |
/// | 1..9 | digest of the query, its session and its store |
/// | 9..17 | the last place of the log on the first page |
/// | 17..25 | the start of the address of the grain there, so that another log shows |
/// | 25..33 | time of the last row, epoch ms |
/// | 33..65 | address of the last row |
/// | 65..73 | matches in all as the first page counted them; all ones where it did not |
/// | 73..77 | CRC-32 of the bytes before |
const LEN: usize = 77;
const VERSION: u8 = 1;
const UNCOUNTED: u64 = u64::MAX;

/// The end of a page, to ask for the next one with. Its text form is opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Which query on which store.
    pub(super) query: [u8; 8],
    pub(super) origin: Origin,
    pub(super) last: Place,
    /// How many rows the whole answer has, where that is known.
    pub(super) total: Option<u64>,
}

/// The state of the log that all pages of one answer show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(super) sequence: Sequence,
    pub(super) address: [u8; 8],
}

/// A row in the order of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) time: EpochMs,
    pub(super) address: ContentAddress,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total.unwrap_or(UNCOUNTED);
        let parts: [&[u8]; 7] = [
            &[VERSION],
            &self.query,
            &self.origin.sequence.get().to_be_bytes(),
            &self.origin.address,
            &self.last.time.get().to_be_bytes(),
            self.last.address.as_bytes(),
            &total.to_be_bytes(),
        ];
        let mut bytes = parts.concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        f.write_str(&BASE64URL_NOPAD.encode(&bytes))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    /// # Errors
    /// `ERR_CURSOR` for text that is no cursor.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| damaged())?;
        let bytes: &[u8; LEN] = bytes.as_slice().try_into().map_err(|_| damaged())?;
        let mut rest = Fields(bytes);
        let (version, query) = (rest.take::<1>()?, rest.take()?);
        let origin = Origin { sequence: Sequence::new(rest.number()?), address: rest.take()? };
        let time = EpochMs::new(rest.number()?.cast_signed());
        let address = ContentAddress::from_bytes(rest.take()?);
        let total = Some(rest.number()?).filter(|total| *total != UNCOUNTED);
        let whole = bytes.get(..LEN - 4).unwrap_or_default();
        if version != [VERSION] || rest.take()? != crc32fast::hash(whole).to_be_bytes() {
            return Err(damaged());
        }
        Ok(Self { query, origin, last: Place { time, address }, total })
    }
}

/// Fields of fixed width, one after the other.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*field)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Cursor, "this text is no cursor, or was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_and_nothing_else_does() {
        for total in [None, Some(0), Some(7)] {
            let cursor = Cursor {
                query: [1; 8],
                origin: Origin { sequence: Sequence::new(5), address: [2; 8] },
                last: Place {
                    time: EpochMs::new(-3),
                    address: ContentAddress::from_bytes([4; 32]),
                },
                total,
            };
            let text = cursor.to_string();
            assert_eq!(text.parse::<Cursor>().unwrap(), cursor);
            for at in 0..text.len() {
                let mut other = text.clone().into_bytes();
                other[at] = if other[at] == b'A' { b'B' } else { b'A' };
                let other = String::from_utf8(other).unwrap();
                let code = other.parse::<Cursor>().map_err(|error| error.code());
                assert_eq!(code, Err("ERR_CURSOR"), "{at}");
            }
            let code = text.replacen('A', "", 1).parse::<Cursor>().map_err(|error| error.code());
            assert_eq!(code, Err("ERR_CURSOR"));
        }
        for text in ["", "x", "ü", "AAAA"] {
            assert!(text.parse::<Cursor>().is_err(), "{text:?}");
        }
    }
}
