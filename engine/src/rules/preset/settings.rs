//! Settings of a whole store, each with the article it is based on. Two values combine into the weakest one
//! that satisfies both; a change that is weaker than the combination loosens the rule set.

use serde::{Deserialize, Serialize};

use super::facts::SensitivityLevel;

/// The grains of a store with keys that are encrypted, as its [`Preset`](crate::Preset) says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EncryptionScope {
    /// No grains.
    Nothing,
    /// Grains with a `user_id`.
    Users,
    /// Grains that count as personal or health data.
    Sensitive,
    /// Every grain.
    Everything,
}

/// A value, and the article it is based on: one of the [`Settings`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The article, or the section of the standard.
    pub article: String,
}

/// Combination of the settings of two rule sets: the weakest value that satisfies both.
trait Combine {
    fn combine(self, other: Self) -> Self;
}

impl Combine for EncryptionScope {
    fn combine(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Nothing, stricter) | (stricter, Self::Nothing) => stricter,
            _ => Self::Everything,
        }
    }
}

/// Declares the settings once: name, type, combination, minimum, maximum, description.
macro_rules! settings {
    ($($name:ident: $kind:ty, $joined:expr, $least:expr, $most:expr, $text:literal;)+) => {
        /// The settings of a store.
        ///
        /// ```
        /// let rules = grainstore::Preset::from_name("gdpr")?.rules()?;
        /// for (name, value, article, description) in rules.settings.table() {
        ///     println!("{name} = {value}: {description} ({article})");
        /// }
        /// assert!(rules.settings.audit_reads.value);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct Settings {
            $(#[doc = $text] pub $name: Setting<$kind>),+
        }

        /// The settings that a file states.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct PartialSettings {
            $(#[serde(skip_serializing_if = "Option::is_none")] $name: Option<Setting<$kind>>),+
        }

        impl Settings {
            /// Builds the settings from a file that states all of them, or returns the name of a missing one.
            pub(super) fn complete(settled: PartialSettings) -> Result<Self, &'static str> {
                Ok(Self { $($name: settled.$name.ok_or(stringify!($name))?),+ })
            }

            /// Applies the settings of a file. Returns descriptions of those that become weaker.
            pub(super) fn apply(&mut self, settled: PartialSettings) -> Vec<String> {
                let mut loosened = Vec::new();
                $(if let Some(new) = settled.$name {
                    let joined: fn($kind, $kind) -> $kind = $joined;
                    if joined(self.$name.value, new.value) != new.value {
                        loosened.push(loosened_text(stringify!($name), &self.$name, &new));
                    }
                    self.$name = new;
                })+
                loosened
            }

            /// Combines each setting with that of another rule set.
            pub(super) fn combine(&mut self, others: Self) {
                $(let joined: fn($kind, $kind) -> $kind = $joined;
                let both = joined(self.$name.value, others.$name.value);
                if both == others.$name.value && both != self.$name.value {
                    self.$name = others.$name;
                } else if both != self.$name.value {
                    let article = format!("{}; {}", self.$name.article, others.$name.article);
                    self.$name = Setting { value: both, article };
                })+
            }

            /// Lists each setting: name, value as text, article and description.
            #[must_use]
            pub fn table(&self) -> Vec<(&'static str, String, &str, &'static str)> {
                vec![$((
                    stringify!($name),
                    setting_text(&self.$name.value),
                    self.$name.article.as_str(),
                    $text,
                )),+]
            }
        }

        impl PartialSettings {
            /// # Errors
            /// A human-readable description of a value out of range.
            pub(super) fn check(&self) -> Result<(), String> {
                $(if let Some(Setting { value, .. }) = &self.$name {
                    let (least, most): (Option<$kind>, Option<$kind>) = ($least, $most);
                    let low = least.is_some_and(|least| (*value as u32) < (least as u32));
                    let high = most.is_some_and(|most| (*value as u32) > (most as u32));
                    if low || high {
                        let name = stringify!($name);
                        return Err(format!("{name} is out of its range: {}", setting_text(value)));
                    }
                })+
                Ok(())
            }
        }
    };
}

settings! {
    encrypt: EncryptionScope, Combine::combine, None, None,
        "What is encrypted where the store has keys.";
    personal_sensitivity: SensitivityLevel, Ord::max, None, None,
        "How sensitive a grain with a user_id counts at least, whatever its tags.";
    minimum_retention_years: u32, Ord::max, None, Some(100),
        "Years before whose end nothing is erased.";
    user_may_erase: bool, std::ops::BitOr::bitor, None, None,
        "Whether a session of a user may erase that user.";
    erasure_sla_days: u32, Ord::min, Some(1), Some(28),
        "Days within which what is due for erasure is erased.";
    audit_reads: bool, std::ops::BitOr::bitor, None, None,
        "Whether reads are in the audit log, who read and which grains.";
    keep_reads: bool, std::ops::BitOr::bitor, None, None,
        "Whether all of the read log is kept, not the newest 64 MiB alone.";
    query_limit: u32, Ord::min, Some(1), Some(1000),
        "Rows of a query that names no limit.";
    phi_by_field: bool, std::ops::BitOr::bitor, None, None,
        "Whether CAL gives out health data (grains tagged phi:) by named fields alone.";
}

/// Formats a value as in rule files.
fn setting_text<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn loosened_text<T: Serialize>(name: &str, old: &Setting<T>, new: &Setting<T>) -> String {
    let (was, is) = (setting_text(&old.value), setting_text(&new.value));
    format!("{name} from {was} ({}) to {is}", old.article)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_kinds_of_encryption_both_together_cover_what_each_does() {
        use EncryptionScope::{Everything, Nothing, Sensitive, Users};
        for (one, other, both) in [
            (Nothing, Users, Users),
            (Sensitive, Nothing, Sensitive),
            (Users, Users, Users),
            (Users, Sensitive, Everything),
            (Everything, Users, Everything),
        ] {
            assert_eq!(one.combine(other), both, "{one:?} and {other:?}");
        }
    }
}
