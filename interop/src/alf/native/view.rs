//! A grain as a memory record: what other readers of ALF can use of it.

use grainstore::format::{GrainType, Value as Field};
use grainstore::{ContentAddress, EpochMs, Grain, StoredGrain};
use serde_json::json;

use super::FORMAT;
use super::carried::digest_of_view;
use super::origin::{Origin, alf_text, notes, origin_of};
use super::text::content_of;
use crate::alf::agent::Agent;
use crate::alf::names::RUNTIME;
use crate::alf::record::said_by_copy;
use crate::error::Result;
use crate::json::{self, Value};
use crate::kept::date_text;
use crate::uuid::version_7;

/// `source_type` of a grain, and `source.extraction_method` of a record.
const METHODS: [(&str, &str); 4] = [
    ("user_explicit", "user_authored"),
    ("agent_inferred", "agent_written"),
    ("llm_generated", "llm_extracted"),
    ("imported", "migrated"),
];
/// Relations between grains, and those between records.
const RELATIONS: [(&str, &str); 4] = [
    ("similar", "related_to"),
    ("contradicts", "contradicts"),
    ("elaborates", "elaborates_on"),
    ("causal", "caused"),
];

/// The id of the record of a grain, which follows from its time and address.
pub(in super::super) fn native_id(created_at: EpochMs, address: &ContentAddress) -> String {
    version_7(created_at.get(), address.as_bytes())
}

/// Returns the record of a grain, without the bytes of the grain: those are added where it is written.
///
/// # Errors
/// Those of the store, for grains that it is linked to.
pub(in super::super) fn view_of(agent: &Agent<'_>, stored: &StoredGrain) -> Result<Value> {
    let grain = stored.grain()?;
    let mut times = json!({"created_at": date_text(grain.created_at())});
    for (name, field) in
        [("observed_at", "timestamp_ms"), ("valid_from", "valid_from"), ("valid_until", "valid_to")]
    {
        let text = grain.int(field).and_then(|at| date_text(EpochMs::new(at)));
        if let Some(text) = text {
            json::set(&mut times, name, Value::from(text));
        }
    }
    let mut view = json!({
        "id": native_id(grain.created_at(), &stored.address),
        "agent_id": agent.id,
        "content": content_of(&grain),
        "memory_type": memory_type_of(&grain),
        "category": format!("oms:{}", grain.grain_type().name()),
        "namespace": grain.text("namespace").filter(|text| !text.is_empty()).unwrap_or("default"),
        "source": source_of(&grain),
        "temporal": times,
    });
    let confidence = grain.number("confidence").filter(|at| (0.0..=1.0).contains(at));
    let tags: Vec<&str> = grain.texts("structural_tags").collect();
    let related = related_records(agent, &grain)?;
    let old = superseded(agent, &grain, &stored.address)?;
    for (name, value) in [
        ("confidence", confidence.map(Value::from)),
        ("tags", (!tags.is_empty()).then(|| json!(tags))),
        ("related_records", (!related.is_empty()).then(|| json!(related))),
        ("supersedes", old.map(Value::from)),
    ] {
        if let Some(value) = value {
            json::set(&mut view, name, value);
        }
    }
    if notes(&grain).is_some() {
        for (name, value) in said_by_copy(grain.fields()) {
            json::set(&mut view, &name, value);
        }
    }
    let state = &stored.state;
    let digest = digest_of_view(&view)?;
    let raw = json!({
        "format": FORMAT,
        "index": {
            "superseded_by": state.superseded_by.map(|by| by.to_string()),
            "system_valid_to": state.system_valid_to.map(EpochMs::get),
            "verification_status": state.verification_status.name(),
        },
        "view_sha256": digest,
    });
    json::set(&mut view, "raw_source_format", raw);
    Ok(view)
}

fn memory_type_of(grain: &Grain) -> &'static str {
    match grain.grain_type() {
        GrainType::Belief if matches!(grain.text("relation"), Some("mg:prefers" | "mg:avoids")) => {
            "preference"
        }
        GrainType::Belief if grain.int("consolidation_level").is_some_and(|level| level >= 1) => {
            "summary"
        }
        GrainType::Event | GrainType::Observation | GrainType::Action | GrainType::Reasoning => {
            "episodic"
        }
        GrainType::Workflow => "procedural",
        _ => "semantic",
    }
}

fn source_of(grain: &Grain) -> Value {
    let mut source = json!({"runtime": RUNTIME, "origin": "grain"});
    let own = grain.text("source_type");
    let method = METHODS.iter().find(|(source_type, _)| own == Some(source_type));
    if let Some((_, method)) = method {
        json::set(&mut source, "extraction_method", Value::from(*method));
    }
    if let Some(id) = grain.text("session_id") {
        json::set(&mut source, "session_id", Value::from(id));
    }
    source
}

/// The records of the grains that this one is related to, as far as the store has them.
fn related_records(agent: &Agent<'_>, grain: &Grain) -> Result<Vec<Value>> {
    let mut related = Vec::new();
    for link in grain.list("related_to").unwrap_or_default().iter().filter_map(Field::as_map) {
        let text = |name: &str| link.get(name).and_then(Field::as_str);
        let (Some(address), Some(relation)) = (text("hash"), text("relation_type")) else {
            continue;
        };
        let known = RELATIONS.iter().find(|(oms, _)| *oms == relation);
        let relation =
            known.map_or_else(|| format!("oms:{relation}"), |(_, alf)| (*alf).to_owned());
        if let Some(id) = id_of(agent, &address.parse()?)? {
            related.push(json!({"id": id, "relation": relation}));
        }
    }
    Ok(related)
}

/// The record of the grain whose place this one took.
fn superseded(
    agent: &Agent<'_>,
    grain: &Grain,
    address: &ContentAddress,
) -> Result<Option<String>> {
    for parent in grain.texts("derived_from").filter_map(|parent| parent.parse().ok()) {
        let Ok(stored) = agent.session.inspect(&parent) else { continue };
        if stored.state.superseded_by == Some(*address) {
            return id_of(agent, &parent);
        }
    }
    Ok(None)
}

/// The id of the record of a stored grain, its own if it is one of ALF.
fn id_of(agent: &Agent<'_>, address: &ContentAddress) -> Result<Option<String>> {
    let Ok(stored) = agent.session.inspect(address) else { return Ok(None) };
    let grain = stored.grain()?;
    let own = match origin_of(agent, address, &grain)? {
        Origin::Record(_) | Origin::Other => notes(&grain).and(alf_text(&grain, "id")),
        Origin::Native | Origin::Copy | Origin::Stray(_) => None,
    };
    Ok(Some(own.map_or_else(|| native_id(grain.created_at(), address), str::to_owned)))
}
