//! The grammar as data, shown by DESCRIBE grammar (CAL 8.6).
//!
//! Tests of the parser read this text, parse every sentence it allows, and derive from it every statement
//! the parser accepts, so grammar and parser cannot differ.

/// The productions, the notation they are in, and what their terminals are, which stands behind `--`.
pub(crate) const GRAMMAR: &str = include_str!("grammar.peg");
