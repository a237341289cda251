//! Vectors for every grain that has words: made in the background by the store's embedder, and handed
//! to the writer.
//!
//! A grain is stored whether or not it can be embedded. A text that the embedder refuses is passed
//! over; an embedder that hangs or dies is asked again when somebody writes next. How far it has come
//! is written with the vectors, so a store that is opened again goes on there.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use grainstore_index::Sequence;
use grainstore_index::text::{Settings, text_of};
use grainstore_index::vectors::{Metric, Space};
use serde::Serialize;

use super::{Embedder, Embedding};
use crate::error::{Error, ErrorKind, Result};
use crate::follow::Follower;
use crate::sync::mpsc::SyncSender;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::texts::Wording;
use crate::view::{View, with_fields};
use crate::writer::Request;

/// Grains whose texts the embedder is given at once.
const AT_ONCE: usize = 32;
/// Bytes of a text that are embedded: models read no more.
const MAX_TEXT: usize = 8 << 10;
/// How long questions do without an embedder that was too slow for one.
const REST: Duration = Duration::from_secs(30);

/// How the writer is asked; nothing once the store is closed.
pub(crate) type Requests = Arc<Mutex<Option<SyncSender<Request>>>>;

/// The embedder of a store, and how far it has come.
pub(crate) struct Keeping {
    embedder: Arc<dyn Embedder>,
    metric: Metric,
    wording: Wording,
    requests: Requests,
    state: Mutex<State>,
    /// Told when the writer has taken what was made.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    /// The last place of the log that was embedded or passed over; none before it was looked up.
    at: Option<u64>,
    /// What was made and not written yet.
    ready: Option<Ready>,
    error: Option<Error>,
    /// When it was too slow for a question, and why, if it was.
    slow: Option<(Instant, Error)>,
    skipped: u64,
}

/// Vectors for the writer.
pub(crate) struct Ready {
    /// The model they are of.
    pub(crate) model: String,
    /// The last place of the log they are for.
    pub(crate) to: u64,
    pub(crate) vectors: Vec<(Sequence, Embedding)>,
}

/// How far the embedder of a store has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EmbeddingStatus {
    /// Its model.
    pub model: String,
    /// Grains of the log it has not seen yet.
    pub behind: u64,
    /// Texts it refused since the store was opened.
    pub skipped: u64,
    /// Why it could not go on, if it could not: a code and what happened.
    pub error: Option<String>,
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keeping({})", self.embedder.model())
    }
}

impl Keeping {
    pub(crate) fn new(
        (embedder, metric): (Arc<dyn Embedder>, Metric),
        wording: Wording,
        requests: Requests,
    ) -> Self {
        let (state, taken) = (Mutex::default(), Condvar::new());
        Self { embedder, metric, wording, requests, state, taken }
    }

    /// The space its vectors are of.
    ///
    /// # Errors
    /// `ERR_DIMENSION`, `ERR_SCHEMA` for an embedder that says something impossible of itself.
    pub(crate) fn space(&self) -> Result<Space> {
        Ok(Space::new(self.embedder.model(), self.embedder.dimension(), self.metric)?)
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
        let vectors = vectors.inspect_err(|error| {
            let mut state = self.lock();
            state.error = Some(error.clone());
            if error.kind() == ErrorKind::Timeout {
                state.slow = Some((Instant::now(), error.clone()));
            }
        })?;
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
            self.lock().error = Some(error.clone());
        }
        self.taken.notify_all();
    }

    pub(crate) fn status(&self, view: &View) -> Result<EmbeddingStatus> {
        let model = self.embedder.model().to_owned();
        let behind = view.last_sequence()?.get().saturating_sub(view.embedded_to(&model)?);
        let state = self.lock();
        let error = state.error.as_ref().map(|error| format!("{}: {error}", error.code()));
        Ok(EmbeddingStatus { model, behind, skipped: state.skipped, error })
    }

    /// Waits until the newest view has a vector of everything, or the embedder cannot go on. Gives
    /// whether it has.
    pub(crate) fn wait(
        &self,
        patience: Duration,
        newest: impl Fn() -> Result<Arc<View>>,
    ) -> Result<bool> {
        let end = Instant::now() + patience;
        loop {
            let status = self.status(&*newest()?)?;
            if status.behind == 0 || status.error.is_some() {
                return Ok(status.behind == 0);
            }
            let left = end.saturating_duration_since(Instant::now());
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
            if view.has_vector(at, self.embedder.model())? {
                continue;
            }
            let read = view.with_blob(at, |blob| {
                with_fields(blob, |grain| {
                    let has_words = self.wording.of(grain).is_some();
                    Ok(has_words.then(|| text_of(grain, &Settings::default(), MAX_TEXT)))
                })
            });
            match read {
                Ok(text) => {
                    texts.extend(text.filter(|text| !text.is_empty()).map(|text| (at, text)));
                }
                // A row that is damaged is for `verify` to name.
                Err(error) if error.is_integrity() => {}
                Err(error) => return Err(error),
            }
        }
        Ok((to, texts))
    }

    /// Vectors of these texts, and how many were refused. Where the embedder cannot answer for all at
    /// once it is asked for each; one that answers for none is not at work.
    fn embed(&self, texts: &[(Sequence, String)]) -> Result<(Vec<(Sequence, Embedding)>, u64)> {
        let whole = match self.made(texts) {
            Err(error) if texts.len() > 1 && error.kind() != ErrorKind::Timeout => error,
            made => return Ok((made?, 0)),
        };
        let (mut made, mut refused) = (Vec::new(), 0);
        for one in texts.chunks(1) {
            match self.made(one) {
                Ok(vectors) => made.extend(vectors),
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(error),
                Err(_) => refused += 1,
            }
        }
        if made.is_empty() { Err(whole) } else { Ok((made, refused)) }
    }

    fn made(&self, texts: &[(Sequence, String)]) -> Result<Vec<(Sequence, Embedding)>> {
        let all: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = self.embedder.embed(&all)?;
        let made = texts.iter().zip(vectors).map(|((at, _), vector)| {
            let values = vector.values().to_vec();
            Ok((*at, Embedding::new(self.embedder.model(), self.metric, values)?))
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
            if state.ready.is_some() {
                return Ok(true);
            }
            let stored = view.embedded_to(self.embedder.model())?;
            let at = state.at.map_or(stored, |at| at.max(stored));
            state.at = Some(at);
            at
        };
        let (to, texts) = self.next(view, from)?;
        if to == from {
            return Ok(true);
        }
        let made = match texts.is_empty() {
            true => Ok((Vec::new(), 0)),
            false => self.embed(&texts),
        };
        let (vectors, skipped) = made.inspect_err(|error| {
            self.lock().error = Some(error.clone());
            self.taken.notify_all();
        })?;
        {
            let mut state = self.lock();
            state.error = None;
            state.skipped += skipped;
            state.at = Some(to);
        }
        let model = self.embedder.model().to_owned();
        self.hand_over(Ready { model, to, vectors });
        // The writer's next view brings this thread back.
        Ok(true)
    }

    /// What was left when the store was last open.
    fn is_wanted(&self) -> bool {
        self.lock().at.is_none()
    }

    /// Writing waits for no embedder; each write has one that failed asked again.
    fn stay_close(&self, _: &View) -> Result<()> {
        self.lock().error = None;
        Ok(())
    }

    /// What is not embedded when the store is closed is when it is opened again.
    fn settle(&self, _: &View) -> Result<()> {
        Ok(())
    }
}
