//! Merging: several runs become one, in steps, while folds add others. A step writes some blocks in a transaction of
//! the engine; the last one puts the new run in the place of the old ones. Decides which runs; knows no threads.

use std::sync::Arc;

use redb::{ReadableTableMetadata, TableHandle, WriteTransaction};

use crate::block_seal::{self, BlockSeal, BlockTags};
use crate::error::{Error, Result};
use crate::meta::META;
use crate::run::directory::{RUN_PREFIX, RunDirectory, RunInfo, RunTableDefinition, table_name};
use crate::run::lists::RunList;
use crate::run::rows::MergedRows;
use crate::run::table::Run;
use crate::run::writer::RunWriter;
use crate::tables::Tables;
use crate::term::TermId;

/// Which runs of an index a [`RunMerge`] merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeGoal {
    /// Those that are not twice as large as the next smaller one: few runs, and each row is written a logarithmic
    /// number of times. While grains keep coming.
    SizeTiered,
    /// Those that are not eight times as large as all smaller ones together. While nothing else is to do.
    WhenIdle,
    /// All. Before the index is copied.
    All,
}

/// The blocks of a run that is no longer used, that one step of [`remove_unused_runs`] takes out.
const REMOVED_BLOCKS: usize = 1_024;

/// A merge of runs into one, which is not seen before its last step.
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None, [0; 16])?;
/// # txn.commit()?;
/// # use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
/// # use grainstore_index::{IndexedFields, Sequence, fold};
/// # for sequence in [0, 1] {
/// #     let tables = Tables::open(db.begin_read()?, None);
/// #     let mut tail = Tail::after(&tables)?;
/// #     let time = EpochMs::new(1_768_471_200_000 + sequence);
/// #     let grain = BeliefBuilder::new(time, "alice", "mg:prefers", "tea", 0.9).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let (address, fields) = (*blob.address().as_bytes(), GrainRef::new(blob.bytes())?);
/// #     let fields = IndexedFields::from_grain(&fields);
/// #     tail.push(&tables, Sequence::new(sequence as u64), address, &fields)?;
/// #     tail.freeze()?;
/// #     let Some(frozen) = tail.frozen() else { continue };
/// #     let txn = db.begin_write()?;
/// #     fold(&txn, &frozen, None, b"log")?;
/// #     txn.commit()?;
/// # }
/// use grainstore_index::{MergeGoal, RunMerge};
///
/// // Two grains were folded into `db`, one after the other.
/// let tables = Tables::open(db.begin_read()?, None);
/// assert_eq!(tables.run_count()?, 2);
/// if let Some(mut merge) = RunMerge::of(&tables, MergeGoal::WhenIdle, &[])? {
///     loop {
///         let txn = db.begin_write()?;
///         let done = merge.step(&txn, 1 << 20)?;
///         txn.commit()?;
///         if done { break }
///     }
/// }
/// assert_eq!(Tables::open(db.begin_read()?, None).run_count()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RunMerge {
    inputs: Vec<Arc<Run>>,
    seal: Option<Arc<dyn BlockSeal>>,
    writer: Option<RunWriter>,
    /// The lists that are not merged yet, the next one last.
    lists: Vec<RunList>,
    /// The rows of the list being merged; `None` between lists.
    rows: Option<MergedRows>,
}

impl std::fmt::Debug for RunMerge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunMerge").field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}

