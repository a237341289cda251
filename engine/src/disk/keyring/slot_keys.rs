//! The keys of one keyring slot, a user's or the store's: one for encryption, and one for each purpose of
//! blind tokens. Does not know which user they belong to, nor which rows use them.

use std::sync::Arc;

use grainstore_index::Blinder;

use super::secret::{Cipher, Secret, TokenKey};

/// HKDF info of each derived key, with a version: a change of use gets another version.
const DATA_KEY_INFO: &str = "grainstore data v1";
const INDEX_TOKEN_INFO: &str = "grainstore index tokens v1";
const TEXT_TOKEN_INFO: &str = "grainstore text tokens v1";

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
            data: key(DATA_KEY_INFO).cipher(),
            index: key(INDEX_TOKEN_INFO).token_key(),
            text: key(TEXT_TOKEN_INFO).token_key(),
            shared: Arc::clone(shared),
        }
    }
}

impl Blinder for SlotKeys {
    fn own_token(&self, kind: u8, text: &[u8]) -> [u8; 32] {
        self.index.token(kind, &[text])
    }

    fn shared_token(&self, kind: u8, text: &[u8]) -> [u8; 32] {
        self.shared.token(kind, &[text])
    }

    fn term_token(&self, term: &str) -> [u8; 32] {
        self.text.token(0, &[term.as_bytes()])
    }
}
