//! Conditions of rules on the facts of a grain. All given parts must hold; a condition without parts always
//! holds.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use grainstore_cal::is_within;
use grainstore_format::{GrainType, Value};
use serde::{Deserialize, Serialize};

use super::facts::{BasisKind, ProcessingBasis, RuleFacts, SensitivityLevel};
use super::jq::is_expression;
use super::purposes::purpose_matches;
use super::references::{NamedParts, expand_lists, expand_values};

/// Maximum nesting depth of conditions.
const MAX_DEPTH: usize = 8;
/// Maximum number of conditions and texts in one condition, including those it refers to by name.
const MAX_PARTS: usize = 4096;

/// A value that a field is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum FieldValue {
    Flag(bool),
    Whole(i64),
    Text(String),
}

impl FieldValue {
    fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Flag(flag) => value.as_bool() == Some(*flag),
            Self::Whole(whole) => value.as_i64() == Some(*whole),
            Self::Text(text) => value.as_str() == Some(text),
        }
    }
}

/// A text with `{names}` in it (field `of`), and the list of the same names (field `in`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceholderCondition {
    of: String,
    r#in: String,
}

/// A condition, in the form of the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Condition {
    /// Names of conditions, all of which must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    is: Vec<String>,
    /// Grain types, one of which it must have.
    #[serde(rename = "type", skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    /// Fields, all of which must be present and not empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    has: Vec<String>,
    /// Tags, one of which it must have; `phi:*` matches any tag with that prefix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tag: Vec<String>,
    /// Namespaces, in or below one of which it must be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespace: Vec<String>,
    /// Minimum sensitivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<SensitivityLevel>,
    /// Fields with lists of values: each field must have one of its values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    equals: BTreeMap<String, Vec<FieldValue>>,
    /// Fields with lists of values: each field must be present with a value that is not in its list.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    differs: BTreeMap<String, Vec<FieldValue>>,
    /// Fields with patterns: a word of each field must match one of its patterns, ignoring case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    matches: BTreeMap<String, Vec<String>>,
    /// Fields with texts one of which each is, as [`purpose_matches`] compares them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    among: BTreeMap<String, Vec<String>>,
    /// Kinds of `processing_basis`, one of which it must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    basis: Vec<BasisKind>,
    /// Words, one of which its `processing_basis` must be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    basis_word: Vec<String>,
    /// Scopes, to one of which its `processing_basis` must be a consent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    consent_scope: Vec<String>,
    /// Purposes, one of which the session must have, compared by [`purpose_matches`]; `data_broker*` matches
    /// any with that prefix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    purpose: Vec<String>,
    /// Purposes: the session must have one that is not listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    purpose_beyond: Vec<String>,
    /// Requires that the session names a purpose, or that it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    purposes_named: Option<bool>,
    /// Requires that it is, or is not, under litigation hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    /// Requires that it is, or is not, encrypted at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
    /// Requires that a review has, or has not, verified it.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    /// If it has the text, its `{names}` must be the entries of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholders: Option<PlaceholderCondition>,
    /// Fields that must be JQ expressions if present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jq: Vec<String>,
    /// Conditions, all of which must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    all: Vec<Condition>,
    /// Conditions, one of which must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    any: Vec<Condition>,
    /// A condition that must not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    not: Option<Box<Condition>>,
}

impl Condition {
    /// Returns `true` if the condition holds. `personal` is the minimum sensitivity of grains with a user.
    pub(super) fn holds(&self, facts: &RuleFacts<'_>, personal: SensitivityLevel) -> bool {
        self.matches_grain(facts, personal)
            && self.matches_circumstances(facts)
            && self.matches_basis(facts.basis)
            && self.matches_fields(facts)
            && self.all.iter().all(|part| part.holds(facts, personal))
            && (self.any.is_empty() || self.any.iter().any(|part| part.holds(facts, personal)))
            && self.not.as_ref().is_none_or(|part| !part.holds(facts, personal))
    }

