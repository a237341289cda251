//! The projection of every grain type, written as SML elements for readability.

use grainstore_format::{Grain, parse_datetime};

use super::*;
use crate::format::tag;

const CREATED: &str = "2026-03-13T12:00:00Z";

fn item(json: &str) -> Item {
    let text = json.replacen('{', &format!(r#"{{"created_at": "{CREATED}", "#), 1);
    Item {
        grain: Grain::from_json(&text).expect(json),
        verification: None,
        chosen: None,
        score: None,
    }
}

fn clock() -> Clock {
    Clock { now: parse_datetime("2026-03-15T12:00:00Z").unwrap(), iso_timestamps: false }
}

fn shown(item: &Item, level: Level) -> String {
    let mut out = String::new();
    tag(&mut out, &project(item, level, &clock()).expect("shown"));
    out.trim().to_owned()
}

/// A grain with its elements at summary and standard level.
fn check(json: &str, summary: &str, standard: &str) {
    let item = item(json);
    assert_eq!(shown(&item, Level::Summary), summary, "summary of {json}");
    assert_eq!(shown(&item, Level::Standard), standard, "standard of {json}");
}

#[test]
fn beliefs_say_what_their_subject_does() {
    for kind in ["belief", "fact"] {
        check(
            &format!(
                r#"{{"type": "{kind}", "subject": "alice", "relation": "mg:works_at",
                    "object": "Acme", "confidence": 0.90}}"#
            ),
            r#"<belief subject="alice">works at Acme</belief>"#,
            r#"<belief subject="alice" confidence="0.9">works at Acme</belief>"#,
        );
    }
    check(
        r#"{"type": "belief", "subject": "bot", "relation": "mg:has_capability", "confidence": 1,
            "object": {"name": "sum", "max": 2.0, "args": [1, null, "é"]}}"#,
        r#"<belief subject="bot">has capability {"args":[1,null,"é"],"max":2,"name":"sum"}</belief>"#,
        r#"<belief subject="bot" confidence="1">has capability {"args":[1,null,"é"],"max":2,"name":"sum"}</belief>"#,
    );
}

#[test]
fn events_show_content_then_text_blocks_then_the_triple() {
    check(
        r#"{"type": "episode", "content": "Hello", "role": "user", "timestamp_ms": 1773575400000,
            "content_blocks": [{"type": "text", "text": "unused"}]}"#,
        r#"<event role="user">Hello</event>"#,
        r#"<event role="user" time="10m ago">Hello</event>"#,
    );
    check(
        r#"{"type": "event", "content_blocks": [
            {"type": "thinking", "thinking": "secret", "text": "secret"},
            {"type": "text", "text": "one"}, {"type": "image", "source": {"data": "x"}},
            {"type": "text", "text": "two"}]}"#,
        "<event>one\ntwo</event>",
        "<event time=\"2d ago\">one\ntwo</event>",
    );
    check(
        r#"{"type": "event", "subject": "alice", "relation": "mg:handed_off_to", "object": "bob"}"#,
        "<event>alice handed off to bob</event>",
        r#"<event time="2d ago">alice handed off to bob</event>"#,
    );
    check(
        r#"{"type": "event", "context": {"a": 1},
            "content_blocks": [{"type": "image", "source": {"data": "x"}}]}"#,
        "<event></event>",
        r#"<event time="2d ago"></event>"#,
    );
}

#[test]
fn goals_show_their_object_else_their_description() {
    check(
        r#"{"type": "goal", "description": "reduce incidents", "goal_state": "active",
            "subject": "alice", "deadline": "2026-03-15T00:00:00Z"}"#,
        r#"<goal subject="alice">reduce incidents</goal>"#,
        r#"<goal subject="alice" state="active" deadline="2026-03-15">reduce incidents</goal>"#,
    );
    check(
        r#"{"type": "goal", "description": "d", "goal_state": "satisfied", "object": "finish",
            "deadline": 1773585000000}"#,
        "<goal>finish</goal>",
        r#"<goal state="satisfied" deadline="2026-03-15T14:30:00Z">finish</goal>"#,
    );
}

