//! Dumps that come in the wrong order: an older one takes nothing from what a newer one told.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told};

const OLDER: &str = "it is older than what is here";

/// A dump of mem0 with one memory.
fn dump(text: &str, updated_at: &str) -> String {
    format!(
        r#"{{"results": [{{"id": "m1", "memory": "{text}", "user_id": "ann",
            "created_at": "2025-01-05T00:00:00Z", "updated_at": {updated_at}}}]}}"#
    )
}

#[test]
fn an_older_dump_takes_nothing_from_a_newer_one_unless_it_is_asked_for() {
    let mut kit = Kit::new();
    let newer = kit.file("newer.json", dump("Ann likes green tea", "\"2025-06-01T00:00:00Z\""));
    let older = kit.file("older.json", dump("Ann likes coffee", "null"));
    kit.run(Format::Mem0, &newer);
    let report = kit.run_thrice(Format::Mem0, &older);
    assert_eq!((report.added, report.changed, report.left_out), (0, 0, 1));
    assert_eq!((report.reasons(), report.left_out_why[OLDER]), (vec![OLDER], 1));
    assert_eq!(report.left_out_first[0].code, None);
    assert_eq!(kit.objects("ann", "mg:knows"), ["Ann likes green tea"]);
    kit.options.allow_older = true;
    assert_eq!(kit.run_thrice(Format::Mem0, &older).changed, 1);
    assert_eq!(kit.objects("ann", "mg:knows"), ["Ann likes coffee"]);
    // What is newer than what is here comes again.
    kit.options.allow_older = false;
    assert_eq!(kit.run(Format::Mem0, &newer).changed, 1);
    assert_eq!(kit.objects("ann", "mg:knows"), ["Ann likes green tea"]);
}

#[test]
fn a_change_of_the_same_date_is_a_change() {
    let kit = Kit::new();
    kit.run(Format::Mem0, &kit.file("a.json", dump("Ann likes tea", "null")));
    let report = kit.run(Format::Mem0, &kit.file("b.json", dump("Ann likes coffee", "null")));
    assert_eq!((report.changed, report.left_out), (1, 0));
    // A date that no grain can have is none.
    let far = kit.file("c.json", dump("Ann likes milk", "\"9000-01-01T00:00:00Z\""));
    assert_eq!(kit.run(Format::Mem0, &far).changed, 1);
    let report = kit.run(Format::Mem0, &kit.file("d.json", dump("Ann likes tea", "null")));
    assert_eq!((report.changed, report.left_out), (1, 0));
}

#[test]
fn a_history_that_ends_earlier_takes_nothing_back() {
    let rows = [
        r#"{"id": "h1", "memory_id": "m1", "new_memory": "tea", "event": "ADD", "created_at": "2025-01-05T00:00:00Z"}"#,
        r#"{"id": "h2", "memory_id": "m1", "old_memory": "tea", "new_memory": "green tea", "event": "UPDATE", "created_at": "2025-01-05T00:00:00Z", "updated_at": "2025-06-01T00:00:00Z"}"#,
        r#"{"id": "h3", "memory_id": "m1", "old_memory": "green tea", "event": "DELETE", "created_at": "2025-01-05T00:00:00Z", "updated_at": "2025-07-01T00:00:00Z"}"#,
    ];
    let mut kit = Kit::new();
    kit.options.beside = Some(kit.file("long.jsonl", rows[..2].join("\n")));
    let path = kit.file("a.json", dump("green tea", "\"2025-06-01T00:00:00Z\""));
    kit.run(Format::Mem0, &path);
    kit.options.beside = Some(kit.file("short.jsonl", rows[0]));
    let report = kit.run_thrice(Format::Mem0, &kit.file("b.json", dump("tea", "null")));
    assert_eq!((report.changed, report.reasons()), (0, vec![OLDER]));
    assert_eq!(kit.objects("ann", "mg:knows"), ["green tea"]);
}

