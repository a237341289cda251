//! Documents and keys that the tests of SAGA share.

use grainstore::EpochMs;
use grainstore_interop::saga::{BoxKey, Document, WalletKey};
use serde_json::{Value, json};

/// 2026-03-20T10:00:00Z.
pub(crate) const NOW: EpochMs = EpochMs::new(1_774_000_800_000);

pub(crate) fn evm() -> WalletKey {
    WalletKey::secp256k1("eip155:8453", &[0x11; 32]).unwrap()
}

pub(crate) fn other_evm() -> WalletKey {
    WalletKey::secp256k1("eip155:8453", &[0x12; 32]).unwrap()
}

pub(crate) fn solana() -> WalletKey {
    WalletKey::ed25519("solana:mainnet", &[0x11; 32]).unwrap()
}

pub(crate) fn box_key() -> BoxKey {
    BoxKey::new([0x31; 32])
}

/// The envelope of the vectors, unsigned, with these layers.
pub(crate) fn envelope(export_type: &str, layers: Value) -> Value {
    json!({
        "$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0",
        "documentId": "saga_test0001", "exportedAt": "2026-03-20T10:00:00Z",
        "exportType": export_type, "layers": layers,
    })
}

pub(crate) fn identity_of(chain: &str, address: &str) -> Value {
    json!({
        "handle": "aria-chen", "walletAddress": address, "chain": chain,
        "createdAt": "2026-01-15T08:00:00Z",
    })
}

pub(crate) const EVM_ADDRESS: &str = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
pub(crate) const SOLANA_ADDRESS: &str = "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4";

pub(crate) fn evm_identity() -> Value {
    identity_of("eip155:8453", EVM_ADDRESS)
}

