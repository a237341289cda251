//! The full text of a store: kept beside the truth, followed from it, saved under `text/`.
//!
//! No writer updates it: what a view has and the full text lacks is read from that view, by a background
//! thread or by the first search that needs it. So a search sees every acknowledged write, a write never
//! waits for text analysis, and a full text that is missing, damaged, stale or of another store is merely far
//! behind.
//!
//! - `languages`, `settings`: the language of a namespace, and which grains are indexed as text
//! - `turns`: which turns of a conversation contribute terms to which
//! - `indexing`: what has changed between the full text and a view
//! - `log_position`: the state of the store a saved full text belongs to

mod indexing;
mod languages;
mod log_position;
mod settings;
mod turns;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use grainstore_cal::{CancelHandle, StopReason};
use grainstore_index::Sequence;
use grainstore_index::text::{ANALYSIS_VERSION, FoldJob, InvertedIndex, Manifest, TextStats};
use sha2::{Digest, Sha256};

use self::indexing::{DocumentCache, StepLimits, TextIndexPosition};
use crate::base::error::{Error, Result, catch_storage_panic};
use crate::base::sync::{Mutex, MutexGuard};
use crate::disk::derived_files::DerivedFiles;
use crate::disk::vault::Vault;
use crate::state::follower::Follower;
use crate::state::view::View;

pub use settings::ObserverDomain;
pub(crate) use settings::TextSettings;
pub(crate) use turns::ConversationWindow;

/// Version of the rule that joins turns of a conversation; part of the analysis hash, so a change rebuilds
/// the full text.
const TURNS_VERSION: u32 = 2;
/// Most grains, and bytes of them, that are indexed in one step, while searches wait for the lock. A first
/// grain that is larger than the bytes is still taken.
const STEP_LIMITS: StepLimits = StepLimits { grains: 512, bytes: 4 << 20 };
/// Grains the full text may fall behind before the writer thread helps.
const MAX_LAG_GRAINS: u64 = 16_384;
/// Unsaved documents from which a closing store saves the full text: indexing fewer again is faster than
/// saving.
const MIN_SAVED_DOCUMENTS: u64 = 64;

/// The full text of a store.
#[derive(Debug)]
pub(crate) struct TextIndex {
    /// `None` for a store in memory.
    files: Option<DerivedFiles>,
    settings: TextSettings,
    state: Mutex<TextIndexState>,
    /// Held while files are written, so that one save runs at a time. Taken before `state`.
    saving: Mutex<()>,
    progress: WriterLag,
}

/// The state of a full text.
#[derive(Debug)]
pub(crate) struct TextIndexStatus {
    pub(crate) texts: TextStats,
    /// Grains of the log it has not followed yet.
    pub(crate) behind: u64,
    /// Reason it was rebuilt since the store was opened, if it was.
    pub(crate) rebuilt: Option<String>,
}

/// Progress that the writer thread reads without waiting for the lock a search may hold.
#[derive(Debug, Default)]
struct WriterLag {
    /// The last sequence that was followed; 0 before the full text is loaded.
    last_sequence: AtomicU64,
    /// Grains it was behind when it was loaded or restarted. The writer does not help with those.
    initial_lag: AtomicU64,
}

/// The full text and how far it has followed the log.
#[derive(Debug, Default)]
struct TextIndexState {
    /// Loaded from disk on first use.
    texts: Option<InvertedIndex>,
    at: TextIndexPosition,
    cache: DocumentCache,
    /// Documents that changed since the last save.
    unsaved: u64,
    /// Names of the files that were read or written.
    on_disk: BTreeSet<String>,
    /// Reason it was rebuilt, if it was.
    rebuilt: Option<String>,
    /// Grains whose terms changed although the log does not say so: a turn beside them was erased.
    touched: BTreeSet<Sequence>,
    /// Incremented when everything is forgotten; a fold that began in an earlier epoch is dropped.
    epoch: u64,
}

impl TextIndex {
    /// The full text of the store in a directory, not loaded yet.
    pub(crate) fn new(store: Option<&Path>, wording: TextSettings, vault: &Vault) -> Self {
        let state = TextIndexState::default();
        let files = store.map(|store| DerivedFiles::new(store, "text", ".seg").bound_by(vault));
        let (state, saving) = (Mutex::new(state), Mutex::new(()));
        Self { files, settings: wording, state, saving, progress: WriterLag::default() }
    }

