//! Rows and blobs go with the grain or the user they belong to, in one commit with them, and off the disk with the
//! scrub. Those of others stay.

use super::*;
use crate::EraseOptions;

/// Rows and blobs of everybody, with the secret in them, and the grains they belong to.
fn fill(session: &Session) -> [ContentAddress; 3] {
    let grains =
        [put(session, Some(ANN), 1), put(session, Some(ANN), 2), put(session, Some(BOB), 3)];
    let owners = owners(grains);
    let rows = (0..).zip(&owners).flat_map(|(number, owner)| {
        let value = [SECRET, &[b'0' + number]].concat();
        let key = [SECRET, &[b'a' + number]].concat();
        [
            RowChange::put(APP, 1, u64::from(number), &value).owner(owner.clone()),
            RowChange::put(APP, 2, key, &value).owner(owner.clone()),
        ]
    });
    session.write_rows(rows).unwrap();
    for owner in owners {
        session.put_side_blob(picture(), owner).unwrap();
    }
    grains
}

fn owners([first, second, of_bob]: [ContentAddress; 3]) -> [Owner; 6] {
    let grains = [first, second, of_bob].map(Owner::Grain);
    let [first, second, of_bob] = grains;
    [Owner::Store, user(ANN), first, second, user(BOB), of_bob]
}

fn picture() -> Vec<u8> {
    [SECRET, &large(3)].concat()
}

/// The numbers of the rows that are there, each with its blob.
fn left(session: &Session, grains: [ContentAddress; 3]) -> Vec<u64> {
    let found: Vec<_> = all_rows(session, 1).into_iter().map(|(number, _)| number).collect();
    let page = session.rows(APP, 2, &RowRange::BytesAfter(None), 100).unwrap();
    assert_eq!(page.rows.len(), found.len());
    let address = ContentAddress::of(&picture());
    for (number, owner) in (0..).zip(owners(grains)) {
        let blob = session.side_blob(&address, &owner);
        match found.contains(&number) {
            true => assert_eq!(blob.unwrap(), picture()),
            false => assert!(["ERR_NOT_FOUND", "ERR_ERASED"].contains(&code(blob))),
        }
    }
    found
}

#[test]
fn what_belongs_to_a_grain_is_erased_with_it() {
    for encrypted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), encrypted);
        let session = operator(&store);
        let grains = fill(&session);
        let tried = session.erase(&grains[0], "a test", &EraseOptions::new().dry_run(true));
        let tried = tried.unwrap();
        assert_eq!((tried.application.rows, tried.application.blobs), (2, 1));
        assert_eq!(left(&session, grains), [0, 1, 2, 3, 4, 5]);
        let done = session.erase(&grains[0], "a test", &EraseOptions::new().now(true)).unwrap();
        assert_eq!((done.application.rows, done.application.blobs), (2, 1));
        assert!(done.scrubbed);
        assert_eq!(left(&session, grains), [0, 1, 3, 4, 5]);
        assert_eq!(store.verify(true).unwrap().problems, []);
        let refused = session.put_row(APP, 1, 9, b"late", Owner::Grain(grains[0]));
        assert_eq!(code(refused), "ERR_ERASED");
        drop(session);
        store.close().unwrap();
        let gone = [SECRET, b"2"].concat();
        assert_eq!(files_with(dir.path(), &gone), [""; 0]);
        assert_eq!(files_with(dir.path(), &[SECRET, b"3"].concat()).is_empty(), encrypted);
    }
}

