//! `grain compact`: rewrites the files without free pages.

use clap::Args;
use grainstore::Power;

use crate::context::Context;
use crate::error::Result;

/// Rewrite the files of the store without gaps; needs room for a second copy
#[derive(Debug, Args)]
pub(crate) struct Compact {}

impl Compact {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session_with(Power::Compact)?;
        let store = session.store();
        context.working("compacting");
        let done = store.compact()?;
        if context.output.is_json() {
            return context.output.json_line(&done);
        }
        for (name, before, after) in [
            ("truth", done.truth_bytes_before, done.truth_bytes_after),
            ("index", done.index_bytes_before, done.index_bytes_after),
        ] {
            context.output.line(&format!("{name}: {before} bytes, now {after}"))?;
        }
        Ok(())
    }
}
