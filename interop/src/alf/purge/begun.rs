//! Purges of a store that have begun: what each takes is kept until its audit record is written, so that the same purge
//! completes one that crashed, with the record of all of it.
//!
//! A row of the store leads to what is kept, by the agent and what was asked for.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use grainstore::{ContentAddress, Owner, Session};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::report::{PurgeReport, PurgeScope};
use crate::alf::names::{PROFILE, tables};
use crate::error::{Error, Result};
use crate::kept::Rows;

/// The place of a purge.
#[derive(Debug)]
pub(super) struct Begun<'s> {
    session: &'s Session,
    rows: Rows<'s>,
    key: String,
}

/// A purge that has begun: its record, and the records that it took.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Before {
    pub(super) report: PurgeReport,
    records: BTreeSet<String>,
}

impl<'s> Begun<'s> {
    pub(super) fn of(session: &'s Session, agent_id: &str, scope: &PurgeScope) -> Self {
        let rows = Rows::new(session, PROFILE.shared_application());
        Self {
            session,
            rows,
            key: format!("{}\0{}", agent_id.to_ascii_lowercase(), name_of(scope)),
        }
    }

    /// The purge of an agent as a whole that has begun, of an agent that the store does not have any more.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(super) fn of_agent(session: &'s Session, agent_id: Option<&str>) -> Result<Option<Self>> {
        let rows = Rows::new(session, PROFILE.shared_application());
        let (mut keys, scope) = (Vec::new(), name_of(&PurgeScope::Agent));
        rows.each(tables::PURGES, |key, _: String| {
            if let Some((agent, of)) = key.split_once('\0')
                && of == scope
                && agent_id.is_none_or(|id| id.eq_ignore_ascii_case(agent))
            {
                keys.push(key.to_owned());
            }
            Ok(())
        })?;
        match keys.as_slice() {
            [key] => Ok(Some(Self { session, rows, key: key.clone() })),
            _ => Ok(None),
        }
    }

    /// What the same purge took before; `None` if none has begun.
    ///
    /// # Errors
    /// Those of [`Session::side_blob`].
    pub(super) fn before(&self) -> Result<Option<Before>> {
        let Some(address) = self.address()? else { return Ok(None) };
        let bytes = self.session.side_blob(&address, &Owner::Store)?;
        let before = serde_json::from_slice(&bytes);
        before.map(Some).map_err(|error| Error::corrupt(format!("no record of a purge: {error}")))
    }

    /// Keeps what is about to be taken, with what was taken before.
    ///
    /// # Errors
    /// Those of [`Session::put_side_blob`] and [`Session::write_rows`].
    pub(super) fn keep(&self, report: &PurgeReport, records: BTreeSet<String>) -> Result<()> {
        let old = self.address()?;
        let before = Before { report: report.clone(), records };
        let bytes = serde_json::to_vec(&before)
            .map_err(|error| Error::corrupt(format!("a record of a purge: {error}")))?;
        let address = self.session.put_side_blob(bytes, Owner::Store)?.to_string();
        let key = self.key.as_str();
        self.rows.write(vec![self.rows.put(tables::PURGES, key, &address, Owner::Store)?])?;
        match old.filter(|old| old.to_string() != address) {
            Some(old) => Ok(self.session.remove_side_blob(&old, Owner::Store).map(drop)?),
            None => Ok(()),
        }
    }

    /// Forgets it: its record is written.
    ///
    /// # Errors
    /// Those of [`Session::write_rows`] and [`Session::remove_side_blob`].
    pub(super) fn forget(&self) -> Result<()> {
        let Some(address) = self.address()? else { return Ok(()) };
        self.rows.write(vec![self.rows.remove(tables::PURGES, self.key.as_str())])?;
        Ok(self.session.remove_side_blob(&address, Owner::Store).map(drop)?)
    }

    fn address(&self) -> Result<Option<ContentAddress>> {
        let address = self.rows.get::<String>(tables::PURGES, &self.key)?;
        address.map(|address| Ok(address.parse()?)).transpose()
    }
}

impl Before {
    /// Adds what was taken before to the record of what is taken now, and returns the records of both.
    pub(super) fn join(self, report: &mut PurgeReport, now: BTreeSet<String>) -> BTreeSet<String> {
        let Self { report: before, mut records } = self;
        let more = now.difference(&records).count() as u64;
        report.records_removed = before.records_removed.saturating_add(more);
        if let (Some(ids), Some(more)) = (&mut report.record_ids, before.record_ids) {
            ids.extend(more);
        }
        for (list, more) in [
            (&mut report.partitions_affected, before.partitions_affected),
            (&mut report.raw_files_affected, before.raw_files_affected),
            (&mut report.documents_removed, before.documents_removed),
            (&mut report.records_with_copies, before.records_with_copies),
            (&mut report.documents_with_copies, before.documents_with_copies),
            (&mut report.records_unread, before.records_unread),
        ] {
            list.extend(more);
            list.sort_unstable();
            list.dedup();
        }
        records.extend(now);
        records
    }
}

/// What is asked for, as a part of a key.
fn name_of(scope: &PurgeScope) -> String {
    let asked = match scope {
        PurgeScope::Agent => return "agent".to_owned(),
        PurgeScope::User(id) => format!("user\n{id}"),
        PurgeScope::Records(ids) => {
            let ids: BTreeSet<String> = ids.iter().map(|id| id.to_ascii_lowercase()).collect();
            format!("records\n{}", ids.into_iter().collect::<Vec<_>>().join("\n"))
        }
    };
    HEXLOWER.encode(&Sha256::digest(asked))
}
