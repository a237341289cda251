//! ChatGPT: the export of an account, with its conversations as trees of messages, and the memories that it saved.
//!
//! Every branch of a conversation is kept. Memories are in some exports, and in others not: a list of them, or lines that
//! were copied from the settings, can be given beside.

mod content;
mod tree;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Record, Sink, Who, rest, text};
use crate::migrate::rows::{self, MAX_ROW_BYTES, Row};
use crate::migrate::source::{Source, SourceFile};
use crate::migrate::time::{Dated, Unit};
use tree::Tree;

/// The relation of a conversation and its title.
const HAS_TITLE: &str = "has_title";
/// Most bytes of the file that says whose the account is.
const MAX_USER_BYTES: u64 = 1 << 20;

/// Fields of a conversation that have a place, and those that change when it only goes on.
const USED: [&str; 8] = [
    "title",
    "create_time",
    "update_time",
    "mapping",
    "current_node",
    "conversation_id",
    "id",
    "moderation_results",
];

/// What a file of an export has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Conversations,
    Memories,
    Lines,
    User,
    Other,
}

impl Part {
    fn of(file: &SourceFile, is_single: bool) -> Self {
        let is_json = file.has_extension("json");
        let is_text = file.has_extension("txt") || file.has_extension("md");
        match file.stem() {
            "memory" | "memories" if is_json => Self::Memories,
            "memory" | "memories" if is_text => Self::Lines,
            "user" if is_json => Self::User,
            stem if is_json && stem.starts_with("conversations") => Self::Conversations,
            _ if is_single => Self::Conversations,
            _ => Self::Other,
        }
    }

    /// Of the file beside, which has memories whatever its name.
    fn of_beside(file: &SourceFile) -> Self {
        match file.has_extension("json") || file.has_extension("jsonl") {
            true => Self::Memories,
            false => Self::Lines,
        }
    }
}

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let is_single = ask.source.single().is_some();
    let mut user = ask.user.map(str::to_owned);
    for file in ask.source.files() {
        if Part::of(file, is_single) == Part::User && user.is_none() {
            user = account(ask.source, file)?;
        }
    }
    let reader = Reader { user };
    for file in ask.source.files() {
        reader.file(ask.source, file, Part::of(file, is_single), sink)?;
    }
    for (beside, file) in
        ask.beside.iter().flat_map(|beside| beside.files().iter().map(move |file| (beside, file)))
    {
        reader.file(beside, file, Part::of_beside(file), sink)?;
    }
    Ok(())
}

/// The id of the account.
fn account(source: &Source, file: &SourceFile) -> Result<Option<String>> {
    let found = crate::json::parse(&source.read(file, MAX_USER_BYTES)?);
    let found = found.map_err(|error| error.in_entry(&file.name))?;
    Ok(found.get("id").and_then(Value::as_str).map(str::to_owned))
}

struct Reader {
    /// Whose the account is.
    user: Option<String>,
}

impl Reader {
    fn file(
        &self,
        source: &Source,
        file: &SourceFile,
        part: Part,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        match part {
            Part::User => Ok(()),
            Part::Other => sink.skip(&file.name, "it has neither conversations nor memories"),
            Part::Lines => self.lines(source, file, sink),
            Part::Memories => {
                rows::read(source, file, &["memories", "results"], sink, &mut |row, sink| {
                    self.memory(&row, sink)
                })
            }
            Part::Conversations => {
                rows::read(source, file, &["conversations"], sink, &mut |row, sink| {
                    self.conversation(&row, sink)
                })
            }
        }
    }

    fn who(&self) -> Who {
        Who { user: self.user.clone(), ..Who::default() }
    }

    fn conversation(&self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let id = text(members, "conversation_id").or_else(|| text(members, "id"));
        let nodes = members.get("mapping").and_then(Value::as_object);
        let (Some(id), Some(nodes)) = (id, nodes) else {
            return sink.misshapen(place, "the conversation lacks an id or a mapping");
        };
        let created = Dated::of(members.get("create_time"), Unit::Seconds);
        let who = Who { session: Some(id.to_owned()), ..self.who() };
        if let Some(title) = text(members, "title") {
            let body = Body::fact(id, HAS_TITLE, title);
            let (who, rest) = (who.clone(), rest(members, &USED));
            let record = Record {
                who,
                rest,
                updated: Dated::of(members.get("update_time"), Unit::Seconds).time(),
                ..Record::new(place, "conversation", body, created.clone())
            };
            sink.record(format!("conversation {id}"), record)?;
        }
        Tree { nodes, place, who, created }.read(sink)
    }

    fn memory(&self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let said = ["content", "memory", "text"].into_iter().find_map(|name| text(members, name));
        let Some(said) = said else { return sink.misshapen(place, "the memory has no content") };
        if members.get("enabled").and_then(Value::as_bool) == Some(false) {
            return sink.skip(place, "the memory is switched off");
        }
        let dates = ["created_at", "create_time", "created_timestamp", "timestamp", "updated_at"];
        let created = Dated::first(dates.map(|name| members.get(name)), Unit::Seconds);
        let created = created.or(|| Dated::of_file(row.modified));
        let used = [["content", "memory", "text", "id"].as_slice(), &dates].concat();
        let rest = rest(members, &used);
        let id = text(members, "id").unwrap_or(said);
        self.remember(
            id,
            said,
            Record {
                rest,
                updated: Dated::of(members.get("updated_at"), Unit::Seconds).time(),
                ..Record::new(place, "memory", Body::knows("", ""), created)
            },
            sink,
        )
    }

    /// Memories that were copied from the settings: one a line.
    fn lines(&self, source: &Source, file: &SourceFile, sink: &mut dyn Sink) -> Result<()> {
        let all = source.text(file, MAX_ROW_BYTES as u64)?;
        for (number, line) in (1..).zip(all.lines()) {
            let said = line.trim().trim_start_matches(['-', '*', '•']).trim();
            if said.is_empty() {
                continue;
            }
            let place = format!("{}: line {number}", file.name);
            let created = Dated::of_file(file.modified);
            let record = Record::new(place, "memory", Body::knows("", ""), created);
            self.remember(said, said, record, sink)?;
        }
        Ok(())
    }

    fn remember(&self, id: &str, said: &str, record: Record, sink: &mut dyn Sink) -> Result<()> {
        let subject = self.user.as_deref().unwrap_or("user");
        let body = Body::knows(subject, said);
        sink.record(format!("memory {id}"), Record { body, who: self.who(), ..record })
    }
}

/// The fields of a message that have no place.
fn rest_of_message(message: &Map<String, Value>) -> Map<String, Value> {
    rest(
        message,
        &["id", "author", "create_time", "update_time", "content", "status", "end_turn", "weight"],
    )
}
