//! STREAM: the event classes and chunk size of a streamed ASSEMBLE (CAL 11.2).

use super::CountArg;
use crate::span::Spanned;

/// The options of STREAM; empty if it has none.
pub(crate) type StreamClause<'a> = Vec<Spanned<StreamOption<'a>>>;

/// One option of STREAM.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StreamOption<'a> {
    Progress,
    Budget,
    Chunks,
    All,
    /// `chunk_size = n`, in tokens.
    ChunkSize(CountArg<'a>),
}

impl StreamOption<'_> {
    /// The names of all options.
    pub(crate) const NAMES: [&'static str; 5] =
        ["progress", "budget", "chunks", "all", "chunk_size"];

    /// Returns the name as written.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Budget => "budget",
            Self::Chunks => "chunks",
            Self::All => "all",
            Self::ChunkSize(_) => "chunk_size",
        }
    }
}
