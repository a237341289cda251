//! Embedders of processes that relay: the owner of a store that was opened without one asks theirs for vectors.
//!
//! A relay that has an embedder offers it on a connection of its own ([`Offering`]), on which the owner then sends
//! texts and gets vectors. While there is an offer the store has an embedder ([`OfferedEmbedder`]); all offers at one
//! time are of one model. Where the owner was opened with an embedder itself, that one is asked.

use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use data_encoding::BASE64;
use grainstore::embed::{Embedder, Metric, Vector};
use grainstore::{Error as StoreError, Store};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use super::greeting::{receive_within, send};
use crate::error::{Code, Error, Result};

/// Most bytes of a line of texts or of vectors: 32 texts of 8 KiB, or 32 vectors of the highest dimension.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Time between two signs of life of an embedder at work.
const SIGN_EVERY: Duration = Duration::from_secs(1);
/// Time without a sign of life after which an embedder is asked no more.
const SILENCE: Duration = Duration::from_secs(5);

/// What makes the vectors of an embedder comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Model {
    name: String,
    dimension: usize,
    metric: String,
}

impl Model {
    pub(super) fn of(embedder: &dyn Embedder, metric: Metric) -> Self {
        let (name, dimension) = (embedder.model().to_owned(), embedder.dimension());
        Self { name, dimension, metric: metric.name().to_owned() }
    }
}

/// What the owner asks.
#[derive(Serialize, Deserialize)]
struct Texts {
    texts: Vec<String>,
}

/// What an embedder answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// Nothing yet.
    Working,
    /// The numbers of each vector, four bytes each, as base64.
    Vectors(Vec<String>),
    /// It was late.
    Timeout(String),
    Failed(String),
}

