//! LangGraph: rows of the table `store`, in three forms.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, context, ms};

const ROWS: [&str; 3] = [
    r#"{"prefix": "memories.ann", "key": "k1", "value": {"kind": "Memory", "content": {"content": "Ann sails"}}, "created_at": "2026-01-01 10:00:00+00", "updated_at": "2026-01-02 10:00:00+00", "expires_at": "2027-01-01T00:00:00Z", "ttl_minutes": 60}"#,
    r#"{"prefix": "memories.bob", "key": "k1", "value": {"text": "Bob rows", "boat": "red"}, "created_at": "2026-01-01T10:00:00Z"}"#,
    r#"{"prefix": "profiles", "key": "ann", "value": {"age": 7, "tags": ["a"], "big": 18446744073709551615}, "created_at": "2026-01-01T10:00:00Z"}"#,
];

#[test]
fn rows_become_beliefs_under_their_namespace() {
    let mut kit = Kit::new();
    let path = kit.file("store.jsonl", ROWS.join("\n"));
    let report = kit.run_thrice(Format::LangGraph, &path);
    assert_eq!((report.added, report.left_out), (3, 0));
    let sails = &kit.search("sails")[0];
    assert_eq!(sails.text("namespace"), Some("memories:ann"));
    assert_eq!(
        (sails.text("subject"), sails.text("object")),
        (Some("memories:ann"), Some("Ann sails"))
    );
    assert_eq!(sails.int("created_at"), Some(ms("2026-01-01T10:00:00Z")));
    assert_eq!(sails.int("valid_to"), Some(ms("2027-01-01T00:00:00Z")));
    assert_eq!(context(sails, "migrate:rest"), Some(r#"{"key":"k1","value":{"kind":"Memory"}}"#));
    let profile = &kit.by("namespace", "profiles")[0];
    let object = profile.get("object").unwrap().as_map().unwrap();
    assert_eq!(object["age"].as_i64(), Some(7));
    assert_eq!(object["big"], grainstore::format::Value::from(u64::MAX));
}

#[test]
fn the_form_of_the_dump_makes_no_difference() {
    let kit = Kit::new();
    kit.run(Format::LangGraph, &kit.file("store.jsonl", ROWS.join("\n")));
    let mut table = String::from("prefix,key,value,created_at,updated_at,expires_at,ttl_minutes\n");
    for row in ROWS {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let names = ["prefix", "key", "value", "created_at", "updated_at", "expires_at"];
        let field = |name: &str| match &row[name] {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text.clone(),
            value => format!("\"{}\"", value.to_string().replace('"', "\"\"")),
        };
        table.push_str(&names.map(field).join(","));
        table.push_str(",\n");
    }
    let list = format!("[{}]", ROWS.join(","));
    for (name, text) in
        [("s.csv", table), ("s.json", list.clone()), ("o.json", format!("{{\"store\": {list}}}"))]
    {
        let report = kit.run(Format::LangGraph, &kit.file(name, text));
        assert_eq!(
            (report.added, report.changed, report.unchanged),
            (0, 0, 3),
            "{name}: {report:?}"
        );
    }
}

#[test]
fn a_row_that_is_none_is_left_out() {
    let mut kit = Kit::new();
    let rows = [
        r#"{"prefix": "a..b", "key": "k", "value": {}, "created_at": "2026-01-01T10:00:00Z"}"#,
        r#"{"prefix": "a", "value": {}, "created_at": "2026-01-01T10:00:00Z"}"#,
        r#"{"prefix": "a", "key": "k", "created_at": "2026-01-01T10:00:00Z"}"#,
        r#"{"prefix": "a", "key": "k", "value": 7, "created_at": "2026-01-01T10:00:00Z"}"#,
        r#"{"prefix": "a", "key": "k", "value": "{", "created_at": "2026-01-01T10:00:00Z"}"#,
        r#"{"prefix": "agent:identity", "key": "k", "value": {"text": "x"}, "created_at": "2026-01-01T10:00:00Z"}"#,
    ];
    let report = kit.run_thrice(Format::LangGraph, &kit.file("s.jsonl", rows.join("\n")));
    assert_eq!((report.added, report.left_out), (1, 5));
    // A label is one part of a namespace, whatever is in it.
    assert_eq!(kit.by("namespace", "agent_identity").len(), 1);
}
