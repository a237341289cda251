//! The firewall, and rules of the store about what CAL gives out.

use grainstore::cal::Tier;
use grainstore::format::{EpochMs, Grain};
use grainstore::{Firewall, OpenOptions, PrepareOptions, Preset};
use serde_json::json as object;

use crate::calls::kit::{ADD, START_MS, World, code, shown};

fn behind(firewall: Firewall) -> World {
    World::with(OpenOptions::new().firewall(firewall))
}

#[test]
fn a_statement_with_too_many_points_does_not_run() {
    let world = behind(Firewall::default().max_complexity(50));
    let agent = world.agent("work");
    assert_eq!(code(agent.ask("RECALL beliefs")), "done");
    assert_eq!(code(agent.ask("RECALL beliefs LIMIT 1000")), "ERR_LIMIT");
    assert_eq!(code(agent.prepare(b"RECALL LIMIT 1000", &PrepareOptions::default())), "ERR_LIMIT");
    assert_eq!(code(agent.ask("EXPLAIN RECALL beliefs LIMIT 1000")), "done", "it can be looked at");
    let plain = World::new();
    let batch = "BATCH { a: RECALL LIMIT 1000, b: RECALL LIMIT 1000, c: RECALL LIMIT 1000 }";
    assert_eq!(code(plain.agent("work").ask(batch)), "done", "nothing usual is refused");
}

