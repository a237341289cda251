//! The keyring of a store with a journal: each copy of the store has one, and the journal has the slots that count. Those
//! of new users are written here once the journal has them, so that this copy has none that the journal never had.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::provider::{KeyProvider, key_error};
use super::slot::{SLOT_BYTES, Slot};
use super::storage::{KeyringFile, KeyringStorage};
use super::{Keyring, STORE_SLOT, slot_offset, unwrap_in};
use crate::base::error::{Error, Result};
use crate::disk::journal::{KeyringSlot, damaged};

impl Keyring {
    /// Creates that of a new store with a journal.
    ///
    /// # Errors
    /// As [`Keyring::create`].
    pub(crate) fn create_copied(
        directory: &Path,
        provider: &dyn KeyProvider,
        store_id: [u8; 16],
    ) -> Result<Self> {
        let medium = Box::new(KeyringFile::within(directory)?);
        let created = Self::new_on(medium, provider, store_id)?;
        created.slots().copied = Some(0);
        Ok(created)
    }

    /// Opens that of a copy with the first `kept` slots of its file, or with the store's slot of its journal if that is 0.
    /// What the file has behind them stays until slots of the journal are written there, or it is [cut](Self::cut_rest).
    ///
    /// # Errors
    /// As [`Keyring::open`]; `ERR_KEY` where a copy would be made over the keyring of another store.
    pub(crate) fn open_copy(
        directory: &Path,
        provider: &dyn KeyProvider,
        (kept, store): (u32, Option<&KeyringSlot>),
    ) -> Result<Self> {
        let mut medium = KeyringFile::within(directory)?;
        let there = medium.read()?.unwrap_or_default();
        let (whole, _) = there.as_chunks::<SLOT_BYTES>();
        let opened = match (whole.get(..usize::try_from(kept).unwrap_or(usize::MAX)), store) {
            (Some(whole @ [_, ..]), _) => Self::open_slots(Box::new(medium), whole, provider)?,
            (_, Some(store)) if store.number == STORE_SLOT => {
                check_is_of(&there, store)?;
                // The key is tried before anything is written.
                let medium: Box<dyn KeyringStorage> = match there.is_empty() {
                    true => Box::new(Made(medium)),
                    false => Box::new(medium),
                };
                Self::open_slots(medium, &[store.bytes], provider)?
            }
            _ => return Err(lacks(STORE_SLOT)),
        };
        opened.slots().copied = Some(opened.slot_count());
        Ok(opened)
    }

    /// Makes an opened keyring that of a new store with a journal, which has none of it yet.
    ///
    /// # Errors
    /// `ERR_KEY` for one that has keys of users, and so is what is left of a store.
    pub(crate) fn copied(self) -> Result<Self> {
        if self.slot_count() > STORE_SLOT + 1 {
            let message =
                "a keyring with keys of users lies in this directory, and its journal is empty";
            return Err(key_error(message)
                .with_hint("put back the store it belongs to, or move the keyring away"));
        }
        self.slots().copied = Some(self.slot_count());
        Ok(self)
    }

    /// Returns the slots that were given and that the truth does not record as used yet.
    pub(crate) fn unrecorded_slots(&self) -> Vec<KeyringSlot> {
        let first = self.recorded.load(Ordering::Acquire).saturating_add(1);
        let people = self.users();
        let new = first..people.next;
        new.map(|number| KeyringSlot::new(number, people.bytes_of(number))).collect()
    }

    /// Returns the slot of the store.
    pub(crate) fn store_slot(&self) -> KeyringSlot {
        let slot = Slot::Store(Box::new(self.slots().store.clone()));
        KeyringSlot::new(STORE_SLOT, slot.encode(STORE_SLOT))
    }

    /// Returns a slot as it is once it is destroyed.
    pub(crate) fn erased_slot(number: u32) -> KeyringSlot {
        KeyringSlot::new(number, Slot::Erased.encode(number))
    }