    pub(crate) fn settings(&self) -> &TextSettings {
        &self.settings
    }

    /// Brings the full text up to a view and returns it; `None` if the host cancels first.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log or the index cannot be read; `ERR_IO`.
    pub(crate) fn of(&self, view: &View, cancel: &CancelHandle) -> Result<Option<InvertedIndex>> {
        let mut state = self.lock();
        while !self.follow_step(&mut state, view)? {
            if cancel.stop_reason() == Some(StopReason::Cancelled) {
                return Ok(None);
            }
            self.fold_overfull_tail(&mut state, view)?;
        }
        state.loaded().cloned().map(Some)
    }

    /// Status of the full text as it is now, without following the view any further.
    ///
    /// # Errors
    /// As [`TextIndex::of`].
    pub(crate) fn status(&self, view: &View) -> Result<TextIndexStatus> {
        let mut state = self.lock();
        self.load(&mut state, view)?;
        Ok(TextIndexStatus {
            texts: state.loaded()?.stats(),
            behind: state.at.behind(view)?,
            rebuilt: state.rebuilt.clone(),
        })
    }

    /// Forgets everything, indexes the view from its start and saves the result.
    ///
    /// # Errors
    /// As [`TextIndex::of`]; `ERR_IO` if it cannot be saved.
    pub(crate) fn rebuild(&self, view: &View) -> Result<()> {
        self.lock().start_anew(self.analysis_hash())?;
        self.of(view, &CancelHandle::new())?;
        self.save(view)
    }

    /// Marks grains to be indexed again, because a turn that contributed terms to them was erased.
    pub(crate) fn reindex(&self, grains: BTreeSet<Sequence>) {
        let mut state = self.lock();
        state.cache = DocumentCache::default();
        state.touched.extend(grains);
    }

