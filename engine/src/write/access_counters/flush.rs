//! The writer's part of the access counters: adding waiting counts to the truth.

use crate::disk::layout::AccessCounts;
use std::sync::Arc;

use super::{AccessCounters, TakenCounts};
use crate::base::error::{Result, catch_storage_panic};
use crate::disk::layout;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::writer::Writer;

/// Maximum number of rows added to a group's transaction; the rest gets a transaction of its own.
const MAX_PIGGYBACK_ROWS: usize = 512;

impl Writer {
    /// Adds due counts to a transaction that is committed anyway, which saves a sync.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn piggyback(&self, rows: &mut RowWriter<'_>) -> Result<Vec<TakenCounts>> {
        match &self.counters {
            Some(counters) if counters.is_due(self.clock.now()) => {
                add_counts(rows, (counters, &self.view), MAX_PIGGYBACK_ROWS)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Discards counts that readers now see in the truth.
    pub(crate) fn committed(&self, taken: &[TakenCounts]) {
        if let Some(counters) = &self.counters {
            taken.iter().for_each(|taken| counters.done(taken));
        }
    }

    /// Writes counts in a transaction of their own if they are due.
    pub(crate) fn flush_due_counts(&mut self) {
        let due = |counters: &Arc<AccessCounters>| counters.is_due(self.clock.now());
        if self.counters.as_ref().is_some_and(due) {
            // The next write reports the error: a failed writer refuses.
            let _ = self.flush_counts();
        }
    }

    /// Writes all waiting counts. A failure stops the writer, as in any transaction.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn flush_counts(&mut self) -> Result<()> {
        self.check_running()?;
        catch_storage_panic(|| self.write_counts())
            .inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn write_counts(&mut self) -> Result<()> {
        let counters = self.counters.clone().filter(|counters| counters.waiting() > 0);
        let Some(counters) = counters else { return Ok(()) };
        let txn = self.db.begin_change()?;
        let taken = txn.write(|rows| add_counts(rows, (&counters, &self.view), usize::MAX))?;
        txn.commit()?;
        let truth = Arc::new(Truth::open(&self.db)?);
        self.replace_view(View::new(truth, self.view.indexed().clone()));
        self.committed(&taken);
        Ok(())
    }
}

/// Adds the counts of one shard after another until `limit` rows are written. An answer may count a grain that was
/// erased since: it has no counts any more.
fn add_counts(
    rows: &mut RowWriter<'_>,
    (counters, view): (&AccessCounters, &View),
    limit: usize,
) -> Result<Vec<TakenCounts>> {
    let mut all = Vec::new();
    let mut written = 0_usize;
    while written < limit {
        let Some(taken) = counters.take() else { break };
        let mut sums = Vec::with_capacity(taken.counts.len());
        for (sequence, access) in &taken.counts {
            if view.is_erased(*sequence)? {
                continue;
            }
            let stored = match rows.get(TruthTable::Access, *sequence)? {
                Some(record) => layout::decode_access(*sequence, &record)?,
                None => AccessCounts::default(),
            };
            let sum = stored.and(*access);
            rows.put(TruthTable::Access, *sequence, &layout::encode_access(*sequence, &sum))?;
            sums.push((*sequence, sum));
        }
        written = written.saturating_add(sums.len());
        counters.set_sums(&taken, &sums);
        all.push(taken);
    }
    Ok(all)
}
