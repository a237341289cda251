//! Constructors of predicates: by payload field, or by a CAL field (CAL 5.2, 6) with its special cases:
//! closed word lists, index state, fields that OMS names differently.

use std::borrow::Cow;

use grainstore_format::fields::{self as registry, FieldKind};
use grainstore_format::{ContentAddress, GrainType, Value, VerificationStatus};

use super::{Check, Comparator, DomainTest, Predicate, TAGS, Want};
use crate::bounds::TimeRange;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, Field, FieldRef, ValueKind, ops};

/// Constructors for hosts.
impl Predicate {
    /// Matches if the text field `payload` is exactly `value`. Field names are those of OMS 6: `subject`,
    /// `user_id`, `session_id` ...
    ///
    /// # Errors
    /// E004 for a name that is no text field, because no grain could match.
    pub fn text_is(payload: &'static str, value: impl Into<String>) -> Result<Self> {
        Ok(Self::payload_text(text_field(payload)?, Want::Is(value.into())))
    }

    /// Matches if the text field `payload` is one of `values`.
    ///
    /// # Errors
    /// Those of [`Predicate::text_is`].
    pub fn text_in(payload: &'static str, values: Vec<String>) -> Result<Self> {
        Ok(Self::payload_text(text_field(payload)?, Want::OneOf(values)))
    }

    /// Matches if the object is this text or this map; maps are equal if their canonical content is. `None`
    /// for other values, which cannot be objects.
    #[must_use]
    pub fn object_is(object: Value) -> Option<Self> {
        match object {
            Value::Str(text) => Some(Self::payload_text("object", Want::Is(text))),
            Value::Map(_) => Some(Self::of_payload("object", Check::ObjectMap(object))),
            _ => None,
        }
    }

    /// Compares a CAL field (CAL 5.2, 6), by its CAL name, with text, a number, a boolean or epoch
    /// milliseconds. `None` if the field, its operator or the value does not fit, as WHERE would refuse it.
    /// `time`, `type` and `hash` are bounds of the query instead.
    #[must_use]
    pub fn field(name: &str, comparator: Comparator, value: &Value) -> Option<Self> {
        let field = fields::by_name(name).filter(|field| field.operators & comparator.op() != 0)?;
        Some(match (field.shape, value) {
            (ValueKind::Text, Value::Str(text)) => Self::text(field, comparator, text.clone()),
            (ValueKind::ClosedList(vocabulary), Value::Str(word)) => {
                vocabulary.values.contains(&word.as_str()).then_some(())?;
                Self::text(field, comparator, word.clone())
            }
            (ValueKind::Address, Value::Str(text)) => Self::address(field, vec![bare(text)]),
            (ValueKind::Number { .. }, number) => Self::number(field, comparator, number.as_f64()?),
            (ValueKind::Flag, Value::Bool(flag)) => Self::flag(field, *flag),
            (ValueKind::Time, Value::Int(_)) if field.name != "time" => {
                let at = grainstore_format::EpochMs::new(value.as_i64()?);
                Self::period(field, TimeRange { from: at, to: at })
            }
            _ => return None,
        })
    }

    /// Matches if a CAL field, by its CAL name, is one of these texts. `None` if the field does not take
    /// `IN`.
    #[must_use]
    pub fn field_in(name: &str, values: Vec<String>) -> Option<Self> {
        let field = fields::by_name(name).filter(|field| field.operators & ops::IN != 0)?;
        Some(Self::among(field, values))
    }

    /// Compares a domain field such as `hc:patient_id`, at top level or in the context. `None` if the value
    /// is no text, number or boolean, or does not take the comparator: numbers take all six, the others `=`
    /// and `!=`. Values of another kind never match.
    #[must_use]
    pub fn domain(name: impl Into<String>, comparator: Comparator, value: &Value) -> Option<Self> {
        let equal = comparator == Comparator::Equal;
        let test = match value {
            Value::Int(_) | Value::Float(_) => DomainTest::Number(comparator, value.as_f64()?),
            _ if !equal && comparator != Comparator::NotEqual => return None,
            Value::Bool(flag) => DomainTest::Flag(*flag == equal),
            Value::Str(text) => DomainTest::Text(want(comparator, text.clone())),
            _ => return None,
        };
        Some(Self::of_domain(name.into(), test))
    }

