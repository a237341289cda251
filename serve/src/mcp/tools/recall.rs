//! `recall`: the context for a model within a budget of tokens, as SML, or as rows.

use std::hash::{DefaultHasher, Hash, Hasher};

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::answer::{Answer, uri};
use crate::mcp::arguments::{read, within};
use crate::mcp::connection::Setting;
use crate::mcp::failure::{Failure, Kind, Result};
use crate::mcp::rows;
use crate::memory::Calls;

pub(super) const DESCRIPTION: &str = "What the memory knows, best first, as SML text within a token budget. \
Ask by words, by subject, or both; without either, the newest.";

/// Tokens of an answer, if nothing is said; and the bounds.
const BUDGET: u64 = 1_500;
const BUDGETS: (u64, u64) = (50, 8_000);
/// Tokens of a short grain: as many grains are tried as would fit if all were short.
const SHORT_GRAIN_TOKENS: u64 = 20;
/// Most grains of a page.
const MAX_GRAINS: u64 = 200;
/// Most grains that are named as too large.
const MAX_NAMED: usize = 5;
/// Bytes of JSON for a token, about.
const TOKEN_BYTES: u64 = 3;

pub(super) fn input() -> Value {
    json!({ "type": "object", "properties": {
        "query": { "type": "string", "description": "Words or a question" },
        "subject": { "type": "string" },
        "budget_tokens": { "type": "integer", "minimum": BUDGETS.0, "maximum": BUDGETS.1, "default": BUDGET },
        "as": { "enum": ["sml", "rows"], "description": "rows have addresses and all fields" },
        "namespace": { "type": "string" },
        "cursor": { "type": "string", "description": "next_cursor of the last answer" },
    } })
}

pub(super) fn output() -> Value {
    json!({ "type": "object", "properties": {
        "context": { "type": "string" },
        "tokens": { "type": "integer" },
        "omitted": { "type": "array" },
        "rows": rows::schema(),
        "next_cursor": { "type": ["string", "null"] },
    }, "required": ["rows", "next_cursor"] })
}

/// The arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct Recall {
    query: Option<String>,
    subject: Option<String>,
    budget_tokens: Option<u64>,
    #[serde(rename = "as")]
    form: Option<Form>,
    namespace: Option<String>,
    cursor: Option<String>,
}

impl Recall {
    /// Asks for what is known for a task, and of a subject.
    pub(in crate::mcp) fn of(task: String, subject: Option<String>) -> Self {
        Self { query: Some(task), subject, ..Self::default() }
    }
}

#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Form {
    Sml,
    Rows,
}

pub(super) fn run(_: &Setting, arguments: JsonObject, store: &Calls<'_>) -> Result<Answer> {
    recall(read(arguments)?, store)
}

/// Answers what is known.
pub(in crate::mcp) fn recall(asked: Recall, store: &Calls<'_>) -> Result<Answer> {
    let question = Question::of(asked)?;
    match question.form {
        Form::Sml => question.context(store),
        Form::Rows => question.rows(store),
    }
}

/// What is asked, as a statement of CAL without its limits.
struct Question {
    statement: String,
    params: Value,
    namespace: Option<String>,
    budget: u64,
    form: Form,
    offset: u64,
    /// Tells the cursors of this question from those of others.
    mark: u32,
}

impl Question {
    fn of(asked: Recall) -> Result<Self> {
        let says = |text: &String| !text.trim().is_empty();
        let query = asked.query.map(|query| words(&query)).filter(says);
        let subject = asked.subject.filter(says);
        let mut statement = "RECALL".to_owned();
        let mut params = serde_json::Map::new();
        if let Some(subject) = &subject {
            statement.push_str(" ABOUT $subject");
            params.insert("subject".to_owned(), Value::from(subject.as_str()));
        }
        if let Some(query) = &query {
            statement.push_str(" WHERE query = $query");
            params.insert("query".to_owned(), Value::from(query.as_str()));
        }
        let mut hasher = DefaultHasher::new();
        (&query, &subject, &asked.namespace).hash(&mut hasher);
        let mark = u32::try_from(hasher.finish() >> 32).unwrap_or_default();
        Ok(Self {
            statement,
            params: Value::Object(params),
            namespace: asked.namespace,
            budget: within("budget_tokens", asked.budget_tokens, BUDGET, BUDGETS)?,
            form: asked.form.unwrap_or(Form::Sml),
            offset: asked.cursor.map_or(Ok(0), |cursor| offset(&cursor, mark))?,
            mark,
        })
    }

