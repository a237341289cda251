//! `grain alf`: archives of agents in the Agent Life Format.

mod shown;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use grainstore_interop::alf::{
    self, DeltaOptions, ExportOptions, ExportReport, Granularity, ImportMode, ImportOptions,
    PurgeOptions, PurgeReason, PurgeReport, PurgeScope, Validation,
};
use grainstore_interop::archive::Limits;
use serde_json::{Value, json};

use self::shown::{ShownApply, ShownDelta, tell_import};
use super::followed::{followed, followed_call};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::names::{GRANULARITIES, named};
use crate::reach::{Told, file_name, set};

/// Issues that are shown one by one.
const SHOWN: usize = 10;

/// Archives of agents: take one in, write one, move what changed, purge, validate (ALF 1.0)
#[derive(Debug, Args)]
pub(crate) struct Alf {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Take an archive into the store: records, identity, principals, credentials, files
    Import(Import),
    /// Write all of an agent as an archive
    Export(Export),
    /// Write what changed of an agent since a sequence number, as a delta
    Delta {
        /// The file
        file: PathBuf,
        /// The sequence number that an export, a delta or an import told
        #[arg(long, value_name = "N")]
        since: u64,
        #[command(flatten)]
        agent: Agent,
    },
    /// Apply a delta to an agent of the store
    Apply(Import),
    /// Remove records for good, with all copies: of the store, or of a file with --file and --to
    Purge(Purge),
    /// Check an archive or a delta, without a store; the exit code is 1 if it is not valid
    Validate {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Agent {
    /// The agent; without it, the only one of the store
    #[arg(long, value_name = "UUID")]
    agent_id: Option<String>,
}

#[derive(Debug, Args)]
struct Import {
    /// The file
    file: PathBuf,
    /// Delete and take back what the archive does not have
    #[arg(long)]
    mirror: bool,
    /// Fill in what records lack, instead of leaving them out
    #[arg(long)]
    lenient: bool,
    /// Take nothing if a single record cannot be taken
    #[arg(long)]
    strict: bool,
    /// Write nothing, and tell what would be done
    #[arg(long)]
    dry_run: bool,
    /// Take records that were purged from this store
    #[arg(long)]
    allow_purged: bool,
    /// A name of where it comes from: deltas of the same peer continue it
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
}

#[derive(Debug, Args)]
struct Export {
    /// The file, such as agent.alf
    file: PathBuf,
    #[command(flatten)]
    agent: Agent,
    /// The name of an agent that the store has no name of
    #[arg(long, value_name = "NAME")]
    agent_name: Option<String>,
    /// How long a partition is
    #[arg(long, value_name = "TIME", value_parser = named::<Granularity>(GRANULARITIES), default_value = "quarter")]
    partitions: Granularity,
    /// Keep no bytes of sealed partitions: they are made anew in each export
    #[arg(long)]
    forget_sealed: bool,
    /// Export grains too that were not born as memory records
    #[arg(long)]
    native: bool,
    /// What is of this principal alone: their records, profile and attachments
    #[arg(long, value_name = "UUID")]
    of_user: Option<String>,
}

#[derive(Debug, Args)]
struct Purge {
    /// The records, by their ids
    #[arg(value_name = "ID", required_unless_present_any = ["of_user", "whole_agent"])]
    ids: Vec<String>,
    /// All records of this principal
    #[arg(long, value_name = "UUID", conflicts_with_all = ["ids", "whole_agent"])]
    of_user: Option<String>,
    /// All that the store keeps of the agent
    #[arg(long, conflicts_with = "ids")]
    whole_agent: bool,
    /// Why
    #[arg(long, value_name = "REASON", value_parser = reasons())]
    reason: PurgeReason,
    /// Who asked for it: the record of the purge has it
    #[arg(long, value_name = "UUID")]
    requested_by: String,
    #[command(flatten)]
    agent: Agent,
    /// Purge this file instead of the store; what is left is written to --to
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with_all = ["of_user", "whole_agent"])]
    file: Option<PathBuf>,
    /// Where what is left of the file is written
    #[arg(long, value_name = "FILE", requires = "file")]
    to: Option<PathBuf>,
    /// Remove nothing, and tell what would be
    #[arg(long)]
    dry_run: bool,
    /// Purge the others where a policy holds some
    #[arg(long)]
    partial: bool,
    /// Leave files that have copies of the text
    #[arg(long)]
    keep_raw: bool,
    /// A file that the record of the purge is appended to
    #[arg(long, value_name = "FILE")]
    audit_file: Option<PathBuf>,
}