    /// Matches if a domain field is one of these texts, numbers and booleans.
    #[must_use]
    pub fn domain_in(name: impl Into<String>, values: Vec<Value>) -> Self {
        let texts: Option<Vec<String>> =
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        let test = match texts {
            Some(texts) => DomainTest::Text(Want::OneOf(texts)),
            None => DomainTest::OneOf(values),
        };
        Self::of_domain(name.into(), test)
    }

    /// Matches if the payload field `payload`, a text or a list, names one of these addresses:
    /// `parent_message_id`, `derived_from`, `depends_on`, `premises`, `processing_basis` ...
    #[must_use]
    pub fn names(payload: &'static str, addresses: &[ContentAddress]) -> Self {
        let digits = addresses.iter().map(ToString::to_string).collect();
        Self::of_payload(payload, Check::Address { payload, digits })
    }

    /// Matches if the grain names this legal basis in `processing_basis` (OMS 6.1): the address of a consent,
    /// with or without `sha256:` on either side, or a word such as `contract`.
    ///
    /// ```
    /// use grainstore_cal::Predicate;
    /// use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef, GrainState};
    ///
    /// let consent = "ab".repeat(32);
    /// let belief = BeliefBuilder::new(EpochMs::new(1_768_471_200_000), "alice", "likes", "tea", 0.9);
    /// let belief = belief.processing_basis(format!("sha256:{consent}")).build()?;
    /// let blob = belief.encode(Encoding::MessagePack)?;
    /// let (grain, state) = (GrainRef::new(blob.bytes())?, GrainState::default());
    /// assert!(Predicate::rests_on(&consent).matches(&grain, &state));
    /// assert!(!Predicate::rests_on("contract").matches(&grain, &state));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rests_on(basis: &str) -> Self {
        let payload = "processing_basis";
        Self::of_payload(payload, Check::Address { payload, digits: vec![bare(basis)] })
    }

    /// Matches if a cross-link of one of these kinds (OMS 14.3) leads to one of these addresses.
    #[must_use]
    pub fn related(kinds: &'static [&'static str], addresses: &[ContentAddress]) -> Self {
        let digits = addresses.iter().map(ToString::to_string).collect();
        Self::of_payload("related_to", Check::Related { kinds, digits })
    }

    /// Matches if the grain has all of these tags.
    #[must_use]
    pub fn tags_include(tags: Vec<String>) -> Self {
        Self::of_payload(TAGS, Check::HoldsAll { payload: TAGS, values: tags })
    }

    /// Matches if the grain has none of these tags.
    #[must_use]
    pub fn tags_exclude(tags: Vec<String>) -> Self {
        Self::of_payload(TAGS, Check::HoldsNone { payload: TAGS, values: tags })
    }

    /// Matches if the grain is contradicted (`true`) or is not (`false`).
    #[must_use]
    pub fn contradicted(value: bool) -> Self {
        Self { name: Cow::Borrowed("contradicted"), check: Check::Contradicted(value) }
    }

    /// Matches if the grain has this verification status.
    #[must_use]
    pub fn verification_status(status: VerificationStatus) -> Self {
        Self { name: Cow::Borrowed("verification_status"), check: Check::Status(status) }
    }
}

/// Constructors for the checker, which has checked fields, operators and values.
impl Predicate {
    /// Compares text, or a word of the closed list of the field.
    pub(crate) fn text(field: FieldRef, comparator: Comparator, text: String) -> Self {
        let payload = field.payload;
        Self::new(
            field,
            match (field.owner, field.name) {
                (Some(GrainType::State), "context") => Check::StateContext(want(comparator, text)),
                (_, "purpose") => Check::Purpose(want(comparator, text)),
                (_, "scope") => Check::HoldsAll { payload, values: vec![text] },
                (_, "namespace") => Check::Namespace(text),
                (_, "action_phase") => Check::ActionPhase(text),
                (_, "recall_priority") => Check::RecallPriority(text),
                (_, "consent_action") => Check::Flag { payload, value: text == "withdraw" },
                (_, "verification_status") => {
                    Check::Status(VerificationStatus::from_name(&text).unwrap_or_default())
                }
                (_, "goal_state") => {
                    let state = fields::payload_goal_state(&text).to_owned();
                    Check::Text { payload, want: want(comparator, state) }
                }
                _ => Check::Text { payload, want: want(comparator, text) },
            },
        )
    }