impl RunMerge {
    /// The merge that is due; `None` if there is none. Runs that other merges read are left out.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn of(tables: &Tables, goal: MergeGoal, others: &[&Self]) -> Result<Option<Self>> {
        let is_read = |run: &Run| {
            let mut inputs = others.iter().flat_map(|other| &other.inputs);
            inputs.any(|input| input.info.number == run.info.number)
        };
        let runs: Vec<&Arc<Run>> = tables.runs()?.iter().filter(|run| !is_read(run)).collect();
        let sizes: Vec<u64> = runs.iter().map(|run| run.info.size()).collect();
        let chosen = runs_to_merge(&sizes, goal);
        if chosen.len() < 2 {
            return Ok(None);
        }
        let inputs = chosen.into_iter().filter_map(|at| runs.get(at).copied().cloned()).collect();
        let mut lists: Vec<RunList> = RunList::all().collect();
        lists.reverse();
        Ok(Some(Self { inputs, seal: tables.seal(), writer: None, lists, rows: None }))
    }

    /// The bytes it will write, at most.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn bytes(&self) -> Result<u64> {
        let mut runs = self.inputs.iter();
        runs.try_fold(0_u64, |sum, run| Ok(sum.saturating_add(run.bytes()?)))
    }

    /// The name of the table of the new run, once it was begun.
    #[must_use]
    pub fn table(&self) -> Option<String> {
        self.writer.as_ref().map(|writer| table_name(writer.number()))
    }

    /// Writes about so many bytes. Returns `true` if the merge is done: then the next snapshot reads the new run. The
    /// transactions of a merge must be committed one after the other; if one is not, the merge is to be dropped.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if a run cannot be read, or is no longer in use; `ERR_IO`.
    pub fn step(&mut self, txn: &WriteTransaction, bytes: usize) -> Result<bool> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.begin(txn)?,
        };
        let end = writer.written().saturating_add(bytes);
        let name = table_name(writer.number());
        let mut rows = txn.open_table(RunTableDefinition::new(&name))?;
        if writer.written() == 0 && !rows.is_empty()? {
            return Err(Error::integrity("there is a run of this number"));
        }
        while writer.written() < end {
            let Some(merged) = &mut self.rows else {
                let Some(list) = self.lists.pop() else {
                    let info = writer.finish(&mut rows)?;
                    drop(rows);
                    self.replace_inputs(txn, info)?;
                    return Ok(true);
                };
                let global = only_namespace(&self.inputs).is_none();
                self.rows = Some(MergedRows::of(&self.inputs, list, global)?);
                continue;
            };
            match merged.least() {
                Some((row, value)) => {
                    writer.push(&mut rows, merged.list(), (row, value))?;
                    merged.advance()?;
                }
                None => self.rows = None,
            }
        }
        self.writer = Some(writer);
        Ok(false)
    }

    /// Takes a number for the new run.
    fn begin(&self, txn: &WriteTransaction) -> Result<RunWriter> {
        let mut meta = txn.open_table(META)?;
        block_seal::check_marks(self.seal.as_deref(), &meta)?;
        let mut directory = RunDirectory::stored(&meta)?;
        let number = directory.take_number()?;
        directory.store(&mut meta)?;
        block_seal::seal_marks(self.seal.as_deref(), &mut meta)?;
        let entries = self.inputs.iter().try_fold(0_u64, |sum, run| {
            let entries = [run.max_rows(RunList::TERMS)?, run.max_rows(RunList::ADDRESSES)?];
            Ok::<_, Error>(entries.into_iter().fold(sum, u64::saturating_add))
        })?;
        let tags = BlockTags::fresh(self.seal.as_ref())?;
        Ok(RunWriter::new(number, only_namespace(&self.inputs), tags, entries))
    }

    fn replace_inputs(&self, txn: &WriteTransaction, info: RunInfo) -> Result<()> {
        let mut meta = txn.open_table(META)?;
        block_seal::check_marks(self.seal.as_deref(), &meta)?;
        let mut directory = RunDirectory::stored(&meta)?;
        let before = directory.runs.len();
        let is_input = |run: &RunInfo| self.inputs.iter().any(|input| input.info == *run);
        let at = directory.runs.iter().position(is_input).unwrap_or_default();
        directory.runs.retain(|run| !is_input(run));
        if before - directory.runs.len() != self.inputs.len() {
            return Err(Error::integrity("the runs that were merged are no longer in use"));
        }
        directory.runs.insert(at.min(directory.runs.len()), info);
        directory.store(&mut meta)?;
        block_seal::seal_marks(self.seal.as_deref(), &mut meta)
    }
}

/// The namespace of the new run, if all inputs have the same.
fn only_namespace(inputs: &[Arc<Run>]) -> Option<TermId> {
    let (first, others) = inputs.split_first()?;
    let namespace = first.info.namespace?;
    others.iter().all(|run| run.info.namespace == Some(namespace)).then_some(namespace)
}

/// The places of the runs to merge, ascending; less than two if none are due.
fn runs_to_merge(sizes: &[u64], goal: MergeGoal) -> Vec<usize> {
    let mut places: Vec<usize> = (0..sizes.len()).collect();
    let size_of = |at: &usize| sizes.get(*at).copied().unwrap_or_default();
    places.sort_by_key(size_of);
    let count = match goal {
        MergeGoal::SizeTiered => {
            let sizes: Vec<u64> = places.iter().map(size_of).collect();
            let is_due = |pair: &[u64]| matches!(pair, [a, b] if *b < a.saturating_mul(2));
            // The largest that is due, and what is smaller; then what is not twice as large as these together.
            match sizes.windows(2).rposition(is_due) {
                None => 0,
                Some(at) => {
                    let (merged, rest) = sizes.split_at((at + 2).min(sizes.len()));
                    let mut total =
                        merged.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
                    let more = rest.iter().take_while(|size| {
                        let is_due = **size < total.saturating_mul(2);
                        total = total.saturating_add(**size);
                        is_due
                    });
                    merged.len() + more.count()
                }
            }
        }
        MergeGoal::All => places.len(),
        MergeGoal::WhenIdle => {
            let (mut smaller, mut count) = (0_u64, 0);
            for (at, size) in places.iter().map(size_of).enumerate() {
                if at > 0 && size <= smaller.saturating_mul(8) {
                    count = at.saturating_add(1);
                }
                smaller = smaller.saturating_add(size);
            }
            count
        }
    };
    places.truncate(count);
    places.sort_unstable();
    places
}

