//! Folders of Markdown: basic-memory and MemFS.

use grainstore_interop::migrate::Format;

use crate::kit::{Kit, Told, context, ms};

const NOTE: &str = "---\ntitle: Coffee\ntype: note\ntags: [drinks, morning]\npermalink: drinks/coffee\ncreated: 2026-01-01T00:00:00Z\n---\n# Coffee\n\nBlack and hot.\n\n## Observations\n- [method] Pour slowly #brew (by hand)\n- [ ] buy beans\n- [method] Pour slowly #brew (by hand)\n\n## Relations\n- pairs_with [[Cake]]\n- pairs_with [[Nothing]]\n";

#[test]
fn notes_become_what_is_known_with_observations_and_relations() {
    let mut kit = Kit::new();
    kit.file("notes/drinks/coffee.md", NOTE);
    kit.file("notes/cake.md", "---\ntitle: Cake\npermalink: cake\n---\nSweet, see [[Coffee]].\n");
    kit.file("notes/bad.md", "---\na: [\n---\nx");
    kit.file("notes/picture.png", "x");
    kit.file("notes/empty.md", "---\ntitle: Empty\n---\n");
    let path = kit.path("notes");
    let report = kit.run_thrice(Format::BasicMemory, &path);
    let kinds = [("note belief", 2), ("observation belief", 1), ("relation belief", 3)];
    assert_eq!(report.kinds(), kinds.map(|(kind, count)| (kind.to_owned(), count)));
    assert_eq!((report.left_out, report.notes.len()), (3, 1));
    assert!(report.notes[0].contains("\"nothing\""), "{:?}", report.notes);
    assert_eq!(kit.objects("Coffee", "pairs_with"), ["Cake", "Nothing"]);
    assert_eq!(kit.objects("Cake", "links_to"), ["Coffee"]);
    let method = &kit.by("relation", "method")[0];
    assert_eq!(method.text("object"), Some("Pour slowly #brew (by hand)"));
    assert_eq!(method.texts("structural_tags").collect::<Vec<_>>(), ["drinks", "morning", "brew"]);
    assert_eq!(method.int("created_at"), Some(ms("2026-01-01T00:00:00Z")));
    let note = &kit.search("black hot")[0];
    assert_eq!(context(note, "migrate:rest"), Some(r#"{"type":"note"}"#));
}

#[test]
fn a_note_with_many_tags_and_many_lines_does_not_multiply_them() {
    let kit = Kit::new();
    let tags: Vec<String> = (0..3_000).map(|at| format!("tag{at}")).collect();
    let lines: String = (0..200).map(|at| format!("- [fact] number {at} #own\n")).collect();
    let note = format!("---\ntitle: Many\ntags: [{}]\n---\n{lines}", tags.join(", "));
    kit.file("notes/many.md", note);
    let name = "n".repeat(600);
    kit.file("notes/long.md", format!("---\ntitle: {name}\n---\nx"));
    let report = kit.run(Format::BasicMemory, &kit.path("notes"));
    assert_eq!((report.added, report.left_out), (201, 1), "{report:?}");
    let count = |grain: &grainstore::Grain| grain.texts("structural_tags").count();
    let statements = kit.by("relation", "fact");
    assert_eq!((statements.len(), count(&statements[0])), (200, 65));
    assert!(statements[0].texts("structural_tags").any(|tag| tag == "own"));
    assert_eq!(count(&kit.by("relation", "mg:knows")[0]), 3_000);
}

#[test]
fn a_note_that_changed_takes_the_place_of_its_grain() {
    let kit = Kit::new();
    kit.file("notes/coffee.md", NOTE);
    kit.run(Format::BasicMemory, &kit.path("notes"));
    kit.file("notes/coffee.md", NOTE.replace("Black and hot", "White and cold"));
    let report = kit.run(Format::BasicMemory, &kit.path("notes"));
    assert_eq!((report.added, report.changed, report.unchanged), (0, 1, 3));
    let head = kit.session.latest("Coffee", "mg:knows").unwrap().unwrap();
    assert_eq!(kit.session.history(&head.address).unwrap().len(), 2);
}

#[test]
fn a_memory_folder_becomes_states_procedures_and_knowledge() {
    let mut kit = Kit::new();
    kit.file("memory/MEMORY.md", "Look into people/.");
    kit.file("memory/system/persona.md", "A calm guide.");
    kit.file("memory/system/human/ann.md", "Ann likes tea.");
    kit.file(
        "memory/skills/brew/SKILL.md",
        "---\nname: brew\ndescription: when tea is wanted\n---\nBoil water.",
    );
    kit.file("memory/people/bob.md", "---\ntags: [friend]\ncreated_at: 2026-01-01\n---\nBob rows.");
    kit.file("memory/.git/config", "x");
    let path = kit.path("memory");
    let report = kit.run_thrice(Format::MemFs, &path);
    let kinds = [
        ("core memory file state", 2),
        ("index of the memory state", 1),
        ("memory file belief", 1),
        ("skill workflow", 1),
    ];
    assert_eq!(report.kinds(), kinds.map(|(kind, count)| (kind.to_owned(), count)));
    assert_eq!(report.left_out, 0);
    let bob = &kit.by("subject", "people/bob")[0];
    assert_eq!(
        (bob.text("object"), bob.int("created_at")),
        (Some("Bob rows."), Some(ms("2026-01-01T00:00:00Z")))
    );
    assert_eq!(kit.search("boil")[0].text("trigger"), Some("when tea is wanted"));
    let ann = &kit.by("subject", "human/ann")[0];
    assert_eq!(ann.text("recall_priority"), Some("hot"));
    let zip = kit.zip(
        "memory.zip",
        &[("export/system/persona.md", "---\ncreated: 2026-01-01\n---\nA calm guide.")],
    );
    let report = kit.run(Format::MemFs, &zip);
    assert_eq!((report.added, report.unchanged), (0, 1), "{report:?}");
}
