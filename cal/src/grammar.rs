//! The grammar as data, shown by DESCRIBE grammar (CAL 8.6).
//!
//! Tests of the parser read this text, parse every sentence it allows, and derive from it every statement
//! the parser accepts, so grammar and parser cannot differ.

/// The productions, in PEG notation: `?` optional, `*` zero or more, `+` one or more, `,+` a
/// comma-separated list. A word in capitals, or one that names no production, stands for itself in any
/// case. ID, STR, NUM, INT and HASH are tokens, WORD is any word, `"$"ID` is a parameter and may replace
/// STR, NUM, INT and HASH, `field` is a field of DESCRIBE fields, `attribute` an SML attribute of a grain.
/// The clauses of RECALL and ASSEMBLE may come in any order.
pub(crate) const GRAMMAR: &str = include_str!("grammar.peg");