#[test]
fn actions_show_what_their_phase_has_to_say() {
    check(
        r#"{"type": "tool", "tool_name": "get_weather", "input": {"city": "Oslo"},
            "content": {"wind": 4.0, "sky": "clear"}, "is_error": false}"#,
        r#"<action tool="get_weather">{"sky":"clear","wind":4}</action>"#,
        r#"<action tool="get_weather" phase="completed">{"sky":"clear","wind":4}</action>"#,
    );
    check(
        r#"{"type": "action", "tool_name": "t", "input": {}, "content": "raw", "is_error": false,
            "object": "a summary of the result"}"#,
        r#"<action tool="t">a summary of the result</action>"#,
        r#"<action tool="t" phase="completed">a summary of the result</action>"#,
    );
    check(
        r#"{"type": "action", "tool_name": "t", "input": {}, "content": "", "is_error": true,
            "error": "timed out"}"#,
        r#"<action tool="t">timed out</action>"#,
        r#"<action tool="t" phase="completed">timed out</action>"#,
    );
    check(
        r#"{"type": "action", "execution_mode": "code_exec", "code": "print(1)", "stdout": "1\n",
            "is_error": false}"#,
        "<action>1\n</action>",
        "<action phase=\"completed\">1\n</action>",
    );
    check(
        r#"{"type": "action", "action_phase": "definition", "tool_name": "t",
            "tool_description": "does things", "input_schema": {}}"#,
        r#"<action tool="t">does things</action>"#,
        r#"<action tool="t" phase="definition">does things</action>"#,
    );
    check(
        r#"{"type": "action", "action_phase": "call", "tool_name": "t",
            "input": {"q": "x", "n": 3, "f": 1.50}}"#,
        r#"<action tool="t">{"f":1.5,"n":3,"q":"x"}</action>"#,
        r#"<action tool="t" phase="call">{"f":1.5,"n":3,"q":"x"}</action>"#,
    );
}

#[test]
fn observations_name_their_observer_from_standard_on() {
    check(
        r#"{"type": "observation", "observer_id": "temp-01", "observer_type": "sensor",
            "subject": "server-room", "object": "22.5C"}"#,
        "<observation>22.5C</observation>",
        r#"<observation observer="temp-01">22.5C</observation>"#,
    );
    check(
        r#"{"type": "observation", "observer_id": "o", "observer_type": "sensor",
            "content": "seen"}"#,
        "<observation>seen</observation>",
        r#"<observation observer="o">seen</observation>"#,
    );
    check(
        r#"{"type": "observation", "observer_id": "o", "observer_type": "trigger:poll",
            "context": {"zone": "eu", "every": 30}}"#,
        r#"<observation>{"every":30,"zone":"eu"}</observation>"#,
        r#"<observation observer="o">{"every":30,"zone":"eu"}</observation>"#,
    );
}

#[test]
fn reasonings_show_the_conclusion_and_never_the_thinking() {
    check(
        r#"{"type": "reasoning", "conclusion": "so it is", "inference_method": "deductive",
            "thinking_content": "secret"}"#,
        "<reasoning>so it is</reasoning>",
        r#"<reasoning type="deductive">so it is</reasoning>"#,
    );
    check(
        r#"{"type": "reasoning", "thinking_content": "secret", "subject": "a", "relation": "mg:is",
            "object": "b"}"#,
        "<reasoning>a is b</reasoning>",
        "<reasoning>a is b</reasoning>",
    );
    check(
        r#"{"type": "reasoning", "thinking_content": "secret"}"#,
        "<reasoning></reasoning>",
        "<reasoning></reasoning>",
    );
}

#[test]
fn states_show_the_plan_else_their_context() {
    check(
        r#"{"type": "checkpoint", "plan": ["outline", "draft"],
            "context": {"id": "review", "name": "unused"}}"#,
        "<state>outline; draft</state>",
        r#"<state context="review">outline; draft</state>"#,
    );
    check(
        r#"{"type": "state", "plan": [], "context": {"name": "n", "b": 1.0}}"#,
        r#"<state>{"b":1,"name":"n"}</state>"#,
        r#"<state context="n">{"b":1,"name":"n"}</state>"#,
    );
}

#[test]
fn workflows_number_their_steps() {
    check(
        r#"{"type": "workflow", "steps": ["retrieve", "draft", "send"], "trigger": "asked"}"#,
        "<workflow>1. retrieve  2. draft  3. send</workflow>",
        r#"<workflow trigger="asked">1. retrieve  2. draft  3. send</workflow>"#,
    );
}

const CONSENSUS: &str = r#"{"type": "consensus", "participating_observers": ["did:web:a"],
    "threshold": 2, "agreement_count": 3, "dissent_count": 0, "#;
const ADDRESS: &str = "3288d0d41cf49a1d428e404f0b6a6fe60388be9536937557f6139b813d53a520";

