//! A batch of records on its way into the store: rows that name the grains, then first versions together, then those that
//! take the place of others, then what has ended, and at last the rows that tell of it.
//!
//! An interruption leaves grains without the last rows at worst. The first rows name them, so that the next run goes on
//! from them, whatever it brings, and knows those that were erased in between.

use std::collections::HashMap;

use grainstore::format::{GrainType, Value};
use grainstore::{
    ContentAddress, ErrorKind, Grain, Pending, PutOutcome, RowChange, SameFact, Session,
    VerificationStatus, format,
};

use super::{Run, Writer};
use crate::error::{Error, Result};
use crate::migrate::ledger::{Entry, Identity, Intent, changes, given_up, intended};
use crate::migrate::record::{Ending, LeftOut};

/// Records of a batch.
const MAX_RECORDS: usize = 1000;
/// Bytes of the texts of a batch, about.
const MAX_BYTES: usize = 8 << 20;

/// A record that is to be written.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) identity: Identity,
    pub(super) place: String,
    pub(super) kind: &'static str,
    pub(super) grain_type: GrainType,
    /// Its versions, oldest first. None if it is in the store already.
    pub(super) steps: Vec<Step>,
    /// Those of them that the store does not have yet.
    pub(super) fresh: usize,
    pub(super) ending: Option<Ending>,
    /// Whether its source names another person than the one whose it becomes.
    pub(super) names_another: bool,
    /// Whether an earlier migration wrote the record.
    pub(super) is_known: bool,
    /// Whether nothing of the record was here before.
    pub(super) is_new: bool,
    /// What a run wrote of it that ended before the rows.
    pub(super) unfinished: Option<Entry>,
    /// What the ledger is to say of it.
    pub(super) entry: Entry,
}

/// One version of a record.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) grain: Grain,
    /// The grain that it takes the place of.
    pub(super) old: Option<ContentAddress>,
    /// What the ledger is to say, were it the last one.
    pub(super) entry: Entry,
}

impl Planned {
    /// What is about to be written, behind what an unfinished run wrote.
    fn intent(&self) -> Intent {
        let steps = self.steps.iter().map(|step| step.entry.clone());
        Intent {
            is_new: self.is_new,
            versions: self.unfinished.iter().cloned().chain(steps).collect(),
        }
    }

    /// The rows of a record that came no further: those of an unfinished run, or none.
    fn stayed(&self) -> Vec<RowChange> {
        match &self.unfinished {
            Some(entry) => changes(&self.identity, entry).into(),
            None if self.steps.is_empty() => Vec::new(),
            None => vec![given_up(&self.identity, self.is_new)],
        }
    }
}

/// Records that are waiting to be written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    planned: Vec<Planned>,
    bytes: usize,
    heads: HashMap<Identity, ContentAddress>,
}

impl Batch {
    pub(super) fn push(&mut self, planned: Planned) {
        for step in &planned.steps {
            let bytes = step.grain.fields().values().map(size_of_value).sum();
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.heads.insert(planned.identity, planned.entry.head);
        self.planned.push(planned);
    }

    pub(super) fn is_full(&self) -> bool {
        self.planned.len() >= MAX_RECORDS || self.bytes >= MAX_BYTES
    }

    /// The newest grain of a record that is waiting.
    pub(super) fn head_of(&self, identity: &Identity) -> Option<ContentAddress> {
        self.heads.get(identity).copied()
    }
}

/// The bytes of the texts of a value.
fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_value).sum(),
        Value::Map(map) => map.values().map(size_of_value).sum(),
        _ => 8,
    }
}

/// Returns `true` for an error that is about one record, so that the others may go on.
pub(super) fn is_of_record(kind: ErrorKind) -> bool {
    match kind {
        // What of the store is damaged is no matter of the record.
        ErrorKind::Format(kind) => kind != format::ErrorKind::Integrity,
        ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::SupersedeRequired
        | ErrorKind::InvalidationDenied
        | ErrorKind::EvidenceRequired
        | ErrorKind::Dependency
        | ErrorKind::Policy
        | ErrorKind::Erased
        | ErrorKind::Withdrawn => true,
        _ => false,
    }
}

/// How far a record came.
#[derive(Debug, Default)]
struct Outcome {
    /// Versions that are in the store.
    done: usize,
    refusal: Option<Error>,
}

