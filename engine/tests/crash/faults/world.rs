//! A store to try things on, with what it has acknowledged, and what must be so afterwards.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use grainstore::cal::Query;
use grainstore::format::BeliefBuilder;
use grainstore::{
    ContentAddress, EpochMs, MasterKey, OpenOptions, PageOptions, Session, SessionOptions, Store,
};

use super::deeds::Deed;

/// Tells the process whose disk fails where its files are.
pub(crate) const CHILD: &str = "GRAINSTORE_FAULTS";
/// Where the count of calls stands.
pub(crate) const COUNT: &str = "FAULTS_COUNT";
/// A word of what ann has, that nobody else has.
const OF_ANN: &str = "zanzibarish";
/// Grains of the store before.
const GRAINS: i64 = 30;

/// The stores that are copied for each attempt.
pub(crate) struct World {
    files: PathBuf,
    /// What was put, of whom.
    grains: Vec<(&'static str, ContentAddress)>,
    attempts: Cell<usize>,
}

/// One attempt: a store of its own, and what it has answered.
pub(crate) struct Attempt {
    /// Where its files are: the store, and what is made of it.
    pub(crate) dir: PathBuf,
    pub(crate) key: u8,
    is_encrypted: bool,
    grains: Vec<(&'static str, ContentAddress)>,
    pub(crate) is_erased: Option<bool>,
    /// Whether either of two keys may open it.
    pub(crate) find_key: bool,
    what: String,
}

fn options(is_encrypted: bool, key: u8) -> OpenOptions {
    let options = OpenOptions::new();
    if is_encrypted { options.key(MasterKey::new([key; 32])) } else { options }
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

/// Steers the disk: see `shim.c`.
fn steer(how: &str) -> bool {
    fs::remove_file(Path::new("/faults").join(how)).is_ok()
}

impl World {
    pub(crate) fn new(files: &Path) -> Self {
        let mut grains = Vec::new();
        for is_encrypted in [true, false] {
            let path = files.join(name(is_encrypted));
            let store = Store::open(&path, &options(is_encrypted, 1).create(true)).unwrap();
            let session = operator(&store);
            grains.clear();
            for number in 0..GRAINS {
                let user = if number % 3 == 0 { "ann" } else { "bob" };
                let word = if user == "ann" { OF_ANN } else { "tea" };
                let object = format!("{word} {number}");
                let grain =
                    BeliefBuilder::new(EpochMs::new(number), "somebody", "likes", object, 1.0);
                let put = session.put(grain.user_id(user).build().unwrap()).unwrap();
                grains.push((user, put.address()));
            }
            drop(session);
            store.close().unwrap();
        }
        Self { files: files.to_owned(), grains, attempts: Cell::new(0) }
    }

    /// How many calls there are that could fail.
    pub(crate) fn calls_of(&self, deed: &Deed) -> usize {
        assert!(!self.attempt(deed, "once", usize::MAX >> 1), "{}", deed.name);
        let count = std::env::var_os(COUNT).unwrap();
        fs::read_to_string(count).unwrap().parse().unwrap()
    }

    /// Does it on a disk that fails at this call, and looks at what is left. Gives whether it has failed.
    pub(crate) fn attempt(&self, deed: &Deed, how: &str, number: usize) -> bool {
        let place = self.attempts.get();
        self.attempts.set(place + 1);
        let dir = self.files.join(format!("attempt-{place}"));
        copy(&self.files.join(name(deed.is_encrypted)), &dir.join("store"));
        let what = format!("{}, {how} at call {number}", deed.name);
        let mut attempt = Attempt {
            dir: dir.clone(),
            key: 1,
            is_encrypted: deed.is_encrypted,
            grains: self.grains.clone(),
            is_erased: Some(false),
            find_key: false,
            what,
        };
        let store = attempt.open(1);
        steer(&format!("{how}/{number}"));
        (deed.act)(&mut attempt, &store);
        let closed = store.close().map_err(|error| error.code());
        let has_failed = steer("off");
        assert!(matches!(closed, Ok(()) | Err("ERR_IO")), "{}: {closed:?}", attempt.what);
        assert!(closed.is_ok() || has_failed, "{}: {closed:?}", attempt.what);
        drop(store);
        attempt.examine();
        (deed.examine)(&attempt);
        fs::remove_dir_all(&dir).unwrap();
        has_failed
    }
}

impl Attempt {
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    pub(crate) fn open(&self, key: u8) -> Store {
        self.open_at(&self.store(), key)
    }

    pub(crate) fn open_at(&self, path: &Path, key: u8) -> Store {
        let opened = Store::open(path, &options(self.is_encrypted, key));
        opened.unwrap_or_else(|error| panic!("{}: {error}", self.what))
    }

    /// What is wrong, for the message of a failure.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Whether a call was done. It may only have failed for the disk.
    pub(crate) fn is_done<T>(&self, outcome: grainstore::Result<T>) -> bool {
        match outcome {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.code(), "ERR_IO", "{}: {error}", self.what);
                false
            }
        }
    }

