//! What a redaction does with each item, and which of its members stay, as tables.

use data_encoding::HEXLOWER;
use grainstore::format::parse_datetime;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::saga::classify::{Classification, ItemType};

/// What stands in the place of a text that was redacted
/// ([`Document::redact`](crate::saga::Document::redact)).
pub const REDACTED_TEXT: &str = "[Redacted \u{2014} org-internal]";
/// What stands in the place of the name of an organization.
pub(super) const REDACTED_NAME: &str = "[redacted]";

/// What stands in the place of the names of members that nobody knows.
pub(super) const UNKNOWN_NAME: &str = "[unknown]";
/// Bytes of a word.
const MAX_WORD_BYTES: usize = 64;

/// Where the classified items of a document are, and what is replaced in them.
pub(super) struct ItemList {
    pub(super) item_type: ItemType,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) redact: fn(&mut Map<String, Value>) -> Vec<&'static str>,
}

pub(super) const LISTS: [ItemList; 4] = [
    ItemList {
        item_type: ItemType::Task,
        path: "taskHistory.recentTasks",
        id: "taskId",
        redact: |task| {
            let mut fields = replace(task, &["title", "summary"], &Value::from(REDACTED_TEXT));
            fields.extend(replace(task, &["organizationId"], &Value::from(REDACTED_NAME)));
            fields
        },
    },
    ItemList {
        item_type: ItemType::EpisodicEvent,
        path: "memory.episodic.events",
        id: "eventId",
        redact: |event| replace(event, &["summary", "learnings"], &Value::from(REDACTED_TEXT)),
    },
    ItemList {
        item_type: ItemType::Workflow,
        path: "memory.procedural.workflows",
        id: "name",
        redact: |workflow| {
            let mut fields = replace(workflow, &["description"], &Value::from(REDACTED_TEXT));
            fields.extend(replace(workflow, &["steps"], &json!([REDACTED_TEXT])));
            fields
        },
    },
    ItemList {
        item_type: ItemType::Artifact,
        path: "taskHistory.artifacts",
        id: "artifactId",
        redact: |artifact| {
            let mut fields = replace(artifact, &["name"], &Value::from(REDACTED_TEXT));
            fields.extend(artifact.remove("storageRef").map(|_| "storageRef"));
            fields
        },
    },
];

/// A part of a layer that is classified as a whole.
pub(super) struct Part {
    pub(super) item_type: ItemType,
    pub(super) path: &'static str,
    pub(super) default: Classification,
    pub(super) redact: fn(&mut Map<String, Value>) -> Vec<&'static str>,
}

pub(super) const PARTS: [Part; 3] = [
    Part {
        item_type: ItemType::SystemPrompt,
        path: "cognitive.systemPrompt",
        default: Classification::OrgConfidential,
        redact: |prompt| replace(prompt, &["content"], &Value::from(REDACTED_TEXT)),
    },
    Part {
        item_type: ItemType::MemoryLayer,
        path: "memory.shortTerm",
        default: Classification::OrgInternal,
        redact: |memory| replace(memory, &["content"], &Value::from(REDACTED_TEXT)),
    },
    Part {
        item_type: ItemType::MemoryLayer,
        path: "memory.longTerm",
        default: Classification::OrgInternal,
        redact: |memory| memory.remove("storageRef").map(|_| "storageRef").into_iter().collect(),
    },
];

/// Members that describe the classification of an item, or of its kind, and hold no content. All other members that are
/// not known could hold what was redacted, and go with it.
pub(super) struct Kept {
    pub(super) item_type: ItemType,
    pub(super) members: &'static [&'static str],
}

/// The members of a redacted item that stay. What is not listed is taken out, since nobody knows what it tells.
pub(super) const KEPT: [Kept; 6] = [
    Kept {
        item_type: ItemType::Task,
        members: &[
            "taskId",
            "title",
            "status",
            "outcome",
            "skillTags",
            "completedAt",
            "organizationId",
            "artifactRefs",
            "durationSeconds",
            "summary",
        ],
    },
    Kept {
        item_type: ItemType::EpisodicEvent,
        members: &[
            "eventId",
            "type",
            "timestamp",
            "summary",
            "learnings",
            "linkedTaskId",
            "significance",
        ],
    },
    Kept {
        item_type: ItemType::Workflow,
        members: &["name", "description", "steps", "learnedFrom"],
    },
    Kept {
        item_type: ItemType::Artifact,
        members: &["artifactId", "type", "name", "createdAt", "linkedTaskId"],
    },
    Kept { item_type: ItemType::SystemPrompt, members: &["format", "content", "encrypted"] },
    Kept {
        item_type: ItemType::MemoryLayer,
        members: &[
            "type",
            "maxTokens",
            "snapshotAt",
            "content",
            "embeddingModel",
            "dimensions",
            "vectorCount",
            "format",
            "encrypted",
        ],
    },
];

