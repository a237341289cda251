//! Full text: what words a grain has, and which grains answer a question best.
//!
//! In the order data flows:
//! - `document`: the words of one grain
//! - `question`: what is asked

mod document;

mod question;

pub use document::{Document, Word};
pub use question::{Ask, Clause, Occur, Question};