    /// Puts one more grain, which is there afterwards if that is acknowledged.
    pub(crate) fn put_one(&mut self, store: &Store) {
        let grain = BeliefBuilder::new(EpochMs::new(5000), "somebody", "likes", "coffee", 1.0);
        match operator(store).put(grain.user_id("bob").build().unwrap()) {
            Ok(put) => self.grains.push(("bob", put.address())),
            Err(error) => assert_eq!(error.code(), "ERR_IO", "{}: {error}", self.what),
        }
    }

    /// That a store has everything acknowledged. An erasure that failed is in doubt. Gives whether ann is gone.
    pub(crate) fn has_all(&self, store: &Store) -> bool {
        let what = &self.what;
        let session = operator(store);
        let mut gone = 0;
        for (user, address) in &self.grains {
            let got = session.get(address).map(drop).map_err(|error| error.code());
            let may_be_gone = *user == "ann" && self.is_erased != Some(false);
            match got {
                Ok(()) => assert!(*user != "ann" || self.is_erased != Some(true), "{what}"),
                Err("ERR_ERASED") if may_be_gone => gone += 1,
                Err(code) => panic!("{what}: {code} for a grain of {user}"),
            }
        }
        let of_ann = self.grains.iter().filter(|(user, _)| *user == "ann").count();
        assert!(gone == 0 || gone == of_ann, "{what}: {gone} grains of ann are gone");
        let found = |word: &str| {
            // In an encrypted store a search by words is one user's.
            let user = if word == OF_ANN { "ann" } else { "bob" };
            let user_id = Some(user.to_owned());
            let session = store.session(SessionOptions { user_id, ..SessionOptions::default() });
            let query = Query::default().searching(word);
            let page = session.query(&query, &PageOptions::first(100));
            page.unwrap_or_else(|error| panic!("{what}: {error}")).results.len()
        };
        assert_eq!(found("tea"), self.grains.len() - of_ann - self.more(), "{what}");
        assert_eq!(found(OF_ANN), if gone == 0 { of_ann } else { 0 }, "{what}");
        gone > 0
    }

    /// That a backup has what was there when it was made.
    pub(crate) fn check_backup(&self, store: &Store) {
        let session = operator(store);
        let before = self.grains.iter().take(usize::try_from(GRAINS).unwrap());
        before.for_each(|(_, address)| assert!(session.exists(address).unwrap(), "{}", self.what));
        assert!(store.verify(true).unwrap().ok, "{}", self.what);
    }

    /// Grains that were put later.
    fn more(&self) -> usize {
        self.grains.len() - usize::try_from(GRAINS).unwrap()
    }

    /// That nothing is lost, everything works, nothing is left over, and what was erased is nowhere.
    fn examine(&mut self) {
        if self.find_key {
            let opened = Store::open(self.store(), &options(self.is_encrypted, 1));
            self.key = if opened.is_ok() { 1 } else { 2 };
        }
        let store = self.open(self.key);
        let what = self.what.clone();
        let is_gone = self.has_all(&store);
        self.is_erased = Some(is_gone);
        let problems = store.verify(true).unwrap().problems;
        assert!(problems.is_empty(), "{what}: {problems:?}");
        self.put_one(&store);
        assert!(store.close().is_ok(), "{what}");
        let store = self.open(self.key);
        assert_eq!(self.has_all(&store), is_gone, "{what}");
        assert!(store.verify(true).unwrap().ok, "{what}");
        store.close().unwrap();
        for file in files_in(&self.store()) {
            let left = file.to_string_lossy();
            let is_left =
                left.ends_with(".new") || left.ends_with(".old") || left.contains("probe-");
            assert!(!is_left, "{what}: {left} is left");
            let bytes = fs::read(&file).unwrap();
            let word = OF_ANN.as_bytes();
            let is_there = bytes.windows(word.len()).any(|window| window == word);
            assert!(!(is_gone && is_there), "{what}: {left} has what was erased");
        }
    }
}

fn name(is_encrypted: bool) -> &'static str {
    if is_encrypted { "encrypted" } else { "plain" }
}

/// Every file below a directory.
pub(crate) fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(path, to).unwrap()),
        }
    }
}
