//! Letta: agent files of both schemas, wrapped ones, passages.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told, context, ms};

const NEWER: &str = r#"{
 "agents": [{"id": "agent-0", "name": "guide", "agent_type": "letta_v1_agent", "system": "You guide people.",
   "block_ids": ["block-0", "block-1"], "llm_config": {"model": "some-model"}, "tags": ["tour"],
   "messages": [
     {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You guide people."}], "created_at": "2026-01-01T00:00:00+00:00"},
     {"id": "message-1", "role": "user", "content": "Where is the tea house?", "created_at": "2026-01-01T00:00:01+00:00"},
     {"id": "message-2", "role": "assistant", "content": [], "tool_calls": [{"id": "c1", "function": {"name": "look_up", "arguments": "{\"q\": 1}"}}], "created_at": "2026-01-01T00:00:02+00:00", "model": "some-model"},
     {"id": "message-3", "role": "tool", "content": [], "created_at": "2026-01-01T00:00:03+00:00"},
     {"id": "message-4", "role": "assistant", "content": [{"type": "text", "text": "By the river."}, {"type": "image", "source": "x"}], "created_at": "2026-01-01T00:00:04+00:00"}
   ]}],
 "blocks": [
   {"id": "block-0", "label": "persona", "value": "A calm guide.", "limit": 2000, "read_only": true, "tags": []},
   {"id": "block-1", "label": "human", "value": "", "limit": 2000}],
 "tools": [{"id": "tool-0", "name": "look_up", "source_code": "..."}], "mcp_servers": [{"token": "secret"}],
 "files": [], "sources": [], "groups": [],
 "skills": [{"name": "brew", "description": "when tea is wanted", "files": {"SKILL.md": "Boil water, then wait."}}],
 "created_at": "2026-02-01T00:00:00Z"}"#;

const OLDER: &str = r#"{"agent_type": "memgpt_agent", "name": "old guide", "system": "Help.", "version": "0.6",
 "created_at": "2025-03-01T00:00:00", "tools": [],
 "core_memory": [{"label": "human", "value": "Ann likes tea.", "limit": 5000, "created_at": "2025-03-02T00:00:00+00:00"}],
 "messages": [{"role": "user", "text": "hello", "created_at": "2025-03-03T00:00:00+00:00"},
              {"role": "assistant", "content": [{"type": "text", "text": "hello you"}], "created_at": "2025-03-03T00:00:01+00:00"}]}"#;

#[test]
fn an_agent_file_becomes_states_a_thread_and_procedures() {
    let mut kit = Kit::new();
    let path = kit.file("guide.af", NEWER);
    let report = kit.run_thrice(Format::Letta, &path);
    let kinds = [
        ("agent state", 1),
        ("core memory block state", 1),
        ("message event", 4),
        ("skill workflow", 1),
    ];
    assert_eq!(report.kinds(), kinds.map(|(kind, count)| (kind.to_owned(), count)));
    let expected = [
        "the message has no text",
        "the block is empty",
        "a tool is a program, no memory",
        "a server's address and its secrets are no memory",
    ];
    assert_eq!(report.reasons(), expected);
    assert!(report.left_out_first.iter().all(|left| left.code.is_none()));
    let states = kit.by("subject", "guide");
    let block = states.iter().find(|state| state.text("recall_priority") == Some("hot")).unwrap();
    let blocks = block.map("context").unwrap()["memory_blocks"].as_map().unwrap();
    assert_eq!(blocks["persona"].as_str(), Some("A calm guide."));
    assert_eq!(block.int("created_at"), Some(ms("2026-02-01T00:00:00Z")));
    let prompt = states.iter().find(|state| context(state, "system_prompt").is_some()).unwrap();
    assert_eq!(context(prompt, "model"), Some("some-model"));
    let skill = &kit.search("boil water")[0];
    assert_eq!(skill.text("trigger"), Some("when tea is wanted"));
}

