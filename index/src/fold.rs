//! Folding: the way of a tail into the tables, in sorted batches. Knows nothing of reading.

use redb::WriteTransaction;

use crate::error::{Error, Result};
use crate::keys::{self, Bound};
use crate::stamp::{self, Watermark};
use crate::tables::{
    BY_NAMESPACE, BY_RELATION, BY_SESSION, BY_SUBJECT, BY_TAG, BY_TYPE, IDS, META, TERMS,
};
use crate::tail::Tail;

/// Writes a tail into the tables and moves the watermark. Folding a tail again changes nothing.
///
/// Gives the watermark of the tables afterwards. Once the transaction is committed, readers go on
/// with new [`Tables`](crate::Tables) and [`Tail::folded`]; if it fails, with what they had.
///
/// # Errors
/// `ERR_INTEGRITY` for tables that were never set up or have another layout, and for a tail that
/// does not continue them: grains between them would be lost, or a term have two ids. `ERR_IO`.
/// The transaction has to be aborted then.
pub fn fold(txn: &WriteTransaction, tail: &Tail) -> Result<Option<Watermark>> {
    let mut meta = txn.open_table(META)?;
    if stamp::stamp(&meta)? != Some(keys::LAYOUT) {
        return Err(Error::integrity("the index tables have no stamp of this layout"));
    }
    let before = stamp::watermark(&meta)?;
    if before < tail.base() {
        return Err(Error::integrity("the tail continues tables that were folded further"));
    }
    fold_terms(txn, tail)?;
    fold_postings(txn, tail)?;
    let after = before.max(tail.watermark());
    if let Some(mark) = &after {
        stamp::set_watermark(&mut meta, mark)?;
    }
    Ok(after)
}

/// Writes both directions of the dictionary.
fn fold_terms(txn: &WriteTransaction, tail: &Tail) -> Result<()> {
    let mut terms = txn.open_table(TERMS)?;
    let mut ids = txn.open_table(IDS)?;
    for (key, new) in tail.terms() {
        let known = terms.insert(&**key, &keys::id_bytes(new.id))?;
        let known = known.map(|id| keys::id_of(*id.value()));
        if known.is_some_and(|id| id != new.id) {
            return Err(Error::integrity("a term has two ids; this tail continues other tables"));
        }
    }
    let mut rows: Vec<_> = tail.terms().values().collect();
    rows.sort_unstable_by_key(|new| new.id);
    for new in rows {
        ids.insert(&keys::id_bytes(new.id), &*new.row)?;
    }
    Ok(())
}

/// Writes the postings. The tail orders by namespace, then kind, so each table gets its rows in
/// ascending order.
fn fold_postings(txn: &WriteTransaction, tail: &Tail) -> Result<()> {
    let mut by_namespace = txn.open_table(BY_NAMESPACE)?;
    let mut by_type = txn.open_table(BY_TYPE)?;
    let mut by_subject = txn.open_table(BY_SUBJECT)?;
    let mut by_relation = txn.open_table(BY_RELATION)?;
    let mut by_session = txn.open_table(BY_SESSION)?;
    let mut by_tag = txn.open_table(BY_TAG)?;
    for key in tail.postings() {
        let (ns, rank) = (key.prefix.namespace, key.rank);
        match key.prefix.bound {
            Bound::Nothing => by_namespace.insert(&keys::namespace_row(ns, rank), ())?,
            Bound::Type(byte) => by_type.insert(&keys::byte_row(ns, byte, rank), ())?,
            Bound::Subject(s) => by_subject.insert(&keys::term_row(ns, s, rank), ())?,
            Bound::SubjectRelation(s, r) => {
                by_relation.insert(&keys::pair_row(ns, (s, r), rank), ())?
            }
            Bound::Session(id) => by_session.insert(&keys::term_row(ns, id, rank), ())?,
            Bound::Tag(tag) => by_tag.insert(&keys::term_row(ns, tag, rank), ())?,
        };
    }
    Ok(())
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
