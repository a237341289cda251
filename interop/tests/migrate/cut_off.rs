//! A run that was cut off between its grains and the rows that tell of them: the next run goes on from what it left, and
//! what of it was erased stays erased.

use grainstore::{ApplicationKey, ApplicationRow, EraseOptions, RowChange, RowRange};
use grainstore_interop::migrate::{Format, Undated};

use crate::kit::Kit;

const GRAINS: u8 = 1;
const IDS: u8 = 2;

fn rows(kit: &Kit, table: u8) -> Vec<ApplicationRow> {
    let range = RowRange::BytesAfter(None);
    kit.session.rows("migrate", table, &range, 1000).unwrap().rows
}

/// Makes the store what a run has left that was cut off behind its grains. `before` are the rows that were there before it.
fn cut_off(kit: &Kit, before: &[ApplicationRow]) {
    for row in rows(kit, GRAINS) {
        let old = before.iter().find(|old| old.key == row.key);
        if old.is_some_and(|old| old.value == row.value) {
            continue;
        }
        // Form, grain, digest, an end, version; and on its way form, digest, grain, length, version.
        let (head, rest) = row.value.split_at(1).1.split_at(32);
        let (digest, rest) = rest.split_at(32);
        let version = rest.split_at(1).1;
        let length = u8::try_from(version.len()).unwrap();
        let intent = [&[1][..], digest, head, &[length], version].concat();
        let key: ApplicationKey = row.key.clone();
        let mut changes = vec![RowChange::put("migrate", IDS, key.clone(), intent)];
        changes.push(match old {
            Some(old) => RowChange::put("migrate", GRAINS, key, old.value.clone()),
            None => RowChange::remove("migrate", GRAINS, key),
        });
        kit.session.write_rows(changes).unwrap();
    }
}

fn dump(kit: &Kit, text: &str, day: u32) -> std::path::PathBuf {
    kit.file(
        "m.json",
        format!(
            r#"{{"results": [{{"id": "m1", "memory": "{text}", "user_id": "ann",
        "created_at": "2026-01-02T09:00:00Z", "updated_at": "2026-01-{day:02}T09:00:00Z"}}]}}"#
        ),
    )
}

fn erase(kit: &Kit, text: &str) {
    for grain in kit.all_by("object", text) {
        let address = grain.encode(Default::default()).unwrap().address();
        kit.session.erase(&address, "a test", &EraseOptions::new()).unwrap();
    }
}

#[test]
fn a_new_record_is_gone_on_from() {
    let kit = Kit::new();
    kit.run(Format::Mem0, &dump(&kit, "tea", 3));
    cut_off(&kit, &[]);
    // The same finds it there, and tells of it from then on.
    let again = kit.run(Format::Mem0, &dump(&kit, "tea", 3));
    assert_eq!((again.added, again.unchanged, rows(&kit, GRAINS).len()), (0, 1, 1), "{again:?}");
    cut_off(&kit, &[]);
    let newer = kit.run(Format::Mem0, &dump(&kit, "coffee", 4));
    assert_eq!((newer.added, newer.changed), (0, 1), "{newer:?}");
    assert!(kit.by("object", "tea").is_empty());
    assert_eq!(kit.by("object", "coffee").len(), 1);
}

#[test]
fn a_changed_record_is_gone_on_from() {
    let kit = Kit::new();
    kit.run(Format::Mem0, &dump(&kit, "tea", 3));
    let before = rows(&kit, GRAINS);
    kit.run(Format::Mem0, &dump(&kit, "coffee", 4));
    cut_off(&kit, &before);
    let again = kit.run(Format::Mem0, &dump(&kit, "coffee", 4));
    assert_eq!((again.changed, again.unchanged), (0, 1), "{again:?}");
    cut_off(&kit, &before);
    let newer = kit.run(Format::Mem0, &dump(&kit, "water", 5));
    assert_eq!((newer.changed, newer.left_out), (1, 0), "{newer:?}");
    assert_eq!(kit.by("subject", "ann").len(), 1);
    assert_eq!(kit.by("object", "water").len(), 1);
}

#[test]
fn what_was_erased_then_stays_erased() {
    let kit = Kit::new();
    kit.run(Format::Mem0, &dump(&kit, "tea", 3));
    let before = rows(&kit, GRAINS);
    cut_off(&kit, &[]);
    erase(&kit, "tea");
    for (text, day) in [("tea", 3), ("coffee", 4)] {
        let again = kit.run(Format::Mem0, &dump(&kit, text, day));
        assert_eq!((again.added, again.left_out), (0, 1), "{again:?}");
    }
    let kit = Kit::new();
    kit.run(Format::Mem0, &dump(&kit, "tea", 3));
    kit.run(Format::Mem0, &dump(&kit, "coffee", 4));
    cut_off(&kit, &before);
    erase(&kit, "coffee");
    let again = kit.run(Format::Mem0, &dump(&kit, "coffee", 4));
    assert_eq!((again.added, again.changed, again.left_out), (0, 0, 1), "{again:?}");
}

#[test]
fn what_has_no_date_is_not_there_twice() {
    let mut kit = Kit::new();
    kit.options.undated = Undated::ImportTime;
    let text = r#"{"results": [{"id": "m1", "memory": "tea", "user_id": "ann"}]}"#;
    let path = kit.file("u.json", text);
    kit.run(Format::Mem0, &path);
    cut_off(&kit, &[]);
    // Another run begins at another time.
    std::thread::sleep(std::time::Duration::from_millis(5));
    let again = kit.run(Format::Mem0, &path);
    assert_eq!((again.added, again.unchanged), (0, 1), "{again:?}");
    assert_eq!(kit.by("object", "tea").len(), 1);
}
