//! Verifies that each CAL template beside the log is undamaged and a definition.

use redb::TableError;

use super::VerifyContext;
use super::problems::{ProblemCollector, ProblemKind, ProblemLocation, increment};
use crate::base::error::Result;
use crate::disk::layout;
use crate::read::templates::check_row;

const TEMPLATES: &str = "templates";

/// Checks the templates. A store that never had one has no table of them.
pub(super) fn check_templates(
    check: &VerifyContext<'_>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    let table = match check.view.transaction().open_table(layout::TEMPLATES) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        opened => opened?,
    };
    findings.run_part(ProblemKind::Template, ProblemLocation::All(TEMPLATES), |findings| {
        for row in table.range::<u64>(..)? {
            let (key, row) = row?;
            let key = key.value();
            increment(&mut findings.checked.templates);
            let checked = check_row(check.view.vault(), key, row.value());
            findings.value_or_problem(
                ProblemKind::Template,
                ProblemLocation::Row(TEMPLATES, key),
                checked,
            )?;
        }
        Ok(())
    })
}