#[test]
fn consensuses_show_the_claim_but_no_address() {
    for (claim, text) in [
        (r#""object": "it works", "agreed_content": "unused"}"#.to_owned(), "it works"),
        (r#""agreed_content": "it holds"}"#.to_owned(), "it holds"),
        (r#""agreed_content": {"v": 1.0}}"#.to_owned(), r#"{"v":1}"#),
        (format!(r#""agreed_content": "{ADDRESS}"}}"#), ""),
        (
            format!(r#""agreed_content": "sha256:{ADDRESS}", "context": {{"k": "v"}}}}"#),
            r#"{"k":"v"}"#,
        ),
    ] {
        check(
            &format!("{CONSENSUS}{claim}"),
            &format!("<consensus>{text}</consensus>"),
            &format!(r#"<consensus threshold="2" count="3">{text}</consensus>"#),
        );
    }
}

#[test]
fn a_consensus_takes_the_text_of_the_grain_it_points_to() {
    let mut consensus = item(&format!(r#"{CONSENSUS} "agreed_content": "sha256:{ADDRESS}"}}"#));
    assert_eq!(consensus.agreed_address().map(|a| a.to_string()).as_deref(), Some(ADDRESS));
    let secret =
        item(r#"{"type": "reasoning", "conclusion": "not yet", "requires_human_review": true}"#);
    consensus.resolve_agreed(&secret).unwrap();
    assert_eq!(shown(&consensus, Level::Summary), "<consensus></consensus>");

    let tool = item(
        r#"{"type": "action", "action_phase": "definition", "tool_name": "t",
            "tool_description": "does things", "input_schema": {}}"#,
    );
    consensus.resolve_agreed(&tool).unwrap();
    assert_eq!(shown(&consensus, Level::Summary), "<consensus>does things</consensus>");
    assert_eq!(consensus.agreed_address(), None);

    let mut spelled = item(&format!(r#"{CONSENSUS} "agreed_content": "as agreed"}}"#));
    spelled.resolve_agreed(&tool).unwrap();
    assert_eq!(shown(&spelled, Level::Summary), "<consensus>as agreed</consensus>");
}

#[test]
fn consents_show_purpose_else_scope_and_both_parties_at_every_level() {
    let parties = r#""subject_did": "did:key:zA", "grantee_did": "did:web:b""#;
    for (fields, text, action) in [
        (
            r#""scope": ["store"], "is_withdrawal": false, "purpose": "billing""#,
            "billing",
            "granted",
        ),
        (r#""scope": ["store", "share"], "is_withdrawal": false"#, "store, share", "granted"),
        (
            r#""scope": ["store"], "is_withdrawal": true, "prior_consent": "x""#,
            "store",
            "withdrawn",
        ),
    ] {
        let element = format!(
            r#"<consent action="{action}" grantor="did:key:zA" grantee="did:web:b">{text}</consent>"#
        );
        check(&format!(r#"{{"type": "consent", {fields}, {parties}}}"#), &element, &element);
    }
}

#[test]
fn the_full_level_adds_where_when_and_how_sure() {
    let belief = r#"{"type": "belief", "subject": "a", "relation": "r", "object": "o",
        "confidence": 0.5, "source_type": "user_explicit", "importance": 1,
        "structural_tags": ["pii:name", "x"]}"#;
    let mut item = item(belief);
    for (status, expected) in [
        (None, ""),
        (Some("unverified"), ""),
        (Some("verified"), r#" verification="verified""#),
        (Some("contested"), r#" verification="contested""#),
    ] {
        item.verification = status.map(str::to_owned);
        let attributes = r#"subject="a" confidence="0.5" source="explicit" observed="2d ago" importance="1" tags="pii:name,x""#;
        let element = format!("<belief {attributes}{expected}>r o</belief>");
        assert_eq!(shown(&item, Level::Full), element);
    }
}

#[test]
fn absent_and_empty_extras_are_left_out() {
    let item = item(
        r#"{"type": "event", "content": "c", "source_type": "system", "structural_tags": []}"#,
    );
    let element = r#"<event time="2d ago" source="system" observed="2d ago">c</event>"#;
    assert_eq!(shown(&item, Level::Full), element);
}

#[test]
fn iso_timestamps_replace_every_age() {
    let item = item(r#"{"type": "event", "content": "c"}"#);
    let clock = Clock { iso_timestamps: true, ..clock() };
    let projection = project(&item, Level::Full, &clock).unwrap();
    let times: Vec<_> = projection.attributes.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(times, [CREATED, CREATED]);
}

#[test]
fn a_reasoning_waiting_for_review_is_never_shown() {
    let json = r#"{"type": "reasoning", "conclusion": "c", "requires_human_review": true}"#;
    for (status, expected) in [
        (None, false),
        (Some("unverified"), false),
        (Some("contested"), false),
        (Some("retracted"), false),
        (Some("verified"), true),
    ] {
        let item = Item { verification: status.map(str::to_owned), ..item(json) };
        for level in [Level::Summary, Level::Standard, Level::Full] {
            assert_eq!(project(&item, level, &clock()).is_some(), expected, "{status:?}");
        }
    }
    let belief = item(
        r#"{"type": "belief", "subject": "a", "relation": "r", "object": "o", "confidence": 1,
            "requires_human_review": true}"#,
    );
    assert!(project(&belief, Level::Summary, &clock()).is_some());
}

#[test]
fn every_standard_type_has_a_row_and_opaque_types_have_none() {
    for grain_type in GrainType::STANDARD {
        assert!(table::rule_for(grain_type).is_some(), "{grain_type}");
    }
    assert!(GrainType::from_byte(0x0B).is_some_and(|opaque| table::rule_for(opaque).is_none()));
}
