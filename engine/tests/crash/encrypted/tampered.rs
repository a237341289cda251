//! Somebody who can write the files of an encrypted store and has no key edits rows, also with the right
//! checksums, moves, copies and removes them, swaps slots of the keyring, brings back older ones and cuts files
//! off. Every answer is right, or refused with a code.
//! `GRAINSTORE_TAMPERINGS=2000 cargo test --release -p grainstore --test crash encrypted::tampered` is the long run,
//! from the seed in `GRAINSTORE_TAMPERING_SEED`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedding, Metric};
use grainstore::format::{Encoding, SigningKey, sign};
use grainstore::{
    ContentAddress, EraseOptions, MasterKey, Offer, OpenOptions, Owner, SameFact, Session,
    SessionOptions, Store,
};
use redb::{ReadableDatabase, ReadableTable, TableDefinition, TableHandle, WriteTransaction};
use tempfile::TempDir;

use super::random::Random;
use super::world::{KEY, World, as_user, asked, belief, files_of, options, turn};

/// Bytes of a slot of the keyring.
const SLOT: usize = 128;
/// Tables of the truth whose keys are numbers.
const NUMBERED: [&str; 11] = [
    "log",
    "roots",
    "audit",
    "reasons",
    "templates",
    "destroyed",
    "signatures",
    "vector_spaces",
    "vector_leaving",
    "vectors",
    "vector_rows",
];
/// Those whose keys are bytes.
const KEYED: [&str; 5] = ["tombstones", "blobs", "blob_chunks", "application_rows", "owned"];
const STATE: TableDefinition<'static, u64, &'static [u8; 55]> = TableDefinition::new("state");

/// A store with something of everything, as it was earlier and as it is.
struct Original {
    files: BTreeMap<String, Vec<u8>>,
    earlier: BTreeMap<String, Vec<u8>>,
    addresses: Vec<ContentAddress>,
}

fn original() -> Original {
    let world = World::new();
    let session = world.operator();
    let put = |user, subject, object, at| {
        session.put(belief(user, subject, object, at)).unwrap().address()
    };
    let mut addresses = vec![
        put(Some("ann"), "ann", "green tea", 1000),
        put(Some("bob"), "bob", "green tea", 2000),
        put(Some("ann"), "kim", "black coffee", 3000),
        put(None, "kim", "green paint", 4000),
        put(Some("gus"), "gus", "green soap", 4500),
    ];
    for (user, words, at) in [("ann", "green hills", 5000), ("bob", "grey hills", 6000)] {
        addresses.push(session.put(turn(user, "s", words, at)).unwrap().address());
    }
    let world = world.reopened();
    let earlier = world.files();
    let session = world.operator();
    let old = addresses[2];
    let new = belief(Some("ann"), "kim", "white coffee", 3500);
    addresses.push(session.supersede(&old, new, Some("kim said so")).unwrap());
    session.contradict(&addresses[3], "it is not so", None).unwrap();
    session.hold(&addresses[0], "a case").unwrap();
    for (user, value) in [("ann", [1.0, 0.0]), ("bob", [0.0, 1.0])] {
        let seen = Offer::from(belief(Some(user), "eye", &format!("{user} saw"), 7000));
        let vector = Embedding::new("eyes", Metric::Cosine, value.to_vec()).unwrap();
        addresses.push(session.put(seen.with_vectors(vec![vector])).unwrap().address());
    }
    let blob = belief(Some("cem"), "cem", "signed", 8000).encode(Encoding::default()).unwrap();
    let key = SigningKey::ed25519_from_seed(&[3; 32]);
    addresses.push(session.put(sign(blob.bytes(), &key, None).unwrap()).unwrap().address());
    session.put_fact(belief(Some("bob"), "bob", "red tea", 9000), SameFact::Add).unwrap();
    for (user, number) in [("ann", 1), ("bob", 2), ("gus", 3)] {
        let owner = Owner::User(user.to_owned());
        session.put_row("notes", 1, number, user, owner.clone()).unwrap();
        session.put_side_blob(b"the same file", owner).unwrap();
    }
    session.erase_user("gus", "gus asked", &EraseOptions::new().now(true)).unwrap();
    // The full text of so few grains is written to disk by this alone.
    world.store.reindex().unwrap();
    drop(session);
    let world = world.reopened();
    Original { files: world.files(), earlier, addresses }
}