#[test]
fn every_field_of_an_agent_is_kept_or_told_as_left_out() {
    let more = r#""metadata": {"k": 1, "login": {"api_key": "hush", "max_tokens": 9}}, "timezone": "Europe/Basel",
        "tool_rules": [{"tool_name": "look_up"}], "identity_ids": ["identity-0"], "secrets": {"A": "hush"},
        "tool_exec_environment_variables": {"API": "hush"}, "in_context_message_ids": ["message-4"],
        "llm_config": {"model": "some-model", "context_window": 128000, "max_tokens": 1024}"#;
    let config = r#""llm_config": {"model": "some-model"}"#;
    let file = NEWER.replace(config, more);
    let file =
        file.replace(r#""groups": [],"#, r#""groups": [], "metadata": {"revision_id": "1"},"#);
    let mut kit = Kit::new();
    let path = kit.file("guide.af", &file);
    let report = kit.run_thrice(Format::Letta, &path);
    let states = kit.by("subject", "guide");
    let prompt = states.iter().find(|state| context(state, "system_prompt").is_some()).unwrap();
    let rest: serde_json::Value =
        serde_json::from_str(context(prompt, "migrate:rest").unwrap()).unwrap();
    let expected = serde_json::json!({
        "name": "guide", "agent_type": "letta_v1_agent", "tags": ["tour"], "timezone": "Europe/Basel",
        "metadata": {"k": 1, "login": {"max_tokens": 9}}, "tool_rules": [{"tool_name": "look_up"}],
        "identity_ids": ["identity-0"], "llm_config": {"context_window": 128_000, "max_tokens": 1024},
    });
    assert_eq!(rest, expected);
    let left = |place: &str| {
        let found = report.left_out_first.iter().find(|left| left.place == place);
        found.map(|left| left.why.as_str())
    };
    let secret = Some("its name speaks of a secret, which is no memory");
    assert_eq!(left("guide.af: guide: metadata.login.api_key"), secret);
    assert_eq!(left("guide.af: guide: secrets"), secret);
    assert_eq!(
        left("guide.af: tool_exec_environment_variables 1"),
        Some("variables may be secrets, and are no memory")
    );
    assert_eq!(left("guide.af: metadata"), Some("it is of the file, and of no agent"));
    assert!(!format!("{states:?} {report:?}").contains("hush"));

    // An agent without a prompt keeps what it has.
    let file = r#"{"agents": [{"name": "quiet", "timezone": "UTC", "created_at": "2026-01-01T00:00:00Z"},
        {"name": "bare", "created_at": "2026-01-01T00:00:00Z"}]}"#;
    assert_eq!(kit.run(Format::Letta, &kit.file("quiet.af", file)).added, 1);
    let rest = r#"{"name":"quiet","timezone":"UTC"}"#;
    assert_eq!(context(&kit.by("subject", "quiet")[0], "migrate:rest"), Some(rest));
}

#[test]
fn messages_are_a_thread_in_their_order() {
    let kit = Kit::new();
    kit.run(Format::Letta, &kit.file("guide.af", NEWER));
    let thread = kit.session.thread_of_session("guide", &Default::default()).unwrap();
    assert_eq!((thread.messages.len(), thread.roots.len(), thread.heads.len()), (4, 1, 1));
    let said = thread.messages.iter().map(|message| {
        let grain = kit.session.get(&message.address).unwrap().grain().unwrap();
        (grain.text("role").unwrap().to_owned(), grain.text("content").unwrap().to_owned())
    });
    let said: Vec<_> = said.collect();
    assert_eq!(said[1], ("user".into(), "Where is the tea house?".into()));
    assert_eq!(said[2], ("assistant".into(), "look_up({\"q\": 1})".into()));
    assert_eq!(said[3], ("assistant".into(), "By the river.".into()));
}

#[test]
fn files_that_count_their_parts_from_0_are_not_taken_for_one_another() {
    let kit = Kit::new();
    let first = kit.run(Format::Letta, &kit.file("guide.af", NEWER));
    // Another agent, whose parts have the same numbers.
    let other = NEWER
        .replace("\"name\": \"guide\"", "\"name\": \"cook\"")
        .replace("By the river", "In the oven");
    let report = kit.run(Format::Letta, &kit.file("cook.af", other));
    assert_eq!((report.added, report.changed, report.unchanged), (first.added - 1, 0, 1));
    // The same agent later: it has said more, and what it said first is no longer in the file.
    let first_message = NEWER.lines().find(|line| line.contains("\"message-0\"")).unwrap();
    let later = NEWER
        .replace(&format!("{first_message}\n"), "")
        .replace("message-1", "message-0")
        .replace("message-2", "message-1")
        .replace("message-4", "message-3")
        .replace(
            r#"{"type": "image", "source": "x"}], "created_at": "2026-01-01T00:00:04+00:00"}"#,
            r#"{"type": "image", "source": "x"}], "created_at": "2026-01-01T00:00:04+00:00"},
               {"id": "message-4", "role": "user", "content": "Thanks", "created_at": "2026-01-01T00:00:05+00:00"}"#,
        );
    let report = kit.run(Format::Letta, &kit.file("guide.af", later));
    assert_eq!((report.added, report.changed), (1, 0), "{report:?}");
    let thread = kit.session.thread_of_session("guide", &Default::default()).unwrap();
    assert_eq!((thread.messages.len(), thread.roots.len()), (5, 1));
}

