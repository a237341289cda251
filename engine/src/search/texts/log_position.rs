//! Identity of the state that a saved full text belongs to: 96 bytes in its manifest.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..16 | id of the store |
//! | 16..24 | the last sequence it has |
//! | 24..56 | the address of the grain there; zeros for an empty log |
//! | 56..64 | number of audit entries it knows the effects of, up to the first erasure that waits for its scrub |
//! | 64..96 | SHA-256 of the last of them |
//!
//! It detects a full text of another store, of another history of this one, or of a later state than the
//! truth.

use grainstore_index::Sequence;
use sha2::{Digest, Sha256};

use super::indexing::TextIndexPosition;
use crate::base::error::Result;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;

/// Bytes of a stamp.
const LOG_POSITION_BYTES: usize = 96;

/// The stamp of a full text at this position of the store of a view.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn encode(view: &View, position: TextIndexPosition) -> Result<[u8; LOG_POSITION_BYTES]> {
    let mut stamp = [0; LOG_POSITION_BYTES];
    let address = address_at(view, position.sequence)?.unwrap_or([0; 32]);
    // Until its scrub the segments may hold what was erased.
    let entries = position.entries.min(view.index_history()?.count);
    let entry = entry_hash(view, entries)?.unwrap_or([0; 32]);
    let parts: [&[u8]; 5] = [
        &view.store_id()?,
        &position.sequence.to_be_bytes(),
        &address,
        &entries.to_be_bytes(),
        &entry,
    ];
    for (slot, byte) in stamp.iter_mut().zip(parts.concat()) {
        *slot = byte;
    }
    Ok(stamp)
}

/// The position a stamp stands for in the store of a view; `None` if it belongs to another state or store.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn decode(view: &View, stamped: &[u8]) -> Result<Option<TextIndexPosition>> {
    let number = |from: usize| {
        let bytes = stamped.get(from..)?.first_chunk::<8>()?;
        Some(u64::from_be_bytes(*bytes))
    };
    let (Some(sequence), Some(entries)) = (number(16), number(56)) else { return Ok(None) };
    if sequence > view.last_sequence()?.get() || entries > view.audit_len()? {
        return Ok(None);
    }
    let position = TextIndexPosition { sequence, considered: sequence, entries };
    Ok((encode(view, position)? == stamped).then_some(position))
}

fn address_at(view: &View, sequence: u64) -> Result<Option<[u8; 32]>> {
    if sequence == 0 {
        return Ok(None);
    }
    ok_if_readable(view.index_key_at(Sequence::new(sequence)))
}

/// SHA-256 of the last of the first `entries` audit entries.
fn entry_hash(view: &View, entries: u64) -> Result<Option<[u8; 32]>> {
    let Some(last) = entries.checked_sub(1) else { return Ok(None) };
    let entry = view.audit_rows()?.get(last)?;
    Ok(entry.map(|entry| Sha256::digest(&entry).into()))
}
