//! Verifies that the audit log is one chain from its genesis to its head, and that it agrees with the log.
//!
//! The sequences it mentions are held as one bit each.

use std::collections::BTreeMap;

use grainstore_format::{ContentAddress, Encoding, Map, Value, decode_value};
use grainstore_index::Sequence;
use redb::ReadableTable;
use sha2::{Digest, Sha256};

use super::VerifyContext;
use super::marks::AuditedMarks;
use super::problems::{MAX_PROBLEMS, ProblemCollector, ProblemKind, ProblemLocation, increment};
use super::segments::SegmentWalk;
use super::sequence_set::SequenceSet;
use crate::base::error::{Error, Result};
use crate::disk::layout::{self, AuditHead, RowKey, StateRecord};
use crate::state::audit::{AuditEntry, CarriedCounts, ImportSummary, ReadLogSummary};
use crate::state::audit_rows::AuditRow;
use crate::state::truth::LogRow;
use crate::write::plan::SUCCESSOR_GONE;

const AUDIT: &str = "audit";
const LOG: &str = "log";
const REASONS: &str = "reasons";
const REFUSALS: &str = "meta refusals";
/// The rules by which one supersession takes the place of another: an earlier one from an import, and a withdrawal
/// where the successor is not stored.
const REPLACING_RULES: [&str; 2] = ["earlier", SUCCESSOR_GONE];

/// The facts about the log that the audit log states.
pub(super) struct AuditedFacts {
    stored: SequenceSet,
    pub(super) superseded: SequenceSet,
    /// Imported with a state that a file stated, which no entry records.
    pub(super) imported: SequenceSet,
    pub(super) marks: AuditedMarks,
    /// Supersessions that differ from the stored states, by the grain that ended: audit entry and message. An
    /// earlier one from an import may have replaced them.
    replaced: BTreeMap<Sequence, (u64, String)>,
    /// Records of the read log's head.
    pub(super) reads: Vec<ReadLogSummary>,
}

/// Checks the row with counts of refusals.
fn check_carried(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    if let Some(row) = check.view.carried_refusals()? {
        let counts = CarriedCounts::open(&row);
        findings.value_or_problem(ProblemKind::Audit, ProblemLocation::All(REFUSALS), counts)?;
    }
    Ok(())
}

/// Checks the chain. Returns the facts it states about a log of `places` entries, `None` if it could not be
/// read to its end.
pub(super) fn check(
    check: &VerifyContext<'_>,
    places: u64,
    findings: &mut ProblemCollector,
) -> Result<Option<AuditedFacts>> {
    let none = || SequenceSet::with_length(places);
    let mut told = AuditedFacts {
        stored: none(),
        superseded: none(),
        imported: none(),
        marks: AuditedMarks::with_length(places),
        replaced: BTreeMap::new(),
        reads: Vec::new(),
    };
    let mut whole = false;
    findings.run_part(ProblemKind::Audit, ProblemLocation::All(AUDIT), |findings| {
        check_chain(check, &mut told, findings)?;
        check_carried(check, findings)?;
        whole = true;
        Ok(())
    })?;
    findings.run_part(ProblemKind::Audit, ProblemLocation::All(REASONS), |findings| {
        check_reasons(check, findings)
    })?;
    if !whole {
        return Ok(None);
    }
    for (entry, detail) in std::mem::take(&mut told.replaced).into_values() {
        findings.add(ProblemKind::Unaudited, ProblemLocation::Row(AUDIT, entry), detail);
    }
    for place in told.stored.missing() {
        let detail = "no audit entry tells that it was written";
        findings.add(ProblemKind::Unaudited, ProblemLocation::Row(LOG, place.get()), detail);
    }
    Ok(Some(told))
}

