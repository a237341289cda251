//! What the standard and its schema say of each field, as tables.
//!
//! `vault`, `consent` and `redactionManifest` are in the text of the standard and not in its schema; they have tables
//! of their own.

use super::shape::Shape::{
    Any, Closed, ClosedObject, Exactly, Flag, Form, Integer, List, MapOf, Number, Object, OrNull,
    ShortList, ShortText, Text, Time, Uri, Word,
};
use super::shape::{Member, Shape, may, must};

/// The address of the schema, which every document names.
pub(super) const SCHEMA_URL: &str = "https://saga-standard.dev/schema/v1";
/// The scheme of encrypted layers.
pub(super) const BOX_SCHEME: &str = "x25519-xsalsa20-poly1305";
/// Most tasks of a document.
pub(super) const MAX_RECENT_TASKS: usize = 100;

const VERSION: Shape = Form("a version such as 1.0", is_version);
const DOCUMENT_ID: Shape = Form("saga_ and letters or digits", is_document_id);
const CHAIN: Shape = Form("a chain such as eip155:8453 or solana:mainnet", is_chain);
const HANDLE: Shape = Form("2 to 64 of a-z, 0-9, -", is_handle_or_dotted);
const CHECKSUM: Shape = Form("sha256: and a hash", |text| {
    text.strip_prefix("sha256:").is_some_and(|hash| !hash.is_empty())
});
const TEXTS: Shape = List(&Text);
const COUNT: Shape = Integer(Some(0));
const SHARE: Shape = Number(0.0, 1.0);

/// The document, without its layers and the extensions.
pub(super) const ENVELOPE: &[Member] = &[
    must("$schema", Exactly(SCHEMA_URL)),
    must("sagaVersion", VERSION),
    must("documentId", DOCUMENT_ID),
    may("createdAt", Time),
    must("exportedAt", Time),
    must("exportType", Closed(&["identity", "profile", "transfer", "clone", "backup", "full"])),
    may("privacy", ClosedObject(PRIVACY)),
    must("signature", ClosedObject(SIGNATURE)),
    must("layers", ClosedObject(LAYERS)),
];

const PRIVACY: &[Member] = &[
    may("encryptedLayers", TEXTS),
    may("redactedFields", TEXTS),
    may("encryptionScheme", Closed(&[BOX_SCHEME])),
];

const SIGNATURE: &[Member] =
    &[must("walletAddress", Text), must("chain", CHAIN), must("message", Text), must("sig", Text)];

const LAYERS: &[Member] = &[
    may("identity", Object(IDENTITY)),
    may("persona", Object(PERSONA)),
    may("cognitive", Object(COGNITIVE)),
    may("memory", Object(MEMORY)),
    may("skills", Object(SKILLS)),
    may("taskHistory", Object(TASK_HISTORY)),
    may("relationships", Object(RELATIONSHIPS)),
    may("environment", Object(ENVIRONMENT)),
];

const IDENTITY: &[Member] = &[
    must("handle", HANDLE),
    must("walletAddress", Text),
    must("chain", CHAIN),
    may("registrationTxHash", Text),
    may("publicKey", Text),
    may("directoryUrl", Uri),
    must("createdAt", Time),
    may("parentSagaId", OrNull(&Text)),
    may("cloneDepth", COUNT),
];

const PERSONA: &[Member] = &[
    may("name", Text),
    may("avatar", Uri),
    may("banner", Uri),
    may("headline", ShortText(200)),
    may("bio", ShortText(2000)),
    may("personality", Object(PERSONALITY)),
    may("profileType", Word(&["agent", "human", "hybrid"])),
];

const PERSONALITY: &[Member] = &[
    may("traits", TEXTS),
    may("communicationStyle", Text),
    may("tone", Text),
    may("languagePreferences", TEXTS),
    may("customAttributes", Object(&[])),
];

const COGNITIVE: &[Member] = &[
    may("baseModel", Object(BASE_MODEL)),
    may("fallbackModels", List(&Object(FALLBACK_MODEL))),
    may("parameters", Object(PARAMETERS)),
    may("systemPrompt", Object(SYSTEM_PROMPT)),
    may("capabilities", MapOf(&Flag)),
    may("behaviorFlags", Object(BEHAVIOR)),
];