/// What is asked, each with its answer or the code it was refused with.
type Answers = Vec<(String, Result<String, String>)>;

fn answers(path: &Path, addresses: &[ContentAddress]) -> Result<Answers, &'static str> {
    let store = Store::open(path, &options(MasterKey::new(KEY))).map_err(|error| error.code())?;
    let operator = store.session(SessionOptions::default());
    let mut answers = Answers::new();
    for (number, address) in addresses.iter().enumerate() {
        let stored = operator.get(address);
        let told = stored.map(|stored| {
            let envelope = stored.envelope.as_ref().map(|envelope| envelope.bytes().to_vec());
            format!("{:?} {:?} {envelope:?}", stored.blob, stored.state)
        });
        answers.push((format!("get {number}"), told.map_err(|error| error.code().to_owned())));
        let versions = operator.history(address);
        let versions = versions
            .map(|all| format!("{:?}", all.iter().map(|one| one.address).collect::<Vec<_>>()));
        let refs = operator.embedding_refs(address).map(|refs| format!("{refs:?}"));
        answers.push((format!("refs {number}"), refs.map_err(|error| error.code().to_owned())));
        answers
            .push((format!("history {number}"), versions.map_err(|error| error.code().to_owned())));
    }
    for user in ["ann", "bob", "cem", "gus"] {
        ask_as(&as_user(&store, user), user, &mut answers);
    }
    ask_as(&operator, "operator", &mut answers);
    for (user, number) in [("ann", 1), ("bob", 2), ("gus", 3)] {
        let row = operator.row("notes", 1, number).map(|row| format!("{row:?}"));
        answers.push((format!("row of {user}"), row.map_err(|error| error.code().to_owned())));
        let file = operator
            .side_blob(&ContentAddress::of(b"the same file"), &Owner::User(user.to_owned()))
            .map(|bytes| format!("{bytes:?}"));
        answers.push((format!("blob of {user}"), file.map_err(|error| error.code().to_owned())));
    }
    let entries = operator.audit(None, 20).map(|entries| format!("{entries:?}"));
    answers.push(("audit".to_owned(), entries.map_err(|error| error.code().to_owned())));
    drop(operator);
    // That closing fails is no answer.
    let _ = store.close();
    Ok(answers)
}

fn ask_as(session: &Session, who: &str, answers: &mut Answers) {
    let near = Near { model: Some("eyes".to_owned()), values: [1.0, 0.2].as_slice().into() };
    let questions = [
        ("words", Query::default().searching("green")),
        ("near", Query::default().nearing(near)),
        ("all", Query::default()),
    ];
    for (name, question) in questions {
        let told = asked(session, &question).map(|found| format!("{found:?}"));
        answers.push((format!("{name} as {who}"), told.map_err(str::to_owned)));
    }
    for statement in [
        r#"RECALL beliefs WHERE subject = "kim""#,
        r#"RECALL beliefs WHERE object = "green tea""#,
        "RECALL events",
        "RECALL beliefs | COUNT",
    ] {
        let told = session.ask(statement).map(|response| format!("{:?}", response.answer));
        answers
            .push((format!("{statement} as {who}"), told.map_err(|error| error.code().to_owned())));
    }
    let told = session.history_of("kim", "likes", None, None);
    let told =
        told.map(|all| format!("{:?}", all.iter().map(|one| one.address).collect::<Vec<_>>()));
    answers
        .push((format!("history of kim as {who}"), told.map_err(|error| error.code().to_owned())));
}

