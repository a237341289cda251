//! `grain init`: an empty store.

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::context::Context;
use crate::error::{Code, Error, Result};

/// Create an empty store
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The compliance rules it holds; this version has `open` alone
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// Encrypt it; this version has no encryption and refuses
    #[arg(long)]
    encrypt: bool,
}

/// The compliance rule sets of the design.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Preset {
    #[default]
    Open,
    Gdpr,
    Hipaa,
    Sox,
    Ccpa,
    Lgpd,
}

impl Init {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        if self.preset != Preset::Open {
            return Err(Error::unavailable(Code::Schema, "presets other than open"));
        }
        if self.encrypt {
            return Err(Error::unavailable(Code::Key, "encrypted stores (--encrypt)"));
        }
        let store = context.open(true)?;
        let path = store.path().display().to_string();
        if !store.was_created() {
            let message = format!("there is a store at {path} already");
            return Err(Error::new(
                Code::Conflict,
                message,
                "use it, or name another with --store",
            ));
        }
        if context.output.is_json() {
            return context.output.json_line(&json!({ "created": true, "store": path }));
        }
        context.output.line(&format!("created {path}"))
    }
}
