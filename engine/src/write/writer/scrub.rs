//! Scrubbing: removes erased data from the disk.
//!
//! The steps, in order and each repeatable: grains of erased users become stubs; reasons about erased grains
//! are removed; both databases are replaced by copies that never contained the data; the old files are
//! overwritten once their last reader is gone, and so are full text and graphs; then the erasures are marked
//! as scrubbed. It runs when writing has been idle for a moment, at once if a caller waits for it, and before
//! the store is closed; an interrupted scrub starts again when the store is next opened.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_index::Sequence;

use super::Writer;
use super::erasure::{reasons_of_erased, write_stubs};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::pending::PendingReply;
use crate::disk::database::DatabaseHandle;
use crate::disk::layout::{self, AddressKey};
use crate::disk::truth_tables::TruthTable;
use crate::state::truth::Truth;
use crate::state::view::View;

/// Maximum number of grains that become stubs in one transaction.
const MAX_STUBS_PER_TXN: usize = 4096;
/// Idle time of writing before a scrub begins.
pub(super) const IDLE_BEFORE_SCRUB: Duration = Duration::from_millis(200);
/// Maximum time that writing may delay a scrub.
const MAX_SCRUB_DELAY: Duration = Duration::from_secs(60);
/// Maximum time that a caller who waits for a scrub waits for readers of the old files, unless it is set.
const MAX_READER_WAIT: Duration = Duration::from_secs(30);
/// Maximum time that the closing of a store waits for readers of the old files.
const MAX_CLOSING_WAIT: Duration = Duration::from_secs(2);
/// Time after which a scrub that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Interval of checks for remaining readers.
pub(super) const READER_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The progress of scrubbing.
#[derive(Default)]
pub(crate) struct ScrubState {
    /// Time from which a scrub is due, if it has not begun.
    due: Option<Instant>,
    /// The old files that wait for their readers.
    replaced: Option<ReplacedFiles>,
    /// Time since which readers of files that were replaced before keep a due scrub from beginning.
    held_up: Option<Instant>,
    /// Maximum time that a caller who waits for a scrub waits for readers of the old files.
    readers: Duration,
    /// Why a replaced file could not be overwritten when it was last tried.
    unshredded: Option<Error>,
    /// Callers waiting for the end of the scrub.
    waiting: Vec<PendingReply<()>>,
    /// True while files are replaced for what was erased already.
    shreds: bool,
    /// Sequences of grains that became stubs since the store was opened and may still be in memory.
    stubbed: Vec<Sequence>,
}

/// Erasures whose files were replaced.
#[derive(Debug, Clone, Copy)]
struct ReplacedFiles {
    /// The last of their audit entries.
    last_entry: u64,
    at: Instant,
}

