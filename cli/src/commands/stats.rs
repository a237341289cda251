//! `grain stats`: prints figures of the store.

use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::output::Output;

/// Print figures of the store
#[derive(Debug, Default, Args)]
pub(crate) struct Stats {
    /// What the bytes of the files are used for, too; reads all of them
    #[arg(long)]
    pages: bool,
}

impl Stats {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let told = context.reach()?.call("stats", &json!({ "pages": self.pages }))?;
        context.output.answer(&told, |output| write_figures("", &told.read()?, output))
    }
}

/// Prints one line for each figure, those of a group under its name.
fn write_figures(name: &str, figure: &Value, output: &mut Output<'_>) -> Result<()> {
    let figures = match figure {
        Value::Object(figures) => figures,
        Value::Null => return output.line(&format!("{name:<28} none")),
        figure => return output.line(&format!("{name:<28} {figure}")),
    };
    for (below, figure) in figures {
        let below = below.replace('_', " ");
        let name = if name.is_empty() { below } else { format!("{name}: {below}") };
        write_figures(&name, figure, output)?;
    }
    Ok(())
}