/// The parts that are objects, those above others first.
pub(super) const OBJECTS: [(&str, ItemType); 11] = [
    ("cognitive", ItemType::SystemPrompt),
    ("cognitive.systemPrompt", ItemType::SystemPrompt),
    ("memory", ItemType::MemoryLayer),
    ("memory.shortTerm", ItemType::MemoryLayer),
    ("memory.longTerm", ItemType::MemoryLayer),
    ("memory.episodic", ItemType::EpisodicEvent),
    ("memory.procedural", ItemType::Workflow),
    ("taskHistory", ItemType::Task),
    ("taskHistory.summary", ItemType::Task),
    ("relationships", ItemType::Relationship),
    ("relationships.organization", ItemType::Relationship),
];

/// The members that are known of what holds classified items. Others could hold anything, and go unless the
/// organization decided otherwise of their path.
pub(super) const KNOWN: [(&str, &[&str]); 8] = [
    (
        "cognitive",
        &[
            "baseModel",
            "fallbackModels",
            "parameters",
            "systemPrompt",
            "capabilities",
            "behaviorFlags",
        ],
    ),
    ("relationships", &["organization", "principals", "peers"]),
    (
        "relationships.organization",
        &[
            "companyId",
            "companySlug",
            "role",
            "reportingTo",
            "directReports",
            "joinedAt",
            "departingAt",
        ],
    ),
    ("memory", &["shortTerm", "longTerm", "episodic", "semantic", "procedural"]),
    ("memory.episodic", &["events", "maxEvents", "encrypted"]),
    ("memory.procedural", &["workflows", "encrypted"]),
    ("taskHistory", &["summary", "recentTasks", "recentTasksLimit", "artifacts"]),
    (
        "taskHistory.summary",
        &[
            "totalCompleted",
            "totalFailed",
            "totalInProgress",
            "firstTaskAt",
            "lastTaskAt",
            "bySkill",
            "byOrganization",
        ],
    ),
];

/// The lists of those whom an agent works with, and the members that are known of each.
pub(super) const OTHERS: [(&str, &[&str]); 2] = [
    ("principals", &["walletAddress", "authorityLevel", "handle", "grantedAt"]),
    (
        "peers",
        &[
            "walletAddress",
            "relationship",
            "agentHandle",
            "interactionCount",
            "lastInteraction",
            "trustScore",
        ],
    ),
];

/// Members of an item that say how it is classified.
pub(super) const CLASSIFYING: [&str; 4] =
    ["classification", "classifiedBy", "classifiedAt", "policyRule"];

/// The id that a manifest has of an item that was taken out: that of a workflow is its name, which goes with it.
pub(in crate::saga) fn removed_id(item_type: ItemType, id: &str) -> String {
    match item_type {
        ItemType::Workflow => {
            let hash = HEXLOWER.encode(&Sha256::digest(id));
            format!("workflow_{}", hash.get(..20).unwrap_or_default())
        }
        _ => id.to_owned(),
    }
}

/// Returns `true` for a member that stays in a redacted item, and is of the form that it has in one: what is not could be
/// anything. The rule of a policy is free text, and does not stay.
pub(super) fn is_formed(name: &str, value: &Value) -> bool {
    let is_text = value.is_string();
    match name {
        "skillTags" | "artifactRefs" => {
            value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
        }
        "learnings" | "steps" => {
            is_text || value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
        }
        "durationSeconds" | "significance" | "maxTokens" | "dimensions" | "vectorCount" => {
            value.is_number()
        }
        "encrypted" => value.is_boolean(),
        "status" | "outcome" | "type" | "format" | "embeddingModel" | "learnedFrom"
        | "classification" | "classifiedBy" => value.as_str().is_some_and(is_word),
        "completedAt" | "timestamp" | "createdAt" | "snapshotAt" | "classifiedAt" => {
            value.as_str().is_some_and(|text| parse_datetime(text).is_ok())
        }
        "policyRule" => false,
        _ => is_text,
    }
}

/// A word has no spaces, and tells little.
fn is_word(text: &str) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    text.len() <= MAX_WORD_BYTES && text.bytes().all(is_of_word)
}

/// Replaces the members that are there, and were not replaced before. Returns their names.
pub(super) fn replace(
    members: &mut Map<String, Value>,
    names: &[&'static str],
    by: &Value,
) -> Vec<&'static str> {
    let mut replaced = Vec::new();
    for name in names {
        if let Some(member) = members.get_mut(*name).filter(|member| *member != by) {
            *member = by.clone();
            replaced.push(*name);
        }
    }
    replaced
}