/// Rows as bytes, of a table whose keys are put in order by them.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Changes rows somehow. Says what was done.
fn meddle(rows: &mut Rows, random: &mut Random) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let (one, other) = (random.below(rows.len()), random.below(rows.len()));
    Some(match random.below(6) {
        0 => {
            let value = &mut rows[one].1;
            let at = random.below(value.len().max(1));
            *value.get_mut(at)? ^= 1 << random.below(8);
            format!("row {one}: byte {at} edited")
        }
        1 if one != other => {
            rows[other].1 = rows[one].1.clone();
            format!("row {one} copied over {other}")
        }
        2 if one != other => {
            let value = rows[one].1.clone();
            rows[one].1 = std::mem::replace(&mut rows[other].1, value);
            format!("rows {one} and {other} swapped")
        }
        3 if one != other => {
            let value = rows[one].1.clone();
            rows[other].1 = value;
            rows.remove(one);
            format!("row {one} moved to {other}")
        }
        4 => {
            rows.remove(one);
            format!("row {one} removed")
        }
        _ => {
            let length = random.below(rows[one].1.len().max(1));
            rows[one].1.truncate(length);
            format!("row {one} cut off at {length}")
        }
    })
}

/// Meddles with a table whose keys are numbers.
fn numbered(txn: &WriteTransaction, name: &str, random: &mut Random) -> Option<String> {
    let definition = TableDefinition::<u64, &[u8]>::new(name);
    let mut table = txn.open_table(definition).ok()?;
    let mut rows: Rows = Vec::new();
    for row in table.iter().unwrap() {
        let (key, value) = row.unwrap();
        rows.push((key.value().to_be_bytes().to_vec(), value.value().to_vec()));
    }
    let told = meddle(&mut rows, random)?;
    table.retain(|_, _| false).unwrap();
    for (key, value) in rows {
        let key = u64::from_be_bytes(key.try_into().unwrap());
        table.insert(key, value.as_slice()).unwrap();
    }
    Some(told)
}

/// Meddles with states, which have one length.
fn states(txn: &WriteTransaction, random: &mut Random) -> Option<String> {
    let mut table = txn.open_table(STATE).unwrap();
    let mut rows: Rows = Vec::new();
    for row in table.iter().unwrap() {
        let (key, value) = row.unwrap();
        rows.push((key.value().to_be_bytes().to_vec(), value.value().to_vec()));
    }
    let told = meddle(&mut rows, random)?;
    let summed = random.percent(50);
    table.retain(|_, _| false).unwrap();
    for (key, mut value) in rows {
        value.resize(55, 0);
        if summed {
            // The checksum is no secret: it is made to fit.
            let mut crc = crc32fast::Hasher::new();
            crc.update(&key);
            crc.update(&value[..51]);
            value[51..].copy_from_slice(&crc.finalize().to_be_bytes());
        }
        let key = u64::from_be_bytes(key.try_into().unwrap());
        table.insert(key, &<[u8; 55]>::try_from(value).unwrap()).unwrap();
    }
    Some(format!("{told}, checksums made to fit: {summed}"))
}

/// Meddles with a table of names or of bytes.
fn named(txn: &WriteTransaction, name: &str, random: &mut Random) -> Option<String> {
    let definition = TableDefinition::<&str, &[u8]>::new(name);
    let mut table = txn.open_table(definition).ok()?;
    let mut rows: Rows = Vec::new();
    for row in table.iter().unwrap() {
        let (key, value) = row.unwrap();
        rows.push((key.value().as_bytes().to_vec(), value.value().to_vec()));
    }
    let told = meddle(&mut rows, random)?;
    table.retain(|_, _| false).unwrap();
    for (key, value) in rows {
        table.insert(std::str::from_utf8(&key).unwrap(), value.as_slice()).unwrap();
    }
    Some(told)
}

fn of_bytes(txn: &WriteTransaction, name: &str, random: &mut Random) -> Option<String> {
    let definition = TableDefinition::<&[u8], &[u8]>::new(name);
    let mut table = txn.open_table(definition).ok()?;
    let mut rows: Rows = Vec::new();
    for row in table.iter().unwrap() {
        let (key, value) = row.unwrap();
        rows.push((key.value().to_vec(), value.value().to_vec()));
    }
    let told = meddle(&mut rows, random)?;
    table.retain(|_, _| false).unwrap();
    for (key, value) in rows {
        table.insert(key.as_slice(), value.as_slice()).unwrap();
    }
    Some(told)
}

