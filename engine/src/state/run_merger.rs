//! Merges the runs of the index on the thread that folds, in steps between its jobs: a fold waits for one step at
//! most, and readers get the merged run as a new snapshot of the tables. Starts no thread and publishes nothing.

use grainstore_index::{
    MergeGoal, RunCache, RunMerge, Tables, has_unused_runs, remove_unused_runs,
};
use redb::{Durability, ReadableDatabase};

use super::fold_worker::in_transaction;
use crate::base::error::Result;
use crate::disk::database::{DatabaseHandle, LeasedReader};

/// Bytes that a step writes.
const STEP_BYTES: usize = 1 << 20;
/// Runs from which a fold is held up by some steps of merging, more of them the more runs there are.
const SOFT_RUNS: usize = 12;
/// Steps for each run beyond that.
const STEPS_A_RUN: usize = 4;
/// Runs that there never are more of.
const MAX_RUNS: usize = 32;

/// What is to be done about the runs.
#[derive(Debug, Default)]
pub(crate) struct RunMerger {
    state: MergerState,
    cache: RunCache,
}

#[derive(Debug, Default)]
enum MergerState {
    /// Nothing was folded since the last merge of this goal ended.
    #[default]
    Idle,
    /// Runs that are no longer used are to be taken out, then those of this goal to be merged.
    Due(MergeGoal),
    /// A merge is under way over this snapshot.
    Merging(Box<(RunMerge, LeasedReader<Tables>, MergeGoal)>),
    /// Nothing more is to be merged while grains keep coming.
    Resting,
}

/// The outcome of a step.
pub(crate) enum MergeStep {
    /// Nothing was to do, until the next fold or until [`RunMerger::rest`].
    Nothing,
    /// More is to do.
    More,
    /// A merge has ended: the tables as they are now.
    Merged(LeasedReader<Tables>),
}

impl RunMerger {
    /// Notes that a run was added, or that the index was opened.
    pub(crate) fn wake(&mut self) {
        if !matches!(self.state, MergerState::Merging(_)) {
            self.state = MergerState::Due(MergeGoal::Few);
        }
    }

    /// Notes that there is nothing else to do: what is left over may be merged further.
    pub(crate) fn rest(&mut self) {
        if matches!(self.state, MergerState::Resting) {
            self.state = MergerState::Due(MergeGoal::Rest);
        }
    }

    /// Gives up a merge that is under way, since the index may be another one now.
    pub(crate) fn abandon(&mut self) {
        self.state = MergerState::Due(MergeGoal::Few);
    }

    /// Returns `true` if [`step`](Self::step) has something to do.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.state, MergerState::Due(_) | MergerState::Merging(_))
    }

    /// Returns `true` if [`rest`](Self::rest) would give it something to do.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.state, MergerState::Resting)
    }

    /// Does a part of what is due.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`: the merge is given up then, until the next fold.
    pub(crate) fn step(&mut self, db: &DatabaseHandle) -> Result<MergeStep> {
        match std::mem::take(&mut self.state) {
            MergerState::Idle => Ok(MergeStep::Nothing),
            MergerState::Resting => {
                self.state = MergerState::Resting;
                Ok(MergeStep::Nothing)
            }
            MergerState::Due(goal) => {
                if has_unused_runs(&db.begin_read()?)? {
                    in_transaction(db, Durability::None, |txn| remove_unused_runs(txn).map(drop))?;
                    self.state = MergerState::Due(goal);
                    return Ok(MergeStep::More);
                }
                let tables = self.open_tables(db)?;
                self.state = match (RunMerge::of(&tables, goal)?, goal) {
                    (Some(merge), _) => MergerState::Merging(Box::new((merge, tables, goal))),
                    (None, MergeGoal::Few) => MergerState::Resting,
                    (None, _) => MergerState::Idle,
                };
                Ok(MergeStep::More)
            }
            MergerState::Merging(mut merging) => {
                let (merge, _, goal) = &mut *merging;
                let mut is_done = false;
                in_transaction(db, Durability::None, |txn| {
                    is_done = merge.step(txn, STEP_BYTES)?;
                    Ok(())
                })?;
                if !is_done {
                    self.state = MergerState::Merging(merging);
                    return Ok(MergeStep::More);
                }
                self.state = MergerState::Due(*goal);
                self.open_tables(db).map(MergeStep::Merged)
            }
        }
    }

    /// Merges before a fold adds a run, if there are many: the more there are, the longer.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn make_room(&mut self, db: &DatabaseHandle) -> Result<()> {
        let mut runs = self.open_tables(db)?.run_count()?;
        let mut steps = runs.saturating_sub(SOFT_RUNS).saturating_mul(STEPS_A_RUN);
        while steps > 0 || runs >= MAX_RUNS {
            if !self.is_due() {
                self.state = MergerState::Due(MergeGoal::Few);
            }
            match self.step(db)? {
                MergeStep::Merged(tables) => runs = tables.run_count()?,
                MergeStep::More => {}
                MergeStep::Nothing => break,
            }
            if self.is_resting() {
                break;
            }
            steps = steps.saturating_sub(1);
        }
        Ok(())
    }

    /// Merges all runs into one.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn merge_all(&mut self, db: &DatabaseHandle) -> Result<()> {
        self.state = MergerState::Due(MergeGoal::One);
        while self.is_due() {
            self.step(db)?;
        }
        Ok(())
    }

    /// Opens the tables as they are.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn open_tables(&self, db: &DatabaseHandle) -> Result<LeasedReader<Tables>> {
        let seal = db.vault().block_seal();
        Ok(db.lease(Tables::open(db.begin_read()?, seal).with_cache(&self.cache)))
    }
}
