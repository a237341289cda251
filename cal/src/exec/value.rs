//! Values of fields, read from encoded and decoded grains alike: those that ORDER BY and dedup compare, and
//! those that SELECT, GROUP BY and the extractors return.

use std::cmp::Ordering;

use grainstore_format::{
    ContentAddress, EpochMs, Grain, GrainRef, GrainState, GrainType, Value, ValueRef,
    VerificationStatus,
};

use crate::ast::Extractor;
use crate::check::plan::SortKey;
use crate::fields::Field;
use crate::memory::{Candidate, Hit};

/// A sort key. Grains without a value sort last.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) enum SortValue {
    Integer(i64),
    Number(f64),
    Text(String),
    Missing,
}

/// The bound up to which a 64-bit float represents every whole number exactly.
const MAX_EXACT_FLOAT_INT: u64 = 1 << 53;

/// A key by which dedup distinguishes grains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DedupKey {
    Integer(i64),
    Number(u64),
    Text(String),
    /// Any other value as JSON, such as an object that is a map.
    Json(String),
}

/// Access to the fields of a grain, encoded or decoded.
pub(super) trait GrainFields {
    fn grain_type(&self) -> GrainType;
    fn text(&self, name: &str) -> Option<&str>;
    fn number(&self, name: &str) -> Option<f64>;
    fn time(&self) -> EpochMs;
    fn awaits_review(&self, status: VerificationStatus) -> bool;
    /// Returns a copy of any field.
    fn to_value(&self, name: &str) -> Option<Value>;
}

impl GrainFields for GrainRef<'_> {
    fn grain_type(&self) -> GrainType {
        GrainRef::grain_type(self)
    }
    fn text(&self, name: &str) -> Option<&str> {
        GrainRef::text(self, name)
    }
    fn number(&self, name: &str) -> Option<f64> {
        GrainRef::number(self, name)
    }
    fn time(&self) -> EpochMs {
        GrainRef::time(self)
    }
    fn awaits_review(&self, status: VerificationStatus) -> bool {
        GrainRef::awaits_review(self, status)
    }
    fn to_value(&self, name: &str) -> Option<Value> {
        self.get(name).as_ref().map(ValueRef::to_value)
    }
}

impl GrainFields for Grain {
    fn grain_type(&self) -> GrainType {
        Grain::grain_type(self)
    }
    fn text(&self, name: &str) -> Option<&str> {
        Grain::text(self, name)
    }
    fn number(&self, name: &str) -> Option<f64> {
        Grain::number(self, name)
    }
    fn time(&self) -> EpochMs {
        Grain::time(self)
    }
    fn awaits_review(&self, status: VerificationStatus) -> bool {
        Grain::awaits_review(self, status)
    }
    fn to_value(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}

/// A grain of a scan or of an answer, borrowed, with its state and score.
#[derive(Clone, Copy)]
pub(super) struct HitRef<'g> {
    pub(super) address: ContentAddress,
    pub(super) grain: &'g dyn GrainFields,
    pub(super) state: &'g GrainState,
    pub(super) score: f64,
}

impl<'g> From<&'g Hit> for HitRef<'g> {
    fn from(hit: &'g Hit) -> Self {
        let Hit { address, grain, state, score } = hit;
        Self { address: *address, grain, state, score: score.value }
    }
}

impl<'g> From<&Candidate<'g>> for HitRef<'g> {
    fn from(candidate: &Candidate<'g>) -> Self {
        let Candidate { address, grain, state, score } = *candidate;
        Self { address, grain, state, score: score.value }
    }
}

