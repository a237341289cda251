//! MCP server-memory: entities, observations, relations.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told};

const FILE: &str = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["drinks tea","works at night"]}
{"type":"entity","name":"Teahouse","entityType":"place","observations":[]}
{"type":"relation","from":"Ann","to":"Teahouse","relationType":"visits"}
{"type":"relation","from":"Ann","to":"Nowhere","relationType":"mg:owned_by"}
"#;

#[test]
fn entities_observations_and_relations_become_beliefs_with_the_date_of_the_file() {
    let mut kit = Kit::new();
    kit.options.user = Some("ann".into());
    let path = kit.file("memory.jsonl", FILE);
    let report = kit.run_thrice(Format::ServerMemory, &path);
    let kinds = [("entity belief", 2), ("observation belief", 2), ("relation belief", 2)];
    assert_eq!(report.kinds(), kinds.map(|(kind, count)| (kind.to_owned(), count)));
    assert_eq!(kit.objects("Ann", "mg:knows"), ["drinks tea", "works at night"]);
    assert_eq!(kit.objects("Ann", "is_a"), ["person"]);
    assert_eq!(kit.objects("Ann", "visits"), ["Teahouse"]);
    // A relation of the standard has a meaning, which no file from elsewhere gives.
    assert_eq!(kit.objects("Ann", "imported:mg:owned_by"), ["Nowhere"]);
    assert_eq!(report.notes.len(), 2);
    assert!(report.notes[0].contains("has no dates"));
    assert!(report.notes[1].starts_with("memory.jsonl: line 4: it points"), "{:?}", report.notes);
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let created = kit.by("subject", "Ann")[0].int("created_at").unwrap();
    assert_eq!(i128::from(created), i128::try_from(modified).unwrap());
}

#[test]
fn a_file_that_grew_adds_what_is_new_alone() {
    let kit = Kit::new();
    let path = kit.file("memory.jsonl", FILE);
    assert_eq!(kit.run(Format::ServerMemory, &path).added, 6);
    let more = FILE.replace("works at night", "works at night\",\"sleeps by day");
    let report = kit.run(Format::ServerMemory, &kit.file("memory.jsonl", more));
    assert_eq!((report.added, report.changed, report.unchanged), (1, 0, 6));
}

#[test]
fn lines_that_are_none_are_told_by_their_number() {
    let mut kit = Kit::new();
    let lines = [
        r#"{"type":"entity","name":"Ann","entityType":"person","observations":["a",7,""]}"#,
        "nonsense",
        r#"{"type":"entity","entityType":"person"}"#,
        r#"{"type":"relation","from":"Ann"}"#,
        r#"{"type":"thing"}"#,
        "[1]",
        r#"{"type":"entity","name":"Ann","name":"Bob"}"#,
    ];
    let path = kit.file("memory.jsonl", [lines.join("\n").as_bytes(), b"\n\"\xff\""].concat());
    let report = kit.run_thrice(Format::ServerMemory, &path);
    assert_eq!((report.added, report.left_out), (2, 9));
    let places: Vec<_> = report.left_out_first.iter().map(|left| left.place.as_str()).collect();
    let lines: Vec<_> = [2, 3, 4, 5, 6, 7, 8].map(|at| format!("memory.jsonl: line {at}")).into();
    assert_eq!(places[2..], lines);
}
