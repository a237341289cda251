//! The list of what review made of grains. A status is no part of a grain and changes after it was
//! folded, so its rows are written one by one, and no tail holds them.

use grainstore_format::VerificationStatus;
use redb::WriteTransaction;

use crate::error::{Error, Result};
use crate::keys::{Key, Prefix, Rank};
use crate::lists::List;
use crate::posting::Posting;
use crate::tables::TERMS;
use crate::term::{Term, TermId, TermKind, Word, partition};
use crate::words;

/// Moves a grain from one status to another in the list of statuses.
///
/// Only grains that somebody reviewed have rows: the default status has none. A grain has to be
/// folded before its status is set; `false` tells that its namespace is not in the tables yet and
/// nothing was done. Moving a grain again changes nothing. A [`reset`](crate::reset) takes these
/// rows too, and whoever rebuilds the index sets each status again.
///
/// # Errors
/// `ERR_IO`, `ERR_INTEGRITY`.
pub fn set_status(
    txn: &WriteTransaction,
    namespace: Word<'_>,
    from: VerificationStatus,
    to: VerificationStatus,
    posting: Posting,
) -> Result<bool> {
    let word = match namespace {
        Word::Plain(name) => Word::Plain(partition(name)),
        token @ Word::Token(_) => token,
    };
    let Some(id) = namespace_id(txn, word)? else { return Ok(false) };
    let rank = Rank::of(posting)?;
    let rows = |status: VerificationStatus| -> [Key; 2] {
        [TermId::NONE, id].map(|namespace| Prefix::status(namespace, status).key(rank))
    };
    let def = List::Status.def();
    let unlisted = VerificationStatus::default();
    if from != unlisted {
        (def.access.remove)(txn, def.table, &rows(from))?;
    }
    if to != unlisted {
        (def.access.insert)(txn, def.table, &rows(to))?;
    }
    Ok(true)
}

fn namespace_id(txn: &WriteTransaction, word: Word<'_>) -> Result<Option<TermId>> {
    let key = words::term_key(&Term { kind: TermKind::Namespace, word });
    let terms = txn.open_table(TERMS)?;
    let Some(row) = redb::ReadableTable::get(&terms, key.as_slice())? else { return Ok(None) };
    let id = words::id_and_text(row.value()).map(|(id, _)| id);
    id.map(Some).ok_or_else(|| Error::integrity("a term row is too short"))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
