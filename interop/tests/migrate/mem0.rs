//! mem0: memories, their history as chains, people, relations, deletions.

use grainstore::prelude::*;
use grainstore::{EraseOptions, MasterKey, RowRange};
use grainstore_interop::migrate::{Format, Undated};

use crate::kit::{Kit, Told, context, ms};

const EXPORT: &str = r#"{"results": [
  {"id": "m1", "memory": "Ann likes green tea", "hash": "0f", "user_id": "ann", "run_id": null,
   "metadata": {"room": "kitchen", "größe": 2}, "categories": ["food"], "role": "user",
   "created_at": "2026-01-05T10:00:00.123456-07:00", "updated_at": "2026-02-01T09:00:00Z"},
  {"id": "m2", "memory": "Bob lives in Basel", "user_id": "bob", "agent_id": "guide",
   "created_at": "2026-01-06T08:00:00Z", "updated_at": null, "expiration_date": "2027-01-01"},
  {"id": "m3", "memory": "Answers are short", "agent_id": "guide", "created_at": "2026-01-07T08:00:00Z"}
 ], "relations": [{"source": "ann", "relationship": "lives_with", "target": "bob"}]}"#;

const HISTORY: &str = r#"{"id": "h1", "memory_id": "m1", "old_memory": null, "new_memory": "Ann likes tea", "event": "ADD", "created_at": "2026-01-05T17:00:00.123456Z", "updated_at": null, "is_deleted": 0, "actor_id": "ann", "role": "user"}
{"id": "h2", "memory_id": "m1", "old_memory": "Ann likes tea", "new_memory": "Ann likes green tea", "event": "UPDATE", "created_at": "2026-01-05T17:00:00Z", "updated_at": "2026-02-01T09:00:00Z", "is_deleted": 0}
{"id": "h3", "memory_id": "m9", "old_memory": null, "new_memory": "Ann has a dog", "event": "ADD", "created_at": "2026-01-08T00:00:00Z"}
{"id": "h4", "memory_id": "m9", "old_memory": "Ann has a dog", "new_memory": null, "event": "DELETE", "created_at": null, "updated_at": null, "is_deleted": 1}
"#;

#[test]
fn memories_keep_their_dates_people_and_fields() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    let report = kit.run_thrice(Format::Mem0, &path);
    assert_eq!((report.records, report.added, report.left_out), (4, 4, 0));
    assert_eq!(report.kinds(), [("memory belief".into(), 3), ("relation belief".into(), 1)]);
    let tea = &kit.by("user_id", "ann")[0];
    assert_eq!((tea.text("subject"), tea.text("relation")), (Some("ann"), Some("mg:knows")));
    assert_eq!(tea.text("object"), Some("Ann likes green tea"));
    // Without the history nobody knows what it said before its change.
    assert_eq!(tea.int("created_at"), Some(ms("2026-02-01T09:00:00Z")));
    assert_eq!(context(tea, "migrate:created_at"), Some("2026-01-05T17:00:00.123Z"));
    assert_eq!(tea.text("source_type"), Some("imported"));
    assert_eq!(tea.texts("structural_tags").collect::<Vec<_>>(), ["food"]);
    assert_eq!(context(tea, "migrate:id"), Some("m1"));
    let rest = r#"{"hash":"0f","metadata":{"gr\u00f6\u00dfe":2,"room":"kitchen"}}"#;
    assert_eq!(context(tea, "migrate:rest"), Some(rest));
    let basel = &kit.by("user_id", "bob")[0];
    // The day is the last one.
    assert_eq!(basel.int("valid_to"), Some(ms("2027-01-01T23:59:59.999Z")));
    assert_eq!(context(basel, "migrate:agent"), Some("guide"));
    assert_eq!(kit.objects("guide", "mg:knows"), ["Answers are short"]);
    assert_eq!(kit.objects("ann", "lives_with"), ["bob"]);
}

