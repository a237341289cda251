//! Letta MemFS: the memory of an agent as a folder of Markdown. What is in `system/` the agent has before it all the time,
//! what is in `skills/` says how something is done, and the rest is what it knows.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::migrate::format::Ask;
use crate::migrate::markdown::{MAX_NOTE_BYTES, Note};
use crate::migrate::record::{Body, Record, Sink, Who, rest, text, texts};
use crate::migrate::source::SourceFile;
use crate::migrate::time::{Dated, Unit, instant};

/// Front matter that has a place.
const USED: [&str; 5] = ["tags", "created_at", "created", "updated_at", "updated"];
/// The file of a skill that says what it is.
const SKILL: &str = "SKILL.md";

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let root = root(ask.source.files());
    for file in ask.source.files() {
        if !file.has_extension("md") {
            sink.skip(&file.name, "it is no Markdown")?;
            continue;
        }
        let note = ask.source.text(file, MAX_NOTE_BYTES).and_then(|text| Note::parse(&text));
        match note {
            Ok(note) if note.body.trim().is_empty() => {
                sink.skip(&file.name, "the file is empty")?;
            }
            Ok(note) => {
                let path = file.name.strip_prefix(root).unwrap_or(&file.name);
                sink.record(format!("file {path}"), record(ask, file, path, &note))?;
            }
            Err(error) => sink.refuse(&file.name, error)?,
        }
    }
    Ok(())
}

/// The folder that all is in: an archive often has one above.
fn root(files: &[SourceFile]) -> &str {
    let is_root = |file: &&SourceFile| {
        matches!(file.base_name(), "MEMORY.md")
            || file.name.starts_with("system/")
            || file.name.contains("/system/")
    };
    let Some(file) = files.iter().find(is_root) else { return "" };
    let end = match file.name.find("system/") {
        Some(at) if file.base_name() != "MEMORY.md" => at,
        _ => file.name.len().saturating_sub(file.base_name().len()),
    };
    file.name.get(..end).unwrap_or_default()
}

fn record(ask: &Ask<'_>, file: &SourceFile, path: &str, note: &Note) -> Record {
    let label = path.rsplit_once('.').map_or(path, |(label, _)| label);
    let said = note.body.trim().to_owned();
    let mut parts = path.split('/');
    let (kind, body, priority) = match (parts.next(), parts.next(), file.base_name()) {
        (Some("system"), Some(_), _) => ("core memory file", block(label, said), Some("hot")),
        (Some("skills"), Some(name), SKILL) => {
            let name = text(&note.front, "name").unwrap_or(name);
            let trigger = text(&note.front, "description").unwrap_or(name).to_owned();
            ("skill", Body::Procedure { trigger, steps: vec![said] }, None)
        }
        (_, None, "MEMORY.md") => ("index of the memory", block(label, said), Some("hot")),
        _ => ("memory file", Body::knows(label, said), None),
    };
    let created = ["created_at", "created"].map(|name| note.front.get(name));
    let created = Dated::first(created, Unit::Seconds).or(|| Dated::of_file(file.modified));
    let updated = note.front.get("updated_at").or_else(|| note.front.get("updated"));
    Record {
        updated: updated.and_then(|at| instant(at, Unit::Seconds)),
        who: Who { user: ask.user.map(str::to_owned), ..Who::default() },
        tags: texts(note.front.get("tags")),
        priority,
        rest: rest(&note.front, &USED),
        ..Record::new(&file.name, kind, body, created)
    }
}

/// What an agent has before it, under its label (OMS 22.9).
fn block(label: &str, said: String) -> Body {
    let label = label.strip_prefix("system/").unwrap_or(label);
    let blocks = Map::from_iter([(label.to_owned(), Value::from(said))]);
    let context = Map::from_iter([("memory_blocks".to_owned(), Value::Object(blocks))]);
    Body::State { subject: label.to_owned(), context }
}
