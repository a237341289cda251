//! Policies and decisions in words, for people and tools that ask before they act.

use grainstore_format::{Encoding, Grain, GrainRef};
use serde::Serialize;

use super::rules::Rule;
use super::terms::{Fallback, Mode, Terms};
use crate::error::{Error, Result};

/// What the invalidation policy of a grain demands (OMS 23).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The mode of OMS 23.2; `unknown` and `malformed` for what counts as locked.
    pub mode: &'static str,
    /// `grain`, `lineage`, `subtree`, or `unknown`, which counts as the last two together.
    pub scope: &'static str,
    /// The DIDs whose signatures count.
    pub authorized: Vec<String>,
    /// Whether a litigation hold is on the grain from the moment it is stored.
    pub holds: bool,
    /// What each part of it means, a sentence each.
    pub demands: Vec<String>,
}

/// A rule that was applied to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ruling {
    /// Its name, as the audit log has it.
    pub rule: &'static str,
    /// Whether the attempt may go on.
    pub passes: bool,
    /// Why.
    pub text: &'static str,
    /// The section of OMS it comes from.
    pub section: &'static str,
}

impl From<Rule> for Ruling {
    fn from(rule: Rule) -> Self {
        let row = rule.row();
        Self { rule: row.name, passes: row.passes, text: row.text, section: row.section }
    }
}

/// Says what the policy of a grain demands, stored or not.
///
/// # Errors
/// Those of encoding a grain that is not valid.
pub fn explain(grain: &Grain) -> Result<Explanation> {
    let blob = grain.encode(Encoding::MessagePack)?;
    let terms = Terms::of(&GrainRef::new(blob.bytes()).map_err(Error::from)?);
    let mut demands = vec![demand(terms.mode)];
    if let Mode::Timed(_, fallback) = terms.mode {
        demands.push(format!("then: {}", demand_of(fallback)));
    }
    demands.push(reach(&terms).to_owned());
    let allowed: Vec<_> = grain.texts("allowed_transitions").collect();
    if terms.protects() && !allowed.is_empty() {
        let states = allowed.join(", ");
        demands.push(format!("its goal_state may change to {states} without all that"));
    }
    if let Some(least) = grain.int("evidence_required").filter(|least| *least > 0) {
        demands
            .push(format!("satisfied takes {least} grains of satisfaction_evidence, failed one"));
    }
    Ok(Explanation {
        mode: terms.mode.name(),
        scope: terms.scope.name(),
        holds: terms.holds,
        demands,
        authorized: terms.authorized,
    })
}

fn demand_of(fallback: Fallback) -> String {
    demand(fallback.mode())
}

fn demand(mode: Mode) -> String {
    match mode {
        Mode::Open => "anyone may replace it".to_owned(),
        Mode::SoftLocked => {
            "who replaces it gives a supersession_justification, and the new grain is marked for review"
                .to_owned()
        }
        Mode::Locked => "nothing may invalidate it".to_owned(),
        Mode::Quorum(Some(least)) => format!(
            "who replaces it brings supersession_auth with signatures of {least} different \
             authorized DIDs"
        ),
        Mode::Quorum(None) => {
            "nothing may invalidate it: its quorum has no threshold of at least 1".to_owned()
        }
        Mode::Delegated => "one of the authorized DIDs signs whatever invalidates it".to_owned(),
        Mode::Timed(until, _) => format!("nothing may invalidate it before epoch second {until}"),
        Mode::Hold => {
            "it is neither invalidated nor erased until its litigation hold is lifted".to_owned()
        }
        Mode::ConsentCascade => {
            "anyone may replace it, and it goes when its consent is withdrawn".to_owned()
        }
        Mode::Unknown => "nothing may invalidate it: its mode is unknown".to_owned(),
        Mode::Malformed => "nothing may invalidate it: its policy is malformed".to_owned(),
    }
}

fn reach(terms: &Terms) -> &'static str {
    match (terms.covers_chain(), terms.covers_derived()) {
        (false, false) => "it protects this grain and the versions that follow it",
        (true, false) => "it protects every version of this grain",
        (false, true) => "it protects this grain and what derives from it",
        (true, true) => "it protects every version of this grain and what derives from it",
    }
}
