//! Verifies the log, and the tables beside it: signatures, states, roots and access records.
//!
//! Cycles of superseded grains need no check: a successor contains the address of the grain it supersedes,
//! and no two grains can contain each other's hash.

use grainstore_format::{ContentAddress, Flags, GrainRef};
use grainstore_index::Sequence;
use redb::{ReadableTable, TableDefinition, TableError, Value};

use super::VerifyContext;
use super::audit::AuditedFacts;
use super::marks;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation, increment};
use super::row_numbers::RowNumbers;
use crate::base::error::{Error, Result};
use crate::disk::blob::{is_signed, is_withdrawal, stored_grain, with_fields};
use crate::disk::layout::{self, RowKey, SignatureWrapper, StateRecord, Stub};
use crate::state::consent::parse_basis_address;
use crate::state::truth::ok_if_readable;

const LOG: &str = "log";
const STATE: &str = "state";
const ROOTS: &str = "roots";
const ACCESS: &str = "access";
const SIGNATURES: &str = "signatures";
/// Most renewals of a grant before its withdrawal.
const MAX_RENEWALS: usize = 100_000;

/// Checks the log: sequences without a gap, correct checksums, and blobs that are grains.
pub(super) fn check(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    findings.run_part(ProblemKind::Log, ProblemLocation::All(LOG), |findings| {
        let (mut expected, mut numbers) = (1, RowNumbers::default());
        for row in check.log.iter()? {
            let (key, row) = row?;
            let key = key.value();
            let parts = check.view.vault().split_log_row(row.value());
            numbers.check(key, &parts, findings);
            let envelope = parts.envelope;
            if key != expected {
                let detail = format!("the place before it should be {expected}");
                findings.add(ProblemKind::Log, ProblemLocation::Row(LOG, key), detail);
            }
            expected = key.saturating_add(1);
            increment(&mut findings.checked.grains);
            let place = ProblemLocation::Row(LOG, key);
            if Stub::is_stub(envelope) {
                let stub = Stub::open(Sequence::new(key), envelope, check.view.vault());
                if findings.value_or_problem(ProblemKind::Log, place, stub)?.is_some() {
                    increment(&mut findings.checked.erased);
                }
                continue;
            }
            if check.is_lost(envelope) {
                increment(&mut findings.checked.erased);
                continue;
            }
            let row = RowKey::log(Sequence::new(key));
            let opened = check.view.vault().open(row, envelope);
            let blob = findings.value_or_problem(ProblemKind::Log, place, opened)?;
            let blob = blob.as_deref();
            if let Some(true) = blob.and_then(|blob| is_signed(blob).ok())
                && !check.view.has_wrapping(Sequence::new(key))?
            {
                findings.add(
                    ProblemKind::Signature,
                    place,
                    "its signed flag is set, but no signature is kept",
                );
            }
            if let Some(blob) = blob.filter(|_| check.takes(key)) {
                increment(&mut findings.checked.blobs);
                if let Err(error) = check_canonical(blob) {
                    findings.add(ProblemKind::Blob, place, error);
                }
            }
        }
        // A damaged head is told of with the chain.
        if let Some(entries) = ok_if_readable(check.view.audit_len())? {
            numbers.check_end(entries, findings);
        }
        Ok(())
    })
}

/// Checks that a blob decodes, and encodes to the same bytes again. A payload can be compressed in more than
/// one way: then decoding has checked that its content is canonical.
fn check_canonical(blob: &[u8]) -> Result<()> {
    let grain = stored_grain(blob)?;
    let header = grain.decoded_header().copied();
    let again = grain.encode(header.map(|header| header.encoding()).unwrap_or_default())?;
    let compressed = header.is_some_and(|header| header.flags.contains(Flags::COMPRESSED));
    if compressed || again.bytes() == blob {
        return Ok(());
    }
    Err(Error::integrity("encoded again, it has other bytes"))
}

/// Checks the state records.
pub(super) fn check_states(
    check: &VerifyContext<'_>,
    told: Option<&AuditedFacts>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let entries = check.view.audit_len()?;
    for_each_row(
        check,
        layout::STATE,
        (ProblemKind::State, STATE),
        findings,
        |findings, at, record| {
            increment(&mut findings.checked.states);
            let place = ProblemLocation::Row(STATE, at.get());
            let decoded = check.view.vault().decode_state(at, record);
            let Some(record) = findings.value_or_problem(ProblemKind::State, place, decoded)?
            else {
                return Ok(());
            };
            let StateRecord { state, ended_by_entry: since } = record;
            if !state.is_current() && !(1..entries).contains(&since) {
                let detail = format!("not current, by audit entry {since}, which there cannot be");
                findings.add(ProblemKind::State, place, detail);
            }
            if let Some(told) = told {
                marks::compare_state(check, told, at, &state, findings)?;
            }
            let Some(by) = state.superseded_by else { return Ok(()) };
            if told.is_some_and(|told| told.imported.has(at) && !told.superseded.has(at)) {
                return Ok(());
            }
            if let Some(detail) = successor_fault(check, at, &by)? {
                findings.add(ProblemKind::State, place, detail);
            }
            if told.is_some_and(|told| !told.superseded.has(at)) {
                let detail = format!("no audit entry tells that {by} superseded it");
                findings.add(ProblemKind::Unaudited, place, detail);
            }
            Ok(())
        },
    )
}

