//! `grain compact`: rewrites the files without free pages.

use clap::Args;
use grainstore::CompactionReport;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;

/// Rewrite the files of the store without gaps; needs room for a second copy
#[derive(Debug, Args)]
pub(crate) struct Compact {}

impl Compact {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        context.note_progress("compacting");
        let done: CompactionReport = reach.read("compact", &json!({}))?;
        let files = [
            ("truth", done.truth_bytes_before, done.truth_bytes_after),
            ("index", done.index_bytes_before, done.index_bytes_after),
        ];
        context.output.answer(&done, |output| {
            files.iter().try_for_each(|(name, before, after)| {
                output.line(&format!("{name}: {before} bytes, now {after}"))
            })
        })
    }
}
