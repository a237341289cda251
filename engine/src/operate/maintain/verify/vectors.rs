//! Verifies the vectors beside the log: each is undamaged, is listed by its grain, and fits its space; the
//! serving space exists.

use redb::{ReadableTableMetadata, TableError};

use super::VerifyContext;
use super::log::for_each_row;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation, increment};
use crate::base::error::Result;
use crate::disk::layout::{self, RemovedVectors, StoredVector};

const VECTORS: &str = "vectors";
const ROWS: &str = "vector_rows";
const SPACES: &str = "vector_spaces";
const LEAVING: &str = "vector_leaving";
const SERVING: &str = "meta serving";
const GONE: &str = "meta vectors_gone";

/// Checks the vector lists of grains, and every vector in them. A store that never had one has no tables of
/// them.
pub(super) fn check_vectors(
    check: &VerifyContext<'_>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    check_serving(check, findings)?;
    let table = match check.view.transaction().open_table(layout::VECTORS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        opened => opened?,
    };
    let spaces = findings.value_or_problem(
        ProblemKind::Vector,
        ProblemLocation::All(SPACES),
        check.view.spaces(),
    )?;
    let leaving = findings.value_or_problem(
        ProblemKind::Vector,
        ProblemLocation::All(LEAVING),
        check.view.retired_spaces(),
    )?;
    let mut listed = 0_u64;
    for_each_row(
        check,
        layout::VECTOR_ROWS,
        (ProblemKind::Vector, ROWS),
        findings,
        |findings, at, rows| {
            let place = ProblemLocation::Row(ROWS, at.get());
            let rows =
                findings.value_or_problem(ProblemKind::Vector, place, layout::decode_rows(rows))?;
            for row in rows.unwrap_or_default() {
                let place = ProblemLocation::Row(VECTORS, row);
                let Some(bytes) = table.get(row)? else {
                    findings.add(
                        ProblemKind::Vector,
                        place,
                        format!("place {} lists it", at.get()),
                    );
                    continue;
                };
                listed += 1;
                increment(&mut findings.checked.vectors);
                let opened = findings.value_or_problem(
                    ProblemKind::Vector,
                    place,
                    StoredVector::open(row, bytes.value(), check.view.vault()),
                )?;
                let Some(StoredVector { space, sequence, vector, .. }) = opened else { continue };
                if sequence != at {
                    let detail =
                        format!("it is of place {}, and {} lists it", sequence.get(), at.get());
                    findings.add(ProblemKind::Vector, place, detail);
                }
                let both = spaces.zip(leaving.as_ref());
                let known = both
                    .map(|(spaces, leaving)| spaces.get(&space).or_else(|| leaving.get(&space)));
                if let Some(known) = known
                    && known.is_none_or(|known| known.admit(&vector).is_err())
                {
                    findings.add(
                        ProblemKind::Vector,
                        place,
                        format!("it is none of space {space}"),
                    );
                }
            }
            Ok(())
        },
    )?;
    let all = table.len()?;
    if all > listed {
        let detail = format!("{} vectors are listed by no grain", all - listed);
        findings.add(ProblemKind::Vector, ProblemLocation::All(VECTORS), detail);
    }
    Ok(())
}

/// Checks the rows about spaces in the meta table.
fn check_serving(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    let meta = check.view.transaction().open_table(layout::META)?;
    if let Some(row) = meta.get(layout::META_REMOVED_VECTORS)? {
        findings.value_or_problem(
            ProblemKind::Vector,
            ProblemLocation::All(GONE),
            RemovedVectors::open(row.value()),
        )?;
    }
    let Some(row) = meta.get(layout::META_SERVING)? else { return Ok(()) };
    let place = ProblemLocation::All(SERVING);
    let number =
        findings.value_or_problem(ProblemKind::Vector, place, layout::open_serving(row.value()))?;
    // Unreadable spaces are reported elsewhere.
    if let (Some(number), Ok(spaces)) = (number, check.view.spaces())
        && !spaces.contains_key(&number)
    {
        findings.add(ProblemKind::Vector, place, format!("there is no space {number}"));
    }
    Ok(())
}
