//! The keyring of an encrypted store: the master key wraps one random secret for each user and one for the
//! store; every other key is derived from those (ruling 26).
//!
//! Slots are appended and synced before their first use (those of a copy once its journal has them, see `copies`), and
//! zeroed on erasure. Rows name their slot; the keyring does not know grains.

mod copies;
mod provider;
mod secret;
mod slot;
mod slot_keys;
mod storage;
mod user_slots;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use grainstore_format::ContentAddress;

use self::provider::key_error;
use self::secret::{Cipher, TokenKey};
use self::slot::{SLOT_BYTES, Slot, StoreSlot, UserSlot, WRAPPED_SECRET_BYTES};
use self::storage::{KeyringFile, KeyringStorage, ReadOnlyKeyringFile};
use self::user_slots::UserSlots;
use crate::base::error::{Error, Result};
use crate::base::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use crate::disk::directory;
use crate::disk::journal::RecordTag;

pub(crate) use copies::count_sound_slots;
pub use provider::{Derivation, KeyFile, KeyProvider, MasterKey, Passphrase};
pub(crate) use secret::{Secret, fill_random};
pub(crate) use slot_keys::SlotKeys;

/// The generation of the first key of a person; each later key of theirs has the next.
const FIRST_GENERATION: u32 = 1;
/// The slot of the store itself.
pub(crate) const STORE_SLOT: u32 = 0;

const WRAP_KEY_INFO: &str = "grainstore wrap v1";
const SHARED_TOKEN_INFO: &str = "grainstore store tokens v1";
const STATE_PAD_INFO: &str = "grainstore states v1";

/// Kinds of tokens under the store's key, disjoint from the field numbers of the index.
const ADDRESS_TOKEN: u8 = 0xa0;
const USER_TOKEN: u8 = 0xa1;
const SUCCESSOR_TOKEN: u8 = 0xa2;
const LOST_ADDRESS_TOKEN: u8 = 0xa3;
const DESTROYED_TOKEN: u8 = 0xa4;
const ROW: u8 = 0xa5;
const KEY_PROOF: u8 = 0xa6;
const RECORD: u8 = 0xa7;

/// The keys of an open store.
pub(crate) struct Keyring {
    store_id: [u8; 16],
    /// The secret of the store, the HKDF salt of every derived key.
    salt: Secret,
    /// Key of tokens that are looked up before the user is known: addresses and user ids.
    shared: Arc<TokenKey>,
    state_pads: TokenKey,
    store: Arc<SlotKeys>,
    users: RwLock<UserSlots>,
    /// The highest slot that the truth records as used.
    recorded: AtomicU32,
    file: Mutex<KeyringSlots>,
}

/// The slots on disk, and the cipher that wraps their secrets.
struct KeyringSlots {
    medium: Box<dyn KeyringStorage>,
    store: StoreSlot,
    wrap: Cipher,
    /// Number of slots that the medium has, of a keyring that is a copy of its journal's: it has none that the journal may
    /// lack. `None` for one that is written before its slots are used.
    copied: Option<u32>,
}

/// All secrets wrapped under a new master key, and the cipher for it.
pub(crate) struct RewrappedKeyring {
    store: StoreSlot,
    wrap: Cipher,
    wrapped: HashMap<u32, Box<UserSlot>>,
    bytes: Vec<u8>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring(..)")
    }
}

impl Keyring {
    /// Creates the keyring of a new store in a directory.
    ///
    /// # Errors
    /// `ERR_KEY` if the provider has no key; `ERR_IO`.
    pub(crate) fn create(
        directory: &Path,
        provider: &dyn KeyProvider,
        store_id: [u8; 16],
    ) -> Result<Self> {
        Self::create_on(Box::new(KeyringFile::within(directory)?), provider, store_id)
    }

    fn create_on(
        medium: Box<dyn KeyringStorage>,
        provider: &dyn KeyProvider,
        store_id: [u8; 16],
    ) -> Result<Self> {
        let created = Self::new_on(medium, provider, store_id)?;
        let store = created.store_slot();
        created.slots().medium.replace(&store.bytes)?;
        Ok(created)
    }

