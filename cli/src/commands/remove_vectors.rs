//! `grain remove-vectors`: removes the vectors of a model that no longer serves.

use clap::Args;
use grainstore_rpc::RemovedVectors;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;

/// Remove all vectors of a model, unless they answer questions
#[derive(Debug, Args)]
pub(crate) struct RemoveVectors {
    /// The model, as `grain stats` names it
    model: String,
}

impl RemoveVectors {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        context.note_progress("removing");
        let done: RemovedVectors = reach.read("remove_vectors", &json!({ "model": self.model }))?;
        context.output.answer(&done, |output| {
            output.line(&format!("removed {} vectors of {}", done.removed, self.model))
        })
    }
}
