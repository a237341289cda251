//! JSON lines by a mapping: a dump of a graph, a table, and mappings that are none.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told, context, ms};

const GRAPH: &str = r#"{"type": "edge", "uuid": "e1", "source": {"name": "Ann"}, "name": "LIVES_IN", "target": {"name": "Basel"}, "fact": "Ann lives in Basel", "group_id": "g", "created_at": "2026-01-01T00:00:00Z", "valid_at": "2025-06-01T00:00:00Z", "invalid_at": "2026-03-01T00:00:00Z", "expired_at": "2026-03-02T00:00:00Z", "episodes": ["p1"]}
{"type": "edge", "uuid": "e2", "source": {"name": "Ann"}, "name": "LIVES_IN", "target": {"name": "Bern"}, "fact": "Ann lives in Bern", "group_id": "g", "created_at": "2026-03-02T00:00:00Z", "valid_at": "2026-03-01T00:00:00Z", "invalid_at": null, "expired_at": null}
{"type": "episode", "uuid": "p1", "content": "I moved to Bern", "group_id": "g", "created_at": "2026-03-02T00:00:00Z", "valid_at": "2026-03-02T00:00:00Z"}
{"type": "community", "uuid": "c1"}
"#;

const MAPPING: &str = r#"{"rules": [
  {"kind": "fact", "when": {"type": "edge"}, "fields": {"id": "uuid", "subject": "/source/name", "relation": "name",
    "object": "/target/name", "namespace": "group_id", "created_at": "created_at", "valid_from": "valid_at",
    "valid_to": "invalid_at", "expired_at": "expired_at", "confidence": {"value": 0.8}}},
  {"kind": "message", "when": {"type": "episode"}, "fields": {"id": "uuid", "text": "content", "session": "group_id",
    "namespace": "group_id", "created_at": "valid_at", "role": {"value": "user"}}}]}"#;

#[test]
fn a_dump_of_a_graph_keeps_when_its_facts_were_so() {
    let mut kit = Kit::new();
    let path = kit.file("graph.jsonl", GRAPH);
    kit.options.beside = Some(kit.file("map.json", MAPPING));
    let report = kit.run_thrice(Format::Jsonl, &path);
    assert_eq!((report.added, report.ended, report.left_out), (3, 1, 1));
    assert_eq!(report.reasons(), ["no rule of the mapping is for it"]);
    assert_eq!(kit.objects("Ann", "LIVES_IN"), ["Bern"]);
    let basel = &kit.all_by("object", "Basel")[0];
    assert_eq!(basel.int("valid_from"), Some(ms("2025-06-01T00:00:00Z")));
    assert_eq!(basel.int("valid_to"), Some(ms("2026-03-01T00:00:00Z")));
    assert_eq!((basel.text("namespace"), basel.number("confidence")), (Some("g"), Some(0.8)));
    assert!(context(basel, "migrate:rest").unwrap().contains("Ann lives in Basel"));
    let said = &kit.by("session_id", "g")[0];
    assert_eq!((said.text("content"), said.text("role")), (Some("I moved to Bern"), Some("user")));
}

#[test]
fn a_record_that_follows_another_takes_its_place() {
    let mut kit = Kit::new();
    let rows = r#"{"id": 1, "who": "ann", "fact": "tea", "at": 1767225600, "replaces": null}
{"id": 2, "who": "ann", "fact": "coffee", "at": 1767312000, "replaces": 1}
{"id": 3, "who": "ann", "fact": "water", "at": 1767398400, "replaces": 99}"#;
    let mapping = r#"{"kind": "memory", "fields": {"id": "id", "text": "fact", "user": "who", "created_at": "at",
        "follows": "replaces", "relation": {"value": "mg:prefers"}}}"#;
    let path = kit.file("rows.jsonl", rows);
    kit.options.beside = Some(kit.file("map.json", mapping));
    let report = kit.run_thrice(Format::Jsonl, &path);
    assert_eq!((report.added, report.notes.len()), (3, 1));
    assert!(report.notes[0].contains("99"), "{:?}", report.notes);
    assert_eq!(kit.objects("ann", "mg:prefers"), ["coffee", "water"]);
    let tea = &kit.all_by("object", "tea")[0];
    assert_eq!(tea.int("created_at"), Some(ms("2026-01-01T00:00:00Z")));
}

