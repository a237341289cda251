//! A store in a directory of its own, and beside it every grain it holds with its state.

use std::path::PathBuf;
use std::sync::Arc;

use grainstore::format::{Blob, Encoding, EpochMs, Grain, Map};
use grainstore::{
    ContentAddress, ManualClock, OpenOptions, SameFact, Session, SessionOptions, Store,
    VerificationStatus,
};
use tempfile::TempDir;

use crate::query::grains::Author;
use crate::query::naive::Item;

/// When the clock of the stores starts: after every `created_at`.
pub(crate) const START_MS: i64 = 1_800_000_000_000;

pub(crate) struct World {
    dir: TempDir,
    clock: Arc<ManualClock>,
    now: i64,
    pub(crate) store: Store,
    pub(crate) author: Author,
    pub(crate) items: Vec<Item>,
    /// Writes offered, and those the store's rules refused.
    pub(crate) offered: usize,
    pub(crate) refused: usize,
    /// Grains, each with one that is stored and may yet supersede it.
    heirs: Vec<(ContentAddress, Blob)>,
    /// Grains that one of these did supersede.
    pub(crate) inherited: usize,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(START_MS));
        let store = open(&dir, &clock);
        let author = Author::new(seed);
        let (items, now) = (Vec::new(), START_MS);
        let (offered, refused, heirs, inherited) = (0, 0, Vec::new(), 0);
        Self { dir, clock, now, store, author, items, offered, refused, heirs, inherited }
    }

    /// A session in a namespace, or the operator's.
    pub(crate) fn session(&self, namespace: Option<&str>) -> Session {
        let namespace = namespace.map(str::to_owned);
        self.store.session(SessionOptions { namespace, ..SessionOptions::default() })
    }

    /// Puts this many random grains.
    pub(crate) fn put(&mut self, count: usize) {
        let blobs: Vec<_> = (0..count).map(|_| self.author.blob()).collect();
        self.put_blobs(blobs);
    }

    /// Puts these grains; those the rules refuse are left out.
    pub(crate) fn put_blobs(&mut self, blobs: Vec<Blob>) {
        self.tick();
        let session = self.session(None);
        self.offered += blobs.len();
        let addresses: Vec<_> = blobs.iter().map(Blob::address).collect();
        let pending: Vec<_> =
            blobs.into_iter().map(|blob| session.submit(blob, SameFact::Add)).collect();
        for (pending, address) in pending.into_iter().zip(addresses) {
            match pending.wait() {
                Ok(put) if put.address() == address => self.know(address),
                Ok(put) => panic!("{put:?} for {address}"),
                Err(error) => {
                    assert!(error.code().starts_with("ERR_"), "{error}");
                    assert!(!matches!(error.code(), "ERR_IO" | "ERR_INTEGRITY"), "{error}");
                    self.refused += 1;
                }
            }
        }
    }

    /// Puts this many grains of one instant.
    pub(crate) fn put_at(&mut self, time: i64, count: usize) {
        let blobs = (0..count).map(|number| {
            let mut fields = self.author.fields();
            fields.insert("timestamp_ms".to_owned(), time.into());
            fields.insert("entity_id".to_owned(), number.to_string().into());
            encoded(fields)
        });
        let blobs = blobs.collect();
        self.put_blobs(blobs);
    }

    /// Puts grains with so many tags that they fill the tail: it is frozen and folded meanwhile.
    pub(crate) fn put_wide(&mut self, count: usize) {
        let blobs = (0..count).map(|number| {
            let mut fields = self.author.fields();
            let tags = (0..3000).map(|tag| format!("wide {number} {tag}"));
            fields.insert("structural_tags".to_owned(), tags.collect::<Vec<_>>().into());
            encoded(fields)
        });
        let blobs = blobs.collect();
        self.put_blobs(blobs);
    }

    /// Supersedes this many grains that are current.
    pub(crate) fn supersede(&mut self, count: usize) {
        let session = self.session(None);
        for _ in 0..count {
            let place = self.author.random.below(self.items.len());
            let old = self.items[place].clone();
            if !old.grain.grain_type().is_standard() || !old.state.is_current() {
                continue;
            }
            self.tick();
            self.offered += 1;
            let mut fields = old.grain.fields().clone();
            if fields.contains_key("object") {
                fields.insert("object".to_owned(), self.author.object());
            }
            fields.insert("entity_id".to_owned(), self.offered.to_string().into());
            // The next version, and no digest of others.
            let parents = vec![old.address.to_string()];
            fields.insert("derived_from".to_owned(), parents.into());
            fields.remove("consolidation_level");
            let new = Grain::from_fields(fields).unwrap();
            match session.supersede(&old.address, new, Some("it changed")) {
                Ok(new) => {
                    self.know(new);
                    self.items[place].state = session.get(&old.address).unwrap().state;
                }
                Err(error) => {
                    assert!(!matches!(error.code(), "ERR_IO" | "ERR_INTEGRITY"), "{error}");
                    self.refused += 1;
                }
            }
        }
    }

    /// Puts this many grains that derive from current ones, as digests that replace nothing yet.
    pub(crate) fn put_heirs(&mut self, count: usize) {
        for _ in 0..count {
            let place = self.author.random.below(self.items.len());
            let old = &self.items[place];
            if !old.grain.grain_type().is_standard() || !old.state.is_current() {
                continue;
            }
            let mut fields = old.grain.fields().clone();
            fields.insert("entity_id".to_owned(), format!("heir {}", self.offered).into());
            let other = &self.items[(place + 1) % self.items.len()];
            let parents = vec![old.address.to_string(), other.address.to_string()];
            fields.insert("derived_from".to_owned(), parents.into());
            fields.insert("consolidation_level".to_owned(), 1_i64.into());
            let (old, blob) = (old.address, encoded(fields));
            self.put_blobs(vec![blob.clone()]);
            if self.items.iter().any(|item| item.address == blob.address()) {
                self.heirs.push((old, blob));
            }
        }
    }

    /// Has this many grains superseded by the heirs that are stored already.
    pub(crate) fn supersede_by_heirs(&mut self, count: usize) {
        let session = self.session(None);
        for (old, heir) in self.heirs.split_off(self.heirs.len().saturating_sub(count)) {
            self.tick();
            self.offered += 1;
            match session.supersede(&old, heir, None) {
                Ok(_) => {
                    let item = self.items.iter_mut().find(|item| item.address == old).unwrap();
                    item.state = session.get(&old).unwrap().state;
                    self.inherited += 1;
                }
                Err(error) => {
                    assert!(!matches!(error.code(), "ERR_IO" | "ERR_INTEGRITY"), "{error}");
                    self.refused += 1;
                }
            }
        }
    }

    /// Changes the standing of this many grains: statuses and contradictions.
    pub(crate) fn mark(&mut self, count: usize) {
        let session = self.session(None);
        for _ in 0..count {
            self.tick();
            let place = self.author.random.below(self.items.len());
            let address = self.items[place].address;
            let marked = match self.author.random.below(3) {
                0 => session.contradict(&address, "it is not so", None),
                _ => {
                    let status = self.author.random.pick(&VerificationStatus::ALL);
                    session.set_verification(&address, status, "reviewed", None)
                }
            };
            self.offered += 1;
            if let Err(error) = marked {
                assert!(!matches!(error.code(), "ERR_IO" | "ERR_INTEGRITY"), "{error}");
                self.refused += 1;
            }
            self.items[place].state = session.get(&address).unwrap().state;
        }
    }

    /// Waits until everything is folded.
    pub(crate) fn flush(&self) {
        self.store.flush().unwrap();
    }

    /// Closes the store, does something to its directory, and opens it again.
    pub(crate) fn reopen(&mut self, meanwhile: impl FnOnce(&std::path::Path)) {
        self.store.close().unwrap();
        meanwhile(self.dir.path());
        self.store = open(&self.dir, &self.clock);
    }

    /// The file with everything derived.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.path().join("index.redb")
    }

    fn tick(&mut self) {
        self.now += 7;
        self.clock.set(EpochMs::new(self.now));
    }

    fn know(&mut self, address: ContentAddress) {
        if self.items.iter().rev().any(|item| item.address == address) {
            return;
        }
        let stored = self.session(None).get(&address).unwrap();
        let grain = Arc::new(stored.grain().unwrap());
        self.author.known.push(address);
        self.items.push(Item { address, grain, state: stored.state });
    }
}

pub(crate) fn encoded(fields: Map) -> Blob {
    Grain::from_fields(fields).unwrap().encode(Encoding::MessagePack).unwrap()
}

fn open(dir: &TempDir, clock: &Arc<ManualClock>) -> Store {
    let options = OpenOptions::new().create(true).clock(Arc::<ManualClock>::clone(clock));
    crate::former::put_former_store(dir.path());
    Store::open(dir.path(), &options).unwrap()
}
