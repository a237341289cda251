//! Scrubbing: what was erased leaves the disk.
//!
//! In this order, each step of which can be done again: grains of erased users become stubs, reasons about
//! erased grains go, both databases go on as copies that never held any of it, the old files are
//! overwritten once nobody reads from them, and so are full text and graphs. Then the erasures count as
//! scrubbed. It is done when writing has been idle for a moment, at once where somebody waits for it,
//! and before the store is closed; what a crash cuts short begins again when the store is next open.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_index::Sequence;

use super::Writer;
use super::erasure::{put_stubs, reasons_of_erased};
use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::Reply;
use crate::disk::keys::{self, AddressKey};
use crate::disk::source::Source;
use crate::state::truth::Truth;
use crate::state::view::View;

/// Grains that become stubs in one transaction.
const AT_ONCE: usize = 4096;
/// How long writing has to be idle.
pub(super) const IDLE: Duration = Duration::from_millis(200);
/// How long writing may keep it waiting.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long who waits for it waits for readers of the old files.
const READERS: Duration = Duration::from_secs(30);
/// How long a store that is closed waits for them.
const CLOSING: Duration = Duration::from_secs(2);
/// How often it is looked whether they have ended.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// How far scrubbing is.
#[derive(Default)]
pub(crate) struct Scrub {
    /// Since when there is something to do, and nobody has begun.
    due: Option<Instant>,
    /// The old files wait for their readers.
    exchanged: Option<Exchanged>,
    /// Who wants to know when it is done.
    waiting: Vec<Reply<()>>,
    /// Places that became stubs since the store was opened and may still be in memory.
    places: Vec<Sequence>,
}

/// Erasures whose files were exchanged.
#[derive(Debug, Clone, Copy)]
struct Exchanged {
    /// The last audit entry that tells of one of them.
    to: u64,
    at: Instant,
}

impl Scrub {
    /// That of a store that was opened on this view.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn of(view: &View) -> Result<Self> {
        Ok(Self { due: view.is_unscrubbed()?.then(Instant::now), ..Self::default() })
    }

    /// Notes that something was erased, these places among it.
    pub(super) fn note(&mut self, places: Vec<Sequence>) {
        self.due.get_or_insert_with(Instant::now);
        self.places.extend(places);
    }

    /// How soon it is to be looked at again; nothing where there is nothing to do.
    pub(super) fn patience(&self) -> Option<Duration> {
        match (&self.exchanged, self.due) {
            (Some(_), _) => Some(LOOK),
            (None, Some(_)) => Some(IDLE),
            (None, None) => None,
        }
    }

    /// Whether it cannot wait for writing to be idle.
    fn is_urgent(&self) -> bool {
        !self.waiting.is_empty() || self.due.is_some_and(|since| since.elapsed() >= PATIENCE)
    }

    /// Tells everybody who waits.
    fn answer(&mut self, outcome: &Result<()>) {
        for reply in self.waiting.drain(..) {
            // Nobody may be waiting any more.
            let _ = reply.send(outcome.clone());
        }
    }
}

