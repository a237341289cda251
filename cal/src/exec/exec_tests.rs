//! Statements run against a memory in memory: the semantics of CAL 8 and 9 as tables.

use std::sync::atomic::Ordering;

use grainstore_format::{EpochMs, VerificationStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ExecuteOptions, execute, execute_bytes};
use crate::memory::MemoryError;
use crate::params::Params;
use crate::testutil::Fake;
use crate::tier::Tier;
use crate::write_quotas::{WriteLimits, WriteQuotas};

/// Wednesday, 2026-03-18 15:30:00 UTC.
pub(super) const NOW_MS: i64 = 1_773_847_800_000;

pub(super) fn options() -> ExecuteOptions<'static> {
    ExecuteOptions::at(EpochMs::new(NOW_MS))
}

/// The answer as JSON, or the error as `code at "text it points to"`.
pub(super) fn run(memory: &Fake, source: &str) -> Result<Value, String> {
    run_with(memory, source, &options())
}

pub(super) fn run_with(
    memory: &Fake,
    source: &str,
    options: &ExecuteOptions<'_>,
) -> Result<Value, String> {
    match execute(memory, source, options, &WriteQuotas::default()) {
        Ok(response) => Ok(serde_json::to_value(response).unwrap()),
        Err(error) => {
            let at = error.position().and_then(|at| source.get(at.start..at.end)).unwrap_or("");
            Err(format!("{} at {at}", error.code()))
        }
    }
}

fn write(memory: &Fake, source: &str) -> Result<Value, String> {
    run_with(memory, source, &ExecuteOptions { tier: Tier::Evolve, ..options() })
}

/// The objects of the results, in order.
pub(super) fn objects(memory: &Fake, source: &str) -> String {
    let answer = run(memory, source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let rows = answer["results"].as_array().unwrap();
    let object = |row: &Value| row["grain"]["object"].as_str().unwrap_or("-").to_owned();
    rows.iter().map(object).collect::<Vec<_>>().join(" ")
}

pub(super) fn belief(subject: &str, relation: &str, object: &str, more: &str) -> String {
    format!(
        r#"{{"type": "belief", "subject": "{subject}", "relation": "{relation}",
            "object": "{object}", "confidence": 0.5 {more}}}"#
    )
}

/// Four beliefs a..d of rising age order (a oldest), two users, tags and one other subject.
pub(super) fn four_beliefs() -> Fake {
    let memory = Fake::at_work();
    memory.keep(&belief(
        "alice",
        "prefers",
        "a",
        r#", "importance": 0.9, "structural_tags": ["x", "y"]"#,
    ));
    memory.keep(&belief(
        "alice",
        "mg:avoids",
        "b",
        r#", "user_id": "alice", "structural_tags": ["x"]"#,
    ));
    memory.keep(&belief(
        "alice",
        "prefers",
        "c",
        r#", "user_id": "bob", "recall_priority": "hot""#,
    ));
    memory.keep(&belief(
        "bob",
        "prefers",
        "d",
        r#", "importance": 0.1, "source_type": "user_explicit""#,
    ));
    memory
}