    /// The next grains, as many as fit, as one text.
    fn context(&self, store: &Calls<'_>) -> Result<Answer> {
        let limit = (self.budget / SHORT_GRAIN_TOKENS).clamp(1, MAX_GRAINS);
        let query = format!(
            "ASSEMBLE FROM memory: ({} | OFFSET {} | LIMIT {limit}) BUDGET {} tokens FORMAT sml WITH provenance",
            self.statement, self.offset, self.budget
        );
        let answer = self.ask(store, &query)?;
        let text = answer.pointer("/formatted_context/text").and_then(Value::as_str);
        let text = text.ok_or_else(no_answer)?;
        let listed = answer.pointer("/sources/memory/grains").and_then(Value::as_array);
        let listed = listed.map(Vec::as_slice).unwrap_or_default();
        let shown = listed.iter().filter(|found| is_shown(found)).map(row);
        let shown: Vec<_> = shown.collect();
        // The page ends with the last grain that is shown; those before it that are not are larger than the budget.
        // Where none is shown they all are.
        let end =
            listed.iter().rposition(is_shown).map_or(listed.len(), |last| last.saturating_add(1));
        let page = listed.get(..end).unwrap_or_default();
        let omitted: Vec<_> = page.iter().filter(|found| !is_shown(found)).map(row).collect();
        let is_whole = page.len() == listed.len() && (listed.len() as u64) < limit;
        let next = (!is_whole).then(|| self.cursor(page.len() as u64));
        let note = self.note(&omitted, next.as_deref());
        let addresses: Vec<_> = shown.iter().chain(&omitted).filter_map(rows::address).collect();
        let structured = json!({
            "context": text,
            "tokens": answer.pointer("/formatted_context/tokens"),
            "rows": shown,
            "omitted": omitted,
            "next_cursor": next,
        });
        Ok(Answer::of(structured).with_text(text.to_owned()).noted(note).linked(addresses))
    }

    /// What a model that reads the text alone has to know beside it.
    fn note(&self, omitted: &[Value], next: Option<&str>) -> Option<String> {
        let omitted = omitted.iter().filter_map(rows::address).take(MAX_NAMED).map(uri);
        let omitted = omitted.collect::<Vec<_>>().join(", ");
        let large = (!omitted.is_empty())
            .then(|| format!("Too large for {} tokens: {omitted}", self.budget));
        let more = next.map(|cursor| format!("There may be more: cursor {cursor}"));
        match (large, more) {
            (Some(large), Some(more)) => Some(format!("{large}\n{more}")),
            (large, more) => large.or(more),
        }
    }

    /// The next grains as rows, as many as fit.
    fn rows(&self, store: &Calls<'_>) -> Result<Answer> {
        let limit = (self.budget / SHORT_GRAIN_TOKENS).clamp(1, MAX_GRAINS);
        let query = format!("{} | OFFSET {} | LIMIT {limit}", self.statement, self.offset);
        let answer = self.ask(store, &query)?;
        let found = answer.get("results").and_then(Value::as_array).ok_or_else(no_answer)?;
        let bytes =
            usize::try_from(self.budget.saturating_mul(TOKEN_BYTES)).unwrap_or(rows::MAX_BYTES);
        let mut shown: Vec<Value> = Vec::new();
        let mut left = bytes;
        for found in found {
            // The first is cut if it must be, so that every page goes on.
            let row = rows::row(found, bytes.saturating_sub(160));
            let size = rows::size(&row);
            if size > left && !shown.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            shown.push(row);
        }
        let all = shown.len() == found.len() && (found.len() as u64) < limit;
        let next = (!all).then(|| self.cursor(shown.len() as u64));
        let answer = json!({ "rows": shown, "next_cursor": next });
        Ok(Answer::of(answer.clone()).linked(clipped(&shown)))
    }

    fn ask(&self, store: &Calls<'_>, query: &str) -> Result<Value> {
        let mut call = json!({ "query": query, "params": self.params });
        if let (Some(namespace), Value::Object(call)) = (&self.namespace, &mut call) {
            call.insert("namespace".to_owned(), Value::from(namespace.as_str()));
        }
        Ok(store.call("cal", &call)?)
    }

    fn cursor(&self, shown: u64) -> String {
        format!("{:08x}-{}", self.mark, self.offset.saturating_add(shown))
    }
}

/// The words of a question in natural language: signs that mean something in a search are no signs there.
fn words(query: &str) -> String {
    let words = query.split(|sign: char| sign.is_whitespace() || matches!(sign, '"' | '*' | '~'));
    let words = words.map(|word| word.trim_start_matches(['+', '-']));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether the text has a grain.
fn is_shown(found: &Value) -> bool {
    found.get("shown").and_then(Value::as_bool) == Some(true)
}

/// The address and the score of a grain that the text has.
fn row(found: &Value) -> Value {
    json!({ "address": found.get("content_address"), "score": found.get("score") })
}

/// The rows that were cut, for links to the whole grains.
pub(super) fn clipped(rows: &[Value]) -> impl Iterator<Item = &str> {
    rows.iter().filter(|row| row.get("clipped").is_some()).filter_map(rows::address)
}

/// Returns how many grains a cursor leaves out.
fn offset(cursor: &str, mark: u32) -> Result<u64> {
    let of_another = || {
        let hint = "give next_cursor as it was answered, with the same arguments, or leave it out";
        Failure::new(Kind::Cursor, "this cursor belongs to another question", hint)
    };
    let (of, offset) = cursor.split_once('-').ok_or_else(of_another)?;
    if of != format!("{mark:08x}") {
        return Err(of_another());
    }
    offset.parse().map_err(|_| of_another())
}

/// The error of an answer that cannot be read.
pub(super) fn no_answer() -> Failure {
    Failure::new(Kind::Io, "the store gave an answer of an unknown form", "tell its developers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_a_search_are_words_in_a_question() {
        for (query, expected) in [
            ("what does alice drink?", "what does alice drink?"),
            ("use --allow-erase, -not +this", "use allow-erase, not this"),
            ("- buy \"oat milk\"\n- call bob*", "buy oat milk call bob"),
            ("2026-03-01/a~2 \"\" -", "2026-03-01/a 2"),
            (" + ", ""),
        ] {
            assert_eq!(words(query), expected, "{query}");
        }
    }
}
