//! Places in a query: byte ranges, and syntax that remembers where it stood.

use std::fmt;

/// A byte range of the source, end exclusive. Queries are at most 8,192 bytes, so `u32` is ample.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range `start..end`; offsets past `u32` saturate (no accepted query has them).
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let cut = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: cut(start), end: cut(end) }
    }

    /// First byte.
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// Byte after the last.
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    /// Whether all of `other` lies in this.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// From the start of this to the end of `other`.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A piece of syntax with its place. Equality looks at the syntax alone, so that a query equals its
/// own printing parsed again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spanned<T> {
    pub(crate) node: T,
    pub(crate) span: Span,
}

impl<T> Spanned<T> {
    /// `node`, standing at `span`.
    pub(crate) fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}