impl HitRef<'_> {
    /// Returns the value of a field under its CAL name and in its CAL form; `None` if the grain has none.
    pub(super) fn field(&self, field: &Field) -> Option<Value> {
        let grain = self.grain;
        match field.name {
            "type" => Some(grain.grain_type().name().into()),
            "time" => Some(grain.time().get().into()),
            "hash" => Some(self.address.to_string().into()),
            "score" => Some(self.score.into()),
            "contradicted" => Some(self.state.contradicted.into()),
            "verification_status" => Some(self.state.verification_status.name().into()),
            "action_phase" => Some(grain.text("action_phase").unwrap_or("complete").into()),
            "consent_action" => {
                let withdrawal = grain.to_value(field.payload)?.as_bool()?;
                Some(if withdrawal { "withdraw" } else { "grant" }.into())
            }
            "purpose" => {
                grain.to_value("purpose").or_else(|| join_texts(&grain.to_value("scope")?))
            }
            "context" => {
                let context = grain.to_value("context")?;
                let context = context.as_map()?;
                context.get("id").or_else(|| context.get("name")).cloned()
            }
            // An ownership belief without a confidence is certain (OMS 12.5.3).
            "confidence" => {
                grain.to_value(field.payload).or_else(|| Some(grain.number(field.payload)?.into()))
            }
            _ => grain.to_value(field.payload),
        }
    }

    /// Returns the dedup key of a field; `None` if the grain has no value.
    pub(super) fn dedup_key(&self, field: &Field) -> Option<DedupKey> {
        DedupKey::of(&self.field(field)?)
    }

    /// Returns the sort key of a field.
    pub(super) fn sort_value(&self, field: &Field) -> SortValue {
        let grain = self.grain;
        match field.name {
            "time" => SortValue::Integer(grain.time().get()),
            "score" => SortValue::Number(self.score),
            "verification_status" => {
                SortValue::Text(self.state.verification_status.name().to_owned())
            }
            _ => match (grain.text(field.payload), grain.number(field.payload)) {
                (Some(text), _) => SortValue::Text(text.to_owned()),
                (None, Some(number)) => SortValue::Number(number),
                (None, None) => SortValue::Missing,
            },
        }
    }

    /// Returns `true` if it is a reasoning that asks for a review and has had none.
    pub(super) fn awaits_review(&self) -> bool {
        self.grain.awaits_review(self.state.verification_status)
    }

    /// Returns the value an extractor takes from the grain.
    pub(super) fn extract(&self, extractor: Extractor) -> Option<Value> {
        match extractor {
            Extractor::Subjects => self.grain.to_value("subject"),
            Extractor::Objects => self.grain.to_value("object"),
            Extractor::Hashes => Some(self.address.to_string().into()),
        }
    }
}

/// Joins the texts of a list with ", ".
fn join_texts(list: &Value) -> Option<Value> {
    let texts: Option<Vec<&str>> = list.as_array()?.iter().map(Value::as_str).collect();
    Some(texts?.join(", ").into())
}

/// Compares two sort keys; missing values come last in either direction.
pub(super) fn compare(key: &SortKey, a: &SortValue, b: &SortValue) -> Ordering {
    match (a, b) {
        (SortValue::Missing, SortValue::Missing) => Ordering::Equal,
        (SortValue::Missing, _) => Ordering::Greater,
        (_, SortValue::Missing) => Ordering::Less,
        _ => {
            let ascending = a.partial_cmp(b).unwrap_or(Ordering::Equal);
            if key.descending { ascending.reverse() } else { ascending }
        }
    }
}

impl DedupKey {
    /// Returns the key of a value. 1 and 1.0 are the same number, however they are stored.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Str(text) => Some(Self::Text(text.clone())),
            other => match (other.as_i64(), other.as_f64()) {
                (Some(whole), _) if whole.unsigned_abs() > MAX_EXACT_FLOAT_INT => {
                    Some(Self::Integer(whole))
                }
                // Adding 0.0 turns -0.0 into 0.0, so that both have the same bits.
                (_, Some(number)) => Some(Self::Number((number + 0.0).to_bits())),
                (_, None) => serde_json::to_string(other).ok().map(Self::Json),
            },
        }
    }

    /// Returns the approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Integer(_) | Self::Number(_) => size_of::<Self>(),
            Self::Text(text) | Self::Json(text) => size_of::<Self>().saturating_add(text.len()),
        }
    }
}
