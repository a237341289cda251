//! `grain policy show` and `grain policy set`: the rules of a store.

use std::collections::BTreeMap;

use clap::Args;
use grainstore::{Action, Preset, RuleChangeReport};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source};
use crate::reach::Told;

/// Add rules to those of the store: a file of rules, TOML or JSON (docs/presets.md)
///
/// Only the operator does so, without --namespace and --user. What would loosen a rule is refused, unless
/// --allow-weaker says that it is meant. Either way it goes into the audit log, with the reason.
#[derive(Debug, Args)]
pub(super) struct Set {
    /// The file, or - for stdin
    #[arg(value_name = "FILE|-")]
    file: Source,
    /// Take what loosens rules as well
    #[arg(long)]
    allow_weaker: bool,
    /// Why: it goes into the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Set {
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let rules = self.file.read_text(MAX_JSON_BYTES, &mut context.output)?;
        let set =
            json!({ "rules": rules, "allow_weaker": self.allow_weaker, "reason": self.reason });
        let changed: RuleChangeReport = context.reach()?.read("policy_set", &set)?;
        context.output.answer(&changed, |output| {
            if !changed.changed {
                return output.line("nothing changed: these rules hold already");
            }
            for rule in &changed.added {
                output.line(&format!("added     {rule}"))?;
            }
            for what in &changed.loosened {
                output.line(&format!("loosened  {what}"))?;
            }
            output.line("the rules of the store are changed; grain policy show shows them")
        })
    }
}

/// Returns the preset of this name, unless there is such a file.
pub(super) fn named_preset(source: &Source) -> Option<Preset> {
    let Source::File(path) = source else { return None };
    let preset = Preset::from_name(path.to_str()?).ok()?;
    (!path.exists()).then_some(preset)
}

/// Returns the hint for a name that is neither a preset nor a file.
pub(super) fn preset_hint() -> String {
    let names: Vec<_> = Preset::all().map(Preset::name).collect();
    format!("name a preset ({}), a file, or the address of a grain", names.join(", "))
}

/// What is shown of a rule set, read from its JSON.
#[derive(Deserialize)]
struct ShownRules {
    preset: String,
    title: String,
    also: Vec<String>,
    settings: BTreeMap<String, ShownSetting>,
    rules: Vec<ShownRule>,
    loosened: Vec<String>,
}

#[derive(Deserialize)]
struct ShownSetting {
    value: Value,
    article: String,
}

#[derive(Deserialize)]
struct ShownRule {
    id: String,
    on: Vec<Action>,
    article: String,
    because: String,
    fix: String,
    require: Option<Value>,
    #[serde(default)]
    forbid: bool,
    set: Option<Value>,
}

impl ShownRule {
    /// As `PresetRule::effect`.
    fn effect(&self) -> &'static str {
        match (&self.require, self.forbid, &self.set) {
            (Some(_), ..) => "require",
            (None, true, _) => "forbid",
            (None, false, Some(_)) => "set",
            (None, false, None) => "limit",
        }
    }
}

/// Prints a rule set, with the article each rule is based on.
pub(super) fn write_rules(context: &mut Context<'_>, told: &Told) -> Result<()> {
    let output = &mut context.output;
    if output.is_json() {
        return output.json_line(told);
    }
    let rules: ShownRules = told.read()?;
    output.line(&format!("preset      {}: {}", rules.preset, rules.title))?;
    for also in &rules.also {
        output.line(&format!("and         {also}"))?;
    }
    for what in &rules.loosened {
        output.line(&format!("loosened    {what}"))?;
    }
    output.line("")?;
    // Every preset has all settings.
    let known = Preset::all().next().map(Preset::rules).transpose()?;
    for (name, _, _, meaning) in known.iter().flat_map(|known| known.settings.table()) {
        let Some(ShownSetting { value, article }) = rules.settings.get(name) else { continue };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output.line(&format!("{name:<24} {value:<10} {article}"))?;
        output.line(&format!("    {meaning}"))?;
    }
    for rule in &rules.rules {
        let on: Vec<_> = rule.on.iter().map(|deed| deed.name()).collect();
        output.line("")?;
        output.line(&format!("{}  {}  ({})", rule.id, rule.effect(), on.join(", ")))?;
        output.line(&format!("    {}: {}", rule.article, rule.because))?;
        output.line(&format!("    fix: {}", rule.fix))?;
    }
    Ok(())
}
