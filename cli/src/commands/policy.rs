//! `grain policy`: the rules of the store, and the invalidation policies of grains.

mod cal;
mod rules;

use std::fmt::Display;

use clap::{Args, Subcommand};
use grainstore::{ContentAddress, Grain, Offer};
use grainstore_rpc::{Asked, Explained, FORMAT_VERSION};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::put::{PutFormat, offered};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::{MAX_JSON_BYTES, Source, to_text};
use crate::output::Output;
use crate::reach::{Reach, Told};

/// Show and change the rules of the store, and say what invalidation policies of grains demand
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(Show),
    Set(rules::Set),
    Explain(Explain),
    Cal(cal::Cal),
}

/// Show the rules of the store, of a preset, or what the invalidation policy of a grain means
///
/// Without an argument it shows what the store holds to, each rule with the article it stands on; with the
/// name of a preset the rules of that. Of a grain it says mode, scope, signers, and who may replace it; of a
/// stored one as it stands now: held or not, and superseded or not. What looks like an address, or is the
/// name of a preset, is one, unless there is such a file.
#[derive(Debug, Args)]
struct Show {
    /// open, gdpr, hipaa, sox, ccpa or lgpd; a grain as JSON, or a raw blob; - for stdin; or the address of a
    /// stored grain
    #[arg(value_name = "PRESET|FILE|-|ADDRESS")]
    source: Option<Source>,
    /// What stands in the input; JSON or a raw blob by its first byte, if it is not given
    #[arg(long, value_enum, requires = "source")]
    format: Option<PutFormat>,
}

/// The grain that is asked about.
#[derive(Debug, Args)]
struct Subject {
    /// A grain as JSON, or a raw blob; - for stdin; or the address of a stored grain
    #[arg(value_name = "FILE|-|ADDRESS")]
    source: Source,
    /// What stands in the input; JSON or a raw blob by its first byte, if it is not given
    #[arg(long, value_enum)]
    format: Option<PutFormat>,
}

/// Say what the policy of a grain demands and, with --supersede, whether the grain may replace another
///
/// Nothing is written, and nothing goes into the audit log. The exit code is 0 whatever the answer. What
/// looks like an address is one, unless there is such a file.
#[derive(Debug, Args)]
struct Explain {
    #[command(flatten)]
    subject: Subject,
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
            Command::Show(show) => show.run(context),
            Command::Set(set) => set.run(context),
            Command::Explain(explain) => explain.run(context),
            Command::Cal(cal) => cal.run(context),
        }
    }
}

impl Show {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let Self { source, format } = self;
        let Some(source) = source else {
            let rules = context.reach()?.call("policy_show", &json!({}))?;
            return rules::write_rules(context, &rules);
        };
        if let Some(preset) = rules::named_preset(&source) {
            return rules::write_rules(context, &Told::of(&preset.rules()?)?);
        }
        let reach = source.address().map(|_| context.reach()).transpose()?;
        let is_there = !matches!(&source, Source::File(path) if !path.exists());
        let asked = Subject { source, format }.asked(reach.as_ref(), context);
        let asked = asked.map_err(|error| match is_there {
            true => error,
            false => error.with_hint_for(Code::Io.name(), &rules::preset_hint()),
        })?;
        let shown: Policies = explained(reach.as_ref(), asked)?.read()?;
        context.output.answer(&shown.policy, |output| write_policy(output, &shown.policy.read()?))
    }
}

impl Explain {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let is_stored = self.subject.source.address().is_some();
        let reach = match is_stored || self.supersede.is_some() {
            true => Some(context.reach()?),
            false => None,
        };
        let asked = self.subject.asked(reach.as_ref(), context)?;
        let (Some(reach), Some(old)) = (&reach, &self.supersede) else {
            let told = explained(reach.as_ref(), asked)?;
            return context
                .output
                .answer(&told, |output| write_explanation(output, &told.read()?, None));
        };
        let old = reach.address(old)?;
        let mut params = asked.params()?;
        params.insert("supersede".to_owned(), json!(old));
        params.insert("justification".to_owned(), json!(self.justification));
        let told = reach.call("policy_explain", &params)?;
        context.output.answer(&told, |output| write_explanation(output, &told.read()?, Some(old)))
    }
}

/// Explains a grain: a stored one, or one that is given, which needs no store.
fn explained(reach: Option<&Reach>, about: About) -> Result<Told> {
    match (reach, about) {
        (_, About::Given(offer)) => Told::of(&Explained::of(Asked::Offered(offer), None)?),
        (Some(reach), stored) => reach.call("policy_explain", &stored.params()?),
        (None, About::Stored(_)) => Err(Error::new(Code::NotFound, "no store is open", "")),
    }
}

/// The grain that is asked about.
enum About {
    Stored(ContentAddress),
    Given(Offer),
}

