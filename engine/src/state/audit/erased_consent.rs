//! Metadata that the audit log keeps of a consent whose contents are erased (OMS 8.10, ruling 40): that it
//! was given or withdrawn, for which scopes and when, but not by whom or why.

use grainstore_format::{ArrayRef, GrainRef, Map, Value};
use serde::{Serialize, Serializer};

use crate::disk::blob::is_withdrawal;

/// Maximum number of scopes in a record, and characters of each.
const MAX_SCOPES: usize = 64;
const MAX_SCOPE_CHARS: usize = 64;

/// A consent without its contents, in an entry of [`Session::audit`](crate::Session::audit); the subject of
/// its entry is its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErasedConsent {
    /// True for a withdrawal of another consent.
    #[serde(rename = "kind", serialize_with = "kind")]
    pub is_withdrawal: bool,
    /// The scopes of the consent.
    pub scope: Vec<String>,
    /// Creation time, in epoch milliseconds.
    pub created_at: i64,
    /// Start of validity in epoch milliseconds, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// End of validity in epoch milliseconds, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<i64>,
}

/// Serializes the kind of a consent in place of whether it is a withdrawal.
fn kind<S: Serializer>(is_withdrawal: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *is_withdrawal { WITHDRAWAL } else { GRANT })
}

impl ErasedConsent {
    /// Extracts the metadata of a consent.
    pub(crate) fn from_grain(grain: &GrainRef<'_>) -> Self {
        let scope = grain.get("scope").and_then(|scope| scope.as_array());
        let scope = scope.iter().flat_map(ArrayRef::iter).filter_map(|scope| scope.as_str());
        let scope = scope.take(MAX_SCOPES);
        Self {
            is_withdrawal: is_withdrawal(grain),
            scope: scope.map(|scope| scope.chars().take(MAX_SCOPE_CHARS).collect()).collect(),
            created_at: grain.int("created_at").unwrap_or_default(),
            valid_from: grain.int("valid_from"),
            valid_to: grain.int("valid_to"),
        }
    }

    /// `grant` or `withdrawal`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        if self.is_withdrawal { WITHDRAWAL } else { GRANT }
    }

    pub(super) fn fields(&self) -> Map {
        let mut fields = Map::from([
            ("kind".to_owned(), Value::from(self.kind())),
            ("scope".to_owned(), Value::from(self.scope.clone())),
            ("created_at".to_owned(), Value::from(self.created_at)),
        ]);
        for (name, time) in [("valid_from", self.valid_from), ("valid_to", self.valid_to)] {
            fields.extend(time.map(|time| (name.to_owned(), Value::from(time))));
        }
        fields
    }

    pub(super) fn from_fields(fields: &Value) -> Option<Self> {
        let Value::Map(fields) = fields else { return None };
        let time = |name: &str| fields.get(name).map(Value::as_i64);
        let scope = fields.get("scope")?.as_array()?.iter();
        Some(Self {
            is_withdrawal: match fields.get("kind")?.as_str()? {
                WITHDRAWAL => true,
                GRANT => false,
                _ => return None,
            },
            scope: scope.map(|scope| scope.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            created_at: time("created_at")??,
            valid_from: time("valid_from").map_or(Some(None), |time| time.map(Some))?,
            valid_to: time("valid_to").map_or(Some(None), |time| time.map(Some))?,
        })
    }
}

const GRANT: &str = "grant";
const WITHDRAWAL: &str = "withdrawal";
