//! Whether a store holds exactly what the model holds: bytes, states, index, audit log.

use std::collections::BTreeMap;

use super::calls::session;
use super::engine::format::ContentAddress;
use super::engine::{AuditEntry, Session, Store, StoredGrain};
use super::model::{Known, Model};

/// Entries one answer of the audit log holds.
const PAGE: usize = 1000;

/// Says what differs first.
pub(crate) fn agree(store: &Store, model: &Model) -> Result<(), String> {
    agree_on(store, model, true)
}

/// As [`agree`]. A crash loses the counts of refusals that were equal to one before, and never the first
/// of a kind: `all_counts` says that there was none.
pub(crate) fn agree_on(store: &Store, model: &Model, all_counts: bool) -> Result<(), String> {
    let operator = session(store, None);
    let stats = store.stats().map_err(|error| error.to_string())?;
    same("grains", &stats.grains, &(model.grains.len() as u64))?;
    for known in &model.grains {
        let stored = operator.get(&known.address).map_err(|error| error.to_string())?;
        as_known(&stored, known)?;
    }
    for ((subject, relation), places) in &model.words {
        let found = operator.history_of(subject, relation, None, None);
        let found = addresses(&found.map_err(|error| error.to_string())?);
        let expected = places.iter().rev().map(|place| model.grains[*place].address);
        same(&format!("{subject} {relation}"), &found, &expected.collect())?;
    }
    // The counts of refusals that were equal to others are written now.
    store.flush().map_err(|error| error.to_string())?;
    audit(&operator, model, all_counts)
}

/// Whether a grain came back as it was stored, in the state it must be in.
pub(crate) fn as_known(stored: &StoredGrain, known: &Known) -> Result<(), String> {
    let name = known.address.to_string();
    same("address", &stored.address, &known.address)?;
    same(&name, &stored.blob.as_slice(), &&*known.bytes)?;
    let state = &stored.state;
    let of = |field: &str| format!("{field} of {name}");
    same(&of("superseded_by"), &state.superseded_by, &known.superseded_by)?;
    same(&of("system_valid_to"), &state.system_valid_to, &known.ended)?;
    same(&of("needs_review"), &state.needs_review, &known.needs_review)?;
    same(&of("held"), &state.held, &known.held)?;
    same(&of("contradicted"), &state.contradicted, &known.contradicted)?;
    same(&of("verification_status"), &state.verification_status, &known.status)?;
    let envelope = stored.envelope.as_ref().map(super::engine::format::Envelope::bytes);
    same(&name, &envelope, &known.signed.as_ref().map(|signed| &*signed.envelope))
}

pub(crate) fn addresses(stored: &[StoredGrain]) -> Vec<ContentAddress> {
    stored.iter().map(|stored| stored.address).collect()
}

/// The whole audit log.
pub(crate) fn entries(operator: &Session) -> Result<Vec<AuditEntry>, String> {
    let mut entries = Vec::new();
    loop {
        let after = entries.last().map(|entry: &AuditEntry| entry.sequence);
        let page = operator.audit(after, PAGE).map_err(|error| error.to_string())?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

fn audit(operator: &Session, model: &Model, all_counts: bool) -> Result<(), String> {
    let entries = entries(operator)?;
    same("genesis", &entries[0].operation.as_str(), &"create")?;
    let numbers = entries.iter().enumerate().map(|(place, found)| (place as u64, found.sequence));
    for (place, found) in numbers {
        same("a sequence", &found, &place)?;
    }
    let is_done = |decision: &str| decision == "done";
    let found: Vec<_> = entries.iter().skip(1).filter(|entry| is_done(&entry.decision)).collect();
    let expected: Vec<_> = model.audit.iter().filter(|entry| is_done(entry.decision)).collect();
    same("audit entries of what was done", &found.len(), &expected.len())?;
    for (found, entry) in found.iter().zip(&expected) {
        let what = format!("audit entry {}", found.sequence);
        same(&what, &found.time, &entry.time)?;
        same(&what, &found.operation.as_str(), &entry.operation)?;
        same(&what, &found.subjects, &entry.subjects)?;
    }
    // Equal refusals of a minute are one entry and a count, so they are compared by how many there were.
    let mut refused = BTreeMap::<&str, (u64, u64)>::new();
    for entry in entries.iter().filter(|entry| !is_done(&entry.decision)) {
        refused.entry(&entry.operation).or_default().0 += entry.count.unwrap_or(1);
    }
    for entry in model.audit.iter().filter(|entry| !is_done(entry.decision)) {
        refused.entry(entry.operation).or_default().1 += 1;
    }
    for (operation, (found, expected)) in refused {
        if all_counts || found > expected {
            same(&format!("refusals of {operation}"), &found, &expected)?;
        }
    }
    for entry in model.audit.iter().filter(|entry| !is_done(entry.decision)) {
        let is_told = |found: &AuditEntry| {
            // What came signed names its own address as well; beyond 64 kinds the operation alone is told.
            found.operation == entry.operation
                && !is_done(&found.decision)
                && (found.subjects.is_empty() || found.subjects.starts_with(&entry.subjects))
        };
        if !entries.iter().any(is_told) {
            return Err(format!("no refusal is told of {entry:?}"));
        }
    }
    Ok(())
}

/// Says what differs.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: found {found:?}, not {expected:?}"))
}
