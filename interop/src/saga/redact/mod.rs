//! Redaction: what an organization keeps when an agent leaves is replaced or taken out, and every change is noted.
//!
//! Identity, persona, parameters, semantic memory, skills, environment and vault are the agent's own, and are not
//! touched.
//!
//! - `table`: what is done with each item. `run`: does it. `survey`: how each item is classified.

mod run;
mod survey;
mod table;

use grainstore::EpochMs;
use serde_json::{Value, json};

use super::classify::Classifications;
use super::document::Document;
use super::manifest::Manifest;
use super::sign::Signer;
use crate::error::Result;

use run::Redaction;
pub use survey::ClassifiedItem;
pub use table::REDACTED_TEXT;

/// How a document is redacted: [`Document::redact`].
#[derive(Debug, Clone)]
pub struct RedactOptions {
    /// The id of the organization: of tasks, and in `byOrganization`.
    pub organization: String,
    /// Why: `organizational-exit` or `cross-org-transfer`, or another reason.
    pub reason: String,
    /// When.
    pub at: EpochMs,
    /// What was decided of single items.
    pub classifications: Classifications,
}

impl Document {
    /// Takes out what is the organization's, notes it in `privacy.redactedFields` and in a manifest that the
    /// organization signs, and returns the manifest. Redact before you encrypt, and encrypt before you sign.
    ///
    /// What is encrypted cannot be redacted within: it is left as it is if it would stay, and else taken out as a
    /// whole. So are layers and members that are not known, unless it was decided of them by their paths
    /// ([`ItemType::MemoryLayer`](super::ItemType), `x_layer`; `document.x_member`).
    ///
    /// ```
    /// use grainstore::EpochMs;
    /// use grainstore_interop::saga::{Document, RedactOptions, RedactionAction, REDACTED_TEXT};
    ///
    /// let mut document = Document::parse(
    ///     br#"{"sagaVersion": "1.0", "documentId": "saga_a1", "layers": {"taskHistory": {"recentTasks": [
    ///         {"taskId": "t1", "status": "completed", "title": "Move the ledger"},
    ///         {"taskId": "t2", "status": "failed", "title": "Secret", "classification": "org-confidential"}]}}}"#,
    /// )?;
    /// let options = RedactOptions {
    ///     organization: "company_a".into(), reason: "organizational-exit".into(),
    ///     at: EpochMs::new(1_774_000_800_000), classifications: Default::default(),
    /// };
    /// let manifest = document.redact(&options, None)?;
    /// assert_eq!(manifest.entries[0].action, RedactionAction::Redacted);
    /// assert_eq!(manifest.entries[1].action, RedactionAction::Removed);
    /// let text = document.canonical()?;
    /// assert!(text.contains(REDACTED_TEXT) && !text.contains("ledger") && !text.contains("Secret"));
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the signer.
    pub fn redact(
        &mut self,
        options: &RedactOptions,
        signer: Option<&dyn Signer>,
    ) -> Result<Manifest> {
        let mut redaction = Redaction::new(options);
        if let Some(layers) = self.layers_mut() {
            let mut value = Value::Object(std::mem::take(layers));
            redaction.run(&mut value);
            if let Value::Object(redacted) = value {
                *layers = redacted;
            }
        }
        redaction.unknown_members(self);
        let Redaction { entries, paths, .. } = redaction;
        self.note_redacted(&paths);
        let manifest = Manifest {
            applied_at: options.at,
            applied_by: options.organization.clone(),
            reason: options.reason.clone(),
            entries,
        };
        let value = manifest.to_value(self.id(), signer)?;
        self.members_mut().insert("redactionManifest".to_owned(), value);
        Ok(manifest)
    }

    fn note_redacted(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let privacy = self.members_mut().entry("privacy").or_insert_with(|| json!({}));
        let Some(privacy) = privacy.as_object_mut() else { return };
        let list = privacy.entry("redactedFields").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(paths.iter().map(|path| Value::from(path.as_str())));
        }
    }
}
