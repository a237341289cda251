//! The byte layout of owners: what a row or a blob begins with, and the keys under which an erasure finds them.

use grainstore_index::Sequence;

use super::UserToken;
use crate::base::error::{Error, Result};
use crate::disk::truth_tables::TruthTable;

/// Whom a row or a blob belongs to; the default is nobody, so the store.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | bits: 0 a user, 1 a grain |
/// | 32 | token of the user, with bit 0 |
/// | 8 | sequence of the grain, with bit 1 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(crate) struct RowOwner {
    pub(crate) user: Option<UserToken>,
    pub(crate) grain: Option<Sequence>,
}

impl RowOwner {
    const USER: u8 = 1;
    const GRAIN: u8 = 1 << 1;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0];
        let mut bits = 0;
        if let Some(user) = &self.user {
            bits |= Self::USER;
            bytes.extend_from_slice(&user.0);
        }
        if let Some(grain) = self.grain {
            bits |= Self::GRAIN;
            bytes.extend_from_slice(&grain.get().to_be_bytes());
        }
        bytes.iter_mut().take(1).for_each(|first| *first = bits);
        bytes
    }

    /// Reads the owner that a row begins with. Returns it with the rest.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn split(row: &[u8]) -> Result<(Self, &[u8])> {
        let damaged = || Error::truth_damaged("the owner of a row is damaged");
        let (bits, mut rest) = row.split_first().ok_or_else(damaged)?;
        if *bits > Self::USER | Self::GRAIN {
            return Err(damaged());
        }
        let mut owner = Self::default();
        if bits & Self::USER != 0 {
            let (user, behind) = rest.split_first_chunk::<32>().ok_or_else(damaged)?;
            (owner.user, rest) = (Some(UserToken(*user)), behind);
        }
        if bits & Self::GRAIN != 0 {
            let (grain, behind) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
            (owner.grain, rest) = (Some(Sequence::new(u64::from_be_bytes(*grain))), behind);
        }
        Ok((owner, rest))
    }

    /// The first 40 bytes of the keys of what belongs to this owner: the token of the user, then the sequence of
    /// the grain, zeros where there is none.
    pub(crate) fn prefix(&self) -> [u8; 40] {
        let mut bytes = [0; 40];
        let (user, grain) = bytes.split_at_mut(32);
        user.copy_from_slice(&self.user.map_or([0; 32], |user| user.0));
        grain.copy_from_slice(&self.grain.map_or(0, Sequence::get).to_be_bytes());
        bytes
    }

    /// The key in [`OWNED`] of a row that belongs to this owner; `None` for a row of the store.
    pub(crate) fn link(&self, table: TruthTable, key: &[u8]) -> Option<Vec<u8>> {
        let is_owned = self.user.is_some() || self.grain.is_some();
        is_owned.then(|| [&self.prefix()[..], &[table.number()], key].concat())
    }
}

/// The row that a key in [`OWNED`] leads to, and the owner it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedLink {
    pub(crate) prefix: [u8; 40],
    pub(crate) table: TruthTable,
    pub(crate) key: Vec<u8>,
}

impl OwnedLink {
    /// Reads a key.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn decode(link: &[u8]) -> Result<Self> {
        let damaged = || Error::truth_damaged("what belongs to a user or a grain is damaged");
        let (prefix, rest) = link.split_first_chunk::<40>().ok_or_else(damaged)?;
        let (number, key) = rest.split_first().ok_or_else(damaged)?;
        let table = [TruthTable::Blobs, TruthTable::ApplicationRows].into_iter();
        let table = table.into_iter().find(|table| table.number() == *number);
        Ok(Self { prefix: *prefix, table: table.ok_or_else(damaged)?, key: key.to_vec() })
    }
}
