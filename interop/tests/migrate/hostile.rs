//! Inputs that nobody should trust: another format, links, bombs, archives that lie, JSON of any kind.

use std::io::Write;

use grainstore_interop::archive::Limits;
use grainstore_interop::migrate::Format;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::{Kit, Told};

/// An export of each format, and the format.
const EXPORTS: [(Format, &str, &str); 7] = [
    (Format::Mem0, "a.json", r#"{"results": [{"id": "1", "memory": "x"}]}"#),
    (
        Format::ServerMemory,
        "a.jsonl",
        r#"{"type":"entity","name":"a","entityType":"b","observations":[]}"#,
    ),
    (Format::Letta, "a.af", r#"{"agents": [], "blocks": []}"#),
    (Format::LangGraph, "a.csv", "prefix,key,value\na,b,\"{}\""),
    (Format::Claude, "conversations.json", r#"[{"uuid": "a", "chat_messages": []}]"#),
    (Format::ChatGpt, "conversations.json", r#"[{"id": "a", "mapping": {}}]"#),
    (Format::BasicMemory, "a.md", "---\npermalink: a\n---\nx"),
];

#[test]
fn a_file_of_another_format_is_told_by_what_it_looks_like() {
    let kit = Kit::new();
    for (format, name, text) in EXPORTS {
        let path = kit.file(name, text);
        assert!(kit.try_run(format, &path).is_ok(), "{format}");
        for (other, _, _) in EXPORTS.iter().filter(|(other, _, _)| *other != format) {
            let refused = kit.try_run(*other, &path).unwrap_err();
            assert_eq!(refused.code(), "ERR_SCHEMA");
            assert!(refused.to_string().contains(&format!("`{format}`")), "{other}: {refused}");
        }
    }
}

#[test]
fn a_missing_file_and_a_second_file_too_many_are_refused() {
    let mut kit = Kit::new();
    let refused = kit.try_run(Format::Mem0, &kit.path("none.json")).unwrap_err();
    assert_eq!(refused.code(), "ERR_NOT_FOUND");
    let path = kit.file("a.jsonl", "");
    kit.options.beside = Some(path.clone());
    assert_eq!(kit.try_run(Format::ServerMemory, &path).unwrap_err().code(), "ERR_SCHEMA");
}

#[cfg(unix)]
#[test]
fn links_of_a_folder_are_told_and_not_followed() {
    let mut kit = Kit::new();
    kit.file("secret/secret.md", "the key is under the mat");
    kit.file("notes/a.md", "---\npermalink: a\n---\nfine");
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(kit.path(from), kit.path(to)).unwrap();
    };
    link("secret/secret.md", "notes/file.md");
    link("secret", "notes/folder");
    link("notes", "notes/circle");
    link("nowhere", "notes/dangling.md");
    let path = kit.path("notes");
    let report = kit.run_thrice(Format::BasicMemory, &path);
    assert_eq!((report.added, report.left_out), (1, 4));
    assert_eq!(report.reasons(), ["it is a link, and links are not followed"; 4]);
    assert!(kit.search("mat").is_empty());
}

#[test]
fn what_systems_leave_beside_files_is_not_read() {
    let kit = Kit::new();
    let export = r#"[{"id": "1", "memory": "tea", "created_at": "2026-01-01T00:00:00Z"}]"#;
    let files =
        [("all.json", export), ("__MACOSX/._all.json", "\0"), (".DS_Store", "x"), ("a.png", "x")];
    let report = kit.run(Format::Mem0, &kit.zip("all.zip", &files));
    assert_eq!((report.added, report.left_out), (1, 3));
    assert_eq!(report.left_out_why["a system left it beside the files"], 2);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_file() {
    let kit = Kit::new();
    kit.file("notes/a.md", "---\npermalink: a\n---\nfine");
    let made = std::process::Command::new("mkfifo").arg(kit.path("notes/pipe.md")).status();
    if made.is_ok_and(|status| status.success()) {
        let report = kit.run(Format::BasicMemory, &kit.path("notes"));
        assert_eq!(report.reasons(), ["it is no file"]);
        let refused = kit.try_run(Format::Mem0, &kit.path("notes/pipe.md")).unwrap_err();
        assert_eq!(refused.code(), "ERR_CORRUPT");
    }
}

#[test]
fn an_archive_that_leads_elsewhere_or_breaks_off_is_refused_by_entry() {
    let kit = Kit::new();
    let good =
        kit.zip("good.zip", &[("conversations.json", r#"[{"uuid": "a", "chat_messages": []}]"#)]);
    let bytes = std::fs::read(&good).unwrap();
    for (bytes, code) in [
        (replaced(&bytes, b"conversations.json", b"../versations.json"), "ERR_CORRUPT"),
        (bytes[..bytes.len() - 10].to_vec(), "ERR_CORRUPT"),
    ] {
        let refused = kit.try_run(Format::Claude, &kit.file("bad.zip", bytes)).unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.entry().is_some());
    }
    assert_eq!(kit.grains(), 0);
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut left = bytes;
    while let Some((first, rest)) = left.split_first() {
        match left.strip_prefix(from) {
            Some(rest) => {
                out.extend_from_slice(to);
                left = rest;
            }
            None => {
                out.push(*first);
                left = rest;
            }
        }
    }
    out
}

#[test]
fn what_is_beyond_the_limits_is_refused() {
    let mut kit = Kit::new();
    kit.file("notes/a.md", "---\npermalink: a\n---\nfine");
    kit.file("notes/b.md", "---\npermalink: b\n---\nfine");
    for limits in [
        Limits { entries: 1, ..Limits::default() },
        Limits { inflated_bytes: 40, ..Limits::default() },
    ] {
        kit.options.limits = limits;
        let refused = kit.try_run(Format::BasicMemory, &kit.path("notes")).unwrap_err();
        assert_eq!(refused.code(), "ERR_LIMIT");
    }
    let bomb = kit.zip("bomb.zip", &[("conversations.json", &" ".repeat(8 << 20))]);
    kit.options.limits = Limits::default();
    assert_eq!(kit.try_run(Format::Claude, &bomb).unwrap_err().code(), "ERR_LIMIT");
}

#[test]
fn a_record_that_takes_too_much_memory_is_passed_over_and_the_others_go_on() {
    let kit = Kit::new();
    let mut file = std::fs::File::create(kit.path("conversations.json")).unwrap();
    let small = r#"{"uuid": "a", "chat_messages": [{"uuid": "b", "sender": "human", "text": "tea", "created_at": "2026-01-01T00:00:00Z"}]}"#;
    write!(file, "[{{\"uuid\": \"x\", \"chat_messages\": [").unwrap();
    for _ in 0..200_000 {
        write!(file, "{{\"a\":0}},").unwrap();
    }
    write!(file, "0]}},{small}]").unwrap();
    drop(file);
    let report = kit.run(Format::Claude, &kit.path("conversations.json"));
    assert_eq!((report.added, report.left_out), (1, 1));
    assert_eq!(report.left_out_first[0].code, Some("ERR_LIMIT"));
    assert_eq!(report.left_out_first[0].place, "conversations.json: element 1");
    // One text that is too long is not read to its end.
    let mut file = std::fs::File::create(kit.path("conversations.json")).unwrap();
    write!(file, "[\"{}", "x".repeat(20 << 20)).unwrap();
    drop(file);
    let refused = kit.try_run(Format::Claude, &kit.path("conversations.json")).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_LIMIT", Some("conversations.json")));
}

#[test]
fn a_message_whose_other_fields_are_too_large_comes_without_them() {
    let kit = Kit::new();
    let file = format!(
        r#"[{{"uuid": "a", "chat_messages": [{{"uuid": "b", "sender": "human", "text": "tea", "created_at": "2026-01-01T00:00:00Z", "files": ["{}"]}},
          {{"uuid": "c", "sender": "human", "text": "{}", "created_at": "2026-01-01T00:00:00Z"}}]}}]"#,
        "x".repeat(2 << 20),
        "y".repeat(2 << 20),
    );
    let report = kit.run(Format::Claude, &kit.file("conversations.json", file));
    assert_eq!((report.added, report.left_out, report.notes.len()), (1, 1, 1));
    assert_eq!(report.left_out_first[0].code, Some("ERR_TOO_LARGE"));
}

#[test]
fn nothing_is_written_when_the_end_of_a_file_is_damaged() {
    let kit = Kit::new();
    let good = r#"{"id": "1", "memory": "x", "created_at": "2026-01-01T00:00:00Z"}"#;
    for text in [
        format!("[{good}, {{"),
        format!("[{good}] x"),
        format!("[{good}, 1e999]"),
        format!("[{good}, \"\\ud800\"]"),
        format!("{{\"results\": [{good}], \"results\": []}}"),
    ] {
        let refused = kit.try_run(Format::Mem0, &kit.file("a.json", &text)).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), ("ERR_CORRUPT", Some("a.json")), "{text}");
    }
    let bad = [b"[\"\xff\", ".as_slice(), good.as_bytes(), b"]"].concat();
    assert_eq!(
        kit.try_run(Format::Mem0, &kit.file("a.json", bad)).unwrap_err().code(),
        "ERR_CORRUPT"
    );
    assert_eq!(kit.grains(), 0);
}

