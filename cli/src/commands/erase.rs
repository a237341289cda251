//! `grain erase` and `grain sweep`: erasure.

use clap::Args;
use grainstore::{ApplicationCounts, EraseOptions, EraseOutcome};
use grainstore_rpc::erased;

use crate::commands::verify::certificates;
use crate::context::{Context, resolve_address};
use crate::error::{Code, Error, Result};
use crate::input::Source;

/// Erase one grain, or with --user everything of a person: nothing brings it back
///
/// What is under litigation hold, or has to be kept by its retention_policy, refuses. The files are
/// rewritten without it before the command ends.
#[derive(Debug, Args)]
pub(crate) struct Erase {
    /// The grain: 64 hex digits, or the first 8 or more where they name one
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Erase once more what this erasure took, where a backup has brought it back: its certificate, or what
    /// `erase --json` has printed. One for each erasure
    #[arg(long = "certificate", value_name = "FILE|-", conflicts_with = "address")]
    certificates: Vec<Source>,
    /// Why: it goes into the audit log, and stays there
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// That it is meant; --dry-run does without
    #[arg(long)]
    yes: bool,
    /// Say only what would be erased, and what refuses it
    #[arg(long)]
    dry_run: bool,
    /// Answer only once nothing of it is left on the disk
    #[arg(long)]
    now: bool,
    /// Erase grains whose retention_policy is malformed
    #[arg(long)]
    override_malformed_retention: bool,
}

/// Erase what is due: grains that end with a consent which was withdrawn by whoever may, or by somebody else
/// 28 days ago, or as long ago as the preset allows, where that is less
#[derive(Debug, Args)]
pub(crate) struct Sweep {}

impl Erase {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let how = EraseOptions::new()
            .dry_run(self.dry_run)
            .now(self.now)
            .override_malformed_retention(self.override_malformed_retention);
        // `--user` names the user to erase. The session is theirs or the operator's.
        let user = context.globals.user.take();
        let whats = [user.is_some(), self.address.is_some(), !self.certificates.is_empty()];
        if whats.into_iter().filter(|given| *given).count() != 1 {
            let message = "give either --user or --address, or else --certificate";
            return Err(Error::usage(Code::Schema, message, "one of them says what is erased"));
        }
        if !self.yes && !self.dry_run {
            let message = "nothing brings back what is erased, and --yes was not given";
            let hint = "add --yes if it is meant; with --dry-run see first what would be erased";
            return Err(Error::usage(Code::Schema, message, hint));
        }
        let session = context.session_about(user.as_deref())?;
        if !self.certificates.is_empty() {
            let certificates = certificates(&self.certificates, &mut context.output)?;
            let erasures = session.erase_returned(&certificates, &self.reason, &how)?;
            if erasures.is_empty() {
                context.output.note("nothing is here of what the certificates say was erased");
            }
            return erasures.iter().try_for_each(|one| write_outcome(context, one, self.dry_run));
        }
        let erasure = match (&user, &self.address) {
            (Some(user), _) => session.erase_user(user, &self.reason, &how)?,
            (None, address) => {
                let address = resolve_address(&session, address.as_deref().unwrap_or_default())?;
                session.erase(&address, &self.reason, &how)?
            }
        };
        let has_rows = erasure.application != ApplicationCounts::default();
        if let (Some(user), 0, false, None) = (&user, erasure.erased, has_rows, &erasure.refusal) {
            context.output.note(&no_grain_warning(user));
        }
        write_outcome(context, &erasure, self.dry_run)
    }
}

/// Returns the warning that the store has no grain of a user, whose id may be misspelt.
pub(super) fn no_grain_warning(user: &str) -> String {
    format!("warning: the store has no grain whose user_id is {user:?}")
}

impl Sweep {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let swept = context.session()?.sweep()?;
        context.output.answer(&swept, |output| {
            output.line(&format!("erased {}, skipped {}", swept.erased, swept.skipped))
        })
    }
}

fn write_outcome(context: &mut Context<'_>, erasure: &EraseOutcome, dry_run: bool) -> Result<()> {
    context.output.answer(&erased(erasure), |output| {
        if let Some(refusal) = &erasure.refusal {
            return output.line(&format!("would be refused ({}): {refusal}", refusal.code()));
        }
        if dry_run {
            return output.line(&format!("would erase {}", erasure.erased));
        }
        output.line(&format!("erased {}", erasure.erased))?;
        let ApplicationCounts { rows, blobs, .. } = erasure.application;
        if rows > 0 || blobs > 0 {
            output.line(&format!("with them {rows} rows and {blobs} blobs of applications"))?;
        }
        if let Some(certificate) = &erasure.certificate {
            output.line(&format!("audit entry {}, {}", certificate.sequence, certificate.hash))?;
        }
        if let Some(failure) = &erasure.scrub_failure {
            output.note(&format!("not scrubbed yet ({}): {failure}", failure.code()));
        }
        Ok(())
    })
}