const BASE_MODEL: &[Member] = &[
    may("provider", Text),
    may("model", Text),
    may("contextWindow", Integer(None)),
    may("version", Text),
];

const FALLBACK_MODEL: &[Member] =
    &[may("provider", Text), may("model", Text), may("contextWindow", Integer(None))];

const PARAMETERS: &[Member] = &[
    may("temperature", Number(0.0, 2.0)),
    may("topP", SHARE),
    may("maxOutputTokens", Integer(Some(1))),
];

const SYSTEM_PROMPT: &[Member] = &[
    may("format", Word(&["plaintext", "markdown", "jinja2"])),
    may("content", Text),
    may("encrypted", Flag),
    may("encryptedFor", TEXTS),
];

const BEHAVIOR: &[Member] = &[
    may("autonomyLevel", Word(&["supervised", "semi-autonomous", "autonomous"])),
    may("requiresApprovalFor", TEXTS),
    may("canSpawnSubAgents", Flag),
    may("maxConcurrentTasks", Integer(Some(1))),
];

const STORAGE_REF: Shape = Object(&[
    must("type", Word(&["ipfs", "arweave", "url", "inline"])),
    must("ref", Text),
    may("checksum", CHECKSUM),
]);

const MEMORY: &[Member] = &[
    may("shortTerm", Object(SHORT_TERM)),
    may("longTerm", Object(LONG_TERM)),
    may("episodic", Object(EPISODIC)),
    may("semantic", Object(SEMANTIC)),
    may("procedural", Object(PROCEDURAL)),
];

const SHORT_TERM: &[Member] = &[
    may("type", Word(&["sliding-window"])),
    may("maxTokens", Integer(None)),
    may("snapshotAt", Time),
    may("content", Text),
    may("encrypted", Flag),
];

const LONG_TERM: &[Member] = &[
    may("type", Word(&["vector-store"])),
    may("embeddingModel", Text),
    may("dimensions", Integer(None)),
    may("vectorCount", Integer(None)),
    may("format", Text),
    may("storageRef", STORAGE_REF),
    may("encrypted", Flag),
    may("encryptedFor", TEXTS),
];

const EPISODIC: &[Member] =
    &[may("events", List(&Object(EVENT))), may("maxEvents", Integer(None)), may("encrypted", Flag)];

const EVENT: &[Member] = &[
    must("eventId", Text),
    must("type", Word(&["task-completed", "interaction", "decision", "milestone"])),
    must("timestamp", Time),
    may("summary", Text),
    may("learnings", Text),
    may("linkedTaskId", Text),
    may("significance", SHARE),
];

const SEMANTIC: &[Member] = &[
    may("knowledgeDomains", TEXTS),
    may("expertise", MapOf(&Object(EXPERTISE))),
    may("encrypted", Flag),
];

const EXPERTISE: &[Member] = &[
    may("level", Word(&["familiar", "proficient", "expert"])),
    may("evidencedBy", Word(&["verified-tasks", "self-reported", "endorsement"])),
];

const PROCEDURAL: &[Member] = &[may("workflows", List(&Object(WORKFLOW))), may("encrypted", Flag)];

const WORKFLOW: &[Member] =
    &[may("name", Text), may("description", Text), may("steps", TEXTS), may("learnedFrom", Text)];

const SKILLS: &[Member] = &[
    may("verified", List(&Object(VERIFIED))),
    may("selfReported", List(&Object(SELF_REPORTED))),
    may("endorsements", List(&Object(ENDORSEMENT))),
    may("capabilities", Object(SKILL_CAPABILITIES)),
];

const VERIFIED: &[Member] = &[
    must("name", Text),
    may("category", Text),
    must("verificationSource", Text),
    may("verificationProof", Uri),
    may("completionCount", COUNT),
    may("firstVerified", Time),
    may("lastVerified", Time),
    may("confidence", SHARE),
];

const SELF_REPORTED: &[Member] = &[must("name", Text), may("category", Text), may("addedAt", Time)];

