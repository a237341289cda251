//! The derived indexes of a store: what is looked up by subject, tag, session, type or namespace.
//!
//! Everything here can be deleted and rebuilt from the log. The engine owns the database, its
//! transactions and the writer; this crate owns the tables named `index.*`, their bytes, and the
//! merged view over what is folded into them and what is not yet. It does no I/O of its own, and
//! it never decides what is visible: whoever reads a posting rechecks the grain behind it.
//!
//! In the order data flows:
//! - `error`, `posting`, `term`: the words of the crate: sequences, times, terms and their ids
//! - `facts`: what a grain says that is indexed
//! - `keys`: every byte layout
//! - `tables`, `dictionary`: the redb tables, and term <-> id
//! - `tail`, `fold`: grains not yet in the tables, and their way into them
//! - `stamp`: whether the tables fit this code and this log
//! - `shape`, `merge`, `names`, `reader`: ranges of both parts as one ordered sequence of postings

mod error;
mod posting;
mod term;

mod facts;
mod keys;

mod dictionary;
mod tables;

mod fold;
mod stamp;
mod tail;

mod shape;

mod merge;
mod names;
mod reader;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod test_kit;

pub use dictionary::{DictionaryRead, StagedDictionary};
pub use error::{Error, ErrorKind, Result};
pub use facts::Facts;
pub use fold::fold;
pub use merge::Scan;
pub use posting::{Order, Posting, Sequence, TimeRange};
pub use reader::Reader;
pub use shape::{Scope, Shape};
pub use stamp::{IndexState, StaleReason, Watermark, drop_all, reset, state};
pub use tables::Tables;
pub use tail::Tail;
pub use term::{Term, TermId, TermKind, Word};
