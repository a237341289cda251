//! Where the store of a command is: open in this process, or in another one, which is asked by the methods of
//! docs/rpc.md.
//!
//! A command that answers little calls the method wherever the store is. One whose answer knows no bounds, or that is
//! measured, works on the session where there is one, and asks the other process else.

use std::path::{Path, PathBuf};

use grainstore::cal::{QuerySource, Response};
use grainstore::{ContentAddress, Session};
use grainstore_rpc::{Client, Following, Question, call_on};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Code, Error, Result};

/// The store of a command, with its session.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    /// Open in this process alone.
    Here(Session),
    /// Shared with other processes, any of which may be the one that has it open.
    Shared(Client),
}

/// An answer in JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Told(Box<RawValue>);

impl Told {
    /// The JSON of an answer of this process.
    pub(crate) fn of(answer: &impl Serialize) -> Result<Self> {
        Ok(Self(to_raw_value(answer)?))
    }

    /// Reads it, or what is wanted of it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.0.get()).map_err(|error| {
            let message = format!("the process that has the store open answers otherwise: {error}");
            Error::new(Code::Corrupt, message, "use one version of the program")
        })
    }

    /// The same object without a member.
    ///
    /// # Errors
    /// That of a JSON that is no object.
    pub(crate) fn without(&self, name: &str) -> Result<Self> {
        let mut members: Vec<(String, Self)> = self.read::<Members>()?.0;
        members.retain(|(member, _)| member != name);
        Self::of(&Members(members))
    }

    /// The JSON, indented; numbers are as they came.
    pub(crate) fn indented(&self) -> String {
        indented(self.0.get())
    }

    /// The JSON as it came.
    pub(crate) fn json(&self) -> &str {
        self.0.get()
    }
}

/// The members of an object, in order.
struct Members(Vec<(String, Told)>);

impl Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        source.deserialize_map(All)
    }
}

/// Indents JSON, as serde does, and leaves its values as they are written.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len().saturating_mul(2));
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str("  "));
    };
    let mut last = ' ';
    for c in json.chars() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            last = c;
            continue;
        }
        if c.is_ascii_whitespace() {
            continue;
        }
        let opens = |c| c == '{' || c == '[';
        if c == '}' || c == ']' {
            depth = depth.saturating_sub(1);
            if !opens(last) {
                line(&mut out, depth);
            }
        } else if opens(last) {
            line(&mut out, depth);
        }
        out.push(c);
        match c {
            '{' | '[' => depth = depth.saturating_add(1),
            ',' => line(&mut out, depth),
            ':' => out.push(' '),
            '"' => in_text = true,
            _ => {}
        }
        last = c;
    }
    out
}

/// An answer of CAL, with the JSON that another process has sent it in.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) response: Response,
    told: Option<Told>,
}

impl From<Response> for Answered {
    fn from(response: Response) -> Self {
        Self { response, told: None }
    }
}

impl Answered {
    /// Reads the answer of another process.
    pub(crate) fn read(told: Told) -> Result<Self> {
        let response = Response::from_json(told.json()).map_err(|error| {
            let message = format!("the process that has the store open answers otherwise: {error}");
            Error::new(Code::Corrupt, message, "use one version of the program")
        })?;
        Ok(Self { response, told: Some(told) })
    }

    /// The JSON, if another process has sent it: it is printed as it came.
    pub(crate) fn told(&self) -> Option<&Told> {
        self.told.as_ref()
    }
}

impl Serialize for Answered {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.told {
            Some(told) => told.serialize(serializer),
            None => self.response.serialize(serializer),
        }
    }
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
        params: impl FnOnce() -> Result<serde_json::Value>,
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
    fn json_is_indented_as_serde_does_it() {
        let values = [
            json!({ "a": [], "b": {}, "c": [1, [2.5, {}], "x\"{,:\\"], "d": { "e": null } }),
            json!([]),
            json!("a, b"),
            json!(-0.1),
            json!([{ "a": [[]] }, true]),
        ];
        for value in values {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(indented(&value.to_string()), expected);
            assert_eq!(indented(&expected), expected);
        }
        assert_eq!(indented("[0.10]"), "[\n  0.10\n]");
    }

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
