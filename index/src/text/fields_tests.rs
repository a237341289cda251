//! Tests of the indexed texts of a grain and their weights.

use super::super::test_grains::blob;
use super::*;

/// `field*weight: text` of every text, with `!` if it is shared with neighbours.
fn listed(json: &str, settings: &Settings) -> Vec<String> {
    let blob = blob(json);
    let mut found = Vec::new();
    for_each_text(&GrainRef::new(&blob).unwrap(), settings, &mut |text| {
        let said = if text.is_utterance { "!" } else { "" };
        found.push(format!("{}*{}{said}: {}", text.field, text.weight, text.text));
    });
    found.sort();
    found
}

fn check(json: &str, expected: &[&str]) {
    assert_eq!(listed(json, &Settings::default()), expected, "{json}");
}

#[test]
fn a_belief_is_found_by_its_triple() {
    check(
        r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "dark mode",
            "confidence": 0.9, "namespace": "work", "user_id": "u-1", "structural_tags": ["ui"]}"#,
        &[
            "object*8: dark mode",
            "relation*8: prefers",
            "structural_tags*6: ui",
            "subject*8: alice",
        ],
    );
    check(
        r#"{"type": "belief", "subject": "a", "relation": "lives_at", "confidence": 1.0,
            "object": {"city": "Paris", "no": 7, "parts": [{"street": "Rue X"}]}}"#,
        &["object*8: Paris", "object*8: Rue X", "relation*8: lives_at", "subject*8: a"],
    );
}

#[test]
fn a_turn_lends_what_is_said_in_it() {
    check(
        r#"{"type": "event", "content": "hello", "role": "user", "session_id": "s1"}"#,
        &["content*6!: hello"],
    );
    check(
        r#"{"type": "event", "content": "fall-back", "content_blocks": [
            {"type": "text", "text": "hi"}, {"type": "image", "source": {"data": "AAAA"}},
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "cats"}},
            {"type": "tool_result", "tool_use_id": "t1", "content": "three cats"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "x"}]}]}"#,
        &[
            "content*1: fall-back",
            "content_blocks*2: cats",
            "content_blocks*2: three cats",
            "content_blocks*2: x",
            "content_blocks*4: search",
            "content_blocks*6!: hi",
        ],
    );
}

#[test]
fn plain_text_counts_in_full_where_the_blocks_say_nothing() {
    check(
        r#"{"type": "event", "content": "a picture",
            "content_blocks": [{"type": "image", "source": {"data": "AAAA"}}]}"#,
        &["content*6!: a picture"],
    );
}

#[test]
fn thoughts_are_indexed_where_the_settings_ask_for_it() {
    let reasoning = r#"{"type": "reasoning", "conclusion": "so", "thinking_content": "because"}"#;
    let event = r#"{"type": "event", "content_blocks": [{"type": "thinking", "thinking": "hm"}],
        "content": "x"}"#;
    let asked = Settings { thinking: true, ..Settings::default() };
    check(reasoning, &["conclusion*8: so"]);
    assert_eq!(listed(reasoning, &asked), ["conclusion*8: so", "thinking_content*2: because"]);
    check(event, &["content*6!: x"]);
    assert_eq!(listed(event, &asked), ["content*6!: x", "content_blocks*2: hm"]);
}

#[test]
fn the_output_of_a_tool_counts_less_than_its_name() {
    check(
        r#"{"type": "action", "tool_name": "web_search", "input": {"query": "weather"},
            "content": {"result": "sunny"}, "is_error": false, "error": "late"}"#,
        &["content*2: sunny", "error*4: late", "input*4: weather", "tool_name*8: web_search"],
    );
}

#[test]
fn addresses_among_reasons_are_links_and_no_text() {
    let hash = "ab".repeat(32);
    check(
        &format!(
            r#"{{"type": "reasoning", "premises": ["{hash}", "sha256:{hash}", "rain"],
                "conclusion": "wet"}}"#
        ),
        &["conclusion*8: wet", "premises*4: rain"],
    );
}

#[test]
fn chunks_and_captions_are_found() {
    check(
        r#"{"type": "event", "content": "x",
            "embedding_refs": [{"vector_id": "v", "model": "m", "dimensions": 3, "chunk_text": "c"}],
            "content_refs": [{"uri": "cas://y", "modality": "image",
                "metadata": {"caption": "a dog", "color_space": "sRGB"}}]}"#,
        &["content*6!: x", "content_refs*6: a dog", "embedding_refs*2: c"],
    );
}

#[test]
fn fields_of_profiles_and_fields_nobody_knows_are_asides() {
    check(
        r#"{"type": "event", "content": "x", "hc:diagnosis": "asthma", "mood": ["glad"],
            "model_id": "m-1", "context": {"hc:ward": "north"}}"#,
        &["content*6!: x", "context*2: north", "hc:diagnosis*4: asthma", "mood*4: glad"],
    );
}

#[test]
fn every_field_of_the_table_is_one_of_the_standard_and_stands_there_once() {
    let mut seen = std::collections::HashSet::new();
    for row in &TEXT_FIELDS {
        assert!(fields::FIELDS.iter().any(|known| known.name == row.name), "{}", row.name);
        assert!(seen.insert((row.name, row.grain_type)), "{} twice", row.name);
        assert!((REPEATED_WEIGHT..=TITLE_WEIGHT).contains(&row.weight), "{}", row.name);
    }
}

#[test]
fn the_documentation_lists_every_field_with_its_weight() {
    let text = include_str!("../../../docs/text.md");
    let table = text.split("| Field | On |").nth(1).unwrap().split("\n\n").next().unwrap();
    let documented: Vec<(String, String, String)> = table
        .lines()
        .skip(2)
        .map(|line| {
            let mut cells =
                line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', ""));
            let mut cell = || cells.next().unwrap();
            (cell(), cell(), cell())
        })
        .collect();
    let known: Vec<(String, String, String)> = TEXT_FIELDS
        .iter()
        .map(|row| {
            let on = row.grain_type.map(|on| on.name().to_owned()).unwrap_or_default();
            (row.name.to_owned(), on, row.weight.to_string())
        })
        .collect();
    assert_eq!(documented, known);
}
