//! `grain saga`: documents and containers that carry an agent, in SAGA 1.0.

mod consent;
mod export;
mod key;
mod vault;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use grainstore::{Clock, Session, SystemClock};
use grainstore_interop::archive::{Limits, NewFile};
use grainstore_interop::saga::{
    Classifications, Container, ContainerVerdict, Document, Finding, ImportOptions, ImportReport,
    RedactOptions, SignatureVerdict, Signer, Validation, Verdict, import_container,
    import_document,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::key::{KeyOptions, SignerOptions};
use super::followed::{followed, followed_call};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::Source;
use crate::output::Output;
use crate::reach::{Told, file_name, set};

/// How a ZIP archive begins.
const ZIP: &[u8] = b"PK";

/// Documents and containers that carry an agent: take one in, write, check, redact and sign one, keep a vault (SAGA 1.0)
#[derive(Debug, Args)]
pub(crate) struct Saga {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Take a document (.json) or a container (.saga) into the store; its signature is verified first
    Import(Import),
    /// Write the agent of a key as a container, or with a name that ends in .json as a document
    Export(Box<export::Export>),
    /// Check a document or a container, without a store; the exit code is 1 if it is not valid, or not signed
    Validate {
        /// The file
        file: PathBuf,
    },
    /// Replace or take out of a document all that is not classified public or agent-portable, with a manifest, and sign
    /// what is left
    Redact(Redact),
    /// Sign a document by the wallet of its identity, in the place of any signature it has
    Sign {
        /// The document
        file: PathBuf,
        /// Where it is written; without it, in the same place
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        key: KeyOptions,
    },
    /// Print the chain and the address of the wallet of a key; needs no store
    Wallet {
        #[command(flatten)]
        key: KeyOptions,
    },
    /// Print the record of an agent's consent, signed, for --consent of export
    Consent(consent::Consenting),
    /// Print the consent of one party to a transfer, signed, for --transfer of export
    Agree(consent::Agreeing),
    /// The credentials of an agent: encrypted in the store, opened by its key
    Vault(vault::VaultCommand),
}

#[derive(Debug, Args)]
struct Import {
    /// The file
    file: PathBuf,
    /// Refuse what the published schema refuses
    #[arg(long)]
    strict: bool,
    /// Take a document whose signature says nothing of its content
    #[arg(long)]
    allow_message_only: bool,
    /// Take a container whose signature cannot be told to be over its content
    #[arg(long)]
    allow_integrity_only: bool,
    /// Take a document, or a vault in it, that is older than what was taken in last: to go back to it. Also takes one
    /// that was redacted, in the place of what is whole in the store
    #[arg(long)]
    allow_older: bool,
    /// Whom its consent is given to
    #[arg(long, value_name = "DID")]
    destination: Option<String>,
}

#[derive(Debug, Args)]
struct Redact {
    /// The document
    file: PathBuf,
    /// Where what is left is written
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// The organization that redacts, for the manifest; its name goes out of the counts of tasks. All is redacted that is
    /// not classified public or agent-portable, whichever organization it is of
    #[arg(long, value_name = "ID")]
    organization: String,
    /// Why
    #[arg(long, value_name = "REASON", default_value = "organizational-exit")]
    reason: String,
    #[command(flatten)]
    manifest: SignerOptions,
    #[command(flatten)]
    key: KeyOptions,
}

impl Saga {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.what {
            What::Import(import) => import.run(context),
            What::Export(export) => export.run(context),
            What::Validate { file } => validate(&file, context),
            What::Redact(redact) => redact.run(context),
            What::Sign { file, to, key } => sign(&file, to.as_deref(), &key, context),
            What::Wallet { key } => {
                let wallet = key.signer(&mut context.output)?.wallet().clone();
                let answer = json!({ "chain": wallet.chain(), "address": wallet.address() });
                context.output.answer(&answer, |output| output.line(&wallet.to_string()))
            }
            What::Consent(consent) => consent.run(context),
            What::Agree(agree) => agree.run(context),
            What::Vault(vault) => vault.run(context),
        }
    }
}

impl Import {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let told = match reach.session() {
            Some(session) => Told::of(&self.taken(&session, context)?)?,
            None => followed_call(context, &reach, "saga_import", &self.params()?)?,
        };
        context.output.answer(&told, |output| tell_import(&told.read()?, output))
    }

    fn taken(&self, session: &Session, context: &Context<'_>) -> Result<ImportReport> {
        followed(context, |monitor| {
            let options = ImportOptions {
                strict: self.strict,
                allow_message_only: self.allow_message_only,
                allow_integrity_only: self.allow_integrity_only,
                allow_older: self.allow_older,
                destination: self.destination.clone(),
                monitor: monitor.again(),
                ..ImportOptions::default()
            };
            match is_container(&self.file)? {
                true => import_container(session, &self.file, &options),
                false => import_document(session, &Document::read(&self.file)?, &options),
            }
        })
    }

    /// The parameters of the method.
    fn params(&self) -> Result<Value> {
        let mut asked = json!({
            "strict": self.strict, "allow_message_only": self.allow_message_only,
            "allow_integrity_only": self.allow_integrity_only, "allow_older": self.allow_older,
            "destination": self.destination,
        });
        match is_container(&self.file)? {
            true => set(&mut asked, "path", json!(file_name(&self.file)?)),
            false => set(&mut asked, "document", Document::read(&self.file)?.to_value()),
        }
        Ok(asked)
    }
}

/// What is shown of an import, read from its JSON.
#[derive(Deserialize)]
struct ShownImport {
    agent: String,
    layers: Vec<String>,
    items: ShownItems,
    files: u64,
    warnings: Vec<ShownFinding>,
}

