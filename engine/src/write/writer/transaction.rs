//! A write transaction outside the groups (imports, erasures): it commits completely or not at all, and
//! publishes the result.
//!
//! Its contents are decided by the caller. The index follows the log as at opening, before the new grains are
//! visible.

use std::cell::RefCell;
use std::sync::Arc;

use grainstore_format::EpochMs;

use super::Writer;
use crate::base::error::{Result, catch_storage_panic};
use crate::disk::truth_transaction::RowWriter;
use crate::rules::preset::ActiveRules;
use crate::state::audit::append_audit;
use crate::state::audit::{AuditRecord, RefusalLog};
use crate::state::truth::Truth;
use crate::state::view::View;

/// The context of a transaction.
pub(crate) struct WriteTxn<'g> {
    pub(crate) view: &'g View,
    /// The rules of the store.
    pub(crate) active_rules: &'g ActiveRules,
    /// Refusals of the last minute, including those of this transaction.
    pub(crate) refusals: &'g RefCell<RefusalLog>,
    /// Sequence of its first audit entry.
    pub(crate) first_entry: u64,
    pub(crate) now: EpochMs,
    /// True if an authorized signature opens a lock.
    pub(crate) locked_accepts_signature: bool,
}

impl Writer {
    /// Commits what `stage` writes, and publishes it. Aborts and returns `None` if `stage` returns `None`.
    ///
    /// # Errors
    /// Those of `stage`, which leave everything as it was; `ERR_IO`, after which the writer has stopped if
    /// the commit failed.
    pub(crate) fn transact<T>(
        &mut self,
        stage: impl FnOnce(&WriteTxn<'_>, &mut RowWriter<'_>) -> Result<Option<(T, Vec<AuditRecord>)>>,
    ) -> Result<Option<T>> {
        let txn = self.db.begin_change()?;
        let (view, active_rules) = (Arc::clone(&self.view), Arc::clone(&self.rules));
        let mut chain = self.chain.clone();
        let refusals = RefCell::new(self.refusals.clone());
        let now = self.clock.now();
        let write_txn = WriteTxn {
            view: &view,
            active_rules: &active_rules,
            refusals: &refusals,
            first_entry: chain.head().count,
            now,
            locked_accepts_signature: self.locked_accepts_signature,
        };
        let stage = |rows: &mut RowWriter<'_>| {
            let Some((outcome, audit)) = stage(&write_txn, rows)? else { return Ok(None) };
            // The entries are about many users, so their reasons are encrypted under the store's key.
            let encryption_key = |_: &AuditRecord| Ok(view.vault().store_key());
            append_audit(rows, &mut chain, &audit, now, &encryption_key)?;
            Ok(Some(outcome))
        };
        let staged = catch_storage_panic(|| txn.write(stage));
        drop(view);
        let outcome = match staged {
            Ok(Some(outcome)) => outcome,
            given_up => {
                self.stop_on_error(|_| txn.abort())?;
                return given_up;
            }
        };
        self.stop_on_error(|writer| {
            txn.commit()?;
            writer.chain = chain;
            writer.refusals = refusals.into_inner();
            Ok(())
        })?;
        // The commit is durable and must be acknowledged; a writer that cannot read it back stops.
        if let Err(error) = catch_storage_panic(|| self.publish_log()) {
            self.failed = Some(error);
            self.publish(None);
        }
        Ok(Some(outcome))
    }

    /// Publishes the log once the index has caught up with it.
    pub(crate) fn publish_log(&mut self) -> Result<()> {
        let truth = Arc::new(Truth::open(&self.db)?);
        let mut indexed = self.view.indexed().clone();
        match catch_storage_panic(|| indexed.catch_up(&truth, &mut self.fold_worker)) {
            Ok(()) => {
                self.replace_view(View::new(truth, indexed));
                self.notify();
                Ok(())
            }
            Err(error) if error.is_index_damage() => self.rebuild_index(View::new(truth, indexed)),
            Err(error) => Err(error),
        }
    }
}
