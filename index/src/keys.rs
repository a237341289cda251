//! Byte layouts of posting keys. Big-endian and of fixed width, which redb stores without overhead.
//!
//! Knows no tables and no transactions. A change of any layout, here or in `layout`, raises [`LAYOUT`].

use grainstore_format::{EpochMs, GrainType};

use crate::error::{Error, Result};
use crate::field::{Digest, FieldValue};
use crate::posting::{Posting, Sequence, TieBreaker, TimeRange};
use crate::posting_lists::{
    NAMESPACE_BYTES, ORDER_KEY_BYTES, POSTING_LISTS, PostingList, TERM_BYTES,
};
use crate::term::TermId;

/// The version of all layouts, stored in the stamp.
pub(crate) const LAYOUT: u32 = 6;

/// Bytes of a posting key in memory: the list number and room for the widest row.
pub(crate) const POSTING_KEY_BYTES: usize = 33;
/// Bytes of a row of the sample: `level:1` and a posting key.
pub(crate) const SAMPLE_ROW_BYTES: usize = POSTING_KEY_BYTES + 1;

/// A posting key in memory: the number of its list, its row, and zeros to the end. Keys sort list by list,
/// and within a list like its rows.
pub(crate) type PostingKey = [u8; POSTING_KEY_BYTES];

/// XORed into a time so that unsigned order is time order.
const SIGN: u64 = 1 << 63;
const SEQUENCE_BITS: u32 = 32;
const TIE_BITS: u32 = 16;

/// The order key of a posting: inverted time (64 bits), first bytes of the address (16), inverted sequence
/// (32). The newest posting has the smallest key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey(u128);

impl OrderKey {
    /// The order key of a posting.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a sequence beyond [`Sequence::MAX`].
    pub(crate) fn from_posting(posting: Posting) -> Result<Self> {
        if posting.sequence > Sequence::MAX {
            return Err(Error::full());
        }
        Ok(Self::clamped(posting))
    }

    /// The order key of a position a scan may start from: sequences beyond the last are clamped to it.
    pub(crate) fn clamped(Posting { time, tie, sequence }: Posting) -> Self {
        let time = !(time.get().cast_unsigned() ^ SIGN);
        let TieBreaker(tie) = tie;
        let tie = u16::from_be_bytes(tie);
        let sequence = Sequence::MAX.get() - sequence.min(Sequence::MAX).get();
        let placed = u128::from(time) << TIE_BITS | u128::from(tie);
        Self(placed << SEQUENCE_BITS | u128::from(sequence))
    }

    /// The first and last order key of a time range; `None` for a range that ends before it starts.
    pub(crate) fn bounds(times: TimeRange) -> Option<(Self, Self)> {
        let from = times.from.unwrap_or(EpochMs::new(i64::MIN));
        let to = times.to.unwrap_or(EpochMs::new(i64::MAX));
        if times.from.zip(times.to).is_some_and(|(from, to)| from > to) {
            return None;
        }
        let first = Posting { time: to, tie: TieBreaker::FIRST, sequence: Sequence::MAX };
        let last = Posting { time: from, tie: TieBreaker::LAST, sequence: Sequence::new(0) };
        Some((Self::clamped(first), Self::clamped(last)))
    }

    /// The order key at the end of a row; `None` if the row is too short.
    pub(crate) fn from_row(row: &[u8]) -> Option<Self> {
        let tail: &[u8; ORDER_KEY_BYTES] = row.last_chunk()?;
        let mut bytes = [0; 16];
        let (_, slot) = bytes.split_last_chunk_mut::<ORDER_KEY_BYTES>()?;
        *slot = *tail;
        Some(Self(u128::from_be_bytes(bytes)))
    }

    /// Decodes the posting.
    pub(crate) fn posting(self) -> Posting {
        let bytes = self.0.to_be_bytes();
        let [_, _, t0, t1, t2, t3, t4, t5, t6, t7, a, b, s0, s1, s2, s3] = bytes;
        let time = !u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]) ^ SIGN;
        let sequence = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
        Posting {
            time: EpochMs::new(time.cast_signed()),
            tie: TieBreaker([a, b]),
            sequence: Sequence::new(Sequence::MAX.get() - sequence),
        }
    }

    /// The key as a number of the same order.
    pub(crate) fn number(self) -> u128 {
        self.0
    }

    /// The key of such a number.
    pub(crate) fn from_number(number: u128) -> Self {
        Self(number)
    }

    fn bytes(self) -> [u8; ORDER_KEY_BYTES] {
        let [_, _, bytes @ ..] = self.0.to_be_bytes();
        bytes
    }
}

/// The part of a posting key that a lookup binds: all postings with one prefix form one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyPrefix {
    list: PostingList,
    key: PostingKey,
    len: usize,
}

impl KeyPrefix {
    /// The prefix of a whole list: its number alone.
    fn of(list: PostingList) -> Self {
        Self { list, key: [0; POSTING_KEY_BYTES], len: 0 }.with_bytes(&[list as u8])
    }

    /// The list of the prefix.
    pub(crate) fn list(&self) -> PostingList {
        self.list
    }

    /// The prefix of a namespace in a list.
    fn in_list(list: PostingList, namespace: TermId) -> Self {
        let [_, _, _, _, bytes @ ..] = namespace.get().to_be_bytes();
        let bytes: [u8; NAMESPACE_BYTES] = bytes;
        Self::of(list).with_bytes(&bytes)
    }

    /// `namespace:4`
    pub(crate) fn all(namespace: TermId) -> Self {
        Self::in_list(PostingList::All, namespace)
    }