#[test]
fn a_record_that_follows_a_locked_one_is_refused() {
    let mut kit = Kit::new();
    let mapping = r#"{"kind": "memory", "fields": {"id": "id", "text": "fact", "subject": {"value": "ann"},
        "created_at": "at", "follows": "replaces", "relation": "how"}}"#;
    kit.options.beside = Some(kit.file("map.json", mapping));
    let first =
        r#"{"id": "1", "fact": "two signatures", "how": "mg:requires", "at": "2026-01-01"}"#;
    kit.run(Format::Jsonl, &kit.file("rows.jsonl", first));
    // A relation that the file names is kept out of those of the standard.
    assert_eq!(kit.objects("ann", "imported:mg:requires"), ["two signatures"]);
    let rule = kit.session.latest("ann", "imported:mg:requires").unwrap().unwrap().address;
    kit.session.hold(&rule, "a case").unwrap();
    let second = r#"{"id": "2", "fact": "nothing", "how": "mg:requires", "at": "2026-02-01", "replaces": "1"}"#;
    let path = kit.file("rows.jsonl", second);
    for dry_run in [true, false] {
        kit.options.dry_run = dry_run;
        let report = kit.run(Format::Jsonl, &path);
        assert_eq!((report.added, report.left_out), (0, 1));
        assert_eq!(report.left_out_first[0].code, Some("ERR_INVALIDATION_DENIED"));
    }
    assert_eq!(kit.objects("ann", "imported:mg:requires"), ["two signatures"]);
}

#[test]
fn threads_that_are_told_in_turns_keep_their_order() {
    let mut kit = Kit::new();
    let mapping = r#"{"kind": "message", "fields": {"id": "id", "text": "id", "session": "chat", "parent": "up", "created_at": "at"}}"#;
    kit.options.beside = Some(kit.file("map.json", mapping));
    let rows: Vec<_> = (0..6).map(|at| {
        let (chat, up) = (at % 2, at - 2);
        format!(r#"{{"id": "m{at}", "chat": "c{chat}", "up": "m{up}", "at": "2026-01-01T00:00:0{at}Z"}}"#)
    }).collect();
    assert_eq!(kit.run(Format::Jsonl, &kit.file("rows.jsonl", rows.join("\n"))).added, 6);
    for chat in ["c0", "c1"] {
        let thread = kit.session.thread_of_session(chat, &Default::default()).unwrap();
        assert_eq!((thread.messages.len(), thread.roots.len(), thread.heads.len()), (3, 1, 1));
    }
}

#[test]
fn procedures_and_threads_can_be_mapped() {
    let mut kit = Kit::new();
    let rows = r#"{"t": "p", "id": "a", "when": "tea is wanted", "steps": ["boil", "wait"], "ms": 1767225600000}
{"t": "m", "id": "b", "body": "hello", "chat": "c", "ms": 1767225600000}
{"t": "m", "id": "d", "body": "hello you", "chat": "c", "up": "b", "ms": 1767225601000}
{"t": "m", "id": "e", "chat": "c", "ms": 1}
{"t": "m", "id": "f", "body": "x", "ms": "never"}"#;
    let mapping = r#"{"rules": [
      {"kind": "procedure", "when": {"t": "p"}, "numeric_dates": "milliseconds",
       "fields": {"id": "id", "trigger": "when", "steps": "steps", "created_at": "ms"}},
      {"kind": "message", "when": {"t": "m"}, "numeric_dates": "milliseconds",
       "fields": {"id": "id", "text": "body", "session": "chat", "parent": "up", "created_at": "ms"}}]}"#;
    let path = kit.file("rows.jsonl", rows);
    kit.options.beside = Some(kit.file("map.json", mapping));
    let report = kit.run_thrice(Format::Jsonl, &path);
    assert_eq!((report.added, report.left_out), (3, 2));
    let thread = kit.session.thread_of_session("c", &Default::default()).unwrap();
    assert_eq!((thread.messages.len(), thread.roots.len()), (2, 1));
    assert_eq!(kit.search("boil").len(), 1);
}

#[test]
fn a_mapping_that_is_none_is_refused_before_anything_is_read() {
    let mut kit = Kit::new();
    let path = kit.file("rows.jsonl", "{}");
    assert_eq!(kit.try_run(Format::Jsonl, &path).unwrap_err().code(), "ERR_SCHEMA");
    for (mapping, code) in [
        ("{", "ERR_CORRUPT"),
        ("[]", "ERR_SCHEMA"),
        (r#"{"rules": 7}"#, "ERR_SCHEMA"),
        (r#"{"kind": "fact", "fields": {"text": "a"}}"#, "ERR_SCHEMA"),
        (r#"{"kind": "thing", "fields": {"id": "a"}}"#, "ERR_SCHEMA"),
        (r#"{"kind": "fact", "fields": {"id": "a", "colour": "b"}}"#, "ERR_SCHEMA"),
    ] {
        kit.options.beside = Some(kit.file("map.json", mapping));
        let refused = kit.try_run(Format::Jsonl, &path).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), (code, Some("map.json")), "{mapping}");
    }
}
