//! What a question means, written from the rules over decoded grains: CAL section 4, OMS 15.2 and
//! 28.2, and the rulings on times, visibility and triples. Looks at every grain, knows no index.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::engine::cal::{Comparator, Order, Reach};
use super::engine::format::{
    ContentAddress, Grain, GrainState, Map, SHARED_PARTITION, Value, VerificationStatus,
};
use super::question::{Condition, Question};

/// A grain a store holds, with its state.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) address: ContentAddress,
    pub(crate) grain: Arc<Grain>,
    pub(crate) state: GrainState,
}

/// Short keys that stand for fields of the integration profile inside `context` (OMS appendix C).
const SHORT_KEYS: [(&str, &str); 3] =
    [("int:base_url", "ib"), ("int:timezone", "itz"), ("int:category", "icat")];
/// Fields CAL calls otherwise than payloads do.
const RENAMED: [(&str, &str); 5] = [
    ("reasoning_type", "inference_method"),
    ("grantor_did", "subject_did"),
    ("expires_at", "valid_to"),
    ("tags", "structural_tags"),
    ("consent_action", "is_withdrawal"),
];

/// The whole answer to a question of a session in this namespace, in order.
pub(crate) fn answer<'i>(
    items: impl IntoIterator<Item = &'i Item>,
    namespace: Option<&str>,
    question: &Question,
) -> Vec<&'i Item> {
    let meant = |item: &&Item| is_within(item, namespace) && question.means(item);
    let mut found: Vec<_> = items.into_iter().filter(meant).collect();
    found.sort_by_cached_key(|item| {
        let time = i128::from(time(&item.grain));
        (if question.order == Order::Newest { -time } else { time }, item.address)
    });
    found
}

/// Whether a session in this namespace sees the grain (OMS 28.2).
fn is_within(item: &Item, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|own| is_below(partition(&item.grain), named(own)))
}

fn named(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED_PARTITION } else { namespace }
}

fn partition(grain: &Grain) -> &str {
    named(grain.text("namespace").unwrap_or_default())
}

fn is_below(namespace: &str, root: &str) -> bool {
    namespace == root || namespace.starts_with(&format!("{root}:"))
}

fn time(grain: &Grain) -> i64 {
    grain.int("timestamp_ms").or_else(|| grain.int("created_at")).unwrap_or_default()
}

impl Question {
    fn means(&self, item: &Item) -> bool {
        let grain = &item.grain;
        let reached = match &self.reach {
            Reach::Session => true,
            Reach::Exact(only) => partition(grain) == only,
            Reach::Subtree(root) => is_below(partition(grain), root),
        };
        let says_true = |at: i64| {
            grain.int("valid_from").is_none_or(|from| from <= at)
                && grain.int("valid_to").is_none_or(|to| at <= to)
        };
        reached
            && self.of_type.is_none_or(|of_type| {
                // No query names an opaque one.
                of_type == grain.grain_type() && of_type.is_standard()
            })
            && self.during.is_none_or(|(from, to)| (from..=to).contains(&time(grain)))
            && self.valid_at.is_none_or(says_true)
            && self.address.is_none_or(|address| address == item.address)
            && self.among.as_ref().is_none_or(|among| among.contains(&item.address))
            && self.is_seen(item)
            && self.conditions.iter().all(|condition| condition.holds(item))
    }

    /// What is current now, or was at the time asked about.
    fn is_seen(&self, item: &Item) -> bool {
        let Item { grain, state, .. } = item;
        if let Some(at) = self.known_at {
            let from = grain.int("system_valid_from").or_else(|| grain.int("created_at"));
            let ended = state.system_valid_to.is_some_and(|ended| ended.get() <= at);
            return from.is_some_and(|from| from <= at) && !ended;
        }
        let asks = |wanted: fn(&Condition) -> bool| self.conditions.iter().any(wanted);
        let contradicted = self.seeing.contradicted || asks(Condition::asks_for_contradicted);
        let retracted = self.seeing.retracted || asks(Condition::asks_for_retracted);
        (self.seeing.superseded || state.superseded_by.is_none())
            && (contradicted || !state.contradicted)
            && (retracted || state.verification_status != VerificationStatus::Retracted)
    }
}

impl Condition {
    fn asks_for_contradicted(&self) -> bool {
        match self {
            Self::Contradicted(value) => *value,
            Self::Field(name, _, value) => *name == "contradicted" && *value == Value::Bool(true),
            _ => false,
        }
    }

    fn asks_for_retracted(&self) -> bool {
        match self {
            Self::Status(status) => *status == VerificationStatus::Retracted,
            Self::Field(name, _, value) => {
                *name == "verification_status" && value.as_str() == Some("retracted")
            }
            _ => false,
        }
    }

