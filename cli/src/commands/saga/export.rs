//! `grain saga export`: writes an agent as a document or a container.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use grainstore::Session;
use grainstore::cal::Query;
use grainstore_interop::saga::{
    BoxPublicKey, Document, ExportOptions, ExportReport, ExportType, Layer, Recipient,
    RedactOptions, Signer, TransferRequest, export_container, export_document,
};
use grainstore_rpc::conditions_of;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::key::{KeyOptions, SentWallet, SignerOptions};
use super::{check_target, write};
use crate::commands::export::refusal_note;
use crate::commands::followed::{followed, followed_call};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::{MAX_JSON_BYTES, Source};
use crate::output::Output;
use crate::reach::{Reach, Told, file_name};

#[derive(Debug, Args)]
pub(super) struct Export {
    /// The file: agent.saga, or agent.json for the document alone
    file: PathBuf,
    #[command(flatten)]
    key: KeyOptions,
    /// What it is for: identity, profile, transfer, clone, backup or full
    #[arg(long = "type", value_name = "TYPE", default_value = "full")]
    export_type: ExportType,
    /// Only this layer, beside the identity; may be given several times
    #[arg(long = "layer", value_name = "LAYER")]
    layers: Vec<Layer>,
    /// Take grains along as the long-term memory of a container: all that meet these conditions, as CAL has them
    /// behind WHERE; an empty text for all
    #[arg(long, value_name = "CONDITIONS")]
    grains: Option<String>,
    /// Show current events, goals and workflows among these grains as items of the document too
    #[arg(long, requires = "grains")]
    native_items: bool,
    /// Leave the long-term memory in plain
    #[arg(long)]
    plain_long_term: bool,
    /// Refuse to write what the published schema refuses
    #[arg(long)]
    strict_schema: bool,
    /// It leaves the organization: needs --consent, for a transfer --transfer, and --recipient for what must be encrypted
    #[arg(long, requires_all = ["consent", "organization"])]
    across: bool,
    /// The signed consent of the agent, as JSON
    #[arg(long, value_name = "FILE|-")]
    consent: Option<Source>,
    /// The id of the document, which those who consent to a transfer sign; a random one by default
    #[arg(long, value_name = "ID")]
    document_id: Option<String>,
    /// Who consents to the transfer, as JSON: kind, destination, at, and consents, each as `grain saga agree` makes it
    #[arg(long, value_name = "FILE|-", requires = "document_id")]
    transfer: Option<Source>,
    /// The X25519 key of a recipient, base64; may be given several times
    #[arg(long = "recipient", value_name = "KEY")]
    recipients: Vec<BoxPublicKey>,
    /// Redact it, by this organization: all that is not classified public or agent-portable, whichever organization it is
    /// of
    #[arg(long, value_name = "ID")]
    organization: Option<String>,
    /// Why it is redacted
    #[arg(long, value_name = "REASON", default_value = "cross-org-transfer")]
    reason: String,
    #[command(flatten)]
    manifest: SignerOptions,
}

