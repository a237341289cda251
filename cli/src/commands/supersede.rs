//! `grain supersede`: replaces a grain by a new version.

use clap::Args;
use grainstore::{Grain, Offer};
use grainstore_rpc::{Sensitive, SupersedeAnswer, as_sensitive_successor, supersede_by};
use serde_json::json;

use super::put::{PutFormat, offered, write_warnings};
use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source};
use crate::names::{SENSITIVITIES, named};

/// Replace a grain by a new one, if its invalidation policy lets you, and print the new address
#[derive(Debug, Args)]
pub(crate) struct Supersede {
    /// The grain to replace: 64 hex digits, or the first 8 or more where they name one grain
    address: String,
    /// The new grain; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    /// json: derived_from and the justification are added for you; mg, cose: the blob carries both
    #[arg(long, value_enum, default_value_t)]
    format: PutFormat,
    /// Why: some policies demand it, and it stays with the new grain
    #[arg(long, value_name = "TEXT")]
    justification: Option<String>,
    /// The sensitivity of a JSON grain; it has that of the grain it replaces at least
    #[arg(
        long,
        value_parser = named::<Sensitive>(SENSITIVITIES),
        value_name = "LEVEL",
        conflicts_with = "format"
    )]
    sensitivity: Option<Sensitive>,
}

impl Supersede {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        let old = reach.address(&self.address)?;
        let new = match self.format.read(&self.source, &mut context.output)? {
            Some(offer) => offer,
            None => {
                let json = self.source.read_text(MAX_JSON_BYTES, &mut context.output)?;
                let offer = Offer::Grain(Grain::from_json(&json)?);
                as_sensitive_successor(offer, self.sensitivity)?
            }
        };
        let done = match reach.session() {
            Some(session) => supersede_by(&session, &old, new, self.justification.as_deref())?,
            None => {
                let mut asked = offered(&new)?;
                asked.insert("old".to_owned(), json!(old));
                if let Some(why) = self.justification {
                    asked.insert("justification".to_owned(), json!(why));
                }
                if let Some(level) = self.sensitivity {
                    asked.insert("sensitivity".to_owned(), json!(level));
                }
                let done: SupersedeAnswer = reach.read("supersede", &asked)?;
                SupersedeAnswer { superseded: Some(old), ..done }
            }
        };
        context.output.answer(&done, |output| {
            output.line(&done.address.to_string())?;
            write_warnings("", &done.warnings, output);
            Ok(())
        })
    }
}