    fn new_on(
        medium: Box<dyn KeyringStorage>,
        provider: &dyn KeyProvider,
        store_id: [u8; 16],
    ) -> Result<Self> {
        let derivation = provider.derivation()?;
        let wrap = wrapping_cipher(provider, &derivation, &store_id)?;
        let secret = Secret::random()?;
        let wrapped = [0; WRAPPED_SECRET_BYTES];
        let mut store = StoreSlot { store_id, derivation, master: 1, wrapped };
        store.wrapped = wrap_in(&wrap, &store.associated_data(), &secret)?;
        let slots = KeyringSlots { medium, store, wrap, copied: None };
        Ok(Self::of(secret, UserSlots::new(), slots))
    }

    fn slots(&self) -> MutexGuard<'_, KeyringSlots> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the keyring in a directory, `None` if there is none.
    ///
    /// # Errors
    /// `ERR_KEY` for a wrong key; `ERR_INTEGRITY` if the store's slot is damaged; `ERR_IO`.
    pub(crate) fn open(directory: &Path, provider: &dyn KeyProvider) -> Result<Option<Self>> {
        Self::open_on(Box::new(KeyringFile::within(directory)?), provider)
    }

    /// Opens the keyring without ever writing to it.
    ///
    /// # Errors
    /// As [`Keyring::open`].
    pub(crate) fn open_read_only(
        directory: &Path,
        provider: &dyn KeyProvider,
    ) -> Result<Option<Self>> {
        Self::open_on(Box::new(ReadOnlyKeyringFile(directory::keyring_path(directory))), provider)
    }

    fn open_on(
        mut medium: Box<dyn KeyringStorage>,
        provider: &dyn KeyProvider,
    ) -> Result<Option<Self>> {
        let Some(bytes) = medium.read()? else { return Ok(None) };
        // Bytes behind the last complete slot were never used: a slot is synced before its first use.
        let (slots, _) = bytes.as_chunks::<SLOT_BYTES>();
        Self::open_slots(medium, slots, provider).map(Some)
    }

    /// Opens a keyring with these slots, of which the storage has the bytes.
    fn open_slots(
        mut medium: Box<dyn KeyringStorage>,
        slots: &[[u8; SLOT_BYTES]],
        provider: &dyn KeyProvider,
    ) -> Result<Self> {
        let damaged = || Error::truth_damaged("the keyring does not begin with the store's slot");
        let (first, others) = slots.split_first().ok_or_else(damaged)?;
        let Slot::Store(store) = Slot::decode(STORE_SLOT, first)? else { return Err(damaged()) };
        let wrap = wrapping_cipher(provider, &store.derivation, &store.store_id)?;
        let secret = unwrap_in(&wrap, &store.associated_data(), &store.wrapped);
        let secret = secret.ok_or_else(|| key_error("the key is not the one of this store"))?;
        // The process that wrote the slots may have died before its sync, so they are written and synced again.
        medium.write_at(0, slots.as_flattened())?;
        let mut people = UserSlots::new();
        for slot in others {
            people.add_next(slot).ok_or_else(damaged)?;
        }
        let slots = KeyringSlots { medium, store: *store, wrap, copied: None };
        Ok(Self::of(secret, people, slots))
    }

    fn of(salt: Secret, people: UserSlots, file: KeyringSlots) -> Self {
        let key = |purpose| salt.derive(&file.store.store_id, purpose).token_key();
        let (shared, states) = (Arc::new(key(SHARED_TOKEN_INFO)), key(STATE_PAD_INFO));
        Self {
            store_id: file.store.store_id,
            state_pads: states,
            store: Arc::new(SlotKeys::new(STORE_SLOT, &salt, &salt, &shared)),
            shared,
            salt,
            users: RwLock::new(people),
            recorded: AtomicU32::new(0),
            file: Mutex::new(file),
        }
    }

    /// Identifier of the store it belongs to.
    pub(crate) fn store_id(&self) -> &[u8; 16] {
        &self.store_id
    }

    /// The keys of the store itself.
    pub(crate) fn store(&self) -> &Arc<SlotKeys> {
        &self.store
    }

    /// Returns `true` if there are users with grains: a slot that was never written under does not count.
    pub(crate) fn has_users(&self) -> bool {
        self.users().any_up_to(self.recorded.load(Ordering::Acquire))
    }

    /// Returns the last slot that was given, unless the truth records it as used already.
    pub(crate) fn unrecorded_slot(&self) -> Option<u32> {
        let last = self.users().next.saturating_sub(1);
        (last > self.recorded.load(Ordering::Acquire)).then_some(last)
    }

