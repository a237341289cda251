//! SUPERSEDE, REVERT and ADD where older versions matter: which target is current, which goals a goal depends
//! on, and which content is restored.

use std::sync::atomic::Ordering;

use grainstore_format::{ContentAddress, VerificationStatus};
use serde_json::{Value, json};

use super::tests::{belief, options, run, run_with};
use super::{ExecuteOptions, execute};
use crate::memory::MemoryError;
use crate::testutil::Fake;
use crate::tier::Tier;
use crate::write_quotas::{WriteLimits, WriteQuotas};

fn write(memory: &Fake, source: &str) -> Result<Value, String> {
    run_with(memory, source, &ExecuteOptions { tier: Tier::Evolve, ..options() })
}

/// The address under a key of an answer.
fn address(answer: &Value, key: &str) -> ContentAddress {
    answer[key].as_str().unwrap().parse().unwrap()
}

fn supersede(memory: &Fake, old: ContentAddress, object: &str) -> ContentAddress {
    let source = format!("SUPERSEDE sha256:{old} SET object = \"{object}\" REASON \"moved on\"");
    address(&write(memory, &source).unwrap(), "content_address")
}

/// A belief in three versions, the oldest first.
fn versions(memory: &Fake) -> [ContentAddress; 3] {
    let more = r#", "user_id": "carol", "structural_tags": ["t"], "embedding_refs": [{"vector_id": "v", "model": "m", "dimensions": 2}]"#;
    let first = memory.keep(&belief("s", "r", "one", more));
    let second = supersede(memory, first, "two");
    [first, second, supersede(memory, second, "three")]
}

#[test]
fn what_is_contradicted_or_retracted_is_not_current() {
    let memory = Fake::at_work();
    let disputed = memory.keep(&belief("s", "r", "o", ""));
    memory.mark(disputed, |state| state.contradicted = true);
    let withdrawn = memory.keep(&belief("s", "r", "p", ""));
    memory.mark(withdrawn, |state| state.verification_status = VerificationStatus::Retracted);
    for hash in [disputed, withdrawn] {
        let source = format!("SUPERSEDE sha256:{hash} SET object = \"x\" REASON \"r\"");
        assert_eq!(write(&memory, &source), Err(format!("CAL-E040 at sha256:{hash}")));
    }
}

#[test]
fn a_goal_waits_for_what_is_not_satisfied_in_its_newest_version() {
    let memory = Fake::at_work();
    let goal = |state: &str, object: &str| {
        memory.keep(&format!(
            r#"{{"type": "goal", "description": "d", "goal_state": "{state}", "subject": "s",
                "relation": "wants", "object": "{object}"}}"#
        ))
    };
    let superseded = |old: ContentAddress, new: ContentAddress| {
        memory.mark(old, |state| state.superseded_by = Some(new));
        old
    };
    let retracted = goal("satisfied", "retracted");
    memory.mark(retracted, |state| state.verification_status = VerificationStatus::Retracted);
    for (name, needed, expected) in [
        ("failed", goal("failed", "a"), "suspended"),
        ("done since", superseded(goal("active", "b"), goal("satisfied", "c")), "active"),
        ("taken up again", superseded(goal("satisfied", "d"), goal("active", "e")), "suspended"),
        ("retracted", retracted, "suspended"),
    ] {
        let source = format!(
            "ADD goal SET subject = \"s\" SET relation = \"wants\" SET object = \"{name}\" \
             SET depends_on = sha256:{needed} REASON \"r\""
        );
        let added = address(&write(&memory, &source).unwrap(), "content_address");
        assert_eq!(memory.grain(&added).text("goal_state"), Some(expected), "{name}");
    }
}

