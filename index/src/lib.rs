//! The derived indexes of a store: the hexastore, and everything else grains are found by.
//!
//! All of it can be deleted and rebuilt from the log. The engine owns the database, its
//! transactions and the writer; this crate owns the tables named `index.*`, their bytes, and the
//! merged view over what is folded into them and what is not yet. It does no I/O of its own, and
//! it never decides what is visible: whoever reads a posting rechecks the grain behind it.
//!
//! In the order data flows:
//! - `error`, `posting`, `term`, `field`: the words of the crate: sequences, times, terms with
//!   their ids, and values with their digests
//! - `shape`: what a lookup asks for; `blind`: in whose tokens
//! - `facts`: what a grain says that is indexed
//! - `keys`, `words`: every byte layout
//! - `rows`, `lists`, `sample`, `tables`: the redb tables
//! - `runs`, `part`, `tail`: grains not yet in the tables
//! - `fold`: the way into them
//! - `stamp`: whether the tables fit this code and this log
//! - `merge`, `names`, `scan`, `intersect`: tables and tail as one ordered sequence
//! - `reader`, `addresses`, `size`, `stats`: what a view answers
//! - [`text`]: the full text, beside the tables
//! - [`vectors`]: what is near in meaning, beside the tables

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

pub use addresses::Addresses;
pub use blind::{Blind, Eyes};
pub use error::{Error, ErrorKind, Result};
pub use facts::{Facts, object_hash};
pub use field::{Digest, Field, number_word};
pub use fold::fold;
pub use intersect::{Intersection, Step};
pub use posting::{Order, Posting, Sequence, Tie, TimeRange};
pub use reader::{Reader, Relation};
pub use scan::Scan;
pub use shape::{Object, Scope, Shape};
pub use size::Size;
pub use spaces::Spaces;
pub use stamp::{IndexState, StaleReason, Watermark, drop_all, reset, state};
pub use stats::{Stats, TableStats};
pub use tables::Tables;
pub use tail::{Frozen, Tail};
pub use term::{Name, Word};
