//! A function of Python that makes vectors of texts. The engine calls it on threads of its own; how long it may take is
//! for `grainstore._embedder` to say, which it is wrapped in.

use grainstore::embed::{Embedder, Vector};
use grainstore::{Error, Result};
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

/// An embedder in Python.
pub(crate) struct PythonEmbedder {
    pub(crate) embed: Py<PyAny>,
    pub(crate) model: String,
    pub(crate) dimension: usize,
}

impl Embedder for PythonEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        let made = Python::try_attach(|py| {
            let answer = self.embed.bind(py).call1((texts.to_vec(),));
            answer.and_then(|answer| answer.extract::<Vec<Vec<f32>>>()).map_err(|error| {
                let message = format!("the embedder raised {}", error.value(py));
                match error.is_instance_of::<PyTimeoutError>(py) {
                    true => Error::timeout(error.value(py).to_string()),
                    false => Error::embedder(message),
                }
            })
        });
        let Some(made) = made else {
            return Err(Error::embedder("the interpreter that embeds has ended"));
        };
        made?.into_iter().map(|values| Ok(Vector::new(values)?)).collect()
    }
}
