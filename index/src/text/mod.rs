//! Full text: what words a grain has, and which grains answer a question best.
//!
//! In the order data flows:
//! - `language`, `settings`: how the text of a namespace is indexed
//! - `chars`, `segments`, `folding`, `analysis`: text into terms
//! - `fields`, `reader`, `document`, `joined`: the words of one grain, and with what its neighbours
//!   lend it
//! - `items`, `stop_words`, `endings`, `syntax`, `question`: what is asked
//! - `slips`: how far a misspelt word is from a term
//! - `blind`: words as tokens
//! - `matched`: whether one grain answers, and in which fields
//! - `score`: what a word is worth
//! - `packed`, `directory`, `forward`, `segment`: documents that do not change any more
//! - `gone`: which of them are removed since
//! - `tail`: documents in no segment yet
//! - `policy`, `sources`, `merge`, `fold`: segments and tail into a new segment
//! - `manifest`: what all of it is made of
//! - `texts`: all of it as one
//! - `watch`: when to give up
//! - `part`, `expand`, `plan`: a question in the terms of segments and tail
//! - `exact`, `scan`, `few`, `prune`, `best`, `asked`: its answers

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

pub use asked::Asked;
pub use best::{After, Hit, Judge};
pub use document::{Document, Word};
pub use expand::{MOST_STRICT_TERMS, MOST_TERMS};
pub use fields::text_of;
pub use fold::{Fold, Folded, MAX_TAIL, MAX_TAIL_SIZE, Saving};
pub use folding::MAX_TERM_BYTES;
pub use joined::{Joined, MOST_WEIGHT};
pub use language::Language;
pub use manifest::{MOST_STAMP, Manifest};
pub use matched::answers_in;
pub use question::{Ask, Clause, Occur, Question};
pub use reader::{MAX_OCCURRENCES, Reader};
pub use settings::{ANALYSIS_VERSION, Settings};
pub use slips::MOST_EDITS;
pub use syntax::{MAX_TERMS, MAX_WORDS};
pub use texts::{TextStats, Texts};
