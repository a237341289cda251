//! Every byte layout of the crate: posting rows, terms, stamp and watermark. Big-endian throughout.
//!
//! Knows no tables and no transactions. A change of any layout raises [`LAYOUT`].

use grainstore_format::EpochMs;
use sha2::{Digest, Sha256};

use crate::posting::{Posting, Sequence, TimeRange};
use crate::stamp::Watermark;
use crate::term::{Term, TermId, TermKind, Word};

/// The version of all layouts here, kept in the stamp.
pub(crate) const LAYOUT: u32 = 1;

/// Plaintext beyond this many bytes is keyed by its digest, so that keys stay short.
pub(crate) const MAX_KEY_TEXT_BYTES: usize = 256;

/// Bytes of a posting row that bind a namespace; a namespace and one byte; one term; two terms.
pub(crate) const NAMESPACE_ROW: usize = 24;
pub(crate) const BYTE_ROW: usize = 25;
pub(crate) const TERM_ROW: usize = 32;
pub(crate) const PAIR_ROW: usize = 40;

/// Flipped into a time so that unsigned order is time order.
const SIGN: u64 = 1 << 63;

/// What a posting is found by beside its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    Nothing,
    Type(u8),
    Subject(TermId),
    SubjectRelation(TermId, TermId),
    Session(TermId),
    Tag(TermId),
}

/// The part of a posting key that a lookup binds: all postings below one prefix are one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prefix {
    pub(crate) namespace: TermId,
    pub(crate) bound: Bound,
}

/// Time and sequence, inverted: the newest posting has the smallest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u128);

/// A posting key in memory. Below one prefix it orders as its row orders in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PostingKey {
    pub(crate) prefix: Prefix,
    pub(crate) rank: Rank,
}

impl Rank {
    /// The rank of a posting.
    pub(crate) fn of(posting: Posting) -> Self {
        let time = !(posting.time.get().cast_unsigned() ^ SIGN);
        Self(u128::from(time) << 64 | u128::from(!posting.sequence.get()))
    }

    /// The ranks of a time range, first and last; nothing for a range that ends before it starts.
    pub(crate) fn bounds(times: TimeRange) -> Option<(Self, Self)> {
        let from = times.from.map_or(i64::MIN, EpochMs::get);
        let to = times.to.map_or(i64::MAX, EpochMs::get);
        let at = |ms, number| {
            Self::of(Posting { time: EpochMs::new(ms), sequence: Sequence::new(number) })
        };
        (from <= to).then(|| (at(to, u64::MAX), at(from, 0)))
    }

    /// The rank at the end of a row; nothing for bytes too few to hold one.
    pub(crate) fn of_row(row: &[u8]) -> Option<Self> {
        row.last_chunk().map(|bytes| Self(u128::from_be_bytes(*bytes)))
    }

    /// The posting of this rank.
    pub(crate) fn posting(self) -> Posting {
        let [t0, t1, t2, t3, t4, t5, t6, t7, sequence @ ..] = (!self.0).to_be_bytes();
        let time = u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]) ^ SIGN;
        Posting {
            time: EpochMs::new(time.cast_signed()),
            sequence: Sequence::new(u64::from_be_bytes(sequence)),
        }
    }

    fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

/// A term id as it stands in every key and value.
pub(crate) fn id_bytes(id: TermId) -> [u8; 8] {
    id.get().to_be_bytes()
}

/// The term id of these bytes.
pub(crate) fn id_of(bytes: [u8; 8]) -> TermId {
    TermId::new(u64::from_be_bytes(bytes))
}

/// `namespace:8 !time:8 !sequence:8`
pub(crate) fn namespace_row(namespace: TermId, rank: Rank) -> [u8; NAMESPACE_ROW] {
    join(&[&id_bytes(namespace), &rank.bytes()])
}

/// `namespace:8 type:1 !time:8 !sequence:8`
pub(crate) fn byte_row(namespace: TermId, byte: u8, rank: Rank) -> [u8; BYTE_ROW] {
    join(&[&id_bytes(namespace), &[byte], &rank.bytes()])
}

