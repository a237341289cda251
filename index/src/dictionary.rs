//! The dictionary: term <-> id, read from a snapshot or from a transaction being written.
//!
//! Knows nothing of the tail, which holds the terms that are newer than these tables.

use redb::{ReadableTable, Table, WriteTransaction};

use crate::error::{Error, Result};
use crate::keys;
use crate::tables::{IDS, TERMS, Tables};
use crate::term::{Term, TermId};

/// The ids that terms have in the tables.
pub trait DictionaryRead {
    /// The id of a term, where it has one.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    fn id(&self, term: &Term<'_>) -> Result<Option<TermId>>;

    /// The id the next new term gets.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    fn next_id(&self) -> Result<TermId>;
}

impl DictionaryRead for Tables {
    fn id(&self, term: &Term<'_>) -> Result<Option<TermId>> {
        find(&self.terms, term)
    }

    fn next_id(&self) -> Result<TermId> {
        next_after(&self.ids)
    }
}

/// The dictionary as a transaction sees it that has folded and not yet committed.
///
/// Drop it before the next [`fold`](crate::fold): a table is open once in a transaction.
#[derive(Debug)]
pub struct StagedDictionary<'txn> {
    terms: Table<'txn, &'static [u8], &'static [u8; 8]>,
    ids: Table<'txn, &'static [u8; 8], &'static [u8]>,
}

impl<'txn> StagedDictionary<'txn> {
    /// Opens the dictionary inside a transaction.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` where it is open in this transaction already.
    pub fn open(txn: &'txn WriteTransaction) -> Result<Self> {
        Ok(Self { terms: txn.open_table(TERMS)?, ids: txn.open_table(IDS)? })
    }
}

impl DictionaryRead for StagedDictionary<'_> {
    fn id(&self, term: &Term<'_>) -> Result<Option<TermId>> {
        find(&self.terms, term)
    }

    fn next_id(&self) -> Result<TermId> {
        next_after(&self.ids)
    }
}

fn find(
    terms: &impl ReadableTable<&'static [u8], &'static [u8; 8]>,
    term: &Term<'_>,
) -> Result<Option<TermId>> {
    let row = terms.get(keys::term_key(term).as_slice())?;
    Ok(row.map(|id| keys::id_of(*id.value())))
}

fn next_after(ids: &impl ReadableTable<&'static [u8; 8], &'static [u8]>) -> Result<TermId> {
    let Some((last, _)) = ids.last()? else {
        return Ok(TermId::new(0));
    };
    let next = keys::id_of(*last.value()).next();
    next.ok_or_else(|| Error::integrity("the dictionary has no ids left"))
}