#[test]
fn a_memory_holds_to_the_end_of_the_day_on_which_it_expires() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT.replace("2027-01-01", "2026-08-01"));
    kit.run_thrice(Format::Mem0, &path);
    for (at, found) in
        [("2026-08-01T12:00:00Z", 1), ("2026-08-01T23:59:59.999Z", 1), ("2026-08-02T00:00:00Z", 0)]
    {
        assert_eq!(kit.valid_at("Bob lives in Basel", ms(at)), found, "{at}");
    }
    let kit = Kit::new();
    kit.run(
        Format::Mem0,
        &kit.file("all.json", EXPORT.replace("2027-01-01", "2026-08-01T06:00:00Z")),
    );
    assert_eq!(kit.by("user_id", "bob")[0].int("valid_to"), Some(ms("2026-08-01T06:00:00Z")));
}

#[test]
fn the_history_becomes_a_chain() {
    for (name, history) in [("h.jsonl", HISTORY.to_owned()), ("h.csv", csv()), ("h.json", json())] {
        let mut kit = Kit::new();
        let path = kit.file("all.json", EXPORT);
        kit.options.beside = Some(kit.file(name, history));
        let report = kit.run_thrice(Format::Mem0, &path);
        assert_eq!((report.records, report.added, report.ended), (5, 5, 0), "{name}");
        let head = kit.session.latest("ann", "mg:knows").unwrap().unwrap();
        let versions = kit.session.history(&head.address).unwrap();
        let told = |version: &grainstore::StoredGrain| {
            let grain = version.grain().unwrap();
            (grain.text("object").unwrap().to_owned(), grain.int("created_at").unwrap())
        };
        let told: Vec<_> = versions.iter().map(told).collect();
        assert_eq!(told[0], ("Ann likes green tea".to_owned(), ms("2026-02-01T09:00:00Z")));
        assert_eq!(told[1], ("Ann likes tea".to_owned(), ms("2026-01-05T17:00:00.123Z")));
        assert_eq!((told.len(), kit.search("green").len()), (2, 1));
    }
}

#[test]
fn what_was_deleted_is_left_out_unless_it_is_told_whose_it_was() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.options.beside = Some(kit.file("h.jsonl", HISTORY));
    let report = kit.run_thrice(Format::Mem0, &path);
    assert_eq!((report.added, report.ended, report.left_out), (5, 0, 1));
    assert_eq!(report.left_out_first[0].place, "history of m9");
    let why = "its history alone has it, and does not tell whose it was";
    assert_eq!((report.reasons(), report.left_out_why[why]), (vec![why], 1));
    assert!(report.notes.iter().any(|note| note.contains("--user")), "{report:?}");
    assert!(kit.all_by("object", "Ann has a dog").is_empty());

    // Whose it was is said: deleted is not lost.
    kit.options.user = Some("ann".into());
    let report = kit.run_thrice(Format::Mem0, &path);
    assert_eq!((report.added, report.ended, report.left_out), (4, 1, 0));
    assert!(kit.search("dog").is_empty());
    let dog = &kit.all_by("object", "Ann has a dog")[0];
    assert_eq!((dog.text("user_id"), dog.text("subject")), (Some("ann"), Some("ann")));
    let address = dog.encode(Default::default()).unwrap().address();
    let state = kit.session.get(&address).unwrap().state;
    assert_eq!(state.verification_status, grainstore::VerificationStatus::Retracted);
}