/// A run of the index.
fn run(txn: &WriteTransaction, random: &mut Random) -> Option<String> {
    let names = txn.list_tables().unwrap().map(|table| table.name().to_owned());
    let runs: Vec<String> = names.filter(|name| name.starts_with("index.run.")).collect();
    runs.get(random.below(runs.len().max(1))).cloned()
}

/// Edits, removes or moves blocks of the index.
fn blocks(txn: &WriteTransaction, random: &mut Random) -> Option<String> {
    let run = run(txn, random)?;
    Some(format!("{run}: {}", numbered(txn, &run, random)?))
}

/// Does something to the files of a store. Says what, or that nothing came of it.
fn tamper(path: &Path, original: &Original, random: &mut Random) -> Option<String> {
    let in_tables = |file: &str, change: &mut dyn FnMut(&WriteTransaction) -> Option<String>| {
        let db = redb::Database::open(path.join(file)).unwrap();
        let txn = db.begin_write().unwrap();
        let told = change(&txn)?;
        txn.commit().unwrap();
        Some(told)
    };
    let kind = random.below(17);
    let told = match kind {
        0..4 => {
            let table = random.pick(&NUMBERED);
            let told = in_tables("grains.redb", &mut |txn| numbered(txn, table, random))?;
            format!("{table}: {told}")
        }
        4 => format!("state: {}", in_tables("grains.redb", &mut |txn| states(txn, random))?),
        5 => format!("meta: {}", in_tables("grains.redb", &mut |txn| named(txn, "meta", random))?),
        6 => {
            let table = random.pick(&KEYED);
            let change = &mut |txn: &WriteTransaction| of_bytes(txn, table, random);
            format!("{table}: {}", in_tables("grains.redb", change)?)
        }
        7 | 16 => in_tables("index.redb", &mut |txn| blocks(txn, random))?,
        8 => {
            let change = &mut |txn: &WriteTransaction| match random.percent(50) {
                true => named(txn, "index.meta", random),
                false => blocks(txn, random),
            };
            format!("index: {}", in_tables("index.redb", change)?)
        }
        9 | 10 => keyring(path, original, random)?,
        12 => in_tables("grains.redb", &mut |txn| in_the_clear(txn, random))?,
        13 => text(path, random)?,
        14 => erased_again(path, original, random)?,
        15 => {
            let told = in_tables("grains.redb", &mut |txn| of_format_1(txn, random))?;
            let other = in_tables("grains.redb", &mut |txn| states(txn, random))?;
            format!("{told}; state: {other}")
        }
        _ => {
            let name = random.pick(&["grains.redb", "index.redb", "keyring"]);
            let bytes = &original.files[name];
            let length = random.below(bytes.len());
            fs::write(path.join(name), &bytes[..length]).unwrap();
            format!("{name} cut off at {length} of {}", bytes.len())
        }
    };
    Some(told)
}

/// A row in the clear, as a store without keys writes it.
fn plain(key: u64, body: &[u8]) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&key.to_be_bytes());
    crc.update(body);
    [&[1, 0][..], &crc.finalize().to_be_bytes(), body].concat()
}

/// Puts a row in the clear in the place of another.
fn in_the_clear(txn: &WriteTransaction, random: &mut Random) -> Option<String> {
    let forged = belief(Some("ann"), "ann", "green forgery", 1000);
    let body = match random.pick(&["log", "reasons", "signatures", "vectors"]) {
        table @ "log" => (table, forged.encode(Encoding::default()).unwrap().bytes().to_vec()),
        table => (table, b"forged".to_vec()),
    };
    let mut table = txn.open_table(TableDefinition::<u64, &[u8]>::new(body.0)).ok()?;
    let rows: Vec<u64> = table.iter().unwrap().map(|row| row.unwrap().0.value()).collect();
    let key = *rows.get(random.below(rows.len().max(1)))?;
    table.insert(key, plain(key, &body.1).as_slice()).unwrap();
    Some(format!("{}: row {key} in the clear", body.0))
}

