//! Bytes: the directory and its lock, database handles, row layouts, keyring, encryption, compression.
//!
//! Must not know what a grain means beyond the fields a blob shows.

pub(crate) mod blob;
pub(crate) mod change_record;
pub(crate) mod compression;
pub(crate) mod database;
pub(crate) mod derived_files;
pub(crate) mod directory;
pub(crate) mod journal;
pub(crate) mod journaled_keyring;
pub(crate) mod journaling;
pub(crate) mod keyring;
pub(crate) mod layout;
pub(crate) mod overlay;
pub(crate) mod pinned_directory;
pub(crate) mod position;
pub(crate) mod row_sums;
pub(crate) mod segment_files;
pub(crate) mod truth_tables;
pub(crate) mod truth_transaction;
pub(crate) mod vault;
