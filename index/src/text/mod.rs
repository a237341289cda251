//! Full text: the terms of a grain, and the grains that match a query best.
//!
//! Modules, in the order data flows:
//! - `language`, `settings`: how the text of a namespace is analysed
//! - `chars`, `segments`, `folding`, `analysis`: text into terms
//! - `fields`, `reader`, `document`, `joined`: the terms of one grain, alone and with those of its
//!   neighbours in a conversation
//! - `items`, `stop_words`, `endings`, `syntax`, `question`: the text of a query into clauses
//! - `slips`: fuzzy matching of a term
//! - `blind`: terms as blind tokens
//! - `matched`: whether one grain matches a query, and in which fields
//! - `score`: BM25
//! - `packed`, `directory`, `forward`, `segment`: immutable segments
//! - `gone`: the documents deleted from a segment since it was written
//! - `tail`: documents that are in no segment yet
//! - `policy`, `sources`, `merge`, `fold`: segments and tail into a new segment
//! - `manifest`: the list of segments, as bytes
//! - `texts`: segments and tail as one index
//! - `watch`: cancellation of searches
//! - `part`, `lookup`, `expand`, `plan`: a query in terms of segments and tail
//! - `exact`, `scan`, `few`, `prune`, `best`, `asked`: the search itself

mod language;
mod settings;

mod chars;
mod folding;
mod segments;

mod analysis;

mod document;
mod fields;
mod joined;
mod reader;

mod endings;
mod items;
mod stop_words;

mod question;
mod syntax;

mod slips;

mod blind;
mod clause;

mod matched;

mod score;

mod directory;
mod forward;
mod packed;
mod segment;

mod gone;

mod tail;

mod fold;
mod merge;
mod policy;
mod sources;

mod manifest;

mod texts;

mod watch;

mod expand;
mod lookup;
mod part;
mod plan;

mod asked;
mod best;
mod exact;
mod few;
mod prune;
mod scan;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod test_grains;
#[cfg(test)]
mod test_kit;

pub use asked::PreparedSearch;
pub use best::{Hit, HitFilter, SearchAfter};
pub use clause::{Clause, Occur, TermMatch};
pub use document::{Document, DocumentTerm};
pub use expand::{MAX_EXPANSIONS, MAX_STRICT_EXPANSIONS};
pub use fields::embedding_text;
pub use fold::{FileChanges, FoldJob, FoldOutput, MAX_TAIL_DOCUMENTS, MAX_TAIL_SIZE};
pub use folding::MAX_TERM_BYTES;
pub use joined::{IndexedDocument, MAX_TERM_WEIGHT};
pub use language::Language;
pub use lookup::{RARE, SeenFilter};
pub use manifest::{MAX_LOG_POSITION_BYTES, Manifest};
pub use matched::field_matches;
pub use question::FullTextQuery;
pub use reader::{DocumentReader, MAX_OCCURRENCES};
pub use settings::{ANALYSIS_VERSION, Settings};
pub use slips::MAX_EDITS;
pub use syntax::{MAX_TERMS, MAX_WORDS};
pub use texts::{InvertedIndex, TextStats};