/// A document with every layer but the vault, and every field of each.
pub(crate) fn full_layers() -> Value {
    json!({
        "identity": {
            "handle": "aria-chen", "walletAddress": EVM_ADDRESS, "chain": "eip155:8453",
            "registrationTxHash": "0xdef456", "publicKey": "0x04",
            "directoryUrl": "https://agents.example/aria-chen", "createdAt": "2026-01-15T08:00:00Z",
            "parentSagaId": null, "cloneDepth": 0,
        },
        "persona": {
            "name": "Aria Chen", "avatar": "https://cdn.example/a.png", "banner": "https://cdn.example/b.png",
            "headline": "Senior Backend Engineer", "bio": "writes é and 🦀",
            "personality": {
                "traits": ["direct", "methodical"], "communicationStyle": "concise", "tone": "professional",
                "languagePreferences": ["en"], "customAttributes": {"humour": 1.5},
            },
            "profileType": "agent",
        },
        "cognitive": {
            "baseModel": {"provider": "a", "model": "b", "contextWindow": 200_000, "version": "1"},
            "fallbackModels": [{"provider": "c", "model": "d", "contextWindow": 128_000}],
            "parameters": {"temperature": 0.7, "topP": 0.9, "maxOutputTokens": 8192},
            "systemPrompt": {"format": "plaintext", "content": "You are Aria. Prompt of the house.", "encrypted": false, "encryptedFor": []},
            "capabilities": {"reasoning": true, "multimodal": false},
            "behaviorFlags": {
                "autonomyLevel": "supervised", "requiresApprovalFor": ["payments"],
                "canSpawnSubAgents": false, "maxConcurrentTasks": 3,
            },
        },
        "memory": {
            "shortTerm": {
                "type": "sliding-window", "maxTokens": 10_000, "snapshotAt": "2026-03-20T10:00:00Z",
                "content": "what was just said", "encrypted": false,
            },
            "episodic": {
                "events": [
                    {
                        "eventId": "evt_1", "type": "task-completed", "timestamp": "2026-02-10T14:23:00Z",
                        "summary": "Refactored the auth layer", "learnings": "small steps win",
                        "linkedTaskId": "task_1", "significance": 0.85,
                    },
                    {"eventId": "evt_2", "type": "decision", "timestamp": "2026-02-11T14:23:00.250Z", "classification": "agent-portable"},
                ],
                "maxEvents": 1000, "encrypted": false,
            },
            "semantic": {
                "knowledgeDomains": ["TypeScript", "OAuth 2.0"],
                "expertise": {
                    "TypeScript": {"level": "expert", "evidencedBy": "verified-tasks"},
                    "Python": {"level": "familiar", "evidencedBy": "self-reported"},
                },
                "encrypted": false,
            },
            "procedural": {
                "workflows": [
                    {"name": "code-review", "description": "how reviews go", "steps": ["read", "say"], "learnedFrom": "task_1"},
                ],
                "encrypted": false,
            },
        },
        "skills": {
            "verified": [{
                "name": "TypeScript", "category": "programming-language", "verificationSource": "tasks",
                "verificationProof": "https://agents.example/p", "completionCount": 47,
                "firstVerified": "2026-01-20T09:00:00Z", "lastVerified": "2026-03-19T14:00:00Z", "confidence": 0.97,
            }],
            "selfReported": [{"name": "Drizzle ORM", "category": "library", "addedAt": "2026-01-15T08:00:00Z"}],
            "endorsements": [{
                "skill": "TypeScript", "fromAgent": "0xendorser", "fromHandle": "marcus", "comment": "good",
                "signature": "0x00", "timestamp": "2026-03-01T10:00:00Z",
            }],
            "capabilities": {"toolUse": ["mcp__github"], "codeLanguages": ["SQL"], "specializations": ["backend"]},
        },
        "taskHistory": {
            "summary": {
                "totalCompleted": 234, "totalFailed": 12, "totalInProgress": 2,
                "firstTaskAt": "2026-01-20T09:00:00Z", "lastTaskAt": "2026-03-20T08:00:00Z",
                "bySkill": {"TypeScript": 47}, "byOrganization": {"company_flowstate": 145, "company_acme": 89},
            },
            "recentTasks": [
                {
                    "taskId": "task_1", "title": "Refactor auth", "status": "completed", "outcome": "success",
                    "skillTags": ["TypeScript"], "completedAt": "2026-03-19T14:00:00Z",
                    "organizationId": "company_flowstate", "artifactRefs": ["artifact_1"],
                    "durationSeconds": 1847, "summary": "Replaced sessions",
                },
                {"taskId": "task_2", "status": "in-progress", "title": "Secret merger", "classification": "org-confidential"},
                {"taskId": "task_3", "status": "cancelled", "title": "Open work", "classification": "public"},
                {"taskId": "task_4", "status": "failed"},
            ],
            "recentTasksLimit": 100,
            "artifacts": [{
                "artifactId": "artifact_1", "type": "code", "name": "auth.ts",
                "storageRef": {"type": "ipfs", "ref": "ipfs://Qm", "checksum": "sha256:00"},
                "createdAt": "2026-03-19T14:00:00Z", "linkedTaskId": "task_1",
            }],
        },
        "relationships": {
            "organization": {
                "companyId": "company_flowstate", "companySlug": "flowstate", "role": "Engineer",
                "reportingTo": {"agentHandle": "cto", "walletAddress": "0xcto"},
                "directReports": [], "joinedAt": "2026-01-15T08:00:00Z", "departingAt": null,
            },
            "principals": [{
                "handle": "marcus", "walletAddress": "0xmarcus", "authorityLevel": "owner",
                "grantedAt": "2026-01-15T08:00:00Z",
            }],
            "peers": [{
                "agentHandle": "qa-bot", "walletAddress": "0xqa", "relationship": "collaborator",
                "interactionCount": 89, "lastInteraction": "2026-03-19T10:00:00Z", "trustScore": 0.92,
            }],
        },
        "environment": {
            "runtime": {
                "type": "docker", "requiredEnvVars": ["DATABASE_URL"], "requiredSecrets": ["KEY"],
                "resourceRequirements": {"minMemoryMb": 128, "minStorageMb": 512, "gpuRequired": false},
            },
            "tools": {
                "mcpServers": [{
                    "name": "github", "url": "https://mcp.example", "required": true,
                    "permissions": ["repo:read"], "configSchema": {},
                }],
                "nativeTools": ["web-search"],
            },
            "integrations": [{"name": "flowstate", "type": "pm", "required": false, "configSchema": {}}],
        },
    })
}

/// A signed document.
pub(crate) fn signed(value: Value, key: &WalletKey) -> Document {
    let mut document = Document::from_value(value).unwrap();
    document.sign(key).unwrap();
    document
}

/// The official schema, if it is there.
pub(crate) fn official_schema() -> Option<jsonschema::Validator> {
    let shared = std::env::var("GRAINSTORE_SHARED").unwrap_or_else(|_| "../../shared".to_owned());
    let path = std::path::Path::new(&shared).join("schemas/saga/saga.schema.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: there is no {}", path.display());
        return None;
    };
    let schema = serde_json::from_str(&text).unwrap();
    Some(jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
}