/// Takes out runs that are no longer used, or that a [`RunMerge`] left unfinished, some blocks at a time. Returns `true` if
/// nothing is left to take out. The tables of merges under way are left.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub fn remove_unused_runs(txn: &WriteTransaction, merges: &[&RunMerge]) -> Result<bool> {
    let used = RunDirectory::stored(&txn.open_table(META)?)?;
    let written = merges.iter().filter_map(|merge| merge.table());
    let used: Vec<String> = used.runs.iter().map(RunInfo::table).chain(written).collect();
    let unused = txn.list_tables()?.map(|table| table.name().to_owned());
    let unused =
        unused.into_iter().find(|name| name.starts_with(RUN_PREFIX) && !used.contains(name));
    let Some(name) = unused else { return Ok(true) };
    let mut rows = txn.open_table(RunTableDefinition::new(&name))?;
    for _ in 0..REMOVED_BLOCKS {
        if rows.pop_first()?.is_none() {
            break;
        }
    }
    let is_empty = rows.is_empty()?;
    drop(rows);
    if is_empty {
        txn.delete_table(RunTableDefinition::new(&name))?;
    }
    Ok(false)
}

/// Returns `true` if there are tables that [`remove_unused_runs`] would take out, beside those of each [`RunMerge`].
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub fn has_unused_runs(txn: &redb::ReadTransaction, merges: &[&RunMerge]) -> Result<bool> {
    let used = RunDirectory::stored(&txn.open_table(META)?)?;
    let tables = txn.list_tables()?.filter(|table| table.name().starts_with(RUN_PREFIX)).count();
    let written = merges.iter().filter(|merge| merge.table().is_some()).count();
    Ok(tables > used.runs.len().saturating_add(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_are_not_twice_as_large_as_what_comes_behind_are_merged() {
        for (sizes, goal, expected) in [
            (vec![], MergeGoal::SizeTiered, vec![]),
            (vec![10], MergeGoal::SizeTiered, vec![]),
            (vec![10, 10], MergeGoal::SizeTiered, vec![0, 1]),
            (vec![20, 10], MergeGoal::SizeTiered, vec![]),
            (vec![80, 40, 5, 9], MergeGoal::SizeTiered, vec![2, 3]),
            (vec![80, 27, 5, 9], MergeGoal::SizeTiered, vec![0, 1, 2, 3]),
            (vec![70, 70, 70, 20], MergeGoal::SizeTiered, vec![0, 1, 2, 3]),
            (vec![80, 4, 2], MergeGoal::WhenIdle, vec![1, 2]),
            (vec![80, 4], MergeGoal::WhenIdle, vec![]),
            (vec![80, 4, 6], MergeGoal::WhenIdle, vec![0, 1, 2]),
            (vec![1_000, 100, 1], MergeGoal::WhenIdle, vec![]),
            (vec![1_000, 100, 1], MergeGoal::All, vec![0, 1, 2]),
            (vec![1_000, 100, 13], MergeGoal::WhenIdle, vec![1, 2]),
        ] {
            assert_eq!(runs_to_merge(&sizes, goal), expected, "{sizes:?} {goal:?}");
        }
    }

    #[test]
    fn there_are_few_runs_and_a_row_is_written_few_times() {
        let (mut sizes, mut written): (Vec<u64>, u64) = (Vec::new(), 0);
        for _ in 0..4_096 {
            sizes.push(1);
            loop {
                let chosen = runs_to_merge(&sizes, MergeGoal::SizeTiered);
                if chosen.len() < 2 {
                    break;
                }
                let merged: u64 = chosen.iter().map(|at| sizes[*at]).sum();
                for at in chosen.into_iter().rev() {
                    sizes.remove(at);
                }
                sizes.push(merged);
                written += merged;
            }
            assert!(sizes.len() <= 13, "{sizes:?}");
        }
        assert!(written <= 13 * 4_096, "{written}");
    }
}
