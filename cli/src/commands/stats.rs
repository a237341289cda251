//! `grain stats`: prints figures of the store.

use clap::Args;
use grainstore::Power;
use serde_json::Value;

use crate::context::Context;
use crate::error::Result;

/// Print figures of the store
#[derive(Debug, Default, Args)]
pub(crate) struct Stats {
    /// What the bytes of the files are used for, too; reads all of them
    #[arg(long)]
    pages: bool,
}

impl Stats {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session_with(Power::Stats)?;
        let store = session.store();
        let mut figures = serde_json::to_value(store.stats()?)?;
        if self.pages
            && let Some(figures) = figures.as_object_mut()
        {
            figures.insert("pages".to_owned(), serde_json::to_value(store.pages()?)?);
        }
        if context.output.is_json() {
            return context.output.json_line(&figures);
        }
        print("", &figures, context)
    }
}

/// Prints one line for each figure, those of a group under its name.
fn print(name: &str, figure: &Value, context: &mut Context<'_>) -> Result<()> {
    let figures = match figure {
        Value::Object(figures) => figures,
        Value::Null => return context.output.line(&format!("{name:<28} none")),
        figure => return context.output.line(&format!("{name:<28} {figure}")),
    };
    for (below, figure) in figures {
        let below = below.replace('_', " ");
        let name = if name.is_empty() { below } else { format!("{name}: {below}") };
        print(&name, figure, context)?;
    }
    Ok(())
}
