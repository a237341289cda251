//! Sorted runs: the tables of the index, in immutable pieces. A fold writes a run; a merge (`run_merge`) writes
//! several runs as one, so that there are few, and each row is written a logarithmic number of times.
//!
//! A run is a redb table of blocks of about a page, each with the sorted rows of one list. Modules:
//! - `lists`: the lists of a run and the form of their rows
//! - `block`: the bytes of a block
//! - `fences`: where the blocks begin
//! - `filter`: which addresses and terms a run may have
//! - `directory`: the runs of an index and their figures, one row of the table `index.meta`
//! - `compared`: which blocks were compared with their tags
//! - `table`: a run that is read; `cursor`: its rows in order
//! - `spaces`: the namespaces of its lists
//! - `writer`: a run that is written
//! - `rows`: the rows of several runs in order

pub(crate) mod block;
pub(crate) mod compared;
pub(crate) mod cursor;
pub(crate) mod directory;
pub(crate) mod fences;
pub(crate) mod filter;
pub(crate) mod lists;
pub(crate) mod rows;
pub(crate) mod spaces;
pub(crate) mod table;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
