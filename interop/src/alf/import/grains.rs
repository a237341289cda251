//! The grains of records that are written together: those that take nobody's place in one batch, the others one after
//! the other. Whatever bytes the store has already, a record that is current has a grain that is.

use std::collections::HashMap;

use grainstore::format::{GrainType, Map, Value};
use grainstore::{
    ContentAddress, ErrorKind, Grain, Pending, PutOutcome, Session, StoredGrain, VerificationStatus,
};

use super::chunk::{SUPERSESSION, Waiting, note};
use crate::alf::agent::Agent;
use crate::alf::names::{AFTER, PROFILE};
use crate::alf::native::{Origin, notes, origin_of};
use crate::alf::record::sensitivity_of;
use crate::error::{Error, Result};
use crate::kept::NewGrain;
use crate::vouch::outsider;

/// Most versions of a record that were not finished.
const MAX_VERSIONS: usize = 1_000;

/// A record, whether its grain is stored, and whether another has the place that it should have.
pub(super) type Stored = (Waiting, Result<()>, bool);

/// Stores the grains: first those that take nobody's place. Whatever address a grain has in the end, it is noted before the
/// grain is stored.
pub(super) fn store_grains(agent: &Agent<'_>, waiting: Vec<Waiting>) -> Result<Vec<Stored>> {
    let session = agent.session;
    let (successors, plain): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|one| one.old.is_some());
    let mut done = Vec::with_capacity(successors.len() + plain.len());
    let (retiring, plain): (Vec<_>, Vec<_>) =
        plain.into_iter().partition(|one| one.retired.or(one.leftover).is_some());
    // What an archive says of a consent is nobody's word.
    let (consents, plain): (Vec<_>, Vec<_>) = plain.into_iter().partition(is_carried_consent);
    let outsider = outsider(session);
    let offers = plain.iter().map(|one| one.grain.offer().with_vectors(one.vectors.clone()));
    match session.put_batch(offers) {
        Ok(puts) => {
            for (mut one, put) in plain.into_iter().zip(puts) {
                let result = renewed(agent, &mut one, put);
                done.push((one, result, false));
            }
        }
        Err(error) if is_of_all(&error) => return Err(error.into()),
        // One of them is refused: which one, each tells by itself.
        Err(_) => {
            for mut one in plain {
                let result = put_alone((agent, session), &mut one);
                done.push((one, result, false));
            }
        }
    }
    for mut one in consents {
        let result = put_alone((agent, &outsider), &mut one);
        done.push((one, result, false));
    }
    for mut one in retiring {
        let result = retire(session, &one).and_then(|()| put_alone((agent, session), &mut one));
        done.push((one, result, false));
    }
    done.extend(store_successors(agent, &outsider, successors));
    Ok(done)
}

/// Returns `true` for an error that is not about a grain.
fn is_of_all(error: &grainstore::Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::ReadOnly | ErrorKind::Busy)
}

