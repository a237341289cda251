//! All grains of a store that a session is shown, of any state, and what they say of ALF.

use std::collections::BTreeSet;

use grainstore::cal::{Query, Visibility};
use grainstore::{ContentAddress, Grain, PageOptions, Session, SessionOptions, StoredGrain};

use crate::alf::agent::Agent;
use crate::alf::names::PROFILE;
use crate::alf::native::{Origin, alf_text, native_id, origin_of, view_of};
use crate::alf::record::record_of;
use crate::error::Result;
use crate::json::Value;
use crate::kept::whole_fields;
use crate::monitor::Monitor;

/// Grains that are read together.
const PAGE: usize = 500;
/// The code of a store whose grains of people are found person by person.
const PERSON_BY_PERSON: &str = "ERR_KEY";
/// A user who has nothing: what belongs to nobody is shown to them.
const NOBODY: &str = "alf:nobody";

/// A grain, as ALF sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sort {
    /// A version of a record of the agent, by its id in lower case.
    Record(String),
    /// A version of a document of the agent, by its layer and the id of an item.
    Document(String, Option<String>),
    /// A grain that was not born as a record, by the id of the record that it is or would be.
    Native(String),
    /// The same of a copy of the grain of a record.
    Copy(String),
    /// Of another agent, or of no kind that is known.
    Other,
}

/// Returns what a grain is to an agent.
///
/// # Errors
/// Those of [`Session::rows`].
pub(super) fn sort_of(agent: &Agent<'_>, address: &ContentAddress, grain: &Grain) -> Result<Sort> {
    let is_of_agent =
        || alf_text(grain, "agent_id").is_some_and(|id| id.eq_ignore_ascii_case(&agent.id));
    Ok(match origin_of(agent, address, grain)? {
        Origin::Native => Sort::Native(native_id(grain.created_at(), address)),
        Origin::Copy => Sort::Copy(native_id(grain.created_at(), address)),
        Origin::Record(id) => Sort::Record(id),
        Origin::Stray(id) if is_of_agent() => Sort::Record(id),
        Origin::Stray(_) => Sort::Other,
        Origin::Other => match alf_text(grain, "layer").filter(|_| is_of_agent()) {
            Some(layer) => {
                Sort::Document(layer.to_owned(), alf_text(grain, "item_id").map(str::to_owned))
            }
            None => Sort::Other,
        },
    })
}

/// Returns the record that a grain says, `None` for a grain that the session is not shown.
///
/// # Errors
/// Those of the store.
pub(super) fn record_in(agent: &Agent<'_>, address: &ContentAddress) -> Result<Option<Value>> {
    let Ok(stored) = agent.session.inspect(address) else { return Ok(None) };
    record_of_stored(agent, &stored).map(Some)
}

/// Returns the record that a grain says which was read.
///
/// # Errors
/// Those of the store.
pub(super) fn record_of_stored(agent: &Agent<'_>, stored: &StoredGrain) -> Result<Value> {
    let grain = stored.grain()?;
    if origin_of(agent, &stored.address, &grain)?.is_native() {
        return view_of(agent, stored);
    }
    let fields = grain.fields().clone();
    // What lies beside it may be lost, or hidden: what the grain itself says is left.
    let whole = whole_fields(agent.session, PROFILE, &stored.address, grain).unwrap_or(fields);
    record_of(&whole)
}

/// Calls `each` with every grain that the session is shown, of any state. In a store that is encrypted person by person
/// those of these users and of nobody.
///
/// # Errors
/// Those of [`Session::query`] and of `each`; `ERR_TIMEOUT`.
pub(super) fn each_grain(
    session: &Session,
    users: &BTreeSet<String>,
    monitor: &Monitor<'_>,
    mut each: impl FnMut(&ContentAddress, &Grain) -> Result<()>,
) -> Result<()> {
    let Err(error) = pages(session, monitor, &mut each) else { return Ok(()) };
    if error.code() != PERSON_BY_PERSON {
        return Err(error);
    }
    for user in users.iter().map(String::as_str).chain([NOBODY]) {
        let user_id = Some(user.to_owned());
        let part = session.part(SessionOptions { user_id, ..session.options().clone() });
        pages(&part, monitor, &mut each)?;
    }
    Ok(())
}

fn pages(
    session: &Session,
    monitor: &Monitor<'_>,
    each: &mut impl FnMut(&ContentAddress, &Grain) -> Result<()>,
) -> Result<()> {
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let mut cursor = None;
    loop {
        monitor.step(0, 0)?;
        let page = session.query(&all, &PageOptions::first(PAGE).after(cursor))?;
        for found in &page.results {
            each(&found.content_address, &found.grain)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
