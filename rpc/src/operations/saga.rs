//! The operations on documents and containers that carry an agent: `saga_validate`, `saga_import`, `saga_export`,
//! `saga_sign`, `saga_redact`.
//!
//! Keys come with a request, are wiped after it, and are in no answer.

use std::path::PathBuf;

use grainstore::Session;
use grainstore::cal::Query;
use grainstore_interop::archive::Limits;
use grainstore_interop::saga::{
    BoxPublicKey, Classifications, Container, ContainerVerdict, Document, ExportOptions,
    ExportReport, ImportOptions, ImportReport, Recipient, RedactOptions, Signer, TransferRequest,
    Validation, WalletKey, export_container, export_document, import_container, import_document,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::followed::followed;
use super::portable::conditions_of;
use super::stream::Events;
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::json::SecretBytes;

/// The key of a wallet, and its chain.
#[derive(Debug, Deserialize)]
pub(super) struct Key {
    chain: String,
    key: SecretBytes,
}

impl Key {
    /// The bytes of the key.
    ///
    /// # Errors
    /// `ERR_KEY` unless there are 32.
    pub(super) fn secret(&self) -> Result<Zeroizing<[u8; 32]>> {
        let mut secret = Zeroizing::new([0; 32]);
        if self.key.0.len() != secret.len() {
            let message = "the key of a wallet has 32 bytes";
            let hint = "give the private key, or the seed, as base64";
            return Err(Error::new(Code::Key, message, hint));
        }
        secret.copy_from_slice(&self.key.0);
        Ok(secret)
    }

    pub(super) fn signer(&self) -> Result<WalletKey> {
        let secret = self.secret()?;
        Ok(match self.chain.starts_with("solana:") {
            true => WalletKey::ed25519(&self.chain, &secret)?,
            false => WalletKey::secp256k1(&self.chain, &secret)?,
        })
    }
}

/// Reads the one of both that is given.
fn document(given: Option<&RawValue>) -> Result<Document> {
    let given = given.ok_or_else(|| Error::arguments("give a document"))?;
    Ok(Document::parse(given.get().as_bytes())?)
}

/// Checks a document, or a document or container in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Validate<'p> {
    #[serde(borrow)]
    document: Option<&'p RawValue>,
    path: Option<PathBuf>,
    #[serde(default)]
    container: bool,
}

/// What was found, and of a container what became of its own signature.
#[derive(Debug, Serialize)]
pub(crate) struct ValidateAnswer {
    #[serde(flatten)]
    found: Validation,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<ContainerVerdict>,
}

pub(crate) fn saga_validate(given: Validate<'_>, host: &mut Host) -> Result<ValidateAnswer> {
    let now = host.now();
    let (found, container) = match (given.document, &given.path, given.container) {
        (Some(_), None, false) => (document(given.document)?.validate(now), None),
        (None, Some(path), false) => (Document::read(path)?.validate(now), None),
        (None, Some(path), true) => {
            let container = Container::open(path, Limits::default())?;
            (container.document().validate(now), Some(container.verdict().clone()))
        }
        _ => return Err(Error::arguments("give exactly one of document and path")),
    };
    Ok(ValidateAnswer { found, container })
}

/// Takes a document, or a container in a file, into the store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import<'p> {
    #[serde(borrow)]
    document: Option<&'p RawValue>,
    path: Option<PathBuf>,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    allow_message_only: bool,
    #[serde(default)]
    allow_integrity_only: bool,
    #[serde(default)]
    allow_older: bool,
    destination: Option<String>,
    #[serde(default)]
    progress: bool,
}

pub(crate) fn saga_import(
    given: Import<'_>,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ImportReport> {
    let document = match (given.document, &given.path) {
        (Some(_), None) => Some(document(given.document)?),
        (None, Some(_)) => None,
        _ => return Err(Error::arguments("give exactly one of document and path, of a container")),
    };
    let path = given.path.unwrap_or_default();
    followed(events, given.progress, |monitor| {
        let options = ImportOptions {
            strict: given.strict,
            allow_message_only: given.allow_message_only,
            allow_integrity_only: given.allow_integrity_only,
            allow_older: given.allow_older,
            destination: given.destination,
            monitor: monitor.again(),
            ..ImportOptions::default()
        };
        match &document {
            Some(document) => import_document(session, document, &options),
            None => import_container(session, &path, &options),
        }
    })
}