impl ScrubState {
    /// The state for a store opened on this view.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn of(view: &View) -> Result<Self> {
        let due = view.is_unscrubbed()?.then(Instant::now);
        Ok(Self { due, readers: MAX_READER_WAIT, ..Self::default() })
    }

    /// Sets the maximum time that a caller waits for readers of the old files.
    #[cfg(test)]
    pub(crate) fn wait_for_readers(&mut self, readers: Duration) {
        self.readers = readers;
    }

    /// Schedules a scrub after an erasure of these sequences.
    pub(super) fn schedule(&mut self, places: Vec<Sequence>) {
        self.make_due();
        self.stubbed.extend(places);
    }

    /// Notes grains that the leader of this copy made stubs.
    pub(crate) fn note_stubbed(&mut self, places: impl IntoIterator<Item = Sequence>) {
        self.stubbed.extend(places);
    }

    /// Sets whether files that are replaced are overwritten, whatever erasures are pending.
    pub(crate) fn shreds_always(&mut self, shreds: bool) {
        self.shreds = shreds;
    }

    fn make_due(&mut self) {
        let now = Instant::now();
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
    }

    /// Returns `true` if something is to be done now.
    fn is_due(&self) -> bool {
        self.replaced.is_some() || self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Time until the next check; `None` if nothing is to be done.
    pub(super) fn next_check(&self) -> Option<Duration> {
        match (&self.replaced, self.due) {
            (Some(_), _) => Some(READER_CHECK_INTERVAL),
            (None, Some(due)) => {
                Some(due.saturating_duration_since(Instant::now()).max(IDLE_BEFORE_SCRUB))
            }
            (None, None) => None,
        }
    }

    /// Returns `true` if the scrub must not wait for an idle writer.
    fn is_urgent(&self) -> bool {
        !self.waiting.is_empty() || self.due.is_some_and(|since| since.elapsed() >= MAX_SCRUB_DELAY)
    }

    /// Answers all waiting callers once the old files had readers for longer than `patience`, since this time,
    /// or were tried in vain to be overwritten for as long as a closing store would.
    fn tell_of_readers(&mut self, since: Instant, patience: Duration) {
        let told = match &self.unshredded {
            Some(failed) if since.elapsed() >= MAX_CLOSING_WAIT => failed.clone(),
            None if since.elapsed() >= patience => {
                let message = "somebody still reads from the files as they were";
                let hint = "scrubbing ends by itself once they are done; try again to wait for it";
                Error::new(ErrorKind::Busy, message).with_hint(hint)
            }
            _ => return,
        };
        self.reply_all(&Err(told));
    }

    /// Answers all waiting callers.
    fn reply_all(&mut self, outcome: &Result<()>) {
        for reply in self.waiting.drain(..) {
            // The receiver may be gone.
            let _ = reply.send(outcome.clone());
        }
    }
}