    /// Forgets everything, in memory and on disk, and overwrites the files. The next search indexes the log
    /// from its start.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn forget(&self) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let epoch = state.epoch.saturating_add(1);
        let rebuilt = state.rebuilt.take();
        *state = TextIndexState { epoch, rebuilt, ..TextIndexState::default() };
        self.files.as_ref().map_or(Ok(()), DerivedFiles::shred)
    }

    /// Follows a view by one step. Returns `true` if its end was reached before the step.
    fn follow_step(&self, state: &mut TextIndexState, view: &View) -> Result<bool> {
        self.load(state, view)?;
        if state.at.is_up_to_date(view)? && state.touched.is_empty() {
            return Ok(true);
        }
        let TextIndexState { at, cache, touched, .. } = state;
        let again = std::mem::take(touched);
        let (reached, changes) = at.follow(view, (STEP_LIMITS, again), &self.settings, cache)?;
        state.unsaved = state.unsaved.saturating_add(changes.len() as u64);
        let taken = state.loaded_mut().and_then(|texts| {
            changes.into_iter().try_for_each(|(at, joined)| texts.set(at, Some(joined)))?;
            Ok(())
        });
        match taken {
            Ok(()) => {
                state.at = reached;
                self.progress.last_sequence.store(reached.sequence, Ordering::Relaxed);
            }
            Err(error) => self.restart_after(state, &error, view)?,
        }
        Ok(false)
    }

    /// Restarts after damage, and counts all grains of the view as debt.
    fn restart_after(&self, state: &mut TextIndexState, error: &Error, view: &View) -> Result<()> {
        state.give_up(error, self.analysis_hash())?;
        self.progress.reset(state.at.sequence, state.at.behind(view)?);
        Ok(())
    }

    /// Folds a tail that is too long for a search to scan.
    fn fold_overfull_tail(&self, state: &mut TextIndexState, view: &View) -> Result<()> {
        if !state.loaded()?.stats().is_tail_overfull() || !state.at.is_covered_by(view)? {
            return Ok(());
        }
        let fold = state.freeze(view)?;
        let folded = fold.run()?;
        state.loaded_mut()?.adopt(folded)?;
        Ok(())
    }

    /// Folds the tail if it is full, or also a short one if `even_short`; searches go on meanwhile. Returns
    /// `true` if a fold was run.
    fn fold(&self, view: &View, even_short: bool) -> Result<bool> {
        let fold = {
            let mut state = self.lock();
            let Some(texts) = &state.texts else { return Ok(false) };
            let is_full = texts.stats().is_tail_full();
            // An older view cannot say where the full text stands: a caller with a newer view has been here.
            if (!is_full && !even_short) || !state.at.is_covered_by(view)? {
                return Ok(false);
            }
            (state.freeze(view)?, state.epoch)
        };
        let (fold, epoch) = fold;
        let folded = catch_storage_panic(|| Ok(fold.run()?))?;
        let mut state = self.lock();
        if state.epoch == epoch {
            // A concurrent fold may have been adopted first, which serves as well.
            let _ = state.loaded_mut()?.adopt(folded);
        }
        Ok(true)
    }

    /// Folds everything and writes it to disk. What cannot be saved is indexed from the log again when the
    /// store is next opened.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY`.
    fn save(&self, view: &View) -> Result<()> {
        let Some(files) = &self.files else { return Ok(()) };
        self.fold(view, true)?;
        self.write(files)
    }

    /// Writes the segments that are not on disk yet, and the manifest.
    fn write(&self, files: &DerivedFiles) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let (texts, changed, there) = {
            let state = self.lock();
            (state.loaded()?.clone(), state.unsaved, state.on_disk.clone())
        };
        let names: BTreeSet<String> = texts.file_names().into_iter().collect();
        let new = names.difference(&there);
        let new = new.filter_map(|name| Some((name.as_str(), texts.file(name)?)));
        files.save(&new.collect::<Vec<_>>(), &texts.manifest(), &names)?;
        let mut state = self.lock();
        state.unsaved = state.unsaved.saturating_sub(changed);
        state.on_disk = names;
        Ok(())
    }

    /// Loads the saved full text unless it is loaded. Starts anew if it cannot be used.
    fn load(&self, state: &mut TextIndexState, view: &View) -> Result<()> {
        if state.texts.is_some() {
            return Ok(());
        }
        let analysis = self.analysis_hash();
        let saved = match &self.files {
            Some(files) => self.read(files, view),
            None => Ok(None),
        };
        match saved {
            Ok(Some((texts, at))) => {
                state.on_disk = texts.file_names().into_iter().collect();
                (state.texts, state.at) = (Some(texts), at);
            }
            Ok(None) => state.start_anew(analysis)?,
            Err(reason) => {
                state.start_anew(analysis)?;
                state.rebuilt = Some(reason);
            }
        }
        self.progress.reset(state.at.sequence, state.at.behind(view)?);
        Ok(())
    }

    /// Reads the saved full text and how far it has followed the store of the view; `None` if none was saved.
    /// The error is the reason it cannot be used.
    fn read(
        &self,
        files: &DerivedFiles,
        view: &View,
    ) -> Result<Option<(InvertedIndex, TextIndexPosition)>, String> {
        let told = |error: Error| error.to_string();
        let Some(manifest) = files.manifest().map_err(told)? else { return Ok(None) };
        let manifest = Manifest::decode(&manifest).map_err(|error| error.to_string())?;
        if manifest.analysis() != self.analysis_hash() {
            return Err("its words were analysed in another way".to_owned());
        }
        let at = catch_storage_panic(|| log_position::decode(view, manifest.log_position()))
            .map_err(told)?;
        let at = at.ok_or("it is of another state of the store than the log")?;
        if catch_storage_panic(|| view.has_erased_since(at.entries)).map_err(told)? {
            return Err("something was erased since it was saved".to_owned());
        }
        let mut missing = None;
        let texts = catch_storage_panic(|| {
            let texts = InvertedIndex::open(&manifest, &mut |name| match files.read(name) {
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

    /// Hash of everything that decides the terms of a grain: the versions, the languages and the observer
    /// domains.
    fn analysis_hash(&self) -> u64 {
        let settings = format!("{ANALYSIS_VERSION}.{TURNS_VERSION}\n{}", self.settings.settings());
        let hash: [u8; 32] = Sha256::digest(settings.as_bytes()).into();
        hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start))
    }

    fn lock(&self) -> MutexGuard<'_, TextIndexState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for TextIndex {
    fn step(&self, view: &View) -> Result<bool> {
        let reached = self.follow_step(&mut self.lock(), view)?;
        if self.fold(view, false)? {
            if let Some(files) = &self.files {
                // What cannot be saved is indexed from the log again when the store is next opened.
                let _ = self.write(files);
            }
            return Ok(false);
        }
        Ok(reached)
    }

    /// Indexes on the writer thread until the full text is no further behind than `MAX_LAG_GRAINS` beyond
    /// what it was when it was loaded.
    fn limit_lag(&self, view: &View) -> Result<()> {
        let last = view.last_sequence()?.get();
        loop {
            if !self.progress.is_far_behind(last) {
                return Ok(());
            }
            let mut state = self.lock();
            // A full text that was never loaded is not kept close.
            if state.texts.is_none() {
                return Ok(());
            }
            self.follow_step(&mut state, view)?;
            self.fold_overfull_tail(&mut state, view)?;
        }
    }

    fn save(&self, view: &View) -> Result<()> {
        if self.files.is_none() || self.lock().pending(view)? < MIN_SAVED_DOCUMENTS {
            return Ok(());
        }
        // What is far behind is indexed when the store is next opened: a close does not wait that long.
        let is_close = self.lock().at.behind(view)? <= MAX_LAG_GRAINS;
        if is_close {
            self.of(view, &CancelHandle::new())?;
        }
        self.save(view)
    }
}

impl TextIndexState {
    fn loaded(&self) -> Result<&InvertedIndex> {
        self.texts.as_ref().ok_or_else(not_loaded)
    }

    fn loaded_mut(&mut self) -> Result<&mut InvertedIndex> {
        self.texts.as_mut().ok_or_else(not_loaded)
    }

    /// Starts a fold of what is there.
    fn freeze(&mut self, view: &View) -> Result<FoldJob> {
        let stamp = log_position::encode(view, self.at)?;
        Ok(self.loaded_mut()?.freeze(&stamp)?)
    }

    /// Documents that a closing store would have to save.
    fn pending(&self, view: &View) -> Result<u64> {
        let behind = match self.texts {
            // Before the full text is loaded nothing of it can have changed.
            None => 0,
            Some(_) => self.at.behind(view)?,
        };
        Ok(self.unsaved.saturating_add(behind))
    }

    fn start_anew(&mut self, analysis: u64) -> Result<()> {
        self.texts = Some(InvertedIndex::new(analysis)?);
        self.at = TextIndexPosition::default();
        self.unsaved = 0;
        self.on_disk.clear();
        Ok(())
    }

    /// Starts anew after damage in memory. A second failure is returned as an error.
    fn give_up(&mut self, error: &Error, analysis: u64) -> Result<()> {
        if self.rebuilt.is_some() {
            return Err(error.clone());
        }
        self.start_anew(analysis)?;
        self.rebuilt = Some(error.to_string());
        Ok(())
    }
}

impl WriterLag {
    /// Sets the position in the log, and the number of grains it is behind there.
    fn reset(&self, reached: u64, debt: u64) {
        self.initial_lag.store(debt, Ordering::Relaxed);
        self.last_sequence.store(reached, Ordering::Relaxed);
    }

    /// Returns `true` if the writer, whose last sequence is `last`, is so far ahead that it has to help.
    fn is_far_behind(&self, last: u64) -> bool {
        let behind = last.saturating_sub(self.last_sequence.load(Ordering::Relaxed));
        behind > MAX_LAG_GRAINS.saturating_add(self.initial_lag.load(Ordering::Relaxed))
    }
}

fn not_loaded() -> Error {
    Error::integrity("the full text was not read")
}

impl View {
    /// Returns the full-text index of this view, the same one for all its searches. `None` if the host
    /// cancelled before it was read.
    ///
    /// # Errors
    /// As [`TextIndex::of`].
    pub(crate) fn texts(
        &self,
        library: &TextIndex,
        cancel: &CancelHandle,
    ) -> Result<Option<&InvertedIndex>> {
        if let Some(texts) = self.texts.get() {
            return Ok(Some(texts));
        }
        let began = Instant::now();
        let read = library.of(self, cancel);
        // Catching up is caused by writes or lost files, so its time is not charged to the first search's
        // deadline.
        cancel.extend_deadlines(began.elapsed());
        Ok(read?.map(|texts| self.texts.get_or_init(|| texts)))
    }
}

#[cfg(test)]
mod tests;
