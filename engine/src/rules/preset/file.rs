//! The format of a rule file, in TOML or in JSON of the same structure, and its parser.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::settings::PartialSettings;
use crate::base::error::{Error, ErrorKind, Result};

/// Maximum size of a rule file, in bytes.
pub(super) const MAX_FILE_BYTES: usize = 64 << 10;
/// Maximum number of rules in a file.
const MAX_RULES: usize = 256;
/// Maximum length of a rule id, in bytes.
const MAX_ID_BYTES: usize = 64;

/// An action on a grain that rules apply to ([`Session::change_rules`](crate::Session::change_rules)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Storing it.
    Put,
    /// Storing it in place of another.
    Supersede,
    /// Returning it to a caller.
    Read,
    /// Writing it to an export file.
    Export,
    /// Erasing it.
    Erase,
}

impl Action {
    /// Every action, in the order of the variants.
    pub(super) const ALL: [Self; 5] =
        [Self::Put, Self::Supersede, Self::Read, Self::Export, Self::Erase];

    /// Name of the action in rule files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Supersede => "supersede",
            Self::Read => "read",
            Self::Export => "export",
            Self::Erase => "erase",
        }
    }
}

/// The allowed range of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NumberRange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max: Option<f64>,
}

/// The effect of a `set` rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetEffect {
    /// Marks the grain for review by a person.
    pub(super) needs_review: bool,
}

/// One rule. It has exactly one effect: `require`, `forbid`, `limit` or `set`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRule {
    pub(super) id: String,
    pub(super) on: Vec<Action>,
    /// Selects the grains that the rule applies to.
    #[serde(default)]
    pub(super) when: Condition,
    /// Condition that they must fulfil.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) require: Option<Condition>,
    /// Refuses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) forbid: bool,
    /// Fields that must be numbers in a range if present.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) limit: BTreeMap<String, NumberRange>,
    /// Marks to set on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) set: Option<SetEffect>,
    /// The article that the rule is based on.
    pub(super) article: String,
    /// Reason of the rule, for users.
    pub(super) because: String,
    /// Remedy, for users.
    pub(super) fix: String,
}

/// A rule set, or a change of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RuleFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// The preset whose rules are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extends: Option<String>,
    pub(super) settings: PartialSettings,
    /// Lists of texts that conditions refer to as `@name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) lists: BTreeMap<String, Vec<String>>,
    /// Conditions that others refer to in `is`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) conditions: BTreeMap<String, Condition>,
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<FileRule>,
    /// Ids of rules to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) drop: Vec<String>,
}

impl RuleFile {
    /// Parses and checks a file: JSON if it starts with a brace, else TOML.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_SCHEMA` for text that is not a valid rule file.
    pub(super) fn read(text: &str) -> Result<Self> {
        if text.len() > MAX_FILE_BYTES {
            let too_large = ErrorKind::Format(grainstore_format::ErrorKind::TooLarge);
            let message = format!("a file of rules has {MAX_FILE_BYTES} bytes at most");
            return Err(Error::new(too_large, message));
        }
        let file: Self = match text.trim_start().starts_with('{') {
            true => {
                serde_json::from_str(text).map_err(|error| invalid_rule_file(&error.to_string()))?
            }
            false => toml::from_str(text)
                .map_err(|error| invalid_rule_file(error.to_string().trim_end()))?,
        };
        file.check().map_err(|why| invalid_rule_file(&why))?;
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        if self.rules.len() > MAX_RULES {
            return Err(format!("it has more than {MAX_RULES} rules"));
        }
        self.settings.check()?;
        let ids = self.rules.iter().map(|rule| &rule.id);
        let mut known = std::collections::BTreeSet::new();
        for id in ids {
            if !known.insert(id) {
                return Err(format!("the rule {id:?} is there twice"));
            }
        }
        self.rules.iter().try_for_each(|rule| {
            rule.check().map_err(|why| format!("the rule {:?}: {why}", rule.id))
        })
    }
}

impl FileRule {
    fn check(&self) -> Result<(), String> {
        let is_plain =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
        if self.id.is_empty() || self.id.len() > MAX_ID_BYTES || !self.id.chars().all(is_plain) {
            let message = "an id has a-z, 0-9, dot, hyphen and underscore";
            return Err(format!("{message}, and {MAX_ID_BYTES} of them at most"));
        }
        let effects = [
            self.require.is_some(),
            self.forbid,
            !self.limit.is_empty(),
            self.set.is_some_and(|set| set.needs_review),
        ];
        if effects.iter().filter(|there| **there).count() != 1 {
            return Err("it has one effect: require, forbid, limit or set".to_owned());
        }
        if self.on.is_empty() {
            return Err("it is on no deed".to_owned());
        }
        let words = [&self.article, &self.because, &self.fix];
        if words.iter().any(|text| text.trim().is_empty()) {
            return Err("article, because and fix are not empty".to_owned());
        }
        Ok(())
    }
}

/// The error of an invalid rule file.
pub(super) fn invalid_rule_file(why: &str) -> Error {
    let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
    Error::new(schema, format!("this is no file of rules: {why}"))
        .with_hint("docs/presets.md shows what a file of rules has")
}
