//! The shapes of the documents of an archive: the manifest and the layers (ALF 3.1.9, 3.2 to 3.4, 4.2, 4.3).

use super::Shape::{
    Base64, Checksum, Date, DateTime, Each, Flag, Hex, Integer, List, Nullable, Number, Object,
    Open, Solid, Text, Unit, Uuid, Version, Words,
};
use super::{Member, Shape, may, must};

/// `manifest.json` of an archive.
pub(in super::super) static MANIFEST: Shape = Object(&[
    must("alf_version", Version),
    must("created_at", DateTime),
    must("agent", Object(&AGENT)),
    may("runtime_hints", Object(&HINTS)),
    may("sync", Object(&[must("last_sequence", Integer(0)), may("last_sync_at", DateTime)])),
    must("layers", Object(&LAYERS)),
    may("raw_sources", List(&Text)),
    may("checksum", Checksum),
    // Of ours: how the checksum is made, and of whom alone the archive is.
    may("checksum_scheme", Text),
    may("x_of_user", Text),
]);

static AGENT: [Member; 4] = [
    must("id", Uuid),
    must("name", Solid),
    must("source_runtime", Solid),
    may("source_runtime_version", Text),
];

static HINTS: [Member; 5] = [
    must("primary_model", Text),
    must("last_model", Text),
    may("provider", Text),
    may("context_window", Integer(1)),
    may("notes", Nullable(&Text)),
];

static LAYERS: [Member; 5] = [
    may("identity", Object(&[must("version", Integer(1)), must("file", Solid)])),
    may("principals", Object(&COUNTED)),
    may("credentials", Object(&COUNTED)),
    may("memory", Object(&MEMORY)),
    may("attachments", Object(&COUNTED_FILES)),
];

static COUNTED: [Member; 2] = [must("count", Integer(0)), must("file", Solid)];

static COUNTED_FILES: [Member; 6] = [
    must("count", Integer(0)),
    may("included_count", Integer(0)),
    may("included_size_bytes", Integer(0)),
    may("referenced_count", Integer(0)),
    may("referenced_size_bytes", Integer(0)),
    must("file", Solid),
];

static MEMORY: [Member; 5] = [
    must("record_count", Integer(0)),
    must("index_file", Text),
    may("has_embeddings", Flag),
    may("has_raw_source", Flag),
    must("partitions", List(&Object(&PARTITION))),
];

static PARTITION: [Member; 6] = [
    must("file", Solid),
    must("from", Date),
    may("to", Nullable(&Date)),
    must("record_count", Integer(0)),
    must("sealed", Flag),
    // Of ours: the hash of the file.
    may("checksum", Checksum),
];

/// The manifest of a delta.
pub(in super::super) static DELTA_MANIFEST: Shape = Object(&[
    must("alf_version", Version),
    must("created_at", DateTime),
    must("agent", Object(&[must("id", Uuid), may("source_runtime", Text)])),
    must("sync", Object(&DELTA_SYNC)),
    must("changes", Object(&CHANGES)),
    // Of ours: what the manifest of the agent says now.
    may("x_manifest", Open),
    may("checksum", Checksum),
    may("checksum_scheme", Text),
]);

static DELTA_SYNC: [Member; 4] = [
    must("base_sequence", Integer(0)),
    must("new_sequence", Integer(0)),
    may("base_timestamp", DateTime),
    may("new_timestamp", DateTime),
];

static CHANGES: [Member; 8] = [
    may("identity", Object(&[may("file", Solid), may("new_version", Integer(1))])),
    may("principals", Object(&[may("file", Solid), may("changed_ids", List(&Uuid))])),
    may("credentials", Object(&[may("file", Solid)])),
    may("memory", Object(&[may("file", Solid), may("record_count", Integer(0))])),
    // Of ours: layers that the standard gives a delta no place for.
    may("attachments", Object(&[may("file", Solid)])),
    may("files", List(&Text)),
    may("files_removed", List(&Text)),
    may("layers_removed", List(&Text)),
];

/// `identity.json`.
pub(in super::super) static IDENTITY: Shape = Object(&[
    must("id", Uuid),
    must("agent_id", Uuid),
    must("version", Integer(1)),
    must("updated_at", DateTime),
    may("structured", Object(&STRUCTURED)),
    may("prose", Object(&PROSE)),
    may("source_format", Text),
    may("raw_source", Open),
]);

static STRUCTURED: [Member; 8] = [
    may("names", Object(&[must("primary", Text), may("nickname", Text), may("full", Text)])),
    may("role", Text),
    may("goals", List(&Text)),
    may("psychology", Object(&PSYCHOLOGY)),
    may("linguistics", Object(&LINGUISTICS)),
    may("capabilities", List(&Object(&CAPABILITY))),
    may("sub_agents", List(&Object(&SUB_AGENT))),
    may("aieos_extensions", Open),
];