    fn matches_grain(&self, facts: &RuleFacts<'_>, personal: SensitivityLevel) -> bool {
        let grain = facts.grain;
        let one_of = |list: &[String], fits: &mut dyn FnMut(&str) -> bool| {
            list.is_empty() || list.iter().any(|each| fits(each))
        };
        let level = || {
            let stated = SensitivityLevel::from(grain.sensitivity());
            if facts.has("user_id") { stated.max(personal) } else { stated }
        };
        (self.tag.is_empty()
            || grain.any_tag(&mut |tag| self.tag.iter().any(|p| matches_pattern(p, tag))))
            && one_of(&self.types, &mut |name| GrainType::from_name(name) == Some(grain.kind()))
            && one_of(&self.namespace, &mut |outer| is_within(grain.namespace(), outer))
            && self.sensitivity.is_none_or(|least| level() >= least)
    }

    fn matches_circumstances(&self, facts: &RuleFacts<'_>) -> bool {
        let purposes = facts.purposes;
        (self.purpose.is_empty()
            || purposes.iter().any(|what| purpose_matches(what, &self.purpose)))
            && (self.purpose_beyond.is_empty()
                || purposes.iter().any(|what| !purpose_matches(what, &self.purpose_beyond)))
            && self.purposes_named.is_none_or(|named| named != purposes.is_empty())
            && self.held.is_none_or(|held| held == facts.held)
            && self.encrypted.is_none_or(|encrypted| encrypted == facts.encrypted)
            && self.verified.is_none_or(|verified| verified == facts.verified)
    }

    fn matches_basis(&self, basis: &ProcessingBasis) -> bool {
        let word =
            |of: &[String]| matches!(basis, ProcessingBasis::Word(word) if of.contains(word));
        let scope = |of: &[String]| matches!(basis, ProcessingBasis::Consent(scope) if scope.iter().any(|one| of.contains(one)));
        (self.basis.is_empty() || self.basis.contains(&basis.kind()))
            && (self.basis_word.is_empty() || word(&self.basis_word))
            && (self.consent_scope.is_empty() || scope(&self.consent_scope))
    }

    fn matches_fields(&self, facts: &RuleFacts<'_>) -> bool {
        let is_one_of =
            |of: &[FieldValue], value: &Value| of.iter().any(|scalar| scalar.matches(value));
        self.has.iter().all(|name| facts.has(name))
            && self
                .equals
                .iter()
                .all(|(name, of)| facts.any_value(name, &mut |value| is_one_of(of, value)))
            && self
                .differs
                .iter()
                .all(|(name, of)| facts.any_value(name, &mut |value| !is_one_of(of, value)))
            && self.matches.iter().all(|(name, patterns)| {
                facts.any_value(name, &mut |value| any_word_matches(patterns, value))
            })
            && self.among.iter().all(|(name, of)| {
                let is_one =
                    |value: &Value| value.as_str().is_some_and(|text| purpose_matches(text, of));
                facts.any_value(name, &mut { is_one })
            })
            && self.placeholders.as_ref().is_none_or(|both| both.holds(facts))
            && self.jq.iter().all(|name| {
                let is_other = |value: &Value| !value.as_str().is_some_and(is_expression);
                !facts.any_value(name, &mut { is_other })
            })
    }

    /// Returns `true` if the condition can only hold for grains with a tag.
    pub(super) fn requires_tag(&self) -> bool {
        !self.tag.is_empty() || self.all.iter().any(Self::requires_tag)
    }

    /// Returns `true` if the condition tests the `processing_basis` of a grain.
    pub(super) fn uses_basis(&self) -> bool {
        let own = [self.basis.len(), self.basis_word.len(), self.consent_scope.len()];
        own.iter().any(|asked| *asked > 0) || self.parts().any(Self::uses_basis)
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        self.all.iter().chain(&self.any).chain(self.not.as_deref())
    }

    /// Replaces names by what they stand for: `@name` by a list, `is` by conditions.
    ///
    /// # Errors
    /// A human-readable description of the mistake.
    pub(super) fn resolve(&self, scope: &NamedParts) -> Result<Self, String> {
        self.resolve_at(scope, 0, &Cell::new(0))
    }

