//! Parameters about vectors: those of grains, and the time to wait for an embedder.

use std::time::Duration;

use grainstore::embed::{Embedding, MAX_DIMENSION, Metric};
use serde::Deserialize;

use super::params::MAX_VECTORS;
use crate::error::{Code, Error};
use crate::protocol::fault::Fault;
use crate::protocol::json::{Few, Form, Formed};

/// Longest wait of `wait_for_vectors`, in milliseconds.
const MAX_WAIT_MS: u64 = 600_000;

/// Parses a metric, cosine by default.
pub(crate) fn metric(name: Option<&str>) -> Result<Metric, Fault> {
    let name = name.unwrap_or("cosine");
    let refused = || {
        let message = format!("no metric {name:?}");
        Error::new(Code::Schema, message, "use cosine, dot or l2").into()
    };
    Metric::named(name).ok_or_else(refused)
}

/// A vector of a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    model: String,
    metric: Option<String>,
    #[serde(default)]
    chunk: u32,
    values: Values,
}

impl Form for Given {
    const FORM: &'static str = "an object {model, metric?, chunk?, values: [number ...]}";
}

impl Given {
    fn embedding(self) -> Result<Embedding, Fault> {
        let metric = metric(self.metric.as_deref())?;
        let embedding = Embedding::new(&self.model, metric, self.values.numbers())?;
        Ok(embedding.of_chunk(self.chunk))
    }
}

/// Converts the vectors of one grain.
pub(crate) fn embeddings(given: Few<Formed<Given>, MAX_VECTORS>) -> Result<Vec<Embedding>, Fault> {
    given.all("vectors")?.into_iter().map(|Formed(given)| given.embedding()).collect()
}

/// The numbers of a vector: of one that has too many, one more than it may have, for which it is refused.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Values(Few<f64, { MAX_DIMENSION + 1 }>);

impl Values {
    /// Converts them to f32. One that is too large becomes infinite, which is refused later.
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest number there is")]
    pub(crate) fn numbers(&self) -> Vec<f32> {
        self.0.first().iter().map(|value| *value as f32).collect()
    }
}

/// Parameters of `embed`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Embed {
    pub(crate) address: String,
    vectors: Few<Formed<Given>, MAX_VECTORS>,
}

impl Embed {
    pub(crate) fn vectors(self) -> Result<Vec<Embedding>, Fault> {
        embeddings(self.vectors)
    }
}

/// Parameters of `wait_for_vectors`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    timeout_ms: Option<u64>,
}

impl Wait {
    /// Returns the longest time to wait, ten seconds by default.
    pub(crate) fn patience(&self) -> Result<Duration, Fault> {
        match self.timeout_ms.unwrap_or(10_000) {
            ms if ms <= MAX_WAIT_MS => Ok(Duration::from_millis(ms)),
            _ => Err(Fault::params(format!("timeout_ms: {MAX_WAIT_MS} at most"))),
        }
    }
}
