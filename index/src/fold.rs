//! Folding: writes a frozen part as a run. Knows nothing of reading.

use std::sync::Arc;

use redb::{ReadableTableMetadata, WriteTransaction};

use crate::block_seal::{self, BlockSeal, BlockTags};
use crate::error::{Error, Result};
use crate::keys;
use crate::layout;
use crate::meta::{self, HISTORY, META};
use crate::part::TailPart;
use crate::posting::Watermark;
use crate::posting_lists::POSTING_LISTS;
use crate::run::directory::{RunDirectory, RunInfo, RunTableDefinition, table_name};
use crate::run::lists::RunList;
use crate::run::writer::RunWriter;
use crate::sample;
use crate::tail::FrozenTail;
use crate::term::TermId;

/// Writes a frozen part as a run and advances the watermark. Folding it again changes nothing.
///
/// Returns the watermark of the tables afterwards. After the commit, readers switch to new
/// [`Tables`](crate::Tables) and a tail whose frozen part was [dropped](crate::Tail::drop_frozen); if it
/// fails, they keep what they had.
///
/// In an encrypted store `seal` makes the tags of blocks. `history` is kept beside the watermark: it tells the
/// engine which log the tables were folded from.
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None, [0; 16])?;
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
    seal: Option<&Arc<dyn BlockSeal>>,
    history: &[u8],
) -> Result<Option<Watermark>> {
    let part = &*frozen.0;
    let mut rows = txn.open_table(META)?;
    if meta::stamp(&rows)? != Some(keys::LAYOUT) {
        return Err(Error::integrity("the index tables have no stamp of this layout"));
    }
    block_seal::check_marks(seal.map(|seal| &**seal), &rows)?;
    let before = meta::watermark(&rows)?;
    let is_folded = before >= part.watermark;
    if !is_folded && before != part.base {
        return Err(Error::integrity("the tail continues tables that were folded otherwise"));
    }
    if !is_folded {
        let mut directory = RunDirectory::stored(&rows)?;
        let number = directory.take_number()?;
        let tags = BlockTags::fresh(seal)?;
        directory.runs.push(write_run(txn, part, number, tags)?);
        directory.store(&mut rows)?;
        meta::set_next_ids(&mut rows, &part.next_ids)?;
        if let Some(mark) = &part.watermark {
            meta::set_watermark(&mut rows, mark)?;
        }
    }
    rows.insert(HISTORY, history)?;
    block_seal::seal_marks(seal.map(|seal| &**seal), &mut rows)?;
    Ok(before.max(part.watermark))
}

/// Replaces the `history` beside the watermark, as [`fold`] takes it, in tables that nothing else changes in.
///
/// # Errors
/// `ERR_IO`, `ERR_INTEGRITY`. The transaction must then be aborted.
pub fn mark_history(
    txn: &WriteTransaction,
    seal: Option<&dyn BlockSeal>,
    history: &[u8],
) -> Result<()> {
    let mut rows = txn.open_table(META)?;
    block_seal::check_marks(seal, &rows)?;
    rows.insert(HISTORY, history)?;
    block_seal::seal_marks(seal, &mut rows)
}

/// Writes the rows of a part. If all its grains have the same namespace, those under the namespace 0 are left out.
fn write_run(
    txn: &WriteTransaction,
    part: &TailPart,
    number: u32,
    tags: BlockTags,
) -> Result<RunInfo> {
    let mut postings = part.postings.sorted();
    let namespace = only_namespace(&postings);
    if namespace.is_some() {
        postings.retain(|key| match key.split_first() {
            Some((list, row)) => !RunList::of_posting(*list).is_global(row),
            None => true,
        });
    }
    let entries = part.terms.len().saturating_add(part.relations.len()).saturating_add(part.grains);
    let mut run =
        RunWriter::new(number, namespace, tags, u64::try_from(entries).unwrap_or(u64::MAX));
    let name = table_name(number);
    let mut rows = txn.open_table(RunTableDefinition::new(&name))?;
    if !rows.is_empty()? {
        return Err(Error::integrity("there is a run of this number"));
    }
    for key in &postings {
        let Some((list, row)) = key.split_first() else { continue };
        let Some(def) = POSTING_LISTS.get(usize::from(*list)) else {
            return Err(Error::integrity("there is no such list"));
        };
        let row = row.get(..def.width).unwrap_or_default();
        run.push(&mut rows, RunList::of_posting(*list), (row, &[]))?;
    }
    for row in sample::draw(&postings) {
        run.push(&mut rows, RunList::SAMPLE, (&row, &[]))?;
    }
    for (key, row) in term_rows(part) {
        run.push(&mut rows, RunList::TERMS, (&key, &row))?;
    }
    for (address, sequence) in part.addresses.sorted() {
        let sequence = u32::try_from(sequence).map_err(|_| Error::full())?;
        let row = [&address[..], &sequence.to_be_bytes()].concat();
        run.push(&mut rows, RunList::ADDRESSES, (&row, &[]))?;
    }
    run.finish(&mut rows)
}

/// The namespace of the grains of these postings, if they have the same. Every grain is in the first list.
fn only_namespace(sorted: &[keys::PostingKey]) -> Option<TermId> {
    let all = sorted.iter().take_while(|key| key.first() == Some(&0));
    let mut namespaces = all.filter_map(keys::namespace_of).filter(|id| *id != TermId::NONE);
    let first = namespaces.next()?;
    namespaces.all(|id| id == first).then_some(first)
}

/// The key of a term and its row.
type TermRow = (Arc<[u8]>, Arc<[u8]>);

/// New terms, and the rows from relation ids to term keys, in order.
fn term_rows(part: &TailPart) -> Vec<TermRow> {
    let terms = part.terms.iter();
    let terms =
        terms.filter_map(|(key, term)| Some((Arc::clone(key), Arc::clone(term.row.as_ref()?))));
    let ids = part.relations.iter();
    let ids = ids.map(|(id, key)| (layout::relation_id_key(*id).into(), Arc::clone(key)));
    let mut rows: Vec<_> = terms.chain(ids).collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