/// Returns the fault of the successor that a state names, `None` if it is right.
fn successor_fault(
    check: &VerifyContext<'_>,
    at: Sequence,
    by: &ContentAddress,
) -> Result<Option<String>> {
    let Some(successor) = check.view.logged_sequence_of(by)? else {
        return Ok(Some(format!("superseded by {by}, which the log does not have")));
    };
    // The content that could tell is erased, or about to be.
    for place in [successor, at] {
        if check.is_erased(place)? || check.view.is_erased(place)? {
            return Ok(None);
        }
    }
    let old = check.view.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?;
    let (derives, withdrawn) = check.view.with_blob(successor, |blob| {
        with_fields(blob, |grain| {
            let withdrawn = grain.text("prior_consent").filter(|_| is_withdrawal(grain));
            Ok((names_predecessor(grain, &old), withdrawn.and_then(parse_basis_address)))
        })
    })?;
    let ends = derives
        || match withdrawn {
            Some(grant) => is_renewed_as(check, grant, &old)?,
            None => false,
        };
    Ok((!ends).then(|| format!("superseded by {by}, which does not derive from it")))
}

/// Returns `true` if `last` is a renewal of a grant: a withdrawal ends the last version of the one it names.
fn is_renewed_as(
    check: &VerifyContext<'_>,
    grant: ContentAddress,
    last: &ContentAddress,
) -> Result<bool> {
    let mut version = grant;
    for _ in 0..MAX_RENEWALS {
        let Some(at) = check.view.logged_sequence_of(&version)? else { return Ok(false) };
        // The link to the next version was erased with it.
        if check.is_erased(at)? || check.view.is_erased(at)? {
            return Ok(true);
        }
        let Some(next) = check.view.state_at(at)?.superseded_by else { return Ok(false) };
        if next == *last {
            return Ok(true);
        }
        version = next;
    }
    Ok(false)
}

/// Returns `true` if a grain names another as what it replaces: as a parent, or as the grant it withdraws.
fn names_predecessor(grain: &GrainRef<'_>, old: &ContentAddress) -> bool {
    let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
    let parents = parents.into_iter().flat_map(|parents| parents.iter());
    let mut texts = parents
        .filter_map(|parent| parent.as_str())
        .chain(grain.text("prior_consent").map(ContentAddress::digits));
    texts.any(|text| text.parse().is_ok_and(|named: ContentAddress| named == *old))
}

/// Checks that the stored parts around each signed blob form an envelope with it. Signatures are not
/// verified, since the verdict depends on keys that may change.
pub(super) fn check_signatures(
    check: &VerifyContext<'_>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let at = (ProblemKind::Signature, SIGNATURES);
    for_each_row(check, layout::SIGNATURES, at, findings, |findings, at, row| {
        increment(&mut findings.checked.signatures);
        let place = ProblemLocation::Row(SIGNATURES, at.get());
        let opened = findings.value_or_problem(
            ProblemKind::Signature,
            place,
            SignatureWrapper::open(at, row, check.view.vault()),
        )?;
        let (Some(SignatureWrapper { prefix, suffix, .. }), Some(blob)) =
            (opened, check.readable(at)?)
        else {
            return Ok(());
        };
        let envelope = grainstore_format::Envelope::from_parts(&prefix, &blob, &suffix);
        if let Err(error) = envelope.and_then(|envelope| envelope.blob().map(drop)) {
            findings.add(ProblemKind::Signature, place, error);
        }
        Ok(())
    })
}

/// Checks the rows of roots.
pub(super) fn check_roots(
    check: &VerifyContext<'_>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    for_each_row(
        check,
        layout::ROOTS,
        (ProblemKind::Roots, ROOTS),
        findings,
        |findings, at, row| {
            increment(&mut findings.checked.roots);
            let place = ProblemLocation::Row(ROOTS, at.get());
            let decoded = layout::decode_roots(at, row);
            let roots =
                findings.value_or_problem(ProblemKind::Roots, place, decoded)?.unwrap_or_default();
            // Two values are no sequences: the greatest number means more ancestors than a row holds, and 0 that
            // earlier versions have released the grain.
            for root in roots.into_iter().filter(|root| !matches!(root.get(), 0 | u64::MAX)) {
                if !check.is_in_log(root)? {
                    let detail =
                        format!("the log has no place {}, which should protect it", root.get());
                    findings.add(ProblemKind::Roots, place, detail);
                }
            }
            Ok(())
        },
    )
}

/// Checks the access records; a store that never counted an access has no table of them.
pub(super) fn check_access(
    check: &VerifyContext<'_>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    for_each_row(
        check,
        layout::ACCESS,
        (ProblemKind::Access, ACCESS),
        findings,
        |findings, at, record| {
            increment(&mut findings.checked.access);
            let decoded = layout::decode_access(at, record);
            findings
                .value_or_problem(
                    ProblemKind::Access,
                    ProblemLocation::Row(ACCESS, at.get()),
                    decoded,
                )
                .map(drop)
        },
    )
}

/// Calls `each` for every row of a table beside the log, and reports those that belong to no grain.
pub(super) fn for_each_row<V: Value + 'static>(
    check: &VerifyContext<'_>,
    table: TableDefinition<'static, u64, V>,
    (what, name): (ProblemKind, &str),
    findings: &mut ProblemCollector,
    mut each: impl for<'v> FnMut(&mut ProblemCollector, Sequence, V::SelfType<'v>) -> Result<()>,
) -> Result<()> {
    findings.run_part(what, ProblemLocation::All(name), |findings| {
        let table = match check.view.transaction().open_table(table) {
            Err(TableError::TableDoesNotExist(_))
                if matches!(
                    what,
                    ProblemKind::Access | ProblemKind::Signature | ProblemKind::Vector
                ) =>
            {
                return Ok(());
            }
            opened => opened?,
        };
        for row in table.iter()? {
            let (key, row) = row?;
            let at = Sequence::new(key.value());
            if !check.is_in_log(at)? {
                findings.add(what, ProblemLocation::Row(name, at.get()), "it belongs to no grain");
                continue;
            }
            each(findings, at, row.value())?;
        }
        Ok(())
    })
}