#[test]
fn what_is_deleted_later_stays_of_whom_it_was() {
    let changed = r#"{"id": "h5", "memory_id": "m1", "old_memory": "Ann likes green tea", "new_memory": "Ann likes white tea", "event": "UPDATE", "created_at": "2026-01-05T17:00:00Z", "updated_at": "2026-05-01T09:00:00Z"}"#;
    let deleted = r#"{"id": "h6", "memory_id": "m1", "old_memory": "Ann likes tea", "event": "DELETE", "created_at": "2026-01-05T17:00:00Z", "updated_at": "2026-06-01T09:00:00Z"}"#;
    for (first, then, versions) in [
        (Some(HISTORY.to_owned()), format!("{HISTORY}{changed}\n{deleted}"), 3),
        // It came in without its history.
        (None, format!("{HISTORY}{deleted}"), 1),
        (None, format!("{HISTORY}{changed}\n{deleted}"), 2),
    ] {
        let mut kit = Kit::new();
        kit.options.beside = first.map(|text| kit.file("h.jsonl", text));
        kit.run(Format::Mem0, &kit.file("all.json", EXPORT));
        kit.options.beside = Some(kit.file("h.jsonl", then));
        let none = kit.file("none.json", r#"{"results": []}"#);
        let report = kit.run_thrice(Format::Mem0, &none);
        assert_eq!((report.ended, report.left_out), (1, 1), "{report:?}");
        let of_ann = kit.all_by("user_id", "ann");
        assert_eq!(of_ann.len(), versions);
        assert!(of_ann.iter().all(|grain| grain.text("subject") == Some("ann")));
        assert!(kit.all_by("subject", "user").is_empty());
        assert!(kit.search("tea").is_empty());
    }
}

fn csv() -> String {
    let mut table =
        String::from("id,memory_id,old_memory,new_memory,event,created_at,updated_at\n");
    for line in HISTORY.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| {
            row.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
        };
        let names =
            ["id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at"];
        let fields: Vec<_> = names.iter().map(|name| format!("\"{}\"", field(name))).collect();
        table.push_str(&fields.join(","));
        table.push('\n');
    }
    table
}

fn json() -> String {
    format!("[{}]", HISTORY.trim_end().replace('\n', ","))
}

#[test]
fn a_memory_that_changed_takes_the_place_of_its_grain() {
    let kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.run(Format::Mem0, &path);
    let newer = EXPORT
        .replace("lives in Basel", "lives in Bern")
        .replace("\"updated_at\": null", "\"updated_at\": \"2026-04-01T00:00:00Z\"");
    let report = kit.run(Format::Mem0, &kit.file("newer.json", newer));
    assert_eq!((report.added, report.changed, report.unchanged), (0, 1, 3));
    let head = kit.session.latest("bob", "mg:knows").unwrap().unwrap();
    assert_eq!(head.grain().unwrap().text("object"), Some("Bob lives in Bern"));
    assert_eq!(head.grain().unwrap().int("created_at"), Some(ms("2026-04-01T00:00:00Z")));
    assert_eq!(kit.session.history(&head.address).unwrap().len(), 2);
}

#[test]
fn a_longer_history_goes_on_where_the_last_one_ended() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.options.beside = Some(kit.file("h.jsonl", HISTORY));
    kit.run(Format::Mem0, &path);
    let more = r#"{"id": "h5", "memory_id": "m1", "old_memory": "Ann likes green tea", "new_memory": "Ann likes white tea", "event": "UPDATE", "created_at": "2026-01-05T17:00:00Z", "updated_at": "2026-05-01T09:00:00Z"}"#;
    kit.options.beside = Some(kit.file("h.jsonl", format!("{HISTORY}{more}")));
    let path = kit.file("all.json", EXPORT.replace("green tea", "white tea"));
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.changed, report.ended), (0, 1, 0));
    let head = kit.session.latest("ann", "mg:knows").unwrap().unwrap();
    assert_eq!(kit.session.history(&head.address).unwrap().len(), 3);
    let again = kit.run(Format::Mem0, &path);
    assert_eq!((again.added, again.changed), (0, 0));
    // What is deleted later is ended later.
    let gone = r#"{"id": "h6", "memory_id": "m1", "old_memory": "Ann likes white tea", "event": "DELETE", "created_at": "2026-01-05T17:00:00Z", "updated_at": "2026-06-01T09:00:00Z"}"#;
    kit.options.beside = Some(kit.file("h.jsonl", format!("{HISTORY}{more}\n{gone}")));
    let path = kit.file("all.json", r#"{"results": []}"#);
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.changed, report.ended), (0, 0, 1));
    assert!(kit.search("white").is_empty());
    assert_eq!(kit.run(Format::Mem0, &path).ended, 0);
}

