//! The vectors an embedding store has of a grain, as recorded in a manifest (OMS 7.2). The blob is
//! immutable and cannot record them; the vectors themselves are not exported.

use crate::error::{Result, corrupt};
use crate::value::{Map, Value};
use crate::wire::{Token, TokenReader};

/// Maximum number of spaces (models and metrics) listed for one grain.
const MAX_SPACES: usize = 64;
/// Maximum number of vectors listed for one grain.
const MAX_CHUNKS: usize = 1_024;
/// The longest model name, in bytes.
const MAX_MODEL_BYTES: usize = 256;
/// The longest metric name, in bytes.
const MAX_METRIC_BYTES: usize = 32;
/// Maximum number of dimensions of a vector.
const MAX_DIMENSIONS: u32 = 4_096;

/// The vectors that a grain has in one space, as its [`ManifestEntry`](super::ManifestEntry) lists them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EmbeddingSummary {
    /// The name of the model.
    pub model: String,
    /// The dimensions of each vector.
    pub dimensions: u32,
    /// The metric they are compared with: `cosine`, `dot` or `l2`.
    pub metric: String,
    /// The parts of the grain that have a vector, ascending; `[0]` alone if one vector stands for the
    /// whole grain.
    pub chunks: Vec<u32>,
}

impl EmbeddingSummary {
    /// Returns a map under the short keys of OMS 7.2, with a list under `ci`.
    pub(super) fn to_value(&self) -> Value {
        let chunks: Vec<Value> =
            self.chunks.iter().map(|chunk| Value::from(i64::from(*chunk))).collect();
        let entries = [
            ("ci", Value::Array(chunks)),
            ("di", self.metric.as_str().into()),
            ("dm", i64::from(self.dimensions).into()),
            ("mo", self.model.as_str().into()),
        ];
        let entries = entries.map(|(key, value)| (key.to_owned(), value));
        Value::Map(Map::from(entries))
    }

    /// Reads a list of them.
    ///
    /// # Errors
    /// `ERR_CORRUPT` for anything else, and beyond the limits above.
    pub(super) fn read_list(reader: &mut TokenReader<'_>) -> Result<Vec<Self>> {
        let Token::Array(count) = reader.token()? else { return Err(corrupt("not a list")) };
        if count > MAX_SPACES {
            return Err(corrupt("vectors of too many models"));
        }
        let mut found: Vec<Self> = Vec::new();
        let mut chunks = 0;
        for _ in 0..count {
            let one = Self::read_one(reader)?;
            chunks += one.chunks.len();
            if chunks > MAX_CHUNKS {
                return Err(corrupt("more vectors than a grain can have"));
            }
            found.push(one);
        }
        Ok(found)
    }

    fn read_one(reader: &mut TokenReader<'_>) -> Result<Self> {
        let Token::Map(keys) = reader.token()? else { return Err(corrupt("not a map")) };
        let (mut model, mut dimensions, mut metric, mut chunks) = (None, None, None, None);
        for _ in 0..keys {
            match reader.key()? {
                "mo" => model = Some(read_text(reader, MAX_MODEL_BYTES)?),
                "di" => metric = Some(read_text(reader, MAX_METRIC_BYTES)?),
                "dm" => dimensions = Some(read_u32(reader)?),
                "ci" => chunks = Some(read_ascending(reader)?),
                _ => reader.skip()?,
            }
        }
        let dimensions = dimensions.filter(|count| (1..=MAX_DIMENSIONS).contains(count));
        match (model, dimensions, metric, chunks) {
            (Some(model), Some(dimensions), Some(metric), Some(chunks)) => {
                Ok(Self { model, dimensions, metric, chunks })
            }
            _ => Err(corrupt("a model, its dimensions, its metric and the parts have to be there")),
        }
    }
}

fn read_text(reader: &mut TokenReader<'_>, most: usize) -> Result<String> {
    match reader.token()? {
        Token::Str(text) if !text.is_empty() && text.len() <= most => Ok(text.to_owned()),
        _ => Err(corrupt("no name")),
    }
}

fn read_u32(reader: &mut TokenReader<'_>) -> Result<u32> {
    match reader.token()? {
        Token::Int(number) => number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| corrupt("a number out of its range")),
        _ => Err(corrupt("no whole number")),
    }
}

fn read_ascending(reader: &mut TokenReader<'_>) -> Result<Vec<u32>> {
    let Token::Array(count) = reader.token()? else { return Err(corrupt("not a list")) };
    if count == 0 || count > MAX_CHUNKS {
        return Err(corrupt("no parts, or more than a grain can have"));
    }
    let mut chunks: Vec<u32> = Vec::new();
    for _ in 0..count {
        let chunk = read_u32(reader)?;
        if chunks.last().is_some_and(|last| *last >= chunk) {
            return Err(corrupt("parts are not ascending"));
        }
        chunks.push(chunk);
    }
    Ok(chunks)
}
