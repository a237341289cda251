//! Assembly of a rule set: a preset, the presets it extends, and the files that changed it since. Finds and
//! names what a change loosens.

use serde::{Deserialize, Serialize};

use super::builtin::Preset;
use super::file::{RuleFile, invalid_rule_file};
use super::intern::intern;
use super::references::NamedParts;
use super::rule::{PresetRule, RuleSet};
use super::settings::Settings;
use crate::base::error::{Error, ErrorKind, Result};

/// Maximum number of changes to the rules of one store.
const MAX_OVERRIDES: usize = 64;

/// The stored form of a store's rules: the preset, and every change since, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredRules {
    name: String,
    #[serde(default)]
    overrides: Vec<RuleFile>,
}

/// A rule set under construction.
struct RuleSetBuilder {
    settings: Settings,
    scope: NamedParts,
    also: Vec<&'static str>,
    rules: Vec<PresetRule>,
    loosened: Vec<String>,
}

/// The effect of a change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuleChange {
    pub(crate) kept: StoredRules,
    pub(crate) rules: RuleSet,
    /// Loosened settings and rules, for users and the audit log; empty if the change only adds.
    pub(crate) loosened: Vec<String>,
    /// Ids of the added rules.
    pub(crate) added: Vec<&'static str>,
}

impl RuleChange {
    /// Returns what the change loosens, as text for the audit log.
    pub(crate) fn loosened_names(&self) -> Vec<&'static str> {
        self.loosened.iter().map(|what| intern(what)).collect()
    }
}

impl StoredRules {
    /// The rules of a new store.
    pub(crate) fn of(preset: Preset) -> Self {
        Self { name: preset.name().to_owned(), overrides: Vec::new() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Encodes the rules as JSON, as stored in the meta table.
    ///
    /// # Errors
    /// Never, for what was read from a file.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| damaged_error(&error.to_string()))
    }

    /// Decodes the stored JSON.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for bytes that no version wrote.
    pub(crate) fn from_json(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).map_err(|error| damaged_error(&error.to_string()))
    }

    /// Builds the rules in force.
    ///
    /// # Errors
    /// `ERR_STORE_VERSION` for a preset that this version lacks.
    pub(crate) fn rules(&self) -> Result<RuleSet> {
        Ok(self.draft()?.finish(self.preset()?))
    }

    fn preset(&self) -> Result<Preset> {
        Preset::from_name(&self.name)
            .map_err(|error| Error::new(ErrorKind::StoreVersion, error.to_string()))
    }

    fn draft(&self) -> Result<RuleSetBuilder> {
        let mut draft = RuleSetBuilder::from_preset(self.preset()?)?;
        // Each change was valid when it was made: a store opens even if later presets lack what it dropped.
        self.overrides.iter().try_for_each(|file| draft.apply(file, false))?;
        Ok(draft)
    }

    /// Returns the effect of a further file; `None` if it changes nothing.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a file that is not a valid change; `ERR_POLICY` for an unknown preset; `ERR_LIMIT`.
    pub(crate) fn extended(&self, text: &str) -> Result<Option<RuleChange>> {
        let file = RuleFile::read(text)?;
        if file.name.is_some() || file.title.is_some() {
            return Err(invalid_rule_file(
                "name and title are those of a preset: a change has neither",
            ));
        }
        let before = self.rules()?;
        let mut draft = self.draft()?;
        draft.apply(&file, true)?;
        let mut kept = self.clone();
        kept.overrides.push(file);
        if kept.overrides.len() > MAX_OVERRIDES {
            let message = format!("the rules of this store were changed {MAX_OVERRIDES} times");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let rules = kept.rules()?;
        if rules == before {
            return Ok(None);
        }
        let loosened = rules.loosened.iter().skip(before.loosened.len()).cloned().collect();
        let known = |id: &str| before.rules.iter().any(|rule| rule.id == id);
        let added = rules.rules.iter().map(|rule| rule.id).filter(|id| !known(id)).collect();
        Ok(Some(RuleChange { kept, rules, loosened, added }))
    }
}

impl Preset {
    /// Returns the rules of a store created with this preset.
    ///
    /// # Errors
    /// None: a test of this module reads every preset.
    pub fn rules(self) -> Result<RuleSet> {
        Ok(RuleSetBuilder::from_preset(self)?.finish(self))
    }
}

impl RuleSetBuilder {
    /// The rules of a preset, after those of the one it extends.
    fn from_preset(preset: Preset) -> Result<Self> {
        let file = preset.file()?;
        let settings = file.settings.clone();
        let mut draft = match &file.extends {
            Some(base) => {
                let mut draft = Self::from_preset(Preset::from_name(base)?)?;
                // A preset that extends another still states every setting, with its own article.
                draft.settings = Settings::complete(settings).map_err(missing_setting)?;
                draft
            }
            None => Self {
                settings: Settings::complete(settings).map_err(missing_setting)?,
                scope: NamedParts::default(),
                also: Vec::new(),
                rules: Vec::new(),
                loosened: Vec::new(),
            },
        };
        draft.add_rules(file, true)?;
        Ok(draft)
    }

