//! Retention periods of grains (ruling 42; OMS 6.1, A.3).
//!
//! Knows one grain and a clock.

use grainstore_format::{EpochMs, GrainRef, MapRef, ValueRef};

use crate::base::error::{Error, ErrorKind};
use crate::rules::policy::PolicyRule;

const POLICY: &str = "retention_policy";
const YEARS: &str = "minimum_retention_years";
const REQUIRES: &str = "deletion_requires";
/// The regulation behind the policy; only checked to be text.
const REGULATION: &str = "regulation";
/// The field of the finance profile, at the top level of a grain or in its `context`.
const FINANCE: &str = "fin:retention_years";

/// The retention that a grain states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RetentionPeriod {
    /// No retention.
    Free,
    Kept {
        /// End of the period; `None` if it is beyond the calendar.
        until: Option<EpochMs>,
        /// A text that the reason of an erasure must contain.
        requires: Option<String>,
    },
    /// A policy that cannot be parsed.
    Malformed,
}

impl RetentionPeriod {
    pub(super) fn from_grain(grain: &GrainRef<'_>) -> Self {
        let (Ok(policy), Ok(finance)) = (parse_policy(grain), parse_finance_profile(grain)) else {
            return Self::Malformed;
        };
        let (years, requires) = match (policy, finance) {
            (None, None) => return Self::Free,
            (None, Some(years)) => (years, None),
            (Some((years, requires)), finance) => (years.max(finance.unwrap_or(0)), requires),
        };
        Self::Kept { until: created_at(grain).plus_years(years), requires }
    }

    /// Returns the rule that forbids an erasure now for this reason, and the explanation; `None` if it is
    /// allowed. `overrides` ignores a malformed policy.
    pub(super) fn forbids(
        &self,
        (now, reason): (EpochMs, &str),
        overrides: bool,
    ) -> Option<(PolicyRule, String)> {
        match self {
            Self::Free => None,
            Self::Malformed if overrides => None,
            Self::Malformed => {
                let rule = PolicyRule::RetentionMalformed;
                Some((rule, rule.info().text.to_owned()))
            }
            Self::Kept { until: None, .. } => {
                Some((PolicyRule::Retained, "it has to be kept for good".to_owned()))
            }
            Self::Kept { until: Some(until), .. } if now < *until => {
                Some((PolicyRule::Retained, format!("it has to be kept until {until}")))
            }
            Self::Kept { requires: Some(requires), .. }
                if !contains_ignoring_case(reason, requires) =>
            {
                let why = format!("the reason has to name what its deletion requires: {requires}");
                Some((PolicyRule::DeletionRequires, why))
            }
            Self::Kept { .. } => None,
        }
    }
}

/// Returns the creation time of a grain.
pub(super) fn created_at(grain: &GrainRef<'_>) -> EpochMs {
    let second = i64::from(grain.header().created_at_sec).saturating_mul(1000);
    EpochMs::new(grain.int("created_at").unwrap_or(second))
}

/// The error of a refused erasure.
pub(super) fn retention_error(message: String) -> Error {
    Error::new(ErrorKind::Policy, message).with_hint(
        "wait until the date, name in the reason what deletion requires, or override a malformed \
         retention_policy",
    )
}

/// Returns `true` if a reason contains a text, ignoring case.
fn contains_ignoring_case(reason: &str, what: &str) -> bool {
    reason.to_lowercase().contains(&what.to_lowercase())
}

/// Parses the policy: years, and the text that a deletion requires.
fn parse_policy(grain: &GrainRef<'_>) -> Result<Option<(u64, Option<String>)>, ()> {
    match grain.get(POLICY) {
        None => Ok(None),
        Some(ValueRef::Map(map)) => {
            let years = count(map.get(YEARS).as_ref()).ok_or(())?;
            text(map, REGULATION)?;
            Ok(Some((years, text(map, REQUIRES)?)))
        }
        Some(_) => Err(()),
    }
}

/// Parses the field of the finance profile.
fn parse_finance_profile(grain: &GrainRef<'_>) -> Result<Option<u64>, ()> {
    let within = grain.get("context").and_then(|context| context.as_map()?.get(FINANCE));
    let said = [grain.get(FINANCE), within];
    let mut years = None;
    for value in said.iter().flatten() {
        years = years.max(Some(count(Some(value)).ok_or(())?));
    }
    Ok(years)
}

