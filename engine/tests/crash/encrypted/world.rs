//! An encrypted store with the grains of two people and of nobody.

use std::collections::BTreeMap;
use std::path::Path;

use grainstore::cal::Query;
use grainstore::{
    ContentAddress, Grain, KeyProvider, MasterKey, OpenOptions, PageOptions, Session,
    SessionOptions, Store,
};
use tempfile::TempDir;

pub(crate) const KEY: [u8; 32] = [7; 32];

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
}

pub(crate) fn options(key: impl KeyProvider + 'static) -> OpenOptions {
    OpenOptions::new().create(true).key(key)
}

pub(crate) fn as_user(store: &Store, user: &str) -> Session {
    store.session(SessionOptions { user_id: Some(user.to_owned()), ..SessionOptions::default() })
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        Self { dir, store }
    }

    /// One that is not encrypted.
    pub(crate) fn plain() -> Self {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        Self { dir, store }
    }

    pub(crate) fn operator(&self) -> Session {
        self.store.session(SessionOptions::default())
    }

    pub(crate) fn user(&self, user: &str) -> Session {
        as_user(&self.store, user)
    }

    /// Closes it and opens it again.
    pub(crate) fn reopened(self) -> Self {
        let Self { dir, store } = self;
        store.close().unwrap();
        let store = open(dir.path());
        Self { dir, store }
    }

    /// The same, opened in another way.
    pub(crate) fn reopened_with(self, how: impl FnOnce(OpenOptions) -> OpenOptions) -> Self {
        let Self { dir, store } = self;
        store.close().unwrap();
        let key = MasterKey::new(KEY);
        let store = Store::open(dir.path(), &how(options(key))).unwrap();
        Self { dir, store }
    }

    /// Every file of the store by its name.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files_of(self.dir.path())
    }
}

/// Every file below a directory by its name.
pub(crate) fn files_of(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    gather(path, "", &mut found);
    found
}

pub(crate) fn open(path: &Path) -> Store {
    Store::open(path, &options(MasterKey::new(KEY))).unwrap()
}

fn gather(path: &Path, under: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{under}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            gather(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

/// A belief of a person, or of nobody.
pub(crate) fn belief(user: Option<&str>, subject: &str, object: &str, at: i64) -> Grain {
    let mut json = serde_json::json!({
        "type": "belief", "subject": subject, "relation": "likes", "object": object,
        "confidence": 0.9, "created_at": at, "structural_tags": ["taste", "pii:name"],
    });
    if let Some(user) = user {
        json["user_id"] = user.into();
    }
    Grain::from_json(&json.to_string()).unwrap()
}

/// A turn of a conversation.
pub(crate) fn turn(user: &str, session: &str, words: &str, at: i64) -> Grain {
    let json = serde_json::json!({
        "type": "event", "content": words, "role": "user", "session_id": session,
        "user_id": user, "created_at": at, "timestamp_ms": at,
    });
    Grain::from_json(&json.to_string()).unwrap()
}

/// The addresses of an answer, or the code it was refused with.
pub(crate) fn asked(session: &Session, query: &Query) -> Result<Vec<ContentAddress>, &'static str> {
    let answer = session.query(query, &PageOptions::first(1000)).map_err(|error| error.code())?;
    Ok(answer.results.into_iter().map(|row| row.content_address).collect())
}

/// The log of a closed store.
pub(crate) const LOG: redb::TableDefinition<'static, u64, &'static [u8]> =
    redb::TableDefinition::new("log");

impl World {
    /// The rows of the log in which there is one of two people, who wrote in turns.
    pub(crate) fn user_rows(&self, user: &str) -> Vec<Vec<u8>> {
        use redb::{ReadableDatabase, ReadableTable};
        let db = redb::Database::open(self.dir.path().join("grains.redb")).unwrap();
        let log = db.begin_read().unwrap().open_table(LOG).unwrap();
        let rows: Vec<Vec<u8>> =
            log.iter().unwrap().map(|row| row.unwrap().1.value().to_vec()).collect();
        rows.into_iter()
            .skip(usize::from(user != "ann"))
            .step_by(2)
            .map(|row| row[6..].to_vec())
            .collect()
    }

    /// The ciphertexts of the log of an open store that lie under the key in a slot: from a copy, since the
    /// store has the file.
    pub(crate) fn rows_of_slot(&self, slot: u32) -> Vec<Vec<u8>> {
        use redb::{ReadableDatabase, ReadableTable};
        let copy = TempDir::new().unwrap();
        let to = copy.path().join("copy");
        self.store.backup(&to).unwrap();
        let db = redb::Database::open(to.join("grains.redb")).unwrap();
        let log = db.begin_read().unwrap().open_table(LOG).unwrap();
        let rows = log.iter().unwrap().map(|row| row.unwrap().1.value().to_vec());
        let of_slot = rows.filter(|row| row[..6] == [&[1, 1][..], &slot.to_be_bytes()].concat());
        of_slot.map(|row| row[6..].to_vec()).collect()
    }

    /// Changes the last byte but one of a row of the log.
    pub(crate) fn flip_a_byte_of_row(&self, row: u64) {
        self.change_row(row, |bytes| {
            let at = bytes.len() - 2;
            bytes[at] ^= 1;
        });
    }

    /// Changes a row of the log of a closed store.
    pub(crate) fn change_row(&self, row: u64, change: impl FnOnce(&mut [u8])) {
        use redb::ReadableTable;
        let db = redb::Database::open(self.dir.path().join("grains.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut log = txn.open_table(LOG).unwrap();
            let mut bytes = log.get(row).unwrap().unwrap().value().to_vec();
            change(&mut bytes);
            log.insert(row, bytes.as_slice()).unwrap();
        }
        txn.commit().unwrap();
    }
}
