//! The invalidation policy of a grain, parsed strictly: a policy that is not understood locks (OMS 23.2,
//! 23.3).
//!
//! Knows one grain and no caller.

use grainstore_format::{EpochMs, GrainRef, GrainType, Int, MapRef, ValueRef};

/// The parsed policy of a grain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyTerms {
    pub(crate) mode: PolicyMode,
    pub(crate) scope: PolicyScope,
    /// The DIDs whose signatures count.
    pub(crate) authorized: Vec<String>,
    /// True if the grain is under litigation hold from its creation, however malformed the rest of the policy
    /// is.
    pub(crate) holds: bool,
}

/// The modes of OMS 23.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyMode {
    /// No policy, or `open`.
    Open,
    SoftLocked,
    Locked,
    /// `None` if the threshold is missing or less than one.
    Quorum(Option<u64>),
    Delegated,
    /// Locked until this epoch second.
    Timed(u64, FallbackMode),
    Hold,
    ConsentCascade,
    /// A word that is not in the standard: locked.
    Unknown,
    /// A map that violates the standard: locked.
    Malformed,
}

/// The mode after a timed lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FallbackMode {
    Open,
    SoftLocked,
    Locked,
    Quorum(Option<u64>),
    Delegated,
    Hold,
    ConsentCascade,
    Unknown,
}

/// The extent of a policy (OMS 23.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyScope {
    Grain,
    Lineage,
    Subtree,
    /// A word that is not in the standard: subtree and lineage.
    Unknown,
}

/// Returns `true` if a lock until epoch second `until` has ended.
fn has_ended(until: u64, now: EpochMs) -> bool {
    u64::try_from(now.get().div_euclid(1000)).is_ok_and(|second| second >= until)
}

impl PolicyTerms {
    /// Parses the policy of a stored grain.
    pub(crate) fn of(grain: &GrainRef<'_>) -> Self {
        match grain.get("invalidation_policy") {
            None => Self::default_of(grain.grain_type()),
            Some(ValueRef::Map(map)) => Self::parse(map),
            Some(_) => Self::malformed(None),
        }
    }

    /// Returns `true` if a timed lock has become a hold, which cannot be lifted.
    pub(crate) fn is_held_since(&self, now: EpochMs) -> bool {
        matches!(&self.mode, PolicyMode::Timed(until, FallbackMode::Hold) if has_ended(*until, now))
    }

    /// Returns `true` if the grain must be erased when the consent it rests on is withdrawn.
    pub(crate) fn ends_with_consent(&self, now: EpochMs) -> bool {
        match &self.mode {
            PolicyMode::ConsentCascade => true,
            PolicyMode::Timed(until, FallbackMode::ConsentCascade) => has_ended(*until, now),
            _ => false,
        }
    }

    /// The policy of a grain without one: `soft_locked` for a consent (OMS 8.10), else `open`.
    fn default_of(grain_type: GrainType) -> Self {
        let mode = if grain_type == GrainType::Consent {
            PolicyMode::SoftLocked
        } else {
            PolicyMode::Open
        };
        Self { mode, scope: PolicyScope::Grain, authorized: Vec::new(), holds: false }
    }

    fn malformed(map: Option<MapRef<'_>>) -> Self {
        let word = |name: &str| map?.get(name)?.as_str();
        let scope = match map.is_some_and(|map| map.get("scope").is_none()) {
            true => PolicyScope::Grain,
            false => word("scope").map_or(PolicyScope::Unknown, PolicyScope::from_name),
        };
        let holds = word("mode") == Some("hold");
        Self { mode: PolicyMode::Malformed, scope, authorized: Vec::new(), holds }
    }

    fn parse(map: MapRef<'_>) -> Self {
        Self::read(map).unwrap_or_else(|| Self::malformed(Some(map)))
    }

