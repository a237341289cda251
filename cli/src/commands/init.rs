//! `grain init`: an empty store.

use clap::Args;
use grainstore::{ErrorKind, Preset, Store};
use serde_json::json;

use crate::context::{Context, not_opened};
use crate::error::{Code, Error, Result};

/// Create an empty store
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The compliance rules it holds to: open, gdpr, hipaa, sox, ccpa or lgpd; `grain policy show NAME`
    /// shows them. Without it, open
    #[arg(long, value_name = "NAME", value_parser = Preset::named)]
    preset: Option<Preset>,
    /// Encrypt it; this version has no encryption and refuses
    #[arg(long)]
    encrypt: bool,
}

impl Init {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        if self.encrypt {
            return Err(Error::unavailable(Code::Key, "encrypted stores (--encrypt)"));
        }
        let path = context.globals.store.display().to_string();
        let exists = || {
            let message = format!("there is a store at {path} already");
            Error::new(Code::Conflict, message, "use it, or name another with --store")
        };
        let options = context.options()?.create(true);
        let options = match self.preset {
            Some(preset) => options.preset(preset),
            None => options,
        };
        let store = match Store::open(&context.globals.store, &options) {
            // One that is there holds to a preset of its own.
            Err(error) if error.kind() == ErrorKind::Policy => return Err(exists()),
            opened => opened.map_err(not_opened)?,
        };
        if !store.was_created() {
            return Err(exists());
        }
        if context.output.is_json() {
            return context.output.json_line(&json!({ "created": true, "store": path }));
        }
        context.output.line(&format!("created {path}"))
    }
}
