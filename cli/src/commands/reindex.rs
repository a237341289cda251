//! `grain reindex`: rebuilds everything derived.

use clap::Args;
use grainstore_rpc::Reindexed;
use serde_json::json;

use super::wording::Wording;
use crate::context::Context;
use crate::error::Result;
use crate::reach::Reach;

/// Build the indexes and the full text again from the log
///
/// Languages and domains of observers that are given replace all that the store has; without any it keeps
/// them.
#[derive(Debug, Args)]
pub(crate) struct Reindex {
    #[command(flatten)]
    wording: Wording,
}

impl Reindex {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        // Who may not reindex changes nothing by asking.
        let reach = match self.wording.is_empty() || !context.has_powers() {
            true => context.reach()?,
            false => {
                let options = self.wording.add_to(context.options()?)?;
                Reach::Here(context.session_as(&options)?)
            }
        };
        context.note_progress("indexing");
        let done: Reindexed = reach.read("reindex", &json!({}))?;
        context
            .output
            .answer(&done, |output| output.line(&format!("indexed {} grains", done.grains)))
    }
}