/// Edits a file of the full text.
fn text(path: &Path, random: &mut Random) -> Option<String> {
    let entries = fs::read_dir(path.join("text")).ok()?;
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let file = files.get(random.below(files.len().max(1)))?;
    let mut bytes = fs::read(file).unwrap();
    let at = random.below(bytes.len().max(1));
    *bytes.get_mut(at)? ^= 1 << random.below(8);
    fs::write(file, bytes).unwrap();
    Some(format!("text: byte {at} of {:?} edited", file.file_name()))
}

/// Puts back rows of the log as they were before an erasure, with or without the keyring and the index.
fn erased_again(path: &Path, original: &Original, random: &mut Random) -> Option<String> {
    const LOG: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("log");
    let former = lay_out(&original.earlier, false);
    let mut rows = BTreeMap::new();
    {
        let db = redb::Database::open(former.path().join("grains.redb")).unwrap();
        let txn = db.begin_read().unwrap();
        for row in txn.open_table(LOG).unwrap().iter().unwrap() {
            let (key, value) = row.unwrap();
            rows.insert(key.value(), value.value().to_vec());
        }
    }
    let (with_keyring, with_marks) = (random.percent(50), random.percent(50));
    let db = redb::Database::open(path.join("grains.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut log = txn.open_table(LOG).unwrap();
        for (key, value) in &rows {
            log.insert(key, value.as_slice()).unwrap();
        }
        if with_marks {
            txn.delete_table(TableDefinition::<u64, &[u8]>::new("destroyed")).unwrap();
        }
    }
    txn.commit().unwrap();
    if with_keyring {
        fs::write(path.join("keyring"), &original.earlier["keyring"]).unwrap();
    }
    if random.percent(50) {
        fs::remove_file(path.join("index.redb")).unwrap();
    }
    Some(format!("erased rows put back, the keyring too: {with_keyring}, marks gone: {with_marks}"))
}

/// Has the store say it is of format 1, with an audit key that somebody chose.
fn of_format_1(txn: &WriteTransaction, random: &mut Random) -> Option<String> {
    let mut meta = txn.open_table(TableDefinition::<&str, &[u8]>::new("meta")).unwrap();
    meta.insert("format", 1_u32.to_be_bytes().as_slice()).unwrap();
    let chosen = random.percent(50);
    if chosen {
        meta.insert("audit_key", plain(0, &[7; 32]).as_slice()).unwrap();
        meta.remove("row_sums").unwrap();
    }
    Some(format!("format 1, with a chosen audit key: {chosen}"))
}

/// Swaps slots of the keyring, or brings back what they were.
fn keyring(path: &Path, original: &Original, random: &mut Random) -> Option<String> {
    let (mut ring, earlier) = (original.files["keyring"].clone(), &original.earlier["keyring"]);
    let slots = ring.len() / SLOT;
    let (one, other) = (random.below(slots), random.below(slots));
    let slot = |bytes: &[u8], at: usize| bytes.get(at * SLOT..(at + 1) * SLOT).map(<[u8]>::to_vec);
    let told = match random.below(4) {
        0 => {
            let (first, second) = (slot(&ring, one)?, slot(&ring, other)?);
            ring[one * SLOT..(one + 1) * SLOT].copy_from_slice(&second);
            ring[other * SLOT..(other + 1) * SLOT].copy_from_slice(&first);
            format!("slots {one} and {other} swapped")
        }
        1 => {
            let former = slot(earlier, one)?;
            ring[one * SLOT..(one + 1) * SLOT].copy_from_slice(&former);
            format!("slot {one} as it was earlier")
        }
        2 => {
            ring.clone_from(earlier);
            "the keyring as it was earlier".to_owned()
        }
        _ => {
            let at = random.below(ring.len());
            ring[at] ^= 1 << random.below(8);
            format!("byte {at} of the keyring edited")
        }
    };
    fs::write(path.join("keyring"), ring).unwrap();
    Some(told)
}

fn lay_out(files: &BTreeMap<String, Vec<u8>>, with_derived: bool) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, bytes) in files {
        let is_derived = name.starts_with("text/") || name.starts_with("vectors/");
        if name == "LOCK" || (is_derived && !with_derived) {
            continue;
        }
        let to = dir.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    dir
}