#[test]
fn denied_patterns_see_through_shortcuts_spaces_comments_and_escapes() {
    let firewall = Firewall::default().deny("*subject = \"mallory\"*").deny("*consents*");
    let world = behind(firewall);
    let agent = world.agent("work");
    for query in [
        r#"RECALL WHERE subject = "mallory""#,
        "recall\n--x\nbeliefs   where subject=\"mallory\"",
        r#"RECALL beliefs ABOUT "mallory""#,
        r#"RECALL WHERE subject = "m\u0061llory""#,
        r#"ASSEMBLE FROM a: (RECALL), b: (RECALL ABOUT "mallory")"#,
        r#"COALESCE(RECALL, RECALL ABOUT "mallory")"#,
        r#"BATCH { a: RECALL ABOUT "mallory" }"#,
        r#"RECALL WHERE subject IN (RECALL ABOUT "mallory" | SUBJECTS)"#,
        r#"LET $x = RECALL ABOUT "mallory" | SUBJECTS; RECALL WHERE subject IN ($x)"#,
        "RECALL consents",
        "rEcAlL CONSENTS",
    ] {
        assert_eq!(code(agent.ask(query)), "ERR_POLICY", "{query}");
    }
    assert_eq!(code(agent.ask(r#"RECALL ABOUT "alice""#)), "done");
}

#[test]
fn a_session_and_its_parts_write_as_often_as_the_host_says() {
    let world = behind(Firewall::default().max_evolving(2));
    let agent = world.agent("work");
    let options = grainstore::cal::ExecuteOptions::at(EpochMs::new(START_MS));
    let options = grainstore::cal::ExecuteOptions { tier: Tier::Evolve, ..options };
    let part = agent.part(agent.options().clone());
    assert_eq!(code(agent.ask_with(ADD.as_bytes(), &options)), "done");
    let prepared = part.prepare(ADD.as_bytes(), &crate::calls::kit::evolving()).unwrap();
    assert_eq!(code(part.execute(&prepared.token)), "done");
    assert_eq!(code(agent.clone().ask_with(ADD.as_bytes(), &options)), "CAL-E043");
    assert_eq!(code(agent.prepare(ADD.as_bytes(), &crate::calls::kit::evolving())), "CAL-E043");
    assert_eq!(code(agent.ask("RECALL beliefs")), "done");
    assert_eq!(code(world.agent("work").ask_with(ADD.as_bytes(), &options)), "done", "another");
}

#[test]
fn hipaa_gives_out_health_data_by_named_fields_alone() {
    let world = World::with(OpenOptions::new().preset(Preset::from_name("hipaa").unwrap()));
    let operator = world.operator();
    let grain = |object: &str, tags: &[&str]| {
        let fields = object!({
            "type": "belief", "subject": "bob", "relation": "has", "object": object,
            "confidence": 1.0, "created_at": START_MS, "structural_tags": tags,
            "processing_basis": "legal_obligation",
        });
        operator.put(Grain::from_json(&fields.to_string()).unwrap()).unwrap();
    };
    grain("a bicycle", &["outdoors"]);
    assert_eq!(code(operator.ask("RECALL beliefs")), "done");
    grain("a fever", &["PHI:condition"]);
    for (query, expected) in [
        ("RECALL beliefs", "ERR_POLICY"),
        ("RECALL beliefs AS sml", "ERR_POLICY"),
        ("COALESCE(RECALL goals, RECALL beliefs)", "ERR_POLICY"),
        ("(RECALL beliefs) UNION (RECALL goals)", "ERR_POLICY"),
        (r#"HISTORY WHERE subject = "bob" AND relation = "has""#, "ERR_POLICY"),
        ("RECALL beliefs | SELECT object", "done"),
        ("RECALL beliefs | COUNT", "done"),
        (r#"RECALL beliefs WHERE object = "a bicycle""#, "done"),
        ("RECALL beliefs | SELECT object WITH provenance", "ERR_POLICY"),
        ("ASSEMBLE FROM (RECALL beliefs)", "ERR_POLICY"),
        ("ASSEMBLE FROM (RECALL beliefs) WITH summarize", "ERR_POLICY"),
        (
            "ASSEMBLE FROM (RECALL beliefs) FORMAT TEMPLATE { ELEMENT { {{grain.object}} } }",
            "ERR_POLICY",
        ),
        ("ASSEMBLE FROM (RECALL beliefs AS json) BUDGET 20 tokens", "CAL-E076"),
        ("ASSEMBLE FROM (RECALL beliefs | PROJECT content(object))", "done"),
        (r#"ASSEMBLE FROM (RECALL beliefs WHERE object = "a bicycle")"#, "done"),
    ] {
        assert_eq!(code(operator.ask(query)), expected, "{query}");
    }
    let batch = shown(&operator.ask("BATCH { a: RECALL beliefs, b: RECALL | COUNT }").unwrap());
    assert_eq!(batch["batch"]["a"]["error"]["code"], "ERR_POLICY");
    assert_eq!(batch["batch"]["b"]["count"], 2);
    let elsewhere = World::new();
    elsewhere.put("work", "tea");
    assert_eq!(code(elsewhere.operator().ask("RECALL beliefs")), "done");
}

#[test]
fn a_stricter_limit_of_the_rules_is_that_of_a_recall_that_names_none() {
    let world = World::with(OpenOptions::new().preset(Preset::from_name("hipaa").unwrap()));
    let operator = world.operator();
    let message = |at: i64| {
        let fields = object!({
            "type": "event", "content": format!("message {at}"), "role": "user",
            "session_id": "s", "created_at": START_MS + at,
        });
        Grain::from_json(&fields.to_string()).unwrap()
    };
    operator.put_batch((0..30).map(message)).unwrap();
    let many =
        |query: &str| shown(&operator.ask(query).unwrap())["results"].as_array().map(Vec::len);
    assert_eq!(many(r#"RECALL THREAD "s""#), Some(10));
    assert_eq!(many(r#"RECALL THREAD "s" LIMIT 25"#), Some(25));
    let rules = r#"settings.query_limit = { value = 7, article = "house rule" }"#;
    operator.change_rules(rules, false, "less at a time").unwrap();
    assert_eq!(many("RECALL events"), Some(7));
    let open = World::new();
    open.operator().put_batch((0..60).map(message)).unwrap();
    let thread = shown(&open.operator().ask(r#"RECALL THREAD "s""#).unwrap());
    assert_eq!(thread["results"].as_array().map(Vec::len), Some(60), "as the language has it");
}

#[test]
fn a_host_that_requires_a_namespace_refuses_who_is_limited_to_none() {
    let world = behind(Firewall::default().require_namespace());
    for query in ["RECALL beliefs", r#"RECALL beliefs IN "work""#, "RECALL | COUNT"] {
        let refused = world.operator().ask(query).map(drop).unwrap_err();
        assert_eq!(refused.code(), "ERR_POLICY", "{query}: {refused}");
    }
    let token = world.operator().prepare(b"RECALL", &PrepareOptions::default());
    assert_eq!(code(token), "ERR_POLICY");
    assert_eq!(code(world.agent("work").ask("RECALL beliefs")), "done");
}
