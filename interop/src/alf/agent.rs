//! What the store keeps of one agent: rows that lead from ids of records to grains, the log of changes, documents,
//! files.

use grainstore::{ContentAddress, ErrorKind, Owner, RowChange, Session};
use serde::{Deserialize, Serialize};

use super::names::{FILES_LAYER, PRINCIPALS, PROFILE, SEALED_LAYER, namespace_of, tables};
use super::native::with_grain;
use super::record::{AgentPrincipals, joined_record, record_of};
use crate::error::{Error, Result};
use crate::json::{self, Value};
pub(super) use crate::kept::exclusive;
use crate::kept::{Documents, Files, Past, Rows, Standing, whole_fields};

/// Most bytes of what changes of a record in its row; more lies beside the grain.
const MAX_ROW_BYTES: usize = 512 << 10;
/// Steps from a record to its newest change at most.
const MAX_CHANGES: usize = 100_000;

/// One agent of a store.
#[derive(Debug)]
pub(super) struct Agent<'s> {
    pub(super) session: &'s Session,
    /// Its id in lower case.
    pub(super) id: String,
    pub(super) rows: Rows<'s>,
    pub(super) documents: Documents<'s>,
}

/// The row of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordRow {
    #[serde(rename = "a")]
    pub(super) address: String,
    #[serde(rename = "t")]
    pub(super) created_ms: i64,
    /// The hash of its canonical line.
    #[serde(rename = "d")]
    pub(super) digest: String,
    /// What changes of it without making it another.
    #[serde(rename = "m")]
    pub(super) changing: Value,
    /// The byte of the type of its grain.
    #[serde(rename = "y")]
    pub(super) grain_type: u8,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(super) change_of: Option<String>,
    /// The newest record that is a change of it.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(super) changed_by: Option<String>,
    /// Where `changing` lies, if it is too large for a row.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(super) spilled: Option<String>,
    /// The record of a native grain, without the grain.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(super) native: Option<Value>,
    #[serde(rename = "e", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_embeddings: bool,
}

/// What an entry of the log says of a record or a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    #[serde(rename = "c")]
    Created,
    #[serde(rename = "u")]
    Updated,
    #[serde(rename = "d")]
    Deleted,
    #[serde(rename = "p")]
    Purged,
    /// The name is that of a layer.
    #[serde(rename = "l")]
    Layer,
    /// The name is that of a file, which came, changed or went.
    #[serde(rename = "f")]
    File,
}

/// An agent of a store, in the application of all of them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AgentRow {
    pub(super) name: String,
}

impl<'s> Agent<'s> {
    pub(super) fn new(session: &'s Session, id: &str) -> Self {
        let id = id.to_ascii_lowercase();
        let rows = Rows::new(session, PROFILE.application(&id));
        let documents = Documents::new(session, PROFILE, &id);
        Self { session, id, rows, documents }
    }

