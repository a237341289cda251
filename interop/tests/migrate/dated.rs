//! mem0: when a memory without a history was said, and whose a relation is.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, context, ms};

#[test]
fn a_memory_is_dated_by_its_change_only_where_that_is_later_than_it_was_made() {
    let kit = Kit::new();
    let dated = |id: u8, updated: &str| {
        format!(
            r#"{{"id": "{id}", "memory": "m{id}", "created_at": "2026-01-05T00:00:00Z", "updated_at": {updated}}}"#
        )
    };
    let all = [
        dated(1, "null"),
        dated(2, r#""2026-01-04T00:00:00Z""#),
        dated(3, r#""9000-01-01T00:00:00Z""#),
        dated(4, r#""soon""#),
    ];
    kit.run(Format::Mem0, &kit.file("all.json", format!("[{}]", all.join(","))));
    let found = kit.by("subject", "user");
    assert_eq!(found.len(), 4);
    for grain in found {
        assert_eq!(grain.int("created_at"), Some(ms("2026-01-05T00:00:00Z")));
        assert_eq!(context(&grain, "migrate:created_at"), None);
    }
}

#[test]
fn a_relation_is_of_whom_the_dump_names() {
    let mut kit = Kit::new();
    let path = kit.file(
        "all.json",
        r#"{"results": [], "relations": [
            {"source": "ann", "relationship": "likes", "target": "tea", "user_id": "ann"},
            {"source": "bob", "relationship": "likes", "target": "milk"}]}"#,
    );
    assert_eq!(kit.run_thrice(Format::Mem0, &path).added, 2);
    let user =
        |kit: &Kit, name: &str| kit.by("subject", name)[0].text("user_id").map(str::to_owned);
    assert_eq!((user(&kit, "ann"), user(&kit, "bob")), (Some("ann".into()), None));
    kit.options.user = Some("bob".into());
    let report = kit.run(Format::Mem0, &path);
    assert_eq!(report.notes, ["1 records name another person, and are of bob here"]);
    assert_eq!(kit.by("user_id", "bob").len(), 2);
}
