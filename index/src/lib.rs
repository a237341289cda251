//! The derived indexes of a store: a hexastore of posting lists, full text and vectors.
//!
//! Everything here can be deleted and rebuilt from the log. The engine owns the database, its transactions
//! and the writer thread; this crate owns the tables named `index.*`, their byte layouts, and the merged view
//! over the sorted runs and the tail. It does no I/O of its own, and it never decides what is visible:
//! every reader of a posting rechecks the grain behind it.
//!
//! Modules, in the order data flows:
//! - `error`, `posting`, `term`, `field`: the vocabulary: sequences, times, terms with their ids, values with
//!   their digests
//! - `lookup`: the condition of an index lookup; `blind`: the blind tokens it is translated to
//! - `indexed_fields`: the fields of a grain that are indexed
//! - `keys`, `layout`: every byte layout
//! - `posting_lists`, `meta`, `block_seal`, `run`, `sample`, `tables`: the redb tables, and the keyed tags of their blocks
//! - `runs`, `part`, `tail`: grains that are not yet in the tables
//! - `fold`: writes the tail into the tables; `run_merge`: merges what was written
//! - `stamp`: whether the tables fit this code and this log
//! - `merge`, `dictionary`, `namespaces`, `scan`, `intersect`: tables and tail as one ordered sequence
//! - `reader`, `addresses`, `estimate`, `stats`: lookups and figures of a view
//! - [`text`]: the full text, kept beside the tables
//! - [`vectors`]: nearest-neighbour search, kept beside the tables
//!
//! ```
//! # use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
//! # use grainstore_index::{Tables, Tail, reset};
//! # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
//! # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
//! # let txn = db.begin_write()?;
//! # reset(&txn, None, [0; 16])?;
//! # txn.commit()?;
//! # let tables = Tables::open(db.begin_read()?, None);
//! # let mut tail = Tail::after(&tables)?;
//! # let time = EpochMs::new(1_768_471_200_000);
//! # let grain = BeliefBuilder::new(time, "alice", "mg:prefers", "tea", 0.9).build()?;
//! # let blob = grain.encode(Encoding::MessagePack)?;
//! use grainstore_index::{IndexLookup, IndexReader, IndexedFields, Scope, Sequence, TimeRange};
//!
//! // `tables` and `tail` are those of a new store; `blob` is its first grain: alice prefers tea.
//! let (address, grain) = (*blob.address().as_bytes(), GrainRef::new(blob.bytes())?);
//! tail.push(&tables, Sequence::new(0), address, &IndexedFields::from_grain(&grain))?;
//! let reader = IndexReader::new(&tables, &tail);
//! let about_alice = IndexLookup::subject("alice".into());
//! assert_eq!(reader.count_up_to(&Scope::All, &about_alice, TimeRange::default(), 100)?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod field;
mod posting;
mod term;

mod blind;
mod lookup;

mod indexed_fields;

mod keys;
mod known_terms;
mod layout;
mod varint;

mod block_seal;
mod meta;
mod posting_lists;
mod run;
mod sample;
mod tables;

mod run_merge;

mod part;
mod runs;
mod tail;

mod fold;

mod stamp;

mod dictionary;
mod intersect;
mod merge;
mod namespaces;
mod scan;

mod addresses;
mod estimate;
mod reader;
mod stats;

pub mod text;

pub mod vectors;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod test_kit;

pub use addresses::AddressIter;
pub use blind::{Blinder, TokenScope};
pub use block_seal::{BlockSeal, SEALED_MARKS};
pub use error::{Error, ErrorKind, Result};
pub use estimate::PostingEstimate;
pub use field::{Digest, Field, number_text};
pub use fold::{fold, mark_history};
pub use indexed_fields::{IndexedFields, object_hash};
pub use intersect::{Intersection, IntersectionStep};
pub use lookup::{IndexLookup, Object, Scope};
pub use meta::HISTORY;
pub use namespaces::ScopeNamespaces;
pub use posting::{Posting, Sequence, TieBreaker, TimeOrder, TimeRange, Watermark};
pub use reader::{IndexReader, RelationSummary};
pub use run::table::RunCache;
pub use run_merge::{MergeGoal, RunMerge, has_unused_runs, remove_unused_runs};
pub use scan::Scan;
pub use stamp::{IndexState, StaleReason, drop_all, reset, state};
pub use stats::{IndexStats, TableStats};
pub use tables::{TableRow, Tables};
pub use tail::{FrozenTail, Tail};
pub use term::{OwnedTermValue, TermValue};
