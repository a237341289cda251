//! Merges the runs of the index on the thread that folds, in steps between its jobs: a fold waits for one step at
//! most, and readers get the merged run as a new snapshot of the tables. Starts no thread and publishes nothing.

use grainstore_index::{
    MergeGoal, RunCache, RunMerge, Tables, has_unused_runs, remove_unused_runs,
};
use redb::{Durability, ReadableDatabase};

use crate::base::error::Result;
use crate::disk::database::{DatabaseHandle, LeasedReader};
use crate::disk::directory;

/// Bytes that a step writes.
const STEP_BYTES: usize = 1 << 20;
/// Bytes after which what was written is made durable: redb keeps pages it freed until then.
const MAX_VOLATILE_BYTES: usize = 64 << 20;
/// Runs from which a fold is held up by some steps of merging, more of them the more runs there are.
const SOFT_RUNS: usize = 12;
/// Steps for each run beyond that.
const STEPS_A_RUN: usize = 4;
/// Runs from which a fold waits until some are merged, even where the disk has little room.
const MAX_RUNS: usize = 32;
/// Free bytes of the disk that a merge leaves beside what it writes.
const MIN_FREE_BYTES: u64 = 16 << 20;

/// What is to be done about the runs.
pub(crate) struct RunMerger {
    next: NextMerge,
    /// Merges under way, each of other runs and smaller than the one before; the last one goes on first.
    merges: Vec<(RunMerge, LeasedReader<Tables>)>,
    cache: RunCache,
    /// Bytes written since the last durable commit of a step.
    volatile: usize,
    /// True while there are too many runs to wait for room on the disk.
    is_forced: bool,
    /// False for the index of a store that is only read: what is merged there takes memory, and is lost.
    merges_when_idle: bool,
}

/// The goal of the next merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextMerge {
    /// A run was added: size-tiered.
    SizeTiered,
    /// No size-tiered merge is due; what is left over is merged when there is nothing else to do.
    WhenIdle { is_idle: bool },
    /// Nothing, until a run is added.
    Nothing,
}

/// The tables as they are after a merge that a step has ended.
pub(crate) type MergedTables = Option<LeasedReader<Tables>>;

impl RunMerger {
    /// The merger of an index that was just opened: it begins once there is nothing else to do, or else once a run
    /// is added.
    pub(crate) fn new(merges_when_idle: bool) -> Self {
        Self {
            next: NextMerge::WhenIdle { is_idle: false },
            merges: Vec::new(),
            cache: RunCache::default(),
            volatile: 0,
            is_forced: false,
            merges_when_idle,
        }
    }

    /// Notes that a run was added.
    pub(crate) fn run_added(&mut self) {
        self.next = NextMerge::SizeTiered;
    }

    /// Notes that there was nothing else to do for a while.
    pub(crate) fn set_idle(&mut self) {
        if let NextMerge::WhenIdle { is_idle } = &mut self.next {
            *is_idle = true;
        }
    }

    /// Gives up the merges under way, since the index is another one now.
    pub(crate) fn abandon(&mut self) {
        self.merges.clear();
        self.next = NextMerge::SizeTiered;
    }

    /// Returns `true` if [`step`](Self::step) has something to do.
    pub(crate) fn is_due(&self) -> bool {
        let is_next = match self.next {
            NextMerge::SizeTiered => true,
            NextMerge::WhenIdle { is_idle } => is_idle,
            NextMerge::Nothing => false,
        };
        is_next || !self.merges.is_empty()
    }

    /// Returns `true` if [`set_idle`](Self::set_idle) would give it something to do.
    pub(crate) fn waits_for_idleness(&self) -> bool {
        self.merges_when_idle && matches!(self.next, NextMerge::WhenIdle { is_idle: false })
    }

    /// Does a part of what is due.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`: the merges are given up then, until the next fold.
    pub(crate) fn step(&mut self, db: &DatabaseHandle) -> Result<MergedTables> {
        let step = match self.next {
            NextMerge::Nothing | NextMerge::WhenIdle { is_idle: false } => self.continue_merge(db),
            NextMerge::SizeTiered => self.begin(db, MergeGoal::SizeTiered),
            NextMerge::WhenIdle { is_idle: true } => self.begin(db, MergeGoal::WhenIdle),
        };
        step.inspect_err(|_| {
            self.merges.clear();
            self.next = NextMerge::Nothing;
        })
    }