impl Answer {
    fn of(made: &std::result::Result<Vec<Vector>, StoreError>) -> Self {
        let digits = |vector: &Vector| {
            let bytes = vector.values().iter().flat_map(|value| value.to_le_bytes());
            BASE64.encode(&bytes.collect::<Vec<_>>())
        };
        match made {
            Ok(vectors) => Self::Vectors(vectors.iter().map(digits).collect()),
            Err(error) if error.code() == "ERR_TIMEOUT" => Self::Timeout(error.to_string()),
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// The numbers of a vector in an answer.
fn vector_of(digits: &str) -> std::result::Result<Vector, StoreError> {
    let unreadable = || StoreError::embedder("the vectors of another process are not readable");
    let bytes = BASE64.decode(digits.as_bytes()).map_err(|_| unreadable())?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(unreadable());
    }
    Ok(Vector::new(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect::<Vec<_>>())?)
}

/// The owner's end of the connection on which a process offers its embedder.
struct Source {
    connection: u64,
    stream: Arc<UnixStream>,
    /// Held while it is asked.
    reader: Mutex<BufReader<UnixStream>>,
}

/// A process that embeds has ended, or shows no sign of life.
struct Gone;

impl Source {
    fn ask(&self, texts: &[&str]) -> std::result::Result<Answer, Gone> {
        let texts = Texts { texts: texts.iter().map(|text| (*text).to_owned()).collect() };
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        send(&mut &*self.stream, &texts).map_err(|_| Gone)?;
        loop {
            match receive_within(&mut *reader, MAX_LINE_BYTES) {
                Ok(Answer::Working) => {}
                Ok(answer) => return Ok(answer),
                Err(_) => return Err(Gone),
            }
        }
    }
}

/// The embedder of a store whose vectors are made by processes that offered to.
struct OfferedEmbedder {
    model: Model,
    sources: Mutex<Vec<Arc<Source>>>,
}

impl OfferedEmbedder {
    fn sources(&self) -> MutexGuard<'_, Vec<Arc<Source>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the offer of a connection.
    fn remove(&self, connection: u64) {
        self.sources().retain(|source| source.connection != connection);
    }
}

impl Embedder for OfferedEmbedder {
    fn model(&self) -> &str {
        &self.model.name
    }

    fn dimension(&self) -> usize {
        self.model.dimension
    }

    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vector>, StoreError> {
        loop {
            let first = self.sources().first().map(Arc::clone);
            let Some(source) = first else {
                let message = format!("no process that embeds by {} is there", self.model.name);
                return Err(StoreError::embedder(message));
            };
            match source.ask(texts) {
                Ok(Answer::Vectors(vectors)) => {
                    return vectors.iter().map(|digits| vector_of(digits)).collect();
                }
                Ok(Answer::Timeout(why)) => return Err(StoreError::timeout(why)),
                Ok(Answer::Failed(why)) => return Err(StoreError::embedder(why)),
                Ok(Answer::Working) | Err(Gone) => {
                    self.remove(source.connection);
                    // Its connection ends, which tells the thread that waits for that.
                    let _ = source.stream.shutdown(Shutdown::Both);
                }
            }
        }
    }
}

/// The embedders that are offered to the owner of a store at present.
#[derive(Default)]
pub(super) struct Offers {
    present: Mutex<Option<Arc<OfferedEmbedder>>>,
}

impl Offers {
    fn present(&self) -> MutexGuard<'_, Option<Arc<OfferedEmbedder>>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an offer: the store embeds by it, beside other offers of the same model. It is asked once `tell` has
    /// told the other end so.
    ///
    /// # Errors
    /// `ERR_CONFLICT` beside an offer of another model; as [`Store::attach_embedder`]; `ERR_IO`.
    pub(super) fn add(
        &self,
        store: &Store,
        model: Model,
        (connection, stream): (u64, &Arc<UnixStream>),
        tell: impl FnOnce() -> io::Result<()>,
    ) -> Result<()> {
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let reader = Mutex::new(BufReader::new(stream.try_clone()?));
        let source = Arc::new(Source { connection, stream: Arc::clone(stream), reader });
        let asking = source.reader.lock().unwrap_or_else(PoisonError::into_inner);
        self.take(store, model, Arc::clone(&source))?;
        let told = tell();
        drop(asking);
        Ok(told.inspect_err(|_| self.remove(store, connection))?)
    }

    fn take(&self, store: &Store, model: Model, source: Arc<Source>) -> Result<()> {
        let mut present = self.present();
        match &*present {
            Some(offered) if offered.model == model => {
                offered.sources().push(source);
                Ok(())
            }
            Some(offered) => Err(other_model(&offered.model, &model)),
            None => {
                let Some(metric) = Metric::named(&model.metric) else {
                    return Err(Error::arguments(format!("no such metric: {}", model.metric)));
                };
                let offered = OfferedEmbedder { model, sources: Mutex::new(vec![source]) };
                let offered = Arc::new(offered);
                store.attach_embedder(Arc::<OfferedEmbedder>::clone(&offered), metric)?;
                *present = Some(offered);
                Ok(())
            }
        }
    }

    /// Forgets the offer of a connection. With the last one the store has no embedder any more.
    pub(super) fn remove(&self, store: &Store, connection: u64) {
        let mut present = self.present();
        let Some(offered) = &*present else { return };
        offered.remove(connection);
        if offered.sources().is_empty() {
            *present = None;
            // A store that is closed has none.
            let _ = store.detach_embedder();
        }
    }
}

/// The error for embedders of two models at once.
pub(super) fn other_model(own: &Model, given: &Model) -> Error {
    let told =
        |model: &Model| format!("{} of {} numbers, {}", model.name, model.dimension, model.metric);
    let pid = std::process::id();
    let message = format!(
        "embedder: process {pid}, which has the store open, embeds by {}, and this one by {}",
        told(own),
        told(given)
    );
    Error::new(Code::Conflict, message, "give all processes on one store the same options")
}

/// Waits until the other end of a connection is closed, or this one is.
pub(super) fn wait_for_end(stream: &UnixStream) {
    loop {
        let mut ends = [PollFd::new(stream, PollFlags::RDHUP)];
        match poll(&mut ends, None) {
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// An embedder of this process that the owner of a store asks, until this is dropped or the owner ends.
#[derive(Debug)]
pub(crate) struct Offering {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl Offering {
    /// Answers the owner on a connection that has offered.
    pub(super) fn start(
        embedder: Arc<dyn Embedder>,
        reader: BufReader<UnixStream>,
    ) -> Result<Self> {
        let stream = reader.get_ref().try_clone()?;
        stream.set_read_timeout(None)?;
        let answer = move || answer(&embedder, reader);
        let thread = thread::Builder::new().name("embedder".to_owned()).spawn(answer)?;
        Ok(Self { stream, thread })
    }

    /// Returns `true` while the owner can ask.
    pub(super) fn is_alive(&self) -> bool {
        !self.thread.is_finished()
    }
}

/// What came of offering an embedder to the owner of a store, who is told by a number.
#[derive(Debug)]
pub(crate) enum Offered {
    /// There is none to offer.
    Nothing,
    Taken(u64, Offering),
    /// The owner has one of its own.
    Unneeded(u64),
    /// It is to be offered again.
    Unheard,
}

impl Offered {
    /// Returns `true` if an owner need not be offered anything any more.
    pub(super) fn holds(&self, owner: u64) -> bool {
        match self {
            Self::Nothing => true,
            Self::Taken(to, offering) => *to == owner && offering.is_alive(),
            Self::Unneeded(to) => *to == owner,
            Self::Unheard => false,
        }
    }
}

impl Drop for Offering {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Answers until the connection ends.
fn answer(embedder: &Arc<dyn Embedder>, mut reader: BufReader<UnixStream>) {
    while let Ok(Texts { texts }) = receive_within(&mut reader, MAX_LINE_BYTES) {
        let (made, answer) = channel();
        let embedder = Arc::clone(embedder);
        let embed = move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            // Nobody may wait any more.
            let _ = made.send(Answer::of(&embedder.embed(&texts)));
        };
        let Ok(working) = thread::Builder::new().name("embedding".to_owned()).spawn(embed) else {
            return;
        };
        let answer = loop {
            match answer.recv_timeout(SIGN_EVERY) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) => {
                    if send(&mut reader.get_ref(), &Answer::Working).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    break Answer::Failed("the embedder panicked".to_owned());
                }
            }
        };
        drop(working);
        if send(&mut reader.get_ref(), &answer).is_err() {
            return;
        }
    }
}