impl Writer {
    /// Scrubs, and answers when that is done.
    pub(crate) fn scrub_for(&mut self, reply: Reply<()>) {
        match self.view.is_unscrubbed() {
            Ok(false) => drop(reply.send(Ok(()))),
            Ok(true) => {
                self.scrub.waiting.push(reply);
                self.scrub.due.get_or_insert_with(Instant::now);
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Takes scrubbing on, if it is time for it.
    pub(super) fn go_on_scrubbing(&mut self, is_idle: bool) {
        if let Err(error) = self.ready() {
            return self.scrub.answer(&Err(error));
        }
        if self.scrub.exchanged.is_none()
            && self.scrub.due.is_some()
            && (is_idle || self.scrub.is_urgent())
        {
            self.begin_scrub();
        }
        self.end_scrub(READERS);
    }

    /// Scrubs before the store is closed, as far as readers let it.
    pub(super) fn scrub_at_end(&mut self) {
        let began = Instant::now();
        while self.ready().is_ok() && self.scrub.patience().is_some() && began.elapsed() < CLOSING {
            if self.scrub.exchanged.is_none() {
                self.begin_scrub();
            }
            self.end_scrub(CLOSING);
            if self.scrub.patience().is_some() {
                std::thread::sleep(LOOK);
            }
        }
        let closed = Error::new(ErrorKind::Busy, "the store was closed before it was scrubbed");
        self.scrub.answer(&Err(closed.with_hint("it goes on when the store is next open")));
    }

    fn begin_scrub(&mut self) {
        // The files before these may have to be overwritten as well.
        if self.is_read_from() {
            return;
        }
        self.scrub.due = None;
        match guarded(|| self.exchange_scrubbed()) {
            Ok(to) => self.scrub.exchanged = to.map(|to| Exchanged { to, at: Instant::now() }),
            Err(error) => self.fail_scrub(error),
        }
    }

    /// Ends it once nobody reads from the old files.
    fn end_scrub(&mut self, patience: Duration) {
        let Some(Exchanged { to, at }) = self.scrub.exchanged else { return };
        let ended = guarded(|| {
            if self.is_read_from() {
                return Ok(false);
            }
            self.forget_scrubbed(to)?;
            Ok(true)
        });
        match ended {
            Ok(false) if at.elapsed() < patience => {}
            Ok(false) => {
                let message = "somebody still reads from the files as they were";
                let busy = Error::new(ErrorKind::Busy, message);
                let hint = "scrubbing ends by itself once they are done";
                self.scrub.answer(&Err(busy.with_hint(hint)));
            }
            Ok(true) => {
                self.scrub.exchanged = None;
                match self.view.is_unscrubbed() {
                    // Somebody erased meanwhile.
                    Ok(true) => self.scrub.due = Some(Instant::now()),
                    told => self.scrub.answer(&told.map(drop)),
                }
            }
            Err(error) => {
                self.scrub.exchanged = None;
                self.fail_scrub(error);
            }
        }
    }

    /// Makes stubs, and goes on with files that never held what was erased. Gives the last audit entry
    /// that tells of it; nothing where nothing is to be scrubbed.
    fn exchange_scrubbed(&mut self) -> Result<Option<u64>> {
        let pending = self.view.erasures()?.pending;
        let Some(to) = pending.iter().map(|of| of.entry).max() else { return Ok(None) };
        self.flush_counts()?;
        self.stub_erased()?;
        self.remove_reasons()?;
        self.fold_all()?;
        // A copy would lose what the pages of a damaged row can still tell, and who it is of.
        self.view.check_log()?;
        if !self.db.is_in_memory() {
            self.exchange_truth()?;
        }
        self.rebuild_index(self.view.with_index(self.view.indexed().clone()))?;
        Ok(Some(to))
    }

    /// Puts stubs in the place of all grains of erased users. What the index knew of their addresses is in the
    /// log then: one that is built anew would not know it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn stub_erased(&mut self) -> Result<()> {
        let pending = self.view.erasures()?.pending;
        let cutoffs = pending.iter().filter(|of| of.user.is_some()).map(|of| of.cutoff);
        cutoffs.max().map_or(Ok(()), |last| self.stub_users(last))
    }

    /// Puts stubs in the place of the grains of erased users, up to a place of the log.
    fn stub_users(&mut self, last: Sequence) -> Result<()> {
        let mut at = 0;
        let known = self.addresses_of_lost(last)?;
        while at < last.get() {
            let view = Arc::clone(&self.view);
            let mut found = Vec::new();
            while at < last.get() && found.len() < AT_ONCE {
                at = at.saturating_add(1);
                let sequence = Sequence::new(at);
                if view.stub_at(sequence)?.is_none() && view.is_erased(sequence)? {
                    let address = match known.get(&sequence) {
                        Some(address) => *address,
                        None => AddressKey::blinded(view.address_or_lost(sequence)?),
                    };
                    found.push((sequence, address));
                }
            }
            drop(view);
            self.stub(&found)?;
        }
        Ok(())
    }

    /// What stands for the addresses of grains that nobody can read any more, as the index has them.
    fn addresses_of_lost(&self, last: Sequence) -> Result<HashMap<Sequence, AddressKey>> {
        let view = &self.view;
        let mut known = HashMap::new();
        if view.vault().keyring().is_none() {
            return Ok(known);
        }
        for row in view.index().addresses_from([0; 32])? {
            let (address, sequence) = row?;
            if sequence <= last && view.stub_at(sequence)?.is_none() && view.is_erased(sequence)? {
                known.insert(sequence, AddressKey::blinded(address));
            }
        }
        Ok(known)
    }

    fn stub(&mut self, grains: &[(Sequence, AddressKey)]) -> Result<()> {
        if grains.is_empty() {
            return Ok(());
        }
        self.import(|ground| {
            put_stubs(ground.view, ground.txn, grains)?;
            let mut erasures = ground.view.erasures()?;
            let more = u64::try_from(grains.len()).unwrap_or(u64::MAX);
            erasures.stubs = erasures.stubs.saturating_add(more);
            let mut meta = ground.txn.open_table(keys::META)?;
            meta.insert(keys::META_ERASURES, erasures.seal().as_slice())?;
            Ok(Some(((), Vec::new())))
        })?;
        self.scrub.places.extend(grains.iter().map(|(at, _)| *at));
        Ok(())
    }

    fn remove_reasons(&mut self) -> Result<()> {
        let entries = reasons_of_erased(&self.view)?;
        if entries.is_empty() {
            return Ok(());
        }
        self.import(|ground| {
            let mut reasons = ground.txn.open_table(keys::REASONS)?;
            for entry in &entries {
                reasons.remove(entry)?;
            }
            Ok(Some(((), Vec::new())))
        })?;
        Ok(())
    }

    /// Goes on with a copy of the truth. The file there was is overwritten where it has what was erased.
    pub(crate) fn exchange_truth(&mut self) -> Result<()> {
        if self.shreds(&Arc::clone(&self.view))? {
            self.db.shred_next();
        }
        self.db.make_copy()?;
        self.db.rename_copy()?;
        self.or_stop(|writer| {
            writer.db.take_copy()?;
            let truth = Arc::new(Truth::open(&writer.db)?);
            writer.replace_view(View::new(truth, writer.view.indexed().clone()));
            // What somebody still reads from is closed when they have ended.
            let former = writer.db.hand_over();
            writer.folder.adopt(former)
        })
    }

    /// Whether a file of this view that gives way to another is overwritten: as long as an erasure is not
    /// scrubbed, whatever it gives way for. Those before it are, where they can be by now.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn shreds(&mut self, view: &View) -> Result<bool> {
        let shreds = view.is_unscrubbed()? && !self.db.is_in_memory();
        if shreds {
            self.db.release();
            self.folder.release()?;
        }
        Ok(shreds)
    }

    /// Whether somebody reads from the files as they were, or they are still to be overwritten.
    fn is_read_from(&mut self) -> bool {
        if self.folder.is_busy() {
            return true;
        }
        self.db.release();
        let former = self.folder.aside(|db: &mut Source| {
            db.release();
            Ok(db.has_former())
        });
        former.unwrap_or(true) || self.db.has_former()
    }

    /// Takes what became stubs out of memory.
    fn forget_places(&mut self) -> Result<()> {
        self.retrieval.vectors.forget_grains(&self.scrub.places, &self.view)?;
        self.scrub.places = Vec::new();
        Ok(())
    }

    /// Says that scrubbing failed. It stays noted, and is tried again when somebody asks or the store is next
    /// open.
    fn fail_scrub(&mut self, error: Error) {
        // What can be forgotten already does not wait for that; else its places are kept.
        let _ = guarded(|| self.forget_places());
        self.scrub.answer(&Err(error));
    }

    /// Removes what is derived from what was erased, and notes that these erasures are scrubbed.
    fn forget_scrubbed(&mut self, to: u64) -> Result<()> {
        self.retrieval.library.forget()?;
        self.forget_places()?;
        self.retrieval.vectors.shred()?;
        self.import(|ground| {
            let erasures = ground.view.erasures()?.scrubbed_to(to);
            let mut meta = ground.txn.open_table(keys::META)?;
            meta.insert(keys::META_ERASURES, erasures.seal().as_slice())?;
            Ok(Some(((), Vec::new())))
        })?;
        Ok(())
    }
}
