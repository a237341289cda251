//! Somebody meddles with the files under `text/` and `vectors/` while a store is written and searched,
//! and while its process is killed: no answer shows it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedding, Metric};
use grainstore::{ContentAddress, Offer, OpenOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

use crate::search::kit::{belief, found, scored, turn};
use crate::search::random::Random;

/// Tells the process to be killed where to write, and for the how manieth time.
const CHILD: &str = "GRAINSTORE_MEDDLED_CHILD";
const GENERATION: &str = "GRAINSTORE_MEDDLED_GENERATION";
const ROUNDS: usize = 6;
/// Grains of one batch of a writer, and the batches one writes.
const BATCH: usize = 20;
const BATCHES: usize = 40;

/// Everything under the derived directories, by its bytes.
type Copy = Vec<(PathBuf, Vec<u8>)>;

fn copy_of(store: &Path) -> Copy {
    let folders = ["text", "vectors"].map(|name| fs::read_dir(store.join(name)));
    let entries = folders.into_iter().flatten().flatten().flatten();
    // A file may go while it is looked at.
    let read = |path: PathBuf| fs::read(&path).ok().map(|bytes| (path, bytes));
    entries.filter_map(|entry| read(entry.path())).collect()
}

/// Does one harm to a derived file, or puts back an older copy of all.
fn meddle(store: &Path, random: &mut Random, older: &mut Vec<Copy>) {
    let copy = copy_of(store);
    if copy.is_empty() {
        return;
    }
    let (file, bytes) = &copy[random.below(copy.len())];
    // The store may be replacing or removing the same file: whoever is last wins.
    let _ = match random.below(6) {
        0 => fs::remove_file(file),
        1 => fs::write(file, &bytes[..bytes.len() / 2]),
        2 => fs::write(file, b""),
        3 => {
            let mut bytes = bytes.clone();
            let at = random.below(bytes.len().max(1));
            bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 0x10);
            fs::write(file, bytes)
        }
        4 => fs::remove_dir_all(store.join(["text", "vectors"][random.below(2)])),
        _ => {
            let mut copies = older.get(random.below(older.len().max(1))).into_iter().flatten();
            copies.try_for_each(|(file, bytes)| fs::write(file, bytes))
        }
    };
    if random.percent(30) {
        older.push(copy);
    }
}

/// Writes batches that are found at once, with vectors, and supersedes some.
fn write(session: &Session, name: &str, told: &mut dyn FnMut(&str)) {
    for batch in 0..BATCHES {
        let word = format!("word{name}x{batch}");
        let offer = |at: usize| {
            let grain = match at % 3 {
                0 => {
                    let second = i64::try_from(batch * BATCH + at).unwrap();
                    turn(&format!("talk {name}"), "u", second, &word)
                }
                _ => belief(&format!("somebody {at}"), &word),
            };
            let values = vec![at as f32 + 1.0, batch as f32, 1.0, name.len() as f32];
            let vector = Embedding::new("m", Metric::Cosine, values).unwrap();
            Offer::Grain(grain).with_vectors(vec![vector])
        };
        let puts = session.put_batch((0..BATCH).map(offer)).unwrap();
        let second = puts[1].address();
        assert!(found(session, &word).contains(&second), "{word}");
        session.supersede(&second, belief("somebody", &format!("{word} again")), None).unwrap();
        assert!(!found(session, &word).contains(&second), "{word} was superseded");
        if batch % 4 == 3 {
            session.store().flush().unwrap();
        }
        told(&word);
    }
}

/// Answers by words and by a vector: addresses and the bits of scores.
fn answers(session: &Session) -> Vec<Vec<(ContentAddress, u64)>> {
    let mut answers: Vec<_> = ["somebody 1", "again", "\"somebody 4\"", "word*", "talk"]
        .map(|text| scored(session, &Query::default().searching(text)))
        .into();
    for values in [[1.0, 2.0, 3.0, 4.0], [9.0, 1.0, 0.0, 1.0]] {
        let near = Near { model: None, values: values.as_slice().into() };
        answers.push(scored(session, &Query::default().nearing(near)));
    }
    answers
}

/// Opens a store, asks, and asks again once everything derived was made anew.
fn check(store: &Path, what: &str) {
    let ask = || {
        let store = Store::open(store, &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let answers = answers(&session);
        store.close().unwrap();
        answers
    };
    let after = ask();
    for name in ["text", "vectors"] {
        let _ = fs::remove_dir_all(store.join(name));
    }
    let anew = ask();
    for (at, (after, anew)) in after.iter().zip(&anew).enumerate() {
        assert!(after == anew, "{what}: answer {at}, {} and {} rows", after.len(), anew.len());
    }
    assert!(anew.iter().any(|answer| !answer.is_empty()), "{what}: nothing was written");
}

#[test]
fn files_that_somebody_changes_while_a_store_is_written_change_no_answer() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let done = AtomicBool::new(false);
    let harm = thread::scope(|scope| {
        let meddler = scope.spawn(|| {
            let (mut random, mut older, mut harm) = (Random::new(3), Vec::new(), 0);
            while !done.load(Ordering::SeqCst) {
                meddle(dir.path(), &mut random, &mut older);
                harm += usize::from(!older.is_empty());
                thread::sleep(Duration::from_millis(2));
            }
            harm
        });
        let writers = ["a", "bb"].map(|name| {
            let session = store.session(SessionOptions::default());
            scope.spawn(move || write(&session, name, &mut |_| {}))
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        meddler.join().unwrap()
    });
    assert!(harm > 10, "the files were touched {harm} times");
    let open = answers(&store.session(SessionOptions::default()));
    store.close().unwrap();
    let again = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    assert!(answers(&again.session(SessionOptions::default())) == open);
    again.close().unwrap();
    check(dir.path(), "closed");
}

#[test]
fn a_killed_process_and_changed_files_cost_no_answer() {
    if let Ok(directory) = std::env::var(CHILD) {
        let store = Store::open(directory, &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let name = std::env::var(GENERATION).unwrap();
        write(&session, &name, &mut |word| {
            let mut output = std::io::stdout().lock();
            // Nobody listens to a process that is being killed.
            let _ = writeln!(output, "told {word}").and_then(|()| output.flush());
        });
        return;
    }
    let dir = TempDir::new().unwrap();
    let place = dir.path().join("store");
    let (mut random, mut older) = (Random::new(7), Vec::new());
    let mut told = Vec::new();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "search::meddled::a_killed_process_and_changed_files_cost_no_answer"])
            .arg("--nocapture")
            .env(CHILD, &place)
            .env(GENERATION, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut left = 2 + random.below(12);
        for line in output.lines() {
            let Ok(line) = line else { break };
            let Some(word) = line.strip_prefix("told ") else { continue };
            told.push(word.to_owned());
            meddle(&place, &mut random, &mut older);
            left = left.saturating_sub(1);
            if left == 0 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        meddle(&place, &mut random, &mut older);
        check(&place, &format!("round {round}"));
        let store = Store::open(&place, &OpenOptions::new()).unwrap();
        let session = store.session(SessionOptions::default());
        for word in &told {
            // Of every batch all but the one that was superseded, and the one in its place.
            let beliefs = found(&session, word);
            assert!(beliefs.len() >= BATCH, "{word}: {}", beliefs.len());
        }
        store.close().unwrap();
    }
    assert!(told.len() >= 2 * ROUNDS, "{told:?}");
}
