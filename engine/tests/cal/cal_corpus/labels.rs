//! Labels for what has no name before it exists: `@tea` is the address of a grain, `@tea~10` its first
//! ten digits.

use std::collections::BTreeMap;

use grainstore::ContentAddress;
use serde_json::Value as Json;

/// Addresses by label.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels(BTreeMap<String, ContentAddress>);

impl Labels {
    pub(crate) fn name(&mut self, label: &str, address: ContentAddress) {
        self.0.insert(label.to_owned(), address);
    }

    /// The address of `@label`, with or without the sign.
    pub(crate) fn address(&self, label: &str) -> ContentAddress {
        let label = label.strip_prefix('@').unwrap_or(label);
        *self.0.get(label).unwrap_or_else(|| panic!("no grain is called {label:?}"))
    }

    /// The label of an address, for messages.
    pub(crate) fn of(&self, address: &str) -> String {
        let found = self.0.iter().find(|(_, known)| known.to_string() == address);
        found.map_or_else(|| address.to_owned(), |(label, _)| format!("@{label}"))
    }

    /// The text with digits for labels; `@` before what is no label stays.
    pub(crate) fn spell(&self, text: &str) -> String {
        let mut parts = text.split('@');
        let mut spelled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let (label, rest) = part.split_at(end.unwrap_or(part.len()));
            let Some(address) = self.0.get(label) else {
                spelled.push('@');
                spelled += part;
                continue;
            };
            let digits = address.to_string();
            let (length, rest) = match rest.strip_prefix('~') {
                Some(after) => {
                    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
                    (after[..end].parse().unwrap(), &after[end..])
                }
                None => (digits.len(), rest),
            };
            spelled += &digits[..length];
            spelled += rest;
        }
        spelled
    }

    /// The text with the same digits for every label, for who reads it without a store.
    pub(crate) fn spell_any(text: &str) -> String {
        let mut parts = text.split("sha256:@");
        let mut spelled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '~');
            let end = part.find(|c| !is_label(c)).unwrap_or(part.len());
            spelled += "sha256:0123456789abcdef";
            spelled += &part[end..];
        }
        spelled
    }

    /// The same in every text of a JSON value.
    pub(crate) fn spell_all(&self, json: &Json) -> Json {
        match json {
            Json::String(text) => Json::from(self.spell(text)),
            Json::Array(items) => items.iter().map(|item| self.spell_all(item)).collect(),
            Json::Object(fields) => {
                let spelled =
                    |(name, value): (&String, &Json)| (self.spell(name), self.spell_all(value));
                fields.iter().map(spelled).collect()
            }
            other => other.clone(),
        }
    }
}