#[test]
fn what_belongs_to_a_user_is_erased_with_them_and_leaves_the_disk() {
    for encrypted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), encrypted);
        let session = operator(&store);
        let grains = fill(&session);
        let report = session.subject_report(ANN).unwrap();
        assert_eq!((report.counts["application_rows"], report.counts["blobs"]), (6, 3));
        let tried = session.erase_user(ANN, "asked", &EraseOptions::new().dry_run(true)).unwrap();
        drop(session);
        store.close().unwrap();
        let before = raw_rows(dir.path());
        let store = open(dir.path(), encrypted);
        let session = operator(&store);
        let done = session.erase_user(ANN, "asked", &EraseOptions::new()).unwrap();
        assert_eq!((done.application.rows, done.application.blobs), (6, 3));
        assert_eq!(tried.application, done.application);
        let proof = done.certificate.unwrap();
        let entry = proof.verify(&crate::format::OfflineResolver).unwrap();
        assert_eq!(entry.application, Some(done.application));
        // At once, and after the scrub; what comes in between is a new beginning.
        assert_eq!(left(&session, grains), [0, 4, 5]);
        session.put_row(APP, 1, 1, b"a new beginning", user(ANN)).unwrap();
        store.scrub().unwrap();
        let rows = all_rows(&session, 1);
        assert_eq!(rows[1], (1, b"a new beginning".to_vec()));
        assert!(session.remove_row(APP, 1, 1).unwrap());
        assert_eq!(left(&session, grains), [0, 4, 5]);
        assert_eq!(store.verify(true).unwrap().problems, []);
        drop(session);
        store.close().unwrap();
        for number in [b"1", b"2", b"3"] {
            assert_eq!(files_with(dir.path(), &[SECRET, &number[..]].concat()), [""; 0]);
        }
        let kept: BTreeSet<_> = raw_rows(dir.path()).into_iter().collect();
        let gone: Vec<_> = before.iter().filter(|row| !kept.contains(*row)).collect();
        // Six rows, and three blobs of a head and three chunks.
        assert_eq!(gone.len(), 6 + 3 * (1 + 3));
        // The owner, and of the envelope what is theirs alone: its checksum, or the slot of their key.
        let heads = gone.iter().map(|row| &row[..39]).collect();
        assert_eq!(files_with_any(dir.path(), &heads), [""; 0]);
        assert_eq!(raw(dir.path(), layout::OWNED).len(), 6);
        assert_eq!(open(dir.path(), encrypted).verify(true).unwrap().problems, []);
    }
}

#[test]
fn a_user_of_whom_there_are_rows_alone_is_erased() {
    for encrypted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), encrypted);
        let session = operator(&store);
        session.put_row(APP, 1, "key", SECRET, user("e\u{301}ve")).unwrap();
        let done = session.erase_user("\u{e9}ve", "asked", &EraseOptions::new().now(true)).unwrap();
        assert_eq!((done.erased, done.application.rows), (0, 1));
        assert_eq!(session.row(APP, 1, "key").unwrap(), None);
        drop(session);
        store.close().unwrap();
        assert_eq!(files_with(dir.path(), SECRET), [""; 0]);
    }
}

#[test]
fn what_belongs_to_a_held_grain_is_neither_erased_nor_changed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), true);
    let session = operator(&store);
    let grains = fill(&session);
    session.hold(&grains[0], "a case").unwrap();
    let refused = session.erase_user(ANN, "asked", &EraseOptions::new());
    assert_eq!(code(refused), "ERR_INVALIDATION_DENIED");
    assert_eq!(left(&session, grains), [0, 1, 2, 3, 4, 5]);
    let own = Owner::Grain(grains[0]);
    let held = session.rows(APP, 1, &RowRange::Numbers(0..=u64::MAX), 100).unwrap().rows;
    let held = held.into_iter().map(|row| row.key).find(|key| {
        let denied = session.remove_row(APP, 1, key.clone());
        denied.is_err_and(|error| error.code() == "ERR_INVALIDATION_DENIED")
    });
    let held = held.expect("a row of the held grain");
    assert_eq!(code(session.put_row(APP, 1, held.clone(), b"x", own)), "ERR_INVALIDATION_DENIED");
    session.lift_hold(&grains[0], "over", None).unwrap();
    assert!(session.remove_row(APP, 1, held).unwrap());
}
