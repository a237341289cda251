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
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;

use grainstore_cal::{CancelHandle, StopReason};
use grainstore_index::Sequence;
use grainstore_index::text::{
    ANALYSIS_VERSION, FoldJob, InvertedIndex, Manifest, PageCache, SegmentStore, TextStats,
};
use sha2::{Digest, Sha256};

use self::indexing::{DocumentCache, StepLimits, TextIndexPosition};
use crate::base::error::{Error, Result, catch_storage_panic};
use crate::base::memory::MemoryBudget;
use crate::base::sync::{Mutex, MutexGuard};
use crate::disk::derived_files::DerivedFiles;
use crate::disk::segment_files::TextFiles;
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
/// About the bytes of a term or a position in a document in memory.
const BYTES_OF_A_TERM: usize = 48;
/// Grains the full text may fall behind before the writer thread helps.
const MAX_LAG_GRAINS: u64 = 16_384;
/// Unsaved documents from which a closing store saves the full text: indexing fewer again is faster than
/// saving.
const MIN_SAVED_DOCUMENTS: u64 = 64;

/// The full text of a store.
#[derive(Debug)]
pub(crate) struct TextIndex {
    /// `None` for a store in memory, whose segments lie in memory.
    files: Option<DerivedFiles>,
    /// The pages of segments that are in memory.
    cache: Arc<PageCache>,
    memory: MemoryBudget,
    settings: TextSettings,
    state: Mutex<TextIndexState>,
    /// Held while files are written, so that one fold or save runs at a time. Taken before `state`.
    saving: Mutex<()>,
    progress: WriterLag,
    /// About the bytes that a fold holds now.
    folding: AtomicUsize,
}

/// The state of a full text.
#[derive(Debug)]
pub(crate) struct TextIndexStatus {
    pub(crate) texts: TextStats,
    /// Bytes of pages of segments in memory.
    pub(crate) cached: usize,
    /// About the bytes of the tail and of documents read lately.
    pub(crate) tail_bytes: usize,
    /// About the bytes that a fold holds now.
    pub(crate) folding: usize,
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
    /// The files of its segments.
    store: SegmentStore,
    at: TextIndexPosition,
    cache: DocumentCache,
    /// Documents that changed since the last save.
    unsaved: u64,
    /// Names of the files that were read or written.
    on_disk: BTreeSet<String>,
    /// Reason it was rebuilt, if it was.
    rebuilt: Option<String>,
    /// How often damage was found since it was opened.
    damages: u32,
    /// Grains whose terms changed although the log does not say so: a turn beside them was erased.
    touched: BTreeSet<Sequence>,
    /// Incremented when everything is forgotten; a fold that began in an earlier epoch is dropped.
    epoch: u64,
}

impl TextIndex {
    /// The full text of the store in a directory, not loaded yet.
    pub(crate) fn new(
        store: Option<&Path>,
        wording: TextSettings,
        vault: &Vault,
        memory: MemoryBudget,
    ) -> Self {
        let state = TextIndexState::default();
        let files = store.map(|store| DerivedFiles::new(store, "text", ".seg").bound_by(vault));
        let (state, saving) = (Mutex::new(state), Mutex::new(()));
        let cache = Arc::new(PageCache::new(memory.text_cache(0)));
        let (progress, folding) = (WriterLag::default(), AtomicUsize::new(0));
        Self { files, cache, memory, settings: wording, state, saving, progress, folding }
    }

    pub(crate) fn settings(&self) -> &TextSettings {
        &self.settings
    }

    /// Brings the full text up to a view and returns it; `None` if the host cancels first.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if the log or the index cannot be read; `ERR_IO`.
    pub(crate) fn of(&self, view: &View, cancel: &CancelHandle) -> Result<Option<InvertedIndex>> {
        loop {
            let mut state = self.lock();
            if self.follow_step(&mut state, view)? {
                return state.loaded().cloned().map(Some);
            }
            if cancel.stop_reason() == Some(StopReason::Cancelled) {
                return Ok(None);
            }
            if self.is_overfull(&state)? {
                drop(state);
                self.fold(view, false)?;
            }
        }
    }

    /// Status of the full text as it is now, without following the view any further.
    ///
    /// # Errors
    /// As [`TextIndex::of`].
    pub(crate) fn status(&self, view: &View) -> Result<TextIndexStatus> {
        let mut state = self.lock();
        self.load(&mut state, view)?;
        Ok(TextIndexStatus {
            tail_bytes: self.tail_bytes(&state)?,
            folding: self.folding.load(Ordering::Relaxed),
            texts: state.loaded()?.stats(),
            cached: self.cache.bytes(),
            behind: state.at.behind(view)?,
            rebuilt: state.rebuilt.clone(),
        })
    }