/// `namespace:8 term:8 !time:8 !sequence:8`
pub(crate) fn term_row(namespace: TermId, term: TermId, rank: Rank) -> [u8; TERM_ROW] {
    join(&[&id_bytes(namespace), &id_bytes(term), &rank.bytes()])
}

/// `namespace:8 subject:8 relation:8 !time:8 !sequence:8`
pub(crate) fn pair_row(
    namespace: TermId,
    (first, second): (TermId, TermId),
    rank: Rank,
) -> [u8; PAIR_ROW] {
    join(&[&id_bytes(namespace), &id_bytes(first), &id_bytes(second), &rank.bytes()])
}

/// How the bytes of a term stand for its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The text itself, at most [`MAX_KEY_TEXT_BYTES`].
    Plain = 0,
    /// A blind token of 32 bytes.
    Token = 1,
    /// SHA-256 of a longer text.
    Digest = 2,
}

/// Every kind of term with its byte. 6 is kept for objects in text, 7 for objects that are maps.
const KIND_BYTES: [(TermKind, u8); 5] = [
    (TermKind::Namespace, 1),
    (TermKind::Subject, 2),
    (TermKind::Relation, 3),
    (TermKind::Session, 4),
    (TermKind::Tag, 5),
];

/// The key of a term: `kind:1 form:1 bytes`.
pub(crate) fn term_key(term: &Term<'_>) -> Vec<u8> {
    let text = match term.word {
        Word::Token(token) => return form_key(term.kind, Form::Token, &token),
        Word::Plain(text) => text.as_bytes(),
    };
    if text.len() > MAX_KEY_TEXT_BYTES {
        return form_key(term.kind, Form::Digest, &Sha256::digest(text));
    }
    form_key(term.kind, Form::Plain, text)
}

/// The row an id leads to: the key of its term, with the whole text where the key has a digest.
pub(crate) fn term_row_of(term: &Term<'_>) -> Vec<u8> {
    match term.word {
        Word::Plain(text) if text.len() > MAX_KEY_TEXT_BYTES => {
            form_key(term.kind, Form::Digest, text.as_bytes())
        }
        _ => term_key(term),
    }
}

/// `kind:1 form:1 bytes`, which is also the start of every key whose bytes start so.
pub(crate) fn form_key(kind: TermKind, form: Form, bytes: &[u8]) -> Vec<u8> {
    let kind = KIND_BYTES.iter().find(|(known, _)| *known == kind).map_or(0, |(_, byte)| *byte);
    [&[kind, form as u8], bytes].concat()
}

/// The first key after all keys that start so: the last byte that can grow does.
pub(crate) fn key_after(start: &[u8]) -> Vec<u8> {
    let mut after = start.to_vec();
    while let Some(last) = after.pop() {
        if let Some(next) = last.checked_add(1) {
            after.push(next);
            break;
        }
    }
    after
}

/// The text of a term key or row that starts with `kind form`; nothing for tokens and bad bytes.
pub(crate) fn plain_text(key: &[u8]) -> Option<&str> {
    match key {
        [_, form, text @ ..] if *form != Form::Token as u8 => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

/// The watermark row: `sequence:8 address:32`.
pub(crate) fn watermark_row(mark: &Watermark) -> [u8; 40] {
    join(&[&mark.sequence.get().to_be_bytes(), &mark.address])
}

/// The watermark of a row; nothing for a row of another length.
pub(crate) fn watermark_of(row: &[u8]) -> Option<Watermark> {
    let (sequence, address) = row.split_first_chunk()?;
    let sequence = Sequence::new(u64::from_be_bytes(*sequence));
    Some(Watermark { sequence, address: address.try_into().ok()? })
}

/// The parts one after another; callers give parts that fill exactly `N` bytes.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut joined = [0; N];
    for (slot, byte) in joined.iter_mut().zip(parts.iter().copied().flatten()) {
        *slot = *byte;
    }
    joined
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
