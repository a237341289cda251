//! A record as the fields of a grain.

use std::collections::BTreeSet;

use grainstore::format::{GrainType, Map, Value as Field};

use super::links;
use crate::alf::names::PROFILE;
use crate::json::{self, Value};
use crate::kept::{clamped, grain_text, milliseconds};

/// The beginning of the namespace of what is remembered of a principal.
const PRINCIPAL: &str = "principal_context:";
/// The content of the grain of a record without any.
pub(super) const EMPTY_CONTENT: &str = "[empty]";
/// The confidence of a belief of which the record has none.
pub(super) const DEFAULT_CONFIDENCE: f64 = 0.5;

/// The ids of principals that are agents, in lower case: what is remembered of them is no personal data.
pub(in super::super) type AgentPrincipals = BTreeSet<String>;

/// A type of memory, and what it is as a grain.
struct Kind {
    memory_type: &'static str,
    grain_type: GrainType,
    /// The relation of a belief.
    relation: &'static str,
    consolidation_level: Option<i64>,
}

/// The first is that of types that are not known (ALF 8.2).
static KINDS: [Kind; 5] = [
    belief("semantic", "mg:knows", None),
    belief("preference", "mg:prefers", None),
    belief("summary", "mg:knows", Some(1)),
    Kind { grain_type: GrainType::Event, ..belief("episodic", "", None) },
    Kind { grain_type: GrainType::Workflow, ..belief("procedural", "", None) },
];

const fn belief(
    memory_type: &'static str,
    relation: &'static str,
    consolidation_level: Option<i64>,
) -> Kind {
    Kind { memory_type, grain_type: GrainType::Belief, relation, consolidation_level }
}

/// `source.extraction_method`, and `source_type` of the grain.
const SOURCE_TYPES: [(&str, &str); 3] = [
    ("user_authored", "user_explicit"),
    ("agent_written", "agent_inferred"),
    ("llm_extracted", "llm_generated"),
];

/// Members of a record that are text, kept as entries of `context` as they are.
pub(super) const TEXT_MEMBERS: [&str; 5] =
    ["id", "agent_id", "memory_type", "category", "supersedes"];
/// Members that are kept as entries of `context` in JSON.
pub(super) const JSON_MEMBERS: [&str; 4] =
    ["source", "entities", "related_records", "raw_source_format"];
/// Times of a record, and the fields of the grain for them.
pub(super) const TIMES: [(&str, &str); 3] =
    [("observed_at", "timestamp_ms"), ("valid_from", "valid_from"), ("valid_until", "valid_to")];

fn kind_of(record: &Value) -> &'static Kind {
    let [default, ..] = &KINDS;
    let memory_type = text(record, "memory_type").unwrap_or_default();
    KINDS.iter().find(|kind| kind.memory_type == memory_type).unwrap_or(default)
}

/// The type of the grain of a record.
pub(in super::super) fn grain_type_of(record: &Value) -> GrainType {
    kind_of(record).grain_type
}

/// Returns the fields that a record gives.
pub(super) fn direct(record: &Value, agents: &AgentPrincipals) -> Map {
    let mut fields = least(record, agents);
    let mut context = Map::new();
    for name in TEXT_MEMBERS {
        if let Some(value) = text(record, name) {
            context.insert(PROFILE.key(name), Field::from(grain_text(value).into_owned()));
        }
    }
    for name in JSON_MEMBERS {
        if let Some(value) = record.get(name) {
            context.insert(PROFILE.key(name), Field::from(json::ascii(value)));
        }
    }
    let times = record.get("temporal");
    for (name, field) in TIMES {
        let time = times.and_then(|times| text(times, name)).and_then(milliseconds);
        if let Some(time) = time {
            fields.insert(field.to_owned(), Field::from(time.get()));
        }
    }
    let confidence = record.get("confidence").and_then(Value::as_f64);
    let confidence = confidence.filter(|confidence| (0.0..=1.0).contains(confidence));
    if let Some(confidence) = confidence {
        fields.insert("confidence".to_owned(), Field::from(confidence));
    }
    let own = texts(record.get("tags")).unwrap_or_default().into_iter();
    let tags = own.chain([PROFILE.tag()]).chain(links::tags(record)).collect::<Vec<_>>();
    fields.insert("structural_tags".to_owned(), Field::from(tags));
    project_source(record, &mut fields, &mut context);
    if let Some(Field::Map(own)) = fields.get_mut("context") {
        own.extend(context);
        own.insert(PROFILE.key("defaults"), Field::from(defaults(record, confidence.is_some())));
    }
    fields
}