impl About {
    /// The parameters that name it.
    fn params(&self) -> Result<Map<String, Value>> {
        match self {
            Self::Stored(address) => Ok(Map::from_iter([("address".to_owned(), json!(address))])),
            Self::Given(offer) => offered(offer),
        }
    }
}

impl Subject {
    fn asked(&self, reach: Option<&Reach>, context: &mut Context<'_>) -> Result<About> {
        match (self.source.address(), reach) {
            (Some(digits), Some(reach)) => Ok(About::Stored(reach.address(digits)?)),
            _ => Ok(About::Given(self.offer(context)?)),
        }
    }

    fn offer(&self, context: &mut Context<'_>) -> Result<Offer> {
        if let Some(format) = self.format
            && let Some(offer) = format.read(&self.source, &mut context.output)?
        {
            return Ok(offer);
        }
        let bytes = self.source.read(MAX_JSON_BYTES, &mut context.output)?;
        // No JSON begins with the version byte of a blob.
        if self.format.is_none() && bytes.first() == Some(&FORMAT_VERSION) {
            return Ok(Offer::Blob(bytes));
        }
        Ok(Offer::Grain(Grain::from_json(&to_text(bytes)?)?))
    }
}

/// Prints the policy in lines of a name and a value.
fn write_policy(output: &mut Output<'_>, policy: &ShownPolicy) -> Result<()> {
    let closed =
        if policy.fails_closed { ", which is not understood and counts as locked" } else { "" };
    output.line(&format!("mode        {}{closed}", policy.mode))?;
    output.line(&format!("scope       {}", policy.scope))?;
    write_labelled(output, "authorized  ", &policy.authorized)?;
    let fields = [
        ("threshold", policy.threshold.map(|least| least.to_string())),
        ("until", policy.locked_until.map(|until| format!("epoch second {until}"))),
        ("fallback", policy.fallback_mode.clone()),
        ("open to", Some(policy.open_to.clone())),
        ("then to", policy.then_open_to.clone()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            output.line(&format!("{name:<12}{value}"))?;
        }
    }
    write_labelled(output, "means       ", &policy.demands)?;
    write_labelled(output, "warning     ", &policy.warnings)
}

fn write_explanation(
    output: &mut Output<'_>,
    explained: &ShownExplanation,
    old: Option<ContentAddress>,
) -> Result<()> {
    let ShownExplanation { policy, old_policy, decision } = explained;
    let (Some(old), Some(of_old), Some(trial)) = (old, old_policy, decision) else {
        return write_policy_summary(output, "", policy);
    };
    write_policy_summary(output, "policy of the new grain: ", policy)?;
    write_policy_summary(output, &format!("policy of {old}: "), of_old)?;
    write_preview(output, trial)
}

fn write_policy_summary(output: &mut Output<'_>, label: &str, policy: &ShownPolicy) -> Result<()> {
    output.line(&format!("{label}mode {}, scope {}", policy.mode, policy.scope))?;
    write_labelled(output, "  ", &policy.demands)?;
    write_labelled(output, "  authorized: ", &policy.authorized)?;
    write_labelled(output, "  warning: ", &policy.warnings)
}

/// Prints each item on a line after its label.
fn write_labelled(output: &mut Output, label: &str, of: &[impl Display]) -> Result<()> {
    of.iter().try_for_each(|item| output.line(&format!("{label}{item}")))
}

fn write_preview(output: &mut Output<'_>, trial: &Decision) -> Result<()> {
    output.line(match (trial.allowed, trial.needs_review) {
        (false, _) => "the supersession would be refused",
        (true, true) => "the supersession would be done, and the new grain marked for review",
        (true, false) => "the supersession would be done",
    })?;
    for Applied { rule, passes, text, section } in &trial.rules {
        let outcome = if *passes { "passes " } else { "refuses" };
        output.line(&format!("  {outcome}  {rule}: {text} (OMS {section})"))?;
    }
    match (&trial.code, &trial.message) {
        (Some(code), Some(message)) => output.line(&format!("  {code}: {message}")),
        _ => Ok(()),
    }
}

/// The policy of an explanation as it came.
#[derive(Deserialize)]
struct Policies {
    policy: Told,
}

/// What is shown of an explanation, read from its JSON.
#[derive(Deserialize)]
struct ShownExplanation {
    policy: ShownPolicy,
    old_policy: Option<ShownPolicy>,
    decision: Option<Decision>,
}

#[derive(Deserialize)]
struct ShownPolicy {
    mode: String,
    scope: String,
    authorized: Vec<String>,
    threshold: Option<u64>,
    locked_until: Option<u64>,
    fallback_mode: Option<String>,
    fails_closed: bool,
    open_to: String,
    then_open_to: Option<String>,
    demands: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Decision {
    allowed: bool,
    needs_review: bool,
    rules: Vec<Applied>,
    code: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Applied {
    rule: String,
    passes: bool,
    text: String,
    section: String,
}