#[test]
fn a_revert_says_again_what_the_version_before_said() {
    let memory = Fake::at_work();
    let [_, second, third] = versions(&memory);
    let source = format!("REVERT sha256:{third} REASON \"two was right\"");
    let answer = write(&memory, &source).unwrap();
    assert_eq!(answer["_cal"]["statement_type"], json!("revert"));
    assert_eq!(answer["_cal"]["tier"], json!(1));
    assert_eq!(address(&answer, "superseded"), third);
    let fourth = address(&answer, "content_address");
    let said = serde_json::to_value(memory.grain(&fourth)).unwrap();
    let before = serde_json::to_value(memory.grain(&second)).unwrap();
    for name in ["subject", "relation", "object", "confidence", "user_id", "structural_tags"] {
        assert_eq!(said[name], before[name], "{name}");
    }
    assert_eq!(said["object"], json!("two"));
    assert_eq!(said["derived_from"], json!([third.to_string()]));
    assert_eq!(said["supersession_justification"], json!("two was right"));
    assert_eq!(memory.reasons.lock().unwrap().last().map(String::as_str), Some("two was right"));
    let chain = run(&memory, &format!("HISTORY sha256:{second}")).unwrap();
    let objects: Vec<&str> = chain["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["grain"]["object"].as_str().unwrap())
        .collect();
    assert_eq!(objects, ["two", "three", "two", "one"]);
}

#[test]
fn an_older_target_is_reverted_at_the_head_of_its_chain() {
    let memory = Fake::at_work();
    let [first, second, third] = versions(&memory);
    let answer =
        write(&memory, &format!("REVERT sha256:{second} REASON \"one was right\"")).unwrap();
    assert_eq!(address(&answer, "superseded"), third);
    let said = memory.grain(&address(&answer, "content_address"));
    assert_eq!(said.text("object"), Some("one"));
    // Restored content has the vectors of that content.
    assert_eq!(said.get("embedding_refs"), memory.grain(&first).get("embedding_refs"));
}

#[test]
fn a_policy_that_came_since_stays_when_what_it_protects_goes_back() {
    let memory = Fake::at_work();
    let first = memory.keep(&belief("s", "r", "one", ""));
    let policy = format!(
        r#", "derived_from": ["{first}"], "invalidation_policy": {{"mode": "soft_locked"}}"#
    );
    let second = memory.keep(&belief("s", "r", "two", &policy));
    memory.mark(first, |state| state.superseded_by = Some(second));
    let answer = write(&memory, &format!("REVERT sha256:{second} REASON \"r\"")).unwrap();
    let said = memory.grain(&address(&answer, "content_address"));
    assert_eq!(said.text("object"), Some("one"));
    assert_eq!(said.get("invalidation_policy"), memory.grain(&second).get("invalidation_policy"));
    assert!(said.get("invalidation_policy").is_some());
}

#[test]
fn only_beliefs_with_a_version_before_them_are_reverted() {
    let mut memory = Fake::at_work();
    let [first, _, third] = versions(&memory);
    let elsewhere = memory.keep(&belief("s", "r", "o", r#", "namespace": "home""#)).to_string();
    let goal = memory.keep(r#"{"type": "goal", "description": "d", "goal_state": "active"}"#);
    for (hash, code) in [
        ("0000000000", "CAL-E046"),
        (&elsewhere, "CAL-E045"),
        (&goal.to_string(), "CAL-E042"),
        (&first.to_string(), "CAL-E041"),
    ] {
        let source = format!("REVERT sha256:{hash} REASON \"r\"");
        assert_eq!(write(&memory, &source), Err(format!("{code} at sha256:{hash}")), "{hash}");
    }
    // A grain that names another as its source does not supersede it by that.
    let derived = memory.keep(&belief("s", "r", "q", &format!(r#", "derived_from": ["{third}"]"#)));
    let source = format!("REVERT sha256:{derived} REASON \"r\"");
    assert_eq!(write(&memory, &source), Err(format!("CAL-E041 at sha256:{derived}")));
    memory.claim_ambiguous.store(true, Ordering::Relaxed);
    let source = "REVERT sha256:00000000 REASON \"r\"";
    assert_eq!(write(&memory, source), Err("CAL-E015 at sha256:00000000".to_owned()));
    memory.claim_ambiguous.store(false, Ordering::Relaxed);
    memory.refusal = Some(MemoryError::new("ERR_INVALIDATION_DENIED", "locked by policy", "ask"));
    let source = format!("REVERT sha256:{third} REASON \"r\"");
    assert_eq!(write(&memory, &source), Err("ERR_INVALIDATION_DENIED at ".to_owned()));
}

#[test]
fn explain_tells_what_a_write_would_be_refused_for() {
    let mut memory = Fake::at_work();
    let [first, second, third] = versions(&memory);
    let goal = memory.keep(r#"{"type": "goal", "description": "d", "goal_state": "active"}"#);
    let elsewhere = memory.keep(&belief("s", "r", "o", r#", "namespace": "home""#));
    let plan = |memory: &Fake, tier, source: &str| {
        let options = ExecuteOptions { tier, ..options() };
        run_with(memory, &format!("EXPLAIN {source}"), &options).unwrap()["plan"].clone()
    };
    let codes = |memory: &Fake, tier, source: &str| {
        let refusals = plan(memory, tier, source)["refusals"].clone();
        let code = |refusal: &Value| refusal["code"].as_str().unwrap().to_owned();
        refusals.as_array().into_iter().flatten().map(code).collect::<Vec<_>>().join(" ")
    };
    let supersede = |target: &str| format!("SUPERSEDE {target} SET object = \"o\" REASON \"r\"");
    let revert = |target: &str| format!("REVERT {target} REASON \"r\"");
    for (source, expected) in [
        (supersede(&format!("sha256:{third}")), ""),
        (supersede(&format!("sha256:{second}")), "CAL-E040"),
        (supersede(&format!("sha256:{goal}")), "CAL-E042"),
        // Targets outside the session are not revealed without an entry in the audit log.
        (supersede(&format!("sha256:{elsewhere}")), "CAL-E046"),
        (supersede("sha256:00000000"), "CAL-E046"),
        (revert(&format!("sha256:{third}")), ""),
        (revert(&format!("sha256:{first}")), "CAL-E041"),
        (revert("sha256:00000000"), "CAL-E046"),
    ] {
        assert_eq!(codes(&memory, Tier::Evolve, &source), expected, "{source}");
        let reading = format!("CAL-E044 {expected}");
        assert_eq!(codes(&memory, Tier::Read, &source), reading.trim_end(), "{source}");
        let later = plan(&memory, Tier::Evolve, &source)["checked_later"].clone();
        assert_eq!(later[0], "the invalidation policy of the grain it supersedes", "{source}");
    }
    let add =
        "ADD observation SET subject = \"s\" SET relation = \"r\" SET object = \"o\" REASON \"r\"";
    assert_eq!(codes(&memory, Tier::Evolve, add), "");
    (memory.scope.agent_id, memory.scope.actor) = (None, None);
    assert_eq!(codes(&memory, Tier::Evolve, add), "CAL-E050");
    assert!(plan(&memory, Tier::Evolve, "RECALL").get("checked_later").is_none());
}

#[test]
fn a_revert_needs_tier_one_and_a_reason_and_has_a_quota() {
    let memory = Fake::at_work();
    let [_, _, third] = versions(&memory);
    let source = format!("REVERT sha256:{third} REASON \"r\"");
    assert_eq!(run(&memory, &source), Err("CAL-E044 at REVERT".to_owned()));
    let explained = run(&memory, &format!("EXPLAIN {source}")).unwrap();
    assert_eq!(
        explained["plan"]["side_effects"],
        json!(["adds one grain", "supersedes one grain"])
    );
    let blank = format!("REVERT sha256:{third} REASON \" \"");
    assert_eq!(write(&memory, &blank), Err("CAL-E016 at \" \"".to_owned()));
    let writes = WriteQuotas::new(WriteLimits { reverts: 1, ..WriteLimits::default() });
    let options = ExecuteOptions { tier: Tier::Evolve, ..options() };
    let code =
        || execute(&memory, &source, &options, &writes).err().map(|error| error.code().to_owned());
    assert_eq!(code(), None);
    assert_eq!(code().as_deref(), Some("CAL-E043"));
}
