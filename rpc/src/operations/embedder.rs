//! The embedder of a store to be opened: a program, or a model in this process.

use std::sync::Arc;
use std::time::Duration;

use grainstore::embed::{CommandEmbedder, CommandOptions, Embedder, Metric};
use serde::Deserialize;

use super::vectors::parse_metric;
use crate::arguments::MAX_NAMES;
use crate::error::{Code, Error, Result};
use crate::json::{Few, Form};

/// The member `embedder` of `open`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Maker {
    command: Option<Few<String, MAX_NAMES>>,
    directory: Option<String>,
    model: Option<String>,
    dimension: Option<usize>,
    metric: Option<String>,
    deadline_ms: Option<u64>,
}

impl Form for Maker {
    const FORM: &'static str = "an object {command: [program, argument ...], model, dimension, metric?, deadline_ms?} \
         or {directory, model?, metric?}";
}

impl Maker {
    /// Returns the embedder and the metric of its vectors. A program is not started yet; a model is loaded.
    pub(crate) fn embedder(self) -> Result<(Arc<dyn Embedder>, Metric)> {
        let metric = parse_metric(self.metric.as_deref())?;
        let embedder = match (self.command, self.directory) {
            (Some(command), None) => {
                let missing =
                    || Error::arguments("an embedder by command has a model and a dimension");
                let model = self.model.ok_or_else(missing)?;
                let dimension = self.dimension.ok_or_else(missing)?;
                command_embedder(command.all("command")?, &model, dimension, self.deadline_ms)?
            }
            (None, Some(directory)) => {
                if self.dimension.is_some() || self.deadline_ms.is_some() {
                    let message = "an embedder by directory has no dimension and no deadline_ms";
                    return Err(Error::arguments(message));
                }
                local_embedder(directory, self.model)?
            }
            _ => return Err(Error::arguments("an embedder has either a command or a directory")),
        };
        Ok((embedder, metric))
    }
}

fn command_embedder(
    command: Vec<String>,
    model: &str,
    dimension: usize,
    deadline_ms: Option<u64>,
) -> Result<Arc<dyn Embedder>> {
    if command.is_empty() {
        return Err(params_error("the embedder's command names no program"));
    }
    if dimension == 0 {
        return Err(params_error(
            "the embedder's dimension is 0: a vector has one number at least",
        ));
    }
    let command = command.into_iter().map(Into::into).collect();
    let mut options = CommandOptions::new(command, model, dimension);
    if let Some(deadline) = deadline_ms {
        options.deadline = Duration::from_millis(deadline);
    }
    Ok(Arc::new(CommandEmbedder::new(options)?))
}

/// An error in the parameters of an embedder.
fn params_error(message: &str) -> Error {
    let hint = "write it as {\"command\": [\"python3\", \"embed.py\"], \"model\": \"all-MiniLM-L6-v2\", \
                \"dimension\": 384}: the program, the name of its model, and how many numbers its vectors have";
    Error::new(Code::Schema, message, hint)
}

#[cfg(feature = "local-embedder")]
fn local_embedder(directory: String, model: Option<String>) -> Result<Arc<dyn Embedder>> {
    use grainstore::embed::{LocalEmbedder, LocalOptions};
    let options = LocalOptions { model, ..LocalOptions::new(directory) };
    Ok(Arc::new(LocalEmbedder::new(options)?))
}

#[cfg(not(feature = "local-embedder"))]
fn local_embedder(_: String, _: Option<String>) -> Result<Arc<dyn Embedder>> {
    let message = "an embedder by directory: this program was built without it";
    let hint = "build it with --features local-embedder, or name a program as command";
    Err(Error::new(Code::Schema, message, hint))
}
