//! The full text of a store: kept beside the truth, followed from it, saved under `text/`.
//!
//! Nobody writes to it: what a view has and the full text has not is read from that view, by a
//! thread in the background or by whoever searches first. So a search sees every acknowledged
//! write, a write waits for no words, and a full text that is missing, damaged, stale or of another
//! store is one that is far behind.
//!
//! - `languages`, `wording`: which language a namespace is in, and which grains have words
//! - `turns`: who lends words to whom in a conversation
//! - `catching`: what has changed between the full text and a view
//! - `stamp`: which state was saved

mod catching;
mod languages;
mod stamp;
mod turns;
mod wording;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use grainstore_cal::{Cancel, Stop};
use grainstore_index::Sequence;
use grainstore_index::text::{ANALYSIS_VERSION, Fold, Manifest, TextStats, Texts};
use sha2::{Digest, Sha256};

use self::catching::{Lately, Position, Step};
use crate::base::error::{Error, Result, guarded};
use crate::base::sync::{Mutex, MutexGuard};
use crate::disk::derived::Files;
use crate::state::follow::Follower;
use crate::state::view::View;

pub(crate) use turns::Around;
pub use wording::ObserverDomain;
pub(crate) use wording::Wording;

/// Which turns lend to which: another version has others.
const TURNS_VERSION: u32 = 2;
/// Grains that are followed at once, while searches wait, and bytes of them but for a first that is
/// larger.
const STEP: Step = Step { grains: 512, bytes: 4 << 20 };
/// Grains the full text may be behind before the writer helps.
const MOST_BEHIND: u64 = 16_384;
/// Documents that are not saved, from which on a store saves them when it is closed: reading so many
/// again takes less time than saving them.
const WORTH_SAVING: u64 = 64;

/// The full text of a store.
#[derive(Debug)]
pub(crate) struct Library {
    /// Nothing for a store that is in memory.
    files: Option<Files>,
    wording: Wording,
    state: Mutex<State>,
    /// Held while files are written: one save at a time.
    saving: Mutex<()>,
    progress: Progress,
}

/// How a full text is.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) texts: TextStats,
    /// Grains of the log it has not followed yet.
    pub(crate) behind: u64,
    /// Why it had to be built anew since the store was opened, if it had to.
    pub(crate) rebuilt: Option<String>,
}

/// What a writer wants to know without waiting for a search.
#[derive(Debug, Default)]
struct Progress {
    /// The last place of the log that was followed; 0 while nothing was read.
    reached: AtomicU64,
    /// Grains it was behind when it was first read, or begun anew: no writer makes up for those.
    debt: AtomicU64,
}

/// The full text as far as it has come.
#[derive(Debug, Default)]
struct State {
    /// Read from disk when it is first needed.
    texts: Option<Texts>,
    at: Position,
    lately: Lately,
    /// Documents that changed since it was saved.
    unsaved: u64,
    /// The files that were read or written.
    on_disk: BTreeSet<String>,
    /// Why it was built anew, if it was.
    rebuilt: Option<String>,
    /// Grains whose words have changed though nothing in the log says so: one was erased beside them.
    touched: BTreeSet<Sequence>,
    /// How often everything was forgotten: a fold of what was there before is of no use.
    epoch: u64,
}

impl Library {
    /// The full text of the store in a directory, as yet unread.
    pub(crate) fn new(store: Option<&Path>, wording: Wording) -> Self {
        let state = State::default();
        let files = store.map(|store| Files::of(store, "text", ".seg"));
        let (state, saving) = (Mutex::new(state), Mutex::new(()));
        Self { files, wording, state, saving, progress: Progress::default() }
    }

    pub(crate) fn wording(&self) -> &Wording {
        &self.wording
    }

    /// The full text with everything a view has; nothing where the host cancels before.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the log or the index cannot be walked; `ERR_IO`.
    pub(crate) fn of(&self, view: &View, cancel: &Cancel) -> Result<Option<Texts>> {
        let mut state = self.lock();
        while !self.advance(&mut state, view)? {
            if cancel.stopped() == Some(Stop::Cancelled) {
                return Ok(None);
            }
            self.make_room(&mut state, view)?;
        }
        state.loaded().cloned().map(Some)
    }

    /// What was read of it so far, whatever a view has beyond.
    ///
    /// # Errors
    /// As [`Library::of`].
    pub(crate) fn status(&self, view: &View) -> Result<Status> {
        let mut state = self.lock();
        self.load(&mut state, view)?;
        Ok(Status {
            texts: state.loaded()?.stats(),
            behind: state.at.behind(view)?,
            rebuilt: state.rebuilt.clone(),
        })
    }

    /// Forgets everything; what a view has is read again, and saved.
    ///
    /// # Errors
    /// As [`Library::of`]; `ERR_IO` where it cannot be saved.
    pub(crate) fn rebuild(&self, view: &View) -> Result<()> {
        self.lock().start_anew(self.analysis())?;
        self.of(view, &Cancel::new())?;
        self.save(view)
    }

