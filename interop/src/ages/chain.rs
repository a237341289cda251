//! Linking steps: the hash of a step (AGES v1 section 8), and the numbers, names and hashes that make a chain of them.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::STEP_VERSION;
use crate::json;

/// The SHA-256 of a value in canonical form, in hex.
///
/// For what these formats hold, text and integers, that form is one line with names in the order of their bytes.
pub(super) fn hash(value: &Value) -> String {
    HEXLOWER.encode(&Sha256::digest(json::line(value)))
}

/// The hash of a step: that of its canonical form in which `step_hash` is empty. The step is the same afterwards.
pub(super) fn step_hash(step: &mut Value) -> String {
    let own = replace_hash(step, String::new());
    let made = hash(step);
    replace_hash(step, own);
    made
}

/// Sets `step_hash`, and returns what it was.
fn replace_hash(step: &mut Value, to: String) -> String {
    match step.pointer_mut("/chain/step_hash") {
        Some(Value::String(hash)) => std::mem::replace(hash, to),
        _ => String::new(),
    }
}

/// A chain that steps are appended to.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    tenant_id: String,
    request_id: String,
    evidence_ref: String,
    next_index: u64,
    /// Hash of the last step.
    last_hash: Option<String>,
}

impl Chain {
    /// An empty chain. Its first step is the GENESIS.
    pub(super) fn new(tenant_id: &str, id: &str) -> Self {
        let (request_id, evidence_ref) = (format!("seg_{id}"), format!("evp_{id}"));
        let tenant_id = tenant_id.to_owned();
        Self { tenant_id, request_id, evidence_ref, next_index: 0, last_hash: None }
    }

    pub(super) fn request_id(&self) -> &str {
        &self.request_id
    }

    pub(super) fn evidence_ref(&self) -> &str {
        &self.evidence_ref
    }

    /// Hash of the last step: the root of a pack that ends here.
    pub(super) fn last_hash(&self) -> Option<&str> {
        self.last_hash.as_deref()
    }

    /// The index of the next step.
    pub(super) fn next_index(&self) -> u64 {
        self.next_index
    }

    /// Appends a step, and returns it with its place and its hash. `output` is the hash of what was put out.
    pub(super) fn append(&mut self, parts: &StepParts) -> Value {
        let is_genesis = self.next_index == 0;
        let mut step = json!({
            "schema_version": STEP_VERSION,
            "tenant_id": self.tenant_id,
            "request_id": self.request_id,
            "step_id": format!("step_{:04}", self.next_index),
            "step_index": self.next_index,
            "timestamp": parts.timestamp,
            "kind": if is_genesis { "GENESIS" } else { parts.kind },
            "actor": parts.actor,
            "subject": { "type": "action", "name": parts.name },
            "input": parts.input,
            "policy": parts.policy,
            "decision": parts.decision,
            "outputs": { "sanitized_output_hash": parts.output, "evidence_ref": self.evidence_ref },
            "chain": { "prev_step_hash": self.last_hash, "step_hash": "", "genesis": is_genesis },
        });
        let hash = step_hash(&mut step);
        replace_hash(&mut step, hash.clone());
        self.last_hash = Some(hash);
        self.next_index = self.next_index.saturating_add(1);
        step
    }
}

/// What a step says beside its place in the chain.
#[derive(Debug)]
pub(super) struct StepParts {
    pub(super) timestamp: String,
    pub(super) kind: &'static str,
    pub(super) actor: Value,
    /// Name of the action.
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) policy: Value,
    pub(super) decision: Value,
    pub(super) output: Option<String>,
}
