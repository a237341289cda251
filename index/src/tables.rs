//! The redb tables of the index and the owned handles a view reads them through.
//!
//! Knows names and shapes; what stands in a row is the business of `keys`.

use redb::{ReadOnlyTable, ReadTransaction, TableDefinition};

use crate::error::Result;
use crate::keys::{BYTE_ROW, NAMESPACE_ROW, PAIR_ROW, TERM_ROW};

/// A table of posting rows; all is in the key.
pub(crate) type PostingTable<const N: usize> = TableDefinition<'static, &'static [u8; N], ()>;
/// A posting table of one read snapshot.
pub(crate) type PostingRows<const N: usize> = ReadOnlyTable<&'static [u8; N], ()>;

// One table a posting kind, each with keys of one width. Measured on 50,000 grains with seven
// postings each: a durable sorted batch of 1,000 grains takes 20 ms (4,096: 38 ms), against 23 ms
// (46 ms) for one table with a leading kind byte, padded or not, and a fifth fewer pages. A fold
// of one grain costs 8 us more of 460 us, and the tail makes such folds rare.
pub(crate) const BY_NAMESPACE: PostingTable<NAMESPACE_ROW> =
    TableDefinition::new("index.by_namespace");
pub(crate) const BY_TYPE: PostingTable<BYTE_ROW> = TableDefinition::new("index.by_type");
pub(crate) const BY_SUBJECT: PostingTable<TERM_ROW> = TableDefinition::new("index.by_subject");
pub(crate) const BY_RELATION: PostingTable<PAIR_ROW> = TableDefinition::new("index.by_relation");
pub(crate) const BY_SESSION: PostingTable<TERM_ROW> = TableDefinition::new("index.by_session");
pub(crate) const BY_TAG: PostingTable<TERM_ROW> = TableDefinition::new("index.by_tag");

/// Term key -> term id.
pub(crate) const TERMS: TableDefinition<'static, &'static [u8], &'static [u8; 8]> =
    TableDefinition::new("index.terms");
/// Term id -> term row.
pub(crate) const IDS: TableDefinition<'static, &'static [u8; 8], &'static [u8]> =
    TableDefinition::new("index.ids");
/// The stamp and the watermark.
pub(crate) const META: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("index.meta");

/// What the names of all derived tables start with, in every layout version.
pub(crate) const NAME_PREFIX: &str = "index.";

/// The derived tables of one read snapshot, opened once and kept with it.
///
/// Handles are owned and keep the snapshot alive; everything is readable from several threads.
#[derive(Debug)]
pub struct Tables {
    pub(crate) by_namespace: PostingRows<NAMESPACE_ROW>,
    pub(crate) by_type: PostingRows<BYTE_ROW>,
    pub(crate) by_subject: PostingRows<TERM_ROW>,
    pub(crate) by_relation: PostingRows<PAIR_ROW>,
    pub(crate) by_session: PostingRows<TERM_ROW>,
    pub(crate) by_tag: PostingRows<TERM_ROW>,
    pub(crate) terms: ReadOnlyTable<&'static [u8], &'static [u8; 8]>,
    pub(crate) ids: ReadOnlyTable<&'static [u8; 8], &'static [u8]>,
    pub(crate) meta: ReadOnlyTable<&'static str, &'static [u8]>,
}

impl Tables {
    /// Opens the tables in this snapshot.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where a table is missing (an index that was never set up), `ERR_IO`.
    pub fn open(txn: &ReadTransaction) -> Result<Self> {
        Ok(Self {
            by_namespace: txn.open_table(BY_NAMESPACE)?,
            by_type: txn.open_table(BY_TYPE)?,
            by_subject: txn.open_table(BY_SUBJECT)?,
            by_relation: txn.open_table(BY_RELATION)?,
            by_session: txn.open_table(BY_SESSION)?,
            by_tag: txn.open_table(BY_TAG)?,
            terms: txn.open_table(TERMS)?,
            ids: txn.open_table(IDS)?,
            meta: txn.open_table(META)?,
        })
    }
}
