//! Vectors for every grain with text, made in the background by an embedder of the store and handed to the
//! writer thread.
//!
//! A grain is stored whether or not it can be embedded. A text the embedder refuses is skipped; an embedder
//! that hangs or dies is tried again after the next write. The position is written with the vectors, so a
//! reopened store continues there.
//!
//! A store that is being moved to another model may have two: the leading one, whose space serves from the
//! moment it is complete, and the former one, which keeps its space complete until then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use grainstore_index::text::{Settings, embedding_text};
use grainstore_index::vectors::{Metric, Space};
use serde::Serialize;

use super::{Embedder, Embedding};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::disk::blob::with_fields;
use crate::search::texts::TextSettings;
use crate::state::consent::is_withdrawn;
use crate::state::follower::Follower;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;

/// Texts the embedder is given at once.
const MAX_BATCH_TEXTS: usize = 32;
/// Bytes of a text that are embedded: models read no more.
const MAX_TEXT_BYTES: usize = 8 << 10;
/// Time for which searches do not ask an embedder that timed out.
const QUERY_BACKOFF: Duration = Duration::from_secs(30);

/// Time after a failure in which no grain is embedded, however much is written: otherwise a program that ends
/// at once would be started for every grain.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Wakes the writer thread, which then takes the vectors that are ready. A no-op once the store is closed.
pub(crate) type WakeWriter = Arc<dyn Fn() + Send + Sync>;

/// Sequences searched backwards for a text that was embedded before.
const MAX_PROBED_SEQUENCES: usize = 256;

/// An embedder of a store, and its progress.
pub(crate) struct EmbeddingWorker {
    embedder: Arc<dyn Embedder>,
    space: Space,
    /// True if its space is to serve; false for the former one of a move.
    is_leading: bool,
    settings: TextSettings,
    wake: WakeWriter,
    state: Mutex<EmbeddingState>,
    /// Notified when the writer has taken a batch, or the embedder has failed.
    batch_taken: Condvar,
    /// Set when the store is being closed.
    stopped: AtomicBool,
}

#[derive(Default)]
struct EmbeddingState {
    /// The last sequence that was embedded or skipped; `None` before it was read from the store.
    at: Option<u64>,
    /// True if a batch could not be written: the next step starts again from what is stored.
    undone: bool,
    /// A batch that was made and is not written yet.
    ready: Option<EmbeddingBatch>,
    error: Option<Error>,
    /// Time of the last failure on a grain.
    failed_at: Option<Instant>,
    /// True if something was written since that failure.
    again: bool,
    /// Time and error of the last query that timed out.
    slow: Option<(Instant, Error)>,
    skipped: u64,
}

impl EmbeddingState {
    /// Returns `true` within `RETRY_DELAY` of a failure.
    fn is_out_of_breath(&self) -> bool {
        self.failed_at.is_some_and(|failed| failed.elapsed() < RETRY_DELAY)
    }

    /// Records the error. After a timeout, queries fail fast for `QUERY_BACKOFF`.
    fn failed(&mut self, error: &Error) {
        self.error = Some(error.clone());
        if error.kind() == ErrorKind::Timeout {
            self.slow = Some((Instant::now(), error.clone()));
        }
    }
}

/// A batch of vectors for the writer thread.
pub(crate) struct EmbeddingBatch {
    /// The space of the vectors.
    pub(crate) space: Space,
    /// True if that space is to serve once every grain has a vector of it.
    pub(crate) is_leading: bool,
    /// The sequence after which the batch begins.
    pub(crate) from: u64,
    /// The last sequence the batch covers.
    pub(crate) to: u64,
    pub(crate) vectors: Vec<(Sequence, Embedding)>,
}

/// Progress of an [`Embedder`](crate::embed::Embedder) of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EmbeddingStatus {
    /// Its model.
    pub model: String,
    /// True if its vectors answer text searches, and vector searches that name no model. If another model
    /// served when this embedder was added, false until every grain is embedded.
    pub serves: bool,
    /// Grains of the log it has not seen yet.
    pub behind: u64,
    /// Texts it refused since the store was opened.
    pub skipped: u64,
    /// Error code and message if it cannot go on.
    pub error: Option<String>,
}

impl std::fmt::Debug for EmbeddingWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keeping({})", self.space.model())
    }
}