#[test]
fn a_history_makes_no_difference_to_what_came_in_without_it_and_the_other_way_round() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.run(Format::Mem0, &path);
    let history = kit.file("h.jsonl", HISTORY);
    kit.options.beside = Some(history.clone());
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.changed, report.unchanged, report.ended), (0, 0, 4, 0));
    assert!(report.notes.iter().any(|note| note.contains("earlier versions")), "{report:?}");

    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.options.beside = Some(kit.file("h.jsonl", HISTORY));
    kit.run(Format::Mem0, &path);
    kit.options.beside = None;
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.changed, report.unchanged), (0, 0, 4));
}

#[test]
fn what_was_erased_here_stays_away_unless_it_is_asked_for() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.run(Format::Mem0, &path);
    let tea = kit.session.latest("ann", "mg:knows").unwrap().unwrap().address;
    kit.session.erase(&tea, "she asked", &EraseOptions::new()).unwrap();
    kit.session.erase_user("bob", "he asked", &EraseOptions::new()).unwrap();
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.unchanged, report.left_out), (0, 2, 2));
    assert_eq!(report.reasons(), ["it was erased here"; 2]);
    kit.options.return_erased = true;
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.left_out), (1, 1));
    assert_eq!(report.left_out_first[0].code, Some("ERR_ERASED"));
    assert_eq!(kit.objects("ann", "mg:knows"), ["Ann likes green tea"]);
    assert_eq!(kit.run(Format::Mem0, &path).added, 0);
}

#[test]
fn an_encrypted_store_forgets_the_records_of_a_person_with_their_key() {
    let mut kit = Kit::with(OpenOptions::new().key(MasterKey::new([7; 32])));
    kit.options.beside = Some(kit.file("h.jsonl", HISTORY));
    let path = kit.file("all.json", EXPORT);
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.left_out), (5, 1));
    assert_eq!(kit.run(Format::Mem0, &path).unchanged, 4);
    kit.session.erase_user("ann", "she asked", &EraseOptions::new()).unwrap();
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.added, report.changed, report.unchanged), (0, 0, 3));
    assert_eq!(report.reasons()[0], "it was erased here");
}

#[test]
fn what_is_held_here_is_not_ended_because_its_source_deleted_it() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.options.beside = Some(kit.file("h.jsonl", HISTORY));
    kit.run(Format::Mem0, &path);
    let tea = kit.session.latest("ann", "mg:knows").unwrap().unwrap().address;
    kit.session.hold(&tea, "a case").unwrap();
    let gone = r#"{"id": "h6", "memory_id": "m1", "old_memory": "Ann likes green tea", "event": "DELETE", "created_at": "2026-06-01T09:00:00Z"}"#;
    kit.options.beside = Some(kit.file("h.jsonl", format!("{HISTORY}{gone}")));
    let path = kit.file("all.json", r#"{"results": []}"#);
    let report = kit.run(Format::Mem0, &path);
    assert_eq!((report.ended, report.left_out), (0, 2));
    assert!(report.left_out_first.iter().any(|left| left.code == Some("ERR_INVALIDATION_DENIED")));
    assert_eq!(kit.objects("ann", "mg:knows"), ["Ann likes green tea"]);
    kit.session.lift_hold(&tea, "closed", None).unwrap();
    assert_eq!(kit.run(Format::Mem0, &path).ended, 1);
}

#[test]
fn an_interruption_before_the_rows_is_made_good_by_the_next_run() {
    let mut kit = Kit::new();
    kit.options.beside = Some(kit.file("h.jsonl", HISTORY));
    let path = kit.file("all.json", EXPORT);
    kit.run(Format::Mem0, &path);
    let grains = kit.grains();
    for table in [1, 2] {
        let page = kit.session.rows("migrate", table, &RowRange::BytesAfter(None), 100).unwrap();
        assert_eq!(page.rows.len(), 4);
        for row in page.rows {
            kit.session.remove_row("migrate", table, row.key).unwrap();
        }
    }
    let report = kit.run_thrice(Format::Mem0, &path);
    assert_eq!((report.added, report.changed, report.left_out), (0, 0, 1));
    assert_eq!(kit.grains(), grains);
    let page = kit.session.rows("migrate", 1, &RowRange::BytesAfter(None), 100).unwrap();
    assert_eq!(page.rows.len(), 4);
}

