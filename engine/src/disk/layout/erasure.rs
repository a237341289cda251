//! Records that erasure leaves in the truth: stubs in the log, tombstones of users, and the row that lists
//! the erasures still to be scrubbed. None of them holds content.

use grainstore_format::EpochMs;
use grainstore_index::Sequence;
use redb::TableDefinition;

use super::{AddressKey, PlainEnvelope, checksum};
use crate::base::error::{Error, Result};
use crate::disk::vault::Vault;

/// Token of a user -> [`Tombstone`]. Created with the first erasure of a user.
pub(crate) const TOMBSTONES: TableDefinition<'static, &'static [u8], &'static [u8]> =
    TableDefinition::new("tombstones");
/// Row of the meta table with [`ErasureRecord`]. Written with the first erasure.
pub(crate) const META_ERASURES: &str = "erasures";

/// A keyed hash of a `user_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UserToken(pub(crate) [u8; 32]);

/// A log entry whose grain was erased; its sequence is never reused.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | envelope version, 1 |
/// | 1 | protection: 255 erased |
/// | 2..6 | CRC-32 of the row's key (8 bytes) and the bytes behind; in an encrypted store a keyed tag of them |
/// | 6..38 | the address, in its form on disk |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stub {
    pub(crate) address: AddressKey,
}

impl Stub {
    const HEAD: [u8; 2] = [1, 255];
    const BYTES: usize = 38;

    /// Returns `true` if a row of the log is a stub.
    pub(crate) fn is_stub(row: &[u8]) -> bool {
        row.starts_with(&Self::HEAD)
    }

    pub(crate) fn seal(&self, at: Sequence, vault: &Vault) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend_from_slice(&Self::HEAD);
        bytes.extend_from_slice(&vault.check_of_stub(at, self.address.as_bytes()));
        bytes.extend_from_slice(self.address.as_bytes());
        bytes
    }

    /// Decodes a stub.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that have changed, or were written for another row.
    pub(crate) fn open(at: Sequence, row: &[u8], vault: &Vault) -> Result<Self> {
        let damaged =
            || Error::truth_damaged(format!("the stub at entry {} has changed", at.get()));
        let rest = row.strip_prefix(&Self::HEAD).ok_or_else(damaged)?;
        let (check, body) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let address: [u8; 32] = body.try_into().map_err(|_| damaged())?;
        if *check != vault.check_of_stub(at, body) {
            return Err(damaged());
        }
        Ok(Self { address: AddressKey(address) })
    }
}

/// The record of a user who was erased.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | record version, 1 |
/// | 1..9 | the last sequence of the log at the erasure, u64 |
/// | 9..17 | time of the erasure, epoch ms, i64 |
/// | 17..25 | its audit entry, u64 |
/// | 25..29 | CRC-32 of the first eight bytes of the token and the bytes before |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tombstone {
    pub(crate) cutoff: Sequence,
    pub(crate) time: EpochMs,
    pub(crate) entry: u64,
}

impl Tombstone {
    const VERSION: u8 = 1;
    const BYTES: usize = 29;

    pub(crate) fn encode(&self, of: &UserToken) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.push(Self::VERSION);
        bytes.extend_from_slice(&self.cutoff.get().to_be_bytes());
        bytes.extend_from_slice(&self.time.get().to_be_bytes());
        bytes.extend_from_slice(&self.entry.to_be_bytes());
        bytes.extend_from_slice(&checksum(of.prefix(), &bytes));
        bytes
    }

    /// Decodes a tombstone.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that are damaged.
    pub(crate) fn decode(of: &UserToken, record: &[u8]) -> Result<Self> {
        let damaged = || Error::truth_damaged("the tombstone of a user is damaged");
        let (body, check) = record.split_last_chunk::<4>().ok_or_else(damaged)?;
        let [Self::VERSION, numbers @ ..] = body else { return Err(damaged()) };
        let (numbers, rest) = numbers.as_chunks::<8>();
        let [cutoff, time, entry] = numbers else { return Err(damaged()) };
        if !rest.is_empty() || *check != checksum(of.prefix(), body) {
            return Err(damaged());
        }
        Ok(Self {
            cutoff: Sequence::new(u64::from_be_bytes(*cutoff)),
            time: EpochMs::new(i64::from_be_bytes(*time)),
            entry: u64::from_be_bytes(*entry),
        })
    }
}

impl UserToken {
    /// Returns the first eight bytes, which the checksum ties a record to its row by.
    fn prefix(&self) -> u64 {
        self.0.first_chunk::<8>().map_or(0, |start| u64::from_be_bytes(*start))
    }
}

/// The number of stubs, and the erasures whose data is still on disk: an envelope in row 0.
///
/// | byte | meaning |
/// |---|---|
/// | 0..8 | stubs in the log, u64 |
/// | 52 each | erasures to scrub, as below |
///
/// | byte | meaning |
/// |---|---|
/// | 0..32 | token of a user, or zeros for single grains |
/// | 32..36 | the last slot of the user's key, u32, or 0 |
/// | 36..44 | the last sequence of the log it covers, u64 |
/// | 44..52 | its audit entry, u64 |
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ErasureRecord {
    pub(crate) stubs: u64,
    pub(crate) pending: Vec<PendingScrub>,
}

/// An erasure whose data is still on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingScrub {
    /// `None` for grains that were erased one by one: they are stubs already.
    pub(crate) user: Option<UserToken>,
    /// The last slot of the user, destroyed with those before it; 0 if there is none.
    pub(crate) slot: u32,
    pub(crate) cutoff: Sequence,
    pub(crate) entry: u64,
}

