//! `grain policy`: what an invalidation policy demands, and what it would say.

use clap::{Args, Subcommand};
use grainstore::{Explanation, Grain, Offer, Ruling, Trial, explain};
use serde_json::{Value, json};

use crate::context::{Context, find};
use crate::error::{Code, Error, Result};
use crate::input::{MAX_TEXT, Source};
use crate::shape::FORMAT_VERSION;

/// Say what invalidation policies demand
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Explain(Explain),
}

/// Say what the policy of a grain demands and, with --supersede, whether the grain may replace another
///
/// Nothing is written, and nothing goes into the audit log. The exit code is 0 whatever the answer.
#[derive(Debug, Args)]
struct Explain {
    /// A grain as JSON, or a raw blob; - for stdin
    #[arg(value_name = "FILE|-")]
    source: Source,
    /// The stored grain this one is to replace
    #[arg(long, value_name = "ADDRESS")]
    supersede: Option<String>,
    /// The justification that would be given
    #[arg(long, value_name = "TEXT", requires = "supersede")]
    justification: Option<String>,
}

impl Policy {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.command {
            Command::Explain(explain) => explain.run(context),
        }
    }
}

impl Explain {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let bytes = self.source.read(MAX_TEXT, &mut context.output)?;
        // No JSON begins with the version byte of a blob.
        let (grain, offer) = match bytes.first() == Some(&FORMAT_VERSION) {
            true => (Grain::decode(&bytes)?, Offer::Blob(bytes)),
            false => {
                let text = String::from_utf8(bytes).map_err(|_| {
                    Error::new(Code::Corrupt, "neither a blob nor JSON", "give one of them")
                })?;
                let grain = Grain::from_json(&text)?;
                (grain.clone(), Offer::Grain(grain))
            }
        };
        let policy = explain(&grain)?;
        let trial = match &self.supersede {
            None => None,
            Some(old) => {
                let session = context.session()?;
                let old = find(&session, old)?;
                Some(session.try_supersede(&old, offer, self.justification.as_deref())?)
            }
        };
        if context.output.is_json() {
            return context.output.json_line(&json!({
                "policy": policy,
                "decision": trial.as_ref().map(decision),
            }));
        }
        print(context, &policy, trial.as_ref())
    }
}

fn decision(trial: &Trial) -> Value {
    let refusal = trial.refusal.as_ref();
    json!({
        "allowed": refusal.is_none(),
        "needs_review": trial.needs_review,
        "rules": trial.rules,
        "code": refusal.map(grainstore::Error::code),
        "message": refusal.map(ToString::to_string),
        "hint": refusal.map(grainstore::Error::hint),
    })
}

fn print(context: &mut Context<'_>, policy: &Explanation, trial: Option<&Trial>) -> Result<()> {
    let output = &mut context.output;
    output.line(&format!("mode {}, scope {}", policy.mode, policy.scope))?;
    for demand in &policy.demands {
        output.line(&format!("  {demand}"))?;
    }
    for did in &policy.authorized {
        output.line(&format!("  authorized: {did}"))?;
    }
    let Some(Trial { rules, refusal, needs_review, .. }) = trial else { return Ok(()) };
    output.line(match (refusal, needs_review) {
        (Some(_), _) => "the supersession would be refused",
        (None, true) => "the supersession would be done, and the new grain marked for review",
        (None, false) => "the supersession would be done",
    })?;
    for Ruling { rule, passes, text, section, .. } in rules {
        let outcome = if *passes { "passes " } else { "refuses" };
        output.line(&format!("  {outcome}  {rule}: {text} (OMS {section})"))?;
    }
    match refusal {
        Some(error) => output.line(&format!("  {}: {error}", error.code())),
        None => Ok(()),
    }
}
