//! `grain saga export`: writes an agent as a document or a container.

use std::path::PathBuf;

use clap::Args;
use grainstore::cal::Query;
use grainstore_interop::saga::{
    BoxPublicKey, ExportOptions, ExportReport, ExportType, Layer, Recipient, RedactOptions, Signer,
    TransferRequest, export_container, export_document,
};
use grainstore_rpc::conditions_of;

use super::key::{KeyOptions, SignerOptions};
use super::write;
use crate::commands::followed::followed;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::{MAX_JSON_BYTES, Source};
use crate::output::Output;

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
        self.key.check_target(&self.file)?;
        self.manifest.check_target(&self.file)?;
        let session = context.session()?;
        let signer = self.key.signer(&mut context.output)?;
        let organization = self.manifest.signer(&mut context.output)?;
        let consent = match &self.consent {
            None => None,
            Some(source) => Some(json(source, "consent", &mut context.output)?),
        };
        let transfer = match &self.transfer {
            None => None,
            Some(source) => {
                let given = json(source, "request of the transfer", &mut context.output)?;
                Some(TransferRequest::from_value(&given)?)
            }
        };
        let grains = match self.grains.as_deref() {
            None => None,
            Some("") => Some(Query::default()),
            Some(conditions) => Some(conditions_of(&session, conditions)?),
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
            transfer,
            redact,
            organization: organization.as_ref().map(|key| key as &dyn Signer),
            recipients: self.recipients.into_iter().map(Recipient::new).collect(),
            plain_long_term: self.plain_long_term,
            grains,
            native_items: self.native_items,
            strict_schema: self.strict_schema,
            ..ExportOptions::default()
        };
        let is_document = self.file.extension().is_some_and(|name| name == "json");
        let report = if is_document {
            let (document, report) = export_document(&session, &options, &signer)?;
            write(&document, &self.file)?;
            report
        } else {
            followed(context, |monitor| {
                let options = ExportOptions { monitor: monitor.again(), ..options };
                export_container(&session, &self.file, &options, &signer)
            })?
        };
        context.output.answer(&report, |output| tell(&report, output))
    }
}

fn json(source: &Source, what: &str, output: &mut Output<'_>) -> Result<serde_json::Value> {
    let bytes = source.read(MAX_JSON_BYTES, output)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the {what} is no JSON: {error}");
        Error::new(Code::Corrupt, message, "give it as the commands of saga print it")
    })
}

fn tell(report: &ExportReport, output: &mut Output<'_>) -> Result<()> {
    let names =
        |layers: &[Layer]| layers.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(", ");
    output.line(&format!("{}: {}", report.document_id, names(&report.layers)))?;
    if !report.narrowed.is_empty() {
        output
            .line(&format!("left out without a consent that holds: {}", names(&report.narrowed)))?;
    }
    if !report.encrypted.is_empty() {
        output.line(&format!("encrypted: {}", report.encrypted.join(", ")))?;
    }
    let (redacted, removed) = (report.redacted, report.removed);
    if redacted + removed > 0 {
        output.line(&format!("{redacted} items redacted, {removed} taken out"))?;
    }
    if let Some(grains) = &report.grains {
        output.line(&format!("{} grains in the long-term memory", grains.exported))?;
    }
    for missing in &report.missing_consents {
        output.line(&format!("  recommended and missing: the consent of {missing}"))?;
    }
    Ok(())
}
