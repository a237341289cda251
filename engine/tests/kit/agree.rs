//! Whether a store holds exactly what the model holds: bytes, states, index, audit log.

use super::calls::session;
use super::engine::format::ContentAddress;
use super::engine::{Session, Store, Stored};
use super::model::{Known, Model};

/// Entries one answer of the audit log holds.
const PAGE: usize = 1000;

/// Says what differs first.
pub(crate) fn agree(store: &Store, model: &Model) -> Result<(), String> {
    let operator = session(store, None);
    let stats = store.stats().map_err(|error| error.to_string())?;
    same("grains", &stats.grains, &(model.grains.len() as u64))?;
    same("audit entries", &stats.audit_entries, &(model.audit.len() as u64 + 1))?;
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
    audit(&operator, model)
}

/// Whether a grain came back as it was stored, in the state it must be in.
pub(crate) fn as_known(stored: &Stored, known: &Known) -> Result<(), String> {
    let name = known.address.to_string();
    same("address", &stored.address, &known.address)?;
    same(&name, &stored.blob.as_slice(), &&*known.bytes)?;
    let state = &stored.state;
    same(&name, &state.superseded_by, &known.superseded_by)?;
    same(&name, &state.system_valid_to, &known.ended)?;
    same(&name, &state.needs_review, &known.needs_review)?;
    same(&name, &state.held, &known.held)?;
    same(&name, &state.contradicted, &known.contradicted)?;
    same(&name, &state.verification_status, &known.status)?;
    let envelope = stored.envelope.as_ref().map(super::engine::format::Envelope::bytes);
    same(&name, &envelope, &known.signed.as_ref().map(|signed| &*signed.envelope))
}

pub(crate) fn addresses(stored: &[Stored]) -> Vec<ContentAddress> {
    stored.iter().map(|stored| stored.address).collect()
}

fn audit(operator: &Session, model: &Model) -> Result<(), String> {
    let mut entries = Vec::new();
    loop {
        let after = entries.last().map(|entry: &super::engine::AuditEntry| entry.sequence);
        let page = operator.audit(after, PAGE).map_err(|error| error.to_string())?;
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    same("audit entries read", &entries.len(), &(model.audit.len() + 1))?;
    same("genesis", &entries[0].operation.as_str(), &"create")?;
    for (place, (found, entry)) in entries.iter().skip(1).zip(&model.audit).enumerate() {
        let what = format!("audit entry {}", place + 1);
        same(&what, &found.sequence, &(place as u64 + 1))?;
        same(&what, &found.time, &entry.time)?;
        same(&what, &found.operation.as_str(), &entry.operation)?;
        same(&what, &found.subjects, &entry.subjects)?;
        same(&what, &found.decision.as_str(), &entry.decision)?;
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