    /// Forgets everything, indexes the view from its start and saves the result.
    ///
    /// # Errors
    /// As [`TextIndex::of`]; `ERR_IO` if it cannot be saved.
    pub(crate) fn rebuild(&self, view: &View) -> Result<()> {
        self.start_anew(&mut self.lock(), self.segment_store())?;
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
        state.store.fail();
        *state = TextIndexState { epoch, rebuilt, ..TextIndexState::default() };
        self.cache.clear();
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
        let limits = (STEP_LIMITS, again.clone());
        let followed = at.follow(view, limits, &self.settings, cache);
        let (reached, changes) = followed.inspect_err(|_| touched.extend(again.clone()))?;
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
            Err(error) if error.is_integrity() => self.restart_after(state, &error, view)?,
            Err(error) => {
                // The same step is done again.
                state.touched.extend(again);
                return Err(error);
            }
        }
        Ok(false)
    }

    /// Restarts after damage, and counts all grains of the view as debt. After a second time the full text stays in
    /// memory until the store is opened again: somebody changes its files.
    fn restart_after(&self, state: &mut TextIndexState, error: &Error, view: &View) -> Result<()> {
        let again = state.damages > 0;
        if again && state.store.is_in_memory() {
            return Err(error.clone());
        }
        let store = self.segment_store();
        self.start_anew(state, if again { store.in_memory() } else { store })?;
        state.damages = state.damages.saturating_add(1);
        state.rebuilt = Some(error.to_string());
        self.progress.reset(state.at.sequence, state.at.behind(view)?);
        Ok(())
    }

    /// Begins an empty full text.
    fn start_anew(&self, state: &mut TextIndexState, store: SegmentStore) -> Result<()> {
        state.store.fail();
        state.store = store;
        state.texts = Some(InvertedIndex::with_store(self.analysis_hash(), state.store.clone())?);
        state.at = TextIndexPosition::default();
        state.unsaved = 0;
        state.on_disk.clear();
        state.epoch = state.epoch.saturating_add(1);
        Ok(())
    }

    /// Has the cache of pages give way to what grows with the data.
    fn size_cache(&self, state: &TextIndexState, view: &View) -> Result<()> {
        let resident = usize::try_from(state.loaded()?.stats().resident).unwrap_or(usize::MAX);
        let growing = resident.saturating_add(view.index().stats()?.run_bytes);
        self.cache.set_capacity(self.memory.text_cache(growing));
        Ok(())
    }

    /// Returns `true` if a tail is so many times as large as one that is to be folded.
    fn is_full(&self, texts: &TextStats, times: usize) -> bool {
        let size = usize::try_from(texts.tail_size).unwrap_or(usize::MAX);
        size.saturating_mul(BYTES_OF_A_TERM) >= self.memory.tail().saturating_mul(times)
            || if times == 1 { texts.is_tail_full() } else { texts.is_tail_overfull() }
    }

    fn is_overfull(&self, state: &TextIndexState) -> Result<bool> {
        Ok(self.is_full(&state.loaded()?.stats(), 2))
    }

    /// About the bytes of what is in memory only.
    fn tail_bytes(&self, state: &TextIndexState) -> Result<usize> {
        let tail = usize::try_from(state.loaded()?.stats().tail_size).unwrap_or(usize::MAX);
        Ok(tail.saturating_add(state.cache.size()).saturating_mul(BYTES_OF_A_TERM))
    }

    fn segment_store(&self) -> SegmentStore {
        self.files.as_ref().map_or_else(SegmentStore::default, |files| {
            SegmentStore::new(Arc::new(TextFiles::new(files)), Arc::clone(&self.cache))
        })
    }

    /// Folds the tail if it is full, or also a short one if `even_short`; searches go on meanwhile. Returns
    /// `true` if a fold was run.
    fn fold(&self, view: &View, even_short: bool) -> Result<bool> {
        // The file of the new segment is written by the fold.
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let fold = {
            let mut state = self.lock();
            let Some(texts) = &state.texts else { return Ok(false) };
            let is_full = self.is_full(&texts.stats(), 1);
            // An older view cannot say where the full text stands: a caller with a newer view has been here.
            if (!is_full && !even_short) || !state.at.is_covered_by(view)? {
                return Ok(false);
            }
            (state.freeze(view)?, state.epoch)
        };
        let (fold, epoch) = fold;
        self.folding.store(fold.memory(), Ordering::Relaxed);
        let folded = catch_storage_panic(|| Ok(fold.run()?));
        self.folding.store(0, Ordering::Relaxed);
        let mut state = self.lock();
        if state.epoch != epoch {
            return Ok(true);
        }
        let adopted = folded.and_then(|folded| Ok(state.loaded_mut()?.adopt(folded)?));
        match adopted {
            Err(error) if error.is_integrity() => self.restart_after(&mut state, &error, view)?,
            adopted => drop(adopted?),
        }
        self.size_cache(&state, view)?;
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
        let (texts, changed, there, epoch) = {
            let state = self.lock();
            (state.loaded()?.clone(), state.unsaved, state.on_disk.clone(), state.epoch)
        };
        let names: BTreeSet<String> = texts.file_names().into_iter().collect();
        let new = names.difference(&there);
        for (name, bytes) in new.filter_map(|name| Some((name.as_str(), texts.file(name)?))) {
            TextFiles::new(files).write(name, bytes)?;
        }
        files.save(&[], &texts.manifest(), &names)?;
        let mut state = self.lock();
        // What was made anew meanwhile is not on the disk.
        if state.epoch == epoch {
            state.unsaved = state.unsaved.saturating_sub(changed);
            state.on_disk = names;
        }
        Ok(())
    }

    /// Loads the saved full text unless it is loaded. Starts anew if it cannot be used.
    fn load(&self, state: &mut TextIndexState, view: &View) -> Result<()> {
        if state.texts.as_ref().is_some_and(InvertedIndex::has_failed) {
            let error = Error::integrity("a segment of the full text could not be read");
            return self.restart_after(state, &error, view);
        }
        if state.texts.is_some() {
            return Ok(());
        }
        state.store = self.segment_store();
        let saved = match &self.files {
            Some(files) => self.read(files, &state.store, view),
            None => Ok(None),
        };
        match saved {
            Ok(Some((texts, at))) => {
                state.on_disk = texts.file_names().into_iter().collect();
                (state.texts, state.at) = (Some(texts), at);
            }
            Ok(None) => self.start_anew(state, self.segment_store())?,
            Err(reason) => {
                self.start_anew(state, self.segment_store())?;
                state.rebuilt = Some(reason);
            }
        }
        self.progress.reset(state.at.sequence, state.at.behind(view)?);
        self.size_cache(state, view)
    }

    /// Reads the saved full text and how far it has followed the store of the view; `None` if none was saved.
    /// The error is the reason it cannot be used.
    fn read(
        &self,
        files: &DerivedFiles,
        store: &SegmentStore,
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
        let missing = |name: &String| files.open(name).is_err();
        if let Some(name) = manifest.file_names().into_iter().find(missing) {
            return Err(format!("{name} is missing"));
        }
        let opened = catch_storage_panic(|| Ok(InvertedIndex::open_files(&manifest, store)?));
        opened.map(|texts| Some((texts, at))).map_err(told)
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
            if self.is_overfull(&state)? {
                drop(state);
                self.fold(view, false)?;
            }
        }
    }

    fn save(&self, view: &View) -> Result<()> {
        if self.files.is_none() || self.lock().pending(view)? < MIN_SAVED_DOCUMENTS {
            return Ok(());
        }
        // So is one whose files were found damaged.
        if self.lock().texts.as_ref().is_some_and(InvertedIndex::has_failed) {
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
        let failed =
            |texts: &OnceLock<InvertedIndex>| texts.get().is_some_and(InvertedIndex::has_failed);
        let place = self.texts.iter().find(|texts| !failed(texts)).ok_or_else(not_loaded)?;
        if let Some(texts) = place.get() {
            return Ok(Some(texts));
        }
        let began = Instant::now();
        let read = library.of(self, cancel);
        // Catching up is caused by writes or lost files, so its time is not charged to the first search's
        // deadline.
        cancel.extend_deadlines(began.elapsed());
        Ok(read?.map(|texts| place.get_or_init(|| texts)))
    }

    /// Runs a search, and again if a segment of the full text turned out to be unreadable: the full text is then
    /// made anew, the second time in memory. `may_retry` tells if nothing of the answer was given out yet.
    ///
    /// # Errors
    /// Those of the search.
    pub(crate) fn retry_text<T, E>(
        &self,
        mut search: impl FnMut() -> Result<T, E>,
        may_retry: impl Fn() -> bool,
    ) -> Result<T, E> {
        let failed = || {
            let has_failed = |texts: &&OnceLock<InvertedIndex>| {
                texts.get().is_some_and(InvertedIndex::has_failed)
            };
            self.texts.iter().filter(has_failed).count()
        };
        loop {
            let before = failed();
            match search() {
                Err(_) if failed() > before && may_retry() => {}
                found => return found,
            }
        }
    }
}

#[cfg(test)]
mod tests;