    /// Writes what the journal has by now: the store's slot, and those that were recorded as used.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn write_copied(&self) -> Result<()> {
        let Some(written) = self.slots().copied else { return Ok(()) };
        let store = (written == STORE_SLOT).then(|| self.store_slot());
        let mut file = self.slots();
        if let Some(store) = store {
            file.medium.replace(&store.bytes)?;
        }
        let last = self.recorded.load(Ordering::Acquire);
        let first = written.max(STORE_SLOT + 1);
        let new: Vec<_> = {
            let people = self.users();
            (first..=last).flat_map(|number| people.bytes_of(number)).collect()
        };
        if !new.is_empty() {
            file.medium.write_at(slot_offset(first), &new)?;
        }
        file.copied = Some(first.max(last.saturating_add(1)));
        Ok(())
    }

    /// Overwrites what the file of a copy has behind its slots, and cuts it off: slots of commits that the journal has not.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn cut_rest(&self) -> Result<()> {
        let mut file = self.slots();
        file.copied.map_or(Ok(()), |count| file.medium.truncate(slot_offset(count)))
    }

    /// Adds slots that the journal has after those of this copy, durably.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a slot is missing, or was not wrapped under the key of this store, by whose leader then;
    /// `ERR_IO`.
    pub(crate) fn adopt(&self, slots: &[KeyringSlot]) -> Result<()> {
        let mut file = self.slots();
        let first = self.users().next;
        let mut bytes = Vec::with_capacity(slots.len().saturating_mul(SLOT_BYTES));
        for (number, slot) in (first..).zip(slots) {
            if slot.number != number {
                return Err(lacks(number));
            }
            let is_sound = match Slot::decode(number, &slot.bytes)? {
                Slot::Erased => true,
                Slot::Store(_) => false,
                Slot::User(user) => {
                    let bound = user.associated_data(number);
                    unwrap_in(&file.wrap, &bound, &user.wrapped).is_some()
                }
            };
            if !is_sound {
                let message = format!("slot {number} of the journal's keyring is not the leader's");
                return Err(damaged(message));
            }
            bytes.extend_from_slice(&slot.bytes);
        }
        if slots.is_empty() {
            return Ok(());
        }
        file.medium.write_at(slot_offset(first), &bytes)?;
        let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
        for slot in slots {
            let added = people.add_next(&slot.bytes);
            added.ok_or_else(|| damaged("the keyring of the journal is too long"))?;
        }
        file.copied = Some(people.next);
        Ok(())
    }

    /// Destroys the secret in a slot, as a record of the journal says.
    ///
    /// # Errors
    /// As [`Keyring::destroy`].
    pub(crate) fn destroy_slot(&self, slot: u32) -> Result<()> {
        let person = self.users().token_in(slot);
        person.map_or(Ok(()), |person| self.destroy(&person, slot))
    }
}

/// The file of a keyring that is made with what is written first.
#[derive(Debug)]
struct Made(KeyringFile);

impl KeyringStorage for Made {
    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        self.0.read()
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        match offset {
            0 => self.0.replace(bytes),
            _ => self.0.write_at(offset, bytes),
        }
    }

    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.replace(bytes)
    }

    fn truncate(&mut self, length: u64) -> Result<()> {
        self.0.truncate(length)
    }
}

/// Returns the number of slots in the keyring of a directory up to the first that is damaged; 0 if there is none. Zeros are
/// a destroyed slot if it has a mark: a file that was made longer before the power was cut has them too.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn count_sound_slots(directory: &Path, is_marked: impl Fn(u32) -> bool) -> Result<u32> {
    let bytes = KeyringFile::within(directory)?.read()?.unwrap_or_default();
    let (slots, _) = bytes.as_chunks::<SLOT_BYTES>();
    let sound =
        (STORE_SLOT..).zip(slots).take_while(|(number, slot)| match Slot::decode(*number, slot) {
            Ok(Slot::Store(_)) => *number == STORE_SLOT,
            Ok(Slot::User(_)) => *number != STORE_SLOT,
            Ok(Slot::Erased) => is_marked(*number),
            Err(_) => false,
        });
    Ok(u32::try_from(sound.count()).unwrap_or(u32::MAX))
}

/// Refuses to make a copy over the keyring of another store, which may be all that is left of that.
fn check_is_of(there: &[u8], store: &KeyringSlot) -> Result<()> {
    let id = |bytes: &[u8]| bytes.get(4..20).map(<[u8]>::to_vec);
    match id(there) == id(&store.bytes) || there.is_empty() {
        true => Ok(()),
        false => Err(key_error("the keyring of another store lies in this directory")
            .with_hint("move it away if it is not needed, or name another directory")),
    }
}

fn lacks(number: u32) -> Error {
    damaged(format!("the journal lacks slot {number} of the keyring"))
}
