//! `grain verify`: checks that the store holds what it acknowledged.

use std::time::Duration;

use clap::Args;
use grainstore::{Checkpoint, ErasureCertificate, Session, VerifyReport};
use grainstore_rpc::{compared, expect_signer, withhold_problems};
use serde_json::json;

use crate::context::{Context, opening_error};
use crate::error::{Code, Error, Result};
use crate::input::Source;
use crate::output::Output;
use crate::text::format_time;

/// Most bytes of a checkpoint's text.
const MAX_CHECKPOINT_BYTES: usize = 16 << 10;
/// The longest text of a certificate, in bytes: its entry may name many grains.
const MAX_CERTIFICATE: usize = 16 << 20;

/// Check the store: bytes, states, the audit chain, and the indexes against the log
///
/// The full text and the graphs of vectors, under text/ and vectors/, are not looked at: their files are
/// checked when they are read, and made anew from the log where they are missing or damaged.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Decode every grain, compare every row of the indexes, and check the pages of the files
    #[arg(long)]
    full: bool,

    /// Whether the audit log still goes through what `audit --checkpoint` once printed
    #[arg(long, value_name = "FILE|-")]
    checkpoint: Option<Source>,

    /// Who must have signed the checkpoint: the DID of the key given to `audit --key-seed`
    #[arg(long, value_name = "DID", requires = "checkpoint")]
    signer: Option<String>,

    /// Whether what this erasure took is here again: its certificate, or what `erase --json` has printed.
    /// One for each erasure
    #[arg(long = "certificate", value_name = "FILE|-")]
    certificates: Vec<Source>,
}

impl Verify {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        context.note_progress("verifying");
        let found = match self.found(context) {
            Err(error) if error.is_busy() && !context.globals.exclusive => self.relayed(context)?,
            found => found?,
        };
        if context.output.is_json() {
            context.output.json_line(&found)?;
        } else {
            for problem in &found.problems {
                let what = serde_json::to_value(problem.what)?;
                let what = what.as_str().unwrap_or_default().replace('_', " ");
                let line = format!("{what}: {}: {}", problem.place, problem.detail);
                context.output.line(&line)?;
            }
            let outcome = if found.ok { "ok" } else { "NOT ok" };
            let counts = found.checked.map(|checked| {
                format!(
                    "; {} grains ({} decoded), {} states, {} audit entries, {} index rows",
                    checked.grains,
                    checked.blobs,
                    checked.states,
                    checked.audit_entries,
                    checked.index_rows
                )
            });
            let (problems, counts) = (found.problem_count, counts.unwrap_or_default());
            context.output.line(&format!("{outcome}: {problems} problems{counts}"))?;
        }
        if found.ok {
            return Ok(());
        }
        let message = format!("{} problems were found", found.problem_count);
        let hint = "copy the directory first; where only the index is concerned `grain reindex` \
                    rebuilds it, else restore a backup";
        Err(Error::new(Code::Integrity, message, hint))
    }
}

impl Verify {
    /// Checks the store in this process. It is not opened for that, so that it may be damaged.
    fn found(&self, context: &mut Context<'_>) -> Result<VerifyReport> {
        let (path, mut options) = (&context.globals.store, context.options()?);
        if !context.globals.exclusive {
            // A process that has it open is asked at once.
            options = options.wait(Duration::ZERO);
        }
        let mut found = grainstore::verify(path, &options, self.full).map_err(opening_error)?;
        if let Some(source) = &self.checkpoint {
            let checkpoint = read_checkpoint(source, &mut context.output)?;
            expect_signer(&checkpoint, self.signer.as_deref())?;
            let here = |session: &Session| {
                compared(found.clone(), session.store(), Some(&checkpoint), &[])
            };
            let reach = context.reach()?;
            found = reach.here_or(here, "verify", || {
                Ok(json!({ "full": self.full, "checkpoint": checkpoint }))
            })?;
            note_checkpoint(&checkpoint, &mut context.output);
        }
        if !self.certificates.is_empty() {
            let certificates = certificates(&self.certificates, &mut context.output)?;
            let here =
                |session: &Session| compared(found.clone(), session.store(), None, &certificates);
            let reach = context.reach()?;
            found = reach.here_or(here, "verify", || {
                Ok(json!({ "full": self.full, "certificates": certificates }))
            })?;
            note_certificates(certificates.len(), &mut context.output);
        }
        if !context.has_powers() {
            withhold_problems(&mut found);
        }
        Ok(found)
    }

    /// Has the process that has the store open check it.
    fn relayed(&self, context: &mut Context<'_>) -> Result<VerifyReport> {
        let reach = context.reach()?;
        let source = self.checkpoint.as_ref();
        let checkpoint = source.map(|source| read_checkpoint(source, &mut context.output));
        let checkpoint = checkpoint.transpose()?;
        let certificates = certificates(&self.certificates, &mut context.output)?;
        let asked = json!({
            "full": self.full, "checkpoint": checkpoint, "signer": self.signer,
            "certificates": certificates,
        });
        let found = reach.read("verify", &asked)?;
        if let Some(checkpoint) = &checkpoint {
            note_checkpoint(checkpoint, &mut context.output);
        }
        if !certificates.is_empty() {
            note_certificates(certificates.len(), &mut context.output);
        }
        Ok(found)
    }
}

fn note_checkpoint(checkpoint: &Checkpoint, output: &mut Output<'_>) {
    let (entries, signer) = (checkpoint.entries(), checkpoint.signer());
    let made = format_time(checkpoint.time());
    output.note(&format!(
        "compared with a checkpoint of {entries} entries, made {made}, signed by {signer}"
    ));
}

fn note_certificates(count: usize, output: &mut Output<'_>) {
    output.note(&format!("looked for what {count} certificates say was erased"));
}

/// Certificates of erasures, each alone or in what `erase --json` has printed.
pub(super) fn certificates(
    sources: &[Source],
    output: &mut Output<'_>,
) -> Result<Vec<ErasureCertificate>> {
    let read = |source: &Source| {
        let text = source.read_text(MAX_CERTIFICATE, output)?;
        certificate(&text).map_err(|error| {
            let message = format!("{source} is no certificate: {error}");
            Error::new(Code::Schema, message, "give a file with what `erase --json` printed")
        })
    };
    sources.iter().map(read).collect()
}

fn certificate(text: &str) -> serde_json::Result<ErasureCertificate> {
    let mut told: serde_json::Value = serde_json::from_str(text)?;
    let within = told.get_mut("certificate").map(serde_json::Value::take);
    serde_json::from_value(within.unwrap_or(told))
}

/// Reads a checkpoint that `audit --checkpoint` printed.
fn read_checkpoint(source: &Source, output: &mut Output<'_>) -> Result<Checkpoint> {
    serde_json::from_str(&source.read_text(MAX_CHECKPOINT_BYTES, output)?).map_err(|error| {
        let message = format!("{source} is no checkpoint: {error}");
        Error::new(Code::Schema, message, "give a file with what `audit --checkpoint` printed")
    })
}
