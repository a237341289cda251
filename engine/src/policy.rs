//! Invalidation policy: what a grain says about who may replace it (OMS 23, rulings 20 and 38).
//!
//! One pure function takes facts and gives a decision with the rule that made it. Modes that need
//! a signature refuse, since nothing here verifies one: a refusal is never wrong in the dangerous
//! direction.

use grainstore_format::{EpochMs, GrainRef, GrainType, MapRef, ValueRef};

/// What the decision is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Why, as the superseding grain says it.
    pub(crate) justification: Option<&'a str>,
    /// The time of the decision.
    pub(crate) now: EpochMs,
}

/// May it, and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Allowed by this rule; a person should look at it afterwards, or not.
    Allow { rule: Rule, needs_review: bool },
    /// Refused by this rule.
    Deny(Rule),
}

/// The rules, by the names they have in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Open,
    SoftLocked,
    NotJustified,
    Locked,
    TimedLock,
    Hold,
    NeedsSignature,
    UnknownMode,
    Malformed,
    TooManyAncestors,
}

impl Rule {
    /// The name in the audit log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::SoftLocked => "soft_locked",
            Self::NotJustified => "soft_locked_without_justification",
            Self::Locked => "locked",
            Self::TimedLock => "timed_lock",
            Self::Hold => "hold",
            Self::NeedsSignature => "needs_signature",
            Self::UnknownMode => "unknown_mode",
            Self::Malformed => "malformed_policy",
            Self::TooManyAncestors => "too_many_ancestors",
        }
    }

    /// Why it refuses, for a person.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Open | Self::SoftLocked => "allowed",
            Self::NotJustified => "it is soft_locked: give a supersession_justification",
            Self::Locked => "it is locked: nothing may replace it",
            Self::TimedLock => "it is locked until its locked_until",
            Self::Hold => "it is under litigation hold",
            Self::NeedsSignature => "its policy asks for signatures, and none can be verified here",
            Self::UnknownMode => "its policy mode is unknown, which counts as locked",
            Self::Malformed => "its policy is malformed, which counts as locked",
            Self::TooManyAncestors => "its derivation has too many ancestors to check",
        }
    }
}

/// The policy a grain carries, as far as it is well formed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Policy<'a> {
    /// None; the default of the type holds.
    Absent(GrainType),
    /// A map.
    Map(MapRef<'a>),
    /// Anything else.
    Malformed,
}

impl<'a> Policy<'a> {
    /// The policy of a stored grain.
    pub(crate) fn of(grain: &GrainRef<'a>) -> Self {
        match grain.get("invalidation_policy") {
            None => Self::Absent(grain.grain_type()),
            Some(ValueRef::Map(map)) => Self::Map(map),
            Some(_) => Self::Malformed,
        }
    }

    /// Whether it restricts anything: such a grain protects what descends from it (OMS 23.6).
    pub(crate) fn protects(&self) -> bool {
        match self {
            Self::Absent(grain_type) => *grain_type == GrainType::Consent,
            Self::Map(map) => mode(*map) != Some("open") && mode(*map) != Some("consent_cascade"),
            Self::Malformed => true,
        }
    }

    /// Whether its protection reaches grains derived from it: scope subtree, and unknown scopes.
    pub(crate) fn covers_derived(&self) -> bool {
        match self {
            Self::Absent(_) => false,
            Self::Map(map) => match map.get("scope") {
                None => false,
                Some(scope) => !matches!(scope.as_str(), Some("grain" | "lineage")),
            },
            Self::Malformed => true,
        }
    }

    /// Whether the grain is under litigation hold from birth.
    pub(crate) fn holds(&self) -> bool {
        matches!(self, Self::Map(map) if mode(*map) == Some("hold"))
    }

    /// May the grain that carries this policy be replaced?
    pub(crate) fn decide(&self, request: &Request<'_>) -> Decision {
        match self {
            Self::Absent(GrainType::Consent) => soft_locked(request),
            Self::Absent(_) => OPEN,
            Self::Map(map) => match map.get("mode") {
                Some(ValueRef::Str(mode)) => by_mode(mode, *map, request),
                _ => Decision::Deny(Rule::Malformed),
            },
            Self::Malformed => Decision::Deny(Rule::Malformed),
        }
    }
}

const OPEN: Decision = Decision::Allow { rule: Rule::Open, needs_review: false };

fn mode(map: MapRef<'_>) -> Option<&str> {
    map.get("mode")?.as_str()
}