    /// Reads these grains once more: what lent them words was erased.
    pub(crate) fn touch(&self, grains: BTreeSet<Sequence>) {
        let mut state = self.lock();
        state.lately = Lately::default();
        state.touched.extend(grains);
    }

    /// Forgets everything, in memory and on the disk, whose files are overwritten. Whoever searches next
    /// has the log read from its start.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn forget(&self) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let epoch = state.epoch.saturating_add(1);
        let rebuilt = state.rebuilt.take();
        *state = State { epoch, rebuilt, ..State::default() };
        self.files.as_ref().map_or(Ok(()), Files::shred)
    }

    /// Follows a view by one step. Gives whether its end is reached.
    fn advance(&self, state: &mut State, view: &View) -> Result<bool> {
        self.load(state, view)?;
        if state.at.has_reached(view)? && state.touched.is_empty() {
            return Ok(true);
        }
        let State { at, lately, touched, .. } = state;
        let again = std::mem::take(touched);
        let (reached, changes) = at.follow(view, (STEP, again), &self.wording, lately)?;
        state.unsaved = state.unsaved.saturating_add(changes.len() as u64);
        let taken = state.loaded_mut().and_then(|texts| {
            changes.into_iter().try_for_each(|(at, joined)| texts.set(at, Some(joined)))?;
            Ok(())
        });
        match taken {
            Ok(()) => {
                state.at = reached;
                self.progress.reached.store(reached.sequence, Ordering::Relaxed);
            }
            Err(error) => self.lose(state, &error, view)?,
        }
        Ok(false)
    }

    /// Begins anew, behind by all that a view has.
    fn lose(&self, state: &mut State, error: &Error, view: &View) -> Result<()> {
        state.give_up(error, self.analysis())?;
        self.progress.begin(state.at.sequence, state.at.behind(view)?);
        Ok(())
    }

    /// Folds a tail that has become much longer than a search should have to look through.
    fn make_room(&self, state: &mut State, view: &View) -> Result<()> {
        if !state.loaded()?.stats().is_tail_overfull() || !state.at.is_within(view)? {
            return Ok(());
        }
        let fold = state.freeze(view)?;
        let folded = fold.run()?;
        state.loaded_mut()?.adopt(folded)?;
        Ok(())
    }

    /// Folds the tail if it is long enough, or in any case; searches go on meanwhile. Gives whether
    /// anything was folded.
    fn fold(&self, view: &View, even_short: bool) -> Result<bool> {
        let fold = {
            let mut state = self.lock();
            let Some(texts) = &state.texts else { return Ok(false) };
            let is_full = texts.stats().is_tail_full();
            // From an older view there is no saying where it is; somebody with a newer one was here.
            if (!is_full && !even_short) || !state.at.is_within(view)? {
                return Ok(false);
            }
            (state.freeze(view)?, state.epoch)
        };
        let (fold, epoch) = fold;
        let folded = guarded(|| Ok(fold.run()?))?;
        let mut state = self.lock();
        if state.epoch == epoch {
            // Somebody else may have folded meanwhile, which is as good.
            let _ = state.loaded_mut()?.adopt(folded);
        }
        Ok(true)
    }

    /// Folds everything and brings it to disk. What cannot be saved is read from the log again when
    /// the store is next opened.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY`.
    fn save(&self, view: &View) -> Result<()> {
        let Some(files) = &self.files else { return Ok(()) };
        self.fold(view, true)?;
        self.write(files)
    }

    /// Writes the files there are now.
    fn write(&self, files: &Files) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let (texts, changed, there) = {
            let state = self.lock();
            (state.loaded()?.clone(), state.unsaved, state.on_disk.clone())
        };
        let names: BTreeSet<String> = texts.names().into_iter().collect();
        let new = names.difference(&there);
        let new = new.filter_map(|name| Some((name.as_str(), texts.file(name)?)));
        files.save(&new.collect::<Vec<_>>(), &texts.manifest(), &names)?;
        let mut state = self.lock();
        state.unsaved = state.unsaved.saturating_sub(changed);
        state.on_disk = names;
        Ok(())
    }

    /// Reads what was saved, if it was not read yet. What is of no use is built anew.
    fn load(&self, state: &mut State, view: &View) -> Result<()> {
        if state.texts.is_some() {
            return Ok(());
        }
        let analysis = self.analysis();
        let saved = match &self.files {
            Some(files) => self.read(files, view),
            None => Ok(None),
        };
        match saved {
            Ok(Some((texts, at))) => {
                state.on_disk = texts.names().into_iter().collect();
                (state.texts, state.at) = (Some(texts), at);
            }
            Ok(None) => state.start_anew(analysis)?,
            Err(reason) => {
                state.start_anew(analysis)?;
                state.rebuilt = Some(reason);
            }
        }
        self.progress.begin(state.at.sequence, state.at.behind(view)?);
        Ok(())
    }

    /// What was saved, and how far it has followed the store of a view; nothing where nothing was.
    /// Else why it is of no use.
    fn read(&self, files: &Files, view: &View) -> Result<Option<(Texts, Position)>, String> {
        let told = |error: Error| error.to_string();
        let Some(manifest) = files.manifest().map_err(told)? else { return Ok(None) };
        let manifest = Manifest::decode(&manifest).map_err(|error| error.to_string())?;
        if manifest.analysis() != self.analysis() {
            return Err("its words were analysed in another way".to_owned());
        }
        let at = guarded(|| stamp::position(view, manifest.stamp())).map_err(told)?;
        let at = at.ok_or("it is of another state of the store than the log")?;
        if guarded(|| catching::has_erased_since(view, at.entries)).map_err(told)? {
            return Err("something was erased since it was saved".to_owned());
        }
        let mut missing = None;
        let texts = guarded(|| {
            let texts = Texts::open(&manifest, &mut |name| match files.read(name) {
                Ok(Some(bytes)) => Ok(bytes),
                lost => {
                    missing = Some((name.to_owned(), lost.err()));
                    Ok(Vec::new())
                }
            });
            Ok(texts?)
        });
        match (texts, missing) {
            (Ok(texts), None) => Ok(Some((texts, at))),
            (_, Some((name, None))) => Err(format!("{name} is missing")),
            (_, Some((name, Some(error)))) => Err(format!("{name}: {error}")),
            (Err(error), None) => Err(error.to_string()),
        }
    }

    /// What tells analyses apart: another version, other languages or domains give other words.
    fn analysis(&self) -> u64 {
        let settings = format!("{ANALYSIS_VERSION}.{TURNS_VERSION}\n{}", self.wording.settings());
        let hash: [u8; 32] = Sha256::digest(settings.as_bytes()).into();
        hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Library {
    fn step(&self, view: &View) -> Result<bool> {
        let reached = self.advance(&mut self.lock(), view)?;
        if self.fold(view, false)? {
            if let Some(files) = &self.files {
                // What cannot be saved is read from the log again when the store is next opened.
                let _ = self.write(files);
            }
            return Ok(false);
        }
        Ok(reached)
    }

    /// Not much further behind than it was when it was first read.
    fn stay_close(&self, view: &View) -> Result<()> {
        let last = view.last_sequence()?.get();
        loop {
            if !self.progress.is_far_behind(last) {
                return Ok(());
            }
            let mut state = self.lock();
            // One that was never read owes nobody anything.
            if state.texts.is_none() {
                return Ok(());
            }
            self.advance(&mut state, view)?;
            self.make_room(&mut state, view)?;
        }
    }

    fn settle(&self, view: &View) -> Result<()> {
        if self.files.is_none() || self.lock().pending(view)? < WORTH_SAVING {
            return Ok(());
        }
        // What is far behind is read when the store is next opened; nobody who closes it waits so long.
        let is_close = self.lock().at.behind(view)? <= MOST_BEHIND;
        if is_close {
            self.of(view, &Cancel::new())?;
        }
        self.save(view)
    }
}

impl State {
    fn loaded(&self) -> Result<&Texts> {
        self.texts.as_ref().ok_or_else(unread)
    }

    fn loaded_mut(&mut self) -> Result<&mut Texts> {
        self.texts.as_mut().ok_or_else(unread)
    }

    /// Starts a fold of what is there.
    fn freeze(&mut self, view: &View) -> Result<Fold> {
        let stamp = stamp::stamp(view, self.at)?;
        Ok(self.loaded_mut()?.freeze(&stamp)?)
    }

    /// Documents that a closing store would have to save.
    fn pending(&self, view: &View) -> Result<u64> {
        let behind = match self.texts {
            // What was saved is not known before it is read, and then nobody has written.
            None => 0,
            Some(_) => self.at.behind(view)?,
        };
        Ok(self.unsaved.saturating_add(behind))
    }

    fn start_anew(&mut self, analysis: u64) -> Result<()> {
        self.texts = Some(Texts::new(analysis)?);
        self.at = Position::default();
        self.unsaved = 0;
        self.on_disk.clear();
        Ok(())
    }

    /// Starts anew where what is in memory turned out to be damaged; what fails twice is told.
    fn give_up(&mut self, error: &Error, analysis: u64) -> Result<()> {
        if self.rebuilt.is_some() {
            return Err(error.clone());
        }
        self.start_anew(analysis)?;
        self.rebuilt = Some(error.to_string());
        Ok(())
    }
}

impl Progress {
    /// Starts at a place of the log, so many grains behind it.
    fn begin(&self, reached: u64, debt: u64) {
        self.debt.store(debt, Ordering::Relaxed);
        self.reached.store(reached, Ordering::Relaxed);
    }

    /// Whether a writer whose last grain stands here has gone so far ahead that it has to help.
    fn is_far_behind(&self, last: u64) -> bool {
        let behind = last.saturating_sub(self.reached.load(Ordering::Relaxed));
        behind > MOST_BEHIND.saturating_add(self.debt.load(Ordering::Relaxed))
    }
}

fn unread() -> Error {
    Error::integrity("the full text was not read")
}

#[cfg(test)]
mod tests;