    /// Compares the text of a field that the checker itself asks about.
    pub(crate) fn own_text(payload: &'static str, value: impl Into<String>) -> Self {
        Self::payload_text(payload, Want::Is(value.into()))
    }

    /// Matches one of several texts or addresses, the latter with or without `sha256:`.
    pub(crate) fn among(field: FieldRef, values: Vec<String>) -> Self {
        if field.shape == ValueKind::Address {
            return Self::address(field, values.iter().map(|value| bare(value)).collect());
        }
        let want = Want::OneOf(values);
        Self::new(field, Check::Text { payload: field.payload, want })
    }

    pub(crate) fn address(field: FieldRef, digits: Vec<String>) -> Self {
        Self::new(field, Check::Address { payload: field.payload, digits })
    }

    pub(crate) fn number(field: FieldRef, comparator: Comparator, value: f64) -> Self {
        Self::new(field, Check::Number { payload: field.payload, comparator, value })
    }

    pub(crate) fn flag(field: FieldRef, value: bool) -> Self {
        Self::new(
            field,
            match field.name {
                "contradicted" => Check::Contradicted(value),
                _ => Check::Flag { payload: field.payload, value },
            },
        )
    }

    pub(crate) fn period(field: FieldRef, range: TimeRange) -> Self {
        let (from, to) = (range.from.get(), range.to.get());
        Self::new(field, Check::Period { payload: field.payload, from, to })
    }

    pub(crate) fn include(field: FieldRef, values: Vec<String>) -> Self {
        Self::new(field, Check::HoldsAll { payload: field.payload, values })
    }

    pub(crate) fn exclude(field: FieldRef, values: Vec<String>) -> Self {
        Self::new(field, Check::HoldsNone { payload: field.payload, values })
    }

    fn new(field: FieldRef, check: Check) -> Self {
        Self { name: Cow::Borrowed(field.name), check }
    }

    fn payload_text(payload: &'static str, want: Want) -> Self {
        Self::of_payload(payload, Check::Text { payload, want })
    }

    fn of_payload(payload: &'static str, check: Check) -> Self {
        Self {
            name: Cow::Borrowed(fields::by_payload(payload).map_or(payload, Field::name)),
            check,
        }
    }

    fn of_domain(name: String, test: DomainTest) -> Self {
        Self { name: Cow::Owned(name.clone()), check: Check::Domain { name, test } }
    }
}

impl Comparator {
    /// Returns the operator set of the field table it belongs to.
    pub(crate) fn op(self) -> u16 {
        match self {
            Self::Equal => ops::EQ,
            Self::NotEqual => ops::NE,
            Self::GreaterEqual | Self::Greater => ops::AT_LEAST,
            Self::LessEqual | Self::Less => ops::AT_MOST,
        }
    }
}

/// Returns `payload` if it is a text field of some grain type.
fn text_field(payload: &'static str) -> Result<&'static str> {
    let holds_text = |grain_type| {
        let field = registry::by_name(payload, grain_type);
        field.is_some_and(|field| matches!(field.kind, FieldKind::Text | FieldKind::TextOrMap))
    };
    if GrainType::STANDARD.into_iter().any(holds_text) {
        return Ok(payload);
    }
    let message = format!("\"{payload}\" is no text field of a grain");
    let advice = "use a field of OMS section 6 that holds text, by its full name";
    Err(Error::new(ErrorKind::UnknownField, message).suggest(advice))
}

fn want(comparator: Comparator, text: String) -> Want {
    if comparator == Comparator::NotEqual { Want::IsNot(text) } else { Want::Is(text) }
}

/// Returns an address without its `sha256:`.
fn bare(address: &str) -> String {
    ContentAddress::digits(address).to_owned()
}
