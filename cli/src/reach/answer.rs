//! Answers in JSON, of this process or another.

use grainstore::cal::Response;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Code, Error, Result};

/// An answer in JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Told(pub(super) Box<RawValue>);

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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}
