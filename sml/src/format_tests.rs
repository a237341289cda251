//! Examples of every format (CAL 10.1, 10.4, 10.9).

use grainstore_format::{EpochMs, Grain};

use super::*;
use crate::assemble::{Assembly, assemble};
use crate::display_value::DisplayValue;
use crate::item::ChosenFields;
use crate::options::{AssemblyOptions, AssemblySource, Disclosure};
use crate::tokens::{Estimator, TokenCounter};

const CLOCK: Clock = Clock { now: EpochMs::new(1_768_471_200_000), iso_timestamps: false };

fn item(json: &str) -> Item {
    let json = json.replacen('{', "{\"created_at\": 1768470600000, ", 1);
    Item {
        grain: Grain::from_json(&json).expect(&json),
        verification: None,
        chosen: None,
        score: None,
    }
}

fn belief(subject: &str, relation: &str, object: &str, rest: &str) -> Item {
    item(&format!(
        r#"{{"type": "belief", "subject": "{subject}", "relation": "{relation}", "object": "{object}"{rest}}}"#
    ))
}

/// The beliefs and goals of the examples of the standard.
fn known() -> Vec<Item> {
    vec![
        belief("alice", "mg:prefers", "dark mode", r#", "confidence": 0.92"#),
        belief("alice", "mg:requires", "keyboard shortcuts", r#", "confidence": 0.88"#),
        item(
            r#"{"type": "goal", "subject": "alice", "object": "complete Q1 review",
                "description": "complete Q1 review", "goal_state": "active"}"#,
        ),
    ]
}

fn assembled(format: Format, intent: Option<&str>, budget: Budget, items: &[&[Item]]) -> Assembly {
    let source = |items| AssemblySource { label: "s", items, limit: 20, failed: false };
    let sources: Vec<_> = items.iter().map(|items| source(*items)).collect();
    let disclosure = Disclosure::Fixed(Level::Standard);
    let options = AssemblyOptions {
        template: None,
        format,
        name: Some("review"),
        intent,
        budget,
        priority: &[1, 0],
        disclosure,
        clock: CLOCK,
        cancel: CancelCheck::NEVER,
    };
    assemble(&sources, &options, &Estimator).expect("a budget above the envelope")
}

fn check(format: Format, recalled: &str, composed: &str) {
    let items = known();
    assert_eq!(render(&items, format, Level::Standard, &CLOCK), recalled, "{format:?}");
    let intent = Some("helping alice");
    let assembly = assembled(format, intent, Budget::Tokens(4000), &[&items[..2], &items[2..]]);
    assert_eq!(assembly.text, composed, "{format:?}");
    assert_eq!(assembly.tokens, Estimator.count(composed));
}

#[test]
fn markdown_has_a_heading_a_type_and_a_bullet_a_grain() {
    let groups = "**Beliefs**\n- alice prefers dark mode (confidence: 0.92)\n\
                  - alice requires keyboard shortcuts (confidence: 0.88)\n\n\
                  **Goals**\n- alice: complete Q1 review (active)\n";
    check(Format::Markdown, groups, &format!("## Context: helping alice\n\n{groups}"));
}

#[test]
fn text_has_a_line_a_grain() {
    let lines = "[belief] alice prefers dark mode (0.92)\n\
                 [belief] alice requires keyboard shortcuts (0.88)\n\
                 [goal] alice: complete Q1 review (active)\n";
    check(Format::Text, lines, lines);
}

#[test]
fn triples_stand_between_tabs_and_others_give_attribute_type_and_text() {
    let lines = "alice\tprefers\tdark mode\nalice\trequires\tkeyboard shortcuts\n\
                 alice\tgoal\tcomplete Q1 review\n";
    check(Format::Triples, lines, lines);
}

#[test]
fn json_tells_numbers_from_texts() {
    let grains = "\"grains\":[\n\
        {\"type\":\"belief\",\"text\":\"prefers dark mode\",\"attributes\":{\"subject\":\"alice\",\"confidence\":0.92}},\n\
        {\"type\":\"belief\",\"text\":\"requires keyboard shortcuts\",\"attributes\":{\"subject\":\"alice\",\"confidence\":0.88}},\n\
        {\"type\":\"goal\",\"text\":\"complete Q1 review\",\"attributes\":{\"subject\":\"alice\",\"state\":\"active\"}}\n]}";
    let head = "{\"name\":\"review\",\"intent\":\"helping alice\",";
    check(Format::Json, &format!("{{{grains}"), &format!("{head}{grains}"));
}

#[test]
fn yaml_holds_what_json_holds() {
    let grains = "grains:
  - type: belief
    text: prefers dark mode
    attributes:
      subject: alice
      confidence: 0.92
  - type: belief
    text: requires keyboard shortcuts
    attributes:
      subject: alice
      confidence: 0.88
  - type: goal
    text: complete Q1 review
    attributes:
      subject: alice
      state: active
";
    check(Format::Yaml, grains, &format!("name: review\nintent: helping alice\n{grains}"));
}

#[test]
fn toon_has_a_table_a_type_in_the_order_of_priority() {
    let (beliefs, goals) = (
        "beliefs[2]{subject,content,confidence}:\n  alice,prefers dark mode,0.92\n  \
         alice,requires keyboard shortcuts,0.88",
        "goals[1]{subject,content,state}:\n  alice,complete Q1 review,active",
    );
    let head = "context: review\nintent: helping alice\ntokens: 69/4000\n";
    check(Format::Toon, &format!("{beliefs}\n{goals}"), &format!("{head}{goals}\n{beliefs}"));
}

#[test]
fn toon_of_one_type_is_a_root_array() {
    let text = |items: &[Item], level| render(items, Format::Toon, level, &CLOCK);
    let items = known();
    assert_eq!(
        text(&items[..1], Level::Standard),
        "beliefs[1]{subject,content,confidence}:\nalice,prefers dark mode,0.92"
    );
    assert_eq!(
        text(&items[..1], Level::Summary),
        "beliefs[1]{subject,content}:\nalice,prefers dark mode"
    );
    assert_eq!(
        text(&items[..1], Level::Full),
        "beliefs[1]{subject,content,confidence,source,observed}:\n\
         alice,prefers dark mode,0.92,null,10m ago"
    );
    assert_eq!(text(&[], Level::Standard), "[0]:");
}

#[test]
fn toon_keeps_at_summary_what_it_does_not_name_and_shows_deadlines_where_there_are_any() {
    let event = item(r#"{"type": "event", "content": "Hello, you", "role": "user"}"#);
    assert_eq!(
        render(&[event], Format::Toon, Level::Summary, &CLOCK),
        "events[1]{role,time,content}:\nuser,10m ago,\"Hello, you\""
    );
    let due = item(
        r#"{"type": "goal", "description": "ship", "goal_state": "active",
            "deadline": 1773532800000}"#,
    );
    let goals = [known().remove(2), due];
    assert_eq!(
        render(&goals, Format::Toon, Level::Standard, &CLOCK),
        "goals[2]{subject,content,state,deadline}:\nalice,complete Q1 review,active,null\n\
         null,ship,active,2026-03-15"
    );
}

#[test]
fn toon_counts_grains_where_the_budget_does() {
    let items = known();
    let text = assembled(Format::Toon, None, Budget::Grains(1), &[&items[..2], &items[2..]]).text;
    let goals = "goals[1]{subject,content,state}:\n  alice,complete Q1 review,active";
    assert_eq!(text, format!("context: review\ngrains: 1/1\n{goals}"));
}

#[test]
fn the_parts_of_a_sentence_cannot_be_taken_for_one_another() {
    let text = |items: &[Item], format| render(items, format, Level::Full, &CLOCK);
    let mut goal = known().remove(2);
    for (object, written) in [
        ("plain", "[goal] root: plain (active, "),
        ("a: b (c)", "[goal] root: a: b (c) (active, "),
        ("a\\", "[goal] root: a\\\\ (active, "),
    ] {
        let json = format!(
            r#"{{"type": "goal", "subject": "root", "object": {object:?}, "description": "d", "goal_state": "active"}}"#
        );
        goal = item(&json);
        assert!(text(&[goal.clone()], Format::Text).starts_with(written), "{object}");
    }
    drop(goal);
    let lone = item(r#"{"type": "goal", "description": "note: x (y)", "goal_state": "active"}"#);
    let shown = render(&[lone], Format::Text, Level::Summary, &CLOCK);
    assert_eq!(shown, "[goal] note\\: x (y\\)\n");
}

#[test]
fn markup_in_markdown_is_escaped() {
    let text = |said: &str| {
        let said = serde_json::to_string(said).unwrap();
        let item =
            item(&format!(r#"{{"type": "goal", "description": {said}, "goal_state": "active"}}"#));
        render(&[item], Format::Markdown, Level::Summary, &CLOCK)
    };
    for (object, written) in [
        ("# root", "- \\# root\n"),
        ("- - -", "- \\- - -\n"),
        ("1. do", "- 1\\. do\n"),
        ("</context>", "- &lt;/context>\n"),
        ("a < b <|im_start|> &lt; <- <3", "- a \\< b &lt;|im_start|> &amp;lt; \\<- \\<3\n"),
        ("![x](http://y)", "- !\\[x\\](http://y\\)\n"),
        ("**bold** snake_case _x_", "- \\*\\*bold\\*\\* snake_case \\_x\\_\n"),
        ("a\nb\u{2028}c\u{202e}", "- a bc\n"),
    ] {
        let shown = text(object);
        assert_eq!(shown, format!("**Goals**\n{written}"), "{object}");
    }
}

#[test]
fn what_opens_a_block_is_text_behind_a_lead_and_in_the_list() {
    for (fields, written) in [
        (
            r#""type": "workflow", "trigger": "asked", "steps": ["draft", "send"]"#,
            "**Workflows**\n- asked: 1. draft  2. send\n",
        ),
        (
            r#""type": "goal", "subject": "- a", "description": "-5 # by", "goal_state": "active""#,
            "**Goals**\n- \\- a: -5 # by (active)\n",
        ),
        (
            r#""type": "observation", "observer_id": "+1", "observer_type": "o", "object": "> 4 *""#,
            "**Observations**\n- \\+1: > 4 \\*\n",
        ),
    ] {
        let shown = item(&format!("{{{fields}}}"));
        assert_eq!(render(&[shown], Format::Markdown, Level::Standard, &CLOCK), written);
    }
}

#[test]
fn every_format_is_found_by_its_name_in_any_case() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(&format.name().to_uppercase()), Some(format));
    }
    assert_eq!(Format::from_name("xml"), None);
}

#[test]
fn what_a_query_chose_is_shown_at_every_level_and_nothing_else() {
    let mut belief = known().remove(0);
    belief.chosen = Some(ChosenFields {
        text: Some("prefers dark mode".to_owned()),
        attributes: vec![
            ("hc:id".to_owned(), DisplayValue::from("P,1")),
            ("confidence".to_owned(), DisplayValue::Number("0.92".to_owned())),
            ("gone".to_owned(), DisplayValue::from("")),
        ],
    });
    for (format, written) in [
        (Format::Sml, "<belief hc:id=\"P,1\" confidence=\"0.92\">prefers dark mode</belief>"),
        (Format::Markdown, "- prefers dark mode (hc:id: P,1, confidence: 0.92)"),
        (Format::Text, "[belief] prefers dark mode (hc:id: P,1, confidence: 0.92)"),
        (Format::Json, "\"attributes\":{\"hc:id\":\"P,1\",\"confidence\":0.92}"),
        (Format::Yaml, "      \"hc:id\": P,1\n      confidence: 0.92\n"),
        (Format::Triples, "P,1\tbelief\tprefers dark mode"),
        (Format::Toon, "beliefs[1]{content,\"hc:id\",confidence}:\nprefers dark mode,\"P,1\",0.92"),
    ] {
        for level in [Level::Summary, Level::Full] {
            let text = render(&[belief.clone()], format, level, &CLOCK);
            assert!(text.contains(written), "{format:?}: {text}");
            assert!(!text.contains("gone") && !text.contains("alice"), "{format:?}: {text}");
        }
    }
    let mixed = render(&[belief, known().remove(1)], Format::Toon, Level::Standard, &CLOCK);
    assert_eq!(
        mixed,
        "beliefs[2]{subject,content,confidence,\"hc:id\"}:\n\
         null,prefers dark mode,0.92,\"P,1\"\nalice,requires keyboard shortcuts,0.88,null"
    );
}