    /// Returns `None` if a field has another type than in the standard, or the mode lacks a required field.
    fn read(map: MapRef<'_>) -> Option<Self> {
        let mode = map.get("mode")?.as_str()?;
        let authorized = match map.get("authorized") {
            None => Vec::new(),
            Some(list) => {
                let texts = list.as_array()?.iter().map(|did| did.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>()?
            }
        };
        let threshold =
            optional_int(map, "threshold")?.and_then(Int::as_u64).filter(|least| *least > 0);
        let until = optional_int(map, "locked_until")?;
        let scope = optional_text(map, "scope")?.map_or(PolicyScope::Grain, PolicyScope::from_name);
        let fallback = optional_text(map, "fallback_mode")?;
        optional_text(map, "protection_reason")?;
        let mode = match mode {
            "open" => PolicyMode::Open,
            "soft_locked" => PolicyMode::SoftLocked,
            "locked" => PolicyMode::Locked,
            "quorum" => PolicyMode::Quorum(threshold),
            "delegated" => PolicyMode::Delegated,
            "timed" => {
                PolicyMode::Timed(until?.as_u64()?, FallbackMode::from_name(fallback, threshold))
            }
            "hold" => PolicyMode::Hold,
            "consent_cascade" => PolicyMode::ConsentCascade,
            _ => PolicyMode::Unknown,
        };
        Some(Self { mode, scope, authorized, holds: mode == PolicyMode::Hold })
    }

    /// Returns `true` if it restricts anything: such a grain protects its descendants (OMS 23.6).
    pub(crate) fn protects(&self) -> bool {
        !matches!(self.mode, PolicyMode::Open | PolicyMode::ConsentCascade)
    }

    /// Returns the threshold of the quorum, or of that which follows a timed lock.
    pub(super) fn threshold(&self) -> Option<u64> {
        match self.mode {
            PolicyMode::Quorum(least) | PolicyMode::Timed(_, FallbackMode::Quorum(least)) => least,
            _ => None,
        }
    }

    /// Returns the end of a timed lock, in epoch seconds.
    pub(super) fn locked_until(&self) -> Option<u64> {
        match self.mode {
            PolicyMode::Timed(until, _) => Some(until),
            _ => None,
        }
    }

    /// Returns `true` if it covers grains derived from the grain.
    pub(crate) fn covers_derived(&self) -> bool {
        matches!(self.scope, PolicyScope::Subtree | PolicyScope::Unknown)
    }

    /// Returns `true` if it covers every version in the supersession chain of the grain.
    pub(crate) fn covers_chain(&self) -> bool {
        matches!(self.scope, PolicyScope::Lineage | PolicyScope::Unknown)
    }
}

impl PolicyScope {
    fn from_name(word: &str) -> Self {
        match word {
            "grain" => Self::Grain,
            "lineage" => Self::Lineage,
            "subtree" => Self::Subtree,
            _ => Self::Unknown,
        }
    }

    /// The word of the standard.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grain => "grain",
            Self::Lineage => "lineage",
            Self::Subtree => "subtree",
            Self::Unknown => "unknown",
        }
    }
}

impl FallbackMode {
    /// Parses a fallback mode. A missing one, and `timed` again, stay locked.
    fn from_name(word: Option<&str>, threshold: Option<u64>) -> Self {
        match word {
            Some("open") => Self::Open,
            Some("soft_locked") => Self::SoftLocked,
            None | Some("locked" | "timed") => Self::Locked,
            Some("quorum") => Self::Quorum(threshold),
            Some("delegated") => Self::Delegated,
            Some("hold") => Self::Hold,
            Some("consent_cascade") => Self::ConsentCascade,
            Some(_) => Self::Unknown,
        }
    }

    /// The mode once the lock has ended.
    pub(crate) fn mode(self) -> PolicyMode {
        match self {
            Self::Open => PolicyMode::Open,
            Self::SoftLocked => PolicyMode::SoftLocked,
            Self::Locked => PolicyMode::Locked,
            Self::Quorum(threshold) => PolicyMode::Quorum(threshold),
            Self::Delegated => PolicyMode::Delegated,
            Self::Hold => PolicyMode::Hold,
            Self::ConsentCascade => PolicyMode::ConsentCascade,
            Self::Unknown => PolicyMode::Unknown,
        }
    }
}

impl PolicyMode {
    /// The word of the standard, or `unknown` or `malformed`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::SoftLocked => "soft_locked",
            Self::Locked => "locked",
            Self::Quorum(_) => "quorum",
            Self::Delegated => "delegated",
            Self::Timed(..) => "timed",
            Self::Hold => "hold",
            Self::ConsentCascade => "consent_cascade",
            Self::Unknown => "unknown",
            Self::Malformed => "malformed",
        }
    }
}

/// Reads an optional integer; `None` if the field has another type.
fn optional_int(map: MapRef<'_>, name: &str) -> Option<Option<Int>> {
    match map.get(name) {
        None => Some(None),
        Some(ValueRef::Int(number)) => Some(Some(number)),
        Some(_) => None,
    }
}

