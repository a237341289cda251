//! What the calls answer, keep and refuse.

use super::*;
use crate::limits::{
    MAX_APPLICATION_BYTES, MAX_KEY_BYTES, MAX_ROW_CHANGE_BYTES, MAX_ROW_CHANGES, MAX_ROW_PAGE,
    MAX_SIDE_BLOB_BYTES, MAX_VALUE_BYTES,
};
use crate::{ApplicationKey, SessionOptions};

#[test]
fn what_is_written_is_read_also_after_reopening_and_from_a_copy() {
    for (encrypted, compress) in [(false, false), (false, true), (true, false), (true, true)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = Store::open(&path, &options(encrypted).compress(compress)).unwrap();
        let session = operator(&store);
        let grain = put(&session, Some(ANN), 1);
        let big = vec![b'a'; MAX_VALUE_BYTES];
        let changes = [
            RowChange::put(APP, 1, "color", b"red").owner(user(ANN)),
            RowChange::put(APP, 2, 8, b"eight"),
            RowChange::put(APP, 2, 9, b"nine").owner(Owner::Grain(grain)),
            RowChange::put(APP, 2, 300, &big),
            RowChange::put(APP, 3, 8, b"of another table"),
            RowChange::put("other", 2, 8, b"of another application"),
            RowChange::put(APP, 2, 8, b"eight again"),
        ];
        let existed = session.write_rows(changes).unwrap();
        assert_eq!(existed, [false, false, false, false, false, false, true]);
        let file = large(1);
        let blobs = [&b""[..], b"small", &vec![b'x'; 3 << 20], &file];
        let addresses = blobs.map(|bytes| session.put_side_blob(bytes, user(ANN)).unwrap());
        assert_eq!(addresses[1], ContentAddress::of(b"small"));
        let entries = store.stats().unwrap().audit_entries;
        assert_eq!(session.put_side_blob(b"small", user(ANN)).unwrap(), addresses[1]);
        assert_eq!(store.stats().unwrap().audit_entries, entries, "it was there");
        let check = |store: &Store| {
            let session = operator(store);
            assert_eq!(session.row(APP, 1, "color").unwrap(), Some(b"red".to_vec()));
            assert_eq!(session.row(APP, 1, "shape").unwrap(), None);
            let rows = all_rows(&session, 2);
            let short: Vec<_> = rows.iter().map(|(key, value)| (*key, value.len())).collect();
            assert_eq!(short, [(8, 11), (9, 4), (300, MAX_VALUE_BYTES)]);
            for (address, bytes) in addresses.iter().zip(blobs) {
                assert_eq!(session.side_blob(address, &user(ANN)).unwrap(), bytes);
                assert_eq!(code(session.side_blob(address, &Owner::Store)), "ERR_NOT_FOUND");
            }
            let stats = store.stats().unwrap();
            assert_eq!((stats.application_rows, stats.side_blobs), (6, 4));
            let verified = store.verify(true).unwrap();
            assert_eq!(verified.problems, []);
            let checked = verified.checked.unwrap();
            assert_eq!((checked.application_rows, checked.application_blobs), (6, 4));
        };
        check(&store);
        store.compact().unwrap();
        check(&store);
        store.backup(dir.path().join("copy")).unwrap();
        drop(session);
        store.close().unwrap();
        check(&open(&path, encrypted));
        check(&open(&dir.path().join("copy"), encrypted));
        let read_only = Store::open(&path, &options(encrypted).create(false).read_only(true));
        let read_only = read_only.unwrap();
        let session = operator(&read_only);
        assert_eq!(session.row(APP, 1, "color").unwrap(), Some(b"red".to_vec()));
        assert_eq!(code(session.remove_row(APP, 1, "color")), "ERR_READ_ONLY");
        assert_eq!(code(session.put_side_blob(b"new", Owner::Store)), "ERR_READ_ONLY");
    }
}

#[test]
fn rows_are_replaced_and_removed_with_their_owners() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), false);
    let session = operator(&store);
    for (owner, existed) in [(user(ANN), false), (user(BOB), true), (Owner::Store, true)] {
        assert_eq!(session.put_row(APP, 1, "key", b"value", owner).unwrap(), existed);
        assert_eq!(store.verify(true).unwrap().problems, []);
    }
    session.put_row(APP, 1, "key", b"value", user(ANN)).unwrap();
    assert!(session.remove_row(APP, 1, "key").unwrap());
    assert!(!session.remove_row(APP, 1, "key").unwrap());
    let address = session.put_side_blob(large(2), user(ANN)).unwrap();
    assert!(!session.remove_side_blob(&address, Owner::Store).unwrap());
    assert!(session.remove_side_blob(&address, user(ANN)).unwrap());
    assert_eq!(store.verify(true).unwrap().problems, []);
    store.close().unwrap();
    assert_eq!((raw(dir.path(), layout::OWNED).len(), raw_rows(dir.path()).len()), (0, 0));
}

