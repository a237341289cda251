//! Terms: the words the dictionary numbers, each of a kind, in plaintext or blinded.
//!
//! This module knows no bytes on disk; `keys` does.

use grainstore_format::SHARED;

/// The partition a namespace names: itself, or the shared one where it is empty (OMS 28.2).
pub(crate) fn partition(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED } else { namespace }
}

/// What a term names. The same text is a different term in each kind.
///
/// Only what is enumerated, or gains from lying close together, has numbers. Everything else is
/// found by a digest, see `field`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A partition of the store.
    Namespace,
    /// The subject of a triple.
    Subject,
    /// The relation of a triple.
    Relation,
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

/// A word that came out of an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// The text itself.
    Plain(String),
    /// A blind token.
    Token([u8; 32]),
}

impl Name {
    /// The word to look it up by.
    #[must_use]
    pub fn word(&self) -> Word<'_> {
        match self {
            Self::Plain(text) => Word::Plain(text),
            Self::Token(token) => Word::Token(*token),
        }
    }
}

/// A word of a kind: what the dictionary gives an id to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term<'a> {
    pub(crate) kind: TermKind,
    pub(crate) word: Word<'a>,
}

/// The number the dictionary gave a term: dense from 1 within its kind, in order of first
/// appearance in the log. 0 is no term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TermId(u64);

impl TermId {
    /// No term; of namespaces, all of them.
    pub(crate) const NONE: Self = Self(0);
    /// The id of the first term.
    pub(crate) const FIRST: Self = Self(1);

    /// An id from its number.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The id after this one. Ids end far below the end of the numbers, see [`TermKind::last`].
    pub(crate) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl TermKind {
    /// The last id a key has room for: namespaces take 4 bytes, the others 5.
    pub(crate) const fn last(self) -> TermId {
        match self {
            Self::Namespace => TermId((1 << 32) - 1),
            Self::Subject | Self::Relation => TermId((1 << 40) - 1),
        }
    }
}

/// The next id of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextIds {
    pub(crate) namespace: TermId,
    pub(crate) subject: TermId,
    pub(crate) relation: TermId,
}

impl NextIds {
    /// The counters of an empty dictionary.
    pub(crate) const FIRST: Self =
        Self { namespace: TermId::FIRST, subject: TermId::FIRST, relation: TermId::FIRST };

    /// The counter of a kind.
    pub(crate) fn of(&mut self, kind: TermKind) -> &mut TermId {
        match kind {
            TermKind::Namespace => &mut self.namespace,
            TermKind::Subject => &mut self.subject,
            TermKind::Relation => &mut self.relation,
        }
    }

    /// The greater of both counters, kind by kind.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            namespace: self.namespace.max(other.namespace),
            subject: self.subject.max(other.subject),
            relation: self.relation.max(other.relation),
        }
    }
}
