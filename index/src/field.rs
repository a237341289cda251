//! Fields that grains are found by: the closed set of them, and the 8-byte digests of their values.
//!
//! A digest stands for a value in a key, so that values of any length take the same few bytes. Two values may
//! share a digest: a lookup then returns one candidate more, and the recheck of the grain drops it. This
//! module knows no tables.

use grainstore_format::ContentAddress;
use sha2::{Digest as _, Sha256};

use crate::term::TermValue;

/// An indexed field.
///
/// ```
/// use grainstore_index::Field;
///
/// assert_eq!(Field::from_payload_name("user_id"), Some(Field::User));
/// assert_eq!(Field::from_payload_name("subject"), None);
/// assert_eq!(Field::Domain("hc:patient_id").name(), "hc:patient_id");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field<'a> {
    /// One of `structural_tags`.
    Tag,
    /// `user_id`.
    User,
    /// `session_id`.
    Session,
    /// `run_id`.
    Run,
    /// `parent_message_id`: finds the replies to a message.
    Parent,
    /// An address in `derived_from`: finds the grains derived from a grain.
    Derived,
    /// The `hash` of one of `related_to`.
    Related,
    /// `processing_basis`: an address or a legal basis.
    Basis,
    /// A string inside an object that is a map, at any depth.
    ObjectLeaf,
    /// One of `depends_on`.
    Depends,
    /// One of `premises`.
    Premise,
    /// `prior_consent`: the grant a consent renews or withdraws.
    PriorConsent,
    /// The `user_id`, possibly empty, of a grain that states how long it must be kept: by `retention_policy`,
    /// by `fin:retention_years` at the top or in `context`, or by an invalidation policy that falls back to a
    /// hold.
    Retained,
    /// A field of a domain profile by its full name, e.g. `hc:patient_id`, at the top of the payload or in
    /// `context` (OMS Appendix A). Numbers are written as by [`number_text`], booleans as `true` and `false`.
    Domain(&'a str),
}

/// Added to the leading byte of a digest whose value is a blind token.
const BLINDED_BIT: u8 = 0x80;
/// Leading bytes of the digests of objects: text, and a map.
const OBJECT_TEXT: u8 = 0x40;
const OBJECT_MAP: u8 = 0x41;
/// Kinds of blind tokens beside the fields; no field has one of these bytes.
pub(crate) const BLIND_SUBJECT: u8 = 0x20;
pub(crate) const BLIND_RELATION: u8 = 0x21;
pub(crate) const BLIND_OBJECT: u8 = OBJECT_TEXT;
pub(crate) const BLIND_MAP: u8 = OBJECT_MAP;

/// The fields that are read from exactly one payload field each.
const PAYLOAD_FIELDS: [Field<'static>; 11] = [
    Field::Tag,
    Field::User,
    Field::Session,
    Field::Run,
    Field::Parent,
    Field::Derived,
    Field::Related,
    Field::Basis,
    Field::Depends,
    Field::Premise,
    Field::PriorConsent,
];

impl Field<'static> {
    /// Returns the field read from a payload field; `None` if its values are not indexed by this table. The
    /// parts of a triple and domain fields are looked up in other ways.
    #[must_use]
    pub fn from_payload_name(name: &str) -> Option<Self> {
        PAYLOAD_FIELDS.into_iter().find(|field| field.name() == name)
    }
}

impl Field<'_> {
    /// The byte that stands for it in keys and leads its digests. Stored on disk.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Tag => 1,
            Self::User => 2,
            Self::Session => 3,
            Self::Run => 4,
            Self::Parent => 5,
            Self::Derived => 6,
            Self::Related => 7,
            Self::Basis => 8,
            Self::ObjectLeaf => 9,
            Self::Depends => 10,
            Self::Premise => 11,
            Self::Domain(_) => 12,
            Self::PriorConsent => 13,
            Self::Retained => 14,
        }
    }

    /// The payload field it reads, for explanations; for a domain field its name.
    #[must_use]
    pub const fn name(&self) -> &str {
        match self {
            Self::Tag => "structural_tags",
            Self::User => "user_id",
            Self::Session => "session_id",
            Self::Run => "run_id",
            Self::Parent => "parent_message_id",
            Self::Derived => "derived_from",
            Self::Related => "related_to",
            Self::Basis => "processing_basis",
            Self::ObjectLeaf => "object",
            Self::Depends => "depends_on",
            Self::Premise => "premises",
            Self::PriorConsent => "prior_consent",
            Self::Retained => "retention_policy",
            Self::Domain(name) => name,
        }
    }

    /// Returns `true` if its tokens do not depend on the owner of a grain. Such values are looked up before
    /// the owner is known.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Self::User | Self::Retained) || self.holds_addresses()
    }

    /// Normalises a value: the prefix `sha256:` of an address is dropped.
    pub(crate) fn normalize(self, text: &str) -> &str {
        match self.holds_addresses() {
            true => ContentAddress::digits(text),
            false => text,
        }
    }

    /// Returns `true` if its values are addresses, which are equal with and without `sha256:`.
    const fn holds_addresses(self) -> bool {
        matches!(
            self,
            Self::Parent
                | Self::Derived
                | Self::Related
                | Self::Basis
                | Self::Depends
                | Self::Premise
                | Self::PriorConsent
        )
    }
}

