//! The table of targets: what was measured, beside what, and whether it is enough.

use std::fmt::Display;
use std::io::{self, Write};

use crate::Result;

/// What is enough.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// This much or less.
    AtMost(f64),
    /// This much or more.
    AtLeast(f64),
    /// A figure for comparison.
    None,
}

/// Prints the head.
pub(crate) fn head() -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "| work | measured | beside | target | figure | |\n|---|---|---|---|---|---|")?;
    Ok(())
}

/// Prints a row: `figure` is what the target is about.
pub(crate) fn row(
    work: impl Display,
    measured: impl Display,
    beside: impl Display,
    (figure, target): (f64, Target),
) -> Result<()> {
    let (wanted, verdict) = match target {
        Target::AtMost(most) => (format!("at most {most}"), verdict(figure <= most)),
        Target::AtLeast(least) => (format!("at least {least}"), verdict(figure >= least)),
        Target::None => (String::new(), ""),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "| {work} | {measured} | {beside} | {wanted} | {figure:.4} | {verdict} |")?;
    out.flush()?;
    Ok(())
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}
