//! What a neighbouring format has and grains have no place for, kept in the store so that nothing of it is lost.
//!
//! - `profile`: the names under which a format keeps things. `date`: its dates, and those of grains.
//! - `residue`: the difference between a document and what its grain says, as a patch.
//! - `new_grain`: a grain that is stored, and `spill`: values that are too large for it, beside it.
//! - `documents`: documents and items of documents, a grain for each version. `split`: a document and its items.
//! - `files`: files, in pieces beside the grain that stands for their owner, with a list of them.
//! - `alone`: writers come one after the other.
//! - `rows`: small rows of JSON. `past`: rows that stay when grains are erased. `erased_user`: whether a user was erased.
//!
//! Knows no format: what it keeps, it gives back as it came.

mod alone;
mod date;
mod documents;
mod erased_user;
mod files;
mod new_grain;
mod past;
mod profile;
mod residue;
mod rows;
mod spill;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use alone::exclusive;
pub(crate) use date::{clamped, date_text, milliseconds};
pub(crate) use documents::{Document, Documents, Written};
pub(crate) use erased_user::is_user_erased;
pub(crate) use files::{ANCHOR_LAYER, FileReader, Files};
pub(crate) use new_grain::NewGrain;
pub(crate) use past::{Past, Standing, digest_of};
pub(crate) use profile::Profile;
pub(crate) use residue::{grain_text, residue_of, restored};
pub(crate) use rows::Rows;
pub(crate) use spill::whole_fields;
pub(crate) use split::{joined, split};
