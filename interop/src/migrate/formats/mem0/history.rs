//! The table `history` of mem0: what each memory said, event by event.

use std::collections::BTreeMap;

use grainstore::EpochMs;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::migrate::record::{Ending, Record, Sink, rest, text};
use crate::migrate::rows::{self, Row};
use crate::migrate::source::Source;
use crate::migrate::time::{Dated, Unit};

/// Bytes of the texts of a history, which is held as a whole: its rows are by time, and a memory needs all of its own.
const MAX_HISTORY_BYTES: usize = 64 << 20;
/// How a history is made.
pub(in crate::migrate) const HOW_TO_WRITE: &str = "the history is what `sqlite3 -json ~/.mem0/history.db \"SELECT * FROM history\" > history.json` writes";
/// Bytes of a row beside its texts.
const ROW_BYTES: usize = 200;

/// The histories that no memory has taken yet, by the id of the memory.
#[derive(Debug, Default)]
pub(super) struct Histories {
    by_memory: BTreeMap<String, History>,
    bytes: usize,
    /// Rows that were read, and those of them that name a memory.
    rows: u64,
    of_memories: u64,
}

/// What a memory said, event by event.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Event>);

#[derive(Debug)]
struct Event {
    name: String,
    kind: Kind,
    old: Option<String>,
    new: Option<String>,
    /// When the memory was made first, if the row says so.
    made: Dated,
    /// When it happened; a deletion tells no time.
    at: Option<EpochMs>,
    role: Option<String>,
    rest: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Said,
    Deleted,
}

impl Histories {
    /// Reads the table. Rows that cannot be read are left out.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a file none of whose rows names a memory; `ERR_LIMIT` for a history that is too large; those of [`rows::read`].
    pub(super) fn read(source: &Source, sink: &mut dyn Sink) -> Result<Self> {
        let mut found = Self::default();
        for file in rows::files(source, sink)? {
            rows::read(source, file, &["history", "results"], sink, &mut |row, sink| {
                found.add(&row, sink).map_err(|error| error.in_entry(&file.name))
            })?;
            found.check().map_err(|error| error.in_entry(&file.name))?;
        }
        for history in found.by_memory.values_mut() {
            // Equal times stay in the order of the table, and what has none is the end.
            history.0.sort_by_key(|event| (event.at.is_none(), event.at));
        }
        Ok(found)
    }

    /// Another file in the place of the history would keep the right one out for good.
    fn check(&self) -> Result<()> {
        match (self.rows, self.of_memories) {
            (1.., 0) => {
                let message = "it is no history of mem0: none of its rows has a memory_id";
                Err(Error::schema(message).with_hint(HOW_TO_WRITE))
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        self.rows = self.rows.saturating_add(1);
        let Some(memory) = text(members, "memory_id") else {
            return sink.misshapen(place, "the row of the history has no memory_id");
        };
        self.of_memories = self.of_memories.saturating_add(1);
        let kind = match text(members, "event").map(str::to_ascii_uppercase).as_deref() {
            Some("ADD" | "UPDATE") => Kind::Said,
            Some("DELETE") => Kind::Deleted,
            Some("NONE") | None => return sink.skip(place, "an event that changed nothing"),
            Some(_) => return sink.misshapen(place, "its event is none of ADD, UPDATE, DELETE"),
        };
        let date = |name: &str| Dated::of(members.get(name), Unit::Seconds);
        let (made, told) = (date("created_at"), date("updated_at").or(|| date("created_at")));
        let at = told.time();
        if at.is_none() && kind == Kind::Said {
            return sink.misshapen(place, told.to_string());
        }
        let own = |name: &str| text(members, name).map(str::to_owned);
        let history = self.by_memory.entry(memory.to_owned()).or_default();
        let name = own("id").unwrap_or_else(|| format!("event {}", history.0.len()));
        let used = [
            "id",
            "memory_id",
            "event",
            "old_memory",
            "new_memory",
            "created_at",
            "updated_at",
            "role",
            "is_deleted",
        ];
        let event = Event {
            name,
            kind,
            old: own("old_memory"),
            new: own("new_memory"),
            made,
            at,
            role: own("role"),
            rest: rest(members, &used),
        };
        self.bytes = self.bytes.saturating_add(event.bytes()).saturating_add(memory.len());
        history.0.push(event);
        if self.bytes > MAX_HISTORY_BYTES {
            let message = format!("a history has {MAX_HISTORY_BYTES} bytes at most");
            return Err(Error::limit(message).with_hint("divide it by memory_id"));
        }
        Ok(())
    }

    /// Takes the history of a memory.
    pub(super) fn take(&mut self, memory: &str) -> Option<History> {
        self.by_memory.remove(memory)
    }

    /// The histories of memories that the export does not have.
    pub(super) fn left(self) -> impl Iterator<Item = (String, History)> {
        self.by_memory.into_iter()
    }
}

impl Event {
    fn bytes(&self) -> usize {
        let texts = [&self.old, &self.new].into_iter().flatten().map(String::len).sum::<usize>();
        texts.saturating_add(self.name.len()).saturating_add(ROW_BYTES)
    }
}

impl History {
    /// The versions, oldest first, each made of its text by `base`.
    pub(super) fn versions(&self, base: impl Fn(&str) -> Record) -> Vec<(String, Record)> {
        let mut versions = Vec::new();
        // A history that begins later than the memory tells what was before.
        if let Some(Event { old: Some(old), made, at, .. }) = self.0.first() {
            let created = made.clone().or(|| at.map_or(Dated::Missing, Dated::At));
            versions.push(("first".to_owned(), Record { created, ..base(old) }));
        }
        for event in self.0.iter().filter(|event| event.kind == Kind::Said) {
            if let (Some(new), Some(at)) = (&event.new, event.at) {
                let (created, rest) = (Dated::At(at), event.rest.clone());
                versions.push((event.name.clone(), Record { created, rest, ..base(new) }));
            }
        }
        versions
    }

    pub(super) fn role(&self) -> Option<String> {
        self.0.iter().find_map(|event| event.role.clone())
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.ending().is_some()
    }

    /// The deletion, if the history ends with it.
    pub(super) fn ending(&self) -> Option<Ending> {
        let last = self.0.last().filter(|event| event.kind == Kind::Deleted)?;
        Some(Ending::Deleted(last.at))
    }
}
