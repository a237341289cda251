//! A JSON document with the span of each value and the spelling of each number.
//!
//! It knows no CAL. Malformed JSON is reported with CAL codes, since a query was expected.

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};

use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::span::Span;

/// A JSON value with its span.
#[derive(Debug)]
pub(super) struct JsonNode {
    pub(super) value: JsonValue,
    pub(super) span: Span,
}

/// The content of a value.
#[derive(Debug)]
pub(super) enum JsonValue {
    Null,
    Flag(bool),
    /// A number as written.
    Number(String),
    Text(String),
    List(Vec<JsonNode>),
    /// Members in the order written; keys are distinct.
    Object(Vec<JsonMember>),
}

/// One member of an object; `place` is the span of its key.
#[derive(Debug)]
pub(super) struct JsonMember {
    pub(super) key: String,
    pub(super) place: Span,
    pub(super) node: JsonNode,
}

impl JsonNode {
    /// Returns the text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            JsonValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&JsonNode> {
        let JsonValue::Object(members) = &self.value else { return None };
        members.iter().find(|member| member.key == key).map(|member| &member.node)
    }

    /// Returns the JSON Pointer (RFC 6901) of the innermost value or key that contains `place`.
    pub(super) fn pointer(&self, place: Span) -> String {
        let mut steps = Vec::new();
        let mut node = self;
        while let Some((step, inner)) = node.step(place) {
            steps.push(step);
            node = inner;
        }
        pointer(&steps)
    }

    fn step(&self, place: Span) -> Option<(String, &JsonNode)> {
        match &self.value {
            JsonValue::List(items) => {
                let found = items.iter().enumerate().find(|(_, item)| item.span.covers(place));
                found.map(|(at, item)| (at.to_string(), item))
            }
            JsonValue::Object(members) => members
                .iter()
                .find(|member| member.place.covers(place) || member.node.span.covers(place))
                .map(|member| (member.key.clone(), &member.node)),
            _ => None,
        }
    }
}

/// Parses one document, up to the end of the text.
///
/// # Errors
/// E002 for malformed JSON and duplicate keys, E005 and E006 for its strings and numbers, E007 if it is
/// nested too deep.
pub(super) fn document(source: &str) -> Result<JsonNode> {
    let jiter = Jiter::new(source.as_bytes());
    let mut reader = JsonReader { source, jiter, path: Vec::new() };
    reader.whole().map_err(|error| error.with_pointer(pointer(&reader.path)))
}

/// Returns the JSON Pointer (RFC 6901) of these steps.
fn pointer(steps: &[String]) -> String {
    let step = |step: &String| format!("/{}", step.replace('~', "~0").replace('/', "~1"));
    steps.iter().map(step).collect()
}

struct JsonReader<'s> {
    source: &'s str,
    jiter: Jiter<'s>,
    /// Path to the value being read; after an error it is the path to the error.
    path: Vec<String>,
}

