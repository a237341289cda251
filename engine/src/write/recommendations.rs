//! Recommendations of the standard (SHOULD) that a grain does not follow: returned as warnings to the caller
//! that stores it, never a refusal. Reads the grain alone; warnings about policies are in `rules::policy`.

use grainstore_format::{Grain, GrainRef, GrainType};

use crate::rules::policy::has_protecting_policy;

/// Types of observer that SHOULD name their model (OMS 17.2).
const MODEL_OBSERVERS: [&str; 4] = ["llm", "reflector", "classifier", "detector"];
/// Types of observer that sense the physical world (OMS 24.1).
const PHYSICAL_OBSERVERS: [&str; 11] = [
    "lidar",
    "camera",
    "imu",
    "gps",
    "temperature",
    "pressure",
    "accelerometer",
    "magnetometer",
    "ultrasonic",
    "radar",
    "microphone",
];
/// Source types of universal and permanent knowledge (OMS 27.3).
const UNIVERSAL_SOURCES: [&str; 2] = ["established_knowledge", "axiomatic"];
/// Final states of a goal (OMS 23.5).
const FINAL_GOAL_STATES: [&str; 2] = ["satisfied", "failed"];
const DELEGATION_RELATION: &str = "mg:delegates_to";
const OWNERSHIP_RELATIONS: [&str; 2] = ["mg:owned_by", "owned_by"];
const IDENTITY_NAMESPACE: &str = "agent:identity";
const INTEGRATION_TAG: &str = "profile:integration";

/// Returns `true` if a recommendation could apply to a grain, without encoding it.
pub(crate) fn may_apply(grain: &Grain) -> bool {
    matches!(grain.grain_type(), GrainType::Observation | GrainType::Goal)
        || grain.text("source_type").is_some_and(|source| UNIVERSAL_SOURCES.contains(&source))
        || grain
            .text("relation")
            .is_some_and(|said| said == DELEGATION_RELATION || OWNERSHIP_RELATIONS.contains(&said))
        || grain.texts("structural_tags").any(|tag| tag == INTEGRATION_TAG)
}

/// Returns the recommendations that a grain does not follow, one sentence each.
pub(crate) fn recommendations(grain: &GrainRef<'_>) -> Vec<String> {
    let mut advice = Vec::new();
    match grain.grain_type() {
        GrainType::Observation => of_observation(grain, &mut advice),
        GrainType::Goal => advice.extend(of_goal(grain)),
        _ => {}
    }
    if grain.text("source_type").is_some_and(|source| UNIVERSAL_SOURCES.contains(&source)) {
        of_universal(grain, &mut advice);
    }
    match grain.text("relation") {
        Some(DELEGATION_RELATION) => of_delegation(grain, &mut advice),
        Some(said)
            if OWNERSHIP_RELATIONS.contains(&said) && grain.partition() == IDENTITY_NAMESPACE =>
        {
            let said = "it says whom an agent belongs to, and should have an invalidation_policy that \
                        leaves changes to the owner (OMS 12.5.3)";
            advice.extend((!has_protecting_policy(grain)).then(|| said.to_owned()));
        }
        _ => {}
    }
    if tags(grain).any(|tag| tag == INTEGRATION_TAG) {
        let absent = ["int:connector", "int:auth_type"]
            .into_iter()
            .filter(|name| !has_profile_field(grain, name));
        advice.extend(absent.map(|name| {
            format!("it has the tag {INTEGRATION_TAG}, and should have {name} (OMS A.7)")
        }));
    }
    advice
}

