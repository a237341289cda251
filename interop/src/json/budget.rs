//! How much of a JSON value is held at most: text that is packed densely takes many times its bytes once it is read.
//!
//! Knows the costs of values, not what they mean.

use std::cell::Cell;
use std::io::{self, Read};

/// Most bytes of one string, name or number of a document that is read in parts.
pub(crate) const MAX_TOKEN_BYTES: u64 = 16 << 20;

/// Bytes that a map takes beside its members: a node of the tree it is.
const MAP_BYTES: u64 = 640;
/// Bytes of a value, of a list twice since lists grow by doubling.
const VALUE_BYTES: u64 = 64;

/// What is left to be held, and how far a source is read. A value beyond it is passed over to its end.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u64>,
    is_over: Cell<bool>,
    /// Bytes that were read of the source.
    read: Cell<u64>,
    /// The same when the token began that is read now; the end of all bytes while a value is passed over.
    begun: Cell<u64>,
    has_long_token: Cell<bool>,
}

impl Budget {
    pub(super) fn of(bytes: u64) -> Self {
        Self {
            left: Cell::new(bytes),
            is_over: Cell::new(false),
            read: Cell::new(0),
            begun: Cell::new(0),
            has_long_token: Cell::new(false),
        }
    }

    /// For a value whose bytes are held anyway.
    pub(crate) fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// Begins another value, which may take this much.
    pub(super) fn refill(&self, bytes: u64) {
        self.left.set(bytes);
        self.is_over.set(false);
    }

    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Returns `true` if the value takes more than it may.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    pub(super) fn spend_value(&self) {
        self.spend(VALUE_BYTES);
    }

    pub(super) fn spend_text(&self, text: &str) {
        self.spend(text.len() as u64);
    }

    pub(super) fn spend_map(&self) {
        self.spend(MAP_BYTES);
    }

    fn spend(&self, bytes: u64) {
        match self.left.get().checked_sub(bytes) {
            Some(left) => self.left.set(left),
            None => self.is_over.set(true),
        }
    }

    /// Notes that a value begins, and how far the source is read.
    pub(crate) fn begin_token(&self) {
        self.begun.set(if self.is_over() { u64::MAX } else { self.read.get() });
    }

    /// Returns `true` if reading ended at a string, name or number of more than [`MAX_TOKEN_BYTES`].
    pub(crate) fn has_long_token(&self) -> bool {
        self.has_long_token.get()
    }
}

/// Counts what is read of a source, and ends at a token that is too long.
pub(crate) struct Metered<'b, R> {
    pub(crate) source: R,
    pub(crate) budget: &'b Budget,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Budget { read, begun, has_long_token, .. } = self.budget;
        if read.get().saturating_sub(begun.get()) > MAX_TOKEN_BYTES {
            has_long_token.set(true);
            return Err(io::Error::other("a text is too long"));
        }
        let count = self.source.read(into)?;
        read.set(read.get().saturating_add(count as u64));
        Ok(count)
    }
}
