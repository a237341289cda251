//! mem0: what `get_all` answers, with the relations of its graph, and beside it the table `history`.
//!
//! A memory is what is known of whom it is about; its history is a chain of versions.

mod history;

pub(in crate::migrate) use history::HOW_TO_WRITE;

use grainstore::EpochMs;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Chain, Record, Sink, Who, relation, rest, text, texts};
use crate::migrate::rows::{self, Row};
use crate::migrate::time::{Dated, Unit, last_moment};
use history::{Histories, History};

/// The members that have lists: of `get_all`, and of exports of the platform.
const LISTS: [&str; 3] = ["results", "memories", "relations"];

/// Bytes of a file that are looked at to tell whether there is anything in it.
const LOOK_BYTES: u64 = 64 << 10;

/// Fields that a memory has a place for. A score is about a search, and the hash is of the text.
const USED: [&str; 13] = [
    "id",
    "memory",
    "text",
    "data",
    "created_at",
    "updated_at",
    "user_id",
    "agent_id",
    "run_id",
    "role",
    "expiration_date",
    "categories",
    "score",
];

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let mut histories = match ask.beside {
        Some(beside) => Histories::read(beside, sink)?,
        None => Histories::default(),
    };
    for file in rows::files(ask.source, sink)? {
        if ask.source.beginning(file, LOOK_BYTES)?.trim_ascii().is_empty() {
            let empty = Error::corrupt("it is empty: it breaks off before its first record");
            return Err(empty.in_entry(&file.name));
        }
        rows::read(ask.source, file, &LISTS, sink, &mut |row, sink| match row.list.as_str() {
            "relations" => edge(ask, &row, sink),
            _ => memory(ask, &row, &mut histories, sink),
        })?;
    }
    for (id, history) in histories.left() {
        gone(ask, &id, &history, sink)?;
    }
    Ok(())
}

/// A memory that the export has.
fn memory(ask: &Ask<'_>, row: &Row, histories: &mut Histories, sink: &mut dyn Sink) -> Result<()> {
    let Row { place, members, .. } = row;
    let said = ["memory", "text", "data"].into_iter().find_map(|name| text(members, name));
    if said.is_none() && text(members, "memory_id").is_some() {
        return Err(Error::schema("it looks like the history of mem0, and not like its memories")
            .with_hint("give the memories, and the history beside them: `--with`")
            .in_entry(place));
    }
    let Some(id) = text(members, "id") else { return sink.misshapen(place, "it has no id") };
    let Some(said) = said else { return sink.misshapen(place, "it has no text") };
    let date = |name: &str| Dated::of(members.get(name), Unit::Seconds);
    let who = who_of(members);
    let body = Body::knows(subject_of(ask, &who), said);
    let current = Record {
        updated: date("updated_at").time(),
        valid_to: members.get("expiration_date").and_then(|at| last_moment(at, Unit::Seconds)),
        who,
        tags: texts(members.get("categories")),
        rest: rest(members, &USED),
        ..Record::new(place, "memory", body, date("created_at").or(|| date("updated_at")))
    };
    let Some(history) = histories.take(id) else { return sink.record(id, of_its_change(current)) };
    let mut versions = history.versions(|text| Record {
        body: Body::knows(subject_of(ask, &current.who), text),
        who: current.who.clone(),
        ..Record::new(place, "memory", Body::knows("", ""), Dated::Missing)
    });
    match versions.last_mut() {
        // The export tells the newest version in full; the history tells when it was made.
        Some((_, newest)) if says(newest, said) => {
            let created = newest.created.clone();
            *newest = Record { created, ..current };
        }
        _ => {
            let created = date("updated_at").or(|| date("created_at"));
            versions.push((String::new(), Record { created, ..current }));
        }
    }
    if history.is_deleted() {
        sink.note(format!("{id} was deleted by its history, and is in the export"));
    }
    let (id, follows, ending) = (id.to_owned(), None, None);
    sink.chain(Chain { id, versions, follows, ending, is_partial: false })
}

/// A memory without its history: it says what it says since its last change.
fn of_its_change(current: Record) -> Record {
    let made = current.created.time();
    let is_later = |at: &EpochMs| made.is_none_or(|made| *at > made);
    match current.updated.filter(|at| at.header_second().is_some()).filter(is_later) {
        Some(at) => Record { created: Dated::At(at), made, ..current },
        None => current,
    }
}

/// A memory that its history alone tells of: what it said, and not whose it was.
fn gone(ask: &Ask<'_>, id: &str, history: &History, sink: &mut dyn Sink) -> Result<()> {
    let versions = history.versions(|text| {
        let who = Who { role: history.role(), ..Who::default() };
        let body = Body::knows(subject_of(ask, &who), text);
        Record { who, ..Record::new(format!("history of {id}"), "memory", body, Dated::Missing) }
    });
    if versions.is_empty() {
        return sink.skip(&format!("history of {id}"), "its history tells no text");
    }
    let ending = history.ending();
    if ending.is_none() && ask.user.is_some() {
        sink.note(format!("{id} is in the history, and not in the export"));
    }
    sink.chain(Chain { id: id.to_owned(), versions, follows: None, ending, is_partial: true })
}

/// A relation of the graph. It has no id, and mostly no date.
fn edge(ask: &Ask<'_>, row: &Row, sink: &mut dyn Sink) -> Result<()> {
    let Row { place, members, .. } = row;
    let any = |names: &[&str]| names.iter().find_map(|name| text(members, name));
    let ends =
        (any(&["source"]), any(&["relationship", "relation"]), any(&["target", "destination"]));
    let (Some(from), Some(name), Some(to)) = ends else {
        return sink.misshapen(place, "the relation lacks a source, a relationship or a target");
    };
    let who = who_of(members);
    let id = Value::from(vec![from, name, to, who.user.as_deref().unwrap_or_default()]);
    let created = Dated::of(members.get("created_at"), Unit::Seconds);
    let created = created.or(|| Dated::of_file(row.modified));
    let used = ["source", "relationship", "relation", "target", "destination", "created_at"];
    let body = Body::fact(from, relation(name), to);
    let rest = rest(members, &[used.as_slice(), &USED].concat());
    let who = Who { user: who.user.or_else(|| ask.user.map(str::to_owned)), ..who };
    let record = Record { who, rest, ..Record::new(place, "relation", body, created) };
    sink.record(format!("relation {id}"), record)
}

fn says(record: &Record, said: &str) -> bool {
    matches!(&record.body, Body::Fact { object: Value::String(text), .. } if text == said)
}

fn who_of(members: &Map<String, Value>) -> Who {
    let given = |name: &str| text(members, name).map(str::to_owned);
    Who {
        user: given("user_id"),
        agent: given("agent_id"),
        session: None,
        run: given("run_id"),
        role: given("role"),
    }
}

/// Whom a memory is about: whose it is, or which agent's or run's.
fn subject_of(ask: &Ask<'_>, who: &Who) -> String {
    let named = [ask.user, who.user.as_deref(), who.agent.as_deref(), who.run.as_deref()];
    named.into_iter().flatten().next().unwrap_or("user").to_owned()
}
