//! The cases of `vectors/presets` on the decision alone; and every rule is needed by some case: removing it
//! changes an outcome.

use std::collections::BTreeSet;

use grainstore_format::{self as format, ContentAddress, Grain, GrainType};

use super::rule::RuleDecision;
use super::*;

#[path = "../../../tests/rules/presets/case.rs"]
#[expect(dead_code, reason = "the runner on a whole store uses the rest")]
mod case;

use case::{Case, Grains, blob};

/// The outcome of a case under these rules.
fn decided(case: &Case, rules: &RuleSet) -> RuleDecision {
    let grains = case.grains();
    with_facts(case, &grains, rules, |deed, facts| rules.decide(deed, facts))
}

fn with_facts<T>(
    case: &Case,
    Grains { grain, consents, .. }: &Grains,
    rules: &RuleSet,
    read: impl FnOnce(Action, &RuleFacts<'_>) -> T,
) -> T {
    let basis = match grain.text("processing_basis").filter(|said| !said.is_empty()) {
        None => ProcessingBasis::Missing,
        Some(said) => match said.parse::<ContentAddress>() {
            Err(_) => ProcessingBasis::Word(said.to_owned()),
            Ok(address) => consent(consents, &address),
        },
    };
    let facts = RuleFacts {
        grain,
        basis: &basis,
        purposes: &case.purposes,
        held: case.held,
        verified: case.verified,
        encrypted: case.keys && rules.encrypts(grain),
    };
    read(deed(case), &facts)
}

/// The state of a consent of a case: its last version counts.
fn consent(consents: &[(Grain, Option<usize>)], address: &ContentAddress) -> ProcessingBasis {
    let found = consents.iter().position(|(consent, _)| blob(consent).address() == *address);
    let Some(mut at) = found else { return ProcessingBasis::Unknown };
    while let Some(next) = consents.iter().position(|(_, before)| *before == Some(at)) {
        at = next;
    }
    let head = &consents[at].0;
    match head.grain_type() {
        GrainType::Consent => {
            ProcessingBasis::Consent(head.texts("scope").map(str::to_owned).collect())
        }
        _ => ProcessingBasis::Unknown,
    }
}

fn deed(case: &Case) -> Action {
    Action::ALL.into_iter().find(|deed| deed.name() == case.op).unwrap()
}

/// Returns `true` if the outcome is the expected one.
fn holds(case: &Case, rules: &RuleSet) -> bool {
    let decision = decided(case, rules);
    let refused = decision.refusal.map(|refusal| refusal.id);
    refused == case.refused.as_deref()
        && (refused.is_some() || decision.needs_review == case.review)
}

/// Returns `true` for a rule of this preset that is not one of every store.
fn is_own(preset: Preset, id: &str) -> bool {
    preset == Preset::default() || id.starts_with(&format!("{}.", preset.name()))
}

fn all() -> impl Iterator<Item = (Preset, RuleSet, Vec<Case>)> {
    Preset::all().map(|preset| (preset, preset.rules().unwrap(), case::of(preset.name())))
}

#[test]
fn the_decision_alone_comes_out_as_each_case_says() {
    for (preset, rules, cases) in all() {
        for case in &cases {
            let decision = decided(case, &rules);
            assert!(holds(case, &rules), "{}, {}: {decision:?}", preset.name(), case.name);
            if let Some(id) = &case.refused {
                let rule = rules.rules.iter().find(|rule| rule.id == id).unwrap();
                assert_eq!(rule.article, case.article, "{}", case.name);
            }
        }
    }
}

#[test]
fn a_rule_that_a_case_passes_applies_to_it() {
    for (preset, rules, cases) in all() {
        for case in &cases {
            for id in &case.allowed {
                let rule = rules.rules.iter().find(|rule| rule.id == id);
                let rule = rule.unwrap_or_else(|| panic!("no rule {id}"));
                let grains = case.grains();
                let applies = with_facts(case, &grains, &rules, |deed, facts| {
                    rule.on.contains(&deed) && rule.applies(facts, rules.personal_level())
                });
                assert!(applies, "{}, {}: {id}", preset.name(), case.name);
            }
        }
    }
}

/// Each rule of each preset refuses, or marks, some case, and lets another pass.
#[test]
fn each_rule_is_refused_by_a_case_and_passed_by_another() {
    for (preset, rules, cases) in all() {
        let refused: BTreeSet<_> =
            cases.iter().filter_map(|case| case.refused.as_deref()).collect();
        let own = rules.rules.iter().filter(|rule| is_own(preset, rule.id));
        let mut looked = 0;
        for rule in own {
            looked += 1;
            let marks = rule.effect() == "set";
            assert!(marks || refused.contains(rule.id), "{}: nothing is refused", rule.id);
            // The same action without the rule in question.
            let passes =
                cases.iter().any(|case| case.refused.is_none() && rule.on.contains(&deed(case)));
            assert!(passes, "{}: nothing is allowed", rule.id);
            let without = rules.clone().without(rule.id);
            let differs = cases.iter().any(|case| !holds(case, &without));
            assert!(differs, "{}: nothing comes out otherwise without it", rule.id);
        }
        assert!(looked >= 8, "{}: {looked} rules", preset.name());
    }
}
