//! Verifies blobs and rows of applications: each is undamaged, lies under its own key and is listed by its owner,
//! and no owner lists what there is not.

use redb::ReadableTable;

use super::VerifyContext;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation, increment};
use crate::base::error::Result;
use crate::disk::layout::{self, BlobHead, OwnedLink, RowOwner};
use crate::disk::truth_tables::TruthTable;

const KIND: ProblemKind = ProblemKind::Application;

/// Checks all of them. A store that never had one has no tables of them.
pub(super) fn check(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    check_blobs(check, findings)?;
    check_rows(check, findings)?;
    check_owned(check, findings)
}

fn check_blobs(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    let name = TruthTable::Blobs.name();
    findings.run_part(KIND, ProblemLocation::All(name), |findings| {
        let Some(table) = check.view.keyed(layout::BLOBS)? else { return Ok(()) };
        let mut chunks = 0_u64;
        for (number, row) in (0..).zip(table.iter()?) {
            let (key, row) = row?;
            let (key, row) = (key.value(), row.value());
            increment(&mut findings.checked.application_blobs);
            let place = ProblemLocation::Key(name, key);
            let opened = layout::open_owned((TruthTable::Blobs, key), row, check.view.vault());
            let head = opened.and_then(|(owner, body)| Ok((owner, BlobHead::decode(&body)?)));
            let head = findings.value_or_problem(KIND, place, head)?;
            let Some((owner, head)) = head else { continue };
            chunks = chunks.saturating_add(u64::from(head.chunks()));
            check_listed(check, findings, (TruthTable::Blobs, key), &owner)?;
            if check.takes(number) {
                findings.value_or_problem(KIND, place, check.view.read_blob(key, row))?;
            }
        }
        let stored = check.view.keyed_len(layout::BLOB_CHUNKS)?;
        if stored > chunks {
            let detail = format!("{} chunks are of no blob", stored - chunks);
            let place = ProblemLocation::All(TruthTable::BlobChunks.name());
            findings.add(KIND, place, detail);
        }
        Ok(())
    })
}

fn check_rows(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    let name = TruthTable::ApplicationRows.name();
    findings.run_part(KIND, ProblemLocation::All(name), |findings| {
        let Some(table) = check.view.keyed(layout::APPLICATION_ROWS)? else { return Ok(()) };
        for row in table.iter()? {
            let (key, row) = row?;
            let key = key.value();
            increment(&mut findings.checked.application_rows);
            let opened = check.view.open_application_row(key, row.value());
            let place = ProblemLocation::Key(name, key);
            let opened = findings.value_or_problem(KIND, place, opened)?;
            let Some((owner, _)) = opened else { continue };
            check_listed(check, findings, (TruthTable::ApplicationRows, key), &owner)?;
        }
        Ok(())
    })
}

/// Checks that the owner of a row lists it: an erasure finds it there alone.
fn check_listed(
    check: &VerifyContext<'_>,
    findings: &mut ProblemCollector,
    (table, key): (TruthTable, &[u8]),
    owner: &RowOwner,
) -> Result<()> {
    let Some(link) = owner.link(table, key) else { return Ok(()) };
    let owned = check.view.keyed(layout::OWNED)?;
    let is_listed =
        owned.map(|owned| Ok::<_, redb::StorageError>(owned.get(link.as_slice())?.is_some()));
    if !is_listed.transpose()?.unwrap_or_default() {
        let detail = "its owner does not list it, so that an erasure would not find it";
        findings.add(KIND, ProblemLocation::Key(table.name(), key), detail);
    }
    if let Some(grain) = owner.grain
        && (!check.is_in_log(grain)? || check.is_erased(grain)?)
    {
        let detail = format!("it belongs to place {}, where there is no grain", grain.get());
        findings.add(KIND, ProblemLocation::Key(table.name(), key), detail);
    }
    Ok(())
}

/// Checks that what owners list is there, and theirs.
fn check_owned(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    let name = TruthTable::Owned.name();
    findings.run_part(KIND, ProblemLocation::All(name), |findings| {
        let Some(owned) = check.view.keyed(layout::OWNED)? else { return Ok(()) };
        let blobs = check.view.keyed(layout::BLOBS)?;
        let rows = check.view.keyed(layout::APPLICATION_ROWS)?;
        for link in owned.iter()? {
            let (link, _) = link?;
            let link = link.value();
            let place = ProblemLocation::Key(name, link);
            let decoded = findings.value_or_problem(KIND, place, OwnedLink::decode(link))?;
            let Some(OwnedLink { prefix, table, key }) = decoded else { continue };
            let table = if table == TruthTable::Blobs { &blobs } else { &rows };
            let row = match table {
                Some(table) => table.get(key.as_slice())?,
                None => None,
            };
            let owner = row.map(|row| RowOwner::split(row.value()).map(|(owner, _)| owner));
            if !owner.is_some_and(|owner| owner.is_ok_and(|owner| owner.prefix() == prefix)) {
                findings.add(KIND, place, "it leads to nothing of this owner");
            }
        }
        Ok(())
    })
}
