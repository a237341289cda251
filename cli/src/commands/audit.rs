//! `grain audit`: prints the audit log or the read log, or a signed checkpoint.

use clap::Args;
use grainstore::Power;
use grainstore::format::cose::Algorithm;
use grainstore_rpc::AuditAnswer;

use super::keys;
use crate::context::Context;
use crate::error::Result;
use crate::input::Source;
use crate::told::entry_line;

/// Entries read at once.
const PAGE: usize = 1000;

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
            let key = match &self.key_seed {
                Some(source) => Some(keys::read(source, Algorithm::EdDsa, &mut context.output)?),
                None => None,
            };
            return context.output.json_line(&session.store().checkpoint(key.as_ref())?);
        }
        let count = match self.reads {
            true => session.reads_head()?.map_or(0, |(count, _)| count),
            false => session.store().stats()?.audit_entries,
        };
        let mut next = count.saturating_sub(self.tail.unwrap_or(count));
        while next < count {
            let after = next.checked_sub(1);
            let page = match (&self.by, self.reads) {
                (Some(actor), false) => session.audit_by(actor, after, PAGE)?,
                (None, false) => session.audit(after, PAGE)?,
                (Some(actor), true) => session.reads_by(actor, after, PAGE)?,
                (None, true) => session.reads(after, PAGE)?,
            };
            let Some(last) = page.last() else {
                break;
            };
            next = last.sequence.saturating_add(1);
            for entry in page {
                if context.output.is_json() {
                    context.output.json_line(&AuditAnswer::from(entry))?;
                } else {
                    context.output.line(&entry_line(&entry))?;
                }
            }
        }
        Ok(())
    }
}