fn of_observation(grain: &GrainRef<'_>, advice: &mut Vec<String>) {
    let observer = grain.text("observer_type").unwrap_or_default();
    let mut tell = |when: bool, said: String| advice.extend(when.then_some(said));
    tell(
        MODEL_OBSERVERS.contains(&observer)
            && grain.text("observer_model").is_none_or(|model| model.trim().is_empty()),
        format!("an observer of type {observer} should name its observer_model (OMS 17.2)"),
    );
    let source = match observer {
        "human" => Some("user_explicit"),
        _ if PHYSICAL_OBSERVERS.contains(&observer) => Some("sensor"),
        _ if MODEL_OBSERVERS.contains(&observer) => Some("agent_inferred"),
        _ => None,
    };
    if let Some(source) = source {
        tell(
            grain.text("source_type").is_some_and(|said| said != source),
            format!(
                "the source_type of an observer of type {observer} should be {source} (OMS 24)"
            ),
        );
    }
    let mode = grain.text("observation_mode");
    tell(
        mode == Some("reflective")
            && !PHYSICAL_OBSERVERS.contains(&observer)
            && grain.get("observation_scope").is_none(),
        "a reflective observation should name its observation_scope (OMS 26)".to_owned(),
    );
    tell(
        mode == Some("reflective") && is_empty(grain, "derived_from"),
        "a reflective observation should name what it looked back at in derived_from (OMS 25)"
            .to_owned(),
    );
    let probe = grain.get("context").and_then(|context| context.as_map()?.get("probe"));
    tell(
        mode == Some("active") && probe.is_none(),
        "an active observation should keep what was asked in context.probe (OMS 25)".to_owned(),
    );
    tell(
        observer == "hybrid" && is_empty(grain, "provenance_chain"),
        "a hybrid observer should tell its sensor and its inference in provenance_chain (OMS 24.2)"
            .to_owned(),
    );
}

/// What to tell of a grain that takes the place of one that is protected, beside what is told of it alone:
/// the old policy goes on binding a goal whose next version has none (OMS 23.5).
pub(crate) fn of_successor(grain: &GrainRef<'_>) -> Option<String> {
    let is_bound = grain.grain_type() == GrainType::Goal && !has_protecting_policy(grain);
    is_bound.then(|| unevidenced(grain)).flatten()
}

/// Recommends evidence for a protected goal in a final state (OMS 23.4, 23.5).
fn of_goal(grain: &GrainRef<'_>) -> Option<String> {
    has_protecting_policy(grain).then(|| unevidenced(grain)).flatten()
}

fn unevidenced(grain: &GrainRef<'_>) -> Option<String> {
    let state = grain.text("goal_state").filter(|state| FINAL_GOAL_STATES.contains(state))?;
    is_empty(grain, "satisfaction_evidence").then(|| {
        format!("a protected goal that is {state} should name its satisfaction_evidence (OMS 23.5)")
    })
}

fn of_universal(grain: &GrainRef<'_>, advice: &mut Vec<String>) {
    let source = grain.text("source_type").unwrap_or_default();
    let mode = grain.get("invalidation_policy").and_then(|policy| policy.as_map()?.get("mode"));
    let failings = [
        (grain.get("user_id").is_some(), "no user_id"),
        (grain.get("valid_to").is_some(), "no valid_to"),
        (grain.number("confidence").is_some_and(|sure| sure < 1.0), "the confidence 1.0"),
        (
            mode.and_then(|mode| mode.as_str()) != Some("locked"),
            "an invalidation_policy of mode locked",
        ),
    ];
    let failing = failings.into_iter().filter(|(fails, _)| *fails);
    advice.extend(failing.map(|(_, wanted)| {
        format!("a grain of source_type {source} should have {wanted} (OMS 27.3)")
    }));
}

fn of_delegation(grain: &GrainRef<'_>, advice: &mut Vec<String>) {
    let bounds =
        ["authorized_namespaces", "authorized_types", "delegation_depth", "delegation_expiry"];
    let absent: Vec<_> = bounds.into_iter().filter(|name| grain.get(name).is_none()).collect();
    if !absent.is_empty() {
        let absent = absent.join(", ");
        advice
            .push(format!("a delegation should say how far it goes: it lacks {absent} (OMS 6.11)"));
    }
    let namespaces = grain.get("authorized_namespaces").and_then(|list| list.as_array());
    if namespaces.is_some_and(|list| list.iter().any(|name| name.as_str() == Some("*"))) {
        advice.push("a delegation to the namespace * is to all of them (OMS 6.11)".to_owned());
    }
}

/// Returns `true` if a field of a domain profile is at the top level or in `context` (OMS A.7).
fn has_profile_field(grain: &GrainRef<'_>, name: &str) -> bool {
    let context = grain.get("context");
    grain.get(name).is_some() || context.and_then(|context| context.as_map()?.get(name)).is_some()
}

fn is_empty(grain: &GrainRef<'_>, name: &str) -> bool {
    grain.get(name).and_then(|list| list.as_array()).is_none_or(|list| list.is_empty())
}

