//! Bounded input of a command, from a file or stdin.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::PathBuf;
use std::str::FromStr;

use grainstore::format::{DeviceProfile, Encoding, Envelope};
use grainstore::{ContentAddress, Grain};
use grainstore_rpc::FORMAT_VERSION;

use crate::error::{Code, Error, Result};
use crate::output::Output;

/// Most bytes of a blob (OMS 18.1).
pub(crate) const MAX_BLOB_BYTES: usize = DeviceProfile::EXTENDED.max_blob_bytes;
/// Most bytes of a signed grain.
pub(crate) const MAX_COSE_BYTES: usize = Envelope::MAX_BYTES;
/// Most bytes of the JSON text of one grain: eight times those of a blob.
pub(crate) const MAX_JSON_BYTES: usize = 8 * MAX_BLOB_BYTES;

/// The input named on the command line: a path, or `-`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Source {
    #[default]
    Stdin,
    File(PathBuf),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::Stdin } else { Self::File(PathBuf::from(text)) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Source {
    /// Opens the input; notes it if a terminal is read.
    pub(crate) fn open(&self, output: &mut Output<'_>) -> Result<Box<dyn BufRead>> {
        match self {
            Self::Stdin => {
                let stdin = io::stdin();
                if stdin.is_terminal() {
                    output.note("reading from the terminal; end with Ctrl-D");
                }
                Ok(Box::new(stdin.lock()))
            }
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(BufReader::with_capacity(64 << 10, file))),
                Err(error) => Err(self.read_error(&error)),
            },
        }
    }

    /// Reads all of it, up to `limit` bytes.
    pub(crate) fn read(&self, limit: usize, output: &mut Output<'_>) -> Result<Vec<u8>> {
        let room = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        let read = self.open(output)?.take(room).read_to_end(&mut bytes);
        read.map_err(|error| self.read_error(&error))?;
        if bytes.len() > limit {
            return Err(self.too_large(limit));
        }
        Ok(bytes)
    }

    /// Reads all of it as text, up to `limit` bytes.
    pub(crate) fn read_text(&self, limit: usize, output: &mut Output<'_>) -> Result<String> {
        to_text(self.read(limit, output)?).map_err(|error| error.in_context(&self.to_string()))
    }

    /// Returns the argument if it is an address or the start of one, and no such file exists.
    pub(crate) fn address(&self) -> Option<&str> {
        let Self::File(path) = self else { return None };
        let digits = path.to_str()?;
        let fits = (8..=2 * ContentAddress::LEN).contains(&digits.len())
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (fits && !path.exists()).then_some(digits)
    }

    /// Returns the error for input that could not be read.
    pub(crate) fn read_error(&self, error: &io::Error) -> Error {
        Error::new(Code::Io, format!("cannot read {self}: {error}"), "check the path")
    }

    fn too_large(&self, limit: usize) -> Error {
        let message = format!("{self} holds more than {limit} bytes");
        Error::new(Code::TooLarge, message, "give one grain of at most 1 MiB")
    }
}

/// Returns the blob of a grain that is given as a blob, or as JSON to be encoded. No JSON begins with the
/// version byte of a blob.
pub(crate) fn to_blob(given: Vec<u8>) -> Result<Vec<u8>> {
    if given.first() == Some(&FORMAT_VERSION) {
        return Ok(given);
    }
    Ok(Grain::from_json(&to_text(given)?)?.encode(Encoding::default())?.into_bytes())
}

/// Converts bytes to text, with a hint for binary forms of a grain, which no JSON begins like.
pub(crate) fn to_text(bytes: Vec<u8>) -> Result<String> {
    let binary = match bytes.as_slice() {
        [0xd2 | 0x84, ..] => Some(("a COSE_Sign1", "looks like a COSE_Sign1: --format cose")),
        [FORMAT_VERSION, ..] => Some(("a raw blob", "looks like a raw blob: --format mg")),
        [b'M', b'G', FORMAT_VERSION, ..] => Some((
            "a portable .mg file",
            "looks like a file of `grain export`: `grain import` takes it",
        )),
        _ => None,
    };
    if let Some((what, hint)) = binary {
        return Err(Error::new(Code::Corrupt, format!("no JSON: it begins like {what}"), hint));
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::new(Code::Corrupt, "the text is not UTF-8", "JSON is UTF-8"))
}
