//! `grain reindex`: rebuilds everything derived.

use clap::Args;
use grainstore::Power;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;

/// Build the indexes and the full text again from the log
#[derive(Debug, Args)]
pub(crate) struct Reindex {}

impl Reindex {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session_with(Power::Reindex)?;
        let store = session.store();
        context.working("indexing");
        let grains = store.reindex()?;
        if context.output.is_json() {
            return context.output.json_line(&json!({ "grains": grains }));
        }
        context.output.line(&format!("indexed {grains} grains"))
    }
}