fn check_chain(
    check: &VerifyContext<'_>,
    told: &mut AuditedFacts,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let rows = check.view.audit_rows()?;
    let stored = rows.stored_head();
    // A damaged head is told of once the entries are.
    let count = stored.as_ref().map_or(u64::MAX, |stored| stored.count);
    let mut end = check.view.chain_before_genesis()?.head();
    let mut segments = SegmentWalk::default();
    let (mut is_behind, mut at_stored) = (false, end);
    for row in rows.every_row()? {
        let AuditRow { number, entry: bytes, beside } = row?;
        is_behind |= beside.is_none() && number >= count;
        if check_row(&mut end, number, &bytes, findings)?.is_some() {
            let entry = check.view.decode_audit_entry(&bytes)?;
            segments.advance(&entry, findings);
            if let Some(at) = beside {
                check_place(check, &entry, Sequence::new(at), findings)?;
            }
            told.reads.extend(entry.reads);
            compare_entry(check, &entry, told, findings)?;
        } else {
            segments.skip();
        }
        if end.count <= count {
            at_stored = end;
        }
    }
    let (stored, last) = (stored?, rows.head()?);
    // Entries beside grains may come behind the head that is stored, which is the end of those before them.
    match is_behind {
        true => add_behind_head(&stored, findings),
        false if at_stored != stored => check_head(&at_stored, &stored, findings),
        false => check_head(&end, &last, findings),
    }
    segments.finish(check.view.open_segment_row()?, findings)
}

/// Checks that an entry in a row of the log is that of the write that brought the grain there.
fn check_place(
    check: &VerifyContext<'_>,
    entry: &AuditEntry,
    at: Sequence,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let is_of_write = entry.decision == "done" && ["put", "supersede"].contains(&&*entry.operation);
    let brought = entry.subjects.last().filter(|_| is_of_write);
    let brought = brought.map(|address| check.view.sequence_in_audit(address)).transpose()?;
    if brought.flatten() != Some(at) {
        let detail = format!("it lies beside the grain at {}, which it did not bring", at.get());
        findings.add(ProblemKind::Audit, ProblemLocation::Row(AUDIT, entry.sequence), detail);
    }
    Ok(())
}

/// Advances the chain by a row. Returns the entry, if it can be decoded.
fn check_row(
    end: &mut AuditHead,
    key: u64,
    bytes: &[u8],
    findings: &mut ProblemCollector,
) -> Result<Option<AuditEntry>> {
    increment(&mut findings.checked.audit_entries);
    let place = ProblemLocation::Row(AUDIT, key);
    let mut entry = None;
    if let Some(fields) = findings.value_or_problem(ProblemKind::Audit, place, fields(bytes))? {
        check_link(end, key, &fields, findings);
        entry = findings.value_or_problem(ProblemKind::Audit, place, AuditEntry::decode(bytes))?;
    }
    *end = AuditHead { count: key.saturating_add(1), hash: Sha256::digest(bytes).into() };
    Ok(entry)
}

/// Returns the problems of a chain by itself, without its log: rows in key order.
#[cfg(feature = "fuzzing")]
pub(crate) fn problems_of<'r>(
    genesis: AuditHead,
    rows: impl IntoIterator<Item = (u64, &'r [u8])>,
    head: &AuditHead,
) -> Result<Vec<super::Problem>> {
    let mut findings = ProblemCollector::default();
    let mut end = genesis;
    for (key, bytes) in rows {
        check_row(&mut end, key, bytes, &mut findings)?;
    }
    check_head(&end, head, &mut findings);
    Ok(findings.finish(true).problems)
}

/// Checks an entry against the end of the chain before it. If its link does not match, the previous entry is
/// reported: an edited entry is not the one that the next was linked to.
fn check_link(end: &AuditHead, key: u64, fields: &Map, findings: &mut ProblemCollector) {
    let place = ProblemLocation::Row(AUDIT, key);
    if fields.get("sequence").and_then(Value::as_i64) != i64::try_from(key).ok() {
        findings.add(ProblemKind::Audit, place, "it says it is another entry");
    }
    if key > end.count {
        let detail = format!("entries {} to {} before it are missing", end.count, key - 1);
        findings.add(ProblemKind::Audit, place, detail);
    } else if fields.get("previous") != Some(&Value::Bytes(end.hash.to_vec())) {
        match key.checked_sub(1) {
            Some(before) => {
                let detail = format!("it is not the entry that {key} was linked to");
                findings.add(ProblemKind::Audit, ProblemLocation::Row(AUDIT, before), detail);
            }
            None => findings.add(ProblemKind::Audit, place, "it is not the genesis of this store"),
        }
    }
}

