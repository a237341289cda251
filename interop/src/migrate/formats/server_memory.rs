//! MCP server-memory: JSON lines of entities with observations, and of relations between them.
//!
//! The file has no dates; records take the date of the file.

use std::collections::HashSet;

use grainstore::ContentAddress;
use serde_json::Value;

use crate::error::Result;
use crate::migrate::format::Ask;
use crate::migrate::record::{Body, Record, Sink, relation, rest, text};
use crate::migrate::rows::{self, Row};
use crate::migrate::time::Dated;

/// Names of entities that are remembered to find relations that point nowhere.
const MAX_NAMES: usize = 500_000;

/// Relations that are remembered until their entities come.
const MAX_WAITING: usize = 10_000;

/// The relation between an entity and its type.
const IS_A: &str = "is_a";

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    for file in rows::files(ask.source, sink)? {
        let created = Dated::of_file(file.modified);
        if let Dated::ByFile(time) = created {
            sink.note(format!("{} has no dates: its records have the file's, {time}", file.name));
        }
        let mut reader = Reader { created, names: HashSet::new(), waiting: Vec::new() };
        rows::read(ask.source, file, &["entities", "relations"], sink, &mut |row, sink| {
            reader.row(&row, sink)
        })?;
        reader.finish(sink);
    }
    Ok(())
}

struct Reader {
    created: Dated,
    /// The names of entities, hashed.
    names: HashSet<ContentAddress>,
    /// Relations with an end whose entity was not there yet.
    waiting: Vec<(String, ContentAddress)>,
}

impl Reader {
    fn row(&mut self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let kind = text(&row.members, "type");
        match (kind, row.list.as_str()) {
            (Some("entity"), _) | (None, "entities") => self.entity(row, sink),
            (Some("relation"), _) | (None, "relations") => self.relation(row, sink),
            _ => sink.misshapen(&row.place, "it is neither an entity nor a relation"),
        }
    }

    fn entity(&mut self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let Some(name) = text(members, "name") else {
            return sink.misshapen(place, "the entity has no name");
        };
        if self.names.len() < MAX_NAMES {
            self.names.insert(ContentAddress::of(name.as_bytes()));
        }
        if let Some(entity_type) = text(members, "entityType") {
            let body = Body::fact(name, IS_A, entity_type);
            let rest = rest(members, &["type", "name", "entityType", "observations"]);
            let record =
                Record { rest, ..Record::new(place, "entity", body, self.created.clone()) };
            sink.record(format!("entity {name}"), record)?;
        }
        let observations = members.get("observations").and_then(Value::as_array);
        for (number, observation) in (1..).zip(observations.into_iter().flatten()) {
            let place = format!("{place}: observation {number}");
            match observation.as_str().filter(|said| !said.trim().is_empty()) {
                Some(said) => {
                    let body = Body::knows(name, said);
                    let record = Record::new(place, "observation", body, self.created.clone());
                    sink.record(format!("observation {}", Value::from(vec![name, said])), record)?;
                }
                None => sink.misshapen(&place, "it is no text")?,
            }
        }
        Ok(())
    }

    fn relation(&mut self, row: &Row, sink: &mut dyn Sink) -> Result<()> {
        let Row { place, members, .. } = row;
        let ends = (text(members, "from"), text(members, "relationType"), text(members, "to"));
        let (Some(from), Some(name), Some(to)) = ends else {
            return sink.misshapen(place, "the relation lacks from, relationType or to");
        };
        for end in [from, to] {
            let end = ContentAddress::of(end.as_bytes());
            if !self.names.contains(&end) && self.waiting.len() < MAX_WAITING {
                self.waiting.push((place.clone(), end));
            }
        }
        let body = Body::fact(from, relation(name), to);
        let rest = rest(members, &["type", "from", "relationType", "to"]);
        let record = Record { rest, ..Record::new(place, "relation", body, self.created.clone()) };
        sink.record(format!("relation {}", Value::from(vec![from, name, to])), record)
    }

    /// Tells of the relations that point nowhere. They are taken all the same.
    fn finish(self, sink: &mut dyn Sink) {
        for (place, end) in self.waiting {
            if !self.names.contains(&end) && self.names.len() < MAX_NAMES {
                sink.note(format!("{place}: it points at what is no entity of the file"));
            }
        }
    }
}
