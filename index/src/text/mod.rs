//! Full text: what words a grain has, and which grains answer a question best.
//!
//! In the order data flows:
//! - `language`, `settings`: how the text of a namespace is indexed
//! - `chars`, `segments`, `folding`, `analysis`: text into terms
//! - `fields`, `reader`, `document`: the words of one grain
//! - `items`, `stop_words`, `syntax`, `question`: what is asked
//! - `matched`: which fields of a grain answer

mod language;
mod settings;

mod chars;
mod folding;
mod segments;

mod analysis;

mod document;
mod fields;
mod reader;

mod items;
mod stop_words;

mod question;
mod syntax;

mod matched;

#[cfg(test)]
mod test_grains;

pub use document::{Document, Word};
pub use folding::MAX_TERM_BYTES;
pub use language::Language;
pub use matched::matched_fields;
pub use question::{Ask, Clause, Occur, Question};
pub use reader::{MAX_OCCURRENCES, Reader};
pub use settings::{ANALYSIS_VERSION, Settings};
pub use syntax::{MAX_TERMS, MAX_WORDS};
