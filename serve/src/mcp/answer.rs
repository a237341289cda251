//! Results of tools: structured content, text beside it, links to grains; and errors that a model can read.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Resource};
use serde_json::{Map, Value, json};

use super::failure::Failure;

/// Most links in one answer.
const MAX_LINKS: usize = 5;
/// The key of `_meta` that has the code, the message and the hint of an error.
const ERROR_KEY: &str = "grainstore/error";
/// Longest message of an error, in characters: it may repeat what was given.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Returns the URI of a grain.
pub(super) fn uri(address: &str) -> String {
    format!("grain://{address}")
}

/// An answer: an object of the tool's output schema and its text, or a text of its own.
pub(super) struct Answer {
    structured: Value,
    text: Option<String>,
    note: Option<String>,
    links: Vec<Resource>,
}

impl Answer {
    /// An answer whose text is its JSON: no stored text can be taken for structure there.
    pub(super) fn of(structured: Value) -> Self {
        Self { structured, text: None, note: None, links: Vec::new() }
    }

    /// Sets a text that says the same.
    pub(super) fn with_text(self, text: String) -> Self {
        Self { text: Some(text), ..self }
    }

    /// Sets what is told beside the text.
    pub(super) fn noted(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.structured.to_string())
    }

    /// Adds links to the first of these grains.
    pub(super) fn linked<'a>(mut self, addresses: impl IntoIterator<Item = &'a str>) -> Self {
        let links = addresses.into_iter().map(|address| {
            let name = address.get(..12).unwrap_or(address);
            Resource::new(uri(address), name).with_mime_type("application/json")
        });
        self.links.extend(links);
        self.links.truncate(MAX_LINKS);
        self
    }
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let text = answer.text.unwrap_or_else(|| answer.structured.to_string());
        let mut content = vec![ContentBlock::text(text)];
        content.extend(answer.note.map(ContentBlock::text));
        content.extend(answer.links.into_iter().map(ContentBlock::ResourceLink));
        let mut result = Self::success(content);
        result.structured_content = Some(answer.structured);
        result
    }
}

/// Tells the model what went wrong, and the way out.
pub(super) fn failed(failure: &Failure) -> CallToolResult {
    let (code, message, hint) = (&failure.code, clip(&failure.message), clip(&failure.hint));
    let mut text = format!("{code}: {message}");
    if !hint.is_empty() {
        text.push_str("\nhint: ");
        text.push_str(&hint);
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    let told = json!({ "code": code, "message": message, "hint": hint });
    let mut meta = Map::new();
    meta.insert(ERROR_KEY.to_owned(), told);
    result.meta = Some(MetaObject(meta));
    result
}

/// The beginning of a text that may be long.
fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{} ...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