#[test]
fn what_was_deleted_later_is_ended_though_its_text_is_older() {
    let row = |at: &str| {
        format!(
            r#"{{"id": "h1", "memory_id": "m1", "new_memory": "tea", "event": "ADD", "created_at": "2025-01-05T00:00:00Z"}}
{{"id": "h3", "memory_id": "m1", "old_memory": "tea", "event": "DELETE", "created_at": {at}}}"#
        )
    };
    for (at, ended) in
        [("null", 1), ("\"2025-07-01T00:00:00Z\"", 1), ("\"2025-02-01T00:00:00Z\"", 0)]
    {
        let mut kit = Kit::new();
        let path = kit.file("a.json", dump("green tea", "\"2025-06-01T00:00:00Z\""));
        kit.run(Format::Mem0, &path);
        kit.options.beside = Some(kit.file("h.jsonl", row(at)));
        let path = kit.file("b.json", r#"{"results": []}"#);
        let report = kit.run_thrice(Format::Mem0, &path);
        assert_eq!((report.changed, report.ended, report.left_out), (0, ended, 1 - ended), "{at}");
        assert_eq!(kit.search("tea").len() as u64, 1 - ended);
        let all = kit.all_by("object", "green tea");
        assert_eq!(all.len(), 1);
    }
}

#[test]
fn an_older_agent_file_takes_neither_blocks_nor_prompts_back() {
    let file = |prompt: &str, block: &str, at: &str| {
        format!(
            r#"{{"agents": [{{"id": "agent-0", "name": "guide", "agent_type": "x", "system": "{prompt}",
                "block_ids": ["block-0"], "messages": []}}], "created_at": "{at}",
                "blocks": [{{"id": "block-0", "label": "human", "value": "{block}"}}]}}"#
        )
    };
    let mut kit = Kit::new();
    let newer = file("Guide well.", "Ann is in Bern.", "2025-06-01T00:00:00Z");
    kit.run(Format::Letta, &kit.file("newer.af", newer));
    let older = kit.file("older.af", file("Guide.", "Ann is in Basel.", "2025-01-05T00:00:00Z"));
    let report = kit.run_thrice(Format::Letta, &older);
    assert_eq!((report.changed, report.reasons()), (0, vec![OLDER; 2]));
    let states = kit.by("subject", "guide");
    let told = format!("{states:?}");
    assert!(told.contains("Bern") && told.contains("Guide well.") && !told.contains("Basel"));
    kit.options.namespace = Some("other".into());
    assert_eq!(kit.run(Format::Letta, &older).added, 2);
}

#[test]
fn an_older_export_of_an_account_takes_no_title_back() {
    let claude = |title: &str, at: &str| {
        format!(
            r#"[{{"uuid": "c1", "name": "{title}", "created_at": "2025-01-01T00:00:00Z",
                "updated_at": "{at}", "chat_messages": []}}]"#
        )
    };
    let chatgpt = |title: &str, at: &str| {
        let at = grainstore::format::parse_datetime(at).unwrap().get() / 1000;
        format!(
            r#"[{{"id": "c1", "title": "{title}", "create_time": 1735689600, "update_time": {at},
                "mapping": {{}}}}]"#
        )
    };
    type Export<'e> = &'e dyn Fn(&str, &str) -> String;
    let exports: [(Format, Export<'_>); 2] =
        [(Format::Claude, &claude), (Format::ChatGpt, &chatgpt)];
    for (format, export) in exports {
        let mut kit = Kit::new();
        let newer = export("About tea", "2025-06-01T00:00:00Z");
        kit.run(format, &kit.file("conversations.json", newer));
        let older = export("New chat", "2025-02-01T00:00:00Z");
        let report = kit.run_thrice(format, &kit.file("conversations.json", older));
        assert_eq!((report.changed, report.reasons()), (0, vec![OLDER]), "{format}");
        assert_eq!(kit.objects("c1", "has_title"), ["About tea"]);
    }
}
