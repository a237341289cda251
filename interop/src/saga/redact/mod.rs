//! Redaction: what an organization keeps when an agent leaves is replaced or taken out, and every change is noted.
//!
//! Identity, persona, parameters, semantic memory, skills, environment and vault are the agent's own, and are not
//! touched.
//!
//! - `table`: what is done with each item. `run`: does it. `survey`: how each item is classified.
//! - `again`: what an earlier redaction did, which is not done again.

mod again;
mod run;
mod survey;
mod table;

use grainstore::EpochMs;
use serde_json::{Value, json};

use super::classify::Classifications;
use super::document::Document;
use super::manifest::Manifest;
use super::sign::{Signer, bad_key};
use crate::error::Result;

use again::Earlier;
use run::Redaction;
pub use survey::ClassifiedItem;
pub use table::REDACTED_TEXT;
pub(super) use table::removed_id;

/// What to do about a signature that would be lost.
const AGAIN_HINT: &str =
    "give the key of the organization, which signs the manifest of both redactions";

/// How a document is redacted: [`Document::redact`].
#[derive(Debug, Clone)]
pub struct RedactOptions {
    /// The id of the organization that redacts: it stands in the manifest, and its name goes out of `byOrganization`. What
    /// is redacted does not depend on it.
    pub organization: String,
    /// Why: `organizational-exit` or `cross-org-transfer`, or another reason.
    pub reason: String,
    /// When.
    pub at: EpochMs,
    /// What was decided of single items.
    pub classifications: Classifications,
}

impl Document {
    /// Replaces or takes out what is not classified as public or the agent's own, whichever organization it is of; notes
    /// it in `privacy.redactedFields` and in a manifest that the organization signs, and returns what it did as a
    /// manifest. Redact before you encrypt, and encrypt before you sign.
    ///
    /// What was redacted before is not redacted again. If nothing else is, the document stays as it is, with its
    /// manifest and the signature of that; but a signer that is not who signed it signs a new one. If more is redacted,
    /// or another signs, the new manifest lists both.
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
    /// `ERR_KEY` without a signer if more is redacted than a manifest lists that is signed, whose signature would be lost;
    /// the errors of the signer. The document is as it was then.
    pub fn redact(
        &mut self,
        options: &RedactOptions,
        signer: Option<&dyn Signer>,
    ) -> Result<Manifest> {
        let earlier = Earlier::of(self);
        let mut redacted = self.clone();
        let (manifest, is_new) = redacted.redact_layers(options, &earlier);
        if earlier.is_signed() && is_new && signer.is_none() {
            let message = "more would be redacted, and the manifest is signed by an organization";
            return Err(bad_key(message).with_hint(AGAIN_HINT).in_entry("redactionManifest"));
        }
        let stays = signer.is_none_or(|signer| earlier.is_signed_by(signer.wallet()));
        if earlier.is_there() && !is_new && stays {
            return Ok(manifest);
        }
        redacted.set_manifest(&manifest, &earlier, signer)?;
        *self = redacted;
        Ok(manifest)
    }

    /// Redacts it to look at what a redaction would do: the manifest is signed by nobody, whoever signed the last one.
    ///
    /// # Errors
    /// Those of [`Manifest::to_value`].
    pub(super) fn redact_for_a_look(&mut self, options: &RedactOptions) -> Result<Manifest> {
        let earlier = Earlier::of(self);
        let (manifest, _) = self.redact_layers(options, &earlier);
        self.set_manifest(&manifest, &earlier, None)?;
        Ok(manifest)
    }

    fn set_manifest(
        &mut self,
        manifest: &Manifest,
        earlier: &Earlier,
        signer: Option<&dyn Signer>,
    ) -> Result<()> {
        let entries = earlier.with(&manifest.entries)?;
        let value = manifest.value_with(&entries, self.id(), signer)?;
        self.members_mut().insert("redactionManifest".to_owned(), value);
        Ok(())
    }

    /// Redacts layers and members. Returns what was done, and whether anything was.
    fn redact_layers(&mut self, options: &RedactOptions, earlier: &Earlier) -> (Manifest, bool) {
        let mut redaction = Redaction::new(options, earlier);
        if let Some(layers) = self.layers_mut() {
            let mut value = Value::Object(std::mem::take(layers));
            redaction.run(&mut value);
            if let Value::Object(redacted) = value {
                *layers = redacted;
            }
        }
        redaction.unknown_members(self);
        let Redaction { entries, mut paths, .. } = redaction;
        if self.cut_privacy() {
            paths.push("privacy".to_owned());
        }
        self.note_redacted(&paths);
        let is_new = !entries.is_empty() || !paths.is_empty();
        let manifest = Manifest {
            applied_at: options.at,
            applied_by: options.organization.clone(),
            reason: options.reason.clone(),
            entries,
        };
        (manifest, is_new)
    }

    /// Takes out of what a document says of its privacy what nobody knows. Returns `true` if there was any.
    fn cut_privacy(&mut self) -> bool {
        let Some(privacy) = self.members_mut().get_mut("privacy") else { return false };
        let Some(members) = privacy.as_object_mut() else {
            *privacy = json!({});
            return true;
        };
        let before = members.len();
        members.retain(|name, value| match name.as_str() {
            "encryptedLayers" | "redactedFields" => {
                value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
            }
            "encryptionScheme" => value.is_string(),
            _ => false,
        });
        members.len() < before
    }

    fn note_redacted(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let privacy = self.members_mut().entry("privacy").or_insert_with(|| json!({}));
        let Some(privacy) = privacy.as_object_mut() else { return };
        let list = privacy.entry("redactedFields").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            for path in paths.iter().map(|path| Value::from(path.as_str())) {
                if !list.contains(&path) {
                    list.push(path);
                }
            }
        }
    }
}
