//! Blobs and rows that applications keep beside grains.
//!
//! `calls`: what calls answer and refuse. `erasing`: they go with whom they belong to, off the disk as well.
//! `crash`: a batch is whole whenever the power goes. `keys`: encrypted stores, upgraded, rotated and tampered with.

mod calls;
mod crash;
mod erasing;
mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use grainstore_format::{BeliefBuilder, ContentAddress, EpochMs};
use redb::{Database, ReadableDatabase, ReadableTable};

use crate::disk::layout::{self, KeyedDefinition};
use crate::{MasterKey, OpenOptions, Owner, RowChange, RowRange, Session, SessionOptions, Store};

const APP: &str = "zyxqjkvbwphgmfdc";
const ANN: &str = "ann";
const BOB: &str = "bob";

/// Letters that no compression shortens and that stand nowhere else.
const SECRET: &[u8] = b"qzjxkvwbmgfpdhyc-tlrnsoiae-9072813465";

fn options(encrypted: bool) -> OpenOptions {
    let options = OpenOptions::new().create(true);
    if encrypted { options.key(MasterKey::new([7; 32])) } else { options }
}

fn open(path: &Path, encrypted: bool) -> Store {
    Store::open(path, &options(encrypted)).unwrap()
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn user(user: &str) -> Owner {
    Owner::User(user.to_owned())
}

fn put(session: &Session, user: Option<&str>, number: i64) -> ContentAddress {
    let grain = BeliefBuilder::new(EpochMs::new(number), "s", "r", format!("{number}"), 1.0);
    let grain = match user {
        Some(user) => grain.user_id(user),
        None => grain,
    };
    session.put(grain.build().unwrap()).unwrap().address()
}

/// Bytes that no compression shortens, of two chunks and a bit.
fn large(seed: u8) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let blocks = (0..70_000_u32).flat_map(|number| {
        let hash = Sha256::new().chain_update([seed]).chain_update(number.to_be_bytes());
        hash.finalize().to_vec()
    });
    blocks.collect()
}

fn all_rows(session: &Session, table: u8) -> Vec<(u64, Vec<u8>)> {
    let page = session.rows(APP, table, &RowRange::Numbers(0..=u64::MAX), 1000).unwrap();
    assert_eq!(page.next, None);
    let number = |key| match key {
        crate::ApplicationKey::Number(number) => number,
        other => panic!("{other:?}"),
    };
    page.rows.into_iter().map(|row| (number(row.key), row.value)).collect()
}

/// The rows of a table of a closed store.
fn raw(path: &Path, definition: KeyedDefinition) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let db = Database::open(path.join("grains.redb")).unwrap();
    let txn = db.begin_read().unwrap();
    let Ok(table) = txn.open_table(definition) else { return BTreeMap::new() };
    let rows = table.iter().unwrap().map(Result::unwrap);
    rows.map(|(key, row)| (key.value().to_vec(), row.value().to_vec())).collect()
}

/// All rows of the tables with values.
fn raw_rows(path: &Path) -> Vec<Vec<u8>> {
    let tables = [layout::BLOBS, layout::BLOB_CHUNKS, layout::APPLICATION_ROWS];
    tables.into_iter().flat_map(|table| raw(path, table).into_values()).collect()
}

/// The files of a store that have these bytes.
fn files_with(path: &Path, part: &[u8]) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read(&path).unwrap().windows(part.len()).any(|window| window == part) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// The files of a store that have one of these, all of one length.
fn files_with_any(path: &Path, parts: &BTreeSet<&[u8]>) -> Vec<String> {
    let length = parts.first().unwrap().len();
    let name = path.join("grains.redb");
    let bytes = fs::read(&name).unwrap();
    let has = bytes.windows(length).any(|window| parts.contains(window));
    if has { vec![name.display().to_string()] } else { Vec::new() }
}

fn code<T>(outcome: crate::Result<T>) -> &'static str {
    outcome.map(drop).map_err(|error| error.code()).unwrap_err()
}
