//! `grain import`: imports the grains of portable `.mg` files, with their state.

use std::path::PathBuf;

use clap::Args;
use grainstore::{ImportOptions, ImportReport};
use serde_json::json;

use super::export::progress_bar;
use super::followed::followed_call;
use crate::context::Context;
use crate::error::Result;
use crate::reach::file_name;

/// Take the grains of portable .mg files into the store, with their history and state
///
/// All of them, or nothing: a file that is damaged, or holds a bad grain or signature, changes
/// nothing. What a file says otherwise than the store keeps to is listed, and is no failure.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The files: of an export in several, all of them (memory.mg memory.2.mg)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Import {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let imported = match reach.session() {
            Some(session) => {
                let bar = progress_bar(context);
                let progress = |done, total| {
                    bar.set_length(total);
                    bar.set_position(done);
                };
                let how = ImportOptions { progress: Some(&progress), ..ImportOptions::default() };
                let imported = session.import(&self.files, &how);
                bar.finish_and_clear();
                imported?
            }
            None => {
                let files =
                    self.files.iter().map(|file| file_name(file)).collect::<Result<Vec<_>>>();
                followed_call(context, &reach, "import", &json!({ "path": files? }))?
                    .read::<ImportReport>()?
            }
        };
        let (added, duplicate, refused) = (imported.added, imported.duplicate, imported.refused);
        context.output.answer(&imported, |output| {
            output.line(&format!("{added} added, {duplicate} duplicate, {refused} refused"))?;
            for conflict in &imported.conflicts {
                output.line(&format!("{}  {}", conflict.address, conflict.detail))?;
            }
            match imported.conflict_count.saturating_sub(imported.conflicts.len() as u64) {
                0 => Ok(()),
                more => output.line(&format!("and {more} more conflicts")),
            }
        })
    }
}
