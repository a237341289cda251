//! Claude: an account's conversations, projects and memories.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told, context, ms};

const CONVERSATIONS: &str = r#"[{"uuid": "c1", "name": "Tea in Basel", "summary": "Where to drink tea.", "created_at": "2026-01-01T08:00:00.000000Z", "updated_at": "2026-01-02T08:00:00Z", "account": {"uuid": "a1"},
  "chat_messages": [
    {"uuid": "m1", "sender": "human", "text": "Where is good tea?", "content": [{"type": "text", "text": "Where is good tea?"}], "created_at": "2026-01-01T08:00:01Z", "updated_at": "2026-01-01T08:00:01Z", "attachments": [{"file_name": "list.txt", "extracted_content": "places"}], "files": []},
    {"uuid": "m2", "sender": "assistant", "text": "", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "By the river."}, {"type": "tool_use", "name": "search", "input": {}}], "created_at": "2026-01-01T08:00:02Z"},
    {"uuid": "m3", "sender": "human", "text": " ", "content": [], "created_at": "2026-01-01T08:00:03Z"},
    {"uuid": "m4", "sender": "human", "text": "Thanks", "created_at": "2026-01-01T08:00:04Z", "parent_message_uuid": "m2"}]},
 {"uuid": "c2", "name": "", "created_at": "2026-01-03T08:00:00Z", "chat_messages": []}]"#;
const PROJECTS: &str = r#"[{"uuid": "p1", "name": "Garden", "description": "Plants", "prompt_template": "Be brief.", "created_at": "2026-01-01T00:00:00Z",
  "docs": [{"uuid": "d1", "filename": "soil.md", "content": "Soil is dark.", "created_at": "2026-01-02T00:00:00Z"}, {"uuid": "d2"}]}]"#;
const MEMORIES: &str = r#"[{"conversations_memory": "Prefers short answers.", "project_memories": {"p1": "Grows beans."}, "account_uuid": "a1"}]"#;

fn files(kit: &Kit) -> std::path::PathBuf {
    kit.file("export/conversations.json", CONVERSATIONS);
    kit.file("export/projects.json", PROJECTS);
    kit.file("export/memories.json", MEMORIES);
    kit.file("export/users.json", r#"[{"uuid": "a1", "full_name": "Ann", "email_address": "x"}]"#);
    kit.file("export/other.bin", "x");
    kit.path("export")
}

#[test]
fn an_account_becomes_threads_memories_and_projects() {
    let mut kit = Kit::new();
    let path = files(&kit);
    let report = kit.run_thrice(Format::Claude, &path);
    let kinds = [
        ("conversation belief", 1),
        ("conversation summary belief", 1),
        ("memory belief", 2),
        ("message event", 3),
        ("project state", 1),
        ("project document belief", 1),
    ];
    let mut kinds: Vec<_> = kinds.map(|(kind, count)| (kind.to_owned(), count)).into();
    kinds.sort();
    let mut found = report.kinds();
    found.sort();
    assert_eq!(found, kinds);
    let reasons = [
        "the message has no text",
        "it has neither conversations nor memories",
        "the document lacks a uuid or a content",
    ];
    assert_eq!(report.reasons(), reasons);
    assert_eq!(kit.objects("a1", "mg:knows"), ["Prefers short answers."]);
    assert_eq!(kit.objects("p1", "mg:knows"), ["Grows beans."]);
    assert_eq!(kit.objects("Garden", "has_document"), ["Soil is dark."]);
    assert_eq!(kit.objects("c1", "has_title"), ["Tea in Basel"]);
    assert_eq!(context(&kit.by("subject", "Garden")[0], "system_prompt").map(str::len), None);
}

#[test]
fn messages_are_a_thread_with_roles_dates_and_a_user() {
    let kit = Kit::new();
    kit.run(Format::Claude, &files(&kit));
    let thread = kit.session.thread_of_session("c1", &Default::default()).unwrap();
    assert_eq!((thread.messages.len(), thread.roots.len(), thread.heads.len()), (3, 1, 1));
    let grains = thread
        .messages
        .iter()
        .map(|message| kit.session.get(&message.address).unwrap().grain().unwrap());
    let grains: Vec<_> = grains.collect();
    let said = |grain: &grainstore::Grain| {
        (grain.text("role").unwrap().to_owned(), grain.text("content").unwrap().to_owned())
    };
    assert_eq!(said(&grains[0]), ("user".into(), "Where is good tea?".into()));
    assert_eq!(said(&grains[1]), ("assistant".into(), "By the river.".into()));
    assert_eq!(grains[0].int("created_at"), Some(ms("2026-01-01T08:00:01Z")));
    assert_eq!(grains[0].text("user_id"), Some("a1"));
    assert!(context(&grains[0], "migrate:rest").unwrap().contains("places"));
    assert!(context(&grains[1], "migrate:rest").unwrap().contains("tool_use"));
}

#[test]
fn an_answer_to_a_message_without_text_answers_the_one_before_it() {
    let kit = Kit::new();
    let message = |id: &str, parent: &str, text: &str| {
        format!(
            r#"{{"uuid": "{id}", "sender": "human", "text": "{text}", "created_at": "2026-01-01T00:00:00Z", "parent_message_uuid": "{parent}"}}"#
        )
    };
    let messages = [
        message("m1", "00000000-0000-4000-8000-000000000000", "one"),
        message("m2", "m1", ""),
        message("m3", "m2", "three"),
        message("m4", "m1", "four"),
    ];
    let text = format!(r#"[{{"uuid": "c", "chat_messages": [{}]}}]"#, messages.join(","));
    kit.run(Format::Claude, &kit.file("conversations.json", text));
    let parent =
        |said: &str| kit.by("content", said)[0].text("parent_message_id").map(str::to_owned);
    assert_eq!(parent("one"), None);
    assert!(parent("three").is_some() && parent("three") == parent("four"));
}

#[test]
fn a_conversation_that_goes_on_adds_its_new_messages_alone() {
    let kit = Kit::new();
    kit.run(Format::Claude, &kit.file("conversations.json", CONVERSATIONS));
    let more = CONVERSATIONS
        .replace(
            r#""parent_message_uuid": "m2"}"#,
            r#""parent_message_uuid": "m2"}, {"uuid": "m5", "sender": "assistant", "text": "Gladly", "created_at": "2026-01-04T08:00:00Z"}"#,
        )
        .replace("\"updated_at\": \"2026-01-02", "\"updated_at\": \"2026-01-04");
    let report = kit.run(Format::Claude, &kit.file("conversations.json", more));
    assert_eq!((report.added, report.changed, report.unchanged), (1, 0, 5));
    let thread = kit.session.thread_of_session("c1", &Default::default()).unwrap();
    assert_eq!((thread.messages.len(), thread.heads.len()), (4, 1));
}

#[test]
fn an_archive_is_read_as_a_folder_is() {
    let kit = Kit::new();
    let folder = files(&kit);
    kit.run(Format::Claude, &folder);
    let path = kit.zip(
        "export.zip",
        &[
            ("data/conversations.json", CONVERSATIONS),
            ("data/users.json", r#"[{"uuid": "a1"}]"#),
            ("data/projects/p1.json", PROJECTS.trim_start_matches('[').trim_end_matches(']')),
        ],
    );
    let report = kit.run(Format::Claude, &path);
    assert_eq!((report.added, report.changed, report.unchanged), (0, 0, 7), "{report:?}");
}
