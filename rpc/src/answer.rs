//! Results as JSON text of bounded size.

use std::io::{self, Write};

use grainstore::Session;
use grainstore::journal::CommitPosition;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// Most bytes of a result: 8 MiB less space for the envelope and the longest id.
const MAX_RESULT_BYTES: usize = (8 << 20) - 2048;

/// Bytes of a result reserved for other members than the list.
const RESERVED_BYTES: usize = 1024;

/// A serialised result.
#[derive(Debug)]
pub(crate) struct Answer {
    json: Vec<u8>,
    /// Where the copy was in its journal, if the store has one.
    position: Option<CommitPosition>,
}

impl Answer {
    /// Serialises a result.
    ///
    /// # Errors
    /// `ERR_LIMIT` past 8 MiB.
    pub(crate) fn of(value: &impl Serialize) -> Result<Self> {
        let mut bytes = Bounded::new(MAX_RESULT_BYTES);
        // Serialising these types can only fail because of the limit.
        serde_json::to_writer(&mut bytes, value).map_err(|_| Error::answer_too_large())?;
        Ok(Self { json: bytes.into_bytes(), position: None })
    }

    /// The result that another process has answered.
    pub(crate) fn of_json(json: &RawValue, position: Option<CommitPosition>) -> Self {
        Self { json: json.get().as_bytes().to_vec(), position }
    }

    /// Adds the place that the store is at by now, which shows at least what this answer does.
    pub(crate) fn at(self, session: &Session) -> Self {
        // What was done is told, whether its place can be read or not.
        Self { position: session.store().position().ok().flatten(), ..self }
    }

    /// Where the copy was in its journal, or after it.
    pub(crate) fn position(&self) -> Option<CommitPosition> {
        self.position
    }

    /// The JSON text.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }
}

/// A list that is serialised item by item, so that it is refused before it fills the memory.
#[derive(Debug, Default)]
pub(crate) struct List {
    items: Vec<Box<RawValue>>,
    bytes: usize,
}

impl List {
    /// Adds an item.
    ///
    /// # Errors
    /// `ERR_LIMIT` past 8 MiB in all.
    pub(crate) fn push(&mut self, item: &impl Serialize) -> Result<()> {
        if self.try_push(item)? { Ok(()) } else { Err(Error::answer_too_large()) }
    }

    /// Adds an item if it fits. Returns `false` if it does not.
    ///
    /// # Errors
    /// `ERR_LIMIT` for an item that cannot be serialised.
    pub(crate) fn try_push(&mut self, item: &impl Serialize) -> Result<bool> {
        let item = serde_json::value::to_raw_value(item).map_err(|_| Error::answer_too_large())?;
        // Including the comma.
        let bytes = self.bytes.saturating_add(item.get().len()).saturating_add(1);
        if bytes > MAX_RESULT_BYTES - RESERVED_BYTES {
            return Ok(false);
        }
        self.bytes = bytes;
        self.items.push(item);
        Ok(true)
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

impl Serialize for List {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

/// A writer that fails beyond a limit.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Bounded {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