/// Parses a reason of a purge.
fn reasons() -> impl TypedValueParser<Value = PurgeReason> {
    let words = PurgeReason::ALL.iter().map(|reason| reason.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<PurgeReason>())
}

impl Alf {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.what {
            What::Import(import) => import.import(context),
            What::Apply(import) => import.apply(context),
            What::Export(export) => export.run(context),
            What::Delta { file, since, agent } => {
                delta(&file, &DeltaOptions { agent_id: agent.agent_id, since }, context)
            }
            What::Purge(purge) => purge.run(context),
            What::Validate { file } => {
                let limits = Limits::default();
                let found = followed(context, |monitor| alf::validate(&file, limits, monitor))?;
                tell_validation(&found, context)
            }
        }
    }
}

impl Import {
    fn options(&self) -> ImportOptions {
        let usual = ImportOptions::default();
        ImportOptions {
            mode: if self.mirror { ImportMode::Mirror } else { ImportMode::Merge },
            lenient: self.lenient,
            strict: self.strict,
            dry_run: self.dry_run,
            allow_purged: self.allow_purged,
            peer: self.peer.clone().unwrap_or(usual.peer),
            limits: usual.limits,
        }
    }

    /// The parameters of a method that takes it in.
    fn params(&self) -> Result<Value> {
        Ok(json!({
            "path": file_name(&self.file)?, "mirror": self.mirror, "lenient": self.lenient,
            "strict": self.strict, "dry_run": self.dry_run, "allow_purged": self.allow_purged,
            "peer": self.peer,
        }))
    }

    fn import(self, context: &mut Context<'_>) -> Result<()> {
        let (reach, options) = (context.reach()?, self.options());
        let told = match reach.session() {
            Some(session) => Told::of(&followed(context, |monitor| {
                alf::import(&session, &self.file, &options, monitor)
            })?)?,
            None => followed_call(context, &reach, "alf_import", &self.params()?)?,
        };
        context.output.answer(&told, |output| tell_import(&told.read()?, output))
    }

    fn apply(self, context: &mut Context<'_>) -> Result<()> {
        let (reach, options) = (context.reach()?, self.options());
        let told = match reach.session() {
            Some(session) => Told::of(&followed(context, |monitor| {
                alf::apply_delta(&session, &self.file, &options, monitor)
            })?)?,
            None => followed_call(context, &reach, "alf_apply", &self.params()?)?,
        };
        context.output.answer(&told, |output| {
            let ShownApply { base_sequence, new_sequence, known, import } = told.read()?;
            match known {
                true => output.line(&format!("known already: it leads to {new_sequence}")),
                false => {
                    output.line(&format!("from {base_sequence} to {new_sequence}"))?;
                    tell_import(&import, output)
                }
            }
        })
    }
}

impl Export {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let report = match reach.session() {
            Some(session) => {
                let options = ExportOptions {
                    agent_id: self.agent.agent_id,
                    agent_name: self.agent_name,
                    granularity: self.partitions,
                    remember_sealed: !self.forget_sealed,
                    native: self.native,
                    of_user: self.of_user,
                };
                let file = self.file;
                followed(context, |monitor| alf::export(&session, &file, &options, monitor))?
            }
            None => {
                let asked = json!({
                    "path": file_name(&self.file)?, "agent_id": self.agent.agent_id,
                    "agent_name": self.agent_name, "granularity": self.partitions,
                    "remember_sealed": !self.forget_sealed, "native": self.native,
                    "user_id": self.of_user,
                });
                followed_call(context, &reach, "alf_export", &asked)?.read::<ExportReport>()?
            }
        };
        context.output.answer(&report, |output| {
            let (records, partitions) = (report.records, report.partitions.len());
            output.line(&format!(
                "{records} records in {partitions} partitions, {} files, of agent {}; sequence {}",
                report.files, report.agent_id, report.sequence
            ))?;
            if report.omitted_records > 0 {
                let omitted = report.omitted_records;
                output.line(&format!("{omitted} records left out: they were erased"))?;
            }
            if report.native_left_out > 0 {
                let count = report.native_left_out;
                output.line(&format!(
                    "{count} grains are not in it, since they are no records of the agent: --native takes them"
                ))?;
            }
            for replaced in &report.replaced_partitions {
                output.line(&format!("{replaced} was sealed before, and is another now"))?;
            }
            Ok(())
        })
    }
}

