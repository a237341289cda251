//! `grain doctor`: diagnoses the store's environment.

use clap::Args;
use grainstore::{Diagnosis, Health};
use grainstore_rpc::withhold_findings;

use crate::context::{Context, opening_hint};
use crate::error::{Error, Result};
use crate::output::Output;

/// Examine what the store needs around it: rights, room, lock, leftovers, how it was closed
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let mut diagnosis = grainstore::doctor(&context.globals.store, &context.options()?);
        for finding in &mut diagnosis.findings {
            if let Some(advice) = finding.code.and_then(opening_hint) {
                finding.advice = Some(advice.to_owned());
            }
        }
        if !context.has_powers() {
            withhold_findings(&mut diagnosis);
        }
        context.output.answer(&diagnosis, |output| show(&diagnosis, output))?;
        match diagnosis.findings.into_iter().find(|finding| finding.health == Health::Bad) {
            Some(bad) => Err(Error::from_finding(bad)),
            None => Ok(()),
        }
    }
}

fn show(diagnosis: &Diagnosis, output: &mut Output<'_>) -> Result<()> {
    for finding in &diagnosis.findings {
        let sign = match finding.health {
            Health::Good => "ok",
            Health::Notice => "note",
            Health::Bad => "BAD",
        };
        output.line(&format!("{sign:<5}{:<10} {}", finding.name, finding.detail))?;
        if let Some(advice) = &finding.advice {
            output.line(&format!("{:16}{advice}", ""))?;
        }
    }
    Ok(())
}
