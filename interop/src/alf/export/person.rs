//! An archive of one person alone, who asks what is known of them: their records, what the agent has of them as a
//! principal, and the attachments of their records. What is of others too stays: identity, credentials, raw sources.

use std::collections::BTreeSet;

use grainstore::ErrorKind;
use serde_json::json;

use super::Documents;
use crate::alf::agent::{Agent, RecordRow};
use crate::alf::names::{ATTACHMENTS, PRINCIPALS, tables};
use crate::alf::record::uuid_number;
use crate::alf::schema::is_uuid;
use crate::error::{Error, Result};
use crate::json::{self, Value};

/// Where raw sources lie in an archive.
const RAW_FOLDER: &str = "raw/";

/// A person, with the numbers of their records.
pub(super) struct Person<'p> {
    pub(super) id: &'p str,
    pub(super) records: BTreeSet<u128>,
}

impl<'p> Person<'p> {
    /// Finds the records of a person: those whose grains have this `user_id`.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for no id; `ERR_NOT_FOUND` for one of whom nothing is known; those of the store.
    pub(super) fn of(agent: &Agent<'_>, id: &'p str) -> Result<Self> {
        if id.trim().is_empty() {
            return Err(Error::schema("the person has no id"));
        }
        let mut records = BTreeSet::new();
        agent.rows.each(tables::RECORDS, |record, row: RecordRow| {
            // What was erased is nobody's.
            let Ok(stored) = agent.session.inspect(&row.address.parse()?) else { return Ok(()) };
            let grain = stored.grain()?;
            if grain.text("user_id").is_some_and(|own| is_same_person(own, id)) {
                records.extend(uuid_number(record));
            }
            Ok(())
        })?;
        let person = Self { id, records };
        match person.records.is_empty() && !person.is_listed(agent)? {
            true => Err(Error::new(ErrorKind::NotFound, format!("the agent knows no {id}"))
                .with_hint(
                    "name the person by the id of the principal, or by the user_id of grains",
                )),
            false => Ok(person),
        }
    }

    fn is_listed(&self, agent: &Agent<'_>) -> Result<bool> {
        let Some((layer, _)) = PRINCIPALS.items else { return Ok(false) };
        for id in agent.documents.items(layer)? {
            if is_same_person(&id, self.id) && agent.documents.read(layer, Some(&id))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What of the documents is about the person.
    pub(super) fn documents(&self, documents: Documents) -> Documents {
        let others = self.paths_of_others(&documents);
        let kept = documents.into_iter().filter_map(|(layer, document)| {
            let is_theirs: &dyn Fn(&Value) -> bool = match layer {
                PRINCIPALS => &|item| self.is_principal(item),
                ATTACHMENTS => &|item| {
                    self.has_attachment(item)
                        && path_of(item).is_none_or(|path| !others.contains(path) && !is_raw(path))
                },
                _ => return None,
            };
            let (_, list) = layer.items?;
            let items = document.get(list)?.as_array()?;
            let items: Vec<Value> = items.iter().filter(|item| is_theirs(item)).cloned().collect();
            let mut own = json!({});
            json::set(&mut own, list, json!(items));
            (!items.is_empty()).then_some((layer, own))
        });
        kept.collect()
    }

    /// The files of their attachments.
    pub(super) fn files(documents: &Documents) -> BTreeSet<String> {
        let attachments = documents.iter().find(|(layer, _)| *layer == ATTACHMENTS);
        let list = attachments.and_then(|(_, document)| document.get("attachments")?.as_array());
        list.into_iter().flatten().filter_map(path_of).map(str::to_owned).collect()
    }

    /// The files of attachments that are not theirs.
    fn paths_of_others(&self, documents: &Documents) -> BTreeSet<String> {
        let attachments = documents.iter().find(|(layer, _)| *layer == ATTACHMENTS);
        let list = attachments.and_then(|(_, document)| document.get("attachments")?.as_array());
        let others = list.into_iter().flatten().filter(|item| !self.has_attachment(item));
        others.filter_map(path_of).map(str::to_owned).collect()
    }

    fn is_principal(&self, item: &Value) -> bool {
        let id = item.get("id").and_then(Value::as_str);
        id.is_some_and(|id| is_same_person(id, self.id))
    }

    /// Returns `true` for an attachment of their records, and of no other's.
    fn has_attachment(&self, item: &Value) -> bool {
        let named = item.get("referenced_by").and_then(Value::as_array).into_iter().flatten();
        let mut numbers = named.map(|id| id.as_str().and_then(uuid_number)).peekable();
        numbers.peek().is_some()
            && numbers.all(|number| number.is_some_and(|number| self.records.contains(&number)))
    }
}

/// Returns `true` if two names are of one person: those that are UUIDs are written in either case.
pub(in super::super) fn is_same_person(one: &str, other: &str) -> bool {
    one == other || (is_uuid(one) && one.eq_ignore_ascii_case(other))
}

fn path_of(attachment: &Value) -> Option<&str> {
    attachment.get("archive_path")?.as_str()
}

/// Returns `true` for a raw source, which is of all whom it is about.
pub(in super::super) fn is_raw(path: &str) -> bool {
    path.get(..RAW_FOLDER.len()).is_some_and(|folder| folder.eq_ignore_ascii_case(RAW_FOLDER))
}
