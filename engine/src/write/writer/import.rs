//! The transaction of an import: all of it or nothing, and the view that shows it.
//!
//! What is written is another module's business. The index follows the log as it does when a store
//! opens, before anybody sees the new grains.

use std::cell::RefCell;
use std::sync::Arc;

use grainstore_format::EpochMs;
use redb::{Durability, WriteTransaction};

use super::{Writer, append_audit};
use crate::base::error::{Result, guarded};
use crate::rules::preset::Regime;
use crate::state::audit::{AuditRecord, Refusals};
use crate::state::truth::Truth;
use crate::state::view::View;

/// What an import builds on.
pub(crate) struct Ground<'g> {
    pub(crate) view: &'g View,
    pub(crate) txn: &'g WriteTransaction,
    /// The rules of the store.
    pub(crate) regime: &'g Regime,
    /// The refusals of the last minute, and those of what is under way.
    pub(crate) refusals: &'g RefCell<Refusals>,
    /// The audit entry that its first record will be.
    pub(crate) first_entry: u64,
    pub(crate) now: EpochMs,
    /// Whether an authorized signature opens a lock.
    pub(crate) locked_accepts_signature: bool,
}

impl Writer {
    /// Commits what `stage` writes, and shows it. Nothing where it says that there is nothing.
    ///
    /// # Errors
    /// Those of `stage`, which leave everything as it was; `ERR_IO`, after which writing has ended
    /// where it came with the commit.
    pub(crate) fn import<T>(
        &mut self,
        stage: impl FnOnce(&Ground<'_>) -> Result<Option<(T, Vec<AuditRecord>)>>,
    ) -> Result<Option<T>> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        let (view, regime) = (Arc::clone(&self.view), Arc::clone(&self.regime));
        let mut chain = self.chain.clone();
        let refusals = RefCell::new(self.refusals.clone());
        let now = self.clock.now();
        let staged = guarded(|| {
            let ground = Ground {
                view: &view,
                txn: &txn,
                regime: &regime,
                refusals: &refusals,
                first_entry: chain.head().count,
                now,
                locked_accepts_signature: self.locked_accepts_signature,
            };
            let Some((outcome, audit)) = stage(&ground)? else { return Ok(None) };
            // What an import tells is of many people, and under the store's key.
            let keeper = |_: &AuditRecord| Ok(view.vault().keeper());
            append_audit(&txn, &mut chain, &audit, now, &keeper)?;
            Ok(Some(outcome))
        });
        drop(view);
        let outcome = match staged {
            Ok(Some(outcome)) => outcome,
            given_up => {
                self.or_stop(|_| Ok(txn.abort()?))?;
                return given_up;
            }
        };
        self.or_stop(|writer| {
            writer.db.vault().commit(txn)?;
            writer.chain = chain;
            writer.refusals = refusals.into_inner();
            Ok(())
        })?;
        // What is committed is durable, and is answered so; a writer that cannot read it back stops.
        if let Err(error) = guarded(|| self.show_log()) {
            self.failed = Some(error);
            self.publish(None);
        }
        Ok(Some(outcome))
    }

    /// Lets readers see what the log has, once the index knows it.
    fn show_log(&mut self) -> Result<()> {
        let truth = Arc::new(Truth::open(&self.db)?);
        let mut indexed = self.view.indexed().clone();
        match guarded(|| indexed.catch_up(&truth, &mut self.folder)) {
            Ok(()) => {
                self.replace_view(View::new(truth, indexed));
                self.grown();
                Ok(())
            }
            Err(error) if error.is_of_index() => self.rebuild_index(View::new(truth, indexed)),
            Err(error) => Err(error),
        }
    }
}
