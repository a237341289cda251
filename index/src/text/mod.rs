//! Full text: the terms of a grain, and the grains that match a query best.
//!
//! Modules, in the order data flows:
//! - `language`, `settings`: how the text of a namespace is analysed
//! - `char_class`, `word_break`, `normalise`, `analysis`: text into terms
//! - `fields`, `reader`, `document`, `indexed_document`: the terms of one grain, alone and with those of its
//!   neighbours in a conversation
//! - `lexer`, `stop_words`, `suffixes`, `syntax`, `query`: the text of a query into clauses
//! - `edit_distance`: fuzzy matching of a term
//! - `blind`: terms as blind tokens
//! - `matched`: whether one grain matches a query, and in which fields
//! - `score`: BM25
//! - `segment_file`, `directory`, `forward`, `segment`: immutable segments
//! - `deleted`: the documents deleted from a segment since it was written
//! - `tail`: documents that are in no segment yet
//! - `policy`, `sources`, `merge`, `fold`: segments and tail into a new segment
//! - `manifest`: the list of segments, as bytes
//! - `inverted_index`: segments and tail as one index
//! - `cancel`: cancellation of searches
//! - `part`, `lookup`, `expand`, `plan`: a query in terms of segments and tail
//! - `exact`, `scan`, `few_candidates`, `prune`, `top_hits`, `prepared`: the search itself

mod language;
mod settings;

mod char_class;
mod normalise;
mod word_break;

mod analysis;

mod document;
mod fields;
mod indexed_document;
mod reader;

mod lexer;
mod stop_words;
mod suffixes;

mod query;
mod syntax;

mod edit_distance;

mod blind;
mod clause;

mod matched;

mod score;

mod directory;
mod forward;
mod page_cache;
mod page_tag;
mod pages;
mod segment;
mod segment_file;
mod segment_store;

mod deleted;

mod tail;

mod fold;
mod merge;
mod output_files;
mod policy;
mod sources;

mod manifest;

mod inverted_index;

mod cancel;

mod expand;
mod lookup;
mod part;
mod plan;

mod exact;
mod few_candidates;
mod prepared;
mod prune;
mod scan;
mod top_hits;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod test_disk;
#[cfg(test)]
mod test_grains;
#[cfg(test)]
mod test_kit;

pub use clause::{Clause, Occur, Phrase, TermMatch};
pub use document::{Document, DocumentTerm};
pub use edit_distance::MAX_EDITS;
pub use expand::{MAX_EXPANSIONS, MAX_STRICT_EXPANSIONS};
pub use fields::embedding_text;
pub use fold::{FileChanges, FoldJob, FoldOutput, MAX_TAIL_DOCUMENTS, MAX_TAIL_SIZE};
pub use indexed_document::{IndexedDocument, MAX_TERM_WEIGHT};
pub use inverted_index::{InvertedIndex, TextStats};
pub use language::Language;
pub use lookup::{RARE, SeenFilter};
pub use manifest::{MAX_LOG_POSITION_BYTES, Manifest};
pub use matched::field_matches;
pub use normalise::MAX_TERM_BYTES;
pub use page_cache::PageCache;
pub use prepared::PreparedSearch;
pub use query::FullTextQuery;
pub use reader::{DocumentReader, MAX_OCCURRENCES};
pub use segment_store::{SegmentFile, SegmentFiles, SegmentOutput, SegmentStore};
pub use settings::{ANALYSIS_VERSION, Settings};
pub use syntax::{MAX_TERMS, MAX_WORDS};
pub use top_hits::{Hit, HitFilter, SearchAfter};
