//! `grain init`: creates an empty store.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use grainstore::{Derivation, ErrorKind, KeyProvider, Preset, Store};
use serde_json::json;

use super::wording::Wording;
use crate::context::{Context, key_file, new_key_file, opening_error};
use crate::error::{Code, Error, Result};

/// Create an empty store
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The compliance rules it holds to: open, gdpr, hipaa, sox, ccpa or lgpd; `grain policy show NAME` shows
    /// them. Without it, open
    #[arg(long, value_name = "NAME", value_parser = Preset::from_name)]
    preset: Option<Preset>,
    /// Encrypt it with the key in --key-file, which is made where there is none
    #[arg(long)]
    encrypt: bool,
    /// Keep grains compressed; addresses and answers stay the same
    #[arg(long)]
    compress: bool,
    #[command(flatten)]
    wording: Wording,
}

impl Init {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        if context.globals.store.join("grains.redb").exists() {
            return Err(store_exists(context));
        }
        // A language that is not known is refused before a key is made.
        let options = self.wording.add_to(context.options()?.create(true))?;
        let made = self.prepare_key(context)?;
        let options = if self.compress { options.compress(true) } else { options };
        let options = match self.preset {
            Some(preset) => options.preset(preset),
            None => options,
        };
        let opened = Store::open(&context.globals.store, &options);
        if let (Err(_), Some(file)) = (&opened, &made) {
            Self::remove_unused(file, context);
        }
        let store = match opened {
            // An existing store has a preset of its own.
            Err(error) if error.kind() == ErrorKind::Policy => return Err(store_exists(context)),
            opened => opened.map_err(opening_error)?,
        };
        context.keep(&store);
        let path = store.path().display().to_string();
        if !store.was_created() {
            return Err(store_exists(context));
        }
        let key = made.map(|file| file.display().to_string());
        let (created, encrypted) = (format!("created {path}"), self.encrypt);
        let answer =
            json!({ "created": true, "store": path, "encrypted": encrypted, "new_key": key });
        context.output.answer(&answer, |output| {
            output.line(&created)?;
            if let Some(file) = key {
                output.note(&format!(
                    "wrote its key to {file}: keep a copy elsewhere, without it nothing can be read"
                ));
            }
            Ok(())
        })
    }

    /// Removes the new key of a store that could not be created, unless data may be encrypted under it
    /// already.
    fn remove_unused(file: &Path, context: &Context<'_>) {
        if !context.globals.store.join("keyring").exists() {
            // The error of the creation is reported.
            let _ = fs::remove_file(file);
        }
    }

    /// Checks or creates the key of a store to be encrypted. Returns the key file if it is new.
    fn prepare_key(&self, context: &Context<'_>) -> Result<Option<PathBuf>> {
        let file = context.globals.key_file.clone();
        match (self.encrypt, file) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(Error::new(
                Code::Key,
                "a key was given, and not --encrypt",
                "add --encrypt, or leave out --key-file and GRAIN_KEY_FILE",
            )),
            (true, None) => Err(Error::usage(
                Code::Key,
                "--encrypt needs a key",
                "name a file with --key-file; it is made where there is none",
            )),
            (true, Some(file)) if file.exists() => {
                // A key that cannot be used is reported before anything is created.
                key_file(&file)?.master_key(&Derivation::Raw)?;
                Ok(None)
            }
            (true, Some(file)) => {
                new_key_file(&file)?;
                Ok(Some(file))
            }
        }
    }
}

fn store_exists(context: &Context<'_>) -> Error {
    let message = format!("there is a store at {} already", context.globals.store.display());
    Error::new(Code::Conflict, message, "use it, or name another with --store")
}
