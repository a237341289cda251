//! Tests of when a writer has to help a full text that others follow.

use tempfile::TempDir;

use super::*;
use crate::{Grain, OpenOptions, SessionOptions, Store};

#[test]
fn a_full_text_that_is_begun_anew_holds_up_no_writer() {
    let (dir, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let grain = |at: usize| {
        let json = format!(
            r#"{{"type": "belief", "subject": "s{at}", "relation": "r", "object": "tea",
                "confidence": 0.5, "created_at": 1000}}"#
        );
        Grain::from_json(&json).unwrap()
    };
    session.put_batch((0..700).map(grain)).unwrap();
    let view = session.view().unwrap();
    let library = TextIndex::new(
        Some(home.path()),
        TextSettings::default(),
        &Vault::default(),
        MemoryBudget::new(16 << 20),
    );
    library.of(&view, &CancelHandle::new()).unwrap().unwrap();
    let told = |of: &TextIndex| {
        let WriterLag { last_sequence: reached, initial_lag: debt } = &of.progress;
        (reached.load(Ordering::Relaxed), debt.load(Ordering::Relaxed))
    };
    assert_eq!(told(&library), (700, 700));
    // Much later, the debt it began with no longer counts.
    library.progress.reset(700 + 2 * MAX_LAG_GRAINS, 0);
    library
        .restart_after(&mut library.lock(), &Error::integrity("a segment is damaged"), &view)
        .unwrap();
    assert_eq!(told(&library), (0, 700), "it owes what it owed when it was first read");
    assert_eq!(library.lock().loaded().unwrap().stats().documents, 0);
    let last = 700 + MAX_LAG_GRAINS;
    assert!(!library.progress.is_far_behind(last), "which no writer makes up for");
    assert!(library.progress.is_far_behind(last + 1));
    assert_eq!(library.of(&view, &CancelHandle::new()).unwrap().unwrap().stats().documents, 700);
    assert_eq!(told(&library), (700, 700));
}