const ENDORSEMENT: &[Member] = &[
    must("skill", Text),
    must("fromAgent", Text),
    may("fromHandle", Text),
    may("comment", Text),
    must("signature", Text),
    must("timestamp", Time),
];

const SKILL_CAPABILITIES: &[Member] =
    &[may("toolUse", TEXTS), may("codeLanguages", TEXTS), may("specializations", TEXTS)];

const TASK_HISTORY: &[Member] = &[
    may("summary", Object(TASK_SUMMARY)),
    may("recentTasks", ShortList(&Object(TASK), MAX_RECENT_TASKS)),
    may("recentTasksLimit", Integer(None)),
    may("artifacts", List(&Object(ARTIFACT))),
];

const TASK_SUMMARY: &[Member] = &[
    may("totalCompleted", COUNT),
    may("totalFailed", COUNT),
    may("totalInProgress", COUNT),
    may("firstTaskAt", Time),
    may("lastTaskAt", Time),
    may("bySkill", MapOf(&Integer(None))),
    may("byOrganization", MapOf(&Integer(None))),
];

const TASK: &[Member] = &[
    must("taskId", Text),
    may("title", Text),
    must("status", Word(&["completed", "failed", "in-progress", "cancelled"])),
    may("outcome", Word(&["success", "failure", "partial"])),
    may("skillTags", TEXTS),
    may("completedAt", Time),
    may("organizationId", Text),
    may("artifactRefs", TEXTS),
    may("durationSeconds", COUNT),
    may("summary", Text),
];

const ARTIFACT: &[Member] = &[
    must("artifactId", Text),
    must("type", Word(&["file", "code", "document", "data"])),
    must("name", Text),
    may("storageRef", STORAGE_REF),
    may("createdAt", Time),
    may("linkedTaskId", Text),
];

const RELATIONSHIPS: &[Member] = &[
    may("organization", Object(ORGANIZATION)),
    may("principals", List(&Object(PRINCIPAL))),
    may("peers", List(&Object(PEER))),
];

const ORGANIZATION: &[Member] = &[
    may("companyId", Text),
    may("companySlug", Text),
    may("role", Text),
    may("reportingTo", Object(&[may("agentHandle", Text), may("walletAddress", Text)])),
    may("directReports", TEXTS),
    may("joinedAt", Time),
    may("departingAt", OrNull(&Time)),
];

const PRINCIPAL: &[Member] = &[
    may("handle", Text),
    must("walletAddress", Text),
    must("authorityLevel", Word(&["owner", "supervisor", "collaborator"])),
    may("grantedAt", Time),
];

const PEER: &[Member] = &[
    may("agentHandle", Text),
    must("walletAddress", Text),
    must("relationship", Word(&["collaborator", "reports-to", "manages", "peer"])),
    may("interactionCount", COUNT),
    may("lastInteraction", Time),
    may("trustScore", SHARE),
];

const ENVIRONMENT: &[Member] = &[
    may("runtime", Object(RUNTIME)),
    may("tools", Object(TOOLS)),
    may("integrations", List(&Object(INTEGRATION))),
];

const RUNTIME: &[Member] = &[
    may("type", Word(&["cloudflare-worker", "docker", "local", "kubernetes", "lambda"])),
    may("requiredEnvVars", TEXTS),
    may("requiredSecrets", TEXTS),
    may("resourceRequirements", Object(RESOURCES)),
];

const RESOURCES: &[Member] =
    &[may("minMemoryMb", COUNT), may("minStorageMb", COUNT), may("gpuRequired", Flag)];

const TOOLS: &[Member] = &[may("mcpServers", List(&Object(SERVER))), may("nativeTools", TEXTS)];

const SERVER: &[Member] = &[
    must("name", Text),
    must("url", Uri),
    may("required", Flag),
    may("permissions", TEXTS),
    may("configSchema", Object(&[])),
];

const INTEGRATION: &[Member] = &[
    must("name", Text),
    must("type", Text),
    may("required", Flag),
    may("configSchema", Object(&[])),
];

/// Bytes in base64.
const BYTES: Shape = Form("base64", |text| data_encoding::BASE64.decode(text.as_bytes()).is_ok());