#[test]
fn pages_have_every_row_once() {
    for encrypted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), encrypted);
        let session = operator(&store);
        let numbers = [0, 1, 255, 256, u64::MAX - 1, u64::MAX];
        let mut changes: Vec<_> =
            numbers.map(|number| RowChange::put(APP, 1, number, number.to_be_bytes())).into();
        changes.extend((0..50).map(|key| RowChange::put(APP, 1, &*format!("key {key}"), [key])));
        changes.push(RowChange::put(APP, 2, 1, b""));
        changes.push(RowChange::put(APP, 0, u64::MAX, b""));
        session.write_rows(changes).unwrap();
        for limit in [1, 2, 6, 49, 50, 51, 1000] {
            let whole = RowRange::Numbers(0..=u64::MAX);
            for (first, count) in [(whole, 6), (RowRange::BytesAfter(None), 50)] {
                let (mut next, mut found) = (Some(first), Vec::new());
                while let Some(range) = next {
                    let page = session.rows(APP, 1, &range, limit).unwrap();
                    assert!(page.rows.len() <= limit);
                    found.extend(page.rows.into_iter().map(|row| row.key));
                    next = page.next;
                }
                let different: BTreeSet<_> = found.iter().collect();
                assert_eq!((found.len(), different.len()), (count, count), "{limit}");
            }
        }
        let page = session.rows(APP, 1, &RowRange::Numbers(1..=255), 10).unwrap();
        let keys: Vec<_> = page.rows.into_iter().map(|row| row.key).collect();
        assert_eq!(keys, [1, 255].map(ApplicationKey::Number));
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_of_its_batch_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), true);
    let session = operator(&store);
    let gone = put(&session, None, 1);
    session.erase(&gone, "a test", &crate::EraseOptions::new()).unwrap();
    let long = "x".repeat(MAX_APPLICATION_BYTES + 1);
    let key = vec![1; MAX_KEY_BYTES + 1];
    let value = vec![1; MAX_VALUE_BYTES + 1];
    let no_grain = Owner::Grain(ContentAddress::of(b"no grain"));
    let good = || RowChange::put(APP, 1, 1, b"good");
    for (change, refused) in [
        (RowChange::put("", 1, 1, b""), "ERR_EMPTY"),
        (RowChange::put(long.as_str(), 1, 1, b""), "ERR_TOO_LARGE"),
        (RowChange::put(APP, 1, "", b""), "ERR_EMPTY"),
        (RowChange::put(APP, 1, key, b""), "ERR_TOO_LARGE"),
        (RowChange::put(APP, 1, 1, value), "ERR_TOO_LARGE"),
        (good().owner(user("")), "ERR_EMPTY"),
        (good().owner(no_grain.clone()), "ERR_NOT_FOUND"),
        (good().owner(Owner::Grain(gone)), "ERR_ERASED"),
    ] {
        let error = session.write_rows([good(), change]).unwrap_err();
        assert_eq!((error.code(), error.batch_index()), (refused, Some(1)));
        assert_eq!(session.row(APP, 1, 1).unwrap(), None);
    }
    let many = (0..=MAX_ROW_CHANGES as u64).map(|number| RowChange::remove(APP, 1, number));
    assert_eq!(code(session.write_rows(many)), "ERR_LIMIT");
    let most = vec![0; MAX_VALUE_BYTES];
    let number = (MAX_ROW_CHANGE_BYTES / MAX_VALUE_BYTES) as u64;
    let heavy = (0..=number).map(|number| RowChange::put(APP, 1, number, &most));
    assert_eq!(code(session.write_rows(heavy)), "ERR_LIMIT");
    assert_eq!(session.write_rows([]).unwrap(), [false; 0]);
    #[expect(clippy::reversed_empty_ranges, reason = "it is refused")]
    let reversed = RowRange::Numbers(2..=1);
    assert_eq!(code(session.rows(APP, 1, &reversed, 1)), "ERR_RANGE");
    for limit in [0, MAX_ROW_PAGE + 1] {
        assert_eq!(code(session.rows(APP, 1, &RowRange::BytesAfter(None), limit)), "ERR_LIMIT");
    }
    assert_eq!(code(session.row("", 1, 1)), "ERR_EMPTY");
    assert_eq!(
        code(session.put_side_blob(vec![0; MAX_SIDE_BLOB_BYTES + 1], Owner::Store)),
        "ERR_TOO_LARGE"
    );
    assert_eq!(code(session.put_side_blob(b"x", no_grain)), "ERR_NOT_FOUND");
    assert!(session.row(APP, 255, u64::MAX).unwrap().is_none(), "the writer goes on");
    session.write_rows([good()]).unwrap();
    assert_eq!(store.verify(true).unwrap().problems, []);
}

#[test]
fn others_than_the_operator_are_refused_and_batches_are_audited() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), false);
    let session = operator(&store);
    session.write_rows([1, 2, 3].map(|number| RowChange::put(APP, 1, number, b""))).unwrap();
    let address = session.put_side_blob(b"file", Owner::Store).unwrap();
    session.remove_side_blob(&address, Owner::Store).unwrap();
    let entries = session.audit(None, 100).unwrap();
    let told: Vec<_> = entries
        .iter()
        .filter_map(|entry| Some((entry.operation.as_str(), entry.application?)))
        .map(|(operation, counts)| (operation, counts.rows, counts.blobs))
        .collect();
    assert_eq!(told, [("write_rows", 3, 0), ("put_side_blob", 0, 1), ("remove_side_blob", 0, 1)]);
    let team = SessionOptions { namespace: Some("team".to_owned()), ..Default::default() };
    let ann = SessionOptions { user_id: Some(ANN.to_owned()), ..Default::default() };
    for options in [team, ann] {
        let other = store.session(options);
        for refused in [
            code(other.put_row(APP, 1, 1, b"", Owner::Store)),
            code(other.row(APP, 1, 1)),
            code(other.rows(APP, 1, &RowRange::Numbers(0..=9), 9)),
            code(other.remove_row(APP, 1, 1)),
            code(other.put_side_blob(b"", Owner::Store)),
            code(other.side_blob(&address, &Owner::Store)),
            code(other.remove_side_blob(&address, Owner::Store)),
        ] {
            assert_eq!(refused, "ERR_ACCESS");
        }
    }
}