static PSYCHOLOGY: [Member; 4] = [
    may("neural_matrix", Each(&Unit)),
    may("personality_traits", Object(&[must("framework", Text), must("scores", Each(&Number))])),
    may("moral_alignment", Text),
    may("mbti", Text),
];

static LINGUISTICS: [Member; 6] = [
    may("formality_level", Unit),
    may("verbosity", Unit),
    may("humor_level", Unit),
    may("slang_usage", Flag),
    may("preferred_language", Text),
    may("idiolect", Object(&IDIOLECT)),
];

static IDIOLECT: [Member; 3] = [
    may("catchphrases", List(&Text)),
    may("verbal_tics", List(&Text)),
    may("avoided_words", List(&Text)),
];

static CAPABILITY: [Member; 6] = [
    must("name", Text),
    may("description", Text),
    may("priority", Integer(1)),
    may("portability", Words(&["intrinsic", "host_dependent"])),
    may("host_requirements", Text),
    may("credential_ids", List(&Uuid)),
];

static SUB_AGENT: [Member; 9] = [
    must("agent_id", Nullable(&Uuid)),
    must("name", Text),
    may("description", Text),
    must("capabilities", List(&Object(&CAPABILITY))),
    may("model_hints", Object(&[may("primary_model", Text), may("last_model", Text)])),
    may("routing_hints", Text),
    must("status", Words(&["active", "inactive", "unavailable"])),
    may("last_invoked_at", Nullable(&DateTime)),
    may("performance_notes", Text),
];

static PROSE: [Member; 4] = [
    may("soul", Text),
    may("operating_instructions", Text),
    may("identity_profile", Text),
    may("custom_blocks", Each(&Text)),
];

/// `principals.json`.
pub(in super::super) static PRINCIPALS: Shape =
    Object(&[must("principals", List(&Object(&PRINCIPAL)))]);

static PRINCIPAL: [Member; 4] = [
    must("id", Uuid),
    must("principal_type", Words(&["human", "agent"])),
    may("agent_id", Nullable(&Uuid)),
    must("profile", Object(&PROFILE)),
];

static PROFILE: [Member; 9] = [
    must("id", Uuid),
    must("agent_id", Uuid),
    must("principal_id", Uuid),
    must("version", Integer(1)),
    must("updated_at", DateTime),
    may("structured", Object(&PERSON)),
    may("prose", Object(&[may("user_profile", Text)])),
    may("source_format", Text),
    may("raw_source", Open),
];

static PERSON: [Member; 8] = [
    may("name", Text),
    may("principal_type", Text),
    may("timezone", Text),
    may("locale", Text),
    may(
        "communication_preferences",
        Object(&[may("tone", Text), may("response_length", Text), may("formatting", Text)]),
    ),
    may(
        "work_context",
        Object(&[may("role", Text), may("company", Text), may("projects", List(&Text))]),
    ),
    may("relationships", List(&Open)),
    may("custom_fields", Open),
];

/// `credentials.json`.
pub(in super::super) static CREDENTIALS: Shape =
    Object(&[must("credentials", List(&Object(&CREDENTIAL)))]);

static CREDENTIAL: [Member; 13] = [
    must("id", Uuid),
    must("agent_id", Uuid),
    must("service", Solid),
    must(
        "credential_type",
        Words(&[
            "api_key",
            "oauth_token",
            "webhook_secret",
            "session_token",
            "ssh_key",
            "certificate",
            "custom",
        ]),
    ),
    may("label", Text),
    may("capabilities_granted", List(&Text)),
    must("encrypted_payload", Base64),
    must("encryption", Object(&ENCRYPTION)),
    must("created_at", DateTime),
    may("updated_at", Nullable(&DateTime)),
    may("last_rotated_at", Nullable(&DateTime)),
    may("expires_at", Nullable(&DateTime)),
    may("tags", List(&Text)),
];

static ENCRYPTION: [Member; 4] = [
    must("algorithm", Solid),
    may("kdf", Text),
    may(
        "kdf_params",
        Object(&[
            may("memory_cost", Integer(1)),
            may("time_cost", Integer(1)),
            may("parallelism", Integer(1)),
            // Of ours: the salt, for which the standard has no place.
            may("salt", Text),
        ]),
    ),
    must("nonce", Base64),
];

/// `attachments.json`.
pub(in super::super) static ATTACHMENTS: Shape = Object(&[
    may("artifact_size_threshold", Integer(0)),
    must("attachments", List(&Object(&ATTACHMENT))),
]);

static ATTACHMENT: [Member; 9] = [
    must("id", Uuid),
    must("filename", Text),
    must("media_type", Text),
    must("size_bytes", Integer(0)),
    must("hash", Object(&[must("algorithm", Text), must("value", Hex)])),
    must("source_path", Text),
    must("archive_path", Nullable(&Text)),
    must("remote_ref", Nullable(&Text)),
    may("referenced_by", List(&Uuid)),
];
