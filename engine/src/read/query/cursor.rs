//! Cursors: the position after a page, sealed for its query.
//!
//! A cursor is encrypted with a key of its store, and bound to its query and session: it reveals nothing of
//! the log and cannot be forged. The same page always has the same cursor.

use std::fmt;
use std::str::FromStr;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use data_encoding::BASE64URL_NOPAD;
use grainstore_format::{ContentAddress, EpochMs};
use grainstore_index::Sequence;
use sha2::{Digest, Sha256};

use crate::base::error::{Error, ErrorKind, Result};

/// Bytes of the plaintext: 72, and for a search the inputs of its scores.
///
/// | bytes | meaning |
/// |---|---|
/// | 0..8 | the last sequence of the first page's state |
/// | 8..16 | the start of the hash of the last audit entry then, which detects another log |
/// | 16..24 | number of audit entries as of the first page |
/// | 24..32 | time of the last row, epoch ms; for a search the bits of its score |
/// | 32..64 | address of the last row |
/// | 64..72 | total matches as the first page counted them; all ones if it did not |
/// | 72 | for an answer by score: its ranking |
/// | 73.. | full-text statistics of the first page; for a reranked answer the rest of its order |
const PLAINTEXT_BYTES: usize = 72;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
/// Bytes of a cursor without statistics: version, nonce, sealed bytes, tag.
const MIN_CURSOR_BYTES: usize = 1 + NONCE_BYTES + PLAINTEXT_BYTES + TAG_BYTES;
/// Most bytes of statistics, or of a carried order.
pub(super) const MAX_STATISTICS_BYTES: usize = 8192;
const VERSION: u8 = 6;
const UNCOUNTED: u64 = u64::MAX;

/// The end of a page, with which the next one is asked for ([`Session::query`](crate::Session::query)).
/// Opaque.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Box<[u8]>);

/// The content of a cursor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CursorContent {
    pub(super) origin: LogPoint,
    pub(super) last: LastRow,
    /// Rows of the whole answer, if counted.
    pub(super) total: Option<u64>,
}

/// The state of the log that all pages of one answer show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPoint {
    pub(super) sequence: Sequence,
    pub(super) entry: [u8; 8],
    /// Number of audit entries then: a grain that was ended by a later entry counts as current.
    pub(super) entries: u64,
}

/// The last row of a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LastRow {
    ByTime(TimePosition),
    ByScore(ScorePosition),
}

/// The position of a row in the answer to a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScorePosition {
    /// Its score by the full text.
    pub(super) score: f64,
    pub(super) address: ContentAddress,
    pub(super) ranking: RankingKind,
    /// Inputs of the scores, in the encoding of the full text; for a reranked answer, the rest of its order.
    pub(super) statistics: Vec<u8>,
}

/// The kind of ranking of an answer: scores of different kinds cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RankingKind {
    /// By text alone.
    #[default]
    Text,
    /// By a vector, or by text and vector.
    Vector,
    /// In another order than that of the scores.
    Reranked,
}

/// The position of a row in an answer by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimePosition {
    pub(super) time: EpochMs,
    pub(super) address: ContentAddress,
}

impl CursorContent {
    /// Seals the cursor for a query of a store with this key.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, which a key of the right length never gives.
    pub(super) fn seal(&self, key: &[u8; 32], question: &[u8]) -> Result<Cursor> {
        let (key_of_row, address, statistics) = match &self.last {
            LastRow::ByTime(TimePosition { time, address }) => {
                (time.get().to_be_bytes(), address, Vec::new())
            }
            LastRow::ByScore(ScorePosition { score, address, ranking, statistics }) => {
                let ranked = [&[*ranking as u8], statistics.as_slice()].concat();
                (score.to_bits().to_be_bytes(), address, ranked)
            }
        };
        let open = [
            self.origin.sequence.get().to_be_bytes().as_slice(),
            &self.origin.entry,
            &self.origin.entries.to_be_bytes(),
            &key_of_row,
            address.as_bytes(),
            &self.total.unwrap_or(UNCOUNTED).to_be_bytes(),
            &statistics,
        ]
        .concat();
        // A nonce derived from the key, query and plaintext, so that only equal cursors share one.
        let hash = Sha256::new().chain_update(key).chain_update(question).chain_update(&open);
        let hash: [u8; 32] = hash.finalize().into();
        let failed = || Error::integrity("a cursor could not be sealed");
        let nonce: &[u8; NONCE_BYTES] = hash.first_chunk().ok_or_else(failed)?;
        let payload = Payload { msg: &open, aad: question };
        let sealed = cipher(key).encrypt(&Nonce::from(*nonce), payload).map_err(|_| failed())?;
        Ok(Cursor([&[VERSION], nonce.as_slice(), &sealed].concat().into()))
    }
}

