//! Checks of what the audit log says of CAL, and of the grains it tells of.

use std::sync::Arc;

use grainstore_cal::Tier;
use grainstore_format::{ContentAddress, Encoding, Grain, Value, decode_value};
use sha2::{Digest, Sha256};

use super::super::errand::Errand;
use super::{Checked, ENTRIES, Subject};
use crate::audit::{AuditEntry, AuditRecord, Operation};
use crate::error::Result;
use crate::keys;

/// What an entry may tell of a call.
const TOLD: [&str; 15] = [
    "query_hash",
    "statement",
    "tier",
    "duration_ms",
    "token_id",
    "namespace",
    "agent",
    "result_count",
    "code",
    "stream_enabled",
    "stream_options",
    "events_emitted",
    "cancelled",
    "cancel_reason",
    "sources_failed",
];

impl Subject {
    /// What CAL wrote, newest last.
    fn written(&self) -> impl Iterator<Item = &AuditEntry> {
        self.entries.iter().filter(|entry| {
            entry.decision == "done"
                && ["put", "supersede"].contains(&entry.operation.as_str())
                && entry.call.as_ref().is_some_and(|call| call.tier == 1)
        })
    }

    /// The grain an entry tells of last, while it is there to be seen.
    fn new_grain(&self, entry: &AuditEntry) -> Result<Option<Grain>> {
        let Some(address) = entry.subjects.last() else { return Ok(None) };
        self.session.lookup(&self.view, address)?.map(|stored| stored.grain()).transpose()
    }
}

/// A call comes out of an entry as it went in: one is made, and not written.
pub(super) fn audit_logging(subject: &Subject) -> Checked {
    let query = b"DESCRIBE server";
    let errand = Arc::new(Errand::of(&subject.session, query, None, Tier::Read));
    let call = Some(errand.note().over(Some(7), Some("CAL-E031".to_owned())));
    let record = AuditRecord::of(Operation::Cal, Vec::new());
    let mut chain = subject.view.chain_before_genesis()?.with_vault(subject.view.vault().clone());
    let (_, bytes) = chain.link(&AuditRecord { call, ..record }, subject.session.now());
    let hash = ContentAddress::from_bytes(Sha256::digest(query).into());
    let expected = *chain.vault().address(&hash).as_bytes();
    let told = AuditEntry::decode(&bytes)?.call.is_some_and(|call| {
        call.query_hash == expected
            && call.statement.as_deref() == Some("describe")
            && (call.tier, call.result_count) == (0, Some(7))
            && call.code.as_deref() == Some("CAL-E031")
    });
    let there = subject.entries.iter().filter(|entry| entry.call.is_some()).count();
    match told && errand.is_told() {
        true => Ok(Ok(format!("calls have their entries, {there} of the last {ENTRIES}"))),
        false => Ok(Err("an entry does not tell of its call".to_owned())),
    }
}

/// What CAL wrote has its statement, its grains and its reason in the entry.
pub(super) fn tier1_audit(subject: &Subject) -> Checked {
    let mut looked = 0_usize;
    for entry in subject.written() {
        looked += 1;
        let call = entry.call.as_ref();
        let named = call.and_then(|call| call.statement.as_deref());
        let whole = named.is_some_and(|name| ["add", "supersede", "revert"].contains(&name))
            && !entry.subjects.is_empty()
            && (entry.reason.is_some() || subject.view.is_reason_erased(entry.sequence)?);
        if !whole {
            let at = entry.sequence;
            return Ok(Err(format!("entry {at} does not say what was written, or why")));
        }
    }
    Ok(Ok(format!("{looked} of the last writes by CAL say what and why")))
}

/// What superseded says what it comes from.
pub(super) fn provenance_tracking(subject: &Subject) -> Checked {
    let mut looked = 0_usize;
    for entry in subject.written().filter(|entry| entry.operation == "supersede") {
        let (Some(old), Some(grain)) = (entry.subjects.first(), subject.new_grain(entry)?) else {
            continue;
        };
        looked += 1;
        let parents = grain.get("derived_from").and_then(Value::as_array).unwrap_or_default();
        let old = old.to_string();
        if !parents.iter().filter_map(Value::as_str).any(|parent| parent.ends_with(&old)) {
            let at = entry.sequence;
            return Ok(Err(format!("what entry {at} tells of does not say what it comes from")));
        }
    }
    Ok(Ok(format!("{looked} of the last successors by CAL say what they come from")))
}

/// What CAL wrote says that an agent inferred it, or what else it comes from.
pub(super) fn ai_marking(subject: &Subject) -> Checked {
    let mut looked = 0_usize;
    for entry in subject.written().filter(|entry| entry.operation == "put") {
        let Some(grain) = subject.new_grain(entry)? else { continue };
        looked += 1;
        if grain.text("source_type").is_none_or(str::is_empty) {
            let at = entry.sequence;
            return Ok(Err(format!("what entry {at} tells of has no source_type")));
        }
    }
    Ok(Ok(format!("{looked} of the last grains by CAL say who inferred them")))
}

/// Entries tell of queries by their hash, and have no room for their text.
pub(super) fn phi_in_queries(subject: &Subject) -> Checked {
    let (count, _) = subject.session.audit_head()?;
    let view = subject.session.view()?;
    let mut looked = 0_usize;
    for row in view.audit()?.range(count.saturating_sub(ENTRIES)..keys::AUDIT_HEAD)? {
        let (sequence, bytes) = row?;
        let Ok(Value::Map(entry)) = decode_value(bytes.value(), Encoding::MessagePack) else {
            continue;
        };
        let Some(Value::Map(call)) = entry.get("call") else { continue };
        looked += 1;
        let hash = matches!(call.get("query_hash"), Some(Value::Bytes(hash)) if hash.len() == 32);
        if !hash || call.keys().any(|name| !TOLD.contains(&name.as_str())) {
            let at = sequence.value();
            return Ok(Err(format!("entry {at} tells more of a query than its hash")));
        }
    }
    Ok(Ok(format!("{looked} of the last calls are told by the hash of their query alone")))
}
