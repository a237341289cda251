//! The byte layout of a keyring: 128-byte slots, first the store's, then one for each user (docs/format.md).
//!
//! Knows no keys and no files. A slot of zeros belonged to a user who was erased; its number is never reused.

use crate::base::error::{Error, Result};
use crate::disk::layout::checksum;

use super::provider::Derivation;
use super::secret::{NONCE_BYTES, TAG_BYTES};

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 128;
/// Bytes of a wrapped secret: nonce, ciphertext, tag.
pub(crate) const WRAPPED_SECRET_BYTES: usize = NONCE_BYTES + 32 + TAG_BYTES;

const VERSION: u8 = 1;
const STORE_KIND: u8 = 1;
const USER_KIND: u8 = 2;
const RAW_KEY: u8 = 0;
const ARGON2ID_KEY: u8 = 1;

/// The first slot: the derivation of the master key, and the store's secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreSlot {
    pub(crate) store_id: [u8; 16],
    pub(crate) derivation: Derivation,
    /// Number of the master key, from 1.
    pub(crate) master: u32,
    pub(crate) wrapped: [u8; WRAPPED_SECRET_BYTES],
}

/// The slot of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserSlot {
    /// The token of the user id under the store's key.
    pub(crate) token: [u8; 32],
    /// Number of this user's key, from 1.
    pub(crate) generation: u32,
    pub(crate) wrapped: [u8; WRAPPED_SECRET_BYTES],
}

/// A slot of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot {
    Store(Box<StoreSlot>),
    User(Box<UserSlot>),
    Erased,
}

impl StoreSlot {
    /// The associated data of the wrapped secret: all bytes of the slot before it.
    pub(crate) fn associated_data(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, STORE_KIND, RAW_KEY, 0];
        bytes.extend_from_slice(&self.store_id);
        let (how, salt, cost) = match self.derivation {
            Derivation::Raw => (RAW_KEY, [0; 16], [0; 3]),
            Derivation::Argon2id { salt, memory_kib, passes, lanes } => {
                (ARGON2ID_KEY, salt, [memory_kib, passes, lanes])
            }
        };
        if let Some(slot) = bytes.get_mut(2) {
            *slot = how;
        }
        bytes.extend_from_slice(&salt);
        bytes.extend(cost.iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend_from_slice(&self.master.to_be_bytes());
        bytes
    }
}

impl UserSlot {
    /// The associated data of the wrapped secret: all bytes of the slot before it, and the slot number.
    pub(crate) fn associated_data(&self, number: u32) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes
    }

    fn head(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, USER_KIND, 0, 0];
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        bytes.extend_from_slice(&self.token);
        bytes
    }
}

/// Returns the user token in the bytes of a slot, without checking the slot.
pub(crate) fn unchecked_token(bytes: &[u8; SLOT_BYTES]) -> [u8; 32] {
    let mut fields = SlotReader(bytes);
    fields.take::<8>().and_then(|_| fields.take()).unwrap_or_default()
}

impl Slot {
    pub(crate) fn encode(&self, number: u32) -> [u8; SLOT_BYTES] {
        let (head, wrapped) = match self {
            Self::Store(slot) => (slot.associated_data(), &slot.wrapped),
            Self::User(slot) => (slot.head(), &slot.wrapped),
            Self::Erased => return [0; SLOT_BYTES],
        };
        let mut bytes = [0; SLOT_BYTES];
        let body = head.iter().chain(wrapped);
        bytes.iter_mut().zip(body).for_each(|(to, from)| *to = *from);
        let (body, check) = bytes.split_at_mut(SLOT_BYTES - 4);
        check.copy_from_slice(&checksum(number.into(), body));
        bytes
    }

