//! The keys of one keyholder, a person or the store itself: one to encrypt with, one a purpose to
//! blind with. Knows neither whose they are nor where they are used.

use std::sync::Arc;

use grainstore_index::Blind;

use super::secret::{Cipher, Secret, Tokens};

/// The version of every derived key. Another way to use them is another version.
const DATA: &str = "grainstore data v1";
const INDEX: &str = "grainstore index tokens v1";
const TEXT: &str = "grainstore text tokens v1";

/// Keys derived from one secret.
pub(crate) struct Holder {
    /// The slot the secret lies in; 0 is the store's.
    pub(crate) slot: u32,
    pub(crate) data: Cipher,
    index: Tokens,
    text: Tokens,
    /// What blinds addresses, whoever's grain it is.
    shared: Arc<Tokens>,
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holder(slot {})", self.slot)
    }
}

impl Holder {
    pub(crate) fn new(slot: u32, secret: &Secret, salt: &Secret, shared: &Arc<Tokens>) -> Self {
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

impl Blind for Holder {
    fn own(&self, kind: u8, text: &[u8]) -> [u8; 32] {
        self.index.of(kind, &[text])
    }

    fn shared(&self, kind: u8, text: &[u8]) -> [u8; 32] {
        self.shared.of(kind, &[text])
    }

    fn word(&self, term: &str) -> [u8; 32] {
        self.text.of(0, &[term.as_bytes()])
    }
}
