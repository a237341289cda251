//! Self-checks of the audit log: its entries of CAL calls, and the grains they name.

use grainstore_cal as cal;
use grainstore_format::{ContentAddress, Encoding, Grain, Value, decode_value};
use sha2::{Digest, Sha256};

use super::{MAX_EXAMINED_ENTRIES, SelfCheckContext, SelfCheckOutcome};
use crate::base::error::Result;
use crate::read::read_log::ReadsDestination;
use crate::state::audit::AuditEntry;

/// Fields an entry may have about a call.
const ALLOWED_CALL_FIELDS: [&str; 15] = [
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

impl SelfCheckContext {
    /// Entries of writes by CAL, newest last.
    fn cal_writes(&self) -> impl Iterator<Item = &AuditEntry> {
        self.entries.iter().filter(|entry| {
            entry.decision == "done"
                && ["put", "supersede"].contains(&entry.operation.as_str())
                && entry.call.as_ref().is_some_and(|call| call.tier == 1)
        })
    }

    /// The grain an entry names last, if it can still be read.
    fn new_grain(&self, entry: &AuditEntry) -> Result<Option<Grain>> {
        let Some(address) = entry.subjects.last() else { return Ok(None) };
        self.session.lookup(&self.view, address)?.map(|stored| stored.grain()).transpose()
    }
}

/// Checks that a call leaves an entry: runs one, and looks for its entry where reads are recorded.
pub(super) fn audit_logging(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let query = "DESCRIBE server";
    let session = &subject.session;
    let recorded = session.store().reads_recorded();
    let before = match recorded {
        ReadsDestination::ReadLog => session.reads_head()?.map_or(0, |(count, _)| count),
        ReadsDestination::AuditLog => {
            // Flushed first, because a refusal equal to one of the minute before is counted into that entry.
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
    // Where CAL is switched off, the refusal leaves the entry.
    let ended = session.ask(query).err();
    let (after, most) = (before.checked_sub(1), usize::MAX);
    let (log, entries) = match recorded {
        ReadsDestination::ReadLog => ("read log", session.reads(after, most)?),
        _ => ("audit log", session.audit(after, most)?),
    };
    let hash = ContentAddress::from_bytes(Sha256::digest(query).into());
    let expected = *subject.view.vault().address_key(&hash).as_bytes();
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

/// Checks that entries of writes by CAL have their statement, grains and reason.
pub(super) fn tier1_audit(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let mut looked = 0_usize;
    for entry in subject.cal_writes() {
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

/// Checks that grains written by SUPERSEDE name what they derive from.
pub(super) fn provenance_tracking(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let mut looked = 0_usize;
    for entry in subject.cal_writes().filter(|entry| entry.operation == "supersede") {
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

/// Checks that grains written by ADD have a `source_type`, by default that an agent inferred them.
pub(super) fn ai_marking(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let mut looked = 0_usize;
    for entry in subject.cal_writes().filter(|entry| entry.operation == "put") {
        let Some(grain) = subject.new_grain(entry)? else { continue };
        looked += 1;
        if grain.text("source_type").is_none_or(str::is_empty) {
            let at = entry.sequence;
            return Ok(Err(format!("what entry {at} tells of has no source_type")));
        }
    }
    Ok(Ok(format!("{looked} of the last grains by CAL say who inferred them")))
}

/// Checks that entries identify queries by hash only, and have no field with their text.
pub(super) fn phi_in_queries(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let (count, _) = subject.session.audit_head()?;
    let view = subject.session.view()?;
    let mut looked = 0_usize;
    for row in view.audit_rows()?.since(count.saturating_sub(MAX_EXAMINED_ENTRIES))? {
        let (at, bytes) = row?;
        let Ok(Value::Map(entry)) = decode_value(&bytes, Encoding::MessagePack) else {
            continue;
        };
        let Some(Value::Map(call)) = entry.get("call") else { continue };
        looked += 1;
        let hash = matches!(call.get("query_hash"), Some(Value::Bytes(hash)) if hash.len() == 32);
        if !hash || call.keys().any(|name| !ALLOWED_CALL_FIELDS.contains(&name.as_str())) {
            return Ok(Err(format!("entry {at} tells more of a query than its hash")));
        }
    }
    Ok(Ok(format!("{looked} of the last calls are told by the hash of their query alone")))
}