impl EmbeddingWorker {
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA` if the embedder has an impossible model name or dimension.
    pub(crate) fn new(
        (embedder, metric): (Arc<dyn Embedder>, Metric),
        leads: bool,
        wording: TextSettings,
        wake: WakeWriter,
    ) -> Result<Self> {
        let space = Space::new(embedder.model(), embedder.dimension(), metric)?;
        let (state, taken, stopped) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Ok(Self {
            embedder,
            space,
            is_leading: leads,
            settings: wording,
            wake,
            state,
            batch_taken: taken,
            stopped,
        })
    }

    /// The space of its vectors.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// Returns `true` if its space is to serve.
    pub(crate) fn is_leading(&self) -> bool {
        self.is_leading
    }

    /// Embeds the text of a query. After a timeout it fails with the same error for `QUERY_BACKOFF`, so that
    /// later searches do not wait in vain.
    ///
    /// # Errors
    /// Those of the embedder.
    pub(crate) fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        if let Some((since, error)) = &self.lock().slow
            && since.elapsed() < QUERY_BACKOFF
        {
            return Err(error.clone());
        }
        let vectors = self.embedder.embed(&[text]);
        let vectors = vectors.inspect_err(|error| self.lock().failed(error))?;
        let none = || Error::new(ErrorKind::Embedder, "the embedder gave no vector");
        Ok(vectors.first().ok_or_else(none)?.values().to_vec())
    }

    /// Takes the batch that waits for the writer.
    pub(crate) fn take_batch(&self) -> Option<EmbeddingBatch> {
        self.lock().ready.take()
    }

    /// Reports that the batch taken was written, or why it was not.
    pub(crate) fn batch_written(&self, outcome: &Result<()>) {
        if let Err(error) = outcome {
            let mut state = self.lock();
            state.error = Some(error.clone());
            state.undone = true;
        }
        self.batch_taken.notify_all();
    }

    pub(crate) fn status(&self, view: &View) -> Result<EmbeddingStatus> {
        let model = self.space.model().to_owned();
        let behind = view.last_sequence()?.get().saturating_sub(view.embedded_through(&model)?);
        let serves = view.serving_space()? == Some(&self.space);
        let state = self.lock();
        let error = state.error.as_ref().map(|error| format!("{}: {error}", error.code()));
        Ok(EmbeddingStatus { model, serves, behind, skipped: state.skipped, error })
    }

    /// Returns `true` if its space is complete and still has to be recorded as the serving one.
    fn is_switch_due(&self, view: &View) -> Result<bool> {
        let is_known = || Ok::<_, Error>(view.spaces()?.values().any(|space| *space == self.space));
        Ok(self.is_leading && view.designated_space()? != Some(&self.space) && is_known()?)
    }

    /// Waits at most `patience` until the newest view has a vector of everything and serves them, or the
    /// embedder cannot go on. Returns `true` if all is embedded and serves.
    pub(crate) fn wait(
        &self,
        patience: Duration,
        newest: impl Fn() -> Result<Arc<View>>,
    ) -> Result<bool> {
        // Without a deadline if `patience` exceeds the range of the clock.
        let end = Instant::now().checked_add(patience);
        loop {
            let view = newest()?;
            let status = self.status(&view)?;
            let done = status.behind == 0 && !self.is_switch_due(&view)?;
            // One that was taken away goes no further.
            if done || status.error.is_some() || self.stopped.load(Ordering::Relaxed) {
                return Ok(done);
            }
            drop(view);
            let until = |end: Instant| end.saturating_duration_since(Instant::now());
            let left = end.map_or(Duration::MAX, until);
            if left.is_zero() {
                return Ok(false);
            }
            let waited =
                self.batch_taken.wait_timeout(self.lock(), left.min(Duration::from_millis(50)));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The next batch of texts of a view after `from`, and the last sequence it covers.
    fn next_batch(&self, view: &View, from: u64) -> Result<(u64, Vec<(Sequence, String)>)> {
        let (mut to, mut texts) = (from, Vec::new());
        let end = view.last_sequence()?.get();
        while to < end && texts.len() < MAX_BATCH_TEXTS {
            to += 1;
            let at = Sequence::new(to);
            if view.has_vector(at, self.space.model())? || view.is_erased(at)? {
                continue;
            }
            texts.extend(self.text_at(view, at)?.map(|text| (at, text)));
        }
        Ok((to, texts))
    }

    /// The text at a sequence; `None` if there is none to embed.
    fn text_at(&self, view: &View, at: Sequence) -> Result<Option<String>> {
        let read = view.with_blob(at, |blob| {
            with_fields(blob, |grain| {
                let has_words =
                    self.settings.language_of(grain).is_some() && !is_withdrawn(view, grain)?;
                Ok(has_words.then(|| embedding_text(grain, &Settings::default(), MAX_TEXT_BYTES)))
            })
        });
        Ok(ok_if_readable(read)?.flatten().filter(|text| !text.is_empty()))
    }

    /// Embeds texts that follow a sequence; returns the vectors and how many texts were refused. If the
    /// embedder fails on the whole batch, each text is tried alone. If all of them fail, and so does a text
    /// it has embedded before, the embedder is taken to be broken and the error is returned.
    fn embed_batch(
        &self,
        (view, from): (&View, u64),
        texts: &[(Sequence, String)],
    ) -> Result<(Vec<(Sequence, Embedding)>, u64)> {
        let whole = match self.embed_texts(texts) {
            Err(error) if error.kind() != ErrorKind::Timeout => error,
            made => return Ok((made?, 0)),
        };
        let (mut made, mut refused) = (Vec::new(), 0);
        for one in texts.chunks(1) {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(whole);
            }
            match self.embed_texts(one) {
                Ok(vectors) => made.extend(vectors),
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(error),
                Err(_) => refused += 1,
            }
        }
        if made.is_empty() && !self.still_embeds(view, from)? {
            return Err(whole);
        }
        Ok((made, refused))
    }

    /// Returns `true` if the embedder still embeds a text, at or before `from`, that has a vector of its
    /// model.
    fn still_embeds(&self, view: &View, from: u64) -> Result<bool> {
        for at in (1..=from).rev().take(MAX_PROBED_SEQUENCES) {
            let at = Sequence::new(at);
            if view.has_vector(at, self.space.model())?
                && let Some(text) = self.text_at(view, at)?
            {
                return Ok(self.embedder.embed(&[&text]).is_ok());
            }
        }
        Ok(false)
    }

    fn embed_texts(&self, texts: &[(Sequence, String)]) -> Result<Vec<(Sequence, Embedding)>> {
        let all: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = self.embedder.embed(&all)?;
        if vectors.len() != all.len() {
            let message = format!("{} vectors came for {} texts", vectors.len(), all.len());
            return Err(Error::new(ErrorKind::Embedder, message));
        }
        let made = texts.iter().zip(vectors).map(|((at, _), vector)| {
            self.space.admit(&vector)?;
            let values = vector.values().to_vec();
            Ok((*at, Embedding::new(self.space.model(), self.space.metric(), values)?))
        });
        made.collect()
    }

    fn hand_over(&self, ready: EmbeddingBatch) {
        self.lock().ready = Some(ready);
        (self.wake)();
    }

    fn lock(&self) -> MutexGuard<'_, EmbeddingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for EmbeddingWorker {
    fn step(&self, view: &View) -> Result<bool> {
        let from = {
            let mut state = self.lock();
            // One batch at a time: the next is read once this one is written.
            if state.ready.is_some() || state.is_out_of_breath() {
                return Ok(true);
            }
            state.again = false;
            let stored = view.embedded_through(self.space.model())?;
            let undone = std::mem::take(&mut state.undone);
            let at = state.at.filter(|_| !undone).map_or(stored, |at| at.max(stored));
            state.at = Some(at);
            at
        };
        if !self.is_leading && view.serving_space()? != Some(&self.space) {
            return Ok(true);
        }
        let (to, texts) = self.next_batch(view, from)?;
        if to == from && !self.is_switch_due(view)? {
            return Ok(true);
        }
        let made = match texts.is_empty() {
            true => Ok((Vec::new(), 0)),
            false => self.embed_batch((view, from), &texts),
        };
        let (vectors, skipped) = made.inspect_err(|error| {
            let mut state = self.lock();
            state.failed(error);
            state.failed_at = Some(Instant::now());
            drop(state);
            self.batch_taken.notify_all();
        })?;
        {
            let mut state = self.lock();
            (state.error, state.slow, state.failed_at) = (None, None, None);
            state.skipped += skipped;
            state.at = Some(to);
        }
        let space = self.space.clone();
        self.hand_over(EmbeddingBatch { space, is_leading: self.is_leading, from, to, vectors });
        // The view the writer publishes next runs this thread again.
        Ok(true)
    }

    /// True for work left from the last time the store was open, and for writes after a failure.
    fn has_pending_work(&self) -> bool {
        let state = self.lock();
        state.at.is_none() || (state.again && !state.is_out_of_breath())
    }

    /// Writes do not wait for an embedder. Each write lets one that failed be tried again after
    /// `RETRY_DELAY`.
    fn limit_lag(&self, _: &View) -> Result<()> {
        let mut state = self.lock();
        state.again |= state.failed_at.is_some();
        state.error = None;
        Ok(())
    }

    /// Grains not embedded when the store is closed are embedded when it is next opened.
    fn save(&self, _: &View) -> Result<()> {
        Ok(())
    }

    /// Closing the store waits for one answer of the embedder, not for one of each text.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
