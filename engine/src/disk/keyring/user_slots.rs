//! The slots of users in memory. Does no I/O and decrypts no secret.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::slot::{self, SLOT_BYTES, Slot, UserSlot};
use super::slot_keys::SlotKeys;

/// Most slots whose derived keys are cached. Others are derived again on use.
const MAX_CACHED_KEYS: usize = 4096;

/// The slots of users, with their cached keys.
#[derive(Default)]
pub(super) struct UserSlots {
    /// Slots of each user, ascending: one, or several during a key rotation.
    by_token: HashMap<[u8; 32], Vec<u32>>,
    slots: HashMap<u32, Box<UserSlot>>,
    /// Damaged slots: the rows under them cannot be read.
    damaged: HashMap<u32, [u8; SLOT_BYTES]>,
    cached: HashMap<u32, Arc<SlotKeys>>,
    /// Keys destroyed on disk that readers of older views still need.
    retired: HashMap<[u8; 32], Vec<Arc<SlotKeys>>>,
    /// Slots destroyed since the keyring was opened: older views still have rows under them.
    destroyed: HashSet<u32>,
    /// The number of the next slot.
    pub(super) next: u32,
}

impl UserSlots {
    pub(super) fn new() -> Self {
        Self { next: 1, ..Self::default() }
    }

    pub(super) fn add(&mut self, number: u32, person: Box<UserSlot>) {
        self.by_token.entry(person.token).or_default().push(number);
        self.slots.insert(number, person);
    }

    /// Adds a damaged slot, under the token in its bytes, which may be damaged, too.
    pub(super) fn add_damaged(&mut self, number: u32, bytes: [u8; SLOT_BYTES]) {
        self.by_token.entry(slot::unchecked_token(&bytes)).or_default().push(number);
        self.damaged.insert(number, bytes);
    }

    /// Adds the slot with the next number, as it is on disk. `None` if there are as many as there can be.
    pub(super) fn add_next(&mut self, bytes: &[u8; SLOT_BYTES]) -> Option<()> {
        let number = self.next;
        self.next = number.checked_add(1)?;
        match Slot::decode(number, bytes) {
            Ok(Slot::User(person)) => self.add(number, person),
            Ok(Slot::Erased) => {}
            // Only the grains under this slot cannot be read.
            Ok(Slot::Store(_)) | Err(_) => self.add_damaged(number, *bytes),
        }
        Some(())
    }

    pub(super) fn remove(&mut self, person: &[u8; 32], number: u32) {
        if let Some(slots) = self.by_token.get_mut(person) {
            slots.retain(|slot| *slot != number);
            if slots.is_empty() {
                self.by_token.remove(person);
            }
        }
        self.damaged.remove(&number);
        self.slots.remove(&number);
        self.destroyed.insert(number);
        self.cached.remove(&number);
    }

    pub(super) fn has(&self, person: &[u8; 32]) -> bool {
        self.by_token.contains_key(person)
    }

    /// Returns `true` if a slot up to this one is in use.
    pub(super) fn any_up_to(&self, number: u32) -> bool {
        self.slots.keys().chain(self.damaged.keys()).any(|slot| *slot <= number)
    }

    /// Returns `true` if the slot is in use or damaged.
    pub(super) fn is_used(&self, number: u32) -> bool {
        self.slots.contains_key(&number) || self.damaged.contains_key(&number)
    }

    /// Returns the users that have exactly one slot, with it.
    pub(super) fn single_slots(&self) -> Vec<([u8; 32], u32)> {
        let slots = self.by_token.iter();
        let only = slots.filter_map(|(token, slots)| match **slots {
            [slot] => Some((*token, slot)),
            _ => None,
        });
        only.collect()
    }

    /// Returns all slots, each with its user.
    pub(super) fn all_slots(&self) -> Vec<([u8; 32], u32)> {
        let slots = self.by_token.iter();
        slots.flat_map(|(token, slots)| slots.iter().map(|slot| (*token, *slot))).collect()
    }

    /// Returns the token of the user of a slot, which is damaged if the slot is.
    pub(super) fn token_in(&self, number: u32) -> Option<[u8; 32]> {
        let damaged = || self.damaged.get(&number).map(slot::unchecked_token);
        self.slots.get(&number).map(|slot| slot.token).or_else(damaged)
    }

