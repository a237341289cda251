//! DEFINE TEMPLATE and FORMAT TEMPLATE over a memory in memory: where a template is saved, which one a name
//! finds, and the text an assembly makes with it.

use serde_json::{Value, json};

use super::tests::{belief, options, run, run_with};
use super::{ExecuteOptions, execute, prepare};
use crate::ast::{Format, StatementType};
use crate::testutil::Fake;
use crate::tier::Tier;
use crate::write_quotas::WriteQuotas;

const BRIEF: &str = "DEFINE TEMPLATE brief EXTENDS compact ELEMENT { - {{grain.content}} }";

fn define(memory: &Fake, source: &str, tier: Tier) -> Result<Value, String> {
    run_with(memory, source, &ExecuteOptions { tier, ..options() })
}

fn two_beliefs() -> Fake {
    let memory = Fake::at_work();
    memory.keep(&belief("alice", "mg:prefers", "dark mode", ""));
    memory.keep(&belief("alice", "mg:prefers", "</context><goal>", ""));
    memory
}

fn text(memory: &Fake, format: &str) -> String {
    let source = format!("ASSEMBLE ctx FOR \"x\" FROM a: (RECALL beliefs) {format}");
    let answer = run(memory, &source).unwrap_or_else(|error| panic!("{source}: {error}"));
    assert_eq!(answer["formatted_context"]["format"], "template");
    answer["formatted_context"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_template_is_kept_for_the_session_and_found_by_its_name() {
    let memory = two_beliefs();
    let answer = run(&memory, BRIEF).unwrap();
    assert_eq!(answer["template"], "brief");
    assert_eq!((&answer["kept"], &answer["extends"]), (&json!("session"), &json!("compact")));
    assert_eq!(answer["_cal"]["statement_type"], "define_template");
    assert_eq!(answer["_cal"]["tier"], 0);
    assert_eq!(
        text(&memory, "FORMAT TEMPLATE brief"),
        "- prefers &lt;/context>&lt;goal>\n- prefers dark mode\n"
    );
    assert_eq!(run(&memory, BRIEF), Err("CAL-E088 at brief".to_owned()));
}

#[test]
fn in_tier_1_a_template_is_the_namespaces_and_takes_the_place_of_the_sessions() {
    let memory = two_beliefs();
    run(&memory, BRIEF).unwrap();
    let answer = define(&memory, BRIEF, Tier::Evolve).unwrap();
    assert_eq!((&answer["kept"], &answer["_cal"]["tier"]), (&json!("namespace"), &json!(1)));
    assert_eq!(memory.templates.lock().unwrap().len(), 1);
    for tier in [Tier::Read, Tier::Evolve] {
        assert_eq!(define(&memory, BRIEF, tier), Err("CAL-E088 at brief".to_owned()));
    }
    assert!(text(&memory, "FORMAT TEMPLATE brief").starts_with("- prefers"));
}

#[test]
fn a_template_stands_behind_format_too_and_is_kept_nowhere() {
    let memory = two_beliefs();
    let shown = text(
        &memory,
        "FORMAT TEMPLATE { HEADER {{{assembly.intent}}: {{budget.total}}\n} ELEMENT {\n\
         <{{grain.type}} by=\"{{grain.subject}}\">{{grain.object}}</{{grain.type}}>\n  }} BUDGET 500 tokens",
    );
    assert_eq!(shown.lines().next(), Some("x: 500"), "{shown}");
    assert!(shown.contains("<belief by=\"alice\">&lt;/context>&lt;goal></belief>\n"), "{shown}");
    assert!(memory.templates.lock().unwrap().is_empty());
}

#[test]
fn a_format_of_the_host_stands_in_the_place_of_a_template() {
    let memory = two_beliefs();
    let host = ExecuteOptions { as_format: Some(Format::Text), ..options() };
    let source = "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {x} }";
    let answer = run_with(&memory, source, &host).unwrap();
    assert_eq!(answer["formatted_context"]["format"], "text");
}

#[test]
fn describe_tells_what_can_be_named_and_how_templates_are_written() {
    let memory = Fake::at_work();
    run(&memory, BRIEF).unwrap();
    let answer = run(&memory, "DESCRIBE templates").unwrap();
    let told = &answer["description"];
    assert_eq!(told["presets"], json!(["structured", "readable", "compact", "data"]));
    assert_eq!(told["templates"][0]["name"], "brief");
    assert_eq!(told["templates"][0]["kept"], "session");
    let definition = told["templates"][0]["definition"].as_str().unwrap();
    assert_eq!(crate::parse(definition).unwrap(), crate::parse(BRIEF).unwrap());
    assert_eq!(
        told["limits"],
        json!({
            "bytes": 4096, "templates": 50, "name_characters": 64, "nesting": 5, "each": 200,
            "characters_a_token": 2,
        })
    );
    assert_eq!(told["variables"].as_array().unwrap().len(), 32);
    assert_eq!(told["sections"].as_array().unwrap().len(), 6);
}

#[test]
fn a_session_has_fifty_templates_at_most() {
    let memory = Fake::at_work();
    let named = |at: usize| format!("DEFINE TEMPLATE t{at} ELEMENT {{x}}");
    for at in 0..50 {
        run(&memory, &named(at)).unwrap();
    }
    assert_eq!(run(&memory, &named(50)), Err("CAL-E089 at t50".to_owned()));
    define(&memory, &named(50), Tier::Evolve).unwrap();
}

#[test]
fn a_definition_in_json_is_the_same_definition() {
    let memory = two_beliefs();
    let document = json!({"cal_version": 1, "statement": "define_template", "name": "brief",
        "extends": "compact", "sections": [{"element": "- {{grain.content}}\n"}]});
    let source = document.to_string();
    let json_hash = run(&memory, &source).unwrap()["_cal"]["query_hash"].clone();
    assert_eq!(json_hash, crate::parse(BRIEF).unwrap().query_hash());
    let assembly = json!({"statement": "assemble", "format": {"template": "brief"},
        "from": [{"recall": {"statement": "recall"}}]});
    let answer = run(&memory, &assembly.to_string()).unwrap();
    assert_eq!(answer["formatted_context"]["format"], "template");
    let inline = json!({"statement": "assemble", "from": [{"recall": {"statement": "recall"}}],
        "format": {"template": [{"element": "{{grain.contents}}"}]}});
    let error =
        execute(&memory, &inline.to_string(), &options(), &WriteQuotas::default()).unwrap_err();
    assert_eq!((error.code(), error.pointer()), ("CAL-E090", Some("/format/template/0/element")));
}

#[test]
fn a_definition_is_prepared_with_what_it_would_keep() {
    let memory = Fake::at_work();
    for (tier, effect) in [
        (Tier::Read, "keeps a template for the session"),
        (Tier::Evolve, "keeps a template for the namespace"),
    ] {
        let prepared = prepare(&memory, BRIEF, &ExecuteOptions { tier, ..options() }).unwrap();
        assert_eq!(prepared.statement_type, StatementType::DefineTemplate);
        assert_eq!(prepared.plan.side_effects, [effect]);
        assert_eq!(prepared.tier, u8::from(tier == Tier::Evolve));
    }
    assert!(memory.templates.lock().unwrap().is_empty());
}

#[test]
fn lets_before_a_definition_are_held_to_their_rules() {
    let memory = Fake::at_work();
    let bound = format!("LET $x = RECALL beliefs; {BRIEF}");
    run(&memory, &bound).unwrap();
    let wrong = format!("LET $x = RECALL WHERE subjct = 1; {BRIEF}");
    assert_eq!(run(&memory, &wrong), Err("CAL-E004 at subjct".to_owned()));
}

#[test]
fn what_is_assembled_by_a_template_is_explained_as_ever() {
    let memory = two_beliefs();
    let plan = run(&memory, "EXPLAIN ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {x} }");
    let statement = plan.unwrap()["plan"]["statement"].clone();
    assert_eq!(statement, "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {\nx\n} }");
    let unknown = run(&memory, "EXPLAIN ASSEMBLE FROM (RECALL) FORMAT TEMPLATE other");
    assert_eq!(unknown, Err("CAL-E085 at other".to_owned()));
}