/// Returns the fields without which there is no grain of a record.
pub(super) fn least(record: &Value, agents: &AgentPrincipals) -> Map {
    let kind = kind_of(record);
    let content = grain_text(text(record, "content").unwrap_or_default()).into_owned();
    let content = if content.is_empty() { EMPTY_CONTENT.to_owned() } else { content };
    let agent_id = grain_text(text(record, "agent_id").unwrap_or_default()).into_owned();
    let namespace = text(record, "namespace").unwrap_or_default();
    let principal = namespace.strip_prefix(PRINCIPAL).filter(|id| !id.is_empty());
    let times = record.get("temporal");
    let created_at = times.and_then(|times| text(times, "created_at")).and_then(milliseconds);
    let mut fields = Map::from([
        ("namespace".to_owned(), {
            Field::from(format!("agent:{agent_id}:{}", grain_text(namespace)))
        }),
        ("created_at".to_owned(), Field::from(clamped(created_at.unwrap_or_default()).get())),
        ("structural_tags".to_owned(), Field::from(vec![PROFILE.tag()])),
    ]);
    let mut set = |name: &str, value: Field| drop(fields.insert(name.to_owned(), value));
    match kind.grain_type {
        GrainType::Event => {
            set("type", Field::from("event"));
            set("content", Field::from(content));
        }
        GrainType::Workflow => {
            set("type", Field::from("workflow"));
            set("steps", Field::from(vec![content]));
            set("trigger", Field::from("unspecified"));
        }
        _ => {
            let subject = match principal {
                Some(id) => format!("principal:{}", grain_text(id)),
                None => format!("agent:{agent_id}"),
            };
            set("type", Field::from("belief"));
            set("subject", Field::from(subject));
            set("relation", Field::from(kind.relation));
            set("object", Field::from(content));
            set("confidence", Field::from(DEFAULT_CONFIDENCE));
        }
    }
    if let Some(level) = kind.consolidation_level {
        set("consolidation_level", Field::from(level));
    }
    if let Some(id) = principal.map(str::to_ascii_lowercase).filter(|id| !agents.contains(id)) {
        set("user_id", Field::from(grain_text(&id).into_owned()));
    }
    let names = ["id", "agent_id", "memory_type"].into_iter();
    let names = names.filter_map(|name| Some((name, text(record, name)?)));
    let names = names.map(|(name, value)| (PROFILE.key(name), grain_text(value).into_owned()));
    let mut context: Map = names.map(|(name, value)| (name, Field::from(value))).collect();
    context.insert(PROFILE.key("defaults"), Field::from(defaults(record, false)));
    set("context", Field::Map(context));
    fields
}

/// What the source of a record says is repeated where queries look for it.
fn project_source(record: &Value, fields: &mut Map, context: &mut Map) {
    let source = record.get("source");
    let said = |name| source.and_then(|source| text(source, name));
    if let Some(session) = said("session_id").filter(|id| !id.is_empty()) {
        fields.insert("session_id".to_owned(), Field::from(grain_text(session).into_owned()));
    }
    let method = said("extraction_method").unwrap_or_default();
    let known = SOURCE_TYPES.iter().find(|(name, _)| *name == method);
    let source_type = known.map_or("imported", |(_, source_type)| source_type);
    fields.insert("source_type".to_owned(), Field::from(source_type));
    let version = source.and_then(|source| source.get("identity_version"));
    if let Some(version) = version.filter(|version| version.is_number()) {
        context.insert(PROFILE.key("identity_version"), Field::from(version.to_string()));
    }
}

/// The names of the fields that the record did not give, in order.
fn defaults(record: &Value, has_confidence: bool) -> String {
    let names: &[&str] = match (kind_of(record).grain_type, has_confidence) {
        (GrainType::Belief, false) => &["confidence", "relation", "subject"],
        (GrainType::Belief, true) => &["relation", "subject"],
        (GrainType::Workflow, _) => &["trigger"],
        _ => &[],
    };
    names.join(",")
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// The texts of a list that has nothing else.
fn texts(list: Option<&Value>) -> Option<Vec<String>> {
    let items = list?.as_array()?.iter();
    items.map(|item| Some(grain_text(item.as_str()?).into_owned())).collect()
}
