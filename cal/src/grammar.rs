//! The grammar as data: what DESCRIBE grammar shows, production by production.
//!
//! It is the parser's own: its tests read this text, say every sentence it allows to the
//! parser, and derive from it whatever the parser takes. Neither can have what the other has not.

/// The productions, the notation they are in, and what their terminals are, which stands behind `--`.
pub(crate) const GRAMMAR: &str = include_str!("grammar.peg");
