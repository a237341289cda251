//! `grain history`: prints the versions of a grain, or of a subject's relation.

use clap::Args;
use grainstore::{ContentAddress, EpochMs, Grain, GrainState};
use grainstore_rpc::{self as operations, Version};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::output::Output;
use crate::reach::{Reach, Told, set};
use crate::text::parse_time;
use crate::told::version_line;

/// Versions that are asked of another process at once.
const MAX_VERSIONS: u64 = 1_000;

/// Print all versions, newest first: address, standing, when created, what it says
#[derive(Debug, Args)]
#[command(override_usage = "grain history ADDRESS\n       \
                            grain history --subject S --relation R [--as-of TIME]")]
pub(crate) struct History {
    /// Any version: 64 hex digits, or the first 8 or more where they name one grain
    #[arg(required_unless_present = "subject", conflicts_with_all = ["subject", "relation", "as_of"])]
    address: Option<String>,
    /// Everything said of this subject ...
    #[arg(long, requires = "relation")]
    subject: Option<String>,
    /// ... under this relation
    #[arg(long, requires = "subject")]
    relation: Option<String>,
    /// Only what was current at this time: epoch milliseconds or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "subject")]
    as_of: Option<EpochMs>,
}

impl History {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let address = self.address.map(|digits| reach.address(&digits)).transpose()?;
        let Some(session) = reach.session() else {
            let asked = json!({
                "address": address, "subject": self.subject, "relation": self.relation,
                "as_of": self.as_of,
            });
            return relayed(&reach, asked, context);
        };
        let history = operations::History {
            address: address.map(Into::into),
            subject: self.subject,
            relation: self.relation,
            as_of: self.as_of.map(EpochMs::get),
            ..operations::History::default()
        };
        for stored in history.versions(&session)? {
            let one = Version::try_from(stored)?;
            let line = version_line(&one.address, &one.grain, &one.state.state);
            context.output.answer(&one, |output| output.line(&line))?;
        }
        Ok(())
    }
}

/// A part of the versions that another process tells.
#[derive(Deserialize)]
struct Part {
    versions: Vec<Told>,
}

/// Prints the versions that another process tells, as many at a time as an answer has room for.
fn relayed(reach: &Reach, mut asked: Value, context: &mut Context<'_>) -> Result<()> {
    let (mut cursor, mut limit) = (0, MAX_VERSIONS);
    loop {
        set(&mut asked, "cursor", json!(cursor));
        set(&mut asked, "limit", json!(limit));
        let part: Part = match reach.read("history", &asked) {
            // It tells how many fit.
            Err(error) if error.cursor().is_some_and(|fits| fits > cursor) => {
                limit = error.cursor().unwrap_or_default().saturating_sub(cursor);
                continue;
            }
            part => part?,
        };
        let count = part.versions.len() as u64;
        for one in &part.versions {
            write_version(one, &mut context.output)?;
        }
        cursor = cursor.saturating_add(count);
        if count < limit {
            return Ok(());
        }
    }
}

/// Prints a version that another process tells.
pub(super) fn write_version(told: &Told, output: &mut Output<'_>) -> Result<()> {
    if output.is_json() {
        return output.json_line(told);
    }
    let one: Sent = told.read()?;
    let grain = Grain::from_json(one.grain.json())?;
    output.line(&version_line(&one.address, &grain, &one.state))
}

/// A version of another process.
#[derive(Deserialize)]
struct Sent {
    address: ContentAddress,
    grain: Told,
    state: GrainState,
}
