//! Vectors for every grain that has words: made in the background by an embedder of the store, and
//! handed to the writer.
//!
//! A grain is stored whether or not it can be embedded. A text that the embedder refuses is passed
//! over; an embedder that hangs or dies is asked again when somebody writes next. How far it has come
//! is written with the vectors, so a store that is opened again goes on there.
//!
//! A store that is moved to another model may have two: the one that leads, whose space serves from
//! the moment it is complete, and the former one, which keeps its space complete until then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use grainstore_index::text::{Settings, text_of};
use grainstore_index::vectors::{Metric, Space};
use serde::Serialize;

use super::{Embedder, Embedding};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::mpsc::SyncSender;
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::search::texts::Wording;
use crate::state::consent::is_withdrawn;
use crate::state::follow::Follower;
use crate::state::truth::whole;
use crate::state::view::{View, with_fields};
use crate::write::writer::Request;

/// Grains whose texts the embedder is given at once.
const AT_ONCE: usize = 32;
/// Bytes of a text that are embedded: models read no more.
const MAX_TEXT: usize = 8 << 10;
/// How long questions do without an embedder that was too slow for one.
const REST: Duration = Duration::from_secs(30);

/// How long after a failure grains do without the embedder, however much is written: a program that ends at
/// once would be started for every grain.
const BREATH: Duration = Duration::from_secs(1);

/// How the writer is asked; nothing once the store is closed.
pub(crate) type Requests = Arc<Mutex<Option<SyncSender<Request>>>>;

/// Places of the log that are looked at for a text that was embedded before.
const LOOK_BACK: usize = 256;

/// An embedder of a store, and how far it has come.
pub(crate) struct Keeping {
    embedder: Arc<dyn Embedder>,
    space: Space,
    /// Whether its space is to serve; else it is the former one of a move.
    leads: bool,
    wording: Wording,
    requests: Requests,
    state: Mutex<State>,
    /// Told when the writer has taken what was made.
    taken: Condvar,
    /// Whether the store is being closed.
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The last place of the log that was embedded or passed over; none before it was looked up.
    at: Option<u64>,
    /// Whether what was made could not be written: it goes on from what is.
    undone: bool,
    /// What was made and not written yet.
    ready: Option<Ready>,
    error: Option<Error>,
    /// When it last failed for a grain.
    failed_at: Option<Instant>,
    /// Whether somebody has written since.
    again: bool,
    /// When it was too slow for a question, and why, if it was.
    slow: Option<(Instant, Error)>,
    skipped: u64,
}

impl State {
    /// Whether it failed only a moment ago.
    fn is_out_of_breath(&self) -> bool {
        self.failed_at.is_some_and(|failed| failed.elapsed() < BREATH)
    }

    /// Keeps why the embedder could not answer. After one answer that came too late no question waits for it.
    fn failed(&mut self, error: &Error) {
        self.error = Some(error.clone());
        if error.kind() == ErrorKind::Timeout {
            self.slow = Some((Instant::now(), error.clone()));
        }
    }
}

/// Vectors for the writer.
pub(crate) struct Ready {
    /// The space they are of.
    pub(crate) space: Space,
    /// Whether that is to serve once every grain has a vector of it.
    pub(crate) leads: bool,
    /// The place of the log they go on behind.
    pub(crate) from: u64,
    /// The last place of the log they are for.
    pub(crate) to: u64,
    pub(crate) vectors: Vec<(Sequence, Embedding)>,
}

/// How far an embedder of a store has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EmbeddingStatus {
    /// Its model.
    pub model: String,
    /// Whether its vectors answer words, and vectors whose model is not named. Where another model served
    /// when the embedder came, not before nothing is left to embed.
    pub serves: bool,
    /// Grains of the log it has not seen yet.
    pub behind: u64,
    /// Texts it refused since the store was opened.
    pub skipped: u64,
    /// Why it could not go on, if it could not: a code and what happened.
    pub error: Option<String>,
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keeping({})", self.space.model())
    }
}

