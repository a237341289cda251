//! The operation `rotate_keys`: another key for an encrypted store, or for one of its users.

use std::path::{Path, PathBuf};

use grainstore::{KeyFile, Power, Session, Store};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Code, Error, Result};

/// Changes the key of the store to that in a file, or encrypts the grains of a user under a new key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateKeys {
    key_file: Option<PathBuf>,
    user_id: Option<String>,
}

pub(crate) fn rotate_keys(given: RotateKeys, session: &Session) -> Result<Value> {
    session.check_power(Power::RotateKeys)?;
    match (given.key_file, given.user_id) {
        (Some(file), None) => {
            check_encrypted(session.store())?;
            // The keys of a store with a journal are not changed: no file is made for one.
            if !file.exists() && session.store().position()?.is_none() {
                new_key_file(&file)?;
            }
            session.store().rotate_key(KeyFile::new(&file))?;
            Ok(json!({ "rotated": true, "key_file": file }))
        }
        (None, Some(user)) => {
            let rows = session.store().rotate_user_key(&user)?;
            Ok(json!({ "rotated": true, "user_id": user, "rows": rows }))
        }
        _ => Err(Error::arguments("give either key_file or user_id")),
    }
}

/// Refuses a store without a key.
///
/// # Errors
/// `ERR_KEY`.
fn check_encrypted(store: &Store) -> Result<()> {
    if store.is_encrypted() {
        return Ok(());
    }
    let message = "this store is not encrypted, and so has no key to change";
    let hint =
        "create an encrypted one (grain init --encrypt) and import into it what this one exports";
    Err(Error::new(Code::Key, message, hint))
}

/// Writes a new key into a new file.
fn new_key_file(file: &Path) -> Result<KeyFile> {
    KeyFile::create(file).map_err(|error| {
        let place = format!("the key file {} cannot be made", file.display());
        let hint = "name a file in a directory that is there";
        Error::from(error).in_context(&place).with_hint_for(Code::Io.name(), hint)
    })
}
