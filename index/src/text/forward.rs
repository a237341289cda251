//! The forward index of a segment: the terms of each document. Scores are computed from it, phrases are
//! checked against it, and the statistics of deleted documents are taken from it.
//!
//! A record has: the number of terms (varint); their ordinals (ascending, big-endian, of the segment's
//! ordinal width); their weights (a byte each); then for each term with positions: the number of terms since
//! the one before (varint), the number of positions, and the deltas between them (varints). Knows nothing of
//! terms beyond their ordinals.

use super::indexed_document::IndexedTerm;
use crate::varint::{put_varint, take_varint};

/// The record of one document.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ForwardRecord<'a> {
    ordinals: &'a [u8],
    width: usize,
    weights: &'a [u8],
    position_bytes: &'a [u8],
}

impl<'a> ForwardRecord<'a> {
    /// Parses a record; `None` if the bytes are malformed.
    pub(super) fn read(bytes: &'a [u8], width: usize) -> Option<Self> {
        let mut rest = bytes;
        let terms = usize::try_from(take_varint(&mut rest)?).ok()?;
        let (ordinals, rest) = rest.split_at_checked(terms.checked_mul(width)?)?;
        let (weights, places) = rest.split_at_checked(terms)?;
        Some(Self { ordinals, width, weights, position_bytes: places })
    }

    /// The weight of a term, 0 if the document does not have it.
    pub(super) fn weight(&self, ordinal: u32) -> u8 {
        self.find(ordinal).and_then(|at| self.weights.get(at)).copied().unwrap_or(0)
    }

    /// The ordinals, ascending.
    pub(super) fn ordinals(&self) -> impl Iterator<Item = u32> {
        self.ordinals.chunks_exact(self.width.max(1)).map(decode_ordinal)
    }

    /// The weights, in the order of the ordinals.
    pub(super) fn weights(&self) -> &'a [u8] {
        self.weights
    }

    /// The encoded positions.
    pub(super) fn position_bytes(&self) -> &'a [u8] {
        self.position_bytes
    }

    /// The sum of the weights.
    pub(super) fn length(&self) -> u64 {
        self.weights.iter().map(|weight| u64::from(*weight)).sum()
    }

    /// The positions of a term, ascending.
    pub(super) fn positions(&self, ordinal: u32) -> Vec<u32> {
        self.find(ordinal).and_then(|at| self.positions_at(at)).unwrap_or_default()
    }

    fn positions_at(&self, wanted: usize) -> Option<Vec<u32>> {
        let mut rest = self.position_bytes;
        let mut next = 0;
        while !rest.is_empty() {
            let at = usize::try_from(take_varint(&mut rest)?).ok()?.checked_add(next)?;
            let count = take_varint(&mut rest)?;
            let mut place = 0_u32;
            let mut found = Vec::new();
            for _ in 0..count {
                place = place.checked_add(take_varint(&mut rest)?)?;
                if at == wanted {
                    found.push(place);
                }
            }
            if at >= wanted {
                return Some(found);
            }
            next = at.checked_add(1)?;
        }
        None
    }

    /// The index of a term within the document.
    fn find(&self, ordinal: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.weights.len());
        while low < high {
            let middle = low.midpoint(high);
            let at = middle.checked_mul(self.width)?;
            let here = decode_ordinal(self.ordinals.get(at..at.checked_add(self.width)?)?);
            match here.cmp(&ordinal) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// The bytes of an ordinal, for this number of terms.
pub(super) const fn ordinal_width(terms: usize) -> usize {
    match terms {
        0..=0x1_0000 => 2,
        0x1_0001..=0x100_0000 => 3,
        _ => 4,
    }
}

/// Appends a record to `to`.
pub(super) fn encode_record(
    to: &mut Vec<u8>,
    (ordinals, width): (&[u32], usize),
    weights: &[u8],
    places: &[u8],
) {
    put_varint(to, u32::try_from(weights.len()).unwrap_or(u32::MAX));
    for ordinal in ordinals {
        let bytes = ordinal.to_be_bytes();
        to.extend_from_slice(bytes.get(bytes.len().saturating_sub(width)..).unwrap_or_default());
    }
    to.extend_from_slice(weights);
    to.extend_from_slice(places);
}

/// Encodes the positions of a document's terms.
pub(super) fn encode_positions(shares: &[IndexedTerm]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut next = 0;
    for (at, share) in shares.iter().enumerate().filter(|(_, share)| !share.positions.is_empty()) {
        put_varint(&mut bytes, u32::try_from(at - next).unwrap_or(u32::MAX));
        put_varint(&mut bytes, u32::try_from(share.positions.len()).unwrap_or(u32::MAX));
        let mut before = 0;
        for place in &share.positions {
            put_varint(&mut bytes, place.saturating_sub(before));
            before = *place;
        }
        next = at + 1;
    }
    bytes
}

/// Decodes a big-endian number of up to four bytes.
fn decode_ordinal(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte))
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
