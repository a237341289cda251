//! `grain remove-vectors`: removes the vectors of a model that no longer serves.

use clap::Args;
use grainstore::Power;
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
        let session = context.session_with(Power::RemoveVectors)?;
        let store = session.store();
        context.working("removing");
        let removed = store.remove_vectors(&self.model)?;
        if context.output.is_json() {
            return context.output.json_line(&json!({ "removed": removed }));
        }
        context.output.line(&format!("removed {removed} vectors of {}", self.model))
    }
}
