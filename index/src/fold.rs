//! Folding: writes a frozen part into the tables, in sorted batches. Knows nothing of reading.

use redb::WriteTransaction;

use crate::error::{Error, Result};
use crate::keys;
use crate::layout;
use crate::meta::{self, HISTORY, META};
use crate::part::TailPart;
use crate::posting::Watermark;
use crate::posting_lists::POSTING_LISTS;
use crate::row_sum::{RowSeal, RowSum};
use crate::sample;
use crate::tables::{ADDRESS, TERMS};
use crate::tail::FrozenTail;

/// Writes a frozen part into the tables and advances the watermark. Folding it again changes nothing.
///
/// Returns the watermark of the tables afterwards. After the commit, readers switch to new
/// [`Tables`](crate::Tables) and a tail whose frozen part was [dropped](crate::Tail::drop_frozen); if it
/// fails, they keep what they had.
///
/// In an encrypted store `seal` keeps the sums of the rows. `history` is kept beside the watermark: it tells the
/// engine which log the tables were folded from.
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None)?;
/// # txn.commit()?;
/// # let tables = Tables::open(db.begin_read()?, None);
/// # let mut tail = Tail::after(&tables)?;
/// # use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
/// # use grainstore_index::{IndexedFields, Sequence};
/// # for (sequence, subject) in [(0, "alice"), (1, "ann"), (2, "alice")] {
/// #     let time = EpochMs::new(1_768_471_200_000 + sequence);
/// #     let grain = BeliefBuilder::new(time, subject, "mg:prefers", "tea", 0.9).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let (address, fields) = (*blob.address().as_bytes(), GrainRef::new(blob.bytes())?);
/// #     let fields = IndexedFields::from_grain(&fields);
/// #     tail.push(&tables, Sequence::new(sequence as u64), address, &fields)?;
/// # }
/// use grainstore_index::{IndexState, fold, state};
///
/// // `tail` holds three beliefs that are not in the tables of `db` yet.
/// tail.freeze()?;
/// if let Some(frozen) = tail.frozen() {
///     let txn = db.begin_write()?;
///     fold(&txn, &frozen, None, b"log 1")?;
///     txn.commit()?;
/// }
/// let last = tail.watermark();
/// let address_at = |_| Ok::<_, grainstore_index::Error>(last.map(|last| last.address));
/// assert_eq!(state(&db.begin_read()?, address_at, None)?, IndexState::Ready(last));
/// assert_eq!(Tables::open(db.begin_read()?, None).history()?.as_deref(), Some(&b"log 1"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_INTEGRITY` for tables that were never set up or have another layout, and for a part that does not
/// continue them (grains in between would be lost, or a term would have two ids). `ERR_IO`. The transaction
/// must then be aborted.
pub fn fold(
    txn: &WriteTransaction,
    frozen: &FrozenTail,
    seal: Option<&dyn RowSeal>,
    history: &[u8],
) -> Result<Option<Watermark>> {
    let part = &*frozen.0;
    let mut rows = txn.open_table(META)?;
    if meta::stamp(&rows)? != Some(keys::LAYOUT) {
        return Err(Error::integrity("the index tables have no stamp of this layout"));
    }
    let before = meta::watermark(&rows)?;
    if before < part.base {
        return Err(Error::integrity("the tail continues tables that were folded further"));
    }
    let mut sum = RowSum::stored(seal, &rows)?;
    fold_terms(txn, part, &mut sum)?;
    fold_postings(txn, part, &mut sum)?;
    fold_addresses(txn, part, &mut sum)?;
    let ids = meta::next_ids(&rows)?.max(part.next_ids);
    meta::set_next_ids(&mut rows, &ids)?;
    let after = before.max(part.watermark);
    if let Some(mark) = &after {
        meta::set_watermark(&mut rows, mark)?;
    }
    rows.insert(HISTORY, history)?;
    sum.store(&mut rows)?;
    Ok(after)
}

/// Replaces the `history` beside the watermark, as [`fold`] takes it, in tables that nothing else changes in.
///
/// # Errors
/// `ERR_IO`, `ERR_INTEGRITY`. The transaction must then be aborted.
pub fn mark_history(
    txn: &WriteTransaction,
    seal: Option<&dyn RowSeal>,
    history: &[u8],
) -> Result<()> {
    let mut rows = txn.open_table(META)?;
    let sum = RowSum::stored(seal, &rows)?;
    rows.insert(HISTORY, history)?;
    sum.store(&mut rows)
}

/// Writes new terms, and the rows from relation ids to term keys.
fn fold_terms(txn: &WriteTransaction, part: &TailPart, sum: &mut RowSum<'_>) -> Result<()> {
    let mut terms = txn.open_table(TERMS)?;
    for (key, term) in &part.terms {
        let Some(row) = &term.row else { continue };
        let known = terms.insert(&**key, &**row)?;
        if let Some(known) = &known {
            sum.add_term(key, known.value());
        }
        sum.add_term(key, row);
        let known = known.and_then(|row| layout::split_term_row(row.value()).map(|(id, _)| id));
        if known.is_some_and(|id| id != term.id) {
            return Err(Error::integrity("a term has two ids; this tail continues other tables"));
        }
    }
    for (id, key) in &part.relations {
        let row = layout::relation_id_key(*id);
        if let Some(known) = terms.insert(row.as_slice(), &**key)? {
            sum.add_term(&row, known.value());
        }
        sum.add_term(&row, key);
    }
    Ok(())
}

/// Writes the postings. Keys sort by list first, so each table gets its rows in one ascending batch.
fn fold_postings(txn: &WriteTransaction, part: &TailPart, sum: &mut RowSum<'_>) -> Result<()> {
    let keys = part.postings.sorted();
    for stretch in keys.chunk_by(|key, next| key.first() == next.first()) {
        let Some(number) = stretch.first().and_then(|key| key.first()) else { continue };
        let Some(def) = POSTING_LISTS.get(usize::from(*number)) else {
            return Err(Error::integrity("there is no such list"));
        };
        (def.list.access().insert)(txn, def.list, stretch, sum)?;
    }
    sample::fold(txn, &keys, sum)
}

fn fold_addresses(txn: &WriteTransaction, part: &TailPart, sum: &mut RowSum<'_>) -> Result<()> {
    let mut table = txn.open_table(ADDRESS)?;
    for (address, sequence) in part.addresses.sorted() {
        if let Some(known) = table.insert(&address, sequence)? {
            sum.add_address(&address, known.value());
        }
        sum.add_address(&address, sequence);
    }
    Ok(())
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