/// A field and the digest of its value, as stored in keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FieldValue {
    pub(crate) field: u8,
    pub(crate) digest: Digest,
}

impl FieldValue {
    /// Computes the stored form of a value.
    pub(crate) fn of(field: Field<'_>, word: TermValue<'_>) -> Self {
        let word = match word {
            TermValue::Plain(text) => TermValue::Plain(field.normalize(text)),
            token => token,
        };
        let name = if let Field::Domain(name) = field { Some(name) } else { None };
        Self { field: field.byte(), digest: Digest::with_lead(field.byte(), name, word) }
    }
}

/// The first 8 bytes of a SHA-256, which stand for a value in a key.
///
/// ```
/// use grainstore_index::Digest;
///
/// assert_eq!(Digest::of_text("tea".into()), Digest::of_text("tea".into()));
/// assert_ne!(Digest::of_text("tea".into()), Digest::of_text("jazz".into()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub(crate) [u8; 8]);

impl Digest {
    /// Its first 4 bytes, used beside a subject or relation: there they give one false candidate in some
    /// thousands.
    pub(crate) fn prefix(self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.0;
        [a, b, c, d]
    }

    /// The digest of an object that is text.
    #[must_use]
    pub fn of_text(object: TermValue<'_>) -> Self {
        Self::with_lead(OBJECT_TEXT, None, object)
    }

    /// The digest of an object that is a map, from the SHA-256 of its canonical MessagePack.
    #[must_use]
    pub fn of_map(hash: &[u8; 32]) -> Self {
        Self::truncated(Sha256::new().chain_update([OBJECT_MAP]).chain_update(hash))
    }

    /// Hashes `lead:1 (length:8 name)? value`. A token has another leading byte than a text.
    fn with_lead(lead: u8, name: Option<&str>, word: TermValue<'_>) -> Self {
        let (lead, value) = match &word {
            TermValue::Plain(text) => (lead, text.as_bytes()),
            TermValue::Token(token) => (lead | BLINDED_BIT, token.as_slice()),
        };
        let mut hash = Sha256::new().chain_update([lead]);
        if let Some(name) = name {
            let length = u64::try_from(name.len()).unwrap_or(u64::MAX);
            hash = hash.chain_update(length.to_be_bytes()).chain_update(name);
        }
        Self::truncated(hash.chain_update(value))
    }

    fn truncated(hash: Sha256) -> Self {
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        Self([a, b, c, d, e, f, g, h])
    }
}

/// Writes a number as the text it is indexed under: equal integers and floats give equal text.
///
/// ```
/// use grainstore_index::number_text;
///
/// assert_eq!(number_text(2.0), "2");
/// assert_eq!(number_text(0.5), "0.5");
/// ```
#[must_use]
pub fn number_text(number: f64) -> String {
    // Adding zero turns -0.0 into 0.0.
    format!("{}", number + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_kit::hex;

    fn of(field: Field<'_>, word: TermValue<'_>) -> Digest {
        FieldValue::of(field, word).digest
    }

    #[test]
    fn digests_have_these_bytes() {
        for (digest, expected) in [
            (of(Field::Tag, "t".into()), "a06347069e3b92f3"),
            (of(Field::Domain("hc:x"), "t".into()), "b7554180eace6987"),
            (of(Field::Tag, TermValue::Token([7; 32])), "baa6b52db31b520f"),
            (Digest::of_text("dark mode".into()), "71c76866cfd79037"),
            (Digest::of_map(&[7; 32]), "446dfab47e2537d7"),
        ] {
            assert_eq!(hex(&digest.0), expected);
        }
    }

    #[test]
    fn equal_texts_of_different_fields_differ() {
        let others =
            [Field::ObjectLeaf, Field::Retained, Field::Domain("hc:a"), Field::Domain("hc:b")];
        let fields = [&PAYLOAD_FIELDS[..], &others].concat();
        let mut digests: Vec<Digest> = fields.iter().map(|field| of(*field, "x".into())).collect();
        digests.push(Digest::of_text("x".into()));
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), fields.len() + 1);
    }

    #[test]
    fn a_name_does_not_run_into_its_value() {
        let of = |name, value: &'static str| of(Field::Domain(name), value.into());
        assert_ne!(of("hc:a", "bc"), of("hc:ab", "c"));
    }

    #[test]
    fn addresses_count_with_and_without_their_prefix() {
        let of = |field, text: &'static str| of(field, text.into());
        assert_eq!(of(Field::Parent, "sha256:ab"), of(Field::Parent, "ab"));
        assert_ne!(of(Field::Tag, "sha256:ab"), of(Field::Tag, "ab"));
    }

    #[test]
    fn numbers_of_one_value_are_one_text() {
        for (number, text) in [
            (5.0, "5"),
            (-0.0, "0"),
            (0.0, "0"),
            (2.5, "2.5"),
            (-3.0, "-3"),
            (1e21, "1000000000000000000000"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }
}
