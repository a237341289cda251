//! The facts that a rule can test: a grain, its processing basis, and the circumstances of the action. They
//! are gathered elsewhere; nothing here reads a store.

use std::borrow::Cow;

use grainstore_format::{Grain, GrainRef, GrainType, Sensitivity, Value, int_key};
use serde::{Deserialize, Serialize};

/// Sensitivity of a grain, which the rules of a [`Preset`](crate::Preset) ask about (OMS 13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SensitivityLevel {
    /// No constraints.
    Public,
    /// Internal to an organisation.
    Internal,
    /// Personal data.
    Pii,
    /// Health data.
    Phi,
}

impl From<Sensitivity> for SensitivityLevel {
    fn from(sensitivity: Sensitivity) -> Self {
        match sensitivity {
            Sensitivity::Public => Self::Public,
            Sensitivity::Internal => Self::Internal,
            Sensitivity::Pii => Self::Pii,
            Sensitivity::Phi => Self::Phi,
        }
    }
}

/// The resolved `processing_basis` of a grain (ruling 39).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ProcessingBasis {
    /// The grain has none.
    #[default]
    Missing,
    /// A word; rules decide whether it names a legal basis.
    Word(String),
    /// A stored grant of consent, with the scope of its last version.
    Consent(Vec<String>),
    /// A grant that was withdrawn.
    Withdrawn,
    /// An address of no stored consent.
    Unknown,
}

/// The kinds of [`ProcessingBasis`], as named in rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BasisKind {
    Missing,
    Word,
    Consent,
    Withdrawn,
    Unknown,
}

impl ProcessingBasis {
    pub(super) fn kind(&self) -> BasisKind {
        match self {
            Self::Missing => BasisKind::Missing,
            Self::Word(_) => BasisKind::Word,
            Self::Consent(_) => BasisKind::Consent,
            Self::Withdrawn => BasisKind::Withdrawn,
            Self::Unknown => BasisKind::Unknown,
        }
    }
}

/// Access to the fields of a grain, decoded or encoded.
pub(crate) trait GrainFields {
    fn kind(&self) -> GrainType;

    fn namespace(&self) -> &str;

    /// The value of a top-level field.
    fn top(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The value of a field of `context`.
    fn within_context(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The sensitivity of its header, or the one its header would have.
    fn sensitivity(&self) -> Sensitivity;

    /// Returns `true` if some tag satisfies `is_such`.
    fn any_tag(&self, is_such: &mut dyn FnMut(&str) -> bool) -> bool;
}

const CONTEXT: &str = "context";
const TAGS: &str = "structural_tags";

impl GrainFields for Grain {
    fn kind(&self) -> GrainType {
        self.grain_type()
    }

    fn namespace(&self) -> &str {
        self.partition()
    }

    fn top(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(Cow::Borrowed)
    }

    fn within_context(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.map(CONTEXT)?.get(name).map(Cow::Borrowed)
    }

    fn sensitivity(&self) -> Sensitivity {
        let tagged = self.texts(TAGS).map(Sensitivity::of_tag).max();
        let stated = self.decoded_header().map(|header| header.flags.sensitivity());
        tagged.max(stated).unwrap_or(Sensitivity::Public)
    }

    fn any_tag(&self, is_such: &mut dyn FnMut(&str) -> bool) -> bool {
        self.texts(TAGS).any(is_such)
    }
}

impl GrainFields for GrainRef<'_> {
    fn kind(&self) -> GrainType {
        self.grain_type()
    }

    fn namespace(&self) -> &str {
        self.partition()
    }

    fn top(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(|value| Cow::Owned(value.to_value()))
    }

    fn within_context(&self, name: &str) -> Option<Cow<'_, Value>> {
        let value = self.get(CONTEXT)?.as_map()?.get(name)?;
        Some(Cow::Owned(value.to_value()))
    }

    fn sensitivity(&self) -> Sensitivity {
        self.header().flags.sensitivity()
    }

    fn any_tag(&self, is_such: &mut dyn FnMut(&str) -> bool) -> bool {
        let tags = self.get(TAGS).and_then(|tags| tags.as_array());
        tags.is_some_and(|tags| tags.iter().any(|tag| tag.as_str().is_some_and(&mut *is_such)))
    }
}

/// The facts of a decision.
#[derive(Clone, Copy)]
pub(crate) struct RuleFacts<'f> {
    pub(crate) grain: &'f dyn GrainFields,
    pub(crate) basis: &'f ProcessingBasis,
    /// Purposes of the session.
    pub(crate) purposes: &'f [String],
    /// True if the grain is under litigation hold.
    pub(crate) held: bool,
    /// True if a review verified the grain.
    pub(crate) verified: bool,
    /// True if the grain is, or will be, encrypted at rest.
    pub(crate) encrypted: bool,
}

impl RuleFacts<'_> {
    /// Returns `true` if the field is present and one of its values satisfies `is_such`. Fields of domain
    /// profiles, which have a colon in their name, are in `context`, some also under a short key (OMS A.7,
    /// Appendix C), and are read at the top level too; `a.b` is the field `b` of the map `a`.
    pub(super) fn any_value(&self, name: &str, is_such: &mut dyn FnMut(&Value) -> bool) -> bool {
        if self.grain.top(name).is_some_and(|value| is_such(&value)) {
            return true;
        }
        if name.contains(':') {
            let mut within =
                |key| self.grain.within_context(key).is_some_and(|value| is_such(&value));
            return within(name) || int_key(name).is_some_and(within);
        }
        let Some((outer, inner)) = name.split_once('.') else { return false };
        let Some(outer) = self.grain.top(outer) else { return false };
        outer.as_map().and_then(|map| map.get(inner)).is_some_and(is_such)
    }

    /// Returns `true` if the field is present and not empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.any_value(name, &mut |value| match value {
            Value::Str(text) => !text.trim().is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Map(fields) => !fields.is_empty(),
            _ => true,
        })
    }
}
