//! Redaction manifests: what was taken out of a document, item by item, signed by the organization that did.

use grainstore::{EpochMs, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::classify::{Classification, ItemType};
use super::document::Document;
use super::finding::Findings;
use super::sign::{Signer, invalid, verify_signature};
use super::time;
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::json;

/// What [`Document::redact`] did with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RedactionAction {
    /// Its texts were replaced.
    Redacted,
    /// It was taken out.
    Removed,
}

/// One item that [`Document::redact`] redacted or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ManifestEntry {
    /// What kind of item.
    #[serde(rename = "type")]
    pub item_type: ItemType,
    /// Its id; of a workflow its name, of a part of a layer its path.
    pub id: String,
    /// What was done.
    pub action: RedactionAction,
    /// How it is classified.
    pub classification: Classification,
    /// The fields that were replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields_affected: Vec<String>,
    /// What became of a dispute about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispute_status: Option<String>,
}

/// A redaction manifest, before it is signed: of [`Document::redact`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// When.
    pub applied_at: EpochMs,
    /// By whom: the id of the organization.
    pub applied_by: String,
    /// Why.
    pub reason: String,
    /// The items.
    pub entries: Vec<ManifestEntry>,
}

impl Manifest {
    /// The member of a document, signed by the organization if there is a signer.
    ///
    /// # Errors
    /// The errors of the signer.
    pub fn to_value(&self, document_id: &str, signer: Option<&dyn Signer>) -> Result<Value> {
        let entries = serde_json::to_value(&self.entries)
            .map_err(|error| Error::corrupt(format!("the manifest cannot be written: {error}")))?;
        self.value_with(&entries, document_id, signer)
    }

    /// The member of a document with these entries.
    ///
    /// # Errors
    /// The errors of the signer.
    pub(super) fn value_with(
        &self,
        entries: &Value,
        document_id: &str,
        signer: Option<&dyn Signer>,
    ) -> Result<Value> {
        let applied_at = time::written(self.applied_at);
        let mut value = json!({
            "appliedAt": applied_at, "appliedBy": self.applied_by, "reason": self.reason,
            "summary": summary_of(entries), "entries": entries,
        });
        if let Some(signer) = signer {
            let sig = signer.sign(json::canonical(&value)?.as_bytes())?;
            let signature = json!({
                "walletAddress": signer.wallet().address(), "sig": sig,
                "message": format!("SAGA redaction manifest for {document_id} at {applied_at}"),
            });
            if let Some(members) = value.as_object_mut() {
                members.insert("orgSignature".to_owned(), signature);
            }
        }
        Ok(value)
    }
}

impl Document {
    /// Checks its redaction manifest: the counts against the entries, and the signature of the organization. Returns
    /// the address of the wallet that signed, since a manifest does not tell its chain; `None` if there is no manifest.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if the counts are others; `ERR_SIGNATURE` if it is not signed, or that is invalid.
    pub fn verify_manifest(&self) -> Result<Option<String>> {
        let Some(manifest) = self.get("redactionManifest") else { return Ok(None) };
        let mut found = Findings::default();
        check_counts(manifest, &mut found);
        if let Some(finding) = found.into_parts().0.into_iter().next() {
            return Err(Error::schema(finding.message).in_entry(&finding.path));
        }
        verified(manifest).map(Some).map_err(|error| error.in_entry("redactionManifest"))
    }
}

fn verified(manifest: &Value) -> Result<String> {
    let mut signed = manifest.clone();
    let signature = signed.as_object_mut().and_then(|members| members.remove("orgSignature"));
    let signature =
        signature.ok_or_else(|| invalid("no organization signed the redaction manifest"))?;
    let text = |name: &str| signature.get(name).and_then(Value::as_str).unwrap_or_default();
    let wallet = Wallet::of_unknown_chain(text("walletAddress"))
        .map_err(|error| Error::new(ErrorKind::Signature, error.to_string()))?;
    verify_signature(&wallet, json::canonical(&signed)?.as_bytes(), text("sig"))?;
    Ok(wallet.address().to_owned())
}

/// The counts of a summary: the type and action that each counts.
const COUNTS: [(&str, ItemType, &str); 6] = [
    ("tasksRedacted", ItemType::Task, "redacted"),
    ("tasksRemoved", ItemType::Task, "removed"),
    ("eventsRedacted", ItemType::EpisodicEvent, "redacted"),
    ("eventsRemoved", ItemType::EpisodicEvent, "removed"),
    ("workflowsRemoved", ItemType::Workflow, "removed"),
    ("artifactsRemoved", ItemType::Artifact, "removed"),
];

/// The summary of entries.
fn summary_of(entries: &Value) -> Value {
    let entries: Vec<_> = entries.as_array().into_iter().flatten().collect();
    let is = |entry: &&&Value, item_type: ItemType, action: Option<&str>| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        text("type") == Some(item_type.name())
            && action.is_none_or(|action| text("action") == Some(action))
    };
    let mut summary = Map::new();
    for (name, item_type, action) in COUNTS {
        let count = entries.iter().filter(|entry| is(entry, item_type, Some(action))).count();
        summary.insert(name.to_owned(), Value::from(count));
    }
    let layers = entries.iter().filter(|entry| is(entry, ItemType::MemoryLayer, None));
    let layers = layers.filter_map(|entry| entry.get("id")?.as_str()?.rsplit('.').next());
    summary.insert("memoryLayersRedacted".to_owned(), layers.collect());
    let prompt = entries.iter().any(|entry| is(&entry, ItemType::SystemPrompt, None));
    summary.insert("systemPromptRedacted".to_owned(), Value::from(prompt));
    Value::Object(summary)
}

/// Tells of counts in the summary of a manifest that are not those of its entries.
pub(super) fn check_counts(manifest: &Value, found: &mut Findings) {
    let (Some(summary), Some(entries)) = (manifest.get("summary"), manifest.get("entries")) else {
        return;
    };
    let counted = summary_of(entries);
    for (name, count) in counted.as_object().into_iter().flatten() {
        let said = summary.get(name);
        let same = match (said, count) {
            (None, Value::Array(none)) => none.is_empty(),
            (None, none) => none == &Value::Bool(false) || none.as_u64() == Some(0),
            (Some(Value::Array(said)), Value::Array(counted)) => {
                let sorted = |list: &[Value]| {
                    let mut texts: Vec<_> = list.iter().map(Value::to_string).collect();
                    texts.sort_unstable();
                    texts
                };
                sorted(said) == sorted(counted)
            }
            (Some(said), count) => json::equal(said, count),
        };
        if !same {
            let path = format!("redactionManifest.summary.{name}");
            found.error(&path, "it is not what the entries come to");
        }
    }
}