#[test]
fn a_cancelled_run_ends_and_the_next_one_takes_the_rest() {
    let kit = Kit::new();
    let rows: Vec<_> = (0..2500)
        .map(
            |at| json!({"id": at.to_string(), "memory": "x", "created_at": "2026-01-01T00:00:00Z"}),
        )
        .collect();
    let path = kit.file("a.json", Value::from(rows).to_string());
    let monitor = grainstore_interop::Monitor::default();
    let cancel = monitor.cancel.clone();
    let progress = move |done: u64, of: u64| {
        if done == 1500 {
            cancel.cancel();
        }
        assert!(done <= of);
    };
    let monitor = grainstore_interop::Monitor { progress: Some(&progress), cancel: monitor.cancel };
    let run = |monitor: &grainstore_interop::Monitor<'_>| {
        grainstore_interop::migrate::run(&kit.session, Format::Mem0, &path, &kit.options, monitor)
    };
    assert_eq!(run(&monitor).unwrap_err().code(), "ERR_TIMEOUT");
    assert_eq!(kit.grains(), 1000);
    let rest = run(&grainstore_interop::Monitor::default()).unwrap();
    assert_eq!((rest.added, rest.unchanged), (1500, 1000));
}

/// JSON of the names that readers look for, in any arrangement.
fn documents() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "id",
        "uuid",
        "memory",
        "results",
        "content",
        "parts",
        "mapping",
        "message",
        "parent",
        "created_at",
        "create_time",
        "chat_messages",
        "text",
        "agents",
        "blocks",
        "messages",
        "type",
        "name",
        "entityType",
        "observations",
        "from",
        "to",
        "relationType",
        "prefix",
        "key",
        "value",
        "label",
        "core_memory",
        "skills",
        "docs",
        "project_memories",
        "tool_calls",
        "author",
        "role",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "entity",
            "relation",
            "2026-01-01T00:00:00Z",
            "a",
            "",
            "\u{feff}",
            "e\u{301}"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_text_is_read_or_refused_by_every_reader(
        text in r#"(---\n)?([a-z]{1,4}[:,] ?|["\[\]{}#&*-]|- |\[\[|\]\]|\n|---\n|[a-zé\u{feff}\u{0}]){0,60}"#,
    ) {
        let kit = Kit::new();
        for name in ["notes/a.md", "a.csv", "a.json", "conversations.json"] {
            let path = kit.file(name, &text);
            let path = if name.starts_with("notes") { kit.path("notes") } else { path };
            for format in Format::ALL {
                if let Ok(report) = kit.try_run(*format, &path) {
                    let again = kit.run(*format, &path);
                    prop_assert_eq!((again.added, again.changed), (0, 0), "{} {:?}", format, report);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_json_is_read_or_refused_by_every_reader(
        document in documents(),
        many in prop::collection::vec(documents(), 0..4),
    ) {
        let mut kit = Kit::new();
        let mapping = r#"{"kind": "fact", "fields": {"id": "id", "subject": "name", "text": "/content/parts/0", "created_at": "created_at"}}"#;
        let mapping = kit.file("map.json", mapping);
        let lines: Vec<_> = many.iter().map(Value::to_string).collect();
        let texts = [document.to_string(), Value::from(many).to_string(), lines.join("\n")];
        for text in texts {
            let path = kit.file("conversations.json", text);
            for format in Format::ALL {
                let takes_second = *format == Format::Jsonl;
                kit.options.beside = takes_second.then(|| mapping.clone());
                if let Ok(report) = kit.try_run(*format, &path) {
                    let again = kit.run(*format, &path);
                    prop_assert_eq!((again.added, again.changed), (0, 0), "{} {:?}", format, report);
                }
            }
        }
    }
}
