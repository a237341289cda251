//! What the benchmarks share: believable grains, a store full of them, raw redb with the same bytes to
//! compare against, and how well searches find.
//!
//! - `locomo`: conversations with questions about them, read from beside the project.
//! - `samples`: made-up grains of every type, which the dictionary of the log is trained on.
//! - `quality`: those questions asked of a store, and how often what answers them is found.

pub mod locomo;
pub mod quality;
pub mod samples;

use std::path::Path;

use grainstore::{OpenOptions, Session, SessionOptions, Store};
use grainstore_format::{BeliefBuilder, Blob, Encoding, EpochMs, Grain};
use redb::{Database, TableDefinition};

/// Memory both sides may use for pages, in bytes.
pub const CACHE_BYTES: usize = 128 << 20;
/// Facts of one subject, so that recall has something to choose from.
pub const FACTS_PER_SUBJECT: usize = 20;

/// The one table of the baseline: address -> blob.
pub const RAW: TableDefinition<'static, &'static [u8], &'static [u8]> =
    TableDefinition::new("blobs");

/// What went wrong while the data was prepared.
pub type Error = Box<dyn std::error::Error>;

/// The `n`-th fact: about 200 bytes encoded, a subject every [`FACTS_PER_SUBJECT`].
///
/// # Errors
/// Never for the grains made here; the builder's own otherwise.
pub fn fact(n: usize) -> Result<Grain, Error> {
    let relations = ["prefers", "works_at", "mg:knows", "lives_in", "plays"];
    let relation = relations.get(n % relations.len()).copied().unwrap_or("prefers");
    let at = 1_700_000_000_000 + i64::try_from(n)? * 1000;
    let subject = format!("person-{}", n / FACTS_PER_SUBJECT);
    let object = format!("the answer number {n} to a question nobody asked");
    let builder = BeliefBuilder::new(EpochMs::new(at), subject, relation, object, 0.9)
        .namespace("bench")
        .source_type("agent_inferred")
        .author_did("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK")
        .importance(0.5)
        .structural_tags(vec!["bench".to_owned()]);
    Ok(builder.build()?)
}

/// The `n`-th fact, encoded.
///
/// # Errors
/// As [`fact`].
pub fn blob(n: usize) -> Result<Blob, Error> {
    Ok(fact(n)?.encode(Encoding::MessagePack)?)
}

/// A new store in a directory, and a session of its operator.
///
/// # Errors
/// The store's.
pub fn store(path: &Path) -> Result<(Store, Session), Error> {
    let options = OpenOptions::new().create(true).cache_bytes(CACHE_BYTES);
    let store = Store::open(path, &options)?;
    let session = store.session(SessionOptions::default());
    Ok((store, session))
}

/// Puts facts `0..count` in batches of a thousand.
///
/// # Errors
/// The store's.
pub fn fill(session: &Session, count: usize) -> Result<(), Error> {
    let mut next = 0;
    while next < count {
        let end = count.min(next + 1000);
        let grains = (next..end).map(fact).collect::<Result<Vec<_>, _>>()?;
        session.put_batch(grains)?;
        next = end;
    }
    Ok(())
}

/// A raw redb database in a directory, with an empty table.
///
/// # Errors
/// redb's.
pub fn raw(path: &Path) -> Result<Database, Error> {
    let db = Database::builder().set_cache_size(CACHE_BYTES).create(path.join("raw.redb"))?;
    let txn = db.begin_write()?;
    txn.open_table(RAW)?;
    txn.commit()?;
    Ok(db)
}

/// Writes blobs into raw redb in one durable transaction.
///
/// # Errors
/// redb's.
pub fn raw_put(db: &Database, blobs: &[Blob]) -> Result<(), Error> {
    let txn = db.begin_write()?;
    {
        let mut table = txn.open_table(RAW)?;
        for blob in blobs {
            table.insert(blob.address().as_bytes().as_slice(), blob.bytes())?;
        }
    }
    txn.commit()?;
    Ok(())
}
