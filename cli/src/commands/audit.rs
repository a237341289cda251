//! `grain audit`: prints the audit log or the read log, or a signed checkpoint.

use clap::Args;
use grainstore::Power;
use grainstore::format::cose::Algorithm;
use grainstore_rpc::{self as operations, AuditAnswer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::keys;
use crate::context::Context;
use crate::error::Result;
use crate::input::Source;
use crate::reach::{Reach, Told};
use crate::told::{ShownEntry, entry_line};

/// Entries read at once.
const PAGE_ENTRIES: usize = 1000;

/// Print the audit log, oldest first: place, time, operation, decision, actor, rules, grains; with --reads
/// the read log beside it
#[derive(Debug, Default, Args)]
pub(crate) struct Audit {
    /// Only the last N entries
    #[arg(long, value_name = "N")]
    tail: Option<u64>,

    /// Only what this actor did and tried: the log names actors by pseudonyms
    #[arg(long, value_name = "DID")]
    by: Option<String>,

    /// The read log: calls in CAL that read, or were refused to
    #[arg(long)]
    reads: bool,

    /// Print where the log ends, signed, to be kept elsewhere and given to `verify --checkpoint`
    #[arg(long, conflicts_with_all = ["tail", "by", "reads"])]
    checkpoint: bool,

    /// The key it is signed with: a file of 32 bytes, as `grain keys new` makes it; else the store's own
    #[arg(long, value_name = "FILE", requires = "checkpoint")]
    key_seed: Option<Source>,
}

impl Audit {
    /// Returns the command for the last entries.
    pub(crate) fn last(count: u64) -> Self {
        Self { tail: Some(count), ..Self::default() }
    }

    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        if self.checkpoint {
            return checkpoint(self.key_seed.as_ref(), &reach, context);
        }
        let log = Log { reads: self.reads, by: self.by };
        let count = log.count(&reach)?;
        let mut next = count.saturating_sub(self.tail.unwrap_or(count));
        let mut limit = PAGE_ENTRIES;
        while next < count {
            let page = match log.page(&reach, next.checked_sub(1), limit) {
                // Entries of another process that do not fit into an answer are asked for in smaller parts.
                Err(error) if error.cursor().is_some() && limit > 1 => {
                    limit /= 2;
                    continue;
                }
                page => page?,
            };
            let before = next;
            for entry in page {
                let shown: ShownEntry = entry.read()?;
                next = shown.sequence.saturating_add(1);
                context.output.answer(&entry, |output| output.line(&entry_line(&shown)))?;
            }
            if next == before {
                break;
            }
        }
        Ok(())
    }
}

/// Signs where the log ends, and prints that.
fn checkpoint(key: Option<&Source>, reach: &Reach, context: &mut Context<'_>) -> Result<()> {
    let output = &mut context.output;
    if let Some(session) = reach.session() {
        session.check_power(Power::Checkpoint)?;
        let key = key.map(|source| keys::read_signing_key(source, Algorithm::EdDsa, output));
        return output.json_line(&session.store().checkpoint(key.transpose()?.as_ref())?);
    }
    let key = key.map(|source| keys::read_seed(source, output)).transpose()?;
    let key = key.as_ref().map(|key| key.as_str());
    output.json_line(&reach.call("checkpoint", &Keyed { key })?)
}

/// The parameters of `checkpoint`.
#[derive(Serialize)]
struct Keyed<'k> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'k str>,
}

/// The log that is printed.
struct Log {
    reads: bool,
    by: Option<String>,
}

/// The answer of `audit`.
#[derive(Deserialize)]
struct Page {
    head: Option<Head>,
    entries: Vec<Told>,
}

#[derive(Deserialize)]
struct Head {
    sequence: u64,
}

impl Log {
    /// Number of its entries.
    fn count(&self, reach: &Reach) -> Result<u64> {
        match reach.session() {
            Some(session) if self.reads => Ok(session.reads_head()?.map_or(0, |(count, _)| count)),
            Some(session) => Ok(session.store().stats()?.audit_entries),
            None => {
                let page: Page =
                    reach.read("audit", &json!({ "reads": self.reads, "limit": 1 }))?;
                Ok(page.head.map_or(0, |head| head.sequence.saturating_add(1)))
            }
        }
    }

    /// Entries after one, the oldest first.
    fn page(&self, reach: &Reach, after: Option<u64>, limit: usize) -> Result<Vec<Told>> {
        let Some(session) = reach.session() else {
            let asked =
                json!({ "reads": self.reads, "by": self.by, "after": after, "limit": limit });
            return Ok(reach.read::<Page>("audit", &asked)?.entries);
        };
        let (reads, by, limit) = (Some(self.reads), self.by.clone(), Some(limit));
        let page = operations::Audit { reads, by, after, to: None, limit }.page(&session)?;
        page.into_iter().map(|entry| Told::of(&AuditAnswer::from(entry))).collect()
    }
}
