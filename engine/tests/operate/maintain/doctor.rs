//! The doctor tells what keeps a store from working, what was left over, and what to do.

use std::fs;

use grainstore::{Diagnosis, Health, OpenOptions, doctor};
use tempfile::TempDir;

use crate::maintain::kit::{copy, filled, names};

fn examine(path: &std::path::Path) -> Diagnosis {
    doctor(path, &OpenOptions::new().wait(std::time::Duration::ZERO))
}

fn of<'d>(diagnosis: &'d Diagnosis, name: &str) -> &'d grainstore::Finding {
    diagnosis.findings.iter().find(|finding| finding.name == name).unwrap()
}

#[test]
fn a_healthy_store_is_examined_and_left_as_it_was() {
    let (dir, store) = filled(20);
    assert!(store.doctor().ok);
    store.close().unwrap();
    let diagnosis = examine(dir.path());
    assert!(diagnosis.ok, "{diagnosis:?}");
    for name in ["directory", "leftovers", "lock", "format", "closing", "tail", "pages"] {
        assert_eq!(of(&diagnosis, name).health, Health::Good, "{name}");
    }
    assert_eq!(
        names(dir.path()),
        ["LOCK", "grains.redb", "index.redb", "reads"].map(String::from).into()
    );
}

#[test]
fn no_store_a_busy_store_and_one_that_is_none_are_told_apart() {
    let empty = TempDir::new().unwrap();
    let diagnosis = examine(&empty.path().join("nothing"));
    assert!(!diagnosis.ok);
    assert_eq!(of(&diagnosis, "directory").health, Health::Bad);
    assert_eq!(names(empty.path()).len(), 0, "looking creates nothing");

    let (dir, _store) = filled(3);
    let diagnosis = examine(dir.path());
    assert_eq!(of(&diagnosis, "lock").health, Health::Bad);
    assert_eq!(of(&diagnosis, "lock").code, Some("ERR_BUSY"));

    fs::write(empty.path().join("grains.redb"), "text").unwrap();
    let diagnosis = examine(empty.path());
    assert_eq!(of(&diagnosis, "opening").health, Health::Bad);
    assert!(of(&diagnosis, "opening").advice.is_some());
}

#[test]
fn leftovers_are_named_and_gone_the_next_time() {
    let (dir, store) = filled(3);
    store.close().unwrap();
    fs::write(dir.path().join("index.redb.new"), "half").unwrap();
    let diagnosis = examine(dir.path());
    assert_eq!(of(&diagnosis, "leftovers").health, Health::Notice);
    assert!(of(&diagnosis, "leftovers").detail.contains("index.redb.new"));
    assert!(diagnosis.ok);
    assert_eq!(of(&examine(dir.path()), "leftovers").health, Health::Good);
}

#[test]
fn a_store_that_was_not_closed_is_noticed() {
    let (dir, _store) = filled(30);
    // The files of an open store, as a power cut would leave them.
    let crashed = copy(dir.path());
    let diagnosis = examine(crashed.path());
    assert!(diagnosis.ok, "{diagnosis:?}");
    let closing = of(&diagnosis, "closing");
    assert_eq!(closing.health, Health::Notice);
    assert!(closing.advice.as_ref().unwrap().contains("verify"));
    assert_eq!(of(&examine(crashed.path()), "closing").health, Health::Good);
}

#[cfg(unix)]
#[test]
fn files_that_others_can_write_are_noticed() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, store) = filled(3);
    store.close().unwrap();
    let file = dir.path().join("grains.redb");
    fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(of(&examine(dir.path()), "rights").health, Health::Notice);
}

#[test]
fn a_full_text_that_is_gone_is_told() {
    let (dir, store) = filled(1100);
    store.close().unwrap();
    let found = examine(dir.path());
    assert_eq!(of(&found, "text").health, Health::Good, "{found:?}");
    fs::remove_dir_all(dir.path().join("text")).unwrap();
    let found = examine(dir.path());
    let text = of(&found, "text");
    assert_eq!(text.health, Health::Notice);
    assert!(found.ok && text.advice.as_ref().unwrap().contains("grain reindex"), "{text:?}");
}
