//! A report has all of a user and nothing else: what an erasure would take.

use std::collections::BTreeSet;

use grainstore::{EraseOptions, ExportOptions, ImportOptions, SessionOptions};
use tempfile::TempDir;

use crate::erase::kit::{ANN, BOB, World, code, open, operator};

#[test]
fn a_report_has_what_an_erasure_takes() {
    let (dir, beside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(dir.path());
    let world = World::of(&store, 5);
    let session = operator(&store);
    let report = session.subject_report(ANN).unwrap();
    let expected: BTreeSet<_> = world.of_ann.iter().copied().collect();
    assert_eq!(report.addresses.iter().copied().collect::<BTreeSet<_>>(), expected);
    let count = |name: &str| report.counts.get(name).copied();
    assert_eq!(count("grains"), Some(expected.len() as u64));
    assert_eq!(count("current"), Some(expected.len() as u64 - 2));
    assert_eq!((count("event"), count("held")), (Some(6), Some(0)));
    let grains = session.subject_grains(ANN).unwrap();
    assert_eq!(grains.iter().map(|g| g.address).collect::<Vec<_>>(), report.addresses);
    let file = beside.path().join("ann.mg");
    let exported = session.export_subject(&file, ANN, &ExportOptions::default()).unwrap();
    assert_eq!(exported.exported, expected.len() as u64);
    let other = open(&beside.path().join("other"));
    let imported = operator(&other).import([&file], &ImportOptions::default()).unwrap();
    assert_eq!((imported.added, imported.refused), (expected.len() as u64, 0));
    for address in &expected {
        let (there, here) = (operator(&other).get(address).unwrap(), session.get(address).unwrap());
        assert_eq!((there.blob, there.state), (here.blob, here.state));
    }
    assert_eq!(
        session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap().erased,
        exported.exported
    );
    assert!(session.subject_report(ANN).unwrap().addresses.is_empty());
}

#[test]
fn a_report_is_for_the_operator_and_for_the_user() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    World::of(&store, 6);
    let of = |user: Option<&str>, namespace: Option<&str>| {
        store.session(SessionOptions {
            user_id: user.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            actor: Some("did:web:agent".to_owned()),
            ..SessionOptions::default()
        })
    };
    assert!(of(Some(ANN), None).subject_report(ANN).is_ok());
    for refused in [of(Some(BOB), None), of(Some(ANN), Some("home")), of(None, Some("home"))] {
        assert_eq!(code(refused.subject_report(ANN)), "ERR_ACCESS");
        assert_eq!(code(refused.subject_grains(ANN)), "ERR_ACCESS");
        let file = dir.path().with_extension("mg");
        assert_eq!(
            code(refused.export_subject(file, ANN, &ExportOptions::default())),
            "ERR_ACCESS"
        );
    }
    assert_eq!(code(operator(&store).subject_report("")), "ERR_EMPTY");
}