impl JsonReader<'_> {
    /// Reads one value, up to the end of the text.
    fn whole(&mut self) -> Result<JsonNode> {
        let peek = self.jiter.peek().map_err(|error| self.malformed(&error))?;
        let node = self.node(peek, 1)?;
        self.jiter.finish().map_err(|error| self.malformed(&error))?;
        Ok(node)
    }

    /// Reads the value that starts with `peek`, at nesting level `depth`.
    fn node(&mut self, peek: Peek, depth: usize) -> Result<JsonNode> {
        let start = self.jiter.current_index();
        if depth > limits::MAX_JSON_DEPTH {
            let message = format!("the JSON nests deeper than {} levels", limits::MAX_JSON_DEPTH);
            return Err(Error::new(ErrorKind::TooDeep, message).at(Span::new(start, start + 1)));
        }
        let value = match peek {
            Peek::Array => self.list(depth)?,
            Peek::Object => self.object(depth)?,
            scalar => self.scalar(scalar)?,
        };
        Ok(JsonNode { value, span: Span::new(start, self.jiter.current_index()) })
    }

    fn scalar(&mut self, peek: Peek) -> Result<JsonValue> {
        let read = match peek {
            Peek::Null => self.jiter.known_null().map(|()| JsonValue::Null),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(JsonValue::Flag),
            Peek::String => self.jiter.known_str().map(|text| JsonValue::Text(text.to_owned())),
            number => self
                .jiter
                .known_number_bytes(number)
                .map(|digits| JsonValue::Number(String::from_utf8_lossy(digits).into_owned())),
        };
        read.map_err(|error| self.malformed(&error))
    }

    fn list(&mut self, depth: usize) -> Result<JsonValue> {
        let mut items = Vec::new();
        let mut next = self.jiter.known_array().map_err(|error| self.malformed(&error))?;
        while let Some(peek) = next {
            self.path.push(items.len().to_string());
            items.push(self.node(peek, depth + 1)?);
            self.path.pop();
            next = self.jiter.array_step().map_err(|error| self.malformed(&error))?;
        }
        Ok(JsonValue::List(items))
    }

    fn object(&mut self, depth: usize) -> Result<JsonValue> {
        let mut members: Vec<JsonMember> = Vec::new();
        let mut before = self.jiter.current_index();
        let mut next = self.jiter.known_object().map(|key| key.map(str::to_owned));
        while let Some(key) = next.map_err(|error| self.malformed(&error))? {
            let place = self.key_place(before);
            self.path.push(key.clone());
            if members.iter().any(|member| member.key == key) {
                let error = Error::new(ErrorKind::UnexpectedToken, format!("{key:?} stands twice"));
                return Err(error.at(place).suggest("a key stands once in an object"));
            }
            let peek = self.jiter.peek().map_err(|error| self.malformed(&error))?;
            let node = self.node(peek, depth + 1)?;
            self.path.pop();
            members.push(JsonMember { key, place, node });
            before = self.jiter.current_index();
            next = self.jiter.next_key().map(|key| key.map(str::to_owned));
        }
        Ok(JsonValue::Object(members))
    }

    /// Returns the span of the key just read; `before` is the byte where the previous value ended.
    fn key_place(&self, before: usize) -> Span {
        let after = self.jiter.current_index();
        let read = self.source.get(before..after).unwrap_or("");
        let start = read.find('"').unwrap_or(0);
        let end = read.rfind('"').map_or(read.len(), |quote| quote + 1);
        Span::new(before + start, before + end)
    }

    fn malformed(&self, error: &JiterError) -> Error {
        use JsonErrorType as Json;
        let kind = match &error.error_type {
            JiterErrorType::JsonError(
                Json::EofWhileParsingString
                | Json::InvalidEscape
                | Json::InvalidUnicodeCodePoint
                | Json::ControlCharacterWhileParsingString
                | Json::LoneLeadingSurrogateInHexEscape
                | Json::UnexpectedEndOfHexEscape,
            ) => ErrorKind::BadString,
            JiterErrorType::JsonError(Json::InvalidNumber | Json::NumberOutOfRange) => {
                ErrorKind::BadNumber
            }
            _ => ErrorKind::UnexpectedToken,
        };
        let mut start = error.index.min(self.source.len());
        while !self.source.is_char_boundary(start) {
            start -= 1;
        }
        let width = self.source.get(start..).and_then(|rest| rest.chars().next());
        let span = Span::new(start, start + width.map_or(0, char::len_utf8));
        let said = lower_first(&error.error_type.to_string());
        Error::new(kind, format!("this is no JSON: {said}")).at(span).suggest(
            "mend the JSON here: keys and texts stand in double quotes, and no comma stands last",
        )
    }
}

/// Returns the text with its first letter in lower case, unless it begins with an abbreviation.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), text.chars().nth(1)) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            format!("{}{}", first.to_ascii_lowercase(), chars.as_str())
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keys_and_pointers_know_their_places() {
        let source = r#" { "a" : [1.50, {"b/c": "x"}] , "é":null}"#;
        let root = document(source).unwrap();
        let at = |needle: &str| {
            let start = source.find(needle).unwrap();
            Span::new(start, start + needle.len())
        };
        for (needle, pointer) in [
            ("1.50", "/a/0"),
            (r#""x""#, "/a/1/b~1c"),
            (r#""b/c""#, "/a/1/b~1c"),
            ("null", "/é"),
            (r#""é""#, "/é"),
            ("[", "/a"),
            ("{ ", ""),
        ] {
            assert_eq!(root.pointer(at(needle)), pointer, "{needle}");
        }
        let Some(JsonValue::List(items)) = root.get("a").map(|node| &node.value) else { panic!() };
        assert!(matches!(&items[0].value, JsonValue::Number(text) if text == "1.50"));
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_stops_being_json() {
        for (source, code, place, pointer) in [
            (r#"{"a":1"#, "CAL-E002", "", ""),
            (r#"{"a":1,}"#, "CAL-E002", "}", ""),
            (r#"{"a" 1}"#, "CAL-E002", "1", ""),
            (r#"{"a":1} x"#, "CAL-E002", "x", ""),
            (r#"{"a":1,"a":2}"#, "CAL-E002", r#""a""#, "/a"),
            (r#"{"b":[1,{"a":1,"a":2}]}"#, "CAL-E002", r#""a""#, "/b/1/a"),
            (r#"{"a":"x"#, "CAL-E005", "", "/a"),
            (r#"{"a":[0,01]}"#, "CAL-E006", "1", "/a/1"),
            (r#"{"a":[0],"b/c":nul}"#, "CAL-E002", "}", "/b~1c"),
        ] {
            let error = document(source).unwrap_err().locate(source);
            let position = error.position().unwrap();
            let covered = source.get(position.start..position.end);
            assert_eq!((error.code(), covered), (code, Some(place)), "{source}: {error}");
            assert_eq!(error.pointer(), Some(pointer), "{source}: {error}");
        }
        let cut = document(r#"{"a":1"#).unwrap_err();
        assert!(cut.message().contains("EOF"), "{cut}");
        let deep = "[".repeat(limits::MAX_JSON_DEPTH + 1);
        assert_eq!(document(&deep).unwrap_err().code(), "CAL-E007");
    }
}
