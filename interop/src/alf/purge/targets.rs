//! The grains that are to go: all versions of records, found by the rows, by the log, which tells of grains that no
//! session is shown, and by what the grains say of themselves.

use std::collections::{BTreeMap, BTreeSet};

use grainstore::format::Value as Field;
use grainstore::{ContentAddress, ErrorKind};

use super::report::PurgeScope;
use super::walk::{Sort, each_grain, sort_of};
use crate::alf::agent::{Agent, RecordRow, is_hidden};
use crate::alf::export::is_same_person;
use crate::alf::names::{PRINCIPALS, tables};
use crate::alf::record::uuid_number;
use crate::alf::schema::is_uuid;
use crate::error::Result;
use crate::monitor::Monitor;

/// What is to go.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// Whole records, by their ids. Of one that the store does not have, the id is remembered.
    pub(super) records: BTreeMap<String, Target>,
    /// Versions of records that stay: those that were of the person when they were written.
    pub(super) former: BTreeMap<String, Vec<ContentAddress>>,
    /// Versions of documents, with their names.
    pub(super) documents: BTreeMap<ContentAddress, String>,
    /// People whose grains are among them, as far as the rows show it.
    pub(super) users: BTreeSet<String>,
    /// The person whom the purge is about, as their name may be written.
    pub(super) asked_for: BTreeSet<String>,
}

/// A record that is to go.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// True if the store has it.
    pub(super) is_known: bool,
    pub(super) created_ms: Option<i64>,
    /// Its grains, each once.
    pub(super) grains: Vec<ContentAddress>,
}

impl Targets {
    /// Finds what a scope comes to.
    ///
    /// # Errors
    /// Those of the store; `ERR_TIMEOUT`.
    pub(super) fn of(agent: &Agent<'_>, scope: &PurgeScope, monitor: &Monitor<'_>) -> Result<Self> {
        let mut targets = Self::default();
        let theirs = match scope {
            PurgeScope::User(user) => targets.grains_of(agent, user, monitor)?,
            _ => BTreeSet::new(),
        };
        targets.add_rows(agent, scope, &theirs)?;
        targets.add_logged(agent, scope)?;
        targets.add_grains(agent, scope, monitor)?;
        for target in targets.records.values_mut() {
            target.grains.sort_unstable();
            target.grains.dedup();
        }
        targets.former.retain(|id, _| !targets.records.contains_key(id));
        for grains in targets.former.values_mut() {
            grains.sort_unstable();
            grains.dedup();
        }
        Ok(targets)
    }

    /// The names of the documents, each once.
    pub(super) fn document_names(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.documents.values().collect();
        names.into_iter().cloned().collect()
    }

    /// The grains of a person, those too that no session is shown.
    fn grains_of(
        &mut self,
        agent: &Agent<'_>,
        user: &str,
        monitor: &Monitor<'_>,
    ) -> Result<BTreeSet<ContentAddress>> {
        let mut theirs = BTreeSet::new();
        self.asked_for = [user.to_owned()].into();
        if is_uuid(user) {
            self.asked_for.insert(user.to_ascii_lowercase());
        }
        self.users.extend(self.asked_for.iter().cloned());
        for user in &self.asked_for {
            match agent.session.subject_report(user) {
                Ok(report) => theirs.extend(report.addresses),
                // The walk below finds those that can be read.
                Err(error) if error.kind() == ErrorKind::Limit => {}
                Err(error) => return Err(error.into()),
            }
        }
        each_grain(agent.session, &self.users, monitor, |address, grain| {
            if grain.text("user_id").is_some_and(|own| is_same_person(own, user)) {
                theirs.insert(*address);
            }
            Ok(())
        })?;
        Ok(theirs)
    }

