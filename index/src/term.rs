//! Terms: the texts the dictionary gives ids to, each of a kind, in plaintext or as blind tokens.
//!
//! It knows no byte layouts; `layout` does.

use grainstore_format::SHARED_PARTITION;

/// Returns the partition of a namespace: the namespace itself, or the shared one if it is empty (OMS 28.2).
pub(crate) fn partition(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED_PARTITION } else { namespace }
}

/// The kind of a term. The same text is a different term in each kind.
///
/// Only kinds that are enumerated, or gain from rows lying close together, have ids. All other values are
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

/// The value of a term or field: plaintext, or a blind token in an encrypted store.
///
/// ```
/// use grainstore_index::{OwnedTermValue, TermValue};
///
/// let owned = OwnedTermValue::Plain("alice".to_owned());
/// assert_eq!(owned.as_value(), TermValue::from("alice"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TermValue<'a> {
    /// The text, in NFC.
    Plain(&'a str),
    /// A keyed hash of the text. Equal texts have equal tokens; prefixes are not preserved.
    Token([u8; 32]),
}

impl<'a> From<&'a str> for TermValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Plain(text)
    }
}

/// An owned [`TermValue`] that was read from an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnedTermValue {
    /// The text.
    Plain(String),
    /// A blind token.
    Token([u8; 32]),
}

impl OwnedTermValue {
    /// Borrows the value for a lookup.
    #[must_use]
    pub fn as_value(&self) -> TermValue<'_> {
        match self {
            Self::Plain(text) => TermValue::Plain(text),
            Self::Token(token) => TermValue::Token(*token),
        }
    }
}

/// A value of a kind: an entry of the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term<'a> {
    pub(crate) kind: TermKind,
    pub(crate) value: TermValue<'a>,
}

/// The id of a term: dense from 1 within its kind, in order of first appearance in the log. 0 is no term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TermId(u64);

impl TermId {
    /// No term. As a namespace: all of them.
    pub(crate) const NONE: Self = Self(0);
    /// The id of the first term.
    pub(crate) const FIRST: Self = Self(1);

    /// Wraps a number.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The id after this one. Ids end far below `u64::MAX`, see [`TermKind::last`].
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
}
