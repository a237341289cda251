//! What would become of records, without writing them: policies are asked, and whether grains or their users were erased.

use std::collections::HashMap;

use grainstore::{EpochMs, ErrorKind, Session};

use super::chunk::{Chunk, Outcome, Waiting};
use super::erased::erased_error;
use super::people::person_error;
use crate::alf::agent::Agent;
use crate::error::Result;
use crate::kept::is_user_erased;

/// Whether users were erased at any time.
type Users = HashMap<String, bool>;

impl Chunk {
    /// Tells what would become of everything, without writing it.
    pub(in super::super) fn tried(self, agent: &Agent<'_>) -> Vec<Outcome> {
        let mut users = Users::new();
        let outcomes = self.waiting.into_iter().map(|one| {
            let result = tried(agent.session, &one, &mut users);
            let (change, created_ms) = (one.counted, one.record.created_ms);
            Outcome { change, created_ms, at: one.at, result, lost_place: false }
        });
        let mut outcomes: Vec<_> = outcomes.collect();
        outcomes.extend(self.rows.into_iter().map(|one| {
            let (change, created_ms) = (one.change, one.row.created_ms);
            Outcome { change, created_ms, at: one.at, result: Ok(()), lost_place: false }
        }));
        outcomes
    }
}

fn tried(session: &Session, one: &Waiting, users: &mut Users) -> Result<()> {
    let found = session.inspect(&one.grain.address());
    let is_here = found.is_ok();
    let is_erased = found.is_err_and(|error| error.kind() == ErrorKind::Erased);
    if is_erased {
        return Err(erased_error());
    }
    if !is_here && is_of_erased(session, one, users)? {
        return Err(person_error());
    }
    let Some(old) = one.old.filter(|old| session.exists(old).unwrap_or_default()) else {
        return Ok(());
    };
    let tried = session.try_supersede(&old, one.grain.offer(), None)?;
    let refusal = tried.refusal.filter(|error| error.kind() != ErrorKind::Conflict);
    Ok(refusal.map_or(Ok(()), Err)?)
}

/// Returns `true` for a grain of a user who was erased since it was created.
fn is_of_erased(session: &Session, one: &Waiting, users: &mut Users) -> Result<bool> {
    let Some((user, created_at)) = one.grain.user_and_time()? else { return Ok(false) };
    let was_erased = match users.get(&user) {
        Some(was_erased) => *was_erased,
        None => {
            let was_erased = is_user_erased(session, &user, EpochMs::default())?;
            users.insert(user.clone(), was_erased);
            was_erased
        }
    };
    Ok(was_erased && is_user_erased(session, &user, created_at)?)
}