fn by_mode(mode: &str, map: MapRef<'_>, request: &Request<'_>) -> Decision {
    match mode {
        // A cascade restricts what happens on withdrawal of consent, not supersession.
        "open" | "consent_cascade" => OPEN,
        "soft_locked" => soft_locked(request),
        "locked" => Decision::Deny(Rule::Locked),
        "hold" => Decision::Deny(Rule::Hold),
        "quorum" | "delegated" => Decision::Deny(Rule::NeedsSignature),
        "timed" => timed(map, request),
        _ => Decision::Deny(Rule::UnknownMode),
    }
}

fn soft_locked(request: &Request<'_>) -> Decision {
    match request.justification {
        Some(why) if !why.trim().is_empty() => {
            Decision::Allow { rule: Rule::SoftLocked, needs_review: true }
        }
        _ => Decision::Deny(Rule::NotJustified),
    }
}

/// Locked until `locked_until` (epoch seconds), then as `fallback_mode` says.
fn timed(map: MapRef<'_>, request: &Request<'_>) -> Decision {
    let Some(until) = map.get("locked_until").and_then(|until| until.as_i64()) else {
        return Decision::Deny(Rule::Malformed);
    };
    if request.now.get().div_euclid(1000) < until {
        return Decision::Deny(Rule::TimedLock);
    }
    match map.get("fallback_mode").and_then(|mode| mode.as_str()) {
        None | Some("timed") => Decision::Deny(Rule::Locked),
        Some(mode) => by_mode(mode, map, request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grainstore_format::{Encoding, Grain};

    /// The decision over a belief with this policy, in JSON.
    fn decide(policy: &str, justification: Option<&str>, now_ms: i64) -> Decision {
        let grain = Grain::from_json(&format!(
            r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "o",
                "confidence": 1, "created_at": 0, "invalidation_policy": {policy}}}"#
        ));
        let blob = grain.unwrap().encode(Encoding::MessagePack).unwrap();
        let view = GrainRef::new(blob.bytes()).unwrap();
        let request = Request { justification, now: EpochMs::new(now_ms) };
        Policy::of(&view).decide(&request)
    }

    #[test]
    fn each_mode_decides_as_the_standard_says() {
        let review = Decision::Allow { rule: Rule::SoftLocked, needs_review: true };
        let deny = Decision::Deny;
        let timed = r#"{"mode": "timed", "locked_until": 100, "fallback_mode": "open"}"#;
        let rows = [
            (r#"{"mode": "open"}"#, None, OPEN),
            (r#"{"mode": "open", "colour": "red"}"#, None, OPEN),
            (r#"{"mode": "consent_cascade"}"#, None, OPEN),
            (r#"{"mode": "soft_locked"}"#, Some("moved"), review),
            (r#"{"mode": "soft_locked"}"#, Some(" "), deny(Rule::NotJustified)),
            (r#"{"mode": "soft_locked"}"#, None, deny(Rule::NotJustified)),
            (r#"{"mode": "locked"}"#, Some("please"), deny(Rule::Locked)),
            (r#"{"mode": "hold"}"#, Some("please"), deny(Rule::Hold)),
            (r#"{"mode": "quorum", "threshold": 1}"#, None, deny(Rule::NeedsSignature)),
            (r#"{"mode": "delegated"}"#, None, deny(Rule::NeedsSignature)),
            (r#"{"mode": "OPEN"}"#, None, deny(Rule::UnknownMode)),
            (r#"{"mode": "ajar"}"#, Some("please"), deny(Rule::UnknownMode)),
            (r#"{"mode": 1}"#, None, deny(Rule::Malformed)),
            ("{}", None, deny(Rule::Malformed)),
            (r#"{"mode": "timed"}"#, None, deny(Rule::Malformed)),
            (timed, None, deny(Rule::TimedLock)),
        ];
        for (policy, justification, expected) in rows {
            assert_eq!(decide(policy, justification, 99_999), expected, "{policy}");
        }
    }

    #[test]
    fn a_timed_lock_opens_at_its_second_into_its_fallback() {
        let timed = |fallback: &str| {
            format!(r#"{{"mode": "timed", "locked_until": 100, "fallback_mode": "{fallback}"}}"#)
        };
        for (fallback, expected) in [
            ("open", OPEN),
            ("soft_locked", Decision::Deny(Rule::NotJustified)),
            ("locked", Decision::Deny(Rule::Locked)),
            ("timed", Decision::Deny(Rule::Locked)),
            ("ajar", Decision::Deny(Rule::UnknownMode)),
        ] {
            assert_eq!(decide(&timed(fallback), None, 100_000), expected, "{fallback}");
        }
        let absent = r#"{"mode": "timed", "locked_until": 100}"#;
        assert_eq!(decide(absent, None, 100_000), Decision::Deny(Rule::Locked));
    }
}
