//! `grain backup`: copies the store into a new directory.

use std::path::PathBuf;

use clap::Args;
use grainstore::Power;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;

/// Copy the store into a new directory; its indexes are built when it is first opened
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The directory: it must not be there yet, or be empty
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session_with(Power::Backup)?;
        let store = session.store();
        context.working("copying");
        let backup = store.backup(&self.to)?;
        let path = self.to.display().to_string();
        if context.output.is_json() {
            let (grains, entries, bytes) = (backup.grains, backup.audit_entries, backup.bytes);
            let answer =
                json!({ "path": path, "grains": grains, "audit_entries": entries, "bytes": bytes });
            return context.output.json_line(&answer);
        }
        context.output.line(&format!("{} grains in {path}, {} bytes", backup.grains, backup.bytes))
    }
}
