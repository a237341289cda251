//! Bytes: the directory and its lock, database handles, row layouts, keyring, encryption, compression.
//!
//! Must not know what a grain means beyond the fields a blob shows.

pub(crate) mod anchor;
pub(crate) mod blob;
pub(crate) mod compression;
pub(crate) mod derived;
pub(crate) mod directory;
pub(crate) mod keyring;
pub(crate) mod keys;
pub(crate) mod overlay;
pub(crate) mod row_sums;
pub(crate) mod source;
pub(crate) mod vault;