    /// Records that the truth lists the slots up to this as used.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a slot that does not exist: the keyring is older than the truth.
    pub(crate) fn record_slot(&self, slot: u32) -> Result<()> {
        if slot >= self.users().next {
            let message = "the keyring is older than the store, or cut short";
            let hint = match self.slots().copied {
                Some(_) => "restore the keyring of the journal; that of this copy is made from it",
                None => "put back the keyring the store had last; no older copy will do",
            };
            return Err(Error::truth_damaged(message).with_hint(hint));
        }
        self.recorded.fetch_max(slot, Ordering::AcqRel);
        Ok(())
    }

    /// Returns the mark that the truth stores for a destroyed slot. It cannot be forged without the store's
    /// key.
    pub(crate) fn destruction_mark(&self, slot: u32) -> [u8; 32] {
        self.shared.token(DESTROYED_TOKEN, &[&slot.to_be_bytes()])
    }

    /// Returns the slots that are zeroed on disk, of those that the truth records as used.
    pub(crate) fn destroyed_slots(&self) -> Vec<u32> {
        let (people, noted) = (self.users(), self.recorded.load(Ordering::Acquire));
        (1..people.next.min(noted.saturating_add(1)))
            .filter(|slot| !people.is_used(*slot))
            .collect()
    }

    /// Returns the number of slots, with that of the store: the number of the next one.
    pub(crate) fn slot_count(&self) -> u32 {
        self.users().next
    }

