//! What a person gives by mistake: another file, an empty one, none. Each is refused in words that help.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told};

const MEMORY: &str = r#"{"id": "1", "memory": "tea", "created_at": "2026-01-01T00:00:00Z"}"#;

#[test]
fn the_history_in_the_place_of_the_memories_is_refused_by_what_it_is() {
    let kit = Kit::new();
    let row = r#"{"id": "h1", "memory_id": "m1", "new_memory": "tea", "event": "ADD", "created_at": "2026-01-05T00:00:00Z"}"#;
    let table = "id,memory_id,new_memory,event\nh1,m1,tea,ADD\n";
    for (name, text) in [("h.jsonl", row), ("h.json", &format!("[{row}]")), ("h.csv", table)] {
        let refused = kit.try_run(Format::Mem0, &kit.file(name, text)).unwrap_err();
        assert_eq!(refused.code(), "ERR_SCHEMA", "{name}");
        let told = format!("{refused} {:?}", refused.hint());
        assert!(told.contains("history") && told.contains("--with"), "{told}");
    }
}

#[test]
fn what_is_no_history_is_refused_before_anything_is_written() {
    let mut kit = Kit::new();
    let memories = kit.file("all.json", MEMORY);
    for text in [MEMORY, "id,memory\n1,tea\n", r#"[{"a": 1}, 7]"#] {
        kit.options.beside = Some(kit.file("h.json", text));
        let refused = kit.try_run(Format::Mem0, &memories).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), ("ERR_SCHEMA", Some("h.json")), "{text}");
        let told = format!("{refused} {}", refused.hint());
        assert!(told.contains("memory_id") && told.contains("sqlite3 -json"), "{told}");
        assert_eq!(kit.grains(), 0);
    }
    // A table without rows is printed as nothing.
    for text in ["", "[]", "\n"] {
        kit.options.beside = Some(kit.file("h.json", text));
        assert_eq!(kit.run(Format::Mem0, &memories).left_out, 0, "{text:?}");
    }
}

#[test]
fn a_database_is_told_by_its_name_and_how_it_is_written_as_json() {
    let mut kit = Kit::new();
    let database = kit.file("h.db", [b"SQLite format 3\0\x10\0".as_slice(), &[0; 100]].concat());
    let memories = kit.file("all.json", MEMORY);
    let check = |refused: grainstore_interop::Error, table: &str| {
        assert_eq!((refused.code(), refused.entry()), ("ERR_SCHEMA", Some("h.db")));
        assert!(refused.to_string().contains("SQLite"), "{refused}");
        let hint = refused.hint();
        assert!(hint.contains("sqlite3 -json") && hint.contains(table), "{hint}");
    };
    kit.options.beside = Some(database.clone());
    check(kit.try_run(Format::Mem0, &memories).unwrap_err(), "FROM history");
    assert_eq!(kit.grains(), 0);
    kit.options.beside = None;
    for (format, table) in [
        (Format::Mem0, "FROM history"),
        (Format::LangGraph, "FROM store"),
        (Format::Jsonl, "FROM TABLE"),
        (Format::Letta, "FROM TABLE"),
        (Format::ServerMemory, "FROM TABLE"),
    ] {
        check(kit.try_run(format, &database).unwrap_err(), table);
    }
}

#[test]
fn an_empty_file_breaks_off() {
    let kit = Kit::new();
    for text in ["", " \n"] {
        let refused = kit.try_run(Format::Mem0, &kit.file("all.json", text)).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), ("ERR_CORRUPT", Some("all.json")));
    }
    assert_eq!(kit.run(Format::Mem0, &kit.file("all.json", r#"{"results": []}"#)).records, 0);
}

#[test]
fn a_document_that_has_nothing_of_a_format_is_refused() {
    let kit = Kit::new();
    let document = r#"{"@context": "x", "identity": {"name": "aria"}, "persona": ["calm"]}"#;
    for text in [document.to_owned(), document.replace(", ", ",\n")] {
        let path = kit.file("aria.json", text);
        let formats = [
            Format::Mem0,
            Format::ServerMemory,
            Format::Letta,
            Format::LangGraph,
            Format::Claude,
            Format::ChatGpt,
        ];
        for format in formats {
            let refused = kit.try_run(format, &path).unwrap_err();
            assert_eq!((refused.code(), refused.entry()), ("ERR_SCHEMA", Some("aria.json")));
            assert!(refused.to_string().contains("not"), "{refused}");
        }
    }
    assert_eq!(kit.run(Format::Mem0, &kit.file("one.json", MEMORY)).added, 1);
}

#[test]
fn a_file_that_is_not_there_is_asked_for_by_its_path() {
    let mut kit = Kit::new();
    let refused = kit.try_run(Format::Mem0, &kit.path("none.json")).unwrap_err();
    assert_eq!(refused.code(), "ERR_NOT_FOUND");
    assert!(refused.hint().contains("path") && !refused.hint().contains("namespace"));
    kit.options.beside = Some(kit.path("none.json"));
    let refused = kit.try_run(Format::Mem0, &kit.file("all.json", MEMORY)).unwrap_err();
    assert_eq!(refused.code(), "ERR_NOT_FOUND");
    assert!(!refused.hint().contains("namespace"));
}

#[test]
fn what_a_record_lacks_is_said_as_lacking() {
    let mut kit = Kit::new();
    let rows = r#"[{"event": "ADD", "new_memory": "tea"}, {"memory_id": "1", "event": "NONE"}]"#;
    kit.options.beside = Some(kit.file("h.json", rows));
    let report = kit.run(Format::Mem0, &kit.file("all.json", MEMORY));
    let expected = ["the row of the history has no memory_id", "an event that changed nothing"];
    assert_eq!(report.reasons(), expected);
    kit.options.beside = Some(kit.file("passages.json", r#"[{"text": "tea"}]"#));
    let file =
        r#"{"agent_type": "x", "name": "guide", "core_memory": [{"value": "x"}], "messages": [7]}"#;
    let report = kit.run(Format::Letta, &kit.file("a.af", file));
    let expected = ["the block has no label", "the message is no object", "the passage has no id"];
    assert_eq!(report.reasons(), expected);
}