impl Writer<'_> {
    /// Writes what is waiting.
    ///
    /// # Errors
    /// Those of the store that are about more than a record; in a strict run that of a record.
    pub(super) fn flush(&mut self) -> Result<()> {
        let planned = std::mem::take(&mut self.batch).planned;
        let session = self.run.session;
        let on_their_way = planned.iter().filter(|record| !record.steps.is_empty());
        session
            .write_rows(on_their_way.map(|record| intended(&record.identity, &record.intent())))?;
        let mut outcomes: Vec<Outcome> = planned.iter().map(|_| Outcome::default()).collect();
        put_first(session, &planned, &mut outcomes)?;
        put_later(session, &planned, &mut outcomes)?;
        let mut rows = Vec::with_capacity(planned.len().saturating_mul(2));
        for (record, outcome) in planned.iter().zip(&mut outcomes) {
            rows.extend(finished(self.run, record, outcome));
        }
        session.write_rows(rows)?;
        for (record, outcome) in planned.iter().zip(outcomes) {
            match outcome.refusal {
                None => self.count(record),
                Some(error) if is_of_record(error.kind()) => {
                    self.put_aside(LeftOut::wrong(&record.place, error))?;
                }
                Some(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Ends a record that has ended in its source, and returns the rows that tell how far it came.
fn finished(run: Run<'_>, record: &Planned, outcome: &mut Outcome) -> Vec<RowChange> {
    let mut entry = record.entry.clone();
    if outcome.refusal.is_some() {
        // The next run goes on behind the last version that was taken.
        let last = outcome.done.checked_sub(1).and_then(|at| record.steps.get(at));
        let Some(step) = last else { return record.stayed() };
        entry = Entry { digest: [0; 32], ..step.entry.clone() };
    } else if let Some(ending) = &record.ending {
        match end(run, &entry.head, ending) {
            Ok(()) => entry.is_ended = true,
            Err(error) => {
                outcome.refusal = Some(error);
                // What the ledger says of it stays as it is.
                if record.steps.is_empty() {
                    return record.stayed();
                }
            }
        }
    } else if record.steps.is_empty() {
        return record.stayed();
    }
    changes(&record.identity, &entry).into()
}

/// Stores the first versions of new records: together, or one by one if one of them is refused.
fn put_first(session: &Session, planned: &[Planned], outcomes: &mut [Outcome]) -> Result<()> {
    let is_first = |step: &&Step| step.old.is_none();
    let firsts = || {
        planned.iter().zip(0..).filter_map(|(record, at)| {
            let step = record.steps.first().filter(is_first)?;
            Some((step.grain.clone(), at))
        })
    };
    let put: Vec<Result<PutOutcome, grainstore::Error>> =
        match session.put_batch(firsts().map(|(grain, _)| grain)) {
            Ok(put) => put.into_iter().map(Ok).collect(),
            Err(error) if is_of_record(error.kind()) => {
                let sent: Vec<_> =
                    firsts().map(|(grain, _)| session.submit(grain, SameFact::Add)).collect();
                sent.into_iter().map(Pending::wait).collect()
            }
            Err(error) => return Err(error.into()),
        };
    for ((_, at), put) in firsts().zip(put) {
        let at: usize = at;
        let Some(outcome) = outcomes.get_mut(at) else { continue };
        match put {
            Ok(_) => outcome.done = 1,
            Err(error) => outcome.refusal = Some(error.into()),
        }
    }
    Ok(())
}

/// Stores the versions that take the place of others. They are sent in order and waited for together.
fn put_later(session: &Session, planned: &[Planned], outcomes: &mut [Outcome]) -> Result<()> {
    let mut sent = Vec::new();
    for (record, outcome) in planned.iter().zip(outcomes) {
        if outcome.refusal.is_some() {
            continue;
        }
        let later = record.steps.iter().filter_map(|step| {
            let old = step.old?;
            Some(session.submit_supersede(&old, step.grain.clone(), None))
        });
        sent.push((outcome, later.collect::<Vec<_>>()));
    }
    for (outcome, pending) in sent {
        for written in pending {
            match written.wait() {
                Ok(_) if outcome.refusal.is_none() => {
                    outcome.done = outcome.done.saturating_add(1);
                }
                Ok(_) => {}
                // The first refusal tells why; those after it follow from it.
                Err(error) => {
                    outcome.refusal.get_or_insert(error.into());
                }
            }
        }
    }
    Ok(())
}

/// Ends a grain as its source did.
fn end(run: Run<'_>, head: &ContentAddress, ending: &Ending) -> Result<()> {
    let Run { session, format, .. } = run;
    match ending {
        Ending::Deleted(at) => {
            let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
            let reason = format!("deleted in {format}{at}");
            session.set_verification(head, VerificationStatus::Retracted, &reason, None)?;
        }
        Ending::Expired(at) => {
            session.contradict(head, &format!("expired in its source at {at}"), None)?;
        }
    }
    Ok(())
}
