//! The grammar as data: what DESCRIBE grammar shows, production by production.
//!
//! It is the parser's own: its tests read this text, say every sentence it allows to the
//! parser, and derive from it whatever the parser takes. Neither can have what the other has not.

/// The productions, in the notation of a PEG: `?` optional, `*` repeated, `+` repeated and not left out,
/// `,+` a comma list. A word in capitals or of no production stands for itself in any case. ID, STR, NUM,
/// INT and HASH are tokens, WORD is any word at all, `"$"ID` is a parameter and stands for STR, NUM, INT and HASH too, `field` is a
/// field of DESCRIBE fields, `attribute` what SML shows of a grain. The clauses of RECALL and ASSEMBLE may come in any order.
pub(crate) const GRAMMAR: &str = include_str!("grammar.peg");