impl ErasureRecord {
    const NO_USER: [u8; 32] = [0; 32];

    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut body = self.stubs.to_be_bytes().to_vec();
        for PendingScrub { user, slot, cutoff, entry } in &self.pending {
            body.extend_from_slice(user.as_ref().map_or(&Self::NO_USER, |token| &token.0));
            body.extend_from_slice(&slot.to_be_bytes());
            body.extend_from_slice(&cutoff.get().to_be_bytes());
            body.extend_from_slice(&entry.to_be_bytes());
        }
        PlainEnvelope::seal(0, &body)
    }

    /// Decodes the row.
    ///
    /// # Errors
    /// As [`PlainEnvelope::open`]; `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn open(row: &[u8]) -> Result<Self> {
        let damaged = || Error::truth_damaged("what is noted of erasures is damaged");
        let body = PlainEnvelope::open(0, row)?;
        let (stubs, rest) = body.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (records, rest) = rest.as_chunks::<52>();
        if !rest.is_empty() {
            return Err(damaged());
        }
        let pending = records.iter().map(|record| {
            let (token, rest) = record.split_first_chunk::<32>().ok_or_else(damaged)?;
            let (slot, numbers) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
            let (numbers, _) = numbers.as_chunks::<8>();
            let [cutoff, entry] = numbers else { return Err(damaged()) };
            Ok(PendingScrub {
                user: (*token != Self::NO_USER).then_some(UserToken(*token)),
                slot: u32::from_be_bytes(*slot),
                cutoff: Sequence::new(u64::from_be_bytes(*cutoff)),
                entry: u64::from_be_bytes(*entry),
            })
        });
        Ok(Self { stubs: u64::from_be_bytes(*stubs), pending: pending.collect::<Result<_>>()? })
    }

    /// Adds an erasure to scrub. It replaces an earlier one of the same user, or of single grains.
    pub(crate) fn with_pending(mut self, new: PendingScrub) -> Self {
        self.pending.retain(|known| known.user != new.user);
        self.pending.push(new);
        self
    }

    /// Removes the erasures up to this audit entry.
    pub(crate) fn without_scrubbed(mut self, entry: u64) -> Self {
        self.pending.retain(|known| known.entry > entry);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    #[test]
    fn what_erasure_leaves_has_these_bytes() {
        let at = Sequence::new(7);
        let stub = Stub { address: AddressKey([0xab; 32]) };
        let tombstone =
            Tombstone { cutoff: Sequence::new(9), time: EpochMs::new(0x0102_0304), entry: 5 };
        let token = UserToken([0xcd; 32]);
        let one = PendingScrub { user: Some(token), slot: 2, cutoff: Sequence::new(9), entry: 5 };
        let others = PendingScrub { user: None, slot: 0, cutoff: Sequence::new(11), entry: 6 };
        let erasures = ErasureRecord { stubs: 3, pending: vec![one, others] };
        let [ab, cd, zeros] = ["ab", "cd", "00"].map(|byte| byte.repeat(32));
        for (bytes, expected) in [
            (stub.seal(at, &Vault::default()), format!("01ffa9b151cd{ab}")),
            (
                tombstone.encode(&token),
                "01000000000000000900000000010203040000000000000005a3daa5d6".to_owned(),
            ),
            (
                erasures.seal(),
                format!(
                    "0100ee98bee90000000000000003{cd}0000000200000000000000090000000000000005\
                     {zeros}00000000000000000000000b0000000000000006"
                ),
            ),
        ] {
            assert_eq!(HEXLOWER.encode(&bytes), expected);
        }
        assert_eq!(
            Stub::open(at, &stub.seal(at, &Vault::default()), &Vault::default()).unwrap(),
            stub
        );
        assert_eq!(Tombstone::decode(&token, &tombstone.encode(&token)).unwrap(), tombstone);
        assert_eq!(ErasureRecord::open(&erasures.seal()).unwrap(), erasures);
    }

    #[test]
    fn a_changed_byte_or_another_row_is_noticed() {
        let at = Sequence::new(7);
        let stub = Stub { address: AddressKey([0xab; 32]) }.seal(at, &Vault::default());
        let token = UserToken([0xcd; 32]);
        let tombstone = Tombstone { cutoff: at, time: EpochMs::new(1), entry: 5 }.encode(&token);
        let erasures = ErasureRecord { stubs: 3, pending: Vec::new() }.seal();
        assert!(Stub::open(Sequence::new(8), &stub, &Vault::default()).is_err());
        assert!(Tombstone::decode(&UserToken([0xce; 32]), &tombstone).is_err());
        let changed = |bytes: &[u8], at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1;
            bytes
        };
        for byte in 0..stub.len() {
            assert!(
                Stub::open(at, &changed(&stub, byte), &Vault::default()).is_err(),
                "byte {byte}"
            );
        }
        for byte in 0..tombstone.len() {
            assert!(Tombstone::decode(&token, &changed(&tombstone, byte)).is_err(), "byte {byte}");
        }
        for byte in 0..erasures.len() {
            assert!(ErasureRecord::open(&changed(&erasures, byte)).is_err(), "byte {byte}");
        }
    }

    #[test]
    fn an_erasure_is_noted_until_it_is_scrubbed() {
        let of = |user: Option<u8>, entry| PendingScrub {
            user: user.map(|byte| UserToken([byte; 32])),
            slot: 0,
            cutoff: Sequence::new(entry),
            entry,
        };
        let known = ErasureRecord::default()
            .with_pending(of(Some(1), 1))
            .with_pending(of(None, 2))
            .with_pending(of(None, 3));
        assert_eq!(known.pending, [of(Some(1), 1), of(None, 3)]);
        let known = known.with_pending(of(Some(1), 4)).without_scrubbed(3);
        assert_eq!(known.pending, [of(Some(1), 4)]);
        assert_eq!(known.without_scrubbed(4).pending, []);
    }
}
