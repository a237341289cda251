//! What a rule can ask about: a grain, what it rests on, and the circumstances of what is to be done
//! with it. Gathered elsewhere; nothing here reads a store.

use std::borrow::Cow;

use grainstore_format::{Grain, GrainRef, GrainType, Sensitivity, Value, int_key};
use serde::{Deserialize, Serialize};

/// How sensitive a grain is (OMS 13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No constraints.
    Public,
    /// Internal to an organisation.
    Internal,
    /// Personal data.
    Pii,
    /// Health data.
    Phi,
}

impl From<Sensitivity> for Level {
    fn from(sensitivity: Sensitivity) -> Self {
        match sensitivity {
            Sensitivity::Public => Self::Public,
            Sensitivity::Internal => Self::Internal,
            Sensitivity::Pii => Self::Pii,
            Sensitivity::Phi => Self::Phi,
        }
    }
}

/// What the `processing_basis` of a grain is (ruling 39 of the project's reading).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Basis {
    /// It has none.
    #[default]
    Missing,
    /// A word, of which a rule says whether it names a legal basis.
    Word(String),
    /// A grant of consent, with its scope as it stands now.
    Consent(Vec<String>),
    /// A grant that was withdrawn.
    Withdrawn,
    /// The address of no consent of the store.
    Unknown,
}

/// The kinds of [`Basis`], as rules name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BasisKind {
    Missing,
    Word,
    Consent,
    Withdrawn,
    Unknown,
}

impl Basis {
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

/// The fields of a grain, however it lies in memory.
pub(crate) trait Fields {
    fn kind(&self) -> GrainType;

    fn namespace(&self) -> &str;

    /// The value of a top-level field.
    fn top(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The value of a field of `context`.
    fn within_context(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The sensitivity its header has, or would have.
    fn sensitivity(&self) -> Sensitivity;

    /// Whether some tag is such.
    fn any_tag(&self, is_such: &mut dyn FnMut(&str) -> bool) -> bool;
}

const CONTEXT: &str = "context";
const TAGS: &str = "structural_tags";

impl Fields for Grain {
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

impl Fields for GrainRef<'_> {
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

/// What a decision is about.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'f> {
    pub(crate) grain: &'f dyn Fields,
    pub(crate) basis: &'f Basis,
    /// What the session says it is for.
    pub(crate) purposes: &'f [String],
    /// Whether it is under litigation hold.
    pub(crate) held: bool,
    /// Whether a review found it right.
    pub(crate) verified: bool,
    /// Whether its bytes are, or will be, encrypted at rest.
    pub(crate) encrypted: bool,
}

impl Facts<'_> {
    /// Whether the field is there and one of its values is such. The fields of domain profiles, which
    /// have a colon in their name, lie in `context`, some also under a short key (OMS A.7, Appendix C),
    /// and are read at the top level too; `a.b` is the field `b` of the map `a`.
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

    /// Whether the field is there and not empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.any_value(name, &mut |value| match value {
            Value::Str(text) => !text.trim().is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Map(fields) => !fields.is_empty(),
            _ => true,
        })
    }
}
