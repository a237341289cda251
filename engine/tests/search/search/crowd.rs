//! Four writers and four readers at once: who has written finds it at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::search::kit::{belief, found, store, turn};

#[test]
fn everybody_finds_what_they_wrote_while_others_write_and_search() {
    const EACH: usize = 120;
    let (_dir, session) = store();
    let written = AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (session, written) = (session.clone(), &written);
            scope.spawn(move || {
                for at in 0..EACH {
                    let word = format!("word{writer}x{at}");
                    let grain = match at % 3 {
                        0 => turn(&format!("talk{writer}"), "u", i64::try_from(at).unwrap(), &word),
                        _ => belief("somebody", &word),
                    };
                    let address = session.put(grain).unwrap().address();
                    written.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(found(&session, &word).first(), Some(&address), "{word}");
                }
            });
        }
        for _ in 0..4 {
            let (session, written) = (session.clone(), &written);
            scope.spawn(move || {
                let mut last = 0;
                while last < 4 * EACH {
                    let before = written.load(Ordering::SeqCst);
                    let seen =
                        found(&session, "word*").len().max(found(&session, "somebody").len());
                    // Beliefs alone have the word; of three writes two are beliefs.
                    assert!(seen * 3 + 16 >= before * 2, "{seen} of {before}");
                    last = before;
                }
            });
        }
    });
}
