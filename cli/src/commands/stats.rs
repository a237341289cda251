//! `grain stats`: figures of the store.

use clap::Args;
use serde_json::Value;

use crate::context::Context;
use crate::error::Result;

/// Print figures of the store
#[derive(Debug, Args)]
pub(crate) struct Stats {}

impl Stats {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let stats = context.session()?.store().stats()?;
        if context.output.is_json() {
            return context.output.json_line(&stats);
        }
        let Value::Object(figures) = serde_json::to_value(&stats)? else {
            return Ok(());
        };
        for (name, figure) in figures {
            context.output.line(&format!("{:<14} {figure}", name.replace('_', " ")))?;
        }
        Ok(())
    }
}
