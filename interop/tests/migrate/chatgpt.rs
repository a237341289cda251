//! ChatGPT: trees of messages, branches, memories.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told, context, ms};

const CONVERSATIONS: &str = r#"[{"title": "Tea", "create_time": 1767254400.5, "update_time": 1767340800, "conversation_id": "c1", "id": "c1", "current_node": "n4", "gizmo_id": null, "default_model_slug": "some-model",
 "mapping": {
  "root": {"id": "root", "message": null, "parent": null, "children": ["n0"]},
  "n0": {"id": "n0", "message": {"id": "n0", "author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]}, "create_time": null}, "parent": "root", "children": ["n1"]},
  "n1": {"id": "n1", "message": {"id": "n1", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Which tea?"]}, "create_time": 1767254401.25}, "parent": "n0", "children": ["n2", "n4"]},
  "n2": {"id": "n2", "message": {"id": "n2", "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Green."]}, "create_time": 1767254402, "metadata": {"model_slug": "some-model"}}, "parent": "n1", "children": []},
  "n4": {"id": "n4", "message": {"id": "n4", "author": {"role": "assistant"}, "content": {"content_type": "multimodal_text", "parts": [{"asset_pointer": "file://x"}, "Black."]}, "create_time": 1767254403}, "parent": "n1", "children": []},
  "n5": {"id": "n5", "message": {"id": "n5", "author": {"role": "tool", "name": "python"}, "content": {"content_type": "execution_output", "text": "42"}, "create_time": null}, "parent": "n4", "children": []},
  "n6": {"id": "n6", "message": {"id": "n6", "author": {"role": "user"}, "content": {"content_type": "user_editable_context", "user_profile": "x"}, "metadata": {"is_visually_hidden_from_conversation": true}}, "parent": "root", "children": []},
  "n7": {"id": "n7", "message": {"id": "n7", "author": {"role": "user"}, "content": {"parts": ["lost"]}, "create_time": 1767254409}, "parent": "nowhere", "children": []},
  "n8": {"id": "n8", "message": null, "parent": "n9"},
  "n9": {"id": "n9", "message": null, "parent": "n8"}}}]"#;

#[test]
fn a_conversation_becomes_a_thread_with_all_its_branches() {
    let mut kit = Kit::new();
    let path = kit.file("conversations.json", CONVERSATIONS);
    let report = kit.run_thrice(Format::ChatGpt, &path);
    assert_eq!(report.kinds(), [("conversation belief".into(), 1), ("message event".into(), 5)]);
    let reasons = [
        "the message has no text",
        "the message is hidden in its conversation",
        "its parents run in a circle",
        "its parents run in a circle",
    ];
    let mut found = report.reasons();
    found.sort_by_key(|why| reasons.iter().position(|reason| reason == why));
    assert_eq!(found, reasons);
    assert!(report.notes[0].contains("nowhere"), "{:?}", report.notes);
    let thread = kit.session.thread_of_session("c1", &Default::default()).unwrap();
    assert_eq!((thread.messages.len(), thread.roots.len(), thread.branch_points.len()), (5, 2, 1));
    let black = &kit.by("content", "Black.")[0];
    assert_eq!(
        (black.text("role"), black.int("created_at")),
        (Some("assistant"), Some(1_767_254_403_000))
    );
    assert!(context(black, "migrate:rest").unwrap().contains("asset_pointer"));
    let green = &kit.by("content", "Green.")[0];
    assert_eq!(green.text("model_id"), Some("some-model"));
    assert_eq!(green.text("parent_message_id"), black.text("parent_message_id"));
    // A message without a date has the one of its conversation.
    assert_eq!(kit.by("content", "42")[0].int("created_at"), Some(1_767_254_400_500));
}

#[test]
fn memories_come_from_the_archive_from_a_list_or_from_pasted_lines() {
    let list = r#"[{"id": "x", "content": "Likes sailing", "created_at": "2026-01-01T00:00:00Z", "enabled": true},
        {"id": "y", "content": "Likes rowing", "created_at": "2026-01-01T00:00:00Z", "enabled": false}]"#;
    let mut kit = Kit::new();
    kit.file("export/conversations.json", CONVERSATIONS);
    kit.file("export/user.json", r#"{"id": "user-1", "email": "x"}"#);
    kit.file("export/memory.json", list);
    kit.file("export/chat.html", "<html>");
    let folder = kit.path("export");
    let report = kit.run_thrice(Format::ChatGpt, &folder);
    assert!(report.reasons().contains(&"it has neither conversations nor memories"));
    assert!(report.reasons().contains(&"the memory is switched off"));
    assert_eq!(kit.objects("user-1", "mg:knows"), ["Likes sailing"]);
    assert_eq!(kit.by("user_id", "user-1").len(), 7);
    let sailing = &kit.search("sailing")[0];
    assert_eq!(sailing.int("created_at"), Some(ms("2026-01-01T00:00:00Z")));

    kit.options.beside = Some(kit.file("pasted.txt", "- Has a dog\n\n  Works at night \n"));
    let report = kit.run(Format::ChatGpt, &folder);
    assert_eq!(report.added, 2);
    assert_eq!(kit.objects("user-1", "mg:knows"), ["Has a dog", "Likes sailing", "Works at night"]);
    assert_eq!(kit.run(Format::ChatGpt, &folder).added, 0);
}

#[test]
fn a_conversation_that_is_none_is_left_out() {
    let mut kit = Kit::new();
    let text = r#"[{"title": "x"}, {"id": "a", "mapping": []}, {"id": "b", "mapping": {"n": 7, "m": {"message": "x", "parent": 3}}}, 7,
      {"id": "c", "mapping": {"n": {"message": {"author": 1, "content": {"parts": ["no date"]}}}}}]"#;
    let report = kit.run_thrice(Format::ChatGpt, &kit.file("conversations.json", text));
    assert_eq!((report.added, report.left_out), (0, 4));
}

#[test]
fn a_long_conversation_is_read_without_recursion() {
    let kit = Kit::new();
    let mut nodes = vec![r#""n0": {"message": null, "parent": null}"#.to_owned()];
    for at in 1..5000 {
        let parent = at - 1;
        nodes.push(format!(
            r#""n{at}": {{"message": {{"id": "n{at}", "author": {{"role": "user"}}, "content": {{"parts": ["m{at}"]}}, "create_time": {}}}, "parent": "n{parent}"}}"#,
            1_767_254_400 + at
        ));
    }
    let text = format!(r#"[{{"id": "c", "mapping": {{{}}}}}]"#, nodes.join(","));
    assert_eq!(kit.run(Format::ChatGpt, &kit.file("conversations.json", text)).added, 4999);
    let last = &kit.by("content", "m4999")[0];
    assert!(last.text("parent_message_id").is_some());
}