    /// Merges before a fold adds a run, if there are many: the more there are, the longer.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(crate) fn make_room(&mut self, db: &DatabaseHandle) -> Result<()> {
        let mut runs = self.open_tables(db)?.run_count()?;
        if runs <= SOFT_RUNS {
            return Ok(());
        }
        if self.merges.is_empty() {
            self.next = NextMerge::SizeTiered;
        }
        let mut steps = (runs - SOFT_RUNS).saturating_mul(STEPS_A_RUN);
        while (steps > 0 || runs >= MAX_RUNS) && self.is_due() {
            self.is_forced = runs >= MAX_RUNS;
            let merged = self.step(db);
            self.is_forced = false;
            if let Some(tables) = merged? {
                runs = tables.run_count()?;
            }
            steps = steps.saturating_sub(1);
        }
        Ok(())
    }

    /// Merges all runs into one, if the disk has room for it, and takes out those that are no longer used. Merges under
    /// way must have been given up.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(crate) fn merge_all(&mut self, db: &DatabaseHandle) -> Result<()> {
        while self.remove_unused(db)? {}
        self.begin(db, MergeGoal::All)?;
        while !self.merges.is_empty() {
            self.continue_merge(db)?;
        }
        while self.remove_unused(db)? {}
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

    /// Takes out runs that are no longer used, or begins the merge that is due beside those under way.
    fn begin(&mut self, db: &DatabaseHandle, goal: MergeGoal) -> Result<MergedTables> {
        if self.remove_unused(db)? {
            return Ok(None);
        }
        let others = self.under_way();
        let tables = self.open_tables(db)?;
        match RunMerge::of(&tables, goal, &others)? {
            Some(merge) => {
                self.next = NextMerge::Nothing;
                if self.is_forced || has_room(db, merge.bytes()?)? {
                    self.merges.push((merge, tables));
                }
            }
            None if goal == MergeGoal::SizeTiered && self.merges.is_empty() => {
                self.next = NextMerge::WhenIdle { is_idle: false };
            }
            None => self.next = NextMerge::Nothing,
        }
        Ok(None)
    }

    /// Takes out a part of the runs that are no longer used; returns `false` if there are none.
    fn remove_unused(&self, db: &DatabaseHandle) -> Result<bool> {
        let others = self.under_way();
        if !has_unused_runs(&db.begin_read()?, &others)? {
            return Ok(false);
        }
        let mut txn = db.begin_write()?;
        txn.set_quick_repair(true);
        remove_unused_runs(&txn, &others)?;
        txn.set_durability(Durability::None)?;
        txn.commit()?;
        Ok(true)
    }

    fn under_way(&self) -> Vec<&RunMerge> {
        self.merges.iter().map(|(merge, _)| merge).collect()
    }

    /// Goes on with the last merge that was begun.
    fn continue_merge(&mut self, db: &DatabaseHandle) -> Result<MergedTables> {
        let Some((merge, _)) = self.merges.last_mut() else { return Ok(None) };
        let mut txn = db.begin_write()?;
        txn.set_quick_repair(true);
        let is_done = merge.step(&txn, STEP_BYTES)?;
        self.volatile = self.volatile.saturating_add(STEP_BYTES);
        let is_durable = is_done || self.volatile >= MAX_VOLATILE_BYTES;
        txn.set_durability(if is_durable { Durability::Immediate } else { Durability::None })?;
        txn.commit()?;
        if is_durable {
            self.volatile = 0;
        }
        if !is_done {
            return Ok(None);
        }
        self.merges.pop();
        self.next = NextMerge::SizeTiered;
        self.open_tables(db).map(Some)
    }
}

/// Returns `true` if the disk has room for so many bytes more. A disk that fills up during a merge would end all
/// writing, which a merge is not worth.
fn has_room(db: &DatabaseHandle, bytes: u64) -> Result<bool> {
    if db.is_in_memory() {
        return Ok(true);
    }
    let free = directory::free_bytes(&db.database_file()?.file);
    Ok(free.is_none_or(|free| free >= bytes.saturating_mul(2).saturating_add(MIN_FREE_BYTES)))
}