/// Checks the head against the last entry of the chain.
fn check_head(end: &AuditHead, head: &AuditHead, findings: &mut ProblemCollector) {
    if head.count > end.count {
        let detail = format!("entries {} to {} are missing", end.count, head.count - 1);
        findings.add(ProblemKind::Audit, ProblemLocation::Row(AUDIT, end.count), detail);
    } else if head.count < end.count {
        add_behind_head(head, findings);
    } else if head.hash != end.hash {
        let last = ProblemLocation::Row(AUDIT, end.count.saturating_sub(1));
        findings.add(ProblemKind::Audit, last, "it is not the entry the head was made of");
    }
}

fn add_behind_head(head: &AuditHead, findings: &mut ProblemCollector) {
    let detail = "it stands behind the head of the chain";
    findings.add(ProblemKind::Audit, ProblemLocation::Row(AUDIT, head.count), detail);
}

fn fields(bytes: &[u8]) -> Result<Map> {
    match decode_value(bytes, Encoding::MessagePack) {
        Ok(Value::Map(fields)) => Ok(fields),
        _ => Err(Error::integrity("an audit entry is no map")),
    }
}

/// Compares the facts in an entry with the log.
fn compare_entry(
    check: &VerifyContext<'_>,
    entry: &AuditEntry,
    told: &mut AuditedFacts,
    findings: &mut ProblemCollector,
) -> Result<()> {
    if entry.decision != "done" {
        return Ok(());
    }
    let place = ProblemLocation::Row(AUDIT, entry.sequence);
    match (entry.operation.as_str(), entry.subjects.as_slice()) {
        ("put", written) => {
            for address in written {
                find_sequence(check, address, place, findings)?.map(|at| told.stored.add(at));
            }
        }
        ("sign", [address]) => compare_signature(check, address, place, findings)?,
        ("contradict" | "end" | "set_verification" | "hold" | "lift_hold", [address]) => {
            if let Some(at) = find_sequence(check, address, place, findings)? {
                told.marks.add_entry(entry, at);
            }
        }
        ("supersede", [old, new]) => {
            compare_supersession(check, entry, [old, new], told, findings)?;
        }
        ("erase", erased) => {
            for address in erased {
                if let Some(at) = find_sequence(check, address, place, findings)?
                    && !check.is_erased(at)?
                {
                    let detail = format!("{address} was erased, and is still in the log");
                    findings.add(ProblemKind::Unaudited, place, detail);
                }
            }
        }
        ("import", _) => {
            if let Some(note) = &entry.import {
                compare_import(check, note, place, told, findings)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Compares the fact of a signature with the stored envelope.
fn compare_signature(
    check: &VerifyContext<'_>,
    address: &ContentAddress,
    place: ProblemLocation<'_>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let Some(at) = find_sequence(check, address, place, findings)? else { return Ok(()) };
    if check.is_erased(at)? {
        return Ok(());
    }
    let kept =
        findings.value_or_problem(ProblemKind::Signature, place, check.view.wrapping_at(at))?;
    if kept.is_some_and(|kept| !kept.is_some_and(|wrapping| wrapping.valid)) {
        let detail = format!("no valid signature is kept with {address}");
        findings.add(ProblemKind::Signature, place, detail);
    }
    Ok(())
}

/// Compares the fact of a supersession with the log, and with the state of the grain it replaced.
fn compare_supersession(
    check: &VerifyContext<'_>,
    entry: &AuditEntry,
    [old, new]: [&ContentAddress; 2],
    told: &mut AuditedFacts,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let place = ProblemLocation::Row(AUDIT, entry.sequence);
    if let Some(at) = find_sequence(check, new, place, findings)? {
        told.stored.add(at);
        told.marks.add_supersession(entry, at);
    }
    let Some(at) = find_sequence(check, old, place, findings)? else { return Ok(()) };
    told.superseded.add(at);
    if check.is_erased(at)? {
        return Ok(());
    }
    let record =
        findings.value_or_problem(ProblemKind::State, place, check.view.state_record_at(at))?;
    let Some(StateRecord { state, ended_by_entry: since }) = record else { return Ok(()) };
    // What stands for an erased grain in an encrypted store is the token of its address.
    let is_new = |by: ContentAddress| {
        by == *new || check.view.vault().address_key(&by).as_bytes() == new.as_bytes()
    };
    if !state.superseded_by.is_some_and(is_new) {
        let detail = format!("the state of {old} is not that {new} superseded it");
        // Bounded, since only the first problems are listed.
        if told.replaced.len() < MAX_PROBLEMS {
            told.replaced.insert(at, (entry.sequence, detail));
        } else {
            findings.add(ProblemKind::Unaudited, place, detail);
        }
        return Ok(());
    }
    if entry.rules.iter().any(|rule| REPLACING_RULES.contains(&rule.as_str())) {
        told.replaced.remove(&at);
    }
    if since > entry.sequence {
        let detail = format!("the state of {old} says it was current until entry {since}");
        findings.add(ProblemKind::State, place, detail);
    }
    Ok(())
}

/// Compares the grains of an import with the digest of their addresses.
fn compare_import(
    check: &VerifyContext<'_>,
    note: &ImportSummary,
    place: ProblemLocation<'_>,
    told: &mut AuditedFacts,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let mut digest = Sha256::new();
    let (mut count, mut is_known) = (0, true);
    for row in check.log.range(note.first..note.first.saturating_add(note.added))? {
        let (at, row) = row?;
        let at = at.value();
        for places in [&mut told.stored, &mut told.imported] {
            places.add(Sequence::new(at));
        }
        // An unreadable row was reported by the check of the log, and makes the count differ here.
        let place = Sequence::new(at);
        let doubt = |error| check.view.doubt_erased(place, error);
        match LogRow::open(place, row.value(), check.view.vault(), doubt) {
            Ok(LogRow::Blob(blob)) => {
                digest
                    .update(check.view.vault().address_key(&ContentAddress::of(&blob)).as_bytes());
            }
            Ok(LogRow::Erased(address)) => {
                // Its address was lost with its key, so the digest cannot be compared.
                is_known &= address != check.view.vault().lost_address_key(Sequence::new(at));
                digest.update(address.as_bytes());
            }
            Err(_) => continue,
        }
        count += 1;
    }
    if count != note.added || is_known && <[u8; 32]>::from(digest.finalize()) != note.digest {
        let last = note.first.saturating_add(note.added).saturating_sub(1);
        let detail = format!("places {} to {last} are not the grains it tells of", note.first);
        findings.add(ProblemKind::Unaudited, place, detail);
    }
    Ok(())
}

fn find_sequence(
    check: &VerifyContext<'_>,
    address: &ContentAddress,
    place: ProblemLocation<'_>,
    findings: &mut ProblemCollector,
) -> Result<Option<Sequence>> {
    let at = check.view.sequence_in_audit(address)?;
    if at.is_none() {
        let detail = format!("the log does not have {address}, which it tells of");
        findings.add(ProblemKind::Unaudited, place, detail);
    }
    Ok(at)
}

/// Checks the reasons. One may have been erased; a stored one must be the one that was given.
fn check_reasons(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    let table = check.view.transaction().open_table(layout::REASONS)?;
    let entries = check.view.audit_rows()?;
    let chain = check.view.chain_before_genesis()?;
    for row in table.iter()? {
        let (key, envelope) = row?;
        let key = key.value();
        let place = ProblemLocation::Row(REASONS, key);
        increment(&mut findings.checked.reasons);
        let opened = check.view.vault().open(RowKey::reason(key), envelope.value());
        let Some(text) = findings.value_or_problem(ProblemKind::Audit, place, opened)? else {
            continue;
        };
        let given = entries.get(key)?;
        let given = given.and_then(|entry| fields(&entry).ok()?.remove("reason_hash"));
        if given != Some(Value::Bytes(chain.reason_hash(&text).to_vec())) {
            findings.add(ProblemKind::Audit, place, "its entry was given another reason, or none");
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
