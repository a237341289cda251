//! The index is rebuilt under readers and writers, and answers as before.

use crate::kit::{answers, filled, open, while_busy};

#[test]
fn a_rebuilt_index_gives_the_same_answers() {
    let (dir, store) = filled(200);
    let before = answers(&store);
    assert_eq!(store.reindex().unwrap(), store.stats().unwrap().grains);
    assert_eq!(answers(&store), before);
    assert!(store.verify(true).unwrap().ok);
    store.close();
    assert_eq!(answers(&open(dir.path())), before);
}

#[test]
fn no_write_is_lost_and_no_read_fails_while_the_index_is_rebuilt() {
    let (_dir, store) = filled(50);
    while_busy(&store, || {
        for _ in 0..5 {
            store.reindex().unwrap();
        }
    });
    assert!(store.verify(true).unwrap().ok);
}
