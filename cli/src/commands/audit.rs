//! `grain audit`: prints the audit log or the read log, or a signed checkpoint.

use clap::Args;
use grainstore::Power;
use grainstore::format::cose::Algorithm;
use grainstore_rpc::{self as operations, AuditAnswer};

use super::keys;
use crate::context::Context;
use crate::error::Result;
use crate::input::Source;
use crate::told::entry_line;

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
        let session = context.session()?;
        if self.checkpoint {
            session.check_power(Power::Checkpoint)?;
            let output = &mut context.output;
            let key = self
                .key_seed
                .map(|source| keys::read_signing_key(&source, Algorithm::EdDsa, output));
            let checkpoint = session.store().checkpoint(key.transpose()?.as_ref())?;
            return context.output.json_line(&checkpoint);
        }
        let count = match self.reads {
            true => session.reads_head()?.map_or(0, |(count, _)| count),
            false => session.store().stats()?.audit_entries,
        };
        let (reads, limit) = (Some(self.reads), Some(PAGE_ENTRIES));
        let mut log = operations::Audit { reads, by: self.by, after: None, limit };
        let mut next = count.saturating_sub(self.tail.unwrap_or(count));
        while next < count {
            log.after = next.checked_sub(1);
            let page = log.page(&session)?;
            let Some(last) = page.last() else {
                break;
            };
            next = last.sequence.saturating_add(1);
            for entry in page {
                let line = entry_line(&entry);
                context.output.answer(&AuditAnswer::from(entry), |output| output.line(&line))?;
            }
        }
        Ok(())
    }
}