#[test]
fn records_that_are_no_memories_are_left_out_with_a_reason() {
    let mut kit = Kit::new();
    let path = kit.file(
        "all.json",
        r#"[{"memory": "no id", "created_at": "2026-01-01T00:00:00Z"},
            {"id": "a", "created_at": "2026-01-01T00:00:00Z"},
            {"id": "b", "memory": "no date"},
            {"id": "c", "memory": "bad date", "created_at": "soon"},
            {"id": "d", "memory": "too early", "created_at": "1950-01-01T00:00:00Z"},
            {"id": "e", "memory": "good", "created_at": "2026-01-01T00:00:00Z"},
            {"id": "e", "memory": "twice", "created_at": "2026-01-01T00:00:00Z"},
            7]"#,
    );
    let report = kit.run_thrice(Format::Mem0, &path);
    let expected = [
        "it has no id",
        "it has no text",
        "it has no date",
        "its date \"soon\" cannot be read",
        "its date 1950-01-01T00:00:00.000Z is outside 1970 to 2106",
        "its id was before it in the export",
        "it is no object",
    ];
    assert_eq!((report.records, report.added, report.reasons()), (8, 1, expected.to_vec()));
    assert_eq!(report.left_out_first[0].place, "all.json: element 1");
    kit.options.undated = Undated::ImportTime;
    assert_eq!(kit.run(Format::Mem0, &path).added, 3);
    kit.options.strict = true;
    let before = kit.grains();
    let refused = kit.try_run(Format::Mem0, &path).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_SCHEMA", Some("all.json: element 1")));
    assert_eq!(kit.grains(), before);
}

#[test]
fn a_migration_is_no_way_past_a_lock() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.run(Format::Mem0, &path);
    let tea = kit.session.latest("ann", "mg:knows").unwrap().unwrap().address;
    kit.session.hold(&tea, "a case").unwrap();
    let path = kit.file("all.json", EXPORT.replace("green tea", "coffee").replace("Basel", "Bern"));
    kit.options.dry_run = true;
    let dry = kit.run(Format::Mem0, &path);
    kit.options.dry_run = false;
    let report = kit.run(Format::Mem0, &path);
    assert_eq!(kit.objects("ann", "mg:knows"), ["Ann likes green tea"]);
    assert_eq!(kit.objects("bob", "mg:knows"), ["Bob lives in Bern"]);
    for report in [dry, report] {
        assert_eq!((report.changed, report.left_out), (1, 1));
        assert_eq!(report.left_out_first[0].code, Some("ERR_INVALIDATION_DENIED"));
    }
    kit.options.strict = true;
    let refused = kit.try_run(Format::Mem0, &path).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
}

#[test]
fn namespace_and_user_can_be_given() {
    let mut kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    kit.options.namespace = Some("team:tea".into());
    kit.options.user = Some("carla".into());
    let report = kit.run_thrice(Format::Mem0, &path);
    assert_eq!(report.added, 4);
    assert_eq!(report.notes, ["2 records name another person, and are of carla here"]);
    let found = kit.by("user_id", "carla");
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|grain| grain.text("namespace") == Some("team:tea")));
    assert_eq!(kit.objects("carla", "mg:knows").len(), 3);
    assert!(kit.run(Format::Mem0, &path).notes.is_empty());
    // Meant for somebody else they are other records.
    kit.options.user = Some("dora".into());
    assert_eq!(kit.run(Format::Mem0, &path).added, 4);
}

#[test]
fn a_session_of_a_user_may_not_migrate() {
    let kit = Kit::new();
    let path = kit.file("all.json", EXPORT);
    let ann = SessionOptions { user_id: Some("ann".into()), ..Default::default() };
    let session = kit.session.part(ann);
    let (options, monitor) = (&kit.options, grainstore_interop::Monitor::default());
    let refused =
        grainstore_interop::migrate::run(&session, Format::Mem0, &path, options, &monitor);
    assert_eq!(refused.unwrap_err().code(), "ERR_ACCESS");
}
