//! Texts of rows: a plain string, or a list of parts that repeat, so that a megabyte stays a line.

use data_encoding::HEXLOWER;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A text as rows write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Plain(String),
    Parts(Vec<Part>),
}

/// A piece of a long text.
#[derive(Deserialize)]
struct Part {
    text: String,
    #[serde(default = "once")]
    times: usize,
}

/// The text of a row, written out.
pub(crate) fn text<'de, D: Deserializer<'de>>(source: D) -> Result<String, D::Error> {
    Ok(match Written::deserialize(source)? {
        Written::Plain(text) => text,
        Written::Parts(parts) => parts.iter().map(|part| part.text.repeat(part.times)).collect(),
    })
}

/// The bytes of a row, written as lowercase hex.
pub(crate) fn blob<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<u8>, D::Error> {
    let hex = text(source)?;
    HEXLOWER.decode(hex.as_bytes()).map_err(D::Error::custom)
}

/// The bytes of several parts of a row, each written as lowercase hex.
pub(crate) fn blobs<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let texts = Vec::<String>::deserialize(source)?;
    let decoded = texts.iter().map(|hex| HEXLOWER.decode(hex.as_bytes()));
    decoded.collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn once() -> usize {
    1
}