    /// Compares the slots with the destruction marks of the truth. A zeroed slot without a mark is damaged; a
    /// slot that is present in spite of its mark (a keyring from a backup) is destroyed again. A marked slot
    /// whose user also has a later one is left to the end of that key rotation, which handles the index
    /// first.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn reconcile_marks(&self, is_marked: impl Fn(u32) -> bool) -> Result<()> {
        let gone = self.destroyed_slots();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
        for slot in gone.into_iter().filter(|slot| !is_marked(*slot)) {
            people.add_damaged(slot, Slot::Erased.encode(slot));
        }
        // A copy takes part in no rotation.
        let single = match file.copied {
            Some(_) => people.all_slots(),
            None => people.single_slots(),
        };
        for (person, slot) in single.into_iter().filter(|(_, slot)| is_marked(*slot)) {
            file.medium.write_at(slot_offset(slot), &Slot::Erased.encode(slot))?;
            people.remove(&person, slot);
        }
        // The store is being opened: there are no views of before.
        people.forget_destroyed();
        Ok(())
    }

    /// Returns `true` if the slot was destroyed since the keyring was opened.
    pub(crate) fn was_destroyed(&self, slot: u32) -> bool {
        self.users().was_destroyed(slot)
    }

    /// Returns `true` if the slot is one of the keyring and cannot be read.
    pub(crate) fn is_slot_damaged(&self, slot: u32) -> bool {
        self.users().is_damaged(slot)
    }

    /// Returns the keys in a slot, `None` if they were destroyed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a slot that is damaged, that does not exist, or that the store's key does not
    /// open.
    pub(crate) fn slot_keys(&self, slot: u32) -> Result<Option<Arc<SlotKeys>>> {
        if slot == STORE_SLOT {
            return Ok(Some(Arc::clone(&self.store)));
        }
        let damaged = || Error::truth_damaged(format!("slot {slot} of the keyring does not open"));
        let person = {
            let people = self.users();
            if let Some(holder) = people.cached(slot) {
                return Ok(Some(holder));
            }
            if slot >= people.next || people.is_damaged(slot) {
                return Err(damaged());
            }
            match people.slot_at(slot) {
                Some(person) => person.clone(),
                None => return Ok(None),
            }
        };
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let secret = unwrap_in(&file.wrap, &person.associated_data(slot), &person.wrapped);
        let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
        // The slot may have been destroyed or rewrapped between the two locks.
        match (people.slot_at(slot), secret) {
            (None, _) => Ok(people.cached(slot)),
            (Some(_), None) => Err(damaged()),
            (Some(_), Some(secret)) => {
                let holder = Arc::new(SlotKeys::new(slot, &secret, &self.salt, &self.shared));
                people.cache(&holder);
                Ok(Some(holder))
            }
        }
    }

    /// Returns the keys that a user's grains are written under, `None` for a user without a slot.
    ///
    /// # Errors
    /// As [`Keyring::slot_keys`].
    pub(crate) fn user_keys(&self, user_id: &str) -> Result<Option<Arc<SlotKeys>>> {
        let person = self.user_token(user_id);
        let slot = self.slots_of(&person).last().copied();
        slot.map_or_else(
            || self.check_unclaimed(&person).map(|()| None),
            |slot| self.slot_keys(slot),
        )
    }

    /// Refuses a user while a damaged slot may be theirs: an answer would lack their grains, and a second slot
    /// would split them between two keys. It may be theirs if they have no slot, or if their first one is a
    /// later key of theirs or younger than the rows, and the damaged one lies before it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`.
    fn check_unclaimed(&self, person: &[u8; 32]) -> Result<()> {
        let people = self.users();
        let noted = self.recorded.load(Ordering::Acquire);
        let first = people.slots_of(person).first().copied();
        let may_lack = |damaged: &u32| {
            first.is_none_or(|first| {
                let is_later =
                    people.slot_at(first).is_some_and(|slot| slot.generation > FIRST_GENERATION);
                *damaged < first && (is_later || first > noted)
            })
        };
        match people.first_damaged_up_to(noted).filter(may_lack) {
            None => Ok(()),
            Some(slot) => {
                let message = format!("slot {slot} of the keyring has changed, and may be theirs");
                let hint = "close the store, and put back the keyring it had last";
                Err(Error::truth_damaged(message).with_hint(hint))
            }
        }
    }

    /// Returns all keys that a user's grains may be encrypted under.
    ///
    /// # Errors
    /// As [`Keyring::slot_keys`].
    pub(crate) fn all_user_keys(&self, user_id: &str) -> Result<Vec<Arc<SlotKeys>>> {
        let mut holders = Vec::new();
        let person = self.user_token(user_id);
        self.check_unclaimed(&person)?;
        for slot in self.slots_of(&person) {
            holders.extend(self.slot_keys(slot)?);
        }
        let people = self.users();
        let retired = people.retired(&person).iter();
        let is_new = |one: &&Arc<SlotKeys>| holders.iter().all(|other| other.slot != one.slot);
        let retired: Vec<_> = retired.filter(is_new).cloned().collect();
        holders.extend(retired);
        Ok(holders)
    }

    /// Returns the slots of a user, ascending; new rows are written under the last.
    pub(crate) fn slots_of(&self, person: &[u8; 32]) -> Vec<u32> {
        self.users().slots_of(person)
    }

    /// Gives a slot to each of these users who has none, durably.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a damaged slot may be theirs; `ERR_IO`.
    pub(crate) fn enroll<'u>(&self, user_ids: impl IntoIterator<Item = &'u str>) -> Result<()> {
        let (mut new, mut seen) = (Vec::new(), HashSet::new());
        {
            let people = self.users();
            for user_id in user_ids {
                let token = self.user_token(user_id);
                if !people.has(&token) && seen.insert(token) {
                    new.push((token, FIRST_GENERATION));
                }
            }
        }
        new.first().map_or(Ok(()), |(token, _)| self.check_unclaimed(token))?;
        if new.is_empty() { Ok(()) } else { self.append_slots(new) }
    }

    /// Gives a user a further slot, for rows written from now on. Rows under the former slots stay readable
    /// until those are destroyed.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn add_slot(&self, person: &[u8; 32]) -> Result<()> {
        let slot = self.slots_of(person).last().copied();
        let generation = {
            let people = self.users();
            let former = slot.and_then(|slot| people.slot_at(slot));
            former.map_or(0, |former| former.generation).saturating_add(1)
        };
        self.append_slots(vec![(*person, generation)])
    }

    /// Returns the users with a further slot who still have the former one: interrupted key rotations.
    pub(crate) fn users_in_rotation(&self) -> Vec<[u8; 32]> {
        self.users().with_several_slots()
    }

    /// Appends slots with new secrets, durably.
    fn append_slots(&self, new: Vec<([u8; 32], u32)>) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots are given only under the file lock; readers are not blocked while it is synced.
        let first = self.users().next;
        let mut bytes = Vec::with_capacity(new.len() * SLOT_BYTES);
        let mut slots = Vec::with_capacity(new.len());
        for (number, (token, generation)) in (first..).zip(new) {
            let mut person = UserSlot { token, generation, wrapped: [0; WRAPPED_SECRET_BYTES] };
            person.wrapped =
                wrap_in(&file.wrap, &person.associated_data(number), &Secret::random()?)?;
            let person = Box::new(person);
            bytes.extend_from_slice(&Slot::User(person.clone()).encode(number));
            slots.push((number, person));
        }
        if file.copied.is_none() {
            file.medium.write_at(slot_offset(first), &bytes)?;
        }
        let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
        for (number, person) in slots {
            people.next = number.saturating_add(1);
            people.add(number, person);
        }
        Ok(())
    }

    /// Destroys the secrets of a user up to a slot: what was encrypted under them is unreadable from now on,
    /// in every copy of the rows that goes with this keyring. Idempotent.
    ///
    /// # Errors
    /// `ERR_IO`: the secrets may or may not be gone; repeat the call.
    pub(crate) fn destroy(&self, person: &[u8; 32], to: u32) -> Result<()> {
        self.zero_slots(person, to)?;
        let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
        people.drop_retired(person, to);
        Ok(())
    }

    /// Destroys like [`Keyring::destroy`] once no row is encrypted under the slots any more, but caches the
    /// keys in memory, for readers of older views, until the store is closed.
    ///
    /// # Errors
    /// As [`Keyring::destroy`].
    pub(crate) fn retire(&self, person: &[u8; 32], to: u32) -> Result<()> {
        let slots = self.slots_of(person).into_iter().filter(|slot| *slot <= to);
        let holders = slots.filter_map(|slot| self.slot_keys(slot).transpose());
        let holders = holders.collect::<Result<Vec<_>>>()?;
        // Before they are gone: a reader in between would take a row for an erased one.
        self.users.write().unwrap_or_else(PoisonError::into_inner).cache_retired(*person, holders);
        self.zero_slots(person, to)
    }

    /// Zeroes slots on disk and drops them.
    fn zero_slots(&self, person: &[u8; 32], to: u32) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in self.slots_of(person).into_iter().filter(|slot| *slot <= to) {
            file.medium.write_at(slot_offset(slot), &Slot::Erased.encode(slot))?;
            let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
            people.remove(person, slot);
        }
        Ok(())
    }

    /// Wraps all secrets under another master key, for [`Keyring::rewrap`].
    ///
    /// # Errors
    /// `ERR_KEY` if the provider has no key; `ERR_INTEGRITY`; `ERR_IO`.
    pub(crate) fn rewrapped(&self, provider: &dyn KeyProvider) -> Result<RewrappedKeyring> {
        let derivation = provider.derivation()?;
        let wrap = wrapping_cipher(provider, &derivation, &self.store_id)?;
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let people = self.users();
        let master = file.store.master.saturating_add(1);
        let mut store = StoreSlot { derivation, master, ..file.store.clone() };
        store.wrapped = wrap_in(&wrap, &store.associated_data(), &self.salt)?;
        let mut bytes = Slot::Store(Box::new(store.clone())).encode(STORE_SLOT).to_vec();
        let mut wrapped = HashMap::new();
        for number in 1..people.next {
            let (person, slot) = people.rewrapped_slot(number, |person| {
                let damaged = || Error::truth_damaged("a slot of the keyring does not open");
                let secret =
                    unwrap_in(&file.wrap, &person.associated_data(number), &person.wrapped);
                let secret = secret.ok_or_else(damaged)?;
                let wrapped = wrap_in(&wrap, &person.associated_data(number), &secret)?;
                Ok::<_, Error>(UserSlot { wrapped, ..person.clone() })
            })?;
            wrapped.extend(person.map(|person| (number, person)));
            bytes.extend_from_slice(&slot);
        }
        Ok(RewrappedKeyring { store, wrap, wrapped, bytes })
    }

    /// Sees that what a provider has opens what was wrapped for it. What an exchange of the file overwrites
    /// is overwritten before that: a key that lay there is missed here.
    ///
    /// # Errors
    /// `ERR_KEY`; `ERR_IO`.
    pub(crate) fn check_opens(
        &self,
        provider: &dyn KeyProvider,
        new: &RewrappedKeyring,
    ) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.medium.read()?;
        let wrap = wrapping_cipher(provider, &new.store.derivation, &self.store_id)?;
        let opened = unwrap_in(&wrap, &new.store.associated_data(), &new.store.wrapped);
        opened
            .map(drop)
            .ok_or_else(|| key_error("the new key is another one when it is read again"))
    }

    /// Switches to secrets wrapped under another master key. No row is rewritten. Slots do not change between
    /// [`Keyring::rewrapped`] and this, since both run on the writer thread.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn rewrap(&self, new: RewrappedKeyring) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut people = self.users.write().unwrap_or_else(PoisonError::into_inner);
        file.medium.replace(&new.bytes)?;
        (file.store, file.wrap) = (new.store, new.wrap);
        people.replace_wrapped(new.wrapped);
        Ok(())
    }

    /// Returns the slots as they are on disk, for [`write_copy`].
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.medium.read()?.unwrap_or_default())
    }

    fn users(&self) -> RwLockReadGuard<'_, UserSlots> {
        self.users.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token that replaces an address on disk.
    pub(crate) fn address_token(&self, address: &ContentAddress) -> [u8; 32] {
        self.shared.token(ADDRESS_TOKEN, &[address.as_bytes()])
    }

    /// Returns the token that replaces a user id on disk.
    pub(crate) fn user_token(&self, user_id: &str) -> [u8; 32] {
        self.shared.token(USER_TOKEN, &[user_id.as_bytes()])
    }

    /// Returns the token that replaces the unknown address of the log entry at `sequence`.
    pub(crate) fn lost_address_token(&self, sequence: u64) -> [u8; 32] {
        self.shared.token(LOST_ADDRESS_TOKEN, &[&sequence.to_be_bytes()])
    }

    /// Returns the pad that hides an address inside a state record. It depends on the rest of the record, so
    /// no two records share one.
    pub(crate) fn state_pad(&self, record: &[u8]) -> [u8; 32] {
        self.state_pads.token(SUCCESSOR_TOKEN, &[record])
    }

    /// Returns the token of a row of a table, which enters the keyed sum over its rows, or is the tag of a block or a file.
    pub(crate) fn row_token(&self, table: u8, key: &[u8], value: &[u8]) -> [u8; 32] {
        self.state_pads.token(ROW, &[&[table], key, value])
    }

    /// Returns the tag of a journal record: of its header and of what follows the tag.
    pub(crate) fn record_tag(&self, header: &[u8], rest: &[u8]) -> RecordTag {
        self.state_pads.token(RECORD, &[header, rest])
    }

    /// Returns `true` if this is the tag of a journal record.
    pub(crate) fn is_record_tag(&self, header: &[u8], rest: &[u8], tag: &RecordTag) -> bool {
        self.state_pads.is_token(RECORD, &[header, rest], tag)
    }

    /// Returns the answer to a challenge, which only who has opened the keyring can tell.
    pub(crate) fn key_proof(&self, challenge: &[u8]) -> [u8; 32] {
        self.shared.token(KEY_PROOF, &[challenge])
    }
}

