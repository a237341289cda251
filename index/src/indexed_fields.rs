//! The fields of a grain that the indexes answer. This module knows fields, not bytes or ids.

use grainstore_format::{
    ArrayRef, DeviceProfile, Encoding, EpochMs, GrainRef, GrainType, MapRef, SHARED_PARTITION,
    Value, ValueRef, encode_value, int_name, is_domain_field,
};
use sha2::{Digest as _, Sha256};

use crate::blind::{self, Blinder};
use crate::field::{Digest, Field, FieldValue, number_text};
use crate::lookup::Object;
use crate::term::TermValue;

/// The indexed fields of one grain. In an encrypted store they are blind tokens.
///
/// ```
/// use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
/// use grainstore_index::{IndexedFields, TermValue};
///
/// let time = EpochMs::new(1_768_471_200_000);
/// let grain = BeliefBuilder::new(time, "alice", "mg:prefers", "tea", 0.9);
/// let grain = grain.namespace("work").build()?;
/// let blob = grain.encode(Encoding::MessagePack)?;
/// let grain = GrainRef::new(blob.bytes())?;
/// let fields = IndexedFields::from_grain(&grain);
/// assert_eq!((fields.namespace, fields.time), (TermValue::Plain("work"), time));
/// assert_eq!(fields.subject, Some(TermValue::Plain("alice")));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedFields<'a> {
    /// The partition it belongs to; never empty.
    pub namespace: TermValue<'a>,
    /// Its type, by header byte.
    pub grain_type: GrainType,
    /// The subject of its triple. Each part of a triple is indexed even if the others are absent.
    pub subject: Option<TermValue<'a>>,
    /// The relation of its triple.
    pub relation: Option<TermValue<'a>>,
    /// The object of its triple.
    pub object: Option<Digest>,
    /// Its `timestamp_ms`, else its `created_at`.
    pub time: EpochMs,
    /// The values of indexed fields, as stored in keys; repeated values count once.
    pub(crate) values: Vec<FieldValue>,
    /// True if the values are blind tokens. The tie-breaker of its postings is then zero, because it would
    /// reveal two bytes of the address.
    pub(crate) blinded: bool,
}

/// Collects the indexed fields of a grain.
struct FieldCollector<'a, 'b> {
    facts: IndexedFields<'a>,
    /// Computes the tokens; `None` in a plaintext store.
    blind: Option<&'b dyn Blinder>,
}

impl<'a> IndexedFields<'a> {
    /// The fields of a grain with a namespace, a type and a time alone.
    #[must_use]
    pub fn new(namespace: TermValue<'a>, grain_type: GrainType, time: EpochMs) -> Self {
        let (subject, relation, object) = (None, None, None);
        let (values, blinded) = (Vec::new(), false);
        Self { namespace, grain_type, subject, relation, object, time, values, blinded }
    }

    /// Reads the fields of a plaintext grain in one pass.
    #[must_use]
    pub fn from_grain(grain: &GrainRef<'a>) -> Self {
        Self::from_grain_blinded(grain, None)
    }

    /// Reads the fields of a grain as tokens of its key holder. Namespace, type and time stay plain.
    #[must_use]
    pub fn from_grain_blinded(grain: &GrainRef<'a>, blind: Option<&dyn Blinder>) -> Self {
        let header_ms = i64::from(grain.header().created_at_sec).saturating_mul(1000);
        let time = EpochMs::new(header_ms);
        let mut facts = Self::new(TermValue::Plain(SHARED_PARTITION), grain.grain_type(), time);
        facts.blinded = blind.is_some();
        let mut gathering = FieldCollector { facts, blind };
        let (mut created, mut stamped) = (None, None);
        let (mut user, mut is_retained) = ("", false);
        for (name, value) in grain.iter() {
            is_retained |= sets_retention(name, &value);
            match (name, &value) {
                ("namespace", ValueRef::Str(text)) if !text.is_empty() => {
                    gathering.facts.namespace = TermValue::Plain(text);
                }
                ("subject", _) => gathering.set_subject(value.as_str()),
                ("relation", _) => gathering.set_relation(value.as_str()),
                ("object", _) => gathering.add_object(&value),
                ("created_at", _) => created = value.as_i64(),
                ("timestamp_ms", _) => stamped = value.as_i64(),
                ("related_to", ValueRef::Array(links)) => gathering.add_related(*links),
                ("context", ValueRef::Map(context)) => gathering.add_context(*context),
                // A text or a list of texts: a field outside the grain type it belongs to may hold either.
                // Citations in `derived_from` are maps and not addresses.
                _ => match Field::from_payload_name(name) {
                    Some(field) => {
                        if field == Field::User {
                            user = value.as_str().unwrap_or_default();
                        }
                        gathering.add_texts(field, &value);
                    }
                    None => gathering.add_domain_field(name, &value),
                },
            }
        }
        if is_retained {
            gathering.add(Field::Retained, TermValue::Plain(user));
        }
        let mut facts = gathering.facts;
        facts.time = stamped.or(created).map_or(time, EpochMs::new);
        facts
    }

    /// Adds a value of an indexed field.
    pub fn add(&mut self, field: Field<'_>, word: TermValue<'_>) {
        self.values.push(FieldValue::of(field, word));
    }

    /// Sets the object of its triple.
    pub fn set_object(&mut self, object: Object<'_>) {
        self.object = Some(object.digest());
    }
}

