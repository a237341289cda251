//! `grain reindex`: rebuilds everything derived.

use clap::Args;
use grainstore_rpc::{Nothing, reindex};

use crate::context::Context;
use crate::error::Result;

/// Build the indexes and the full text again from the log
#[derive(Debug, Args)]
pub(crate) struct Reindex {}

impl Reindex {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session()?;
        context.note_progress("indexing");
        let done = reindex(Nothing {}, &session)?;
        context
            .output
            .answer(&done, |output| output.line(&format!("indexed {} grains", done.grains)))
    }
}
