//! Full text: what words a grain has, and which grains answer a question best.
//!
//! In the order data flows:
//! - `document`, `joined`: the words of one grain, and with what its neighbours lend it
//! - `question`: what is asked
//! - `score`: what a word is worth
//! - `packed`, `directory`, `forward`, `segment`: documents that do not change any more
//! - `gone`: which of them are removed since
//! - `tail`: documents in no segment yet
//! - `policy`, `sources`, `merge`, `fold`: segments and tail into a new segment
//! - `manifest`: what all of it is made of
//! - `part`, `expand`, `plan`: a question in the terms of segments and tail
//! - `exact`, `scan`, `few`, `prune`, `best`: its answers
//! - `texts`: all of it as one
//! - `context`: turns of a conversation

mod document;
mod joined;

mod question;

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

mod expand;
mod part;
mod plan;

mod best;
mod exact;
mod few;
mod prune;
mod scan;

mod texts;

mod context;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod test_kit;

pub use best::{After, Hit, Judge};
pub use context::{Turns, rejoin};
pub use document::{Document, Word};
pub use expand::{MOST_EDITS, MOST_TERMS};
pub use fold::{Fold, Folded, MAX_TAIL, Saving};
pub use joined::{Joined, MOST_WEIGHT};
pub use manifest::{MOST_STAMP, Manifest};
pub use question::{Ask, Clause, Occur, Question};
pub use texts::{TextStats, Texts};
