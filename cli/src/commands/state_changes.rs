//! `grain contradict`, `set-verification`, `hold`, `lift-hold`: change the state of a grain without writing
//! another.

use std::path::PathBuf;

use clap::Args;
use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_BLOB_BYTES, Source};
use crate::reach::set;

/// The recorded reason if none is given.
const DEFAULT_LIFT_REASON: &str = "lifted on the command line, no reason given";

/// Mark a grain as contradicted, if its invalidation policy lets you: it is no longer current
#[derive(Debug, Args)]
pub(crate) struct Contradict {
    /// 64 hex digits, or the first 8 or more where they name one grain
    address: String,
    /// Why: it goes into the audit log, and is the justification where the policy asks for one
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    proof: Proof,
}

/// Set what review made of a grain: unverified, verified, contested, or, for good, retracted
///
/// What says less for the grain goes through its invalidation policy. Nobody vouches for what is their
/// own: verified is refused to the actor who wrote the grain.
#[derive(Debug, Args)]
pub(crate) struct SetVerification {
    /// 64 hex digits, or the first 8 or more where they name one grain
    address: String,
    /// unverified, verified, contested or retracted
    status: String,
    /// Why: it goes into the audit log, and is the justification where the policy asks for one
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    proof: Proof,
}

/// Put a grain under litigation hold: nothing supersedes, contradicts or erases it
#[derive(Debug, Args)]
pub(crate) struct Hold {
    #[command(flatten)]
    target: Target,
    /// Why: it goes into the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Lift the litigation hold on a grain: as the operator, or with a signature its policy asks for
#[derive(Debug, Args)]
pub(crate) struct LiftHold {
    #[command(flatten)]
    target: Target,
    /// Why: it goes into the audit log
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_LIFT_REASON)]
    reason: String,
    #[command(flatten)]
    proof: Proof,
}

/// The grain a hold is about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// 64 hex digits, or the first 8 or more where they name one grain
    #[arg(value_name = "ADDRESS")]
    place: Option<String>,
    /// The same, as an option
    #[arg(long = "address", value_name = "ADDRESS")]
    option: Option<String>,
}

/// A signature that a policy asks for.
#[derive(Debug, Args)]
struct Proof {
    /// A COSE_Sign1 without a payload over what is done to the grain, where its policy asks for one
    #[arg(long, value_name = "FILE")]
    cose: Option<PathBuf>,
}

impl Contradict {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let how = ("contradict", "contradicted", json!({ "reason": self.reason }));
        mark(context, &self.address, how, Some(self.proof))
    }
}

impl SetVerification {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let Self { address, status, reason, proof } = self;
        let with = json!({ "status": status, "reason": reason });
        mark(context, &address, ("set_verification", &status, with), Some(proof))
    }
}

impl Hold {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let how = ("hold", "held", json!({ "reason": self.reason }));
        mark(context, self.target.digits(), how, None)
    }
}

impl LiftHold {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let how = ("lift_hold", "lifted", json!({ "reason": self.reason }));
        mark(context, self.target.digits(), how, Some(self.proof))
    }
}

impl Target {
    /// Returns the digits, which the parser requires.
    fn digits(&self) -> &str {
        self.place.as_ref().or(self.option.as_ref()).map_or("", String::as_str)
    }
}

/// Marks the grain that these digits name by a method with these parameters, and prints its new standing.
fn mark(
    context: &mut Context<'_>,
    digits: &str,
    (method, standing, mut with): (&str, &str, Value),
    proof: Option<Proof>,
) -> Result<()> {
    let reach = context.reach()?;
    let address = reach.address(digits)?;
    let source = proof.and_then(|proof| proof.cose).map(Source::File);
    let cose = source.map(|source| source.read(MAX_BLOB_BYTES, &mut context.output)).transpose()?;
    set(&mut with, "address", json!(address));
    set(&mut with, "cose", json!(cose.map(|cose| BASE64.encode(&cose))));
    reach.call(method, &with)?;
    let answer = json!({ "address": address, "standing": standing });
    context.output.answer(&answer, |output| output.line(&format!("{standing} {address}")))
}