    pub(crate) fn holds(&self, item: &Item) -> bool {
        let Item { grain, state, .. } = item;
        match self {
            Self::TextIs(payload, text) => grain.text(payload) == Some(text),
            Self::TextIn(payload, texts) => is_one_of(grain.text(payload), texts),
            Self::Object(object) => grain.get("object") == Some(object),
            Self::Field(name, comparator, value) => field(name, *comparator, value, item),
            Self::FieldIn("depends_on", texts) => names(grain.get("depends_on"), texts),
            Self::FieldIn(name, texts) => is_one_of(grain.text(name), texts),
            Self::Domain(name, comparator, value) => {
                places(grain, name).iter().any(|found| compares(found, *comparator, value))
            }
            Self::DomainIn(name, values) => places(grain, name)
                .iter()
                .any(|found| values.iter().any(|value| compares(found, Comparator::Equal, value))),
            Self::Names(payload, addresses) => names(grain.get(payload), &texts_of(addresses)),
            Self::Related(kinds, addresses) => {
                let links = grain.list("related_to").unwrap_or_default().iter();
                links.filter_map(Value::as_map).any(|link| {
                    let kind = link.get("relation_type").and_then(Value::as_str);
                    kind.is_some_and(|kind| kinds.contains(&kind))
                        && names(link.get("hash"), &texts_of(addresses))
                })
            }
            Self::TagsInclude(tags) => {
                let carried: BTreeSet<_> = grain.texts("structural_tags").collect();
                !carried.is_empty() && tags.iter().all(|tag| carried.contains(tag.as_str()))
            }
            Self::TagsExclude(tags) => {
                let carried: BTreeSet<_> = grain.texts("structural_tags").collect();
                !tags.iter().any(|tag| carried.contains(tag.as_str()))
            }
            Self::Contradicted(value) => state.contradicted == *value,
            Self::Status(status) => state.verification_status == *status,
        }
    }
}

/// A field of the table of CAL section 4.
fn field(name: &str, comparator: Comparator, value: &Value, item: &Item) -> bool {
    let Item { grain, state, .. } = item;
    let equals = |found: &str| value.as_str() == Some(found);
    match name {
        "contradicted" => value.as_bool() == Some(state.contradicted),
        "verification_status" => equals(state.verification_status.name()),
        "namespace" => equals(partition(grain)),
        "action_phase" => equals(grain.text("action_phase").unwrap_or("complete")),
        "recall_priority" => equals(match grain.text("recall_priority") {
            Some("hot") => "hot",
            Some("cold") => "cold",
            _ => "warm",
        }),
        "consent_action" => grain
            .flag("is_withdrawal")
            .is_some_and(|w| equals(if w { "withdraw" } else { "grant" })),
        "scope" => grain.texts("scope").any(equals),
        "purpose" => {
            let joined = || grain.list("scope").map(|_| grain.texts("scope").collect::<Vec<_>>());
            let purpose = grain.text("purpose").map(str::to_owned);
            let purpose = purpose.or_else(|| joined().map(|scope| scope.join(", ")));
            purpose.is_some_and(|found| compares(&Value::Str(found), comparator, value))
        }
        "context" => {
            let context = grain.map("context");
            let named = context.and_then(|map| map.get("id").or_else(|| map.get("name")));
            named.is_some_and(|found| compares(found, comparator, value))
        }
        "goal_state" => {
            let spelt = match value.as_str() {
                Some("completed") => "satisfied",
                Some("abandoned") => "failed",
                Some("blocked") => "suspended",
                other => other.unwrap_or_default(),
            };
            grain.get(name).is_some_and(|found| compares(found, comparator, &spelt.into()))
        }
        "parent_message_id" | "depends_on" => {
            value.as_str().is_some_and(|text| names(grain.get(name), &[text.to_owned()]))
        }
        // A map is equal to no text (ruling 43).
        "object" if grain.map("object").is_some() => comparator == Comparator::NotEqual,
        _ => {
            let renamed = RENAMED.iter().find(|(cal, _)| *cal == name);
            let payload = renamed.map_or(name, |(_, payload)| payload);
            grain.get(payload).is_some_and(|found| compares(found, comparator, value))
        }
    }
}

/// Single values of one kind compare, numbers by value.
fn compares(found: &Value, comparator: Comparator, value: &Value) -> bool {
    match (found, value) {
        (Value::Str(found), Value::Str(value)) => stands(comparator, found.cmp(value)),
        (Value::Bool(found), Value::Bool(value)) => stands(comparator, found.cmp(value)),
        (Value::Int(found), Value::Int(value)) => stands(comparator, found.cmp(value)),
        (found, value) => match (found.as_f64(), value.as_f64()) {
            (Some(found), Some(value)) => {
                found.partial_cmp(&value).is_some_and(|ordering| stands(comparator, ordering))
            }
            _ => false,
        },
    }
}

fn stands(comparator: Comparator, ordering: std::cmp::Ordering) -> bool {
    match comparator {
        Comparator::Equal => ordering.is_eq(),
        Comparator::NotEqual => ordering.is_ne(),
        Comparator::GreaterEqual => ordering.is_ge(),
        Comparator::LessEqual => ordering.is_le(),
        Comparator::Greater => ordering.is_gt(),
        Comparator::Less => ordering.is_lt(),
    }
}

/// The values of a domain field: at top level, in the context, and there by its short key.
pub(crate) fn places<'g>(grain: &'g Grain, name: &str) -> Vec<&'g Value> {
    let context: Option<&Map> = grain.map("context");
    let short = SHORT_KEYS.iter().find(|(long, _)| *long == name).map(|(_, short)| *short);
    let within = [Some(name), short].into_iter().flatten();
    let within = within.filter_map(|key| context.and_then(|context| context.get(key)));
    grain.get(name).into_iter().chain(within).collect()
}

/// Whether a text or a list of texts names one of these addresses, `sha256:` or not.
fn names(value: Option<&Value>, digits: &[String]) -> bool {
    let is_named = |value: &Value| {
        let found = value.as_str().map(bare);
        found.is_some_and(|found| digits.iter().any(|wanted| bare(wanted) == found))
    };
    match value {
        Some(Value::Array(items)) => items.iter().any(is_named),
        other => other.is_some_and(is_named),
    }
}

fn bare(address: &str) -> &str {
    address.strip_prefix("sha256:").unwrap_or(address)
}

fn is_one_of(found: Option<&str>, texts: &[String]) -> bool {
    found.is_some_and(|found| texts.iter().any(|text| text == found))
}

fn texts_of(addresses: &[ContentAddress]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}
