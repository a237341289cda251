//! The shape of a memory record (ALF 3.1).

use super::Shape::{
    DateTime, Filled, Instant, Integer, List, Nullable, Number, Object, Open, RecordId, Solid,
    Text, Unit, Uuid, Words,
};
use super::{Member, Shape, may, must};

/// A memory record.
pub(in super::super) static RECORD: Shape = Object(&MEMBERS);

static MEMBERS: [Member; 18] = [
    must("id", RecordId),
    must("agent_id", Uuid),
    must("content", Filled),
    must("memory_type", Words(&["semantic", "episodic", "procedural", "preference", "summary"])),
    may("category", Text),
    must("source", Object(&SOURCE)),
    must("temporal", Object(&TEMPORAL)),
    must("status", Words(&["active", "superseded", "archived", "deleted"])),
    may("supersedes", Uuid),
    may("confidence", Unit),
    may("entities", List(&Object(&ENTITY))),
    may("tags", List(&Text)),
    must("namespace", Solid),
    may("embeddings", List(&Object(&EMBEDDING))),
    may("related_records", List(&Object(&RELATED))),
    may("raw_source_format", Open),
    // Of ours: the record that this one is a change of.
    may("x_change_of", Uuid),
    // On a line of a delta.
    may("operation", Text),
];

static SOURCE: [Member; 8] = [
    must("runtime", Solid),
    may("runtime_version", Text),
    may("origin", Text),
    may("origin_file", Text),
    may(
        "extraction_method",
        Words(&["agent_written", "llm_extracted", "user_authored", "migrated"]),
    ),
    may("session_id", Text),
    may("interaction_id", Text),
    may("identity_version", Integer(1)),
];

static TEMPORAL: [Member; 7] = [
    must("created_at", Instant),
    may("updated_at", Nullable(&DateTime)),
    may("observed_at", Nullable(&DateTime)),
    may("valid_from", Nullable(&DateTime)),
    may("valid_until", Nullable(&DateTime)),
    may("last_accessed_at", Nullable(&DateTime)),
    may("access_count", Integer(0)),
];

static ENTITY: [Member; 3] = [
    must("name", Text),
    must(
        "type",
        Words(&["person", "organization", "project", "location", "tool", "service", "other"]),
    ),
    may("role", Text),
];

static EMBEDDING: [Member; 5] = [
    must("model", Text),
    must("dimensions", Integer(1)),
    must("vector", List(&Number)),
    must("computed_at", DateTime),
    must("source", Words(&["runtime", "sync_service", "import_adapter"])),
];

static RELATED: [Member; 2] = [must("id", Uuid), must("relation", Text)];
