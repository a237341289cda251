//! What a program leaves that is killed: a clock that copies a store each time its writer begins a change, so that every
//! copy lacks that change and all that come after it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use grainstore::prelude::*;
use grainstore::{Clock, EpochMs};

/// The clock, and where the copies are.
#[derive(Debug)]
pub(crate) struct Camera {
    store: PathBuf,
    copies: PathBuf,
    now: EpochMs,
    is_on: AtomicBool,
    taken: Mutex<Vec<PathBuf>>,
}

impl Clock for Camera {
    fn now(&self) -> EpochMs {
        let is_writer = std::thread::current().name() == Some("grainstore-writer");
        if self.is_on.load(Ordering::SeqCst) && is_writer {
            self.copy();
        }
        self.now
    }
}

impl Camera {
    /// Watches the store in a folder. Copies go into the folder `copies`.
    pub(crate) fn of(store: &Path, copies: &Path, now: i64) -> Arc<Self> {
        let (is_on, taken) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let (store, copies, now) = (store.to_owned(), copies.to_owned(), EpochMs::new(now));
        Arc::new(Self { store, copies, now, is_on, taken })
    }

    /// Does something, and returns the stores that it would have left, had it been killed.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> Vec<PathBuf> {
        self.is_on.store(true, Ordering::SeqCst);
        let _done = work();
        self.is_on.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.taken.lock().unwrap())
    }

    /// Opens a copy at a time.
    pub(crate) fn open(copy: &Path, now: i64) -> Session {
        let clock = Self::of(copy, copy, now);
        let store = Store::open(copy, &OpenOptions::new().clock(clock)).unwrap();
        store.session(SessionOptions::default())
    }

    /// Copies all but the index, which is made anew, unless nothing changed since the last copy.
    fn copy(&self) {
        let mut taken = self.taken.lock().unwrap();
        let truth = std::fs::read(self.store.join("grains.redb")).unwrap();
        let last = taken.last().map(|last| std::fs::read(last.join("grains.redb")).unwrap());
        if last.is_some_and(|last| last == truth) {
            return;
        }
        let copy = self.copies.join(format!("copy-{}-{}", self.now.get(), taken.len()));
        std::fs::create_dir_all(&copy).unwrap();
        for file in std::fs::read_dir(&self.store).unwrap() {
            let file = file.unwrap();
            let is_index = file.file_name().to_string_lossy().starts_with("index");
            if file.file_type().unwrap().is_file() && !is_index {
                std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
            }
        }
        taken.push(copy);
    }
}