    /// The records that are asked for, and those that are changes of them, by their rows.
    fn add_rows(
        &mut self,
        agent: &Agent<'_>,
        scope: &PurgeScope,
        theirs: &BTreeSet<ContentAddress>,
    ) -> Result<()> {
        let mut changes = Changes::default();
        let mut asked = BTreeSet::new();
        match scope {
            PurgeScope::Records(ids) => {
                asked.extend(ids.iter().map(|id| id.to_ascii_lowercase()));
            }
            PurgeScope::User(_) => self.of_person(agent, theirs, &mut asked)?,
            PurgeScope::Agent => {}
        }
        agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
            if *scope == PurgeScope::Agent {
                asked.insert(id.to_owned());
            } else if let Some(of) = &row.change_of {
                changes.add(of, id);
            }
            Ok(())
        })?;
        changes.close(&mut asked);
        for id in asked {
            let target = self.records.entry(id.clone()).or_default();
            target.created_ms =
                uuid_number(&id).and_then(|number| i64::try_from(number >> 80).ok());
            match agent.row(&id) {
                Ok(Some(row)) => {
                    let address = row.address.parse()?;
                    target.is_known = true;
                    target.created_ms = Some(row.created_ms);
                    target.grains.push(address);
                    self.users.extend(user_of(agent, &address));
                }
                Ok(None) => {}
                Err(error) if is_hidden(&error) => target.is_known = true,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The records whose newest grains are of a person; of others the grains that are.
    fn of_person(
        &mut self,
        agent: &Agent<'_>,
        theirs: &BTreeSet<ContentAddress>,
        asked: &mut BTreeSet<String>,
    ) -> Result<()> {
        let mut newest: BTreeMap<String, ContentAddress> = BTreeMap::new();
        agent.each_stored(|id, address| {
            if theirs.contains(&address) {
                self.former.entry(id.to_owned()).or_default().push(address);
                newest.insert(id.to_owned(), address);
            }
            Ok(())
        })?;
        agent.each_stored(|id, address| {
            if let Some(known) = newest.get_mut(id) {
                *known = address;
            }
            Ok(())
        })?;
        agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
            let address = row.address.parse()?;
            if theirs.contains(&address) || newest.contains_key(id) {
                newest.insert(id.to_owned(), address);
            }
            Ok(())
        })?;
        let whole = newest.into_iter().filter(|(_, address)| theirs.contains(address));
        asked.extend(whole.map(|(id, _)| id));
        Ok(())
    }

    /// The grains that the log tells of.
    fn add_logged(&mut self, agent: &Agent<'_>, scope: &PurgeScope) -> Result<()> {
        agent.each_stored(|id, address| {
            if *scope == PurgeScope::Agent {
                self.records.entry(id.to_owned()).or_default().grains.push(address);
            } else if let Some(target) = self.records.get_mut(id) {
                target.grains.push(address);
            }
            Ok(())
        })
    }

    /// The grains that say themselves that they are what is asked for.
    fn add_grains(
        &mut self,
        agent: &Agent<'_>,
        scope: &PurgeScope,
        monitor: &Monitor<'_>,
    ) -> Result<()> {
        let is_all = *scope == PurgeScope::Agent;
        // What the agent has of a person as a principal goes with them.
        let is_asked = |layer: &str, id: &str| match scope {
            PurgeScope::User(user) => is_principal(layer) && is_same_person(id, user),
            _ => false,
        };
        let mut users = self.users.clone();
        if is_all && let Some((layer, _)) = PRINCIPALS.items {
            users.extend(agent.documents.items(layer)?.iter().map(|id| id.to_ascii_lowercase()));
        }
        each_grain(agent.session, &users, monitor, |address, grain| {
            let of_person = match scope {
                PurgeScope::User(user) => {
                    grain.text("user_id").is_some_and(|own| is_same_person(own, user))
                }
                _ => false,
            };
            match sort_of(agent, address, grain)? {
                Sort::Record(id) if is_all => {
                    self.records.entry(id).or_default().grains.push(*address);
                }
                // What says that it is of the agent is the agent's, whether a row leads to it or not.
                Sort::Copy(id) if is_all || of_person => {
                    self.records.entry(id).or_default().grains.push(*address);
                }
                Sort::Record(id) | Sort::Native(id) | Sort::Copy(id)
                    if self.records.contains_key(&id) =>
                {
                    self.records.entry(id).or_default().grains.push(*address);
                }
                Sort::Record(id) if of_person => {
                    self.former.entry(id).or_default().push(*address);
                }
                Sort::Document(layer, item)
                    if is_all || item.as_deref().is_some_and(|id| is_asked(&layer, id)) =>
                {
                    let name = item.map_or(layer.clone(), |item| format!("{layer}/{item}"));
                    self.documents.insert(*address, name);
                }
                _ => {}
            }
            Ok(())
        })
    }
}

/// Records that are changes of others.
#[derive(Debug, Default)]
pub(in super::super) struct Changes {
    of: BTreeMap<String, Vec<String>>,
}

impl Changes {
    /// Notes that a record is a change of another, by their ids in lower case.
    pub(in super::super) fn add(&mut self, of: &str, id: &str) {
        self.of.entry(of.to_owned()).or_default().push(id.to_owned());
    }

    /// Adds to records those that are changes of them, and changes of those.
    pub(in super::super) fn close(&self, ids: &mut BTreeSet<String>) {
        let mut open: Vec<String> = ids.iter().cloned().collect();
        while let Some(id) = open.pop() {
            for change in self.of.get(&id).into_iter().flatten() {
                if ids.insert(change.clone()) {
                    open.push(change.clone());
                }
            }
        }
    }
}

/// Returns `true` for the layer of the items that are principals.
fn is_principal(layer: &str) -> bool {
    PRINCIPALS.items.is_some_and(|(items, _)| items == layer)
}

/// The person whom a grain is of, if the session is shown it.
fn user_of(agent: &Agent<'_>, address: &ContentAddress) -> Option<String> {
    let grain = agent.session.inspect(address).ok()?.grain().ok()?;
    grain.get("user_id").and_then(Field::as_str).map(str::to_owned)
}