fn count(value: Option<&ValueRef<'_>>) -> Option<u64> {
    u64::try_from(value?.as_i64()?).ok()
}

fn text(map: MapRef<'_>, name: &str) -> Result<Option<String>, ()> {
    match map.get(name) {
        None => Ok(None),
        Some(ValueRef::Str(text)) => Ok(Some(text.trim().to_owned()).filter(|t| !t.is_empty())),
        Some(_) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grain;
    use crate::disk::blob::with_fields;

    /// 2024-01-31T00:00:00Z.
    const CREATED: i64 = 1_706_659_200_000;
    const DAY: i64 = 86_400_000;

    fn of(fields: &str) -> RetentionPeriod {
        let json = format!(
            r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1.0,
                "created_at": {CREATED}{fields}}}"#
        );
        let blob = Grain::from_json(&json).unwrap().encode(Default::default()).unwrap();
        with_fields(blob.bytes(), |grain| Ok(RetentionPeriod::from_grain(grain))).unwrap()
    }

    fn kept(until: i64) -> RetentionPeriod {
        RetentionPeriod::Kept { until: Some(EpochMs::new(until)), requires: None }
    }

    #[test]
    fn years_are_those_of_the_calendar_and_the_larger_number_counts() {
        // 2024 has 366 days, 2025 to 2027 have 365, and 2028 has 366.
        let [one, five] = [366, 366 + 3 * 365 + 366].map(|days| CREATED + days * DAY);
        for (fields, expected) in [
            ("", RetentionPeriod::Free),
            (r#", "retention_policy": {"minimum_retention_years": 0}"#, kept(CREATED)),
            (r#", "retention_policy": {"minimum_retention_years": 1}"#, kept(one)),
            (r#", "fin:retention_years": 5"#, kept(five)),
            (r#", "context": {"fin:retention_years": 5}"#, kept(five)),
            (
                r#", "retention_policy": {"minimum_retention_years": 1}, "context": {"fin:retention_years": 5}"#,
                kept(five),
            ),
            (
                r#", "retention_policy": {"minimum_retention_years": 5}, "context": {"fin:retention_years": 1}"#,
                kept(five),
            ),
            (
                r#", "retention_policy": {"minimum_retention_years": 99999999}"#,
                RetentionPeriod::Kept { until: None, requires: None },
            ),
        ] {
            assert_eq!(of(fields), expected, "{fields}");
        }
    }

    #[test]
    fn what_is_not_understood_is_malformed() {
        for fields in [
            r#", "retention_policy": {}"#,
            r#", "retention_policy": {"minimum_retention_years": "5"}"#,
            r#", "retention_policy": {"minimum_retention_years": -1}"#,
            r#", "retention_policy": {"minimum_retention_years": 1, "deletion_requires": 5}"#,
            r#", "retention_policy": {"minimum_retention_years": 1, "regulation": ["x"]}"#,
            r#", "context": {"fin:retention_years": "five"}"#,
            r#", "context": {"fin:retention_years": 1.5}"#,
        ] {
            assert_eq!(of(fields), RetentionPeriod::Malformed, "{fields}");
        }
    }

    #[test]
    fn the_last_moment_of_the_time_refuses_and_the_next_does_not() {
        let retention = of(
            r#", "retention_policy": {"minimum_retention_years": 1, "deletion_requires": "Legal Officer"}"#,
        );
        let end = CREATED + 366 * DAY;
        for (now, reason, expected) in [
            (end - 1, "legal officer agrees", Some(PolicyRule::Retained)),
            (end, "the legal OFFICER agrees", None),
            (end, "somebody agrees", Some(PolicyRule::DeletionRequires)),
        ] {
            let refused = retention.forbids((EpochMs::new(now), reason), true);
            assert_eq!(refused.map(|(rule, _)| rule), expected, "{now} {reason}");
        }
        let now = (EpochMs::new(end), "any");
        assert!(RetentionPeriod::Malformed.forbids(now, false).is_some());
        assert!(RetentionPeriod::Malformed.forbids(now, true).is_none());
    }
}
