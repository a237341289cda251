//! Where the store of a command is: open in this process, or in another one, which is asked by the methods of
//! docs/rpc.md.
//!
//! A command that answers little calls the method wherever the store is. One whose answer knows no bounds, or that is
//! measured, works on the session where there is one, and asks the other process else.

mod answer;

use std::path::{Path, PathBuf};

use grainstore::cal::QuerySource;
use grainstore::{ContentAddress, Session};
use grainstore_rpc::{Client, Following, Question, call_on};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::error::{Code, Error, Result};

pub(crate) use self::answer::{Answered, Told};

/// The store of a command, with its session.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// Open in this process alone.
    Here(Session),
    /// Shared with other processes, any of which may be the one that has it open.
    Shared(Client),
}

/// The answer of `resolve`.
#[derive(Deserialize)]
struct Resolved {
    addresses: Vec<ContentAddress>,
}

impl Reach {
    /// The session, where the store is open in this process.
    pub(crate) fn session(&self) -> Option<Session> {
        match self {
            Self::Here(session) => Some(session.clone()),
            Self::Shared(client) => client.owned_session(),
        }
    }

    /// Calls a method, wherever the store is.
    pub(crate) fn call(&self, method: &str, params: &impl Serialize) -> Result<Told> {
        self.follow(method, params, &mut Following::default())
    }

    /// Calls a method, with what follows it while it runs.
    pub(crate) fn follow(
        &self,
        method: &str,
        params: &impl Serialize,
        following: &mut Following<'_>,
    ) -> Result<Told> {
        let params = to_raw_value(params)?;
        Ok(Told(match self {
            Self::Here(session) => call_on(session.clone(), method, &params, following)?,
            Self::Shared(client) => client.call_following(method, &params, following)?,
        }))
    }

    /// Calls a method and reads its answer.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T> {
        self.call(method, params)?.read()
    }

    /// Works on the session where the store is open in this process, or calls a method.
    pub(crate) fn here_or<T: DeserializeOwned>(
        &self,
        here: impl FnOnce(&Session) -> Result<T>,
        method: &str,
        params: impl FnOnce() -> Result<Value>,
    ) -> Result<T> {
        match self.session() {
            Some(session) => here(&session),
            None => self.read(method, &params()?),
        }
    }

    /// Returns the only grain whose address is, or begins with, these digits.
    pub(crate) fn address(&self, digits: &str) -> Result<ContentAddress> {
        if digits.len() >= 2 * ContentAddress::LEN {
            return Ok(digits.parse()?);
        }
        let found = match self.session() {
            Some(session) => session.resolve(digits, 2)?,
            None => {
                let asked = json!({ "prefix": digits, "limit": 2 });
                self.read::<Resolved>("resolve", &asked)?.addresses
            }
        };
        match found.as_slice() {
            [address] => Ok(*address),
            [] => {
                let message = format!("no grain whose address begins with {digits}");
                let hint = "check the digits, the store and --namespace";
                Err(Error::new(Code::NotFound, message, hint))
            }
            _ => {
                let message = format!("several addresses begin with {digits}");
                Err(Error::new(Code::HashLength, message, "give more digits"))
            }
        }
    }

    /// Runs a statement of CAL.
    pub(crate) fn ask(&self, question: &Question<'_>) -> Result<Answered> {
        if let Some(session) = self.session() {
            return question.ask(&session).map(Answered::from);
        }
        if std::str::from_utf8(question.query).is_err()
            && let Err(error) = QuerySource::read_bytes(question.query)
        {
            return Err(Error::from_cal(&error, &String::from_utf8_lossy(question.query)));
        }
        let mut following = Following { cancel: question.cancel.clone(), ..Following::default() };
        let told = self.follow("cal", &question.params_of("cal"), &mut following);
        Answered::read(told.map_err(|error| error.of_query(question.query))?)
    }
}

/// Adds a parameter of a method.
pub(crate) fn set(params: &mut Value, name: &str, value: Value) {
    if let Value::Object(params) = params {
        params.insert(name.to_owned(), value);
    }
}

/// The name of a file, for a method.
///
/// # Errors
/// `ERR_SCHEMA` for one that is not UTF-8, which JSON cannot say.
pub(crate) fn file_name(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        let message =
            format!("{} is not UTF-8, and the store is open in another process", path.display());
        Error::new(Code::Schema, message, "name it otherwise, or close the other process")
    })
}

/// The name that a command has for a file that another process has written: `given` is what it was asked to write, a
/// file, a directory, or the first of several files.
pub(crate) fn as_named(given: &Path, written: &Path) -> PathBuf {
    let whole = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    match (written.strip_prefix(&whole), written.file_name()) {
        (Ok(below), _) if below.as_os_str().is_empty() => given.to_owned(),
        (Ok(below), _) => given.join(below),
        (Err(_), Some(name)) => given.with_file_name(name),
        (Err(_), None) => written.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_they_were_asked_for_by() {
        let here = std::env::current_dir().unwrap();
        for (given, written, expected) in [
            ("a.mg", here.join("a.mg"), "a.mg"),
            ("a.mg", here.join("a.2.mg"), "a.2.mg"),
            ("x/a.mg", here.join("x/a.2.mg"), "x/a.2.mg"),
            ("packs/", here.join("packs/one.json"), "packs/one.json"),
            ("/tmp/a.mg", "/tmp/a.mg".into(), "/tmp/a.mg"),
        ] {
            assert_eq!(as_named(Path::new(given), &written), Path::new(expected), "{given}");
        }
    }
}
