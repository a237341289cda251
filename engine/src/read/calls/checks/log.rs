//! Checks of what the audit log says of CAL, and of the grains it tells of.

use grainstore_cal as cal;
use grainstore_format::{ContentAddress, Encoding, Grain, Value, decode_value};
use sha2::{Digest, Sha256};

use super::{Checked, ENTRIES, Subject};
use crate::base::error::Result;
use crate::disk::keys;
use crate::state::audit::AuditEntry;
use crate::write::reads::ReadsRecorded;

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

/// A call leaves an entry: one is made, and looked for where reads are recorded.
pub(super) fn audit_logging(subject: &Subject) -> Checked {
    let query = "DESCRIBE server";
    let session = &subject.session;
    let recorded = session.store().reads_recorded();
    let before = match recorded {
        ReadsRecorded::ReadLog => session.reads_head()?.map_or(0, |(count, _)| count),
        ReadsRecorded::AuditLog => {
            // A refusal like one of the minute before would be counted with it.
            session.store().flush()?;
            session.audit_head()?.0
        }
        _ => {
            let detail = match session.store().is_read_only() {
                true => "reads are recorded nowhere: the store was opened to be read",
                false => "reads are recorded nowhere: the read log is switched off",
            };
            return Ok(Err(detail.to_owned()));
        }
    };
    // Where CAL is switched off its refusal is what leaves an entry.
    let ended = session.ask(query).err();
    let (after, most) = (before.checked_sub(1), usize::MAX);
    let (log, entries) = match recorded {
        ReadsRecorded::ReadLog => ("read log", session.reads(after, most)?),
        _ => ("audit log", session.audit(after, most)?),
    };
    let hash = ContentAddress::from_bytes(Sha256::digest(query).into());
    let expected = *subject.view.vault().address(&hash).as_bytes();
    let told = entries.iter().filter_map(|entry| entry.call.as_ref()).any(|call| {
        call.query_hash == expected
            && call.statement.as_deref() == Some("describe")
            && call.code.as_deref() == ended.as_ref().map(cal::Error::code)
    });
    match (told, session.store().lost_reads()) {
        (true, 0) => Ok(Ok(format!("a call was made, and its entry is in the {log}"))),
        (true, lost) => Ok(Err(format!("{lost} calls have no entry: the disk took none"))),
        (false, _) => Ok(Err(format!("a call was made, and the {log} does not tell of it"))),
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