/// Stores a grain with its vectors, or without them if they are what is refused. In the place of a grain that a record
/// carries, and that would take the place of one that is not there, stands one that says what the record says.
fn put_alone((agent, by): (&Agent<'_>, &Session), one: &mut Waiting) -> Result<()> {
    match put(by, one) {
        Ok(put) => renewed(agent, one, put),
        Err(error) if error.kind() == ErrorKind::SupersedeRequired && one.native.is_some() => {
            put_mapped((agent, by), one, None)
        }
        Err(error) => Err(error.into()),
    }
}

fn put(session: &Session, one: &Waiting) -> grainstore::Result<PutOutcome> {
    let put = session.put(one.grain.offer().with_vectors(one.vectors.clone()));
    match put {
        Err(error) if error.kind() != ErrorKind::SupersedeRequired && !one.vectors.is_empty() => {
            session.put(one.grain.offer())
        }
        put => put,
    }
}

/// A grain that was taken back stays so: a record that is there again in the same bytes gets another one.
fn renewed(agent: &Agent<'_>, one: &mut Waiting, put: PutOutcome) -> Result<()> {
    let address = one.grain.address();
    if !put.is_duplicate() || one.is_over() {
        return Ok(());
    }
    let state = agent.session.inspect(&address)?.state;
    match state.verification_status == VerificationStatus::Retracted {
        true => put_mapped((agent, agent.session), one, Some(&address)),
        false => Ok(()),
    }
}

/// Stores a grain that says what the record says, and takes nobody's place.
fn put_mapped(
    (agent, by): (&Agent<'_>, &Session),
    one: &mut Waiting,
    after: Option<&ContentAddress>,
) -> Result<()> {
    one.become_mapped(fields_after(&one.fields, after))?;
    note(agent, one)?;
    Ok(put(by, one).map(drop)?)
}

/// The fields of a grain that names the grain that it comes after, so that it is another than one of the same content that
/// ended before.
pub(super) fn fields_after(fields: &Map, after: Option<&ContentAddress>) -> Map {
    let mut fields = fields.clone();
    if let (Some(Value::Map(context)), Some(after)) = (fields.get_mut("context"), after) {
        context.insert(PROFILE.key(AFTER), Value::from(after.to_string()));
    }
    fields
}

impl Waiting {
    /// Gives the record a grain that says what it says, with these fields.
    fn become_mapped(&mut self, fields: Map) -> Result<()> {
        self.grain_type = Grain::from_fields(self.fields.clone())?.grain_type().byte();
        self.grain = NewGrain::new(PROFILE, fields, sensitivity_of(&self.fields))?;
        self.native = None;
        Ok(())
    }
}

/// Takes back a grain of another type, and what an interrupted import has left. Their policies may refuse it.
fn retire(session: &Session, one: &Waiting) -> Result<()> {
    for old in [one.retired, one.leftover].iter().flatten() {
        let retracted = VerificationStatus::Retracted;
        session.set_verification(old, retracted, SUPERSESSION, None)?;
    }
    Ok(())
}

fn is_carried_consent(one: &Waiting) -> bool {
    one.native.is_some() && one.grain_type == GrainType::Consent.byte()
}

fn store_successors(
    agent: &Agent<'_>,
    outsider: &Session,
    successors: Vec<Waiting>,
) -> Vec<Stored> {
    let session = agent.session;
    let mut done = Vec::with_capacity(successors.len());
    let mut submitted: Vec<(Waiting, Option<Pending<ContentAddress>>)> = Vec::new();
    for one in successors {
        if let Err(refused) = retire(session, &one) {
            done.push((one, Err(refused), false));
            continue;
        }
        let offer = one.grain.offer().with_vectors(one.vectors.clone());
        let by = if is_carried_consent(&one) { outsider } else { session };
        let pending = one.old.map(|old| by.submit_supersede(&old, offer, None));
        submitted.push((one, pending));
    }
    // Grains that are stored in other bytes than was thought when others were to take their places.
    let mut moved: HashMap<ContentAddress, ContentAddress> = HashMap::new();
    for (mut one, pending) in submitted {
        let planned = one.grain.address();
        let outcome = pending.map_or(Ok(planned), Pending::wait);
        let moved_to = one.old.and_then(|old| moved.get(&old)).copied();
        let (result, lost_place) = match outcome {
            Ok(_) => (Ok(()), false),
            Err(error) if let Some(old) = moved_to.filter(|_| is_not_found(&error)) => {
                (succeed(agent, &mut one, &old), false)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => settle(agent, &mut one),
            Err(error) if !one.vectors.is_empty() && !is_refused(&error) => {
                let again = one.old.map(|old| session.supersede(&old, one.grain.offer(), None));
                (again.transpose().map(drop).map_err(Error::from), false)
            }
            Err(error) => (Err(error.into()), false),
        };
        if one.grain.address() != planned {
            moved.insert(planned, one.grain.address());
        }
        done.push((one, result, lost_place));
    }
    done
}

fn is_not_found(error: &grainstore::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

pub(super) fn is_refused(error: &grainstore::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidationDenied | ErrorKind::Policy | ErrorKind::Erased)
}

/// The place was taken already. By this grain: then nothing is left to do. By a version of the record that was not
/// finished: the record goes on from that. By another record: a new one stands beside it.
fn settle(agent: &Agent<'_>, one: &mut Waiting) -> (Result<()>, bool) {
    let Some(old) = one.old else { return (Ok(()), false) };
    match newest_own(agent, &old, &one.record.id) {
        Ok(Some(newest)) if newest == one.grain.address() => (Ok(()), false),
        Ok(Some(newest)) if one.native.is_none() => (succeed(agent, one, &newest), false),
        Ok(_) => (put_mapped((agent, agent.session), one, Some(&old)), true),
        Err(error) => (Err(error), false),
    }
}

/// Takes the place of another grain than was thought.
fn succeed(agent: &Agent<'_>, one: &mut Waiting, old: &ContentAddress) -> Result<()> {
    let session = agent.session;
    one.become_mapped(NewGrain::succeeding(one.fields.clone(), old, SUPERSESSION))?;
    note(agent, one)?;
    let offer = one.grain.offer().with_vectors(one.vectors.clone());
    match session.supersede(old, offer, None) {
        Err(error) if !one.vectors.is_empty() && !is_refused(&error) => {
            Ok(session.supersede(old, one.grain.offer(), None).map(drop)?)
        }
        done => Ok(done.map(drop)?),
    }
}

/// Returns the grain behind which only versions of the same record, or of this one, stand; `None` where another record
/// took the place.
pub(super) fn newest_own(
    agent: &Agent<'_>,
    old: &ContentAddress,
    record_id: &str,
) -> Result<Option<ContentAddress>> {
    let mut at = agent.session.inspect(old)?;
    for _ in 0..MAX_VERSIONS {
        let Some(by) = at.state.superseded_by else { return Ok(Some(at.address)) };
        // One that was erased was another's, or is not to be gone on from.
        let Ok(next) = agent.session.inspect(&by) else { return Ok(None) };
        let [own, new] = [id_of(agent, &at)?, id_of(agent, &next)?];
        if new.as_deref() != Some(record_id) && (new.is_none() || new != own) {
            return Ok(None);
        }
        at = next;
    }
    Ok(None)
}

/// The id of the record that a grain is a version of, in lower case.
fn id_of(agent: &Agent<'_>, stored: &StoredGrain) -> Result<Option<String>> {
    let grain = stored.grain()?;
    Ok(match origin_of(agent, &stored.address, &grain)? {
        Origin::Record(id) | Origin::Stray(id) => Some(id),
        Origin::Other => notes(&grain).map(|(id, _)| id),
        Origin::Native | Origin::Copy => None,
    })
}
