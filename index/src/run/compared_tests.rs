//! How often blocks of a sealed run are compared with their tags, and that none is read before it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redb::{ReadableDatabase, ReadableTable};

use super::ComparedBlocks;
use crate::run::directory::RunTableDefinition;
use crate::run::lists::RunList;
use crate::run::table::block_key;
use crate::test_kit::{Note, Store, address, code};
use crate::{BlockSeal, IndexReader, Result, RunCache, Sequence, Tables, Tail, fold, reset};

const RUN: &str = "index.run.00000001";

#[test]
fn bytes_are_known_by_where_they_lie() {
    let (blocks, pages) = (ComparedBlocks::none_of(2), [[1_u8; 8], [1; 8]]);
    let [first, second] = &pages;
    assert!(!blocks.has(0, first));
    blocks.note(0, first);
    assert!(blocks.has(0, first) && !blocks.has(0, second) && !blocks.has(1, first));
    blocks.note(2, first);
    assert!(!blocks.has(2, first));
}

/// A seal that counts the tokens it makes.
#[derive(Default)]
struct Counting(AtomicUsize);

impl BlockSeal for Counting {
    fn token(&self, place: &[u8], bytes: &[u8]) -> [u8; 32] {
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut token = [0; 32];
        for (at, byte) in place.iter().chain(bytes).enumerate() {
            token[at % 16] = u8::rotate_left(token[at % 16], 3) ^ byte;
        }
        token
    }

    fn seal(&self, body: &[u8]) -> Result<Vec<u8>> {
        Ok(body.to_vec())
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        Some(sealed.to_vec())
    }

    fn nonce(&self) -> Result<[u8; 16]> {
        Ok([3; 16])
    }
}

/// One sealed run.
fn sealed_store(seal: &Arc<dyn BlockSeal>) -> Store {
    let mut store = Store::new();
    let txn = store.db.begin_write().unwrap();
    reset(&txn, Some(&**seal), [7; 16]).unwrap();
    txn.commit().unwrap();
    store.tables = Tables::open(store.db.begin_read().unwrap(), Some(Arc::clone(seal)));
    store.tail = Tail::after(&store.tables).unwrap();
    for number in 1..=400 {
        store.push(number, &Note::about("subject", "ns", 5).facts()).unwrap();
    }
    store.freeze();
    let txn = store.db.begin_write().unwrap();
    fold(&txn, &store.tail.frozen().unwrap(), Some(seal), b"log").unwrap();
    txn.commit().unwrap();
    store
}

fn change_a_block(store: &Store) {
    let key = block_key(RunList::ADDRESSES, 0);
    let txn = store.db.begin_write().unwrap();
    let mut rows = txn.open_table(RunTableDefinition::new(RUN)).unwrap();
    let mut block = rows.get(key).unwrap().unwrap().value().to_vec();
    block[9] ^= 1;
    rows.insert(key, block.as_slice()).unwrap();
    drop(rows);
    txn.commit().unwrap();
}

#[test]
fn a_block_is_compared_when_it_is_first_read_and_not_at_each_read() {
    let counting = Arc::new(Counting::default());
    let seal: Arc<dyn BlockSeal> = Arc::<Counting>::clone(&counting);
    let store = sealed_store(&seal);
    // The least address, which is in the first block.
    let number = (1..=400).min_by_key(|number| address(*number)).unwrap();
    let ask = |cache: &RunCache| {
        let txn = store.db.begin_read().unwrap();
        let tables = Tables::open(txn, Some(Arc::clone(&seal))).with_cache(cache);
        let tail = Tail::after(&tables).unwrap();
        let before = counting.0.load(Ordering::Relaxed);
        let found = IndexReader::new(&tables, &tail).sequence_of(&address(number));
        (found, counting.0.load(Ordering::Relaxed) - before)
    };
    let cache = RunCache::default();
    // The filter, the fences and the block.
    let (found, compared) = ask(&cache);
    assert_eq!((found.unwrap(), compared), (Some(Sequence::new(number)), 3));
    let (found, compared) = ask(&cache);
    assert_eq!((found.unwrap(), compared), (Some(Sequence::new(number)), 0));
    change_a_block(&store);
    // Its page is another one now, so it is compared again; and so it is after an opening.
    assert_eq!(code(ask(&cache).0), "ERR_INTEGRITY");
    assert_eq!(code(ask(&RunCache::default()).0), "ERR_INTEGRITY");
    assert_eq!(code(ask(&cache).0), "ERR_INTEGRITY");
}