impl Export {
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let given = [&self.manifest.organization_key, &self.consent, &self.transfer];
        check_target(&self.file, given.into_iter().flatten().chain([&self.key.key_seed]))?;
        let reach = context.reach()?;
        let told = match reach.session() {
            Some(session) => Told::of(&self.written(&session, context)?)?,
            None => self.relayed(&reach, context)?,
        };
        context.output.answer(&told, |output| tell(&told.read()?, output))
    }

    fn is_document(&self) -> bool {
        self.file.extension().is_some_and(|name| name == "json")
    }

    fn written(self, session: &Session, context: &mut Context<'_>) -> Result<ExportReport> {
        let is_document = self.is_document();
        let signer = self.key.signer(&mut context.output)?;
        let organization = self.manifest.signer(&mut context.output)?;
        let consent = given(self.consent.as_ref(), "consent", &mut context.output)?;
        let transfer =
            given(self.transfer.as_ref(), "request of the transfer", &mut context.output)?;
        let grains = match self.grains.as_deref() {
            None => None,
            Some("") => Some(Query::default()),
            Some(conditions) => Some(conditions_of(session, conditions)?),
        };
        let redact = self.organization.map(|organization| RedactOptions {
            organization,
            reason: self.reason,
            at: session.now(),
            classifications: Default::default(),
        });
        let options = ExportOptions {
            export_type: Some(self.export_type),
            layers: Some(self.layers).filter(|layers| !layers.is_empty()),
            crosses_organizations: self.across,
            consent,
            document_id: self.document_id,
            transfer: transfer.as_ref().map(TransferRequest::from_value).transpose()?,
            redact,
            organization: organization.as_ref().map(|key| key as &dyn Signer),
            recipients: self.recipients.into_iter().map(Recipient::new).collect(),
            plain_long_term: self.plain_long_term,
            grains,
            native_items: self.native_items,
            strict_schema: self.strict_schema,
            ..ExportOptions::default()
        };
        if is_document {
            let (document, report) = export_document(session, &options, &signer)?;
            write(&document, &self.file)?;
            return Ok(report);
        }
        followed(context, |monitor| {
            let options = ExportOptions { monitor: monitor.again(), ..options };
            export_container(session, &self.file, &options, &signer)
        })
    }

    /// Has the process that has the store open write a container, or answer the document, which is written here.
    fn relayed(&self, reach: &Reach, context: &mut Context<'_>) -> Result<Told> {
        let layers: Vec<_> = self.layers.iter().map(|layer| layer.name()).collect();
        let recipients: Vec<_> = self.recipients.iter().map(BoxPublicKey::to_base64).collect();
        let is_document = self.is_document();
        let path = if is_document { None } else { Some(file_name(&self.file)?) };
        let asked = Asked {
            path,
            wallet: self.key.sent(&mut context.output)?,
            organization_wallet: self.manifest.sent(&mut context.output)?,
            more: json!({
                "type": self.export_type.name(),
                "layers": Some(layers).filter(|layers| !layers.is_empty()),
                "grains": self.grains, "native_items": self.native_items,
                "plain_long_term": self.plain_long_term, "strict_schema": self.strict_schema,
                "across": self.across,
                "consent": given(self.consent.as_ref(), "consent", &mut context.output)?,
                "document_id": self.document_id,
                "transfer":
                    given(self.transfer.as_ref(), "request of the transfer", &mut context.output)?,
                "recipients": recipients, "organization": self.organization, "reason": self.reason,
            }),
        };
        let told = followed_call(context, reach, "saga_export", &asked).map_err(|error| {
            let conditions = self.grains.as_deref().unwrap_or_default();
            error.of_query(conditions.as_bytes())
        })?;
        if !is_document {
            return Ok(told);
        }
        let mut members: BTreeMap<String, Told> = told.read()?;
        if let Some(document) = members.remove("document") {
            write(&Document::parse(document.json().as_bytes())?, &self.file)?;
        }
        // What follows the report in the answer is no part of what is printed.
        told.without("document")
    }
}

/// The parameters of `saga_export`.
#[derive(Serialize)]
struct Asked<'k> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'k str>,
    wallet: SentWallet<'k>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization_wallet: Option<SentWallet<'k>>,
    #[serde(flatten)]
    more: Value,
}

/// The JSON of a file that may be given.
fn given(source: Option<&Source>, what: &str, output: &mut Output<'_>) -> Result<Option<Value>> {
    source.map(|source| json_of(source, what, output)).transpose()
}

fn json_of(source: &Source, what: &str, output: &mut Output<'_>) -> Result<Value> {
    let bytes = source.read(MAX_JSON_BYTES, output)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the {what} is no JSON: {error}");
        Error::new(Code::Corrupt, message, "give it as the commands of saga print it")
    })
}

/// What is shown of an export, read from its JSON.
#[derive(Deserialize)]
struct ShownExport {
    document_id: String,
    layers: Vec<String>,
    narrowed: Vec<String>,
    encrypted: Vec<String>,
    redacted: u64,
    removed: u64,
    grains: Option<Exported>,
    missing_consents: Vec<String>,
}

#[derive(Deserialize)]
struct Exported {
    exported: u64,
    refused: u64,
    rules: Vec<String>,
}

fn tell(report: &ShownExport, output: &mut Output<'_>) -> Result<()> {
    output.line(&format!("{}: {}", report.document_id, report.layers.join(", ")))?;
    if !report.narrowed.is_empty() {
        let narrowed = report.narrowed.join(", ");
        output.line(&format!("left out without a consent that holds: {narrowed}"))?;
    }
    if !report.encrypted.is_empty() {
        output.line(&format!("encrypted: {}", report.encrypted.join(", ")))?;
    }
    let (redacted, removed) = (report.redacted, report.removed);
    if redacted + removed > 0 {
        output.line(&format!("{redacted} items redacted, {removed} taken out"))?;
    }
    if let Some(Exported { exported, refused, rules }) = &report.grains {
        output.line(&format!("{exported} grains in the long-term memory"))?;
        if let Some(note) = refusal_note(*refused, rules) {
            output.note(&note);
        }
    }
    for missing in &report.missing_consents {
        output.line(&format!("  recommended and missing: the consent of {missing}"))?;
    }
    Ok(())
}
