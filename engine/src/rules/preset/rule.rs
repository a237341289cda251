//! A rule set in force, and the pure function that decides by it.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::condition::Condition;
use super::facts::{GrainFields, RuleFacts, SensitivityLevel};
use super::file::{Action, FileRule, NumberRange, SetEffect};
use super::intern::intern;
use super::references::NamedParts;
use super::settings::{EncryptionScope, Settings};
use crate::base::error::{Error, ErrorKind};

/// A rule in force, of a [`Preset`](crate::Preset) or added later.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PresetRule {
    /// Name in refusals and in the audit log.
    pub id: &'static str,
    /// The actions it applies to.
    pub on: Vec<Action>,
    /// The article it is based on.
    pub article: &'static str,
    /// Reason, for users.
    pub because: &'static str,
    /// Remedy if it refuses.
    pub fix: &'static str,
    when: Condition,
    #[serde(skip_serializing_if = "Option::is_none")]
    require: Option<Condition>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    forbid: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limit: BTreeMap<String, NumberRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<SetEffect>,
}

impl PresetRule {
    /// Resolves the references of a rule from a file.
    ///
    /// # Errors
    /// A human-readable description of the mistake.
    pub(super) fn of(rule: &FileRule, scope: &NamedParts) -> Result<Self, String> {
        let resolved = || {
            Ok(Self {
                id: intern(&rule.id),
                on: rule.on.clone(),
                article: intern(&rule.article),
                because: intern(&rule.because),
                fix: intern(&rule.fix),
                when: rule.when.resolve(scope)?,
                require: rule.require.as_ref().map(|must| must.resolve(scope)).transpose()?,
                forbid: rule.forbid,
                limit: rule.limit.clone(),
                set: rule.set,
            })
        };
        resolved().map_err(|why: String| format!("the rule {:?}: {why}", rule.id))
    }

    /// The kind of its effect: `require`, `forbid`, `limit` or `set`.
    #[must_use]
    pub fn effect(&self) -> &'static str {
        match (&self.require, self.forbid, self.set) {
            (Some(_), ..) => "require",
            (None, true, _) => "forbid",
            (None, false, Some(_)) => "set",
            (None, false, None) => "limit",
        }
    }

    fn asks_basis(&self) -> bool {
        self.when.uses_basis() || self.require.as_ref().is_some_and(Condition::uses_basis)
    }

    /// Returns `true` if the rule applies to a grain.
    pub(super) fn applies(&self, facts: &RuleFacts<'_>, personal: SensitivityLevel) -> bool {
        self.when.holds(facts, personal)
    }

    /// Returns `true` if the rule refuses a grain that it applies to.
    fn refuses(&self, facts: &RuleFacts<'_>, personal: SensitivityLevel) -> bool {
        let misses = |must: &Condition| !must.holds(facts, personal);
        self.forbid
            || self.require.as_ref().is_some_and(misses)
            || self.limit.iter().any(|(name, range)| {
                facts.any_value(name, &mut |value| match value.as_f64() {
                    Some(number) => {
                        range.min.is_some_and(|min| number < min)
                            || range.max.is_some_and(|max| number > max)
                    }
                    None => true,
                })
            })
    }
}

/// The rules and settings in force in a store, those of its [`Preset`](crate::Preset) and later ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RuleSet {
    /// The preset that the store was created with.
    pub preset: &'static str,
    /// Title of the preset.
    pub title: &'static str,
    /// Presets whose rules were added later.
    pub also: Vec<&'static str>,
    /// Settings of the whole store.
    pub settings: Settings,
    /// Rules, in the order of checking.
    pub rules: Vec<PresetRule>,
    /// Settings and rules that were loosened, as in the audit log.
    pub loosened: Vec<String>,
    /// Indexes of the rules of each action.
    #[serde(skip)]
    by_deed: [Vec<usize>; 5],
    /// Per action, true if a rule tests the processing basis.
    #[serde(skip)]
    asks_basis: [bool; 5],
    /// Per action, true if every rule applies to tagged grains only.
    #[serde(skip)]
    wants_tag: [bool; 5],
}

/// The refusal of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleRefusal {
    pub(crate) id: &'static str,
    article: &'static str,
    because: &'static str,
    /// Remedy.
    pub(crate) fix: &'static str,
}

impl RuleRefusal {
    /// Formats rule, article and reason as the middle of a sentence.
    pub(crate) fn description(&self) -> String {
        format!("rule {} ({}): {}", self.id, self.article, self.because)
    }
}

impl From<RuleRefusal> for Error {
    fn from(refusal: RuleRefusal) -> Self {
        Self::new(ErrorKind::Policy, format!("refused by {}", refusal.description()))
            .with_hint(refusal.fix)
    }
}