/// The same files with those of an index as they were.
fn with_index_of(
    files: &BTreeMap<String, Vec<u8>>,
    earlier: &BTreeMap<String, Vec<u8>>,
) -> BTreeMap<String, Vec<u8>> {
    let is_index = |name: &str| name == "index.redb" || name.starts_with("text/");
    let kept = files.iter().filter(|(name, _)| !is_index(name));
    let put_back = earlier.iter().filter(|(name, _)| is_index(name));
    kept.chain(put_back).map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
}

#[test]
fn an_index_of_before_another_key_of_a_person_is_not_used() {
    let original = original();
    let dir = lay_out(&original.files, true);
    let right = answers(dir.path(), &original.addresses).unwrap();
    let before = files_of(dir.path());
    assert!(before.keys().any(|name| name.starts_with("text/")));
    let store = Store::open(dir.path(), &options(MasterKey::new(KEY))).unwrap();
    store.rotate_user_key("ann").unwrap();
    store.close().unwrap();
    let after = files_of(dir.path());
    let put_back = lay_out(&with_index_of(&after, &before), true);
    let expected = lay_out(&after, true);
    let told = |path| {
        let mut told = answers(path, &original.addresses).unwrap();
        told.retain(|(question, _)| question != "audit");
        told
    };
    let found = told(put_back.path());
    assert_eq!(found, told(expected.path()));
    // With the keyring of after, the rows of before are without the former key: hers are not told as none.
    let mut newer = before.clone();
    newer.insert("keyring".to_owned(), after["keyring"].clone());
    if let Ok(found) = answers(lay_out(&newer, true).path(), &original.addresses) {
        let wrong =
            |(one, right): &(&(String, Result<String, String>), _)| one.1.is_ok() && one != right;
        let wrong: Vec<_> = found.iter().zip(&right).filter(wrong).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(found.iter().any(|(question, answer)| question.contains("ann") && answer.is_err()));
    }
    // Only the audit log tells of the key.
    assert_eq!(found.len() + 1, right.len());
    assert!(found.iter().all(|answer| right.contains(answer)), "{found:#?}\n{right:#?}");
}