    /// `namespace:4 type:1`
    pub(crate) fn grain_type(namespace: TermId, grain_type: GrainType) -> Self {
        Self::in_list(PostingList::Type, namespace).with_bytes(&[grain_type.byte()])
    }

    /// `namespace:4 subject:5`
    pub(crate) fn subject(namespace: TermId, subject: TermId) -> Self {
        Self::in_list(PostingList::Subject, namespace).with_term(subject)
    }

    /// `namespace:4 relation:5`
    pub(crate) fn relation(namespace: TermId, relation: TermId) -> Self {
        Self::in_list(PostingList::Relation, namespace).with_term(relation)
    }

    /// `namespace:4 object:8`
    pub(crate) fn object(namespace: TermId, object: Digest) -> Self {
        Self::in_list(PostingList::Object, namespace).with_bytes(&object.0)
    }

    /// `namespace:4 subject:5 relation:5`
    pub(crate) fn subject_relation(namespace: TermId, subject: TermId, relation: TermId) -> Self {
        Self::in_list(PostingList::SubjectRelation, namespace)
            .with_term(subject)
            .with_term(relation)
    }

    /// `namespace:4 subject:5 object:4`
    pub(crate) fn subject_object(namespace: TermId, subject: TermId, object: Digest) -> Self {
        Self::in_list(PostingList::SubjectObject, namespace)
            .with_term(subject)
            .with_bytes(&object.prefix())
    }

    /// `namespace:4 relation:5 object:4`
    pub(crate) fn relation_object(namespace: TermId, relation: TermId, object: Digest) -> Self {
        Self::in_list(PostingList::RelationObject, namespace)
            .with_term(relation)
            .with_bytes(&object.prefix())
    }

    /// `namespace:4 subject:5 relation:5 object:4`
    pub(crate) fn triple(
        namespace: TermId,
        subject: TermId,
        relation: TermId,
        object: Digest,
    ) -> Self {
        Self::in_list(PostingList::Triple, namespace)
            .with_term(subject)
            .with_term(relation)
            .with_bytes(&object.prefix())
    }

    /// `namespace:4 field:1 value:8`
    pub(crate) fn value(namespace: TermId, value: &FieldValue) -> Self {
        Self::in_list(PostingList::Value, namespace)
            .with_bytes(&[value.field])
            .with_bytes(&value.digest.0)
    }

    /// The key of a posting with this prefix: `prefix !time:8 tie:2 !sequence:4`.
    pub(crate) fn key(&self, rank: OrderKey) -> PostingKey {
        self.with_bytes(&rank.bytes()).key
    }

    /// The order key in a key with this prefix; `None` if the key is too short.
    pub(crate) fn order_key(&self, key: &PostingKey) -> Option<OrderKey> {
        OrderKey::from_row(key.get(..self.len.checked_add(ORDER_KEY_BYTES)?)?)
    }

    /// The namespace in a key of this prefix's list; `None` for a key of another list.
    pub(crate) fn namespace_of(&self, key: &PostingKey) -> Option<TermId> {
        namespace_of(key).filter(|_| key.first() == Some(&(self.list as u8)))
    }

    /// Replaces the namespace of the prefix.
    pub(crate) fn with_namespace(&self, namespace: TermId) -> Self {
        Self { key: with_namespace(&self.key, namespace), ..*self }
    }

    fn with_term(self, id: TermId) -> Self {
        let [_, _, _, bytes @ ..] = id.get().to_be_bytes();
        let bytes: [u8; TERM_BYTES] = bytes;
        self.with_bytes(&bytes)
    }

    /// Appends bytes; prefixes are shorter than keys by construction.
    fn with_bytes(mut self, bytes: &[u8]) -> Self {
        let end = self.len.saturating_add(bytes.len());
        if let Some(slot) = self.key.get_mut(self.len..end) {
            slot.copy_from_slice(bytes);
            self.len = end;
        }
        self
    }
}

/// The key of a row of this list.
pub(crate) fn key_of(list: PostingList, row: &[u8]) -> PostingKey {
    KeyPrefix::of(list).with_bytes(row).key
}

/// The key with another namespace.
pub(crate) fn with_namespace(key: &PostingKey, namespace: TermId) -> PostingKey {
    let [_, _, _, _, bytes @ ..] = namespace.get().to_be_bytes();
    let mut moved = *key;
    moved.iter_mut().skip(1).zip(bytes).for_each(|(to, byte)| *to = byte);
    moved
}

/// The namespace in a key of any list.
pub(crate) fn namespace_of(key: &PostingKey) -> Option<TermId> {
    let (_, row) = key.split_first()?;
    let [a, b, c, d]: [u8; NAMESPACE_BYTES] = *row.first_chunk()?;
    Some(TermId::new(u64::from_be_bytes([0, 0, 0, 0, a, b, c, d])))
}

/// The order key in a key of any list; `None` for bytes that are not a key.
pub(crate) fn order_key_of(key: &PostingKey) -> Option<OrderKey> {
    let (list, row) = key.split_first()?;
    OrderKey::from_row(row.get(..POSTING_LISTS.get(usize::from(*list))?.width)?)
}

/// The relation in a key of the list `sp`.
pub(crate) fn relation_of(key: &PostingKey) -> Option<TermId> {
    const AT: usize = 1 + NAMESPACE_BYTES + TERM_BYTES;
    let bytes: &[u8; TERM_BYTES] = key.get(AT..)?.first_chunk()?;
    let [a, b, c, d, e] = *bytes;
    Some(TermId::new(u64::from_be_bytes([0, 0, 0, a, b, c, d, e])))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
