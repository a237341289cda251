//! The keys of one keyring slot, a user's or the store's: one for encryption, and one for each purpose of
//! blind tokens. Does not know which user they belong to, nor which rows use them.

use std::sync::Arc;

use grainstore_index::Blinder;

use super::secret::{Cipher, Secret, TokenKey};

/// HKDF info of each derived key, with a version: a change of use gets another version.
const DATA: &str = "grainstore data v1";
const INDEX: &str = "grainstore index tokens v1";
const TEXT: &str = "grainstore text tokens v1";

/// Keys derived from the secret of one slot.
pub(crate) struct SlotKeys {
    /// Number of the slot; 0 is the store's.
    pub(crate) slot: u32,
    pub(crate) data: Cipher,
    index: TokenKey,
    text: TokenKey,
    /// Key of tokens that do not depend on the user, such as those of addresses.
    shared: Arc<TokenKey>,
}

impl std::fmt::Debug for SlotKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holder(slot {})", self.slot)
    }
}

impl SlotKeys {
    pub(crate) fn new(slot: u32, secret: &Secret, salt: &Secret, shared: &Arc<TokenKey>) -> Self {
        let key = |purpose| secret.derive(salt.bytes(), purpose);
        Self {
            slot,
            data: key(DATA).cipher(),
            index: key(INDEX).tokens(),
            text: key(TEXT).tokens(),
            shared: Arc::clone(shared),
        }
    }
}

impl Blinder for SlotKeys {
    fn own_token(&self, kind: u8, text: &[u8]) -> [u8; 32] {
        self.index.of(kind, &[text])
    }

    fn shared_token(&self, kind: u8, text: &[u8]) -> [u8; 32] {
        self.shared.of(kind, &[text])
    }

    fn term_token(&self, term: &str) -> [u8; 32] {
        self.text.of(0, &[term.as_bytes()])
    }
}