/// Writes the agent of a key, as a container into a file, or as a document into the answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    path: Option<PathBuf>,
    wallet: Key,
    #[serde(rename = "type")]
    export_type: Option<String>,
    layers: Option<Vec<String>>,
    /// Conditions, as CAL has them behind WHERE.
    grains: Option<String>,
    #[serde(default)]
    native_items: bool,
    #[serde(default)]
    plain_long_term: bool,
    #[serde(default)]
    strict_schema: bool,
    #[serde(default)]
    across: bool,
    consent: Option<Value>,
    document_id: Option<String>,
    /// Who consents to a transfer, as [`TransferRequest::from_value`] reads it.
    transfer: Option<Value>,
    #[serde(default)]
    recipients: Vec<String>,
    organization: Option<String>,
    reason: Option<String>,
    organization_wallet: Option<Key>,
    #[serde(default)]
    progress: bool,
}

/// What was written, and the document if it is in no file.
#[derive(Debug, Serialize)]
pub(crate) struct ExportAnswer {
    #[serde(flatten)]
    report: ExportReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Value>,
}

pub(crate) fn saga_export(
    given: Export,
    session: &Session,
    events: &mut Events<'_>,
) -> Result<ExportAnswer> {
    let signer = given.wallet.signer()?;
    let organization = given.organization_wallet.as_ref().map(Key::signer).transpose()?;
    let grains = match given.grains.as_deref() {
        None => None,
        Some("") => Some(Query::default()),
        Some(conditions) => Some(conditions_of(session, conditions)?),
    };
    let layers = given.layers.map(|names| names.iter().map(|name| name.parse()).collect());
    let recipients =
        given.recipients.iter().map(|key| Ok(Recipient::new(key.parse::<BoxPublicKey>()?)));
    let options = ExportOptions {
        export_type: given.export_type.map(|name| name.parse()).transpose()?,
        layers: layers
            .transpose()
            .map_err(|error: grainstore_interop::Error| Error::from(error))?,
        crosses_organizations: given.across,
        consent: given.consent,
        document_id: given.document_id,
        transfer: given.transfer.as_ref().map(TransferRequest::from_value).transpose()?,
        redact: given.organization.map(|organization| RedactOptions {
            organization,
            reason: given.reason.unwrap_or_else(|| "cross-org-transfer".to_owned()),
            at: session.now(),
            classifications: Classifications::default(),
        }),
        organization: organization.as_ref().map(|key| key as &dyn Signer),
        recipients: recipients.collect::<Result<_>>()?,
        plain_long_term: given.plain_long_term,
        grains,
        native_items: given.native_items,
        strict_schema: given.strict_schema,
        ..ExportOptions::default()
    };
    followed(events, given.progress, |monitor| {
        let options = ExportOptions { monitor: monitor.again(), ..options };
        match &given.path {
            Some(path) => {
                let report = export_container(session, path, &options, &signer)?;
                Ok(ExportAnswer { report, document: None })
            }
            None => {
                let (document, report) = export_document(session, &options, &signer)?;
                Ok(ExportAnswer { report, document: Some(document.to_value()) })
            }
        }
    })
}

/// Signs a document. Needs no store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sign<'p> {
    #[serde(borrow)]
    document: &'p RawValue,
    wallet: Key,
}

/// A document, as it is now.
#[derive(Debug, Serialize)]
pub(crate) struct DocumentAnswer {
    document: Value,
}

pub(crate) fn saga_sign(given: Sign<'_>) -> Result<DocumentAnswer> {
    let mut document = document(Some(given.document))?;
    document.sign(&given.wallet.signer()?)?;
    Ok(DocumentAnswer { document: document.to_value() })
}

/// Redacts a document, all but what is classified as public or the agent's own, and signs what is left. Needs no store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redact<'p> {
    #[serde(borrow)]
    document: &'p RawValue,
    wallet: Key,
    organization: String,
    reason: Option<String>,
    organization_wallet: Option<Key>,
}

pub(crate) fn saga_redact(given: Redact<'_>, host: &mut Host) -> Result<DocumentAnswer> {
    let mut document = document(Some(given.document))?;
    let signer = given.wallet.signer()?;
    let by = given.organization_wallet.as_ref().map(Key::signer).transpose()?;
    let options = RedactOptions {
        organization: given.organization,
        reason: given.reason.unwrap_or_else(|| "organizational-exit".to_owned()),
        at: host.now(),
        classifications: Classifications::default(),
    };
    document.redact(&options, by.as_ref().map(|key| key as &dyn Signer))?;
    document.sign(&signer)?;
    Ok(DocumentAnswer { document: document.to_value() })
}
