//! What a preset settles once for a whole store, each with the article it stands on. Of two values one
//! is the stricter, or both together are: so it shows which change would loosen a rule set.

use serde::{Deserialize, Serialize};

use super::facts::Level;

/// What of a store with keys is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encrypt {
    /// Nothing.
    Nothing,
    /// Grains with a `user_id`.
    Users,
    /// Grains that count as personal or health data.
    Sensitive,
    /// Every grain.
    Everything,
}

/// A value, and the article it stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting<T> {
    /// What is settled.
    pub value: T,
    /// The article, or the place of the standard.
    pub article: String,
}

/// A setting that two rule sets agree on: the least that satisfies both.
trait Joined {
    fn joined(self, other: Self) -> Self;
}

impl Joined for Encrypt {
    fn joined(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Nothing, stricter) | (stricter, Self::Nothing) => stricter,
            _ => Self::Everything,
        }
    }
}

/// Settings by the way they get stricter: what is named first joins both.
macro_rules! settings {
    ($($name:ident: $kind:ty, $joined:expr, $least:expr, $most:expr, $text:literal;)+) => {
        /// What holds in a store.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct Settings {
            $(#[doc = $text] pub $name: Setting<$kind>),+
        }

        /// What a file settles of it.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct Settled {
            $(#[serde(skip_serializing_if = "Option::is_none")] $name: Option<Setting<$kind>>),+
        }

        impl Settings {
            /// The settings of a file that settles all of them; the name of one it does not.
            pub(super) fn whole(settled: Settled) -> Result<Self, &'static str> {
                Ok(Self { $($name: settled.$name.ok_or(stringify!($name))?),+ })
            }

            /// Takes what a file settles, where that is allowed. Gives what is weaker by it.
            pub(super) fn take(&mut self, settled: Settled) -> Vec<String> {
                let mut loosened = Vec::new();
                $(if let Some(new) = settled.$name {
                    let joined: fn($kind, $kind) -> $kind = $joined;
                    if joined(self.$name.value, new.value) != new.value {
                        loosened.push(told(stringify!($name), &self.$name, &new));
                    }
                    self.$name = new;
                })+
                loosened
            }

            /// Takes of each setting what satisfies these too.
            pub(super) fn join(&mut self, others: Self) {
                $(let joined: fn($kind, $kind) -> $kind = $joined;
                let both = joined(self.$name.value, others.$name.value);
                if both == others.$name.value && both != self.$name.value {
                    self.$name = others.$name;
                } else if both != self.$name.value {
                    let article = format!("{}; {}", self.$name.article, others.$name.article);
                    self.$name = Setting { value: both, article };
                })+
            }

            /// Each setting: its name, its value in words, its article and what it means.
            #[must_use]
            pub fn table(&self) -> Vec<(&'static str, String, &str, &'static str)> {
                vec![$((
                    stringify!($name),
                    word(&self.$name.value),
                    self.$name.article.as_str(),
                    $text,
                )),+]
            }
        }

        impl Settled {
            /// # Errors
            /// What is out of its range, for a person.
            pub(super) fn check(&self) -> Result<(), String> {
                $(if let Some(Setting { value, .. }) = &self.$name {
                    let (least, most): (Option<$kind>, Option<$kind>) = ($least, $most);
                    let low = least.is_some_and(|least| (*value as u32) < (least as u32));
                    let high = most.is_some_and(|most| (*value as u32) > (most as u32));
                    if low || high {
                        let name = stringify!($name);
                        return Err(format!("{name} is out of its range: {}", word(value)));
                    }
                })+
                Ok(())
            }
        }
    };
}

settings! {
    encrypt: Encrypt, Joined::joined, None, None,
        "What is encrypted where the store has keys.";
    personal_sensitivity: Level, Ord::max, None, None,
        "How sensitive a grain with a user_id counts at least, whatever its tags.";
    minimum_retention_years: u32, Ord::max, None, Some(100),
        "Years before whose end nothing is erased.";
    user_may_erase: bool, std::ops::BitOr::bitor, None, None,
        "Whether a session of a user may erase that user.";
    erasure_sla_days: u32, Ord::min, Some(1), Some(30),
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

/// A value as files write it.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn told<T: Serialize>(name: &str, old: &Setting<T>, new: &Setting<T>) -> String {
    let (was, is) = (word(&old.value), word(&new.value));
    format!("{name} from {was} ({}) to {is}", old.article)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_kinds_of_encryption_both_together_cover_what_each_does() {
        use Encrypt::{Everything, Nothing, Sensitive, Users};
        for (one, other, both) in [
            (Nothing, Users, Users),
            (Sensitive, Nothing, Sensitive),
            (Users, Users, Users),
            (Users, Sensitive, Everything),
            (Everything, Users, Everything),
        ] {
            assert_eq!(one.joined(other), both, "{one:?} and {other:?}");
        }
    }
}