impl Writer {
    /// Schedules a scrub at once, and answers when it has ended.
    pub(crate) fn scrub_for(&mut self, reply: PendingReply<()>) {
        match self.view.is_unscrubbed() {
            Ok(false) => drop(reply.send(Ok(()))),
            Ok(true) => {
                self.scrub.waiting.push(reply);
                self.scrub.make_due();
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Continues scrubbing if it is due.
    pub(super) fn continue_scrub(&mut self, is_idle: bool) {
        if let Err(error) = self.check_running() {
            return self.scrub.reply_all(&Err(error));
        }
        let begun = self.scrub.replaced.is_some();
        if self.scrub.is_due() && (begun || is_idle || self.scrub.is_urgent()) {
            // Until its outcome is taken the tables of before have readers.
            self.wait_for_fold();
            if !begun {
                self.begin_scrub(self.scrub.readers);
            }
        }
        self.end_scrub(self.scrub.readers);
    }

    /// Scrubs before the store is closed, as far as readers allow.
    pub(super) fn scrub_at_end(&mut self) {
        let began = Instant::now();
        while self.check_running().is_ok()
            && self.scrub.is_due()
            && began.elapsed() < MAX_CLOSING_WAIT
        {
            if self.scrub.replaced.is_none() {
                self.begin_scrub(MAX_CLOSING_WAIT);
            }
            self.end_scrub(MAX_CLOSING_WAIT);
            if self.scrub.is_due() {
                std::thread::sleep(READER_CHECK_INTERVAL);
            }
        }
        let closed = Error::new(ErrorKind::Busy, "the store was closed before it was scrubbed");
        self.scrub.reply_all(&Err(closed.with_hint("it goes on when the store is next open")));
    }

    /// Begins a scrub unless files that were replaced earlier, which may have to be overwritten as well, have
    /// readers. It stays due then.
    fn begin_scrub(&mut self, patience: Duration) {
        if self.has_old_readers() {
            let since = *self.scrub.held_up.get_or_insert_with(Instant::now);
            return self.scrub.tell_of_readers(since, patience);
        }
        self.scrub.held_up = None;
        self.scrub.due = None;
        match catch_storage_panic(|| self.replace_files()) {
            Ok(to) => {
                self.scrub.replaced =
                    to.map(|to| ReplacedFiles { last_entry: to, at: Instant::now() });
            }
            Err(error) => self.fail_scrub(error),
        }
    }

    /// Ends the scrub once the old files have no readers.
    fn end_scrub(&mut self, patience: Duration) {
        let Some(ReplacedFiles { last_entry: to, at }) = self.scrub.replaced else { return };
        let ended = catch_storage_panic(|| {
            if self.has_old_readers() {
                return Ok(false);
            }
            self.finish_scrub(to)?;
            Ok(true)
        });
        match ended {
            Ok(false) => self.scrub.tell_of_readers(at, patience),
            Ok(true) => {
                self.scrub.replaced = None;
                match self.view.is_unscrubbed() {
                    // There was another erasure in the meantime.
                    Ok(true) => self.scrub.due = Some(Instant::now()),
                    told => self.scrub.reply_all(&told.map(drop)),
                }
            }
            Err(error) => {
                self.scrub.replaced = None;
                self.fail_scrub(error);
            }
        }
    }

    /// Writes stubs, and replaces the files by ones that never contained the erased data. Returns the last
    /// audit entry of the erasures; `None` if nothing is to be scrubbed.
    fn replace_files(&mut self) -> Result<Option<u64>> {
        let pending = self.view.erasures()?.pending;
        let Some(to) = pending.iter().map(|of| of.entry).max() else { return Ok(None) };
        self.flush_counts()?;
        self.stub_erased()?;
        self.remove_reasons()?;
        self.fold_all()?;
        // A copy would lose what the pages of a damaged row can still tell, including the user it belongs to.
        self.view.check_log()?;
        if !self.db.is_in_memory() {
            self.replace_truth()?;
        }
        self.rebuild_index(self.view.with_index(self.view.indexed().clone()))?;
        Ok(Some(to))
    }

    /// Replaces all grains of erased users by stubs. The stubs keep the index keys of their addresses, which
    /// a rebuilt index could not recover.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn stub_erased(&mut self) -> Result<()> {
        let pending = self.view.erasures()?.pending;
        let cutoffs = pending.iter().filter(|of| of.user.is_some()).map(|of| of.cutoff);
        cutoffs.max().map_or(Ok(()), |last| self.stub_users(last))
    }

    /// Replaces the grains of erased users by stubs, up to a sequence.
    fn stub_users(&mut self, last: Sequence) -> Result<()> {
        let mut at = 0;
        let known = self.index_keys_of_lost(last)?;
        while at < last.get() {
            let view = Arc::clone(&self.view);
            let mut found = Vec::new();
            while at < last.get() && found.len() < MAX_STUBS_PER_TXN {
                at = at.saturating_add(1);
                let sequence = Sequence::new(at);
                if view.stub_at(sequence)?.is_none() && view.is_erased(sequence)? {
                    let address = match known.get(&sequence) {
                        Some(address) => *address,
                        None => AddressKey::from_token(view.index_key_or_lost(sequence)?),
                    };
                    found.push((sequence, address));
                }
            }
            drop(view);
            self.stub(&found)?;
        }
        Ok(())
    }

    /// Returns the index keys of grains that are no longer readable.
    fn index_keys_of_lost(&self, last: Sequence) -> Result<HashMap<Sequence, AddressKey>> {
        let view = &self.view;
        let mut known = HashMap::new();
        if view.vault().keyring().is_none() {
            return Ok(known);
        }
        for row in view.index().addresses_from([0; 32])? {
            let (address, sequence) = row?;
            if sequence <= last && view.stub_at(sequence)?.is_none() && view.is_erased(sequence)? {
                known.insert(sequence, AddressKey::from_token(address));
            }
        }
        Ok(known)
    }

    fn stub(&mut self, grains: &[(Sequence, AddressKey)]) -> Result<()> {
        if grains.is_empty() {
            return Ok(());
        }
        self.transact(|write_txn, rows| {
            write_stubs(write_txn.view, rows, grains)?;
            let mut erasures = write_txn.view.erasures()?;
            let more = u64::try_from(grains.len()).unwrap_or(u64::MAX);
            erasures.stubs = erasures.stubs.saturating_add(more);
            rows.put(TruthTable::Meta, layout::META_ERASURES, &erasures.seal())?;
            Ok(Some(((), Vec::new())))
        })?;
        self.scrub.stubbed.extend(grains.iter().map(|(at, _)| *at));
        Ok(())
    }

    fn remove_reasons(&mut self) -> Result<()> {
        let entries = reasons_of_erased(&self.view)?;
        if entries.is_empty() {
            return Ok(());
        }
        self.transact(|_, rows| {
            for entry in &entries {
                rows.remove(TruthTable::Reasons, *entry)?;
            }
            Ok(Some(((), Vec::new())))
        })?;
        Ok(())
    }

    /// Replaces the truth by a copy. The old file is overwritten if it contains erased data.
    pub(crate) fn replace_truth(&mut self) -> Result<()> {
        if self.must_shred(&Arc::clone(&self.view))? {
            self.db.shred_next_replaced();
        }
        self.db.make_copy()?;
        self.db.rename_copy()?;
        self.stop_on_error(|writer| {
            writer.db.switch_to_copy()?;
            let truth = Arc::new(Truth::open(&writer.db)?);
            writer.replace_view(View::new(truth, writer.view.indexed().clone()));
            // Databases that still have readers are closed once those are gone.
            let former = writer.db.take_replaced();
            writer.fold_worker.adopt(former)
        })
    }

    /// Returns `true` if files of this view must be overwritten when they are replaced: while an erasure is
    /// not scrubbed, whatever the reason for the replacement. Earlier ones are overwritten now if possible.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn must_shred(&mut self, view: &View) -> Result<bool> {
        let shreds = (self.scrub.shreds || view.is_unscrubbed()?) && !self.db.is_in_memory();
        if shreds {
            self.db.close_unread();
            self.fold_worker.release()?;
        }
        Ok(shreds)
    }

    /// Returns `true` if replaced files still have readers or wait to be overwritten.
    pub(crate) fn has_old_readers(&mut self) -> bool {
        if self.fold_worker.is_busy() {
            return true;
        }
        self.db.close_unread();
        let former = self.fold_worker.aside(|db: &mut DatabaseHandle| {
            db.close_unread();
            Ok((db.has_replaced(), db.unshredded()))
        });
        let (of_index, unshredded) = former.unwrap_or((true, None));
        self.scrub.unshredded = self.db.unshredded().or(unshredded);
        of_index || self.db.has_replaced()
    }

    /// Removes stubbed grains from memory.
    pub(crate) fn forget_stubbed(&mut self) -> Result<()> {
        self.retrieval.vectors.forget_grains(&self.scrub.stubbed, &self.view)?;
        self.scrub.stubbed = Vec::new();
        Ok(())
    }

    /// Reports a failed scrub. It stays pending, and is tried again on request, after a while, or when the
    /// store is next opened.
    fn fail_scrub(&mut self, error: Error) {
        // Memory is released where possible; if that fails, the sequences are kept.
        let _ = catch_storage_panic(|| self.forget_stubbed());
        self.scrub.due = Instant::now().checked_add(RETRY_AFTER);
        self.scrub.reply_all(&Err(error));
    }

    /// Removes derived data of erased grains, and marks these erasures as scrubbed.
    fn finish_scrub(&mut self, to: u64) -> Result<()> {
        self.retrieval.text_index.forget()?;
        self.forget_stubbed()?;
        self.retrieval.vectors.shred()?;
        self.transact(|write_txn, rows| {
            let erasures = write_txn.view.erasures()?.without_scrubbed(to);
            rows.put(TruthTable::Meta, layout::META_ERASURES, &erasures.seal())?;
            Ok(Some(((), Vec::new())))
        })?;
        self.mark_index_scrubbed()
    }

    /// Notes in the index that its tables are of after these erasures. After a crash before this, the next open
    /// makes the index anew.
    fn mark_index_scrubbed(&mut self) -> Result<()> {
        self.wait_for_fold();
        self.check_running()?;
        let history = self.view.truth().index_history()?;
        self.fold_worker.mark_history(history)?;
        self.wait_for_fold();
        self.check_running()
    }
}