#[test]
fn recall_finds_what_its_conditions_ask_for() {
    let memory = four_beliefs();
    #[rustfmt::skip]
    let table = [
        ("RECALL", "d c b a"),
        ("RECALL beliefs", "d c b a"),
        ("RECALL goals", ""),
        ("RECALL MY beliefs", "b"),
        ("RECALL ABOUT \"alice\"", "c b a"),
        ("RECALL WHERE subject = \"alice\" AND relation = \"prefers\"", "c a"),
        ("RECALL WHERE subject != \"alice\"", "d"),
        ("RECALL WHERE object IN (\"a\", \"d\", \"z\")", "d a"),
        ("RECALL WHERE relation IS PREFERENCE", "b"),
        ("RECALL WHERE user_id != \"bob\"", "b"),
        ("RECALL WHERE importance > 0.1", "a"),
        ("RECALL WHERE importance >= 0.1", "d a"),
        ("RECALL WHERE importance != 0.9", "d"),
        ("RECALL WHERE confidence = 0.5 AND confidence <= 0.5 AND confidence < 0.6", "d c b a"),
        ("RECALL WHERE tags INCLUDE [\"x\", \"y\"]", "a"),
        ("RECALL WHERE tags EXCLUDE [\"y\", \"z\"]", "d c b"),
        ("RECALL WHERE type = \"belief\"", "d c b a"),
        ("RECALL WHERE type = \"event\"", ""),
        ("RECALL WHERE source_type = \"user_explicit\"", "d"),
        ("RECALL WHERE recall_priority = \"warm\"", "d b a"),
        ("RECALL WHERE recall_priority = \"hot\"", "c"),
        ("RECALL WHERE verification_status = \"unverified\" AND contradicted = false", "d c b a"),
        ("RECALL WHERE time = 1000000000001", "b"),
        ("RECALL WHERE time BETWEEN 1000000000001 AND 1000000000002", "c b"),
        ("RECALL BETWEEN 1000000000 AND 1000000000001", "b a"),
        ("RECALL SINCE \"2001-09-09\"", "d c b a"),
        ("RECALL SINCE \"today\"", ""),
        ("RECALL BETWEEN 1 AND 2 WHERE time BETWEEN 3 AND 4", ""),
        ("RECALL WHERE time = \"2001-09-09\"", "d c b a"),
        ("RECALL IN \"work\"", "d c b a"),
        ("RECALL IN \"work:team\"", ""),
        ("RECALL IN SCOPE \"work\" WHERE namespace = \"work\"", "d c b a"),
    ];
    for (source, expected) in table {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
}

#[test]
fn the_pipeline_acts_in_the_order_written() {
    let memory = four_beliefs();
    for (source, expected) in [
        ("RECALL RECENT 2", "d c"),
        ("RECALL LIMIT 2", "d c"),
        ("RECALL OFFSET 1 LIMIT 2", "c b"),
        ("RECALL LIMIT 2 OFFSET 1", "c"),
        ("RECALL LIMIT 3 LIMIT 2", "d c"),
        ("RECALL OFFSET 9", ""),
        ("RECALL FIRST", "d"),
        ("RECALL ORDER BY time", "a b c d"),
        ("RECALL ORDER BY time DESC | LIMIT 1", "d"),
        ("RECALL ORDER BY object DESC LIMIT 3 OFFSET 1", "c b"),
        ("RECALL ORDER BY object | FIRST", "a"),
        ("RECALL LIMIT 2 | ORDER BY object", "c d"),
        ("RECALL ORDER BY object OFFSET 1 | ORDER BY object DESC | LIMIT 2", "d c"),
        ("RECALL ORDER BY subject | ORDER BY object | LIMIT 3", "a b c"),
        ("RECALL WHERE importance > 0 | ORDER BY importance", "d a"),
        ("RECALL WHERE importance > 0 | ORDER BY importance DESC", "a d"),
    ] {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
    for (source, expected) in [
        ("RECALL COUNT", 4),
        ("RECALL ABOUT \"alice\" | COUNT", 3),
        ("RECALL LIMIT 3 OFFSET 1 COUNT", 2),
        ("RECALL ORDER BY object | LIMIT 2 | COUNT", 2),
        ("RECALL goals COUNT", 0),
        ("RECALL WHERE hash = sha256:00000000 | COUNT", 0),
    ] {
        assert_eq!(run(&memory, source).unwrap()["count"], json!(expected), "{source}");
    }
}

#[test]
fn grains_without_the_sorted_field_come_last_and_ties_go_by_address() {
    let memory = four_beliefs();
    let missing_last = |source| {
        let sorted = objects(&memory, source);
        assert!(sorted.starts_with("d a ") || sorted.starts_with("a d "), "{sorted}");
    };
    missing_last("RECALL ORDER BY importance ASC");
    missing_last("RECALL ORDER BY importance DESC");
    let answer = run(&memory, "RECALL ORDER BY confidence").unwrap();
    let rows = answer["results"].as_array().unwrap();
    let addresses: Vec<_> =
        rows.iter().map(|row| row["content_address"].as_str().unwrap()).collect();
    assert!(addresses.is_sorted(), "{addresses:?}");
}

#[test]
fn twenty_grains_come_back_by_default_and_all_are_counted_on_request() {
    let memory = Fake::at_work();
    for at in 0..25 {
        memory.keep(&belief("s", "r", &format!("o{at}"), ""));
    }
    let answer = run(&memory, "RECALL").unwrap();
    assert_eq!(answer["results"].as_array().unwrap().len(), 20);
    assert_eq!((&answer["total"], &answer["next_cursor"]), (&Value::Null, &Value::Null));
    let counted = run(&memory, "RECALL WITH total").unwrap();
    assert_eq!((&counted["total"], &counted["results"]), (&json!(25), &answer["results"]));
    let always = ExecuteOptions { totals: true, ..options() };
    assert_eq!(run_with(&memory, "RECALL", &always).unwrap()["total"], json!(25));
    let sorted = run(&memory, "RECALL ORDER BY object LIMIT 2").unwrap();
    assert_eq!(sorted["total"], json!(25));
    assert_eq!(run(&memory, "RECALL LIMIT 1000").unwrap()["results"].as_array().unwrap().len(), 25);
}

#[test]
fn only_current_grains_are_found_unless_asked_for() {
    let memory = four_beliefs();
    let at = |object: &str| {
        let found = run(&memory, &format!("RECALL WHERE object = \"{object}\"")).unwrap();
        found["results"][0]["content_address"].as_str().unwrap().parse().unwrap()
    };
    let (a, b, c) = (at("a"), at("b"), at("c"));
    memory.mark(a, |state| state.superseded_by = Some(b));
    memory.mark(b, |state| state.contradicted = true);
    memory.mark(c, |state| state.verification_status = VerificationStatus::Retracted);
    for (source, expected) in [
        ("RECALL", "d"),
        ("RECALL WITH superseded", "d a"),
        ("RECALL WHERE contradicted = true", "b"),
        ("RECALL WHERE contradicted = false", "d"),
        ("RECALL WHERE verification_status = \"retracted\"", "c"),
        (&format!("RECALL WHERE hash = sha256:{a}"), "a"),
        (&format!("RECALL WHERE hash = sha256:{}", c.to_string().get(..12).unwrap()), "c"),
        (&format!("RECALL WHERE hash = \"sha256:{b}\" AND object = \"b\""), "b"),
        (&format!("RECALL WHERE hash = sha256:{a} AND hash = sha256:{b}"), ""),
    ] {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
    let answer = run(&memory, "RECALL WITH superseded ORDER BY time").unwrap();
    assert_eq!(answer["results"][0]["state"]["superseded_by"], json!(b.to_string()));
    assert_eq!(run(&memory, "RECALL").unwrap()["results"][0].get("state"), None);
}

#[test]
fn type_specific_fields_read_their_payload_names() {
    let memory = Fake::at_work();
    let hash = "ab".repeat(32);
    #[rustfmt::skip]
    let grains = [
        r#"{"type": "event", "content": "hi", "role": "user", "session_id": "s", "object": "e1"}"#.to_owned(),
        r#"{"type": "event", "content": "yo", "role": "assistant", "session_id": "s", "object": "e2"}"#.to_owned(),
        r#"{"type": "action", "tool_name": "grep", "input": {}, "content": "x", "is_error": false, "object": "act"}"#.to_owned(),
        format!(r#"{{"type": "goal", "description": "g", "goal_state": "satisfied", "deadline": {NOW_MS}, "depends_on": ["{hash}"], "object": "g"}}"#),
        format!(r#"{{"type": "reasoning", "inference_method": "deductive", "premises": ["{hash}"], "conclusion": "so", "object": "r"}}"#),
        r#"{"type": "consensus", "participating_observers": ["o1", "o2"], "threshold": 2, "agreement_count": 2, "dissent_count": 0, "agreed_content": "yes", "object": "cs"}"#.to_owned(),
        r#"{"type": "consent", "subject_did": "did:a", "grantee_did": "did:b", "scope": ["read", "share"], "is_withdrawal": false, "valid_to": 2000000000000, "object": "ct"}"#.to_owned(),
        r#"{"type": "state", "context": {"id": "ctx", "name": "other"}, "plan": ["p"], "object": "st"}"#.to_owned(),
        r#"{"type": "workflow", "steps": ["s"], "trigger": "t", "object": "w"}"#.to_owned(),
        r#"{"type": "observation", "observer_id": "cam", "observer_type": "sensor", "object": "o"}"#.to_owned(),
    ];
    for grain in &grains {
        memory.keep(grain);
    }
    #[rustfmt::skip]
    let table = [
        ("RECALL events THREAD \"s\"", "e1 e2"),
        ("RECALL THREAD \"s\" RECENT 1", "e2"),
        ("RECALL events WHERE role != \"user\"", "e2"),
        ("RECALL events WHERE session_id = \"other\"", ""),
        ("RECALL actions WHERE tool_name IN (\"grep\", \"sed\") AND is_error = false", "act"),
        ("RECALL actions WHERE action_phase = \"complete\"", "act"),
        ("RECALL actions WHERE action_phase = \"call\"", ""),
        ("RECALL goals WHERE goal_state = \"completed\"", "g"),
        ("RECALL goals WHERE goal_state != \"satisfied\"", ""),
        ("RECALL goals WHERE deadline = \"today\"", "g"),
        ("RECALL goals WHERE deadline BETWEEN \"yesterday\" AND \"today\"", "g"),
        (&format!("RECALL goals WHERE depends_on = \"{hash}\""), "g"),
        (&format!("RECALL goals WHERE depends_on IN (sha256:{hash})"), "g"),
        ("RECALL reasonings WHERE reasoning_type = \"deductive\" AND conclusion = \"so\"", "r"),
        (&format!("RECALL reasonings WHERE premises = sha256:{hash}"), "r"),
        ("RECALL consensuses WHERE threshold >= 2 AND agreement_count < 3", "cs"),
        ("RECALL consensuses WHERE participating_observers INCLUDE [\"o2\", \"o1\"]", "cs"),
        ("RECALL consensuses WHERE participating_observers INCLUDE [\"o3\"]", ""),
        ("RECALL consents WHERE consent_action = \"grant\" AND grantor_did = \"did:a\"", "ct"),
        ("RECALL consents WHERE consent_action = \"withdraw\"", ""),
        ("RECALL consents WHERE scope = \"share\" AND purpose = \"read, share\"", "ct"),
        ("RECALL consents WHERE purpose != \"read, share\"", ""),
        ("RECALL consents WHERE purpose = \"read\"", ""),
        ("RECALL consents WHERE expires_at = 2000000000000", "ct"),
        ("RECALL states WHERE context = \"ctx\"", "st"),
        ("RECALL states WHERE context = \"other\"", ""),
        ("RECALL workflows WHERE trigger != \"x\"", "w"),
        ("RECALL observations WHERE observer_id = \"cam\" AND observer_type = \"sensor\"", "o"),
    ];
    for (source, expected) in table {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
}

#[test]
fn rules_of_the_language_are_held_with_code_and_place() {
    let memory = four_beliefs();
    let in_101 = format!("RECALL WHERE subject IN ({})", vec!["\"v\""; 101].join(","));
    let intent = format!("ASSEMBLE FOR \"{}\" FROM (RECALL)", "i".repeat(257));
    #[rustfmt::skip]
    let table = [
        ("RECALL WHERE subject = $who", "CAL-E008 at $who"),
        ("RECALL LIMIT 0", "CAL-E006 at LIMIT 0"),
        ("RECALL LIMIT 1001", "CAL-E010 at LIMIT 1001"),
        ("RECALL LIMIT 99999999999999999999", "CAL-E010 at LIMIT 99999999999999999999"),
        ("RECALL RECENT 1001", "CAL-E010 at RECENT 1001"),
        ("RECALL RECENT 0", "CAL-E006 at RECENT 0"),
        (&in_101, "CAL-E011 at \"v\""),
        ("RECALL LIMIT 6 LIMIT 5 LIMIT 4 LIMIT 3 LIMIT 2 LIMIT 1", "CAL-E012 at LIMIT 1"),
        ("RECALL WHERE subject = 5", "CAL-E020 at 5"),
        ("RECALL WHERE confidence = \"high\"", "CAL-E020 at \"high\""),
        ("RECALL WHERE confidence > 1.5", "CAL-E006 at 1.5"),
        ("RECALL WHERE subject > \"a\"", "CAL-E020 at > \"a\""),
        ("RECALL WHERE namespace != \"a\"", "CAL-E020 at != \"a\""),
        ("RECALL WHERE tags = \"x\"", "CAL-E020 at = \"x\""),
        ("RECALL WHERE tags INCLUDE \"x\"", "CAL-E020 at \"x\""),
        ("RECALL WHERE contradicted = \"yes\"", "CAL-E020 at \"yes\""),
        ("RECALL WHERE verification_status = \"maybe\"", "CAL-E020 at \"maybe\""),
        ("RECALL WHERE subject IS PREFERENCE", "CAL-E020 at IS PREFERENCE"),
        ("RECALL WHERE time = \"someday\"", "CAL-E020 at \"someday\""),
        ("RECALL SINCE \"tomorrow\"", "CAL-E020 at SINCE \"tomorrow\""),
        ("RECALL BETWEEN \"today\" AND \"yesterday\"", "CAL-E020 at \"today\" AND \"yesterday\""),
        ("RECALL WHERE type = \"thing\"", "CAL-E003 at \"thing\""),
        ("RECALL COUNT LIMIT 5", "CAL-E021 at LIMIT 5"),
        ("RECALL FIRST COUNT", "CAL-E021 at COUNT"),
        ("RECALL COUNT AS sml", "CAL-E021 at AS sml"),
        ("RECALL ORDER BY hash", "CAL-E021 at hash"),
        ("RECALL RECENT 5 LIMIT 5", "CAL-E060 at RECENT 5"),
        ("RECALL RECENT 5 ORDER BY time", "CAL-E060 at RECENT 5"),
        ("RECALL SINCE \"today\" WHERE time = \"today\"", "CAL-E060 at SINCE \"today\""),
        ("RECALL SINCE \"today\" BETWEEN 1 AND 2", "CAL-E060 at SINCE \"today\""),
        ("RECALL MY WHERE user_id = \"u\"", "CAL-E060 at MY"),
        ("RECALL beliefs THREAD \"s\"", "CAL-E060 at THREAD \"s\""),
        ("RECALL beliefs WHERE role = \"user\"", "CAL-E060 at role"),
        ("RECALL WHERE role = \"user\"", "CAL-E061 at role"),
        ("RECALL WHERE type = \"event\" AND role = \"user\"", "CAL-E061 at role"),
        ("RECALL actions WHERE action_phase = \"done\"", "CAL-E062 at \"done\""),
        ("RECALL goals WHERE goal_state = \"done\"", "CAL-E063 at \"done\""),
        ("RECALL consents WHERE consent_action = \"revoked\"", "CAL-E064 at \"revoked\""),
        ("RECALL WHERE recall_priority = \"lukewarm\"", "CAL-E065 at \"lukewarm\""),
        ("RECALL WHERE epistemic_status = \"sure\"", "CAL-E066 at \"sure\""),
        ("RECALL ABOUT \"x\" LIKE \"y\"", "CAL-E060 at ABOUT \"x\""),
        ("RECALL LIKE \" \"", "CAL-E020 at LIKE \" \""),
        ("RECALL WHERE query = \"\"", "CAL-E020 at \"\""),
        ("RECALL WHERE query != \"x\"", "CAL-E020 at != \"x\""),
        ("RECALL WHERE query = 7", "CAL-E020 at 7"),
        ("RECALL WHERE score <= 0.5", "CAL-E020 at <= 0.5"),
        ("RECALL WHERE score > 1.5", "CAL-E006 at 1.5"),
        ("RECALL WHERE content = \"x\"", "CAL-E061 at content"),
        ("RECALL WITH superseded, superseded", "CAL-E002 at superseded"),
        ("ASSEMBLE FROM (RECALL COUNT)", "CAL-E021 at (RECALL COUNT)"),
        ("ASSEMBLE FROM a: (RECALL), a: (RECALL)", "CAL-E009 at a"),
        ("ASSEMBLE FROM source2: (RECALL), (RECALL)", "CAL-E009 at (RECALL)"),
        ("ASSEMBLE FROM a: (RECALL) PRIORITY b", "CAL-E002 at b"),
        ("ASSEMBLE FROM a: (RECALL) PRIORITY a > a", "CAL-E009 at a"),
        ("ASSEMBLE FROM (RECALL) BUDGET 16001 tokens", "CAL-E030 at 16001"),
        ("ASSEMBLE FROM (RECALL) BUDGET 201 grains", "CAL-E030 at 201"),
        ("ASSEMBLE FROM (RECALL) BUDGET 0 tokens", "CAL-E030 at 0"),
        ("ASSEMBLE FROM (RECALL) BUDGET 1 tokens", "CAL-E030 at ASSEMBLE"),
        ("ASSEMBLE FROM (RECALL) WITH dedup(tags)", "CAL-E021 at tags"),
        (&intent, &format!("CAL-E001 at FOR \"{}\"", "i".repeat(257))),
        ("HISTORY sha256:00000000", "CAL-E046 at sha256:00000000"),
        ("HISTORY WHERE subject = 1 AND relation = \"r\"", "CAL-E020 at 1"),
        ("ADD event SET object = \"o\" REASON \"r\"", "CAL-E051 at event"),
        ("ADD consent SET object = \"o\" REASON \"r\"", "CAL-E051 at consent"),
        ("ADD belief SET object = \"o\" REASON \"r\"", "CAL-E050 at belief"),
        ("ADD belief SET deadline = 1 REASON \"r\"", "CAL-E060 at deadline"),
        ("ADD belief SET namespace = \"n\" REASON \"r\"", "CAL-E017 at namespace"),
        ("ADD belief SET object = \"o\" SET object = \"p\" REASON \"r\"", "CAL-E009 at object"),
        ("ADD belief SET confidence = 2 REASON \"r\"", "CAL-E006 at 2"),
        ("ADD goal SET goal_state = \"x\" REASON \"r\"", "CAL-E063 at \"x\""),
        ("ADD goal SET depends_on = [sha256:00000000] REASON \"r\"", "CAL-E046 at sha256:00000000"),
        ("SUPERSEDE sha256:00000000 SET subject = \"s\" REASON \"r\"", "CAL-E017 at subject"),
        ("SUPERSEDE sha256:00000000 SET object = \"o\" REASON \" \"", "CAL-E016 at \" \""),
        ("SUPERSEDE sha256:00000000 SET object = \"o\" REASON \"r\"", "CAL-E044 at SUPERSEDE"),
    ];
    for (source, expected) in table {
        assert_eq!(run(&memory, source), Err((*expected).to_owned()), "{source}");
    }
    let long = format!(
        "ADD belief SET object = \"o\" SET subject = \"s\" SET relation = \"r\" REASON \"{}\"",
        "r".repeat(501)
    );
    assert!(run(&memory, &long).unwrap_err().starts_with("CAL-E016"));
    assert_eq!(
        execute_bytes(&memory, b"\xC3", &options(), &WriteQuotas::default()).unwrap_err().code(),
        "CAL-E070"
    );
    assert!(execute_bytes(&memory, b"RECALL", &options(), &WriteQuotas::default()).is_ok());
}

#[test]
fn parameters_stand_for_values_of_their_kind() {
    let memory = four_beliefs();
    let mut bound = Params::new();
    for (name, value) in [
        ("who", json!("alice")),
        ("few", json!(2)),
        ("both", json!(["a", "c"])),
        ("half", json!(2.5)),
        ("yes", json!(true)),
    ] {
        bound.bind(name, &value).unwrap();
    }
    let options = ExecuteOptions { params: bound, ..options() };
    let rows = |source| {
        run_with(&memory, source, &options)
            .map(|answer| answer["results"].as_array().unwrap().len())
    };
    assert_eq!(rows("RECALL ABOUT $who LIMIT $few"), Ok(2));
    assert_eq!(rows("RECALL WHERE object IN ($both, \"d\")"), Ok(3));
    assert_eq!(rows("RECALL ABOUT $yes"), Err("CAL-E020 at ABOUT $yes".to_owned()));
    assert_eq!(rows("RECALL LIMIT $half"), Err("CAL-E020 at LIMIT $half".to_owned()));
    assert_eq!(rows("RECALL WHERE hash = $who"), Err("CAL-E020 at $who".to_owned()));
}

#[test]
fn warnings_stand_beside_the_answer() {
    let memory = four_beliefs();
    for (source, codes) in [
        ("RECALL", vec![]),
        ("RECALL facts WHERE type = \"fact\"", vec!["CAL-W102"]),
        ("RECALL WHERE relation = \"mg:likes\"", vec!["CAL-W001"]),
        ("HISTORY WHERE subject = \"s\" AND relation = \"mg:unknown\"", vec!["CAL-W001"]),
        ("HISTORY WHERE subject = \"s\" AND relation = \"mg:prefers\"", vec![]),
        ("DESCRIBE fact", vec!["CAL-W102"]),
        ("DESCRIBE fields tool", vec!["CAL-W102"]),
        ("DESCRIBE fields action", vec![]),
        ("RECALL IN \"home\"", vec!["CAL-W101"]),
        ("RECALL WHERE namespace = \"home\"", vec!["CAL-W101"]),
        ("RECALL WITH x_fast, locale(\"de\")", vec!["CAL-W004", "CAL-W004"]),
    ] {
        let answer = run(&memory, source).unwrap();
        let warnings = answer["_cal"]["warnings"].as_array().unwrap();
        let found: Vec<_> =
            warnings.iter().map(|warning| warning["code"].as_str().unwrap()).collect();
        assert_eq!(found, codes, "{source}");
    }
    assert_eq!(objects(&memory, "RECALL IN \"home\""), "d c b a");
    memory.keep(
        r#"{"type": "belief", "subject": "s", "relation": "r", "object": "below", "confidence": 1,
            "namespace": "work:team"}"#,
    );
    // The effect is that of the session's namespace having been written.
    for (asked, found) in [
        ("RECALL IN \"home\"", "d c b a"),
        ("RECALL WHERE namespace = \"home\"", "d c b a"),
        ("RECALL IN SCOPE \"home\"", "below d c b a"),
        ("RECALL IN SCOPE \"work\"", "below d c b a"),
    ] {
        assert_eq!(objects(&memory, asked), found, "{asked}");
    }
}

#[test]
fn my_needs_a_session_with_a_user() {
    let mut memory = four_beliefs();
    memory.scope.user_id = None;
    assert_eq!(run(&memory, "RECALL MY beliefs"), Err("CAL-E008 at MY".to_owned()));
}

#[test]
fn the_envelope_has_the_shape_of_the_specification() {
    let memory = four_beliefs();
    let answer = run(&memory, "RECALL ABOUT \"bob\" WHERE relation = \"prefers\" AS sml").unwrap();
    let keys: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["_cal", "formatted", "next_cursor", "results", "total"]);
    let mut meta = answer["_cal"].clone();
    let hash = meta.as_object_mut().unwrap().remove("query_hash").unwrap();
    assert!(hash.as_str().unwrap().starts_with("sha256:"));
    assert!(meta["duration_ms"].is_u64() && meta["budget"]["tokens_used"].as_u64() > Some(0));
    assert_eq!(
        (&meta["version"], &meta["statement_type"], &meta["tier"]),
        (&json!("1.0"), &json!("recall"), &json!(0))
    );
    assert_eq!(
        (&meta["budget"]["grains_returned"], &meta["budget"]["grains_scanned"]),
        (&json!(1), &json!(4))
    );
    let row = &answer["results"][0];
    assert_eq!(row["grain"]["object"], json!("d"));
    assert_eq!(
        (&row["score"], &row["matched_fields"]),
        (&json!(1.0), &json!(["subject", "relation"]))
    );
    assert_eq!(row["content_address"], row["provenance_id"]);
    assert_eq!(row["content_address"].as_str().map(str::len), Some(64));
    let text = answer["formatted"].as_str().unwrap();
    assert!(
        text.contains("<belief subject=\"bob\" confidence=\"0.5\">prefers d</belief>"),
        "{text}"
    );
}

#[test]
fn formats_show_the_levels_asked_for() {
    let memory = four_beliefs();
    let text =
        |source: &str| run(&memory, source).unwrap()["formatted"].as_str().unwrap().to_owned();
    assert!(
        text("RECALL FIRST AS sml WITH progressive_disclosure(summary)")
            .contains("<belief subject=\"bob\">prefers d</belief>")
    );
    assert!(
        text("RECALL FIRST AS sml WITH progressive_disclosure").contains("source=\"explicit\"")
    );
    assert!(!text("RECALL AS sml WITH progressive_disclosure").contains("source="));
    let shown: Value = serde_json::from_str(&text("RECALL FIRST AS json")).unwrap();
    assert_eq!(
        shown["grains"][0],
        json!({"type": "belief", "text": "prefers d", "attributes": {"subject": "bob", "confidence": 0.5}})
    );
    let forced = ExecuteOptions { as_format: Some(crate::ast::Format::Sml), ..options() };
    assert!(run_with(&memory, "RECALL", &forced).unwrap()["formatted"].is_string());
    assert_eq!(run(&memory, "RECALL").unwrap().get("formatted"), None);
}

#[test]
fn exists_says_what_the_session_sees() {
    let memory = Fake::at_work();
    let here = memory.keep(&belief("s", "r", "o", "")).to_string();
    let elsewhere = memory.keep(&belief("s", "r", "o", r#", "namespace": "home""#)).to_string();
    for (hash, exists) in [
        (here.as_str(), true),
        (here.get(..8).unwrap(), true),
        (elsewhere.as_str(), false),
        ("00000000", false),
    ] {
        let answer = run(&memory, &format!("EXISTS sha256:{hash}")).unwrap();
        assert_eq!(answer["exists"], json!(exists), "{hash}");
    }
}

#[test]
fn an_assembly_shows_each_grain_once_and_reports_its_sources() {
    let memory = four_beliefs();
    let source = "ASSEMBLE ctx FOR \"a talk\" FROM all: (RECALL AS sml), alice: (RECALL ABOUT \"alice\") PRIORITY alice";
    let answer = run(&memory, source).unwrap();
    let context = &answer["formatted_context"];
    let text = context["text"].as_str().unwrap();
    assert!(text.starts_with("<context intent=\"a talk\">"), "{text}");
    assert_eq!(text.matches("<belief ").count(), 4, "{text}");
    assert_eq!(context["format"], json!("sml"));
    assert_eq!(context["tokens"], answer["_cal"]["budget"]["tokens_used"]);
    assert_eq!(
        (&answer["sources"]["alice"]["standard"], &answer["sources"]["all"]["standard"]),
        (&json!(3), &json!(1))
    );
    assert!(answer["sources"]["all"]["formatted"].as_str().unwrap().contains("prefers a"));
    assert_eq!(answer["_cal"]["budget"]["grains_returned"], json!(4));
}

#[test]
fn dedup_keeps_the_copy_of_the_higher_priority_and_nothing_is_lost_within_a_source() {
    let memory = four_beliefs();
    let shown = |source: &str| run(&memory, source).unwrap()["sources"].clone();
    let sources =
        shown("ASSEMBLE FROM a: (RECALL ABOUT \"alice\" LIMIT 2), b: (RECALL) WITH dedup(subject)");
    assert_eq!((&sources["a"]["standard"], &sources["b"]["standard"]), (&json!(2), &json!(1)));
    let sources = shown(
        "ASSEMBLE FROM a: (RECALL ABOUT \"alice\" LIMIT 2), b: (RECALL) PRIORITY b WITH dedup(subject)",
    );
    assert_eq!((&sources["a"]["standard"], &sources["b"]["standard"]), (&json!(0), &json!(4)));
}

#[test]
fn a_failed_source_is_reported_and_only_all_of_them_fail_the_assembly() {
    let mut memory = four_beliefs();
    memory.broken_subject = Some("bob".to_owned());
    let answer =
        run(&memory, "ASSEMBLE FROM (RECALL ABOUT \"bob\"), (RECALL ABOUT \"alice\")").unwrap();
    assert_eq!(answer["sources"]["source1"]["error"]["code"], json!("ERR_BROKEN"));
    assert_eq!(answer["sources"]["source2"]["standard"], json!(3));
    assert_eq!(
        run(&memory, "ASSEMBLE FROM (RECALL ABOUT \"bob\")"),
        Err("CAL-E076 at ASSEMBLE".to_owned())
    );
    assert_eq!(run(&memory, "RECALL ABOUT \"bob\""), Err("ERR_BROKEN at ".to_owned()));
}

#[test]
fn a_cancelled_or_late_statement_stops() {
    let memory = four_beliefs();
    let cancelled = options();
    cancelled.cancel.cancel();
    let late = ExecuteOptions {
        cancel: options().cancel.with_deadline(std::time::Duration::ZERO),
        ..options()
    };
    for (source, options, code) in [
        ("RECALL", &cancelled, "CAL-E082 at RECALL"),
        ("RECALL", &late, "CAL-E031 at RECALL"),
        ("ASSEMBLE FROM (RECALL)", &cancelled, "CAL-E082 at ASSEMBLE"),
        ("ASSEMBLE FROM (RECALL)", &late, "CAL-E075 at ASSEMBLE"),
    ] {
        assert_eq!(run_with(&memory, source, options), Err(code.to_owned()), "{source}");
    }
}

#[test]
fn added_grains_carry_the_session_and_the_defaults() {
    let memory = Fake::at_work();
    let add = |source: &str| {
        let answer = write(&memory, source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let address = answer["content_address"].as_str().unwrap().parse().unwrap();
        (address, serde_json::to_value(memory.grain(&address)).unwrap())
    };
    let set = "SET subject = \"s\" SET relation = \"r\" SET object = \"o\"";
    let (_, belief) = add(&format!("ADD fact {set} SET tags = [\"t\"] REASON \"told\""));
    assert_eq!(
        belief,
        json!({"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 0.8,
            "structural_tags": ["t"], "namespace": "work", "user_id": "alice", "created_at": NOW_MS,
            "author_did": "did:example:agent", "source_type": "agent_inferred", "context": {"reason": "told"}})
    );
    let (_, again) = add(&format!("ADD belief {set} REASON \"told\""));
    assert_ne!(again, belief);
    let (open, goal) =
        add(&format!("ADD goal {set} SET deadline = \"2026-04-01\" REASON \"told\""));
    assert_eq!(
        (&goal["description"], &goal["goal_state"], &goal["deadline"]),
        (&json!("o"), &json!("active"), &json!(1_775_001_600_000_i64))
    );
    let (_, waiting) =
        add(&format!("ADD goal {set} SET depends_on = sha256:{open} REASON \"told\""));
    assert_eq!(
        (&waiting["goal_state"], &waiting["depends_on"]),
        (&json!("suspended"), &json!([open.to_string()]))
    );
    let (done, _) = add(&format!("ADD goal {set} SET goal_state = \"completed\" REASON \"told\""));
    assert_eq!(memory.grain(&done).text("goal_state"), Some("satisfied"));
    let (_, free) =
        add(&format!("ADD goal {set} SET depends_on = [sha256:{done}] REASON \"told\""));
    assert_eq!(free["goal_state"], json!("active"));
    let (_, seen) = add(&format!("ADD observation {set} REASON \"told\""));
    assert_eq!(
        (&seen["observer_id"], &seen["observer_type"], seen.get("confidence")),
        (&json!("agent-7"), &json!("agent"), None)
    );
}

#[test]
fn an_observation_needs_an_observer() {
    let mut memory = Fake::at_work();
    memory.scope.agent_id = None;
    let source = "ADD observation SET subject = \"s\" SET relation = \"r\" SET object = \"o\" REASON \"why\"";
    let answer = write(&memory, source).unwrap();
    let address = answer["content_address"].as_str().unwrap().parse().unwrap();
    assert_eq!(memory.grain(&address).text("observer_id"), Some("did:example:agent"));
    memory.scope.actor = None;
    assert_eq!(write(&memory, source), Err("CAL-E050 at observation".to_owned()));
}

#[test]
fn a_grain_the_format_refuses_keeps_the_code_of_the_format() {
    let memory = Fake::at_work();
    let source =
        "ADD belief SET subject = \"\" SET relation = \"r\" SET object = \"o\" REASON \"why\"";
    assert_eq!(write(&memory, source), Err("ERR_EMPTY at ".to_owned()));
}

#[test]
fn recalls_and_assemblies_are_written_in_every_format() {
    use crate::ast::Format;
    let memory = four_beliefs();
    for (format, recalled, composed) in [
        ("sml", "<context>\n\n  <belief", "<context intent=\"why\">\n\n  <belief"),
        ("markdown", "**Beliefs**\n- ", "## Context: why\n\n**Beliefs**\n- "),
        ("json", "{\"grains\":[\n{\"type\"", "{\"name\":\"n\",\"intent\":\"why\",\"grains\":[\n"),
        ("yaml", "grains:\n  - type: belief\n", "name: \"n\"\nintent: why\ngrains:\n"),
        ("text", "[belief] ", "[belief] "),
        ("triples", "bob\tprefers\td\n", "bob\tprefers\td\n"),
        (
            "toon",
            "beliefs[4]{subject,content,confidence}:\nbob",
            "context: n\nintent: why\ntokens: ",
        ),
    ] {
        let text = |source: &str, options: &ExecuteOptions<'_>| {
            let answer = run_with(&memory, source, options).unwrap();
            match answer.get("formatted") {
                Some(text) => text.as_str().unwrap().to_owned(),
                None => {
                    assert_eq!(answer["formatted_context"]["format"], format);
                    answer["formatted_context"]["text"].as_str().unwrap().to_owned()
                }
            }
        };
        let recall = text(&format!("RECALL AS {format}"), &options());
        assert!(recall.starts_with(recalled), "{recall}");
        let assemble = "ASSEMBLE n FOR \"why\" FROM (RECALL)";
        let assembly = text(&format!("{assemble} FORMAT {format}"), &options());
        assert!(assembly.starts_with(composed), "{assembly}");
        let forced = ExecuteOptions { as_format: Format::from_name(format), ..options() };
        assert_eq!(text("RECALL AS sml", &forced), recall);
        assert_eq!(text(&format!("{assemble} FORMAT sml"), &forced), assembly);
    }
}

#[test]
fn presets_are_formats_under_other_names() {
    let memory = four_beliefs();
    for (preset, format) in
        [("structured", "sml"), ("readable", "markdown"), ("compact", "text"), ("data", "json")]
    {
        let of = |name| run(&memory, &format!("ASSEMBLE FROM (RECALL) FORMAT {name}")).unwrap();
        assert_eq!(of(preset)["formatted_context"], of(format)["formatted_context"]);
        assert_eq!(of(preset)["formatted_context"]["format"], format);
    }
}

#[test]
fn a_tight_budget_chooses_toon_where_the_host_lets_it_and_nobody_chose() {
    let memory = four_beliefs();
    let auto = ExecuteOptions { auto_toon: true, ..options() };
    let format = |source: &str, options: &ExecuteOptions<'_>| {
        let answer = run_with(&memory, source, options).unwrap();
        let warned = answer["_cal"]["warnings"].to_string().contains("CAL-W005");
        let format = answer["formatted_context"]["format"].as_str().unwrap().to_owned();
        assert_eq!(warned, format == "toon" && !source.contains("FORMAT"), "{source}");
        format
    };
    let tight = "ASSEMBLE FROM (RECALL) BUDGET 60 tokens";
    assert_eq!(format(tight, &auto), "toon");
    assert_eq!(format(tight, &options()), "sml");
    assert_eq!(format("ASSEMBLE FROM (RECALL) BUDGET 600 tokens", &auto), "sml");
    assert_eq!(format("ASSEMBLE FROM (RECALL)", &auto), "sml");
    assert_eq!(format(&format!("{tight} FORMAT sml"), &auto), "sml");
    assert_eq!(format(&format!("{tight} FORMAT toon"), &auto), "toon");
    assert_eq!(format("ASSEMBLE FROM (RECALL) BUDGET 4 grains", &auto), "toon");
    memory.keep(
        r#"{"type": "goal", "description": "ship it", "goal_state": "active", "created_at": 1767225600000}"#,
    );
    assert_eq!(format(tight, &auto), "sml");
}

#[test]
fn a_prefix_of_several_grains_is_ambiguous() {
    let memory = Fake::at_work();
    memory.claim_ambiguous.store(true, Ordering::Relaxed);
    for source in [
        "EXISTS sha256:00000000",
        "HISTORY sha256:00000000",
        "RECALL WHERE hash = sha256:00000000",
        "SUPERSEDE sha256:00000000 SET object = \"o\" REASON \"r\"",
    ] {
        assert_eq!(
            write(&memory, source),
            Err("CAL-E015 at sha256:00000000".to_owned()),
            "{source}"
        );
    }
}

#[test]
fn two_adds_of_one_instant_are_two_grains() {
    let memory = Fake::at_work();
    let source =
        "ADD belief SET subject = \"s\" SET relation = \"r\" SET object = \"o\" REASON \"why\"";
    let first = write(&memory, source).unwrap();
    let second = write(&memory, source).unwrap();
    assert_ne!(first["content_address"], second["content_address"]);
    assert_eq!(first["_cal"]["tier"], json!(1));
}

#[test]
fn a_successor_inherits_what_is_not_its_own_and_says_why() {
    let memory = Fake::at_work();
    let old = memory.keep(&belief(
        "s", "r", "o",
        r#", "structural_tags": ["t"], "valid_from": 5, "timestamp_ms": 7, "origin_did": "did:x", "author_did": "did:y",
            "user_id": "carol", "provenance_chain": [{"m": 1}], "embedding_refs": [{"vector_id": "v", "model": "m", "dimensions": 2}]"#,
    ));
    let source = format!("SUPERSEDE sha256:{old} SET confidence = 0.9 REASON \"better\"");
    let answer = write(&memory, &source).unwrap();
    assert_eq!(answer["superseded"], json!(old.to_string()));
    let new: grainstore_format::ContentAddress =
        answer["content_address"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        serde_json::to_value(memory.grain(&new)).unwrap(),
        json!({"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 0.9, "namespace": "work",
            "structural_tags": ["t"], "valid_from": 5, "user_id": "carol", "created_at": NOW_MS, "author_did": "did:example:agent",
            "derived_from": [old.to_string()], "supersession_justification": "better",
            "embedding_refs": [{"vector_id": "v", "model": "m", "dimensions": 2}]})
    );
    let source =
        format!("SUPERSEDE sha256:{new} SET object = \"p\" SET tags = [] REASON \"changed\"");
    let newest =
        write(&memory, &source).unwrap()["content_address"].as_str().unwrap().parse().unwrap();
    assert_eq!(memory.grain(&newest).get("embedding_refs"), None);
    assert_eq!(*memory.reasons.lock().unwrap(), ["better", "changed"]);
    let chain = run(&memory, &format!("HISTORY sha256:{new}")).unwrap();
    let addresses: Vec<_> = chain["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["address"].clone())
        .collect();
    assert_eq!(
        addresses,
        [json!(newest.to_string()), json!(new.to_string()), json!(old.to_string())]
    );
}

#[test]
fn only_present_current_beliefs_of_the_namespace_are_superseded() {
    let mut memory = four_beliefs();
    let old = memory.keep(&belief("s", "r", "o", ""));
    let new = memory.keep(&belief("s", "r", "p", ""));
    memory.mark(old, |state| state.superseded_by = Some(new));
    let elsewhere = memory.keep(&belief("s", "r", "o", r#", "namespace": "home""#)).to_string();
    let goal = memory.keep(r#"{"type": "goal", "description": "d", "goal_state": "active"}"#);
    for (hash, code) in [
        ("0000000000", "CAL-E046"),
        (&elsewhere, "CAL-E045"),
        (elsewhere.get(..16).unwrap(), "CAL-E046"),
        (&goal.to_string(), "CAL-E042"),
        (&old.to_string(), "CAL-E040"),
    ] {
        let source = format!("SUPERSEDE sha256:{hash} SET object = \"x\" REASON \"r\"");
        assert_eq!(write(&memory, &source), Err(format!("{code} at sha256:{hash}")), "{hash}");
    }
    memory.refusal = Some(MemoryError::new("ERR_INVALIDATION_DENIED", "locked by policy", "ask"));
    let source = format!("SUPERSEDE sha256:{new} SET object = \"x\" REASON \"r\"");
    assert_eq!(write(&memory, &source), Err("ERR_INVALIDATION_DENIED at ".to_owned()));
}

#[test]
fn writes_have_quotas_and_refused_ones_do_not_count() {
    let mut memory = Fake::at_work();
    let writes = WriteQuotas::new(WriteLimits { adds: 2, supersedes: 1, reverts: 1 });
    let options = ExecuteOptions { tier: Tier::Evolve, ..options() };
    let source =
        "ADD belief SET subject = \"s\" SET relation = \"r\" SET object = \"o\" REASON \"why\"";
    let code = |memory: &Fake| {
        execute(memory, source, &options, &writes).err().map(|error| error.code().to_owned())
    };
    memory.refusal = Some(MemoryError::new("ERR_POLICY", "no", ""));
    assert_eq!(code(&memory).as_deref(), Some("ERR_POLICY"));
    memory.refusal = None;
    assert_eq!([code(&memory), code(&memory)], [None, None]);
    assert_eq!(code(&memory).as_deref(), Some("CAL-E052"));
}

#[test]
fn history_of_a_triple_shows_every_version_or_those_of_a_time() {
    let memory = Fake::at_work();
    let old = memory.keep(&belief("s", "r", "old", r#", "created_at": 1000"#));
    let new = memory.keep(&belief("s", "r", "new", r#", "created_at": 2000"#));
    memory.mark(old, |state| {
        state.superseded_by = Some(new);
        state.system_valid_to = Some(EpochMs::new(2000));
    });
    let versions = |source: &str| {
        let answer = run(&memory, source).unwrap();
        let rows = answer["versions"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| row["grain"]["object"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let triple = "HISTORY WHERE subject = \"s\" AND relation = \"r\"";
    assert_eq!(versions(triple), ["new", "old"]);
    assert_eq!(versions(&format!("{triple} AS OF \"1970-01-01T00:00:01.5Z\"")), ["old"]);
    assert_eq!(versions(&format!("{triple} AS OF \"today\"")), ["new"]);
    assert_eq!(versions(&format!("{triple} AS OF \"1970-01-01T00:00:00Z\"")), Vec::<String>::new());
    assert_eq!(
        versions("HISTORY IN \"work:sub\" WHERE subject = \"s\" AND relation = \"r\""),
        Vec::<String>::new()
    );
}

/// Stages as text, with their effect on rows of (object, importance, address), newest first.
fn stage() -> impl Strategy<Value = (String, Stage)> {
    prop_oneof![
        (0_usize..9).prop_map(|n| (format!("OFFSET {n}"), Stage::Skip(n))),
        (1_usize..9).prop_map(|n| (format!("LIMIT {n}"), Stage::Take(n))),
        any::<bool>().prop_map(|down| (order_by("object", down), Stage::Object(down))),
        any::<bool>().prop_map(|down| (order_by("importance", down), Stage::Importance(down))),
        any::<bool>().prop_map(|down| (order_by("time", down), Stage::Time(down))),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Skip(usize),
    Take(usize),
    Object(bool),
    Importance(bool),
    Time(bool),
}

fn order_by(field: &str, down: bool) -> String {
    format!("ORDER BY {field} {}", if down { "DESC" } else { "ASC" })
}

/// Sorts by a key, missing values last in either direction, ties by address.
fn sort_rows(rows: &mut [Value], down: bool, key: impl Fn(&Value) -> Option<f64>) {
    let address = |row: &Value| row["content_address"].as_str().unwrap().to_owned();
    rows.sort_by_key(address);
    rows.sort_by(|a, b| match (key(a), key(b)) {
        (Some(a), Some(b)) if down => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
}

/// A reference implementation of the pipeline: stage by stage, on all rows.
fn naive(all: &[Value], stages: &[Stage]) -> Vec<Value> {
    let mut rows = all.to_vec();
    for stage in stages {
        match stage {
            Stage::Skip(n) => rows = rows.into_iter().skip(*n).collect(),
            Stage::Take(n) => rows.truncate(*n),
            Stage::Object(down) => sort_rows(&mut rows, *down, |row| {
                row["grain"]["object"].as_str().unwrap().parse().ok()
            }),
            Stage::Importance(down) => {
                sort_rows(&mut rows, *down, |row| row["grain"]["importance"].as_f64());
            }
            Stage::Time(down) => {
                sort_rows(&mut rows, *down, |row| row["grain"]["created_at"].as_f64());
            }
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn pipelines_answer_what_the_plain_way_answers(
        grains in proptest::collection::vec((0_u8..5, proptest::option::of(0_u8..3), 0_u8..4), 0..20),
        stages in proptest::collection::vec(stage(), 1..5),
    ) {
        let memory = Fake::at_work();
        for (at, (object, importance, time)) in grains.iter().enumerate() {
            let importance = importance.map_or(String::new(), |i| format!(r#", "importance": 0.{i}"#));
            let more = format!(r#"{importance}, "created_at": 100{time}, "entity_id": "{at}""#);
            memory.keep(&belief("s", "r", &object.to_string(), &more));
        }
        let all = run(&memory, "RECALL LIMIT 1000").unwrap();
        let texts: Vec<_> = stages.iter().map(|(text, _)| text.as_str()).collect();
        let steps: Vec<_> = stages.iter().map(|(_, stage)| *stage).collect();
        let counting = ExecuteOptions { totals: true, ..options() };
        let source = format!("RECALL {}", texts.join(" | "));
        let answer = run_with(&memory, &source, &counting).unwrap();
        let expected = naive(all["results"].as_array().unwrap(), &steps);
        prop_assert_eq!(answer["results"].as_array().unwrap(), &expected, "{:?}", texts);
        prop_assert_eq!(&answer["total"], &all["total"]);
    }

    #[test]
    fn any_statement_answers_or_is_refused_with_a_code(
        start in prop_oneof![
            Just("RECALL"), Just("RECALL WHERE"), Just("ASSEMBLE FROM (RECALL)"), Just("(RECALL"),
            Just("LET $l = RECALL | OBJECTS; RECALL WHERE"), Just("BATCH { a: RECALL"), Just("EXPLAIN RECALL"),
            Just("COALESCE(RECALL goals"), Just("ADD belief SET subject = \"s\" SET relation = \"r\" SET")],
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..9),
    ) {
        let memory = four_beliefs();
        let source = format!("{start} {}", words.join(" "));
        let refused = write(&memory, &source).err();
        prop_assert!(refused.is_none_or(|code| code.starts_with("CAL-E") || code.starts_with("ERR_")));
    }
}

const WORDS: &[&str] = &[
    "subject = \"alice\"",
    "AND",
    "object =",
    "\"x\"",
    "confidence >=",
    "0.5",
    "-1",
    "time =",
    "\"last week\"",
    "1e9",
    "99999999999999999",
    "LIMIT",
    "OFFSET",
    "1",
    "ORDER BY object",
    "COUNT",
    "FIRST",
    "RECENT 3",
    "SINCE \"today\"",
    "AS json",
    "AS sml",
    "WITH superseded",
    "BUDGET",
    "grains",
    "tokens",
    "REASON \"r\"",
    "SET",
    "tags INCLUDE",
    "[\"x\"]",
    "hash =",
    "sha256:00000000",
    "type = \"goal\"",
    "IN (\"a\", \"b\")",
    "WHERE",
    "PRIORITY source1",
    "WITH dedup(object)",
    "WITH contradiction_detection, explanation, provenance",
    "SELECT subject, hash",
    "GROUP BY subject",
    "SUBJECTS",
    "HASHES",
    "subject IN (RECALL | SUBJECTS)",
    "subject IN ($l)",
    "hc:x != 3",
    "THREAD FROM sha256:00000000",
    "CONTRADICTIONS",
    ") UNION (RECALL",
    ")",
    "}",
    ",",
    "b: EXISTS sha256:00000000",
    ", RECALL beliefs",
];

/// The text of `RECALL beliefs` followed by this.
fn projected(memory: &Fake, rest: &str) -> Result<String, String> {
    let answer = run(memory, &format!("RECALL {rest}"))?;
    Ok(answer["formatted"].as_str().unwrap().lines().nth(2).unwrap().trim().to_owned())
}

#[test]
fn project_shows_what_it_names_and_nothing_else() {
    let memory = Fake::at_work();
    let parent = "ab".repeat(32);
    memory.keep(&format!(
        r#"{{"type": "observation", "subject": "pump", "relation": "mg:is_at", "object": "12 bar",
            "observer_id": "dr-smith", "observer_type": "human", "importance": 0.5, "confidence": 0.5,
            "x_team": "east", "hc:patient_id": "P-1234", "structural_tags": ["a", "b"],
            "timestamp_ms": {}, "derived_from": ["{parent}"],
            "context": {{"hc:encounter_id": "E-567"}}}}"#,
        NOW_MS - 3_600_000
    ));
    let rest = "observations WHERE tags INCLUDE [\"a\"] PROJECT";
    for (project, shown) in [
        (
            "content(object), attr(observer, hc:patient_id, hc:encounter_id)",
            "<observation observer=\"dr-smith\" hc:patient_id=\"P-1234\" hc:encounter_id=\"E-567\">12 bar</observation>",
        ),
        ("content(subject, relation, object)", "<observation>pump is at 12 bar</observation>"),
        (
            "attr(x_team, relation, tags, time, importance, hash, x_none)",
            "<observation x_team=\"east\" relation=\"is at\" tags=\"a,b\" time=\"1h ago\" importance=\"0.5\">12 bar</observation>",
        ),
        (
            "attr(contradicted, type, observer_type, confidence)",
            "<observation contradicted=\"false\" type=\"observation\" observer_type=\"human\" confidence=\"0.5\">12 bar</observation>",
        ),
    ] {
        assert_eq!(projected(&memory, &format!("{rest} {project} AS sml")).as_deref(), Ok(shown));
    }
    let source = "ASSEMBLE FROM (RECALL observations PROJECT attr(hc:patient_id)), (RECALL beliefs) FORMAT toon";
    let answer = run(&memory, source).unwrap();
    let text = answer["formatted_context"]["text"].as_str().unwrap();
    assert!(
        text.ends_with("observations[1]{content,\"hc:patient_id\"}:\n  12 bar,P-1234"),
        "{text}"
    );
    assert!(answer["_cal"]["warnings"].to_string().contains("CAL-W002"));
    let message = memory.keep(&format!(
        r#"{{"type": "event", "content": "hi", "role": "user", "parent_message_id": "{parent}"}}"#
    ));
    assert_eq!(message.to_string().len(), 64);
    let event = projected(&memory, "events PROJECT attr(parent_message_id, role) AS sml");
    assert_eq!(event.as_deref(), Ok("<event role=\"user\">hi</event>"));
}

#[test]
fn project_is_refused_where_it_shapes_nothing() {
    let memory = four_beliefs();
    for (source, refusal) in [
        ("RECALL PROJECT attr(subject) | COUNT", "CAL-E021 at PROJECT attr(subject)"),
        ("RECALL SELECT object PROJECT attr(subject)", "CAL-E021 at PROJECT attr(subject)"),
        (
            "RECALL PROJECT attr(subject) PROJECT attr(object) AS sml",
            "CAL-E021 at PROJECT attr(object)",
        ),
        ("RECALL COUNT PROJECT attr(subject)", "CAL-E021 at PROJECT attr(subject)"),
        ("RECALL PROJECT attr(namespace) AS sml", "CAL-E021 at namespace"),
        ("RECALL beliefs PROJECT attr(role) AS sml", "CAL-E060 at role"),
        ("RECALL PROJECT attr(role) AS sml", "CAL-E061 at role"),
        (
            "LET $a = RECALL PROJECT attr(object); ASSEMBLE FROM $a",
            "CAL-E021 at PROJECT attr(object)",
        ),
        ("(RECALL PROJECT attr(object)) UNION (RECALL)", "CAL-E021 at PROJECT attr(object)"),
    ] {
        assert_eq!(run(&memory, source), Err(refusal.to_owned()), "{source}");
    }
    let forced = ExecuteOptions { as_format: Some(crate::ast::Format::Text), ..options() };
    assert!(run_with(&memory, "RECALL PROJECT attr(subject)", &forced).is_ok());
}

#[test]
fn summarize_takes_sentences_from_the_grains_that_are_shown() {
    let memory = four_beliefs();
    let said = &run(&memory, "RECALL WHERE subject = \"alice\" WITH summarize").unwrap();
    let sentences = said["summarized"].as_array().unwrap();
    assert!(!sentences.is_empty() && sentences.len() <= 3, "{said}");
    assert!(sentences.iter().all(|one| one.as_str().unwrap().starts_with("alice ")), "{said}");
    assert_eq!(run(&memory, "RECALL").unwrap().get("summarized"), None);
    let none = run(&memory, "RECALL WHERE subject = \"nobody\" WITH summarize").unwrap();
    assert_eq!(none["summarized"], json!([]));
    let source = "ASSEMBLE FROM a: (RECALL WHERE subject = \"alice\"), b: (RECALL) WITH summarize";
    let answer = run(&memory, source).unwrap();
    assert_eq!(answer["sources"]["a"]["summarized"], said["summarized"]);
    assert!(!answer["sources"]["b"]["summarized"].to_string().contains("alice"));
    let source = "ASSEMBLE FROM a: (RECALL WHERE subject = \"alice\" WITH summarize), b: (RECALL)";
    let answer = run(&memory, source).unwrap();
    assert_eq!(answer["sources"]["a"]["summarized"], said["summarized"]);
    assert_eq!(answer["sources"]["b"].get("summarized"), None);
    for (source, refusal) in [
        ("RECALL WITH summarize | COUNT", "CAL-E021 at COUNT"),
        ("RECALL WITH summarize | SELECT object", "CAL-E021 at SELECT object"),
        ("LET $a = RECALL WITH summarize; ASSEMBLE FROM $a", "CAL-E021 at $a"),
    ] {
        assert_eq!(run(&memory, source), Err(refusal.to_owned()), "{source}");
    }
}
