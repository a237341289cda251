//! Consent records: made, signed, and judged; the messages that consent to a transfer or a clone; who must consent.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use grainstore::format::parse_datetime;
use grainstore::{EpochMs, ErrorKind};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::document::texts;
use super::kinds::{ExportType, Layer, named};
use super::schema::CONSENT;
use super::sign::{Signer, verify_signature};
use super::wallet::Wallet;
use super::{finding, shape, time, vault};
use crate::error::{Error, Result};
use crate::json;

named! {
    /// What a consent is to.
    ///
    /// ```
    /// use grainstore_interop::saga::Operation;
    ///
    /// assert_eq!("transfer".parse::<Operation>()?, Operation::Transfer);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    Operation, "operation" {
        /// To move the agent.
        Transfer => "transfer",
        /// To make a second one of it.
        Clone => "clone",
        /// To give its document away.
        Export => "export",
        /// To share a part of it.
        Share => "share",
        /// To keep a copy.
        Backup => "backup",
    }
}

impl Operation {
    /// The operation that an export of a type is.
    #[must_use]
    pub const fn of_export(export: ExportType) -> Self {
        match export {
            ExportType::Transfer => Self::Transfer,
            ExportType::Clone => Self::Clone,
            ExportType::Backup => Self::Backup,
            ExportType::Identity | ExportType::Profile | ExportType::Full => Self::Export,
        }
    }
}

/// A consent that an agent gives: the record that an export between organizations has.
///
/// ```
/// use grainstore::EpochMs;
/// use grainstore_interop::saga::{Consent, Layer, Operation, WalletKey};
///
/// let key = WalletKey::secp256k1("eip155:8453", &[0x11; 32])?;
/// let consent = Consent {
///     operation: Operation::Transfer, granted_at: EpochMs::new(1_774_000_800_000), expires_at: None,
///     scope: vec![Layer::Identity, Layer::Skills], purpose: "a move to Acme".into(),
/// };
/// let record = consent.sign(&key)?;
/// assert_eq!(record["scope"][1], "skills");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// What it is to.
    pub operation: Operation,
    /// When it was given.
    pub granted_at: EpochMs,
    /// When it ends.
    pub expires_at: Option<EpochMs>,
    /// The layers it covers.
    pub scope: Vec<Layer>,
    /// What the layers are for, for a person to read.
    pub purpose: String,
}

impl Consent {
    /// The signed record: the member `consent` of a document.
    ///
    /// # Errors
    /// The errors of the signer.
    pub fn sign(&self, signer: &dyn Signer) -> Result<Value> {
        let scope: Vec<_> = self.scope.iter().map(|layer| layer.name()).collect();
        let mut record = json!({
            "operation": self.operation.name(), "grantedBy": signer.wallet().address(),
            "grantedAt": time::written(self.granted_at), "scope": scope, "purpose": self.purpose,
        });
        let end = self.expires_at.map(|end| Value::from(time::written(end)));
        let sig = |record: &Value| signer.sign(json::canonical(record)?.as_bytes());
        if let (Some(end), Some(members)) = (end, record.as_object_mut()) {
            members.insert("expiresAt".to_owned(), end);
        }
        let signature = Value::from(sig(&record)?);
        if let Some(members) = record.as_object_mut() {
            members.insert("signature".to_owned(), signature);
        }
        Ok(record)
    }
}

/// Checks a record: its form, and that the agent's wallet signed it.
///
/// # Errors
/// `ERR_SCHEMA`; `ERR_SIGNATURE`.
pub(super) fn check_record(record: &Value, agent: &Wallet) -> Result<()> {
    let mut found = finding::Findings::default();
    shape::check(record, CONSENT, "consent", &mut found);
    if let Some(finding) = found.into_parts().0.into_iter().next() {
        return Err(Error::schema(finding.message).in_entry(&finding.path));
    }
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    if !agent.is_address(text("grantedBy")) {
        let message = "the consent is granted by another wallet than the agent's";
        return Err(Error::new(ErrorKind::Signature, message).in_entry("consent.grantedBy"));
    }
    let mut signed = record.clone();
    if let Some(members) = signed.as_object_mut() {
        members.remove("signature");
    }
    verify_signature(agent, json::canonical(&signed)?.as_bytes(), text("signature"))
        .map_err(|error| error.in_entry("consent.signature"))
}

/// Checks that a record allows an operation now.
///
/// # Errors
/// Those of [`check_record`]; `ERR_POLICY` for another operation, `ERR_WITHDRAWN` after it expired, or before it was
/// granted.
pub(super) fn check_use(
    record: &Value,
    agent: &Wallet,
    operation: Operation,
    now: EpochMs,
) -> Result<()> {
    check_record(record, agent)?;
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let refused = |kind, message: String| {
        Err(Error::new(kind, message)
            .with_hint("ask the agent for a consent to this, that is valid now")
            .in_entry("consent"))
    };
    if text("operation") != operation.name() {
        let message = format!("the consent is to {:?}, not to {operation}", text("operation"));
        return refused(ErrorKind::Policy, message);
    }
    if has_expired(record, now) {
        return refused(ErrorKind::Withdrawn, "the consent has expired".to_owned());
    }
    if parse_datetime(text("grantedAt")).is_ok_and(|granted| granted > now) {
        return refused(ErrorKind::Withdrawn, "the consent is from the future".to_owned());
    }
    Ok(())
}

/// The names of layers that a record does not cover.
pub(super) fn uncovered<'n>(record: &Value, layers: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let scope: HashSet<_> = texts(record.get("scope")).collect();
    layers.filter(|layer| !scope.contains(layer)).collect()
}

/// Returns `true` if a record covers a layer.
pub(super) fn covers(record: &Value, layer: Layer) -> bool {
    texts(record.get("scope")).any(|name| name == layer.name())
}

/// Returns `true` once a record is no longer valid.
pub(super) fn has_expired(record: &Value, now: EpochMs) -> bool {
    vault::has_expired(record, now)
}

/// The message that a wallet signs to consent to a transfer or a clone to a destination.
///
/// ```
/// use grainstore::EpochMs;
/// use grainstore_interop::saga::{Operation, consent_message};
///
/// let at = EpochMs::new(1_774_000_800_000);
/// let message = consent_message(Operation::Transfer, "saga_a1", "https://acme.example", at);
/// assert!(message.starts_with("SAGA transfer consent:\nDocumentId: saga_a1\n"));
/// ```
#[must_use]
pub fn consent_message(
    operation: Operation,
    document_id: &str,
    destination: &str,
    at: EpochMs,
) -> String {
    let at = time::written(at);
    format!(
        "SAGA {operation} consent:\nDocumentId: {document_id}\nDestination: {destination}\nTimestamp: {at}"
    )
}
