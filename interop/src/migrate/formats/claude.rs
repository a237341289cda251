//! Claude: the export of an account, with its conversations, its projects and what Claude remembers.
//!
//! Messages become threads; memories, summaries and documents what is known; the prompts of projects states.

mod message;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Record, Sink, Who, rest, text};
use crate::migrate::rows::{self, Row};
use crate::migrate::source::{Source, SourceFile};
use crate::migrate::time::{Dated, Unit};

/// The relations of a conversation.
const HAS_TITLE: &str = "has_title";
const HAS_SUMMARY: &str = "has_summary";
/// The relation between a project and its documents.
const HAS_DOCUMENT: &str = "has_document";

/// What a file of an export has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Conversations,
    Projects,
    Memories,
    Users,
    Other,
}

impl Part {
    fn of(file: &SourceFile, is_single: bool) -> Self {
        let within = |folder: &str| {
            file.has_extension("json") && file.name.split('/').rev().nth(1) == Some(folder)
        };
        match file.base_name() {
            "projects.json" => Self::Projects,
            "memories.json" => Self::Memories,
            "users.json" => Self::Users,
            name if name.starts_with("conversations") && file.has_extension("json") => {
                Self::Conversations
            }
            _ if is_single => Self::Conversations,
            _ if within("projects") => Self::Projects,
            _ if within("memories") => Self::Memories,
            _ => Self::Other,
        }
    }
}

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let is_single = ask.source.single().is_some();
    let part_of = |file: &SourceFile| Part::of(file, is_single);
    let mut user = ask.user.map(str::to_owned);
    for file in ask.source.files().iter().filter(|file| part_of(file) == Part::Users) {
        user = user.or(account(ask.source, file, sink)?);
    }
    let reader = Reader { user };
    for file in ask.source.files() {
        match part_of(file) {
            Part::Users => {}
            Part::Other => sink.skip(&file.name, "it has neither conversations nor memories")?,
            part => rows::read(ask.source, file, &[], sink, &mut |row, sink| match part {
                Part::Projects => reader.project(&row, sink),
                Part::Memories => reader.memories(&row, sink),
                _ => reader.conversation(&row, sink),
            })?,
        }
    }
    Ok(())
}

/// The id of the account, if the export is of one account.
fn account(source: &Source, file: &SourceFile, sink: &mut dyn Sink) -> Result<Option<String>> {
    let mut found = Vec::new();
    rows::read(source, file, &[], sink, &mut |row, _| {
        found.extend(text(&row.members, "uuid").map(str::to_owned));
        Ok(())
    })?;
    Ok(if found.len() == 1 { found.pop() } else { None })
}

struct Reader {
    /// Whose the account is.
    user: Option<String>,
}

impl Reader {
    /// Whose a row is: of the account that it names, or of the only one.
    fn who(&self, members: &Map<String, Value>) -> Who {
        let account = members.get("account").and_then(Value::as_object);
        let named = account.and_then(|account| text(account, "uuid"));
        let named = named.or_else(|| text(members, "account_uuid"));
        Who { user: self.user.clone().or_else(|| named.map(str::to_owned)), ..Who::default() }
    }

    fn conversation(&self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let Some(id) = text(members, "uuid") else {
            return sink.misshapen(place, "the conversation has no uuid");
        };
        let created = Dated::of(members.get("created_at"), Unit::Seconds);
        let updated = Dated::of(members.get("updated_at"), Unit::Seconds).time();
        let who = Who { session: Some(id.to_owned()), ..self.who(members) };
        let used =
            ["uuid", "name", "summary", "created_at", "updated_at", "account", "chat_messages"];
        let about =
            [("name", HAS_TITLE, "conversation"), ("summary", HAS_SUMMARY, "conversation summary")];
        for (field, relation, kind) in about {
            let Some(said) = text(members, field) else { continue };
            let body = Body::fact(id, relation, said);
            let rest = if field == "name" { rest(members, &used) } else { Map::new() };
            let who = who.clone();
            let record =
                Record { who, rest, updated, ..Record::new(place, kind, body, created.clone()) };
            sink.record(format!("{kind} {id}"), record)?;
        }
        message::read_all(members.get("chat_messages"), place, &who, sink)
    }

    /// A project: its prompt, and its documents.
    fn project(&self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let Some(id) = text(members, "uuid") else {
            return sink.misshapen(place, "the project has no uuid");
        };
        let name = text(members, "name").unwrap_or(id);
        let who = self.who(members);
        let created = Dated::of(members.get("created_at"), Unit::Seconds);
        let mut context = Map::new();
        for (field, key) in [("prompt_template", "system_prompt"), ("description", "description")] {
            if let Some(said) = text(members, field) {
                context.insert(key.to_owned(), Value::from(said));
            }
        }
        if !context.is_empty() {
            let used = [
                "uuid",
                "name",
                "prompt_template",
                "description",
                "created_at",
                "updated_at",
                "docs",
                "creator",
            ];
            let body = Body::State { subject: name.to_owned(), context };
            let (who, rest) = (who.clone(), rest(members, &used));
            let updated = Dated::of(members.get("updated_at"), Unit::Seconds).time();
            let record = Record {
                who,
                rest,
                updated,
                ..Record::new(place, "project", body, created.clone())
            };
            sink.record(format!("project {id}"), record)?;
        }
        let docs = members.get("docs").and_then(Value::as_array).map(Vec::as_slice);
        for (number, doc) in (1..).zip(docs.unwrap_or_default()) {
            let place = format!("{place}: document {number}");
            let doc = doc
                .as_object()
                .and_then(|doc| Some((doc, text(doc, "uuid")?, text(doc, "content")?)));
            let Some((doc, doc_id, said)) = doc else {
                sink.misshapen(&place, "the document lacks a uuid or a content")?;
                continue;
            };
            let made = Dated::of(doc.get("created_at"), Unit::Seconds).or(|| created.clone());
            let body = Body::fact(name, HAS_DOCUMENT, said);
            let rest = rest(doc, &["uuid", "content", "created_at"]);
            let who = who.clone();
            let record = Record { who, rest, ..Record::new(place, "project document", body, made) };
            sink.record(format!("document {doc_id}"), record)?;
        }
        Ok(())
    }

    /// What Claude remembers: of all conversations, and of each project. It has the date of its file.
    fn memories(&self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let who = self.who(members);
        let account = who.user.clone().unwrap_or_else(|| "user".to_owned());
        let made = ["updated_at", "created_at"].map(|name| members.get(name));
        let made = Dated::first(made, Unit::Seconds).or(|| Dated::of_file(row.modified));
        let own = text(members, "conversations_memory").or_else(|| text(members, "content"));
        let mut all: Vec<(String, String, &str)> = Vec::new();
        all.extend(own.map(|said| (format!("memory of {account}"), account.clone(), said)));
        let projects = members.get("project_memories").and_then(Value::as_object);
        for (project, said) in projects.into_iter().flatten() {
            match said.as_str().filter(|said| !said.trim().is_empty()) {
                Some(said) => {
                    all.push((format!("memory of project {project}"), project.clone(), said));
                }
                None => sink.misshapen(&format!("{place}: {project}"), "the memory is no text")?,
            }
        }
        if all.is_empty() {
            return sink.skip(place, "there is no memory in it");
        }
        for (id, subject, said) in all {
            let body = Body::knows(subject, said);
            let who = who.clone();
            sink.record(id, Record { who, ..Record::new(place, "memory", body, made.clone()) })?;
        }
        Ok(())
    }
}
