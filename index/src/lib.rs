//! The derived indexes of a store: a hexastore of posting lists, full text and vectors.
//!
//! Everything here can be deleted and rebuilt from the log. The engine owns the database, its transactions
//! and the writer thread; this crate owns the tables named `index.*`, their byte layouts, and the merged view
//! over the sorted tables and the tail. It does no I/O of its own, and it never decides what is visible:
//! every reader of a posting rechecks the grain behind it.
//!
//! Modules, in the order data flows:
//! - `error`, `posting`, `term`, `field`: the vocabulary: sequences, times, terms with their ids, values with
//!   their digests
//! - `shape`: the condition of an index lookup; `blind`: the blind tokens it is translated to
//! - `facts`: the fields of a grain that are indexed
//! - `keys`, `words`: every byte layout
//! - `lists`, `meta`, `row_sum`, `rows`, `sample`, `tables`: the redb tables, and the keyed sums over their rows
//! - `runs`, `part`, `tail`: grains that are not yet in the tables
//! - `fold`: writes the tail into the tables
//! - `stamp`: whether the tables fit this code and this log
//! - `merge`, `names`, `spaces`, `scan`, `intersect`: tables and tail as one ordered sequence
//! - `reader`, `addresses`, `size`, `stats`: lookups and figures of a view
//! - [`text`]: the full text, kept beside the tables
//! - [`vectors`]: nearest-neighbour search, kept beside the tables

mod error;
mod field;
mod posting;
mod term;

mod blind;
mod shape;

mod facts;

mod keys;
mod words;

mod lists;
mod meta;
mod row_sum;
mod rows;
mod sample;
mod tables;

mod part;
mod runs;
mod tail;

mod fold;

mod stamp;

mod intersect;
mod merge;
mod names;
mod scan;
mod spaces;

mod addresses;
mod reader;
mod size;
mod stats;

pub mod text;

pub mod vectors;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod test_kit;

pub use addresses::AddressIter;
pub use blind::{Blinder, TokenScope};
pub use error::{Error, ErrorKind, Result};
pub use facts::{IndexedFields, object_hash};
pub use field::{Digest, Field, number_text};
pub use fold::fold;
pub use intersect::{Intersection, IntersectionStep};
pub use meta::HISTORY;
pub use posting::{Posting, Sequence, TieBreaker, TimeOrder, TimeRange, Watermark};
pub use reader::{IndexReader, RelationSummary};
pub use row_sum::{ROW_SUM, RowSeal};
pub use scan::Scan;
pub use shape::{IndexLookup, Object, Scope};
pub use size::PostingEstimate;
pub use spaces::ScopeNamespaces;
pub use stamp::{IndexState, StaleReason, drop_all, reset, state};
pub use stats::{IndexStats, TableStats};
pub use tables::Tables;
pub use tail::{FrozenTail, Tail};
pub use term::{OwnedTermValue, TermValue};