impl<'a> FieldCollector<'a, '_> {
    fn set_subject(&mut self, text: Option<&'a str>) {
        let word = text.map(TermValue::Plain);
        self.facts.subject = match self.blind {
            Some(blind) => word.map(|word| blind::subject_token(blind, word)),
            None => word,
        };
    }

    fn set_relation(&mut self, text: Option<&'a str>) {
        let word = text.map(TermValue::Plain);
        self.facts.relation = match self.blind {
            Some(blind) => word.map(|word| blind::relation_token(blind, word)),
            None => word,
        };
    }

    fn set_object(&mut self, object: Object<'_>) {
        match self.blind {
            Some(blind) => self.facts.set_object(blind::object_token(blind, object)),
            None => self.facts.set_object(object),
        }
    }

    fn add(&mut self, field: Field<'_>, word: TermValue<'_>) {
        match self.blind {
            Some(blind) => self.facts.add(field, blind::value_token(blind, field, word)),
            None => self.facts.add(field, word),
        }
    }

    fn add_object(&mut self, object: &ValueRef<'a>) {
        match object {
            ValueRef::Str(text) => self.set_object(Object::Text(TermValue::Plain(text))),
            ValueRef::Map(_) => {
                self.set_object(Object::Map(object_hash(&object.to_value())));
                self.add_leaves(object, DeviceProfile::EXTENDED.max_depth);
            }
            _ => {}
        }
    }

    /// Adds every string in a value, down to `depth` levels: the codecs accept no deeper grain.
    fn add_leaves(&mut self, value: &ValueRef<'a>, depth: usize) {
        let Some(below) = depth.checked_sub(1) else { return };
        match value {
            ValueRef::Str(text) => self.add(Field::ObjectLeaf, TermValue::Plain(text)),
            ValueRef::Array(items) => items.iter().for_each(|item| self.add_leaves(&item, below)),
            ValueRef::Map(map) => map.iter().for_each(|(_, item)| self.add_leaves(&item, below)),
            _ => {}
        }
    }

    fn add_texts(&mut self, field: Field<'_>, value: &ValueRef<'a>) {
        match value {
            ValueRef::Str(text) => self.add(field, TermValue::Plain(text)),
            ValueRef::Array(items) => {
                for text in items.iter().filter_map(|item| item.as_str()) {
                    self.add(field, TermValue::Plain(text));
                }
            }
            _ => {}
        }
    }

    fn add_related(&mut self, links: ArrayRef<'a>) {
        for link in links.iter().filter_map(|link| link.as_map()) {
            if let Some(ValueRef::Str(hash)) = link.get("hash") {
                self.add(Field::Related, TermValue::Plain(hash));
            }
        }
    }

    /// Adds the domain fields in `context`, where `int:` fields may have their short keys.
    fn add_context(&mut self, context: MapRef<'a>) {
        for (name, value) in context.iter() {
            self.add_domain_field(int_name(name).unwrap_or(name), &value);
        }
    }

    fn add_domain_field(&mut self, name: &str, value: &ValueRef<'a>) {
        if !is_domain_field(name) {
            return;
        }
        match value {
            ValueRef::Str(text) => self.add(Field::Domain(name), TermValue::Plain(text)),
            ValueRef::Bool(truth) => self.add_bool(name, *truth),
            ValueRef::Int(number) => self.add_number(name, number.to_f64()),
            ValueRef::Float(number) => self.add_number(name, *number),
            _ => {}
        }
    }

    fn add_bool(&mut self, name: &str, truth: bool) {
        self.add(Field::Domain(name), TermValue::Plain(if truth { "true" } else { "false" }));
    }

    fn add_number(&mut self, name: &str, number: f64) {
        self.add(Field::Domain(name), TermValue::Plain(&number_text(number)));
    }
}

/// The OMS field with the retention period of a grain.
const RETENTION_POLICY: &str = "retention_policy";
/// The retention field of the finance profile.
const RETENTION_YEARS: &str = "fin:retention_years";

/// Returns `true` if a field, or one inside `context`, sets a retention period or a fallback to a hold.
fn sets_retention(name: &str, value: &ValueRef<'_>) -> bool {
    match (name, value) {
        (RETENTION_POLICY | RETENTION_YEARS, _) => true,
        ("invalidation_policy", ValueRef::Map(policy)) => {
            policy.get("fallback_mode").is_some_and(|mode| mode.as_str() == Some("hold"))
        }
        ("context", ValueRef::Map(context)) => context.get(RETENTION_YEARS).is_some(),
        _ => false,
    }
}

/// The SHA-256 of the canonical MessagePack of an object that is a map.
///
/// ```
/// use grainstore_format::{Map, Value};
/// use grainstore_index::object_hash;
///
/// let size = |n: f64| Value::Map(Map::from([("size".to_owned(), Value::from(n))]));
/// assert_eq!(object_hash(&size(2.0)), object_hash(&size(2.0)));
/// assert_ne!(object_hash(&size(2.0)), object_hash(&size(3.0)));
/// ```
#[must_use]
pub fn object_hash(object: &Value) -> [u8; 32] {
    Sha256::digest(encode_value(object, Encoding::MessagePack)).into()
}

#[cfg(test)]
#[path = "indexed_fields_tests.rs"]
mod tests;
