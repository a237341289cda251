//! What was erased in the store, by itself or with a user: it stays out, records and items by their ids, and versions by
//! what they said. The bytes of a grain depend on what else is there, and tell nothing.

use std::collections::BTreeSet;

use super::records::At;
use super::{ImportOptions, ImportReport, Importer};
use crate::alf::agent::Agent;
use crate::alf::names::Layer;
use crate::alf::partition::labels_of;
use crate::alf::record::{Record, uuid_number};
use crate::alf::survey::Survey;
use crate::error::{Error, Result};
use crate::json::Value;
use crate::kept::{Standing, digest_of};

const DOCUMENT: &str = "it was erased in this store: it is left out";
const ITEMS: &str = "something of it was erased in this store: that is left out";

/// The error of what was erased.
pub(super) fn erased_error() -> Error {
    Error::new(grainstore::ErrorKind::Erased, "it was erased in this store")
        .with_hint("allow what was purged or erased if you mean to have it again")
}

impl Importer<'_, '_> {
    /// Tells what became of a record that no row leads to. A change of one that was erased counts as erased itself.
    pub(super) fn standing(&self, record: &Record, survey: &Survey) -> Result<Standing> {
        let standing = match self.is_new() {
            true => Standing::New,
            false => self.agent.standing(&record.id)?,
        };
        if self.allows_purged() {
            // It comes again, as another grain.
            return Ok(if standing == Standing::Erased { Standing::New } else { standing });
        }
        let Some(of) = record.change_of.as_ref().filter(|_| standing != Standing::Erased) else {
            return Ok(standing);
        };
        let is_gone = self.gone.contains(of)
            || (!self.is_new()
                && self.agent.row(of)?.is_none()
                && (self.agent.standing(of)? == Standing::Erased
                    // Where the archive has it, that record is looked at itself.
                    || (!uuid_number(of).is_some_and(|number| survey.has(number))
                        && self.agent.is_refused_change(of)?)));
        Ok(if is_gone { Standing::Erased } else { standing })
    }

    /// Returns `true` for a record that the store has, and says again what a version of it said that was erased.
    pub(super) fn is_erased_version(&self, record: &Record) -> Result<bool> {
        match self.agent.past(&record.id)?.filter(|_| !self.allows_purged()) {
            Some(past) => past.has_erased(self.agent.session, &digest_of(&record.rest)),
            None => Ok(false),
        }
    }

    /// Reports a record that was erased. What is a change of it stays out too, whenever it comes.
    pub(super) fn refuse_erased(
        &mut self,
        record: &Record,
        at: At<'_>,
        report: &mut ImportReport,
    ) -> Result<()> {
        report.fail(&at.place, &erased_error());
        self.touched.extend(labels_of(record.created_ms));
        if self.gone.insert(record.id.clone())
            && !self.is_dry()
            && let Some(of) = &record.change_of
            && self.agent.past(&record.id)?.is_none()
        {
            self.agent.rows.write(vec![self.agent.refused_change(&record.id, of)?])?;
        }
        Ok(())
    }
}

/// Takes the documents and items that were erased off what is imported, and tells of each document.
///
/// # Errors
/// `ERR_ERASED` of an import of all or nothing; those of the store.
pub(super) fn leave_erased(
    agent: &Agent<'_>,
    survey: &mut Survey,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<()> {
    let mut left = Vec::with_capacity(survey.documents.len());
    for (layer, mut document) in std::mem::take(&mut survey.documents) {
        let why = match layer.items {
            Some(items) => drop_erased(agent, &mut document, items)?.then_some(ITEMS),
            None => is_erased(agent, layer, &document)?.then_some(DOCUMENT),
        };
        if let Some(why) = why {
            if options.strict {
                return Err(erased_error().in_entry(layer.entry));
            }
            report.withhold(layer.entry, why);
        }
        if why != Some(DOCUMENT) {
            left.push((layer, document));
        }
    }
    survey.documents = left;
    Ok(())
}

fn is_erased(agent: &Agent<'_>, layer: Layer, document: &Value) -> Result<bool> {
    agent.documents.is_erased(layer.name, None, document)
}

/// Asks for an id as it is written, and as others may have written it.
fn is_erased_item(agent: &Agent<'_>, layer: &str, id: &str, item: &Value) -> Result<bool> {
    let spellings =
        BTreeSet::from([id.to_owned(), id.to_ascii_lowercase(), id.to_ascii_uppercase()]);
    for id in &spellings {
        if agent.documents.is_erased(layer, Some(id), item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes items off a document that were erased. Returns `true` if there were any.
fn drop_erased(
    agent: &Agent<'_>,
    document: &mut Value,
    (layer, list): (&str, &str),
) -> Result<bool> {
    let Some(items) = document.get_mut(list).and_then(Value::as_array_mut) else {
        return Ok(false);
    };
    let mut left = Vec::with_capacity(items.len());
    let before = items.len();
    for item in items.drain(..) {
        let id = item.get("id").and_then(Value::as_str);
        let is_erased = match id {
            Some(id) => is_erased_item(agent, layer, id, &item)?,
            None => false,
        };
        if !is_erased {
            left.push(item);
        }
    }
    *items = left;
    Ok(items.len() < before)
}
