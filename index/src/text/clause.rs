//! The clauses of a query: what they match, and their effect on a hit.

use std::fmt;

/// A clause of a [`FullTextQuery`](super::FullTextQuery).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The effect of the clause on a hit.
    pub occur: Occur,
    /// The terms the clause matches.
    pub ask: TermMatch,
}

/// The effect of a clause of a [`FullTextQuery`](super::FullTextQuery) on a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occur {
    /// It adds to the score.
    Should,
    /// It adds to the score of a grain that matches otherwise.
    Boost,
    /// It adds to the score, and a grain without it does not match.
    Must,
    /// A grain with it does not match.
    MustNot,
}

/// Terms, each at a position relative to the first.
///
/// ```
/// use grainstore_index::text::{FullTextQuery, Language, TermMatch};
///
/// let query = FullTextQuery::parse("\"green tea\"", Language::English)?;
/// let [clause] = query.clauses() else { return Err("one clause".into()) };
/// assert_eq!(clause.ask, TermMatch::Phrase(vec![("green".into(), 0), ("tea".into(), 1)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Phrase = Vec<(Box<str>, u32)>;

/// The terms a clause of a [`FullTextQuery`](super::FullTextQuery) matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermMatch {
    /// A word, as its terms: one, or the pairs of an unspaced script.
    Word(Vec<Box<str>>),
    /// Terms at these positions relative to the first.
    Phrase(Phrase),
    /// An identifier: its term, or its parts as one of these phrases. In a phrase whose positions are all 0 they
    /// are the parts of one word, in any order. A part alone does not match.
    Identifier(Box<str>, Vec<Phrase>),
    /// Every term with this prefix.
    Prefix(Box<str>),
    /// Every term with this prefix, and these terms: the stems of words that begin so, but whose stems do
    /// not.
    Begin(Box<str>, Vec<Box<str>>),
    /// Every term within this number of edits.
    Fuzzy(Box<str>, u8),
}

/// Writes the clause in query syntax, with its analysed terms.
impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.occur {
            Occur::Should => "",
            Occur::Boost => "^",
            Occur::Must => "+",
            Occur::MustNot => "-",
        })?;
        match &self.ask {
            TermMatch::Word(terms) => f.write_str(&terms.join(" ")),
            TermMatch::Identifier(term, _) => f.write_str(term),
            TermMatch::Phrase(terms) => {
                let terms: Vec<&str> = terms.iter().map(|(term, _)| &**term).collect();
                write!(f, "\"{}\"", terms.join(" "))
            }
            TermMatch::Prefix(term) | TermMatch::Begin(term, _) => write!(f, "{term}*"),
            TermMatch::Fuzzy(term, 1) => write!(f, "{term}~"),
            TermMatch::Fuzzy(term, edits) => write!(f, "{term}~{edits}"),
        }
    }
}