    /// Decodes a slot.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that have changed, that are of another slot, or of a later version.
    pub(crate) fn decode(number: u32, bytes: &[u8; SLOT_BYTES]) -> Result<Self> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Self::Erased);
        }
        let damaged = || Error::truth_damaged(format!("slot {number} of the keyring is damaged"));
        let (body, check) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if *check != checksum(number.into(), body) {
            return Err(damaged());
        }
        let mut fields = SlotReader(body);
        let [version, kind, how, zero] = fields.take::<4>().ok_or_else(damaged)?;
        if version != VERSION || zero != 0 {
            return Err(damaged());
        }
        match kind {
            STORE_KIND => Ok(Self::Store(Box::new(fields.store(how).ok_or_else(damaged)?))),
            USER_KIND => Ok(Self::User(Box::new(fields.person().ok_or_else(damaged)?))),
            _ => Err(damaged()),
        }
    }
}

/// The unread bytes of a slot.
struct SlotReader<'b>(&'b [u8]);

impl SlotReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn store(mut self, how: u8) -> Option<StoreSlot> {
        let store_id = self.take()?;
        let salt = self.take()?;
        let (memory_kib, passes, lanes) = (self.number()?, self.number()?, self.number()?);
        let derivation = match how {
            RAW_KEY => Derivation::Raw,
            ARGON2ID_KEY => Derivation::Argon2id { salt, memory_kib, passes, lanes },
            _ => return None,
        };
        let (master, wrapped) = (self.number()?, self.take()?);
        Some(StoreSlot { store_id, derivation, master, wrapped })
    }

    fn person(mut self) -> Option<UserSlot> {
        let generation = self.number()?;
        let (token, wrapped) = (self.take()?, self.take()?);
        Some(UserSlot { token, generation, wrapped })
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    fn slots() -> [(u32, Slot, String); 3] {
        let derivation =
            Derivation::Argon2id { salt: [2; 16], memory_kib: 65_536, passes: 3, lanes: 1 };
        let store = StoreSlot {
            store_id: [1; 16],
            derivation,
            master: 4,
            wrapped: [5; WRAPPED_SECRET_BYTES],
        };
        let raw = StoreSlot { derivation: Derivation::Raw, ..store.clone() };
        let person = UserSlot { token: [6; 32], generation: 7, wrapped: [8; WRAPPED_SECRET_BYTES] };
        let cost = "000100000000000300000001";
        let (id, five) = ("01".repeat(16), "05".repeat(WRAPPED_SECRET_BYTES));
        let phrase = ["01010100", &id, &"02".repeat(16), cost, "00000004", &five].concat();
        let raw_bytes = ["01010000", &id, &"00".repeat(28), "00000004", &five].concat();
        let six = "06".repeat(32);
        let person_bytes =
            ["01020000", "00000007", &six, &"08".repeat(WRAPPED_SECRET_BYTES)].concat();
        [
            (0, Slot::Store(Box::new(store)), phrase),
            (0, Slot::Store(Box::new(raw)), raw_bytes),
            (9, Slot::User(Box::new(person)), person_bytes),
        ]
    }

    #[test]
    fn slots_have_these_bytes() {
        for (number, slot, golden) in slots() {
            let bytes = slot.encode(number);
            let padded = format!("{golden:0<248}");
            assert_eq!(HEXLOWER.encode(&bytes[..SLOT_BYTES - 4]), padded);
            assert_eq!(Slot::decode(number, &bytes).unwrap(), slot);
        }
        assert_eq!(Slot::Erased.encode(3), [0; SLOT_BYTES]);
        assert_eq!(Slot::decode(3, &[0; SLOT_BYTES]).unwrap(), Slot::Erased);
    }

    #[test]
    fn a_changed_bit_or_another_place_shows() {
        for (number, slot, _) in slots() {
            let bytes = slot.encode(number);
            assert!(Slot::decode(number + 1, &bytes).is_err());
            for bit in 0..8 * SLOT_BYTES {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                let code = Slot::decode(number, &flipped).err().map(|e| e.code());
                assert_eq!(code, Some("ERR_INTEGRITY"), "bit {bit}");
            }
        }
    }
}