/// The outcome of the rules for an action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RuleDecision {
    /// The first rule that refuses; `None` if the action is allowed.
    pub(crate) refusal: Option<RuleRefusal>,
    /// True if the grain is to be reviewed by a person.
    pub(crate) needs_review: bool,
}

impl RuleSet {
    /// Identifies the rules in the audit log: the first 8 bytes of the SHA-256 of their JSON.
    ///
    /// # Errors
    /// None: every rule has a form in JSON.
    pub(crate) fn policy_set(&self) -> Result<[u8; 8], Error> {
        let json = serde_json::to_vec(self).map_err(|error| {
            Error::new(ErrorKind::Io, format!("the rules have no form in JSON: {error}"))
        })?;
        let hash: [u8; 32] = Sha256::digest(json).into();
        Ok(hash.first_chunk::<8>().copied().unwrap_or_default())
    }

    pub(super) fn new(
        (preset, title): (&str, &str),
        also: Vec<&'static str>,
        settings: Settings,
        rules: Vec<PresetRule>,
        loosened: Vec<String>,
    ) -> Self {
        let of_deed = |deed: Action| {
            let rules = rules.iter().enumerate().filter(move |(_, rule)| rule.on.contains(&deed));
            rules.map(|(place, _)| place).collect()
        };
        let tagged = |deed: &Action| {
            let mut of_deed = rules.iter().filter(|rule| rule.on.contains(deed));
            of_deed.all(|rule| rule.when.requires_tag())
        };
        let asking =
            |deed: &Action| rules.iter().any(|rule| rule.on.contains(deed) && rule.asks_basis());
        Self {
            by_deed: Action::ALL.map(of_deed),
            asks_basis: [0, 1, 2, 3, 4].map(|at: usize| Action::ALL.get(at).is_some_and(asking)),
            wants_tag: [0, 1, 2, 3, 4].map(|at: usize| Action::ALL.get(at).is_some_and(tagged)),
            preset: intern(preset),
            title: intern(title),
            also,
            settings,
            rules,
            loosened,
        }
    }

    /// The minimum sensitivity of grains with a user.
    pub(super) fn personal_level(&self) -> SensitivityLevel {
        self.settings.personal_sensitivity.value
    }

    /// The rule set without one rule.
    #[cfg(test)]
    pub(super) fn without(self, id: &str) -> Self {
        let rules = self.rules.into_iter().filter(|rule| rule.id != id).collect();
        Self::new((self.preset, self.title), self.also, self.settings, rules, self.loosened)
    }

    /// Returns `true` if a rule applies to this action.
    pub(crate) fn has_rules_on(&self, deed: Action) -> bool {
        self.by_deed.get(deed as usize).is_some_and(|rules| !rules.is_empty())
    }

    /// Returns `true` if a decision on this action needs the processing basis.
    pub(crate) fn uses_basis(&self, deed: Action) -> bool {
        self.asks_basis.get(deed as usize) == Some(&true)
    }

    /// Returns `true` if a store with keys encrypts this grain.
    pub(crate) fn encrypts(&self, grain: &dyn GrainFields) -> bool {
        let is_personal = || {
            let user = grain.top("user_id");
            user.is_some_and(|user| user.as_str().is_some_and(|user| !user.is_empty()))
        };
        let level = || {
            let stated = SensitivityLevel::from(grain.sensitivity());
            if is_personal() { stated.max(self.personal_level()) } else { stated }
        };
        match self.settings.encrypt.value {
            EncryptionScope::Nothing => false,
            EncryptionScope::Users => is_personal(),
            EncryptionScope::Sensitive => level() >= SensitivityLevel::Pii,
            EncryptionScope::Everything => true,
        }
    }

    /// Decides an action by these facts alone. The first refusing rule counts.
    pub(crate) fn decide(&self, deed: Action, facts: &RuleFacts<'_>) -> RuleDecision {
        let wants_tag = self.wants_tag.get(deed as usize) == Some(&true);
        if wants_tag && !facts.grain.any_tag(&mut |_| true) {
            return RuleDecision::default();
        }
        let personal = self.personal_level();
        let places = self.by_deed.get(deed as usize).map(Vec::as_slice).unwrap_or_default();
        let mut decision = RuleDecision::default();
        for rule in places.iter().filter_map(|place| self.rules.get(*place)) {
            if !rule.applies(facts, personal) {
                continue;
            }
            if rule.refuses(facts, personal) {
                let PresetRule { id, article, because, fix, .. } = *rule;
                decision.refusal = Some(RuleRefusal { id, article, because, fix });
                return decision;
            }
            decision.needs_review |= rule.set.is_some_and(|set| set.needs_review);
        }
        decision
    }
}
