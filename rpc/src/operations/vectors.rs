//! Vectors of grains, as arguments.

use grainstore::embed::{Embedding, MAX_DIMENSION, Metric};
use serde::Deserialize;

use crate::error::{Code, Error, Result};
use crate::json::{Few, Form, Formed};

/// Vectors of one grain.
const MAX_VECTORS: usize = 10_000;

/// The vectors of a grain.
pub(super) type Vectors = Few<Formed<Given>, MAX_VECTORS>;

/// Parses a metric, cosine by default.
pub(crate) fn parse_metric(name: Option<&str>) -> Result<Metric> {
    let name = name.unwrap_or("cosine");
    let refused = || {
        let message = format!("no metric {name:?}");
        Error::new(Code::Schema, message, "use cosine, dot or l2")
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
    fn embedding(self) -> Result<Embedding> {
        let metric = parse_metric(self.metric.as_deref())?;
        let embedding = Embedding::new(&self.model, metric, self.values.to_f32())?;
        Ok(embedding.of_chunk(self.chunk))
    }
}

/// Converts the vectors of one grain.
pub(crate) fn embeddings(given: Vectors) -> Result<Vec<Embedding>> {
    given.all("vectors")?.into_iter().map(|Formed(given)| given.embedding()).collect()
}

/// The numbers of a vector: of one that has too many, one more than it may have, for which it is refused.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Values(Few<f64, { MAX_DIMENSION + 1 }>);

impl Values {
    /// Converts them to f32. One that is too large becomes infinite, which is refused later.
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest number there is")]
    pub(crate) fn to_f32(&self) -> Vec<f32> {
        self.0.first().iter().map(|value| *value as f32).collect()
    }
}