    /// Applies a file. With `is_new` false, a stored file may drop rules that no longer exist and redefine
    /// names.
    fn apply(&mut self, file: &RuleFile, is_new: bool) -> Result<()> {
        if let Some(name) = &file.extends {
            self.add_preset(Preset::from_name(name)?)?;
        }
        let loosened = self.settings.apply(file.settings.clone());
        self.loosened.extend(loosened);
        for id in &file.drop {
            let Some(at) = self.rules.iter().position(|rule| rule.id == id) else {
                if is_new {
                    return Err(invalid_rule_file(&format!(
                        "it drops {id:?}, and there is no such rule"
                    )));
                }
                continue;
            };
            let rule = self.rules.remove(at);
            self.loosened.push(format!("without {} ({})", rule.id, rule.article));
        }
        self.add_rules(file, is_new)
    }

    /// Adds another preset: its rules, and for each setting the value that satisfies both.
    fn add_preset(&mut self, preset: Preset) -> Result<()> {
        let other = Self::from_preset(preset)?;
        self.settings.combine(other.settings);
        for rule in other.rules {
            if !self.rules.iter().any(|known| known.id == rule.id) {
                self.rules.push(rule);
            }
        }
        if !self.also.contains(&preset.name()) {
            self.also.push(preset.name());
        }
        Ok(())
    }

    fn add_rules(&mut self, file: &RuleFile, is_new: bool) -> Result<()> {
        for (name, list) in &file.lists {
            let was = self.scope.lists.insert(name.clone(), list.clone());
            if is_new && was.is_some_and(|was| was != *list) {
                return Err(invalid_rule_file(&format!("there is a list {name:?} already")));
            }
        }
        for (name, condition) in &file.conditions {
            let resolved = condition.resolve(&self.scope).map_err(|why| invalid_rule_file(&why))?;
            let was = self.scope.conditions.insert(name.clone(), resolved.clone());
            if is_new && was.is_some_and(|was| was != resolved) {
                return Err(invalid_rule_file(&format!("there is a condition {name:?} already")));
            }
        }
        for rule in &file.rules {
            let rule = PresetRule::of(rule, &self.scope).map_err(|why| invalid_rule_file(&why))?;
            match self.rules.iter_mut().find(|known| known.id == rule.id) {
                None => self.rules.push(rule),
                Some(known) if *known == rule => {}
                // Two wordings cannot be compared for strictness, so a changed one counts as loosened.
                Some(known) => {
                    self.loosened.push(format!("another {} ({})", known.id, known.article));
                    *known = rule;
                }
            }
        }
        Ok(())
    }

    fn finish(self, preset: Preset) -> RuleSet {
        let title = preset.file().ok().and_then(|file| file.title.as_deref()).unwrap_or_default();
        let Self { settings, also, rules, loosened, .. } = self;
        RuleSet::new((preset.name(), intern(title)), also, settings, rules, loosened)
    }
}

fn missing_setting(setting: &str) -> Error {
    invalid_rule_file(&format!("a preset settles {setting}"))
}

fn damaged_error(why: &str) -> Error {
    Error::truth_damaged(format!("what is kept of the store's rules is damaged: {why}"))
}