fn tags<'a>(grain: &GrainRef<'a>) -> impl Iterator<Item = &'a str> {
    let list = grain.get("structural_tags").and_then(|tags| tags.as_array());
    list.into_iter().flat_map(|list| list.iter().filter_map(|tag| tag.as_str()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offer;

    /// Checks the warnings about a grain, offered as fields and as a blob.
    #[track_caller]
    fn check(fields: &str, told: &[&str]) {
        let grain = Grain::from_json(&format!(r#"{{"created_at": 0, {fields}}}"#)).unwrap();
        let blob = grain.encode(crate::format::Encoding::default()).unwrap();
        let of_blob = Offer::Blob(blob.into_bytes()).warnings();
        assert_eq!(Offer::from(grain).warnings(), of_blob, "{fields}");
        assert_eq!(of_blob.len(), told.len(), "{fields}: {of_blob:?}");
        for (said, wanted) in of_blob.iter().zip(told) {
            assert!(said.contains(wanted), "{fields}: {said}");
        }
    }

    #[test]
    fn an_observation_is_told_what_the_standard_recommends() {
        let observed = |kind: &str, more: &str| {
            format!(r#""type": "observation", "observer_id": "o", "observer_type": "{kind}"{more}"#)
        };
        for kind in MODEL_OBSERVERS {
            check(&observed(kind, ""), &["observer_model"]);
            check(&observed(kind, r#", "observer_model": "m""#), &[]);
            check(&observed(kind, r#", "observer_model": " ""#), &["observer_model"]);
        }
        check(&observed("human", ""), &[]);
        check(&observed("acme:thermal", ""), &[]);
        check(&observed("gps", r#", "source_type": "agent_inferred""#), &["should be sensor"]);
        check(&observed("human", r#", "source_type": "sensor""#), &["should be user_explicit"]);
        let reflective = r#", "observation_mode": "reflective""#;
        check(&observed("x:r", reflective), &["observation_scope", "derived_from"]);
        check(&observed("imu", reflective), &["derived_from"]);
        let active = r#", "observation_mode": "active""#;
        check(&observed("radar", active), &["context.probe"]);
        check(&observed("radar", &format!(r#"{active}, "context": {{"probe": "ping"}}"#)), &[]);
        check(&observed("hybrid", ""), &["provenance_chain"]);
    }

    #[test]
    fn a_goal_that_goes_on_under_the_old_policy_is_asked_for_evidence() {
        let dir = tempfile::TempDir::new().unwrap();
        let store = crate::Store::open(dir.path(), &crate::OpenOptions::new().create(true));
        let session = store.unwrap().session(crate::SessionOptions::default());
        let goal = |at: u32, more: &str| {
            let json = format!(
                r#"{{"type": "goal", "subject": "s", "description": "d", "source_type": "user_explicit",
                    "created_at": {at}, {more}}}"#
            );
            Grain::from_json(&json).unwrap()
        };
        let policy = r#""goal_state": "active", "invalidation_policy":
            {"mode": "locked", "allowed_transitions": ["satisfied"]}"#;
        let bound = session.put(goal(1, policy)).unwrap().address();
        let free = session.put(goal(2, r#""goal_state": "active", "importance": 0.5"#)).unwrap();
        let ended = Offer::from(goal(3, r#""goal_state": "satisfied""#));
        let told = session.warnings_of_successor(&bound, &ended);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("should name its satisfaction_evidence (OMS 23.5)"));
        assert_eq!(ended.warnings(), Vec::<String>::new(), "alone it is under no policy");
        assert_eq!(session.warnings_of_successor(&free.address(), &ended), Vec::<String>::new());
        let open = Offer::from(goal(3, r#""goal_state": "suspended""#));
        assert_eq!(session.warnings_of_successor(&bound, &open), Vec::<String>::new());
    }

    #[test]
    fn a_successor_of_nobody_in_the_place_of_what_a_user_owns_is_told() {
        let dir = tempfile::TempDir::new().unwrap();
        let store =
            crate::Store::open(dir.path(), &crate::OpenOptions::new().create(true)).unwrap();
        let session = store.session(crate::SessionOptions::default());
        let likes = |drink: &str, user: &str| {
            let json = format!(
                r#"{{"type": "belief", "subject": "ann", "relation": "likes", "object": "{drink}",
                    "confidence": 1, "created_at": 1{user}}}"#
            );
            Grain::from_json(&json).unwrap()
        };
        let of_ann = session.put(likes("tea", r#", "user_id": "ann""#)).unwrap().address();
        let of_nobody = session.put(likes("water", "")).unwrap().address();
        let without = likes("coffee", "");
        let blob = without.encode(crate::format::Encoding::default()).unwrap();
        let key = crate::format::SigningKey::ed25519_from_seed(&[7; 32]);
        let signed = crate::format::sign(blob.bytes(), &key, None).unwrap();
        for offer in [Offer::from(without), Offer::from(blob), Offer::from(signed)] {
            let told = session.warnings_of_successor(&of_ann, &offer);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains("it is nobody's"), "{told:?}");
            assert_eq!(session.warnings_of_successor(&of_nobody, &offer), Vec::<String>::new());
            let bob = crate::SessionOptions { user_id: Some("bob".into()), ..Default::default() };
            let unseen = store.session(bob).warnings_of_successor(&of_ann, &offer);
            assert_eq!(unseen, Vec::<String>::new(), "it is not told whose a grain is");
        }
        let with = Offer::from(likes("coffee", r#", "user_id": "ann""#));
        assert_eq!(session.warnings_of_successor(&of_ann, &with), Vec::<String>::new());
    }

    #[test]
    fn a_protected_goal_that_ended_is_asked_for_evidence() {
        let goal = |state: &str, more: &str| {
            format!(r#""type": "goal", "description": "g", "goal_state": "{state}"{more}"#)
        };
        let locked = r#", "invalidation_policy": {"mode": "locked"}"#;
        for state in FINAL_GOAL_STATES {
            check(&goal(state, locked), &["satisfaction_evidence"]);
            check(&goal(state, ""), &[]);
        }
        check(&goal("active", locked), &[]);
        let shown = format!(r#"{locked}, "satisfaction_evidence": ["{}"]"#, "ab".repeat(32));
        check(&goal("satisfied", &shown), &[]);
    }

    #[test]
    fn what_holds_for_everybody_should_look_so() {
        let fact =
            r#""type": "belief", "subject": "c", "relation": "is", "object": "299792458 m/s""#;
        let universal = format!(r#"{fact}, "source_type": "axiomatic""#);
        let locked = r#""invalidation_policy": {"mode": "locked"}"#;
        check(&format!(r#"{universal}, "confidence": 1, {locked}"#), &[]);
        check(
            &format!(r#"{universal}, "confidence": 0.5, "user_id": "u", "valid_to": 5"#),
            &["no user_id", "no valid_to", "confidence 1.0", "mode locked"],
        );
        check(&format!(r#"{fact}, "confidence": 0.5, "source_type": "imported""#), &[]);
    }

    #[test]
    fn a_delegation_without_bounds_and_an_ownership_without_protection_are_told() {
        let belief = |relation: &str| {
            format!(
                r#""type": "belief", "subject": "did:web:a", "relation": "{relation}",
                    "object": "did:web:b", "confidence": 1"#
            )
        };
        check(&belief(DELEGATION_RELATION), &["it lacks authorized_namespaces"]);
        let bounded = r#""authorized_types": [1], "delegation_depth": 0, "delegation_expiry": 9"#;
        check(
            &format!(
                r#"{}, {bounded}, "authorized_namespaces": ["home"]"#,
                belief(DELEGATION_RELATION)
            ),
            &[],
        );
        check(
            &format!(
                r#"{}, {bounded}, "authorized_namespaces": ["*"]"#,
                belief(DELEGATION_RELATION)
            ),
            &["all of them"],
        );
        let owned = format!(r#"{}, "namespace": "agent:identity""#, belief("mg:owned_by"));
        check(&owned, &["12.5.3"]);
        let locked = r#""invalidation_policy": {"mode": "locked"}"#;
        check(&format!("{owned}, {locked}"), &[]);
        check(&belief("mg:owned_by"), &[]);
    }

    #[test]
    fn an_integration_is_asked_for_its_connector() {
        let tagged = r#""type": "belief", "subject": "a", "relation": "b", "object": "c",
            "confidence": 1, "structural_tags": ["profile:integration"]"#;
        check(tagged, &["int:connector", "int:auth_type"]);
        let said = r#""context": {"int:connector": "http", "int:auth_type": "none"}"#;
        check(&format!("{tagged}, {said}"), &[]);
    }
}