impl Keeping {
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA` for an embedder that says something impossible of itself.
    pub(crate) fn new(
        (embedder, metric): (Arc<dyn Embedder>, Metric),
        leads: bool,
        wording: Wording,
        requests: Requests,
    ) -> Result<Self> {
        let space = Space::new(embedder.model(), embedder.dimension(), metric)?;
        let (state, taken, stopped) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Ok(Self { embedder, space, leads, wording, requests, state, taken, stopped })
    }

    /// The space its vectors are of.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// Whether its space is to serve.
    pub(crate) fn leads(&self) -> bool {
        self.leads
    }

    /// The vector of a question. An embedder that was too slow for one is left in peace for a while:
    /// no search after it waits in vain.
    ///
    /// # Errors
    /// Those of the embedder.
    pub(crate) fn question(&self, text: &str) -> Result<Vec<f32>> {
        if let Some((since, error)) = &self.lock().slow
            && since.elapsed() < REST
        {
            return Err(error.clone());
        }
        let vectors = self.embedder.embed(&[text]);
        let vectors = vectors.inspect_err(|error| self.lock().failed(error))?;
        let none = || Error::new(ErrorKind::Embedder, "the embedder gave no vector");
        Ok(vectors.first().ok_or_else(none)?.values().to_vec())
    }

    /// What was made, for the writer to write.
    pub(crate) fn take(&self) -> Option<Ready> {
        self.lock().ready.take()
    }

    /// Says that what was taken is written, or why it is not.
    pub(crate) fn written(&self, outcome: &Result<()>) {
        if let Err(error) = outcome {
            let mut state = self.lock();
            state.error = Some(error.clone());
            state.undone = true;
        }
        self.taken.notify_all();
    }

    pub(crate) fn status(&self, view: &View) -> Result<EmbeddingStatus> {
        let model = self.space.model().to_owned();
        let behind = view.last_sequence()?.get().saturating_sub(view.embedded_to(&model)?);
        let serves = view.serving()? == Some(&self.space);
        let state = self.lock();
        let error = state.error.as_ref().map(|error| format!("{}: {error}", error.code()));
        Ok(EmbeddingStatus { model, serves, behind, skipped: state.skipped, error })
    }

    /// Whether its space is complete and is still to be written down as the serving one.
    fn is_due(&self, view: &View) -> Result<bool> {
        let is_known = || Ok::<_, Error>(view.spaces()?.values().any(|space| *space == self.space));
        Ok(self.leads && view.appointed()? != Some(&self.space) && is_known()?)
    }

    /// Waits until the newest view has a vector of everything, and serves them, or the embedder cannot go
    /// on. Gives whether it has.
    pub(crate) fn wait(
        &self,
        patience: Duration,
        newest: impl Fn() -> Result<Arc<View>>,
    ) -> Result<bool> {
        // Without an end where it is further away than clocks go.
        let end = Instant::now().checked_add(patience);
        loop {
            let view = newest()?;
            let status = self.status(&view)?;
            let done = status.behind == 0 && !self.is_due(&view)?;
            if done || status.error.is_some() {
                return Ok(done);
            }
            drop(view);
            let until = |end: Instant| end.saturating_duration_since(Instant::now());
            let left = end.map_or(Duration::MAX, until);
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.taken.wait_timeout(self.lock(), left.min(Duration::from_millis(50)));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The next texts of a view, with the place behind them.
    fn next(&self, view: &View, from: u64) -> Result<(u64, Vec<(Sequence, String)>)> {
        let (mut to, mut texts) = (from, Vec::new());
        let end = view.last_sequence()?.get();
        while to < end && texts.len() < AT_ONCE {
            to += 1;
            let at = Sequence::new(to);
            if view.has_vector(at, self.space.model())? || view.is_erased(at)? {
                continue;
            }
            texts.extend(self.text_at(view, at)?.map(|text| (at, text)));
        }
        Ok((to, texts))
    }

    /// The text at a place of the log, where there is one to embed.
    fn text_at(&self, view: &View, at: Sequence) -> Result<Option<String>> {
        let read = view.with_blob(at, |blob| {
            with_fields(blob, |grain| {
                let has_words = self.wording.of(grain).is_some() && !is_withdrawn(view, grain)?;
                Ok(has_words.then(|| text_of(grain, &Settings::default(), MAX_TEXT)))
            })
        });
        Ok(whole(read)?.flatten().filter(|text| !text.is_empty()))
    }

    /// Vectors of texts behind a place of the log, and how many were refused. Where the embedder cannot
    /// answer for all at once it is asked for each. One that then answers for none, nor for a text it
    /// has answered before, is not at work.
    fn embed(
        &self,
        (view, from): (&View, u64),
        texts: &[(Sequence, String)],
    ) -> Result<(Vec<(Sequence, Embedding)>, u64)> {
        let whole = match self.made(texts) {
            Err(error) if error.kind() != ErrorKind::Timeout => error,
            made => return Ok((made?, 0)),
        };
        let (mut made, mut refused) = (Vec::new(), 0);
        for one in texts.chunks(1) {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(whole);
            }
            match self.made(one) {
                Ok(vectors) => made.extend(vectors),
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(error),
                Err(_) => refused += 1,
            }
        }
        if made.is_empty() && !self.is_at_work(view, from)? {
            return Err(whole);
        }
        Ok((made, refused))
    }

    /// Whether it answers for a text up to a place of the log that has a vector of its model.
    fn is_at_work(&self, view: &View, from: u64) -> Result<bool> {
        for at in (1..=from).rev().take(LOOK_BACK) {
            let at = Sequence::new(at);
            if view.has_vector(at, self.space.model())?
                && let Some(text) = self.text_at(view, at)?
            {
                return Ok(self.embedder.embed(&[&text]).is_ok());
            }
        }
        Ok(false)
    }

    fn made(&self, texts: &[(Sequence, String)]) -> Result<Vec<(Sequence, Embedding)>> {
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

    fn hand_over(&self, ready: Ready) {
        self.lock().ready = Some(ready);
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            // A queue that is full brings the writer here as well: it looks after each group.
            let _ = requests.try_send(Request::Vectors);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Keeping {
    fn step(&self, view: &View) -> Result<bool> {
        let from = {
            let mut state = self.lock();
            // One batch at a time: the next is read once this one is written.
            if state.ready.is_some() || state.is_out_of_breath() {
                return Ok(true);
            }
            state.again = false;
            let stored = view.embedded_to(self.space.model())?;
            let undone = std::mem::take(&mut state.undone);
            let at = state.at.filter(|_| !undone).map_or(stored, |at| at.max(stored));
            state.at = Some(at);
            at
        };
        if !self.leads && view.serving()? != Some(&self.space) {
            return Ok(true);
        }
        let (to, texts) = self.next(view, from)?;
        if to == from && !self.is_due(view)? {
            return Ok(true);
        }
        let made = match texts.is_empty() {
            true => Ok((Vec::new(), 0)),
            false => self.embed((view, from), &texts),
        };
        let (vectors, skipped) = made.inspect_err(|error| {
            let mut state = self.lock();
            state.failed(error);
            state.failed_at = Some(Instant::now());
            drop(state);
            self.taken.notify_all();
        })?;
        {
            let mut state = self.lock();
            (state.error, state.slow, state.failed_at) = (None, None, None);
            state.skipped += skipped;
            state.at = Some(to);
        }
        let space = self.space.clone();
        self.hand_over(Ready { space, leads: self.leads, from, to, vectors });
        // The writer's next view brings this thread back.
        Ok(true)
    }

    /// What was left when the store was last open, or was written after a failure.
    fn is_wanted(&self) -> bool {
        let state = self.lock();
        state.at.is_none() || (state.again && !state.is_out_of_breath())
    }

    /// Writing waits for no embedder; each write has one that failed asked again, once it had a rest.
    fn stay_close(&self, _: &View) -> Result<()> {
        let mut state = self.lock();
        state.again |= state.failed_at.is_some();
        state.error = None;
        Ok(())
    }

    /// What is not embedded when the store is closed is when it is opened again.
    fn settle(&self, _: &View) -> Result<()> {
        Ok(())
    }

    /// Whoever closes the store waits for one answer, not for one of each text.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
