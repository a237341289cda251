//! `grain doctor`: diagnoses the store's environment.

use std::time::Duration;

use clap::Args;
use grainstore::{Diagnosis, Health};
use grainstore_rpc::withhold_findings;
use serde::Deserialize;
use serde_json::json;

use crate::context::{Context, opening_hint};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::reach::Told;

/// Examine what the store needs around it: rights, room, lock, leftovers, how it was closed
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let told = match self.here(context)? {
            Some(diagnosis) => Told::of(&diagnosis)?,
            None => context.reach()?.call("doctor", &json!({}))?,
        };
        let shown: ShownDiagnosis = told.read()?;
        context.output.answer(&told, |output| show(&shown, output))?;
        match shown.findings.into_iter().find(|finding| finding.health == Health::Bad) {
            Some(bad) => Err(Error::from_finding(bad.code, bad.detail, bad.advice)),
            None => Ok(()),
        }
    }

    /// Examines the store in this process; `None` if another process has it open, which may be asked.
    fn here(&self, context: &mut Context<'_>) -> Result<Option<Diagnosis>> {
        let mut options = context.options()?;
        if !context.globals.exclusive {
            options = options.wait(Duration::ZERO);
        }
        let mut diagnosis = grainstore::doctor(&context.globals.store, &options);
        let is_busy = diagnosis.findings.iter().any(|finding| finding.code == Some("ERR_BUSY"));
        if is_busy && !context.globals.exclusive && context.reach().is_ok() {
            return Ok(None);
        }
        for finding in &mut diagnosis.findings {
            if let Some(advice) = finding.code.and_then(opening_hint) {
                finding.advice = Some(advice.to_owned());
            }
        }
        if !context.has_powers() {
            withhold_findings(&mut diagnosis);
        }
        Ok(Some(diagnosis))
    }
}

/// What is shown of a diagnosis, read from its JSON.
#[derive(Deserialize)]
struct ShownDiagnosis {
    findings: Vec<ShownFinding>,
}

#[derive(Deserialize)]
struct ShownFinding {
    name: String,
    health: Health,
    detail: String,
    code: Option<String>,
    advice: Option<String>,
}

fn show(diagnosis: &ShownDiagnosis, output: &mut Output<'_>) -> Result<()> {
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
