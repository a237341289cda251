//! `grain backup`: copies the store into a new directory.

use std::path::PathBuf;

use clap::Args;
use grainstore::{BackupReport, Session};
use grainstore_rpc::{self as operations, backup};
use serde_json::json;

use crate::context::Context;
use crate::error::Result;
use crate::reach::file_name;

/// Copy the store into a new directory; its indexes are built when it is first opened
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The directory: it must not be there yet, or be empty
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        context.note_progress("copying");
        let path = self.to.display().to_string();
        let here =
            |session: &Session| backup(operations::Backup { path: self.to.clone() }, session);
        let done: BackupReport =
            reach.here_or(here, "backup", || Ok(json!({ "path": file_name(&self.to)? })))?;
        let (grains, entries, bytes) = (done.grains, done.audit_entries, done.bytes);
        let answer =
            json!({ "path": path, "grains": grains, "audit_entries": entries, "bytes": bytes });
        context.output.answer(&answer, |output| {
            output.line(&format!("{grains} grains in {path}, {bytes} bytes"))
        })
    }
}
