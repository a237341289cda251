//! `grain audit`: the log of what was written and refused.

use clap::Args;
use zeroize::Zeroizing;

use super::sign::MAX_KEY;
use crate::context::Context;
use crate::error::Result;
use crate::input::Source;
use crate::shape::{AlgorithmName, AuditAnswer};

/// Entries read at once.
const PAGE: usize = 1000;

/// Print the audit log, oldest first: place, time, operation, decision, actor, rules, grains
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only the last N entries
    #[arg(long, value_name = "N")]
    tail: Option<u64>,

    /// Print where the log ends, signed, to be kept elsewhere and given to `verify --checkpoint`
    #[arg(long, conflicts_with = "tail")]
    checkpoint: bool,

    /// The key it is signed with: a file of 32 bytes, as `grain keys new` makes it; else the store's own
    #[arg(long, value_name = "FILE", requires = "checkpoint")]
    key_seed: Option<Source>,
}

impl Audit {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session()?;
        if self.checkpoint {
            let key = match &self.key_seed {
                Some(source) => {
                    let secret = Zeroizing::new(source.read(MAX_KEY, &mut context.output)?);
                    Some(AlgorithmName::Ed25519.key(&secret)?)
                }
                None => None,
            };
            return context.output.json_line(&session.store().checkpoint(key.as_ref())?);
        }
        let count = session.store().stats()?.audit_entries;
        let mut next = count.saturating_sub(self.tail.unwrap_or(count));
        while next < count {
            let page = session.audit(next.checked_sub(1), PAGE)?;
            let Some(last) = page.last() else {
                break;
            };
            next = last.sequence.saturating_add(1);
            for entry in page.into_iter().map(AuditAnswer::from) {
                if context.output.is_json() {
                    context.output.json_line(&entry)?;
                } else {
                    context.output.line(&entry.line())?;
                }
            }
        }
        Ok(())
    }
}