#[derive(Deserialize)]
struct ShownItems {
    added: u64,
    replaced: u64,
    unchanged: u64,
}

#[derive(Deserialize)]
struct ShownFinding {
    path: String,
    message: String,
}

fn tell_import(report: &ShownImport, output: &mut Output<'_>) -> Result<()> {
    output.line(&format!("{}: {}", report.agent, report.layers.join(", ")))?;
    let items = &report.items;
    output.line(&format!(
        "{} items added, {} replaced, {} unchanged; {} files",
        items.added, items.replaced, items.unchanged, report.files
    ))?;
    for warning in &report.warnings {
        output.line(&format!("  warning: {}: {}", warning.path, warning.message))?;
    }
    Ok(())
}

/// The word that something has in JSON.
fn word(of: &impl Serialize) -> String {
    match serde_json::to_value(of).unwrap_or_default() {
        Value::String(word) => word,
        more => more.to_string(),
    }
}

/// Tells a container from a document by its first bytes.
fn is_container(file: &Path) -> grainstore_interop::Result<bool> {
    let mut first = [0; ZIP.len()];
    // A file that cannot be read is told of by who reads it.
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut first));
    Ok(read.is_ok() && first == ZIP)
}

/// Refuses a file to write that could not be written, or that is one of those that are read, before anything is done.
fn check_target<'s>(to: &Path, read: impl IntoIterator<Item = &'s Source>) -> Result<()> {
    NewFile::check(to)?;
    let Ok(target) = to.canonicalize() else { return Ok(()) };
    for source in read {
        if let Source::File(path) = source
            && path.canonicalize().is_ok_and(|path| path == target)
        {
            let message =
                format!("{} is read by this command, and would be replaced", to.display());
            return Err(Error::new(Code::Conflict, message, "choose another file to write"));
        }
    }
    Ok(())
}

fn write(document: &Document, to: &Path) -> Result<()> {
    let mut file = NewFile::create(to)?;
    file.write_all(document.canonical()?.as_bytes())?;
    Ok(file.finish()?)
}

fn validate(file: &Path, context: &mut Context<'_>) -> Result<()> {
    let now = SystemClock.now();
    let (found, container) = match is_container(file)? {
        true => {
            let container = Container::open(file, Limits::default())?;
            (container.document().validate(now), Some(container.verdict().clone()))
        }
        false => (Document::read(file)?.validate(now), None),
    };
    let answer = json!({ "document": found, "container": container });
    context.output.answer(&answer, |output| tell_validation(&found, container.as_ref(), output))?;
    context.output.flush()?;
    let is_good = found.verdict != Verdict::Invalid
        && found.signature == SignatureVerdict::Verified
        && container.is_none_or(|verdict| verdict == ContainerVerdict::Verified);
    if is_good { Ok(()) } else { Err(Error::AlreadyReported(1)) }
}

fn tell_validation(
    found: &Validation,
    container: Option<&ContainerVerdict>,
    output: &mut Output<'_>,
) -> Result<()> {
    let form = word(&found.verdict);
    output.line(&match &found.signature {
        SignatureVerdict::Invalid(why) => format!("form {form}; signature INVALID: {why}"),
        signature => format!("{form}; signature: {}", word(signature)),
    })?;
    match container {
        None => {}
        Some(ContainerVerdict::Invalid(why)) => {
            output.line(&format!("container: signature INVALID: {why}"))?;
        }
        Some(container) => output.line(&format!("container: {}", word(container)))?,
    }
    for finding in &found.findings {
        output.line(&format!(
            "  {}: {}: {}",
            word(&finding.level),
            finding.path,
            finding.message
        ))?;
    }
    if found.more_findings > 0 {
        output.line(&format!("  and {} more", found.more_findings))?;
    }
    Ok(())
}

fn sign(file: &Path, to: Option<&Path>, key: &KeyOptions, context: &mut Context<'_>) -> Result<()> {
    let to = to.unwrap_or(file);
    check_target(to, [&key.key_seed])?;
    let signer = key.signer(&mut context.output)?;
    let mut document = Document::read(file)?;
    document.sign(&signer)?;
    write(&document, to)?;
    let found = document.validate(SystemClock.now());
    if found.verdict == Verdict::Invalid
        && let Some(Finding { path, message, .. }) = found.findings.first()
    {
        context.output.note(&format!(
            "warning: it is signed, and its form is invalid: {path}: {message}; `grain saga validate` lists all"
        ));
    }
    context.output.line(&format!("signed by {}", signer.wallet()))
}

impl Redact {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let whole = Source::File(self.file.clone());
        let keys = self.manifest.organization_key.iter().chain([&self.key.key_seed]);
        check_target(&self.to, keys.chain([&whole]))?;
        let organization = self.manifest.signer(&mut context.output)?;
        let signer = self.key.signer(&mut context.output)?;
        let mut document = Document::read(&self.file)?;
        let options = RedactOptions {
            organization: self.organization,
            reason: self.reason,
            at: SystemClock.now(),
            classifications: Classifications::default(),
        };
        let by = organization.as_ref().map(|key| key as &dyn Signer);
        let manifest = document.redact(&options, by)?;
        document.sign(&signer)?;
        write(&document, &self.to)?;
        context.output.answer(&document.get("redactionManifest"), |output| {
            output.line(&format!("{} items redacted or taken out", manifest.entries.len()))?;
            for entry in &manifest.entries {
                let (kind, action) = (entry.item_type.name(), word(&entry.action));
                output.line(&format!("  {kind} {}: {action}", entry.id))?;
            }
            Ok(())
        })
    }
}
