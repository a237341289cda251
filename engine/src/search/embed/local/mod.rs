//! An embedder in the process: a BERT model as saved by sentence-transformers, in a directory of the host.
//! Must read that directory and no other; see docs/embedding.md.
//!
//! - `folder`: its files
//! - `recipe`: the processing of a text they describe
//! - `words`: texts to tokens
//! - `model`: tokens to vectors

mod folder;
mod model;
mod recipe;
mod words;

use std::path::PathBuf;
use std::sync::PoisonError;

use self::folder::Folder;
use self::model::{Model, Settings, WEIGHTS};
use self::recipe::{Pooling, Recipe};
use self::words::{Tokens, Words};
use super::{Embedder, Metric, Space, Vector, check_answer, check_texts};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::Mutex;

/// Most tokens of one batch, padding included, unless a single text has more: this bounds the memory of a
/// call.
const TOKENS_AT_ONCE: usize = 1_024;
/// Most texts of one batch.
const TEXTS_AT_ONCE: usize = 32;

/// Location of a model.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The directory, as saved by sentence-transformers.
    pub directory: PathBuf,
    /// The name of the model; by default that of the directory.
    pub model: Option<String>,
}

impl LocalOptions {
    /// The model of a directory, named after the directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), model: None }
    }
}

/// A model in memory that embeds on the caller's thread and the process-wide pool of `rayon`. Concurrent
/// calls embed one batch at a time.
pub struct LocalEmbedder {
    name: String,
    folder: Folder,
    words: Words,
    model: Mutex<Model>,
    pooling: Pooling,
    is_normalised: bool,
    dimension: usize,
}

impl std::fmt::Debug for LocalEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalEmbedder({})", self.name)
    }
}

impl LocalEmbedder {
    /// Reads a model and tries it on one word. Takes about twice the bytes of its weights while reading, and
    /// four bytes a weight afterwards.
    ///
    /// # Errors
    /// `ERR_EMBEDDER`, with the file and the reason, if a file is missing, damaged, or does not fit the
    /// others, or asks for what is not supported, such as a model type other than bert or a pooling other
    /// than mean and cls. `ERR_SCHEMA` for a model name that is empty or longer than 256 bytes.
    pub fn new(options: LocalOptions) -> Result<Self> {
        let LocalOptions { directory, model } = options;
        let folder = Folder::new(&directory)?;
        let name = match model {
            Some(name) => name,
            None => folder.name().ok_or_else(|| folder.refused("", "it has no name"))?,
        };
        let embedder = Self::read(name, &folder)?;
        embedder.embed(&["word"]).map_err(|error| match error.kind() {
            ErrorKind::Embedder => error,
            _ => embedder.folder.refused(WEIGHTS, format!("it makes no vector of a word: {error}")),
        })?;
        Ok(embedder)
    }

    fn read(name: String, folder: &Folder) -> Result<Self> {
        let recipe = Recipe::read(folder)?;
        let settings = Settings::read(&recipe.transformer)?;
        let dimension = settings.hidden_size;
        if recipe.dimension != dimension {
            let said = recipe.dimension;
            let why =
                format!("it pools vectors of {said} numbers, and the model makes {dimension}");
            return Err(folder.refused("modules.json", why));
        }
        Space::new(&name, dimension, Metric::Cosine)?;
        let places = settings.max_position_embeddings;
        let most_tokens = recipe.most_tokens.map_or(places, |most| most.min(places));
        let words = Words::read(&recipe, settings.vocab_size, most_tokens)?;
        let model = Mutex::new(Model::read(&recipe.transformer, &settings)?);
        let Recipe { transformer: folder, pooling, is_normalised, .. } = recipe;
        Ok(Self { name, folder, words, model, pooling, is_normalised, dimension })
    }

    /// The tokens of each text.
    fn tokens(&self, texts: &[&str]) -> Result<Vec<Tokens>> {
        let of = |(at, text): (usize, &&str)| {
            let tokens = self.words.of(text)?;
            if tokens.ids.is_empty() {
                let kind = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
                return Err(Error::new(kind, format!("text {at} has no word the model knows of")));
            }
            Ok(tokens)
        };
        texts.iter().enumerate().map(of).collect()
    }

    /// Embeds one batch, with the pooling and normalisation of the directory.
    fn batch(&self, texts: &[&Tokens]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = self.folder.guarded(WEIGHTS, || {
            let model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
            let vectors = model.vectors(texts, self.pooling);
            vectors.map_err(|error| self.folder.refused(WEIGHTS, error))
        })?;
        if self.is_normalised {
            vectors.iter_mut().for_each(|vector| normalise(vector));
        }
        Ok(vectors)
    }
}

impl Embedder for LocalEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        check_texts(texts)?;
        let tokens = self.tokens(texts)?;
        // Sorting by length keeps padding short.
        let mut order: Vec<(usize, &Tokens)> = tokens.iter().enumerate().collect();
        order.sort_by_key(|(_, text)| text.ids.len());
        let mut made: Vec<(usize, Vec<f32>)> = Vec::with_capacity(texts.len());
        let mut left = order.as_slice();
        while !left.is_empty() {
            let (batch, rest) = left.split_at_checked(at_once(left)).unwrap_or((left, &[]));
            let texts: Vec<&Tokens> = batch.iter().map(|(_, text)| *text).collect();
            let vectors = self.batch(&texts)?;
            made.extend(batch.iter().map(|(at, _)| *at).zip(vectors));
            left = rest;
        }
        made.sort_by_key(|(at, _)| *at);
        let vectors = made.into_iter().map(|(_, vector)| vector).collect();
        check_answer(vectors, texts.len(), self.dimension)
    }
}

/// Number of texts in the next batch, which are sorted by length: one at least.
fn at_once(texts: &[(usize, &Tokens)]) -> usize {
    let fits = texts.iter().take(TEXTS_AT_ONCE).enumerate().take_while(|(before, (_, text))| {
        (before + 1).saturating_mul(text.ids.len()) <= TOKENS_AT_ONCE
    });
    fits.count().max(1)
}

/// Scales a vector to length one; a zero vector stays as it is.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-12);
    vector.iter_mut().for_each(|value| *value /= length);
}