fn delta(file: &Path, options: &DeltaOptions, context: &mut Context<'_>) -> Result<()> {
    let reach = context.reach()?;
    let told = match reach.session() {
        Some(session) => {
            let report =
                followed(context, |monitor| alf::export_delta(&session, file, options, monitor))?;
            Told::of(&json!({ "delta": report }))?
        }
        None => {
            let asked = json!({
                "path": file_name(file)?, "since": options.since, "agent_id": options.agent_id,
            });
            followed_call(context, &reach, "alf_delta", &asked)?
        }
    };
    context.output.answer(&told, |output| match told.read::<ShownDelta>()?.delta {
        None => output.line("nothing changed; no file was written"),
        Some(report) => output.line(&format!(
            "from {} to {}: {} created, {} updated, {} deleted",
            report.base_sequence,
            report.new_sequence,
            report.created,
            report.updated,
            report.deleted
        )),
    })
}

impl Purge {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let mut options = PurgeOptions::new(self.reason, &self.requested_by);
        options.agent_id.clone_from(&self.agent.agent_id);
        options.dry_run = self.dry_run;
        options.partial = self.partial;
        options.keep_raw = self.keep_raw;
        options.audit_file.clone_from(&self.audit_file);
        let report = match (&self.file, &self.to) {
            (Some(from), Some(to)) => {
                let (now, limits) =
                    (grainstore::Clock::now(&grainstore::SystemClock), Limits::default());
                followed(context, |monitor| {
                    alf::purge_archive(from, to, &self.ids, now, &options, limits, monitor)
                })?
            }
            _ => {
                let reach = context.reach()?;
                let Some(session) = reach.session() else {
                    let told = followed_call(context, &reach, "alf_purge", &self.params()?)?;
                    return context.output.told_document(&told);
                };
                let scope = match (self.of_user, self.whole_agent) {
                    (Some(user), _) => PurgeScope::User(user),
                    (None, true) => PurgeScope::Agent,
                    (None, false) => PurgeScope::Records(self.ids),
                };
                followed(context, |monitor| alf::purge(&session, &scope, &options, monitor))?
            }
        };
        tell_purge(&report, context)
    }

    /// The parameters of the method.
    fn params(&self) -> Result<Value> {
        let mut asked = json!({
            "reason": self.reason, "requested_by": self.requested_by,
            "agent_id": self.agent.agent_id, "dry_run": self.dry_run, "partial": self.partial,
            "keep_raw": self.keep_raw,
            "audit_file": self.audit_file.as_deref().map(file_name).transpose()?,
        });
        match (&self.of_user, self.whole_agent) {
            (Some(user), _) => set(&mut asked, "user_id", json!(user)),
            (None, true) => set(&mut asked, "whole_agent", json!(true)),
            (None, false) => set(&mut asked, "ids", json!(self.ids)),
        }
        Ok(asked)
    }
}

/// The record of a purge is JSON for people, too: it is what is kept of it.
fn tell_purge(report: &PurgeReport, context: &mut Context<'_>) -> Result<()> {
    context.output.document(report)
}

fn tell_validation(found: &Validation, context: &mut Context<'_>) -> Result<()> {
    context.output.answer(found, |output| {
        let word = if found.valid { "valid" } else { "not valid" };
        let (errors, warnings) = (found.error_count, found.warning_count);
        output.line(&format!(
            "{word}: {} records, {errors} errors, {warnings} warnings",
            found.records
        ))?;
        for issue in found.errors.iter().take(SHOWN) {
            output.line(&format!("  error: {}: {}", issue.path, issue.message))?;
        }
        for issue in found.warnings.iter().take(SHOWN) {
            output.line(&format!("  warning: {}: {}", issue.path, issue.message))?;
        }
        Ok(())
    })?;
    context.output.flush()?;
    if found.valid { Ok(()) } else { Err(Error::AlreadyReported(1)) }
}
