//! What a message of ChatGPT says: its content has one form for each type.

use serde_json::{Map, Value};

use crate::migrate::record::text;

/// Members that are the text of a content without parts: of code and its output, of quotes, of thoughts.
const TEXTS: [&str; 4] = ["text", "result", "content", "summary"];

/// The text of a content.
pub(super) fn text_of(content: Option<&Value>) -> Option<String> {
    let content = match content? {
        Value::String(said) => return Some(said.clone()).filter(|said| !said.trim().is_empty()),
        content => content.as_object()?,
    };
    let listed = |name: &str| content.get(name).and_then(Value::as_array).into_iter().flatten();
    let parts = listed("parts").chain(listed("thoughts")).filter_map(text_of_part);
    let parts: Vec<_> = parts.filter(|said| !said.trim().is_empty()).collect();
    match parts.is_empty() {
        false => Some(parts.join("\n\n")),
        true => first_text(content),
    }
}

/// The parts that are no text: pictures, files, sounds.
pub(super) fn other_parts(content: Option<&Value>) -> Option<Value> {
    let parts = content?.get("parts").and_then(Value::as_array)?;
    let other: Vec<_> = parts.iter().filter(|part| part.is_object()).cloned().collect();
    (!other.is_empty()).then_some(Value::Array(other))
}

fn text_of_part(part: &Value) -> Option<String> {
    match part {
        Value::String(said) => Some(said.clone()),
        Value::Object(members) => {
            let said = ["content", "text"].into_iter().find_map(|name| text(members, name));
            said.map(str::to_owned)
        }
        _ => None,
    }
}

fn first_text(content: &Map<String, Value>) -> Option<String> {
    TEXTS.into_iter().find_map(|name| text(content, name)).map(str::to_owned)
}
