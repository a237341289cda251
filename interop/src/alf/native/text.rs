//! What a grain says, in words, for readers that know no grains.

use grainstore::Grain;
use grainstore::format::{GrainType, Value as Field};

use crate::json::{self, Value};

/// The relation of a belief that its object says all about.
const KNOWS: &str = "mg:knows";

/// Returns what a grain says; never empty.
pub(super) fn content_of(grain: &Grain) -> String {
    let said = match grain.grain_type() {
        GrainType::Belief => belief(grain),
        GrainType::Workflow => workflow(grain),
        GrainType::Reasoning => grain.text("conclusion").map(str::to_owned),
        GrainType::Goal => grain.text("description").map(str::to_owned),
        GrainType::Consensus => grain.get("agreed_content").map(field_text),
        GrainType::Consent => consent(grain),
        _ => grain.get("content").map(field_text).or_else(|| triple(grain)),
    };
    said.filter(|text| !text.is_empty()).unwrap_or_else(|| whole(grain))
}

fn belief(grain: &Grain) -> Option<String> {
    match grain.text("relation") {
        Some(KNOWS) => grain.get("object").map(field_text),
        _ => triple(grain),
    }
}

fn triple(grain: &Grain) -> Option<String> {
    let parts = ["subject", "relation", "object"].map(|name| grain.get(name).map(field_text));
    let [Some(subject), Some(relation), Some(object)] = parts else { return None };
    Some(format!("{subject} {relation} {object}"))
}

fn workflow(grain: &Grain) -> Option<String> {
    let mut lines = vec![grain.text("trigger")?.to_owned()];
    lines.extend((1..).zip(grain.texts("steps")).map(|(number, step)| format!("{number}. {step}")));
    Some(lines.join("\n"))
}

fn consent(grain: &Grain) -> Option<String> {
    let verb = if grain.flag("is_withdrawal")? { "withdraws from" } else { "grants" };
    let scope: Vec<&str> = grain.texts("scope").collect();
    let (subject, grantee) = (grain.text("subject_did")?, grain.text("grantee_did")?);
    Some(format!("{subject} {verb} {grantee}: {}", scope.join(", ")))
}

/// All fields of a grain that has nothing of its own to say.
fn whole(grain: &Grain) -> String {
    serde_json::to_value(grain).map(|value: Value| json::line(&value)).unwrap_or_default()
}

fn field_text(field: &Field) -> String {
    match field.as_str() {
        Some(text) => text.to_owned(),
        None => {
            serde_json::to_value(field).map(|value: Value| json::line(&value)).unwrap_or_default()
        }
    }
}