/// Writes slots into another directory.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn write_copy(directory: &Path, bytes: &[u8]) -> Result<()> {
    KeyringFile::within(directory)?.replace(bytes)
}

fn slot_offset(slot: u32) -> u64 {
    u64::from(slot).saturating_mul(SLOT_BYTES as u64)
}

/// Returns the cipher that wraps secrets under the provider's master key.
fn wrapping_cipher(
    provider: &dyn KeyProvider,
    derivation: &Derivation,
    store_id: &[u8; 16],
) -> Result<Cipher> {
    Ok(provider.master_key(derivation)?.0.derive(store_id, WRAP_KEY_INFO).cipher())
}

fn wrap_in(wrap: &Cipher, bound: &[u8], secret: &Secret) -> Result<[u8; WRAPPED_SECRET_BYTES]> {
    let wrapped = wrap.seal(bound, secret.bytes())?;
    wrapped.try_into().map_err(|_| Error::integrity("a wrapped secret has another length"))
}

fn unwrap_in(wrap: &Cipher, bound: &[u8], wrapped: &[u8; WRAPPED_SECRET_BYTES]) -> Option<Secret> {
    let opened = zeroize::Zeroizing::new(wrap.open(bound, wrapped)?);
    opened.as_slice().try_into().ok().map(Secret::new)
}

#[cfg(test)]
mod tests;