    fn resolve_at(
        &self,
        scope: &NamedParts,
        depth: usize,
        parts: &Cell<usize>,
    ) -> Result<Self, String> {
        if depth > MAX_DEPTH {
            return Err(format!("conditions lie more than {MAX_DEPTH} deep in each other"));
        }
        check_size(parts, 1)?;
        let inner = |part: &Self| part.resolve_at(scope, depth + 1, parts);
        let mut all = self.all.iter().map(inner).collect::<Result<Vec<_>, _>>()?;
        for name in &self.is {
            let named = scope.conditions.get(name);
            let named = named.ok_or_else(|| format!("there is no condition {name:?}"))?;
            all.push(inner(named)?);
        }
        if let Some(name) = self.types.iter().find(|name| GrainType::from_name(name).is_none()) {
            return Err(format!("there is no grain type {name:?}"));
        }
        let listed = |of: &[String]| {
            let texts = expand_lists(of, scope)?;
            check_size(parts, texts.len())?;
            Ok::<_, String>(texts)
        };
        let texts = |fields: &BTreeMap<String, Vec<String>>| {
            let fields = fields.iter().map(|(name, of)| Ok((name.clone(), listed(of)?)));
            fields.collect::<Result<BTreeMap<_, _>, String>>()
        };
        Ok(Self {
            is: Vec::new(),
            tag: listed(&self.tag)?,
            matches: texts(&self.matches)?,
            among: texts(&self.among)?,
            equals: expand_values(&self.equals, scope)?,
            differs: expand_values(&self.differs, scope)?,
            basis_word: listed(&self.basis_word)?,
            consent_scope: listed(&self.consent_scope)?,
            purpose: listed(&self.purpose)?,
            purpose_beyond: listed(&self.purpose_beyond)?,
            all,
            any: self.any.iter().map(inner).collect::<Result<_, _>>()?,
            not: self.not.as_deref().map(inner).transpose()?.map(Box::new),
            ..self.clone()
        })
    }
}

/// Counts parts of a condition and refuses too many.
fn check_size(parts: &Cell<usize>, new: usize) -> Result<(), String> {
    parts.set(parts.get().saturating_add(new));
    match parts.get() > MAX_PARTS {
        true => Err(format!("a condition has more than {MAX_PARTS} parts, with all it refers to")),
        false => Ok(()),
    }
}

/// Returns `true` if a text equals a pattern, or starts with what precedes its final `*`.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == pattern,
    }
}

/// Returns `true` if a word of a text matches a pattern: a license expression has several words.
fn any_word_matches(patterns: &[String], value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let text = text.to_ascii_lowercase();
    let mut words = text.split(|c: char| c.is_whitespace() || "()/,;".contains(c));
    words.any(|word| {
        !word.is_empty() && patterns.iter().any(|p| matches_pattern(&p.to_ascii_lowercase(), word))
    })
}

impl PlaceholderCondition {
    /// Returns `true` if text and list have the same names, or the grain lacks the text. A text without names
    /// needs no list.
    fn holds(&self, facts: &RuleFacts<'_>) -> bool {
        if !facts.has(&self.of) {
            return true;
        }
        let (mut named, mut listed, mut is_plain) = (BTreeSet::new(), BTreeSet::new(), true);
        facts.any_value(&self.of, &mut |value| {
            is_plain &= value.as_str().is_some_and(|text| collect_names(text, &mut named));
            false
        });
        facts.any_value(&self.r#in, &mut |value| {
            let items = value.as_array();
            let texts = items.unwrap_or_default().iter().filter_map(Value::as_str);
            listed.extend(texts.clone().map(str::to_owned));
            is_plain &= items.is_some_and(|items| items.len() == texts.count());
            false
        });
        is_plain && named == listed
    }
}

/// Collects the `{names}` of a text. Returns `false` for an unmatched brace.
fn collect_names(text: &str, names: &mut BTreeSet<String>) -> bool {
    let mut parts = text.split('{');
    let mut is_whole = parts.next().is_some_and(|before| !before.contains('}'));
    for part in parts {
        match part.split_once('}') {
            Some((name, after)) if !after.contains('}') => drop(names.insert(name.to_owned())),
            _ => is_whole = false,
        }
    }
    is_whole
}
