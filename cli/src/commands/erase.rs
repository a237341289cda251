//! `grain erase` and `grain sweep`: erasure.

use clap::Args;
use grainstore::{ContentAddress, EraseOptions, ErasureCertificate, SweepReport};
use grainstore_rpc::erased;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commands::verify::certificates;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::Source;
use crate::reach::{Reach, Told, set};

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
        let reach = context.about(user.as_deref())?;
        if !self.certificates.is_empty() {
            let certificates = certificates(&self.certificates, &mut context.output)?;
            let erasures = self.erase_again(&reach, &certificates)?;
            if erasures.is_empty() {
                context.output.note("nothing is here of what the certificates say was erased");
            }
            return erasures.iter().try_for_each(|one| write_outcome(context, one, self.dry_run));
        }
        let told = match (&user, &self.address) {
            (Some(user), _) => self.erase_user(&reach, user)?,
            (None, address) => {
                let address = reach.address(address.as_deref().unwrap_or_default())?;
                self.erase_one(&reach, &address)?
            }
        };
        let erasure: Erasure = told.read()?;
        let has_rows = erasure.application.is_some();
        if let (Some(user), 0, false, None) =
            (&user, erasure.counts.erased, has_rows, &erasure.refusal)
        {
            context.output.note(&no_grain_warning(user));
        }
        write_outcome(context, &told, self.dry_run)
    }

    fn how(&self) -> EraseOptions {
        EraseOptions::new()
            .dry_run(self.dry_run)
            .now(self.now)
            .override_malformed_retention(self.override_malformed_retention)
    }

    /// The parameters of a method.
    fn asked(&self, of: (&str, Value)) -> Value {
        let mut asked = json!({
            "reason": self.reason, "dry_run": self.dry_run, "now": self.now,
            "override_malformed_retention": self.override_malformed_retention,
        });
        set(&mut asked, of.0, of.1);
        asked
    }

    fn erase_user(&self, reach: &Reach, user: &str) -> Result<Told> {
        match reach.session() {
            Some(session) => {
                Told::of(&erased(&session.erase_user(user, &self.reason, &self.how())?))
            }
            None => reach.call("erase_user", &self.asked(("user_id", json!(user)))),
        }
    }

    fn erase_one(&self, reach: &Reach, address: &ContentAddress) -> Result<Told> {
        match reach.session() {
            Some(session) => {
                Told::of(&erased(&session.erase(address, &self.reason, &self.how())?))
            }
            None => reach.call("erase", &self.asked(("address", json!(address)))),
        }
    }

    fn erase_again(&self, reach: &Reach, which: &[ErasureCertificate]) -> Result<Vec<Told>> {
        let Some(session) = reach.session() else {
            let asked = self.asked(("certificates", json!(which)));
            return Ok(reach.read::<Again>("erase", &asked)?.erasures);
        };
        let erasures = session.erase_returned(which, &self.reason, &self.how())?;
        erasures.iter().map(|one| Told::of(&erased(one))).collect()
    }
}

/// What was erased once more.
#[derive(Deserialize)]
struct Again {
    erasures: Vec<Told>,
}

/// What is shown of an erasure, read from its JSON.
#[derive(Deserialize)]
struct Erasure {
    counts: Counts,
    application: Option<Application>,
    refusal: Option<Failure>,
    certificate: Option<Certificate>,
    scrub_failure: Option<Failure>,
}

#[derive(Deserialize)]
struct Counts {
    erased: u64,
}

#[derive(Default, Deserialize)]
struct Application {
    rows: u64,
    blobs: u64,
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct Certificate {
    sequence: u64,
    hash: String,
}

/// Returns the warning that the store has no grain of a user, whose id may be misspelt.
pub(super) fn no_grain_warning(user: &str) -> String {
    format!("warning: the store has no grain whose user_id is {user:?}")
}

impl Sweep {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let swept: SweepReport = context.reach()?.read("sweep", &json!({}))?;
        context.output.answer(&swept, |output| {
            output.line(&format!("erased {}, skipped {}", swept.erased, swept.skipped))
        })
    }
}

fn write_outcome(context: &mut Context<'_>, told: &Told, dry_run: bool) -> Result<()> {
    let erasure: Erasure = told.read()?;
    context.output.answer(told, |output| {
        if let Some(Failure { code, message }) = &erasure.refusal {
            return output.line(&format!("would be refused ({code}): {message}"));
        }
        let erased = erasure.counts.erased;
        if dry_run {
            return output.line(&format!("would erase {erased}"));
        }
        output.line(&format!("erased {erased}"))?;
        let Application { rows, blobs } = erasure.application.unwrap_or_default();
        if rows > 0 || blobs > 0 {
            output.line(&format!("with them {rows} rows and {blobs} blobs of applications"))?;
        }
        if let Some(Certificate { sequence, hash }) = &erasure.certificate {
            output.line(&format!("audit entry {sequence}, {hash}"))?;
        }
        if let Some(Failure { code, message }) = &erasure.scrub_failure {
            output.note(&format!("not scrubbed yet ({code}): {message}"));
        }
        Ok(())
    })
}