/// Reads an optional text; `None` if the field has another type.
fn optional_text<'a>(map: MapRef<'a>, name: &str) -> Option<Option<&'a str>> {
    match map.get(name) {
        None => Some(None),
        Some(ValueRef::Str(text)) => Some(Some(text)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grainstore_format::{Encoding, Grain};

    /// The terms of a belief with this policy, in JSON.
    fn terms(policy: &str) -> PolicyTerms {
        let grain = Grain::from_json(&format!(
            r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "o",
                "confidence": 1, "created_at": 0, "invalidation_policy": {policy}}}"#
        ));
        let blob = grain.unwrap().encode(Encoding::MessagePack).unwrap();
        PolicyTerms::of(&GrainRef::new(blob.bytes()).unwrap())
    }

    #[test]
    fn modes_are_read_as_the_standard_names_them() {
        let timed = |fallback| PolicyMode::Timed(100, fallback);
        for (policy, mode) in [
            (r#"{"mode": "open"}"#, PolicyMode::Open),
            (r#"{"mode": "open", "colour": "red"}"#, PolicyMode::Open),
            (r#"{"mode": "OPEN"}"#, PolicyMode::Unknown),
            (r#"{"mode": "ajar"}"#, PolicyMode::Unknown),
            (r#"{"mode": "quorum", "threshold": 2}"#, PolicyMode::Quorum(Some(2))),
            (r#"{"mode": "quorum", "threshold": 0}"#, PolicyMode::Quorum(None)),
            (r#"{"mode": "quorum", "threshold": -1}"#, PolicyMode::Quorum(None)),
            (
                r#"{"mode": "quorum", "threshold": 9223372036854775808}"#,
                PolicyMode::Quorum(Some(1 << 63)),
            ),
            (r#"{"mode": "quorum"}"#, PolicyMode::Quorum(None)),
            (r#"{"mode": "timed", "locked_until": 100}"#, timed(FallbackMode::Locked)),
            (
                r#"{"mode": "timed", "locked_until": 100, "fallback_mode": "timed"}"#,
                timed(FallbackMode::Locked),
            ),
            (
                r#"{"mode": "timed", "locked_until": 100, "fallback_mode": "ajar"}"#,
                timed(FallbackMode::Unknown),
            ),
            (
                r#"{"mode": "timed", "locked_until": 100, "fallback_mode": "quorum", "threshold": 3}"#,
                timed(FallbackMode::Quorum(Some(3))),
            ),
        ] {
            assert_eq!(terms(policy).mode, mode, "{policy}");
        }
    }

    #[test]
    fn a_map_with_a_value_of_another_type_is_malformed_whatever_its_mode() {
        for policy in [
            "{}",
            r#"{"mode": 1}"#,
            r#"{"mode": ["open"]}"#,
            r#"{"mode": "open", "authorized": "did:web:a"}"#,
            r#"{"mode": "open", "authorized": [1]}"#,
            r#"{"mode": "open", "threshold": "2"}"#,
            r#"{"mode": "quorum", "threshold": 1.5}"#,
            r#"{"mode": "open", "scope": 1}"#,
            r#"{"mode": "open", "locked_until": "never"}"#,
            r#"{"mode": "open", "fallback_mode": true}"#,
            r#"{"mode": "open", "protection_reason": 7}"#,
            r#"{"mode": "timed", "fallback_mode": "open"}"#,
            r#"{"mode": "timed", "locked_until": -5, "fallback_mode": "open"}"#,
        ] {
            let terms = terms(policy);
            assert_eq!(terms.mode, PolicyMode::Malformed, "{policy}");
            assert!(terms.protects(), "{policy}");
        }
        assert!(terms(r#"{"mode": "hold", "authorized": 1}"#).holds, "a hold is a hold");
    }

    #[test]
    fn scopes_reach_as_far_as_the_standard_says() {
        for (scope, derived, chain) in [
            (r#""grain""#, false, false),
            (r#""lineage""#, false, true),
            (r#""subtree""#, true, false),
            (r#""galaxy""#, true, true),
            ("1", true, true),
        ] {
            let terms = terms(&format!(r#"{{"mode": "locked", "scope": {scope}}}"#));
            assert_eq!((terms.covers_derived(), terms.covers_chain()), (derived, chain), "{scope}");
        }
        let default = terms(r#"{"mode": "locked"}"#);
        assert!(!default.covers_derived() && !default.covers_chain());
    }
}