#[test]
fn the_index_of_another_history_is_not_used_whatever_its_last_grain() {
    for key in [Some(KEY), None] {
        let options = || match key {
            Some(key) => options(MasterKey::new(key)),
            None => OpenOptions::new().create(true),
        };
        let [one, other] = [(); 2].map(|()| TempDir::new().unwrap());
        let begun = |path: &Path| Store::open(path, &options()).unwrap();
        let store = begun(one.path());
        store.session(SessionOptions::default()).put(belief(None, "a", "b", 1)).unwrap();
        store.close().unwrap();
        for (name, bytes) in files_of(one.path()).into_iter().filter(|(name, _)| name != "LOCK") {
            fs::create_dir_all(other.path().join(&name).parent().unwrap()).unwrap();
            fs::write(other.path().join(name), bytes).unwrap();
        }
        let grows = |path: &Path, own: &str| {
            let store = begun(path);
            let session = store.session(SessionOptions::default());
            let mine = session.put(belief(None, own, "its own", 2)).unwrap().address();
            session.put_batch((0..300).map(|n| belief(None, "both", &format!("{n}"), 3))).unwrap();
            store.close().unwrap();
            mine
        };
        grows(one.path(), "one");
        let mine = grows(other.path(), "other");
        fs::copy(one.path().join("index.redb"), other.path().join("index.redb")).unwrap();
        let store = begun(other.path());
        let session = store.session(SessionOptions::default());
        assert!(session.exists(&mine).unwrap());
        let found = session.ask(r#"RECALL beliefs WHERE subject = "other""#).unwrap();
        assert!(format!("{:?}", found.answer).contains("its own"));
        assert!(store.verify(true).unwrap().ok);
    }
}

/// The options of an encrypted store and of one that is not.
fn encrypted_and_plain() -> [fn() -> OpenOptions; 2] {
    [|| options(MasterKey::new(KEY)), || OpenOptions::new().create(true)]
}

/// What was derived from the log: the index and the full text.
type Derived = BTreeMap<PathBuf, Vec<u8>>;

fn derived(dir: &Path) -> Derived {
    let texts = fs::read_dir(dir.join("text")).into_iter().flatten();
    let files = texts.map(|file| file.unwrap().path()).chain([dir.join("index.redb")]);
    files.map(|file| (file.clone(), fs::read(&file).unwrap())).collect()
}

/// Puts a grain, and erases it: with the store closed after each step, or so that the index is folded and the full
/// text saved before the scrub. Returns what was derived while it was still there.
fn derived_with_an_erased_grain(
    dir: &Path,
    options: fn() -> OpenOptions,
    scrub_waits: bool,
) -> Derived {
    let store = Store::open(dir, &options()).unwrap();
    let session = store.session(SessionOptions::default());
    session.put_batch((0..300).map(|n| belief(None, "kept", &format!("{n}"), 2))).unwrap();
    // Where scrubbing began while the files were copied it is another moment.
    for round in 0..20 {
        let gone = session.put(belief(None, "hemlock", "gone", round)).unwrap().address();
        session.put_batch((0..80).map(|n| belief(None, "more", &format!("{n}"), round))).unwrap();
        let words = Query::default().searching("hemlock");
        session.query(&words, &grainstore::PageOptions::default()).unwrap();
        if !scrub_waits {
            store.flush().unwrap();
            let before = derived(dir);
            session.erase(&gone, "asked", &EraseOptions::new().now(true)).unwrap();
            store.close().unwrap();
            return before;
        }
        session.erase(&gone, "asked", &EraseOptions::new()).unwrap();
        store.flush().unwrap();
        let before = derived(dir);
        if store.stats().unwrap().unscrubbed > 0 {
            store.scrub().unwrap();
            store.close().unwrap();
            return before;
        }
    }
    unreachable!("the store was scrubbed each time");
}

#[test]
fn an_index_and_a_full_text_that_still_have_an_erased_grain_are_made_anew() {
    let has_word = |file: &Vec<u8>| file.windows(7).any(|bytes| bytes == b"hemlock");
    for (encrypted, options) in [true, false].into_iter().zip(encrypted_and_plain()) {
        for scrub_waits in [false, true] {
            let dir = TempDir::new().unwrap();
            let before = derived_with_an_erased_grain(dir.path(), options, scrub_waits);
            assert_eq!(before.values().any(has_word), !encrypted, "{scrub_waits}");
            assert!(before.keys().any(|file| file.extension().is_some_and(|it| it == "seg")));
            let _ = fs::remove_dir_all(dir.path().join("text"));
            fs::create_dir(dir.path().join("text")).unwrap();
            before.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
            let store = Store::open(dir.path(), &options()).unwrap();
            assert!(store.verify(true).unwrap().ok);
            let session = store.session(SessionOptions {
                namespace: Some("shared".into()),
                ..SessionOptions::default()
            });
            let asked = r#"EXPLAIN RECALL beliefs WHERE subject = "hemlock""#;
            let plan = serde_json::to_string(&session.ask(asked).unwrap()).unwrap();
            assert!(plan.contains(r#""estimated":0"#), "{scrub_waits}: {plan}");
            let words = Query::default().searching("kept");
            session.query(&words, &grainstore::PageOptions::default()).unwrap();
            store.close().unwrap();
            let after = derived(dir.path());
            assert!(!after.values().any(has_word), "{scrub_waits}");
            let kept = after.iter().filter(|(file, bytes)| before.get(*file) == Some(*bytes));
            assert_eq!(kept.map(|(file, _)| file).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
        }
    }
}

#[test]
fn an_index_is_kept_after_a_scrub() {
    for options in encrypted_and_plain() {
        let dir = TempDir::new().unwrap();
        derived_with_an_erased_grain(dir.path(), options, true);
        // An index that is made anew loses what is not its own.
        let mark = TableDefinition::<u64, u64>::new("mark");
        let index = dir.path().join("index.redb");
        let txn = redb::Database::open(&index).unwrap().begin_write().unwrap();
        txn.open_table(mark).unwrap();
        txn.commit().unwrap();
        Store::open(dir.path(), &options()).unwrap().close().unwrap();
        let txn = redb::Database::open(&index).unwrap().begin_read().unwrap();
        assert!(txn.open_table(mark).is_ok());
    }
}

#[test]
fn a_posting_without_the_key_is_refused_and_the_index_made_anew() {
    let original = original();
    let dir = lay_out(&original.files, true);
    let db = redb::Database::open(dir.path().join("index.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    // The list of subjects and relations.
    const LIST: u64 = 5 << 32;
    let runs = (0..99).map(|number| run(&txn, &mut Random::new(number)).unwrap());
    for run in runs.collect::<BTreeSet<_>>() {
        let mut blocks = txn.open_table(TableDefinition::<u64, &[u8]>::new(&run)).unwrap();
        let Some(block) = blocks.get(LIST).unwrap().map(|row| row.value().to_vec()) else {
            continue;
        };
        let edited = [&block[..block.len() - 1], &[block[block.len() - 1] ^ 1]].concat();
        blocks.insert(LIST, edited.as_slice()).unwrap();
    }
    txn.commit().unwrap();
    drop(db);
    let store = Store::open(dir.path(), &options(MasterKey::new(KEY))).unwrap();
    let session = as_user(&store, "ann");
    let statement = r#"RECALL beliefs WHERE subject = "kim" AND relation = "likes" | COUNT"#;
    // It is read first here.
    let refused = session.ask(statement).unwrap_err();
    assert_eq!(refused.code(), "ERR_INTEGRITY");
    assert!(!store.verify(false).unwrap().problems.is_empty());
    store.reindex().unwrap();
    assert!(session.ask(statement).is_ok());
    assert!(store.verify(true).unwrap().problems.is_empty());
}

#[test]
fn who_has_the_files_and_no_key_makes_no_answer_wrong() {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let most: u64 = from_env("GRAINSTORE_TAMPERINGS").unwrap_or(120);
    let seed = from_env("GRAINSTORE_TAMPERING_SEED").unwrap_or(1);
    let original = original();
    let whole = lay_out(&original.files, true);
    let right = answers(whole.path(), &original.addresses).unwrap();
    assert!(right.iter().filter(|(_, answer)| answer.is_ok()).count() > 50);
    let (mut unopened, mut refused, mut same) = (0, 0, 0);
    let mut wrong = Vec::new();
    for number in 0..most {
        let random = &mut Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let dir = lay_out(&original.files, random.percent(50));
        let Some(told) = tamper(dir.path(), &original, random) else { continue };
        match answers(dir.path(), &original.addresses) {
            Err(_) => unopened += 1,
            Ok(answers) => {
                for ((question, answer), (_, expected)) in answers.iter().zip(&right) {
                    match answer {
                        answer if answer == expected => same += 1,
                        Err(_) => refused += 1,
                        Ok(answer) => wrong.push(format!(
                            "{number}, {told}: {question}: {answer}, not {expected:?}"
                        )),
                    }
                }
            }
        }
    }
    println!(
        "{most} tamperings, seed {seed}: {unopened} stores refused; {same} answers right, \
         {refused} refused"
    );
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
    assert!(unopened > 0 && refused > 0);
}