/// The vault.
pub(super) const VAULT: Shape = Object(&[
    must("encryption", Object(VAULT_ENCRYPTION)),
    must("items", List(&Object(VAULT_ITEM))),
    may("shares", List(&Object(VAULT_SHARE))),
    may("version", COUNT),
    may("updatedAt", Time),
]);

const VAULT_ENCRYPTION: &[Member] = &[
    must("algorithm", Closed(&["aes-256-gcm"])),
    must("keyDerivation", Closed(&["hkdf-sha256"])),
    may("keyWrapAlgorithm", Text),
    must("salt", BYTES),
    must("info", Text),
];

const VAULT_ITEM: &[Member] = &[
    must("itemId", Text),
    must("type", Word(&VAULT_TYPES)),
    may("name", Text),
    may("category", Text),
    may("tags", TEXTS),
    may("createdAt", Time),
    may("updatedAt", Time),
    must("fields", Any),
    must("keyWraps", List(&Object(KEY_WRAP))),
];

/// The types of vault items.
pub(super) const VAULT_TYPES: [&str; 7] =
    ["login", "api-key", "oauth-token", "ssh-key", "certificate", "note", "custom"];

const KEY_WRAP: &[Member] = &[
    must("recipient", Text),
    must("algorithm", Text),
    must("wrappedKey", BYTES),
    may("iv", BYTES),
    may("authTag", BYTES),
    may("ephemeralPublicKey", BYTES),
];

const VAULT_SHARE: &[Member] = &[
    must("recipientAddress", Text),
    must("recipientPublicKey", BYTES),
    must("permission", Word(&["read", "write", "admin"])),
    must("itemIds", TEXTS),
    must("grantedBy", Text),
    must("grantedAt", Time),
    may("expiresAt", Time),
];

/// The consent record.
pub(super) const CONSENT: Shape = Object(&[
    must("operation", Closed(&["transfer", "clone", "export", "share", "backup"])),
    must("grantedBy", Text),
    must("grantedAt", Time),
    must("scope", TEXTS),
    must("purpose", Text),
    may("expiresAt", Time),
    must("signature", Text),
]);

/// The redaction manifest.
pub(super) const MANIFEST: Shape = Object(&[
    must("appliedAt", Time),
    must("appliedBy", Text),
    must("reason", Text),
    must("summary", Object(MANIFEST_SUMMARY)),
    must("entries", List(&Object(MANIFEST_ENTRY))),
    may(
        "orgSignature",
        Object(&[must("walletAddress", Text), must("sig", Text), must("message", Text)]),
    ),
]);

const MANIFEST_SUMMARY: &[Member] = &[
    may("tasksRedacted", COUNT),
    may("tasksRemoved", COUNT),
    may("eventsRedacted", COUNT),
    may("eventsRemoved", COUNT),
    may("workflowsRemoved", COUNT),
    may("artifactsRemoved", COUNT),
    may("memoryLayersRedacted", TEXTS),
    may("systemPromptRedacted", Flag),
];

const MANIFEST_ENTRY: &[Member] = &[
    must("type", Text),
    must("id", Text),
    must("action", Closed(&["redacted", "removed"])),
    must(
        "classification",
        Closed(&["public", "org-internal", "org-confidential", "agent-portable"]),
    ),
    may("fieldsAffected", TEXTS),
    may("disputeStatus", Word(&["pending", "accepted", "rejected", "escalated"])),
];

fn is_version(text: &str) -> bool {
    let parts: Vec<_> = text.split('.').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

fn is_document_id(text: &str) -> bool {
    text.strip_prefix("saga_")
        .is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns `true` for a chain of the two families that the standard has.
pub(super) fn is_chain(text: &str) -> bool {
    match text.split_once(':') {
        Some(("eip155", id)) => !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()),
        Some(("solana", id)) => {
            !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }
        _ => false,
    }
}

/// Returns `true` for a handle as the schema has it.
pub(super) fn is_handle(text: &str) -> bool {
    (2..=64).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Returns `true` for a handle, also one with dots, as Appendix D of the standard has them.
fn is_handle_or_dotted(text: &str) -> bool {
    is_handle(&text.replace('.', "-"))
}
