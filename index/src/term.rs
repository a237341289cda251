//! Terms: the words grains are found by, each of a kind, in plaintext or blinded.
//!
//! This module knows no bytes on disk; `keys` does.

use grainstore_format::SHARED;

/// The partition a namespace names: itself, or the shared one where it is empty (OMS 28.2).
pub(crate) fn partition(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED } else { namespace }
}

/// What a term names. The same text is a different term in each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TermKind {
    /// A partition of the store.
    Namespace,
    /// The subject of a triple.
    Subject,
    /// The relation of a triple.
    Relation,
    /// A `session_id`.
    Session,
    /// One of `structural_tags`.
    Tag,
}

/// What a term says: its plaintext, or a blind token where the store is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word<'a> {
    /// The text itself, in NFC.
    Plain(&'a str),
    /// A keyed hash of the text. Equal texts have equal tokens; prefixes cannot be seen.
    Token([u8; 32]),
}

impl<'a> From<&'a str> for Word<'a> {
    fn from(text: &'a str) -> Self {
        Self::Plain(text)
    }
}

/// A word of a kind: what the dictionary gives an id to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Term<'a> {
    pub(crate) kind: TermKind,
    pub(crate) word: Word<'a>,
}

impl<'a> Term<'a> {
    /// A term of this kind.
    #[must_use]
    pub const fn new(kind: TermKind, word: Word<'a>) -> Self {
        Self { kind, word }
    }

    /// A term in plaintext.
    #[must_use]
    pub const fn plain(kind: TermKind, text: &'a str) -> Self {
        Self::new(kind, Word::Plain(text))
    }

    /// A blinded term.
    #[must_use]
    pub const fn token(kind: TermKind, token: [u8; 32]) -> Self {
        Self::new(kind, Word::Token(token))
    }
}

/// The number the dictionary gave a term: dense from 0, in order of first appearance in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(u64);

impl TermId {
    /// An id from its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The id after this one; nothing after the last, which no log can reach.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}