impl Cursor {
    /// Opens a cursor that was sealed with this key for this query.
    ///
    /// # Errors
    /// `ERR_CURSOR` for any other cursor.
    pub(super) fn open(&self, key: &[u8; 32], question: &[u8]) -> Result<CursorContent> {
        let other = || {
            let message = "this cursor belongs to another query, session or store";
            Error::new(ErrorKind::Cursor, message)
        };
        let (_, rest) = self.0.split_first().ok_or_else(other)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(other)?;
        let payload = Payload { msg: sealed, aad: question };
        let open = cipher(key).decrypt(&Nonce::from(*nonce), payload).map_err(|_| other())?;
        let mut rest = FixedFields(&open);
        let sequence = Sequence::new(rest.number()?);
        let origin = LogPoint { sequence, entry: rest.take()?, entries: rest.number()? };
        let key_of_row = rest.number()?;
        let address = ContentAddress::from_bytes(rest.take()?);
        let total = Some(rest.number()?).filter(|total| *total != UNCOUNTED);
        let last = match rest.0.split_first() {
            None => LastRow::ByTime(TimePosition {
                time: EpochMs::new(key_of_row.cast_signed()),
                address,
            }),
            Some((ranking, statistics)) => {
                let all = [RankingKind::Text, RankingKind::Vector, RankingKind::Reranked];
                let ranking = all.into_iter().find(|one| *one as u8 == *ranking);
                LastRow::ByScore(ScorePosition {
                    score: f64::from_bits(key_of_row),
                    address,
                    ranking: ranking.ok_or_else(invalid_cursor)?,
                    statistics: statistics.to_vec(),
                })
            }
        };
        Ok(CursorContent { origin, last, total })
    }
}

fn cipher(key: &[u8; 32]) -> Aes256Gcm {
    Aes256Gcm::new(key.into())
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    /// # Errors
    /// `ERR_CURSOR` for text that is not a cursor.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| invalid_cursor())?;
        let fits =
            (MIN_CURSOR_BYTES..=MIN_CURSOR_BYTES + MAX_STATISTICS_BYTES).contains(&bytes.len());
        match bytes.first() {
            Some(&VERSION) if fits => Ok(Self(bytes.into())),
            _ => Err(invalid_cursor()),
        }
    }
}

/// A reader of fields of fixed width.
struct FixedFields<'b>(&'b [u8]);

impl FixedFields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(invalid_cursor)?;
        self.0 = rest;
        Ok(*field)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }
}

pub(super) fn invalid_cursor() -> Error {
    Error::new(ErrorKind::Cursor, "this text is no cursor, or was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    #[test]
    fn a_cursor_says_what_was_sealed_and_nothing_else_opens() {
        let address = ContentAddress::from_bytes([4; 32]);
        let place = LastRow::ByTime(TimePosition { time: EpochMs::new(-3), address });
        let rank = ScorePosition {
            score: 0.25,
            address,
            ranking: RankingKind::Vector,
            statistics: vec![9; 40],
        };
        let rank = LastRow::ByScore(rank);
        for (last, total) in [(&place, None), (&place, Some(0)), (&rank, Some(7))] {
            let origin = LogPoint { sequence: Sequence::new(5), entry: [2; 8], entries: 6 };
            let opened = CursorContent { origin, last: last.clone(), total };
            let cursor = opened.seal(&KEY, b"question").unwrap();
            assert_eq!(opened.seal(&KEY, b"question").unwrap(), cursor, "the same bytes again");
            let text = cursor.to_string();
            assert_eq!(text.parse::<Cursor>().unwrap().open(&KEY, b"question").unwrap(), opened);
            assert!(!cursor.0.windows(8).any(|bytes| bytes == [2; 8] || bytes == [4; 8]));
            assert!(cursor.open(&KEY, b"another").is_err());
            assert!(cursor.open(&[8; 32], b"question").is_err());
            for at in 0..cursor.0.len() {
                let mut other = cursor.clone();
                other.0[at] ^= 1;
                let reopened =
                    other.to_string().parse().and_then(|c: Cursor| c.open(&KEY, b"question"));
                assert_eq!(reopened.map_err(|error| error.code()), Err("ERR_CURSOR"), "{at}");
            }
            let code = text.replacen('A', "", 1).parse::<Cursor>().map_err(|error| error.code());
            assert_eq!(code, Err("ERR_CURSOR"));
        }
        for text in ["", "x", "ü", "AAAA"] {
            assert!(text.parse::<Cursor>().is_err(), "{text:?}");
        }
    }
}
