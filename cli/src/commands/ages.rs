//! `grain ages`: evidence of the decisions of a store, for auditors.

mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use grainstore::{EpochMs, Session};
use grainstore_interop::ages::{self, ExportOptions, ExportReport, Segment};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::followed::{followed, followed_call};
use crate::context::Context;
use crate::error::Result;
use crate::input::Source;
use crate::reach::{as_named, file_name};
use crate::text::parse_time;

/// Evidence of the decisions of the store, for auditors: AGES v1 Evidence Packs
#[derive(Debug, Args)]
pub(crate) struct Ages {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write segments of the audit log as Evidence Packs; prints the root of each, to be kept elsewhere. With
    /// --namespace only those with an entry about a grain in it
    Export(Export),
    /// Verify packs, offline and without a store: prints VALID or TAMPERED, of several with the name before it. What
    /// cannot be opened has no verdict
    Verify {
        /// The packs, or a folder of them; - for stdin
        #[arg(value_name = "FILE|DIR|-", required = true)]
        packs: Vec<Source>,
    },
    /// List the segments of the audit log
    Segments,
}

#[derive(Debug, Args)]
struct Export {
    /// A directory, where each pack is named after its evidence (with a / at its end it is made); or the file of one pack
    #[arg(value_name = "DIR|FILE")]
    to: PathBuf,
    /// Only the segment with this number
    #[arg(long, value_name = "N")]
    segment: Option<u64>,
    /// Only segments with an entry at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<EpochMs>,
    /// Only segments with an entry at this time or before
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<EpochMs>,
    /// The tenant that the evidence is of; another one makes other chains
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
}

impl Ages {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.what {
            What::Export(export) => export.run(context),
            What::Verify { packs } => verify::run(&packs, context),
            What::Segments => list(context),
        }
    }
}

impl Export {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let (namespace, user) = context.named();
        // The audit log is of no user: asked for one, it is refused.
        let reach = match user {
            Some(_) => context.reach()?,
            None => context.whole()?,
        };
        let Self { to, segment, since, until, tenant } = self;
        let report = match reach.session() {
            Some(session) => {
                let options = ExportOptions { segment, since, until, namespace, tenant_id: tenant };
                followed(context, |monitor| ages::export(&session, &to, &options, monitor))?
            }
            None => {
                let asked = json!({
                    "path": file_name(&to)?, "segment": segment, "since": since, "until": until,
                    "namespace": namespace, "tenant_id": tenant,
                });
                let mut report: ExportReport =
                    followed_call(context, &reach, "ages_export", &asked)?.read()?;
                report.packs.iter_mut().for_each(|pack| pack.path = as_named(&to, &pack.path));
                report
            }
        };
        context.output.answer(&report, |output| {
            for pack in &report.packs {
                let (path, root) = (pack.path.display(), &pack.root_hash);
                output.line(&format!("{path}: {} steps, root {root}", pack.steps))?;
            }
            Ok(())
        })
    }
}

fn list(context: &mut Context<'_>) -> Result<()> {
    let reach = context.reach()?;
    let here = |session: &Session| Ok(Segments { segments: ages::segments(session)? });
    let found = reach.here_or(here, "ages_segments", || Ok(json!({})))?;
    context.output.answer(&found, |output| {
        for segment in &found.segments {
            output.line(&described(segment))?;
        }
        Ok(())
    })
}

/// The segments of the audit log.
#[derive(Serialize, Deserialize)]
struct Segments {
    segments: Vec<Segment>,
}

fn described(segment: &Segment) -> String {
    let Segment { segment: number, first, last, since, until, closed, .. } = segment;
    let state = if *closed { "closed" } else { "open" };
    format!("{number}  entries {first} to {last}  {since} to {until}  {state}")
}