    /// The agents of a store, by their ids.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(super) fn all(session: &Session) -> Result<Vec<(String, String)>> {
        let shared = Rows::new(session, PROFILE.shared_application());
        let mut agents = Vec::new();
        shared.each(tables::AGENTS, |id, row: AgentRow| {
            agents.push((id.to_owned(), row.name));
            Ok(())
        })?;
        agents.sort_unstable();
        Ok(agents)
    }

    /// Writes down that the store has this agent.
    pub(super) fn enroll(&self, name: &str) -> Result<()> {
        let shared = Rows::new(self.session, PROFILE.shared_application());
        let row = AgentRow { name: name.to_owned() };
        let known = shared.get::<AgentRow>(tables::AGENTS, &self.id)?;
        if known.is_some_and(|known| known.name == row.name) {
            return Ok(());
        }
        shared.write(vec![shared.put(tables::AGENTS, self.id.as_str(), &row, Owner::Store)?])
    }

    /// Returns `true` if the store has this agent.
    pub(super) fn is_enrolled(&self) -> Result<bool> {
        let shared = Rows::new(self.session, PROFILE.shared_application());
        Ok(shared.get::<AgentRow>(tables::AGENTS, &self.id)?.is_some())
    }

    /// Writes down that the store has this agent no more.
    pub(super) fn dismiss(&self) -> Result<()> {
        let shared = Rows::new(self.session, PROFILE.shared_application());
        shared.write(vec![shared.remove(tables::AGENTS, self.id.as_str())])
    }

    /// Returns the row of a record, by its id in lower case.
    pub(super) fn row(&self, id: &str) -> Result<Option<RecordRow>> {
        self.rows.get(tables::RECORDS, id)
    }

    /// Returns which versions a record had; `None` for one that never was here.
    pub(super) fn past(&self, id: &str) -> Result<Option<Past>> {
        Past::read(&self.rows, tables::PAST, id)
    }

    /// Tells what became of a record that no row leads to.
    ///
    /// # Errors
    /// Those of [`Past::standing`].
    pub(super) fn standing(&self, id: &str) -> Result<Standing> {
        match self.past(id)? {
            Some(past) => past.standing(self.session),
            None => Ok(Standing::New),
        }
    }

    /// Returns `true` if a record is or was in this grain, or was about to be; `None` for a record that never was here.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(super) fn has_version(&self, id: &str, address: &ContentAddress) -> Result<Option<bool>> {
        let Some(past) = self.past(id)? else {
            if self.is_purged(id)? {
                return Ok(Some(false));
            }
            // Rows of earlier versions of the store have no past.
            return Ok(self.row(id)?.map(|row| row.address == address.to_string()));
        };
        if let Some(known) = past.has(address) {
            return Ok(Some(known));
        }
        let mut found = false;
        self.each_stored(|of, stored| {
            found |= of == id && stored == *address;
            Ok(())
        })?;
        Ok(Some(found))
    }

    /// The change that remembers a record, and with it a version, by the hash of what it says.
    pub(super) fn past_change(
        &self,
        id: &str,
        past: Option<Past>,
        version: Option<(&str, &ContentAddress)>,
    ) -> Result<RowChange> {
        let mut past = past.unwrap_or_default();
        if let Some((digest, address)) = version {
            past.add(digest, address);
        }
        past.change(&self.rows, tables::PAST, id)
    }

    /// The change that writes the row of a record. Its grain is stored.
    pub(super) fn row_change(&self, id: &str, row: &RecordRow) -> Result<RowChange> {
        let address: ContentAddress = row.address.parse()?;
        let owner = Owner::Grain(address);
        if row.spilled.is_some() && row.changing.is_null() {
            return self.rows.put(tables::RECORDS, id, row, owner);
        }
        let text = json::line(&row.changing);
        let mut row = row.clone();
        row.has_embeddings = has_embeddings(&row.changing);
        row.spilled = None;
        if text.len() > MAX_ROW_BYTES {
            let beside = self.session.put_side_blob(text, owner.clone())?;
            row.spilled = Some(beside.to_string());
            row.changing = Value::Null;
        }
        self.rows.put(tables::RECORDS, id, &row, owner)
    }

    /// Returns what changes of a record.
    pub(super) fn changing(&self, row: &RecordRow) -> Result<Value> {
        let Some(beside) = &row.spilled else { return Ok(row.changing.clone()) };
        let owner = Owner::Grain(row.address.parse()?);
        json::parse(&self.session.side_blob(&beside.parse()?, &owner)?)
    }

    /// Returns a record without what changes.
    pub(super) fn rest(&self, row: &RecordRow) -> Result<Value> {
        let address: ContentAddress = row.address.parse()?;
        let stored = self.session.inspect(&address)?;
        if let Some(view) = &row.native {
            return Ok(with_grain(view.clone(), &stored));
        }
        let grain = stored.grain()?;
        record_of(&whole_fields(self.session, PROFILE, &address, grain)?)
    }

    /// Returns a whole record.
    pub(super) fn record(&self, row: &RecordRow) -> Result<Value> {
        Ok(joined_record(self.rest(row)?, &self.changing(row)?))
    }

    /// Returns the row of the newest change of a record, or its own.
    pub(super) fn newest(&self, row: RecordRow) -> Result<RecordRow> {
        let mut row = row;
        for _ in 0..MAX_CHANGES {
            let Some(by) = &row.changed_by else { return Ok(row) };
            match self.row(by)? {
                Some(newer) => row = newer,
                None => return Ok(row),
            }
        }
        Err(Error::corrupt("the changes of a record have no end"))
    }

    /// Returns `true` if any record or file was purged.
    pub(super) fn has_purged(&self) -> Result<bool> {
        let mut has_purged = false;
        for table in [tables::PURGED, tables::PURGED_FILES] {
            self.rows.each(table, |_, _: bool| {
                has_purged = true;
                Ok(())
            })?;
        }
        Ok(has_purged)
    }

    /// Returns `true` if all of the agent was purged, and nobody has asked for it again.
    pub(super) fn is_all_purged(&self) -> Result<bool> {
        let shared = Rows::new(self.session, PROFILE.shared_application());
        Ok(shared.get::<bool>(tables::PURGED_AGENTS, &self.id)?.is_some())
    }

    /// Writes down that all of the agent was purged, or that it may come again.
    pub(super) fn set_all_purged(&self, purged: bool) -> Result<()> {
        let shared = Rows::new(self.session, PROFILE.shared_application());
        let (table, id) = (tables::PURGED_AGENTS, self.id.as_str());
        shared.write(vec![match purged {
            true => shared.put(table, id, &true, Owner::Store)?,
            false => shared.remove(table, id),
        }])
    }

    /// Returns `true` if a file with these bytes was purged, by their SHA-256 in hex.
    pub(super) fn is_purged_file(&self, sha256: &str) -> Result<bool> {
        Ok(self.rows.get::<bool>(tables::PURGED_FILES, sha256)?.is_some())
    }

    /// Returns `true` if a change with this id was not taken, since what it changes is gone, and nothing else has the id
    /// since. The id says nothing of a record that has it without being such a change.
    pub(super) fn is_refused_change(&self, id: &str) -> Result<bool> {
        let refused = self.rows.get::<String>(tables::REFUSED_CHANGES, id)?;
        Ok(refused.is_some() && self.row(id)?.is_none())
    }

    /// The row that remembers a change that is not taken, and what it is a change of: changes of it stay out too.
    pub(super) fn refused_change(&self, id: &str, of: &str) -> Result<RowChange> {
        self.rows.put(tables::REFUSED_CHANGES, id, &of, Owner::Store)
    }

    /// Returns `true` if a record was purged.
    pub(super) fn is_purged(&self, id: &str) -> Result<bool> {
        Ok(self.rows.get::<bool>(tables::PURGED, id)?.is_some())
    }

    pub(super) fn files(&self) -> Result<Files<'s>> {
        let namespace = namespace_of(&self.id, FILES_LAYER);
        Files::open(self.documents.clone(), FILES_LAYER, namespace)
    }

    pub(super) fn sealed(&self) -> Result<Files<'s>> {
        let namespace = namespace_of(&self.id, SEALED_LAYER);
        Files::open(self.documents.clone(), SEALED_LAYER, namespace)
    }

    /// The principals that are agents.
    pub(super) fn agent_principals(&self) -> Result<AgentPrincipals> {
        let mut agents = AgentPrincipals::new();
        let Some((layer, _)) = PRINCIPALS.items else { return Ok(agents) };
        for id in self.documents.items(layer)? {
            let kept = self.documents.read(layer, Some(&id))?;
            if kept.is_some_and(|kept| is_agent(&kept.value)) {
                agents.insert(id.to_ascii_lowercase());
            }
        }
        Ok(agents)
    }
}

/// Returns `true` for the error of what is stored, and what a consent or a rule keeps from being read.
pub(super) fn is_hidden(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Withdrawn | ErrorKind::Policy)
}

/// Returns `true` for a principal that is an agent.
pub(super) fn is_agent(principal: &Value) -> bool {
    principal.get("principal_type").and_then(Value::as_str) == Some("agent")
}

/// Returns `true` if what changes of a record has embeddings.
pub(super) fn has_embeddings(changing: &Value) -> bool {
    let embeddings = changing.get("embeddings").and_then(Value::as_array);
    embeddings.is_some_and(|embeddings| !embeddings.is_empty())
}

impl RecordRow {
    pub(super) fn new(
        address: &ContentAddress,
        record: &super::record::Record,
        grain_type: u8,
    ) -> Self {
        Self {
            address: address.to_string(),
            created_ms: record.created_ms,
            digest: record.digest.clone(),
            changing: record.changing.clone(),
            grain_type,
            change_of: record.change_of.clone(),
            changed_by: None,
            spilled: None,
            native: None,
            has_embeddings: false,
        }
    }
}
