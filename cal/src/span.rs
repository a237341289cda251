//! Byte ranges in a query, and syntax nodes with their range.

use std::fmt;

/// A byte range of the source, end exclusive. Queries are at most 8,192 bytes, so `u32` suffices.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns the range `start..end`; offsets past `u32` saturate (no accepted query has them).
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let cut = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: cut(start), end: cut(end) }
    }

    /// Returns the first byte.
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the byte after the last.
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    /// Returns `true` if all of `other` lies in this range.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns the range from the start of this one to the end of `other`.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A syntax node with its span. Equality compares the node only, so that a query equals the result of
/// printing and parsing it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spanned<T> {
    pub(crate) node: T,
    pub(crate) span: Span,
}

impl<T> Spanned<T> {
    /// Returns `node` at `span`.
    pub(crate) fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}
