//! An embedder that runs another program. Must not know pipes.
//!
//! One line of JSON is one request, and one line its answer; see docs/embedding.md.

use std::ffi::OsString;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::process::{EmbedderProcess, ProcessError};
use super::{Embedder, Vector, check_answer, check_texts};
use crate::base::error::{Error, ErrorKind, Result};

/// Default number of texts in a line.
const DEFAULT_BATCH_TEXTS: usize = 32;
/// Default time a program has to answer a line.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// Most bytes of one number in an answer, and most bytes of an answer beside its numbers.
const MAX_NUMBER_BYTES: usize = 32;
const MAX_OVERHEAD_BYTES: usize = 64 << 10;

/// Options of a [`CommandEmbedder`].
#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The name of the model it embeds with.
    pub model: String,
    /// Numbers of each vector, 1 to 4,096.
    pub dimension: usize,
    /// Time it has for one line of texts, its start included.
    pub deadline: Duration,
    /// Most texts of one line; 1 at least.
    pub batch: usize,
}

impl CommandOptions {
    /// Options of a program that has 30 seconds for a line of at most 32 texts.
    #[must_use]
    pub fn new(command: Vec<OsString>, model: &str, dimension: usize) -> Self {
        Self {
            command,
            model: model.to_owned(),
            dimension,
            deadline: DEFAULT_DEADLINE,
            batch: DEFAULT_BATCH_TEXTS,
        }
    }
}

/// An embedder that runs a program. The first text starts the program; dropping this value kills it. A
/// program that fails or is late is killed, and the next text starts it again.
///
/// docs/embedding.md has the lines that the program reads and writes.
///
/// ```
/// use grainstore::embed::{CommandEmbedder, CommandOptions, Embedder};
///
/// let command = vec!["python3".into(), "embed.py".into()];
/// let embedder = CommandEmbedder::new(CommandOptions::new(command, "my-model", 384))?;
/// assert_eq!((embedder.model(), embedder.dimension()), ("my-model", 384));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CommandEmbedder {
    options: CommandOptions,
    process: Mutex<Option<EmbedderProcess>>,
}

#[derive(Serialize)]
struct EmbedRequest<'t> {
    texts: &'t [&'t str],
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EmbedAnswer {
    Vectors { vectors: Vec<Vec<f32>> },
    Refusal { error: String },
}

impl CommandEmbedder {
    /// Creates an embedder without starting its program.
    ///
    /// # Errors
    /// `ERR_EMBEDDER` without a program; `ERR_DIMENSION`, `ERR_SCHEMA` if model and dimension make no valid
    /// space.
    pub fn new(options: CommandOptions) -> Result<Self> {
        if options.command.is_empty() {
            return Err(Error::new(ErrorKind::Embedder, "no program is named"));
        }
        super::Space::new(&options.model, options.dimension, super::Metric::Cosine)?;
        Ok(Self { options, process: Mutex::new(None) })
    }

    /// Embeds one line of texts.
    fn embed_line(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        let line = serde_json::to_vec(&EmbedRequest { texts })
            .map_err(|error| embedder_error(&self.options, &error.to_string()))?;
        let mut running = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // After any failure below this process is not reused: its next line may be the late answer to this
        // request.
        let (conversation, answer) = match running.take() {
            // A process that ended since the last request is no failure: it is started again, once.
            Some(kept) => match self.request(kept, line.clone()) {
                Err((ProcessError::Broken(_), _)) => self.request(self.start()?, line),
                answered => answered,
            },
            None => self.request(self.start()?, line),
        }
        .map_err(|(_, error)| error)?;
        match serde_json::from_slice(&answer) {
            Ok(EmbedAnswer::Refusal { error }) => {
                *running = Some(conversation);
                Err(embedder_error(
                    &self.options,
                    &format!("it says: {}", truncate_message(&error)),
                ))
            }
            Ok(EmbedAnswer::Vectors { vectors }) => {
                let vectors = check_answer(vectors, texts.len(), self.options.dimension)?;
                *running = Some(conversation);
                Ok(vectors)
            }
            Err(_) => {
                let message = "it answered no line of the form {\"vectors\":[[...]]}";
                Err(embedder_error(&self.options, message))
            }
        }
    }

    fn request(
        &self,
        mut conversation: EmbedderProcess,
        line: Vec<u8>,
    ) -> Result<(EmbedderProcess, Vec<u8>), (ProcessError, Error)> {
        match conversation.request(line, self.options.deadline) {
            Ok(answer) => Ok((conversation, answer)),
            Err(ProcessError::TimedOut) => {
                let seconds = self.options.deadline.as_secs_f64();
                let message = format!("the embedder did not answer within {seconds} s");
                let hint = "allow it more time, or fewer texts a line";
                Err((
                    ProcessError::TimedOut,
                    Error::new(ErrorKind::Timeout, message).with_hint(hint),
                ))
            }
            Err(ProcessError::Broken(error)) => {
                let failed = embedder_error(&self.options, &error.to_string());
                Err((ProcessError::Broken(error), failed))
            }
        }
    }

    fn start(&self) -> Result<EmbedderProcess> {
        let CommandOptions { command, dimension, batch, .. } = &self.options;
        let Some((program, given)) = command.split_first() else {
            return Err(Error::new(ErrorKind::Embedder, "no program is named"));
        };
        let numbers = dimension.saturating_mul((*batch).max(1));
        let most = numbers.saturating_mul(MAX_NUMBER_BYTES).saturating_add(MAX_OVERHEAD_BYTES);
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        EmbedderProcess::start(Command::new(program).args(given), most).map_err(|error| {
            embedder_error(&self.options, &format!("it cannot be started: {error}"))
        })
    }
}

impl Embedder for CommandEmbedder {
    fn model(&self) -> &str {
        &self.options.model
    }

    fn dimension(&self) -> usize {
        self.options.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        check_texts(texts)?;
        let mut vectors = Vec::with_capacity(texts.len());
        for line in texts.chunks(self.options.batch.max(1)) {
            vectors.extend(self.embed_line(line)?);
        }
        Ok(vectors)
    }
}

/// The error of an embedder that failed, with the name of its program.
fn embedder_error(options: &CommandOptions, why: &str) -> Error {
    let program = options.command.first().map(|program| program.to_string_lossy());
    let program = program.unwrap_or_default();
    Error::new(ErrorKind::Embedder, format!("the embedder {program} failed: {why}"))
}

/// The start of a program's message that fits into an error, without control characters.
fn truncate_message(text: &str) -> String {
    const MOST: usize = 200;
    text.chars().filter(|char| !char.is_control()).take(MOST).collect()
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