#[test]
fn an_older_file_and_one_that_is_a_text_within_json_are_read_alike() {
    let mut kit = Kit::new();
    let path = kit.file("old.af", OLDER);
    let report = kit.run_thrice(Format::Letta, &path);
    let kinds = [("agent state", 1), ("core memory block state", 1), ("message event", 2)];
    assert_eq!(report.kinds(), kinds.map(|(kind, count)| (kind.to_owned(), count)));
    let once = serde_json::to_string(OLDER).unwrap();
    let twice = serde_json::to_string(&once).unwrap();
    for wrapped in [once, twice] {
        let report = kit.run(Format::Letta, &kit.file("old.af", wrapped));
        assert_eq!((report.added, report.unchanged), (0, 4));
    }
}

#[test]
fn passages_come_from_the_file_beside() {
    let mut kit = Kit::new();
    let path = kit.file("guide.af", NEWER);
    kit.options.beside = Some(kit.file(
        "passages.json",
        r#"[{"id": "passage-0", "text": "The river floods in May.", "created_at": "2026-01-20T00:00:00Z", "embedding": [0.1, 0.2], "tags": ["river"], "metadata": {"page": 3}},
            {"id": "passage-1", "text": "", "created_at": "2026-01-20T00:00:00Z"}]"#,
    ));
    let report = kit.run_thrice(Format::Letta, &path);
    assert!(report.kinds().contains(&("archival passage belief".into(), 1)));
    let passage = &kit.search("floods")[0];
    assert_eq!(
        (passage.text("subject"), passage.text("recall_priority")),
        (Some("guide"), Some("cold"))
    );
    assert_eq!(context(passage, "migrate:rest"), Some(r#"{"metadata":{"page":3}}"#));
}

#[test]
fn a_file_that_is_no_agent_file_is_refused_by_name() {
    let kit = Kit::new();
    for (text, code) in [
        ("{}", "ERR_SCHEMA"),
        ("[1]", "ERR_SCHEMA"),
        ("\"x\"", "ERR_CORRUPT"),
        ("{\"agents\": [", "ERR_CORRUPT"),
        ("", "ERR_CORRUPT"),
    ] {
        let refused = kit.try_run(Format::Letta, &kit.file("a.af", text)).unwrap_err();
        assert_eq!((refused.code(), refused.entry()), (code, Some("a.af")), "{text}");
    }
    for strange in [r#"{"agents": [1, {"messages": 7}], "blocks": "x"}"#, r#"{"agents": null}"#] {
        let report = kit.run(Format::Letta, &kit.file("a.af", strange));
        assert_eq!(report.added, 0);
    }
}

#[test]
fn a_thought_keeps_the_call_that_follows_it() {
    let mut kit = Kit::new();
    let call = r#"{"id": "c1", "function": {"name": "send_message", "arguments": "{\"message\": \"By the river.\"}"}}"#;
    let messages = format!(
        r#"{{"role": "assistant", "content": [{{"type": "text", "text": "They ask for tea."}}], "tool_calls": [{call}], "created_at": "2025-03-03T00:00:00Z"}},
           {{"role": "assistant", "content": [{{"type": "text", "text": "I look it up."}}, {{"type": "tool_call", "id": "c2", "name": "look_up", "input": {{"q": 1}}}}], "created_at": "2025-03-03T00:00:01Z"}},
           {{"role": "assistant", "content": [{{"type": "text", "text": "Nothing."}}], "tool_calls": [], "created_at": "2025-03-03T00:00:02Z"}}"#
    );
    let file = format!(
        r#"{{"agent_type": "x", "name": "guide", "core_memory": [], "messages": [{messages}]}}"#
    );
    let path = kit.file("a.af", file);
    assert_eq!(kit.run_thrice(Format::Letta, &path).added, 3);
    let mut said = kit.by("role", "assistant");
    said.sort_by_key(|message| message.int("created_at"));
    let said: Vec<_> = said.iter().map(|message| message.text("content").unwrap()).collect();
    let expected = [
        "They ask for tea.\n\nsend_message({\"message\": \"By the river.\"})",
        "I look it up.\n\nlook_up({\"q\":1})",
        "Nothing.",
    ];
    assert_eq!(said, expected);
}
