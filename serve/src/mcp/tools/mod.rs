//! The tools: a table of what they are called, what they take and answer, and what runs them; one file each.

mod cal;
mod forget;
mod history;
mod latest;
mod plain;
mod recall;
mod remember;
mod search;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use super::Profile;
use super::answer::Answer;
use super::connection::Setting;
use super::failure::Result;
use crate::memory::Calls;

pub(super) use forget::forget;
pub(super) use plain::plain;
pub(super) use recall::{Recall, recall};

/// One tool.
pub(super) struct Entry {
    pub(super) name: &'static str,
    title: &'static str,
    /// For a model: short, since it is in every conversation.
    description: &'static str,
    input: fn() -> Value,
    output: fn() -> Value,
    kind: Kind,
    /// Whether it is shown in the profile `full` alone.
    full_only: bool,
    pub(super) run: Run,
}

/// What a tool does to the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Reads,
    /// It adds, and takes nothing away. Called again it may add again.
    Adds,
    /// It ends something.
    Ends,
}

/// What runs a tool.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// A function of the store alone.
    Store(fn(&Setting, JsonObject, &Calls<'_>) -> Result<Answer>),
    /// [`forget`], which may ask the person.
    Forget,
}

const TOOLS: &[Entry] = &[
    Entry {
        name: "recall",
        title: "Recall context",
        description: recall::DESCRIPTION,
        input: recall::input,
        output: recall::output,
        kind: Kind::Reads,
        full_only: false,
        run: Run::Store(recall::run),
    },
    Entry {
        name: "search",
        title: "Search memory",
        description: search::DESCRIPTION,
        input: search::input,
        output: search::output,
        kind: Kind::Reads,
        full_only: false,
        run: Run::Store(search::run),
    },
    Entry {
        name: "remember",
        title: "Remember",
        description: remember::DESCRIPTION,
        input: remember::input,
        output: remember::output,
        kind: Kind::Adds,
        full_only: false,
        run: Run::Store(remember::run),
    },
    Entry {
        name: "history",
        title: "History of a fact",
        description: history::DESCRIPTION,
        input: history::input,
        output: history::output,
        kind: Kind::Reads,
        full_only: false,
        run: Run::Store(history::run),
    },
    Entry {
        name: "forget",
        title: "Forget",
        description: forget::DESCRIPTION,
        input: forget::input,
        output: forget::output,
        kind: Kind::Ends,
        full_only: false,
        run: Run::Forget,
    },
    Entry {
        name: "cal",
        title: "Context Assembly Language",
        description: cal::DESCRIPTION,
        input: cal::input,
        output: cal::output,
        kind: Kind::Adds,
        full_only: true,
        run: Run::Store(cal::run),
    },
];

/// The tools of a profile, in the order they are listed.
pub(super) fn all(profile: Profile) -> impl Iterator<Item = &'static Entry> {
    TOOLS.iter().filter(move |tool| profile == Profile::Full || !tool.full_only)
}

impl Entry {
    /// Returns the tool as it is listed.
    pub(super) fn tool(&self) -> Tool {
        let (reads, ends, idempotent) = match self.kind {
            Kind::Reads => (true, false, true),
            Kind::Adds => (false, false, false),
            Kind::Ends => (false, true, true),
        };
        let hints = ToolAnnotations::new().open_world(false);
        let hints = hints.read_only(reads).destructive(ends).idempotent(idempotent);
        Tool::new(self.name, self.description, object((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(object((self.output)())))
            .with_annotations(hints)
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests;
