//! STREAM: which events of an ASSEMBLE are sent, and how much text in each.

use super::CountArg;
use crate::span::Spanned;

/// What STREAM lists; nothing where it stands bare.
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
    /// Every option by the name it has.
    pub(crate) const NAMES: [&'static str; 5] =
        ["progress", "budget", "chunks", "all", "chunk_size"];

    /// The name as written.
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
