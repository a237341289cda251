//! `cal`: the language. What reads runs at once; what writes is prepared first, and runs with the token of that.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::answer::Answer;
use crate::mcp::arguments::{read, wrong};
use crate::mcp::connection::Setting;
use crate::mcp::failure::{Failure, Kind, Result};
use crate::mcp::rows;
use crate::memory::Calls;

pub(super) const DESCRIPTION: &str = "Run one CAL statement, such as RECALL beliefs ABOUT \"alice\" | LIMIT 5, \
ASSEMBLE, HISTORY, DESCRIBE grammar. ADD, SUPERSEDE and REVERT answer a plan and a token first; \
call again with that token alone to run them.";

/// Most bytes of an answer.
const MAX_BYTES: usize = 64 << 10;
/// The code of a statement that writes, in a call that reads.
const WRITES: &str = "CAL-E044";

pub(super) fn input() -> Value {
    json!({ "type": "object", "properties": {
        "query": { "type": ["string", "object"] },
        "params": { "type": "object", "description": "Values of $name" },
        "token": { "type": "object" },
    } })
}

pub(super) fn output() -> Value {
    json!({ "type": "object", "properties": {
        "answer": { "type": "object" },
        "prepared": { "type": "object" },
    } })
}

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cal {
    query: Option<Value>,
    params: Option<Value>,
    token: Option<Value>,
}

pub(super) fn run(_: &Setting, arguments: JsonObject, store: &Calls<'_>) -> Result<Answer> {
    match read(arguments)? {
        Cal { query: Some(query), params, token: None } => {
            let mut call = json!({ "query": query });
            if let (Some(params), Value::Object(call)) = (params, &mut call) {
                call.insert("params".to_owned(), params);
            }
            match store.call("cal", &call).map_err(Failure::from) {
                Ok(answer) => shown(&answer),
                Err(refused) if refused.has_code(WRITES) => prepare(call, store),
                Err(refused) => Err(refused),
            }
        }
        Cal { query: None, params: None, token: Some(token) } => {
            shown(&store.call("execute", &json!({ "token": token }))?)
        }
        _ => Err(wrong(
            "give query with its params, or token alone",
            "see the description of the tool",
        )),
    }
}

/// Prepares a statement that writes.
fn prepare(mut call: Value, store: &Calls<'_>) -> Result<Answer> {
    if let Value::Object(call) = &mut call {
        call.insert("tier".to_owned(), Value::from(1));
    }
    let prepared = store.call("prepare", &call)?;
    bounded(json!({ "prepared": prepared }))
}

/// The answer of a statement, and its text where it has one.
fn shown(answer: &Value) -> Result<Answer> {
    let text = answer.pointer("/formatted_context/text").or_else(|| answer.get("formatted"));
    let text = text.and_then(Value::as_str).map(str::to_owned);
    let answer = bounded(json!({ "answer": answer }))?;
    Ok(match text {
        Some(text) => answer.with_text(text),
        None => answer,
    })
}

fn bounded(structured: Value) -> Result<Answer> {
    if rows::size(&structured) > MAX_BYTES {
        let hint = "ask for less: LIMIT and OFFSET, SELECT some fields, or COUNT";
        let message = format!("the answer is larger than {MAX_BYTES} bytes");
        return Err(Failure::new(Kind::Limit, message, hint));
    }
    Ok(Answer::of(structured))
}