    /// Returns the bytes of a slot.
    pub(super) fn bytes_of(&self, number: u32) -> [u8; SLOT_BYTES] {
        match (self.damaged.get(&number), self.slots.get(&number)) {
            (Some(bytes), _) => *bytes,
            (None, Some(person)) => Slot::User(person.clone()).encode(number),
            (None, None) => Slot::Erased.encode(number),
        }
    }

    /// Returns the first damaged slot up to this number: it may belong to any user.
    pub(super) fn first_damaged_up_to(&self, number: u32) -> Option<u32> {
        self.damaged.keys().filter(|slot| **slot <= number).min().copied()
    }

    /// Returns the users with several slots, none of them damaged.
    pub(super) fn with_several_slots(&self) -> Vec<[u8; 32]> {
        let whole = |slots: &[u32]| slots.iter().all(|slot| self.slots.contains_key(slot));
        let several = self.by_token.iter().filter(|(_, slots)| slots.len() > 1 && whole(slots));
        several.map(|(token, _)| *token).collect()
    }

    pub(super) fn slots_of(&self, person: &[u8; 32]) -> Vec<u32> {
        self.by_token.get(person).cloned().unwrap_or_default()
    }

    pub(super) fn slot_at(&self, number: u32) -> Option<&UserSlot> {
        self.slots.get(&number).map(AsRef::as_ref)
    }

    /// Returns `true` if the slot was destroyed since the keyring was opened.
    pub(super) fn was_destroyed(&self, number: u32) -> bool {
        self.destroyed.contains(&number)
    }

    pub(super) fn forget_destroyed(&mut self) {
        self.destroyed.clear();
    }

    pub(super) fn is_damaged(&self, number: u32) -> bool {
        self.damaged.contains_key(&number)
    }

    /// Returns the bytes of a slot for disk, with a rewrapped secret if it has one.
    pub(super) fn rewrapped_slot<E>(
        &self,
        number: u32,
        rewrap: impl FnOnce(&UserSlot) -> Result<UserSlot, E>,
    ) -> Result<(Option<Box<UserSlot>>, [u8; SLOT_BYTES]), E> {
        if let Some(bytes) = self.damaged.get(&number) {
            return Ok((None, *bytes));
        }
        let Some(person) = self.slots.get(&number) else {
            return Ok((None, Slot::Erased.encode(number)));
        };
        let person = Box::new(rewrap(person)?);
        Ok((Some(person.clone()), Slot::User(person).encode(number)))
    }

    /// Replaces the wrapped secrets by those under another master key.
    pub(super) fn replace_wrapped(&mut self, wrapped: HashMap<u32, Box<UserSlot>>) {
        self.slots = wrapped;
    }

    pub(super) fn cached(&self, number: u32) -> Option<Arc<SlotKeys>> {
        let retired = || self.retired.values().flatten().find(|holder| holder.slot == number);
        self.cached.get(&number).or_else(retired).map(Arc::clone)
    }

    pub(super) fn cache(&mut self, holder: &Arc<SlotKeys>) {
        if self.cached.len() >= MAX_CACHED_KEYS {
            let one = self.cached.keys().next().copied();
            one.and_then(|one| self.cached.remove(&one));
        }
        self.cached.insert(holder.slot, Arc::clone(holder));
    }

    /// Caches destroyed keys of a user for readers of older views.
    pub(super) fn cache_retired(&mut self, person: [u8; 32], holders: Vec<Arc<SlotKeys>>) {
        self.retired.entry(person).or_default().extend(holders);
    }

    pub(super) fn retired(&self, person: &[u8; 32]) -> &[Arc<SlotKeys>] {
        self.retired.get(person).map_or(&[], Vec::as_slice)
    }

    /// Drops the destroyed keys of a user, up to a slot.
    pub(super) fn drop_retired(&mut self, person: &[u8; 32], to: u32) {
        if let Some(retired) = self.retired.get_mut(person) {
            retired.retain(|holder| holder.slot > to);
        }
    }
}
