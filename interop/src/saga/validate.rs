//! Validation: the schema as far as it goes, the parts it lacks, and the rules of the text.
//!
//! The schema closes the root and `layers` without `vault`, `consent` and `redactionManifest`, which the text of the
//! standard requires. So the three are judged apart, and a document with one of them is `valid-with-extensions`.

use grainstore::{EpochMs, ErrorKind};
use serde::Serialize;
use serde_json::Value;

use super::consent::check_record;
use super::document::Document;
use super::finding::{Finding, Findings, Level};
use super::kinds::Layer;
use super::rules;
use super::schema::{CONSENT, ENVELOPE, MANIFEST, VAULT, is_handle};
use super::shape::{Shape, check};
use super::signature::SignatureVerdict;
use crate::error::Error;

/// The members of a document that its schema lacks.
pub(super) const EXTENSIONS: [&str; 2] = ["consent", "redactionManifest"];

/// What a document is, as a whole: of [`Document::validate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the published schema and the text of the standard have it.
    Valid,
    /// Valid, with parts that the text requires and the published schema refuses: vault, consent, manifest.
    ValidWithExtensions,
    /// Neither.
    Invalid,
}

/// What a validation found: of [`Document::validate`].
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Validation {
    /// The verdict on form and rules. It does not depend on the signature.
    pub verdict: Verdict,
    /// What the signature came to.
    pub signature: SignatureVerdict,
    /// What is wrong or unusual, the worst first.
    pub findings: Vec<Finding>,
    /// Findings beyond the first thousand.
    pub more_findings: u64,
    /// Shares of the vault that have expired, as recipients.
    pub expired_shares: Vec<String>,
}

impl Validation {
    /// The findings of a level.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.level == level)
    }
}

impl Document {
    /// Validates it: its form, the rules of the standard, its signature, and those of its consent and its redaction
    /// manifest. `now` judges what expires.
    ///
    /// ```
    /// use grainstore_interop::saga::{Document, Level, Verdict};
    ///
    /// let document = Document::parse(br#"{"sagaVersion": "1.0", "documentId": "a1", "layers": {}}"#)?;
    /// let validation = document.validate(grainstore::EpochMs::new(0));
    /// assert_eq!(validation.verdict, Verdict::Invalid);
    /// assert!(validation.of_level(Level::Error).any(|finding| finding.path == "documentId"));
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    #[must_use]
    pub fn validate(&self, now: EpochMs) -> Validation {
        let mut findings = self.findings(now);
        self.check_signatures(&mut findings);
        let has_extension = EXTENSIONS.iter().any(|name| self.get(name).is_some())
            || self.layer(Layer::Vault).is_some();
        let verdict = match findings.worst() {
            Some(Level::Error | Level::Schema) => Verdict::Invalid,
            _ if has_extension => Verdict::ValidWithExtensions,
            _ => Verdict::Valid,
        };
        let (findings, more_findings) = findings.into_parts();
        let expired_shares = rules::expired_shares(self, now);
        let signature = self.verify();
        Validation { verdict, signature, findings, more_findings, expired_shares }
    }

    /// Tells of a consent or a manifest that is not signed by whom it says; their forms and counts are judged apart.
    fn check_signatures(&self, found: &mut Findings) {
        let is_signature = |error: &Error| error.kind() == ErrorKind::Signature;
        if let (Some(record), Ok(wallet)) = (self.get("consent"), self.wallet())
            && let Err(error) = check_record(record, &wallet)
            && is_signature(&error)
        {
            found.error(error.entry().unwrap_or("consent"), error.message());
        }
        let Some(manifest) = self.get("redactionManifest") else { return };
        let path = "redactionManifest.orgSignature";
        match (manifest.get("orgSignature"), self.verify_manifest()) {
            (None, _) => found.warn(path, "no organization signed the redaction manifest"),
            (Some(_), Err(error)) if is_signature(&error) => found.error(path, error.message()),
            _ => {}
        }
    }

    pub(super) fn findings(&self, now: EpochMs) -> Findings {
        let mut found = Findings::default();
        check(&self.published_part(), Shape::ClosedObject(ENVELOPE), "", &mut found);
        if let Some(vault) = self.layer(Layer::Vault) {
            check(vault, VAULT, "layers.vault", &mut found);
        }
        for (name, shape) in EXTENSIONS.into_iter().zip([CONSENT, MANIFEST]) {
            if let Some(value) = self.get(name) {
                check(value, shape, name, &mut found);
            }
        }
        let handle = self.layer(Layer::Identity).and_then(|identity| identity.get("handle"));
        if handle.and_then(Value::as_str).is_some_and(|handle| !is_handle(handle)) {
            let message = "the schema has no dots in a handle";
            found.add(Finding::new(Level::Schema, "layers.identity.handle", message));
        }
        rules::check_all(self, now, &mut found);
        found
    }

    /// The document without what its schema lacks: the part that is judged by it.
    #[must_use]
    pub fn published_part(&self) -> Value {
        let mut members = self.members().clone();
        for name in EXTENSIONS {
            members.remove(name);
        }
        if let Some(layers) = members.get_mut("layers").and_then(Value::as_object_mut) {
            layers.remove(Layer::Vault.name());
        }
        Value::Object(members)
    }
}
