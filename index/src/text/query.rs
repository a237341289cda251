//! Queries to the full text. Knows nothing of how they are executed.

use crate::error::Result;

use super::clause::{Clause, Occur};
use super::language::Language;
use super::syntax;

/// An analysed query.
///
/// ```
/// use grainstore_index::text::{FullTextQuery, Language, Occur, TermMatch};
///
/// let query = FullTextQuery::parse("+travel -work plan* budgte~", Language::English)?;
/// let [travel, work, plans, budget] = query.clauses() else { return Err("four clauses".into()) };
/// assert_eq!((travel.occur, work.occur), (Occur::Must, Occur::MustNot));
/// assert!(matches!(&plans.ask, TermMatch::Prefix(start) if &**start == "plan"));
/// assert!(matches!(&budget.ask, TermMatch::Fuzzy(_, 1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FullTextQuery {
    /// In the order of the query.
    clauses: Vec<Clause>,
}

impl FullTextQuery {
    /// Builds a query of clauses, in order.
    pub(crate) fn from_clauses(clauses: Vec<Clause>) -> Self {
        Self { clauses }
    }

    /// Joins the clauses of several queries.
    #[must_use]
    pub fn union<'q>(questions: impl IntoIterator<Item = &'q Self>) -> Self {
        questions.into_iter().flat_map(|one| one.clauses.iter().cloned()).collect()
    }

    /// The clauses, in the order of the query.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Parses the query syntax:
    ///
    /// - `word`: adds to the score of grains that have it;
    /// - `"some words"`: adjacent, in this order;
    /// - `begin*`: terms with this prefix. Terms are stored without suffixes, and a suffix that was typed is
    ///   removed: `developers*` finds `develops`. A suffix typed in part is completed where that gives a
    ///   term: `activit*` finds `activity`, stored as `activ`;
    /// - `word~`, `word~2`: terms one edit away, two edits away. Short words allow fewer: none below three
    ///   letters, one below five;
    /// - `+word`, `-word`, also before a phrase: required, excluded. A hyphen inside a word is not an
    ///   operator.
    ///
    /// Any text is a valid query: signs without a meaning here are ignored, and so is a quote without its
    /// closing quote. Stop words of the language are dropped where they stand alone, outside a phrase and
    /// without an operator, unless no other clause remains. Of the clauses that add to the score, the first
    /// 64 distinct terms count.
    ///
    /// # Errors
    /// `ERR_LIMIT` for more than [`MAX_WORDS`](super::MAX_WORDS) words, for a phrase of more than
    /// [`MAX_TERMS`](super::MAX_TERMS) terms, and for more terms than that under `+` and `-`: cutting any of
    /// these would change the result.
    pub fn parse(text: &str, language: Language) -> Result<Self> {
        syntax::parse(text, language).map(Self::from_clauses)
    }

    /// Builds a query of plain words, e.g. a sentence of a user or an agent; operators are ignored. Stop
    /// words are dropped, unless no other word remains.
    ///
    /// # Errors
    /// `ERR_LIMIT` for more than [`MAX_WORDS`](super::MAX_WORDS) words.
    pub fn words(text: &str, language: Language) -> Result<Self> {
        syntax::words(text, language).map(Self::from_clauses)
    }

    /// Returns `true` if it matches no grain: it is empty, or only excludes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let finds = |clause: &Clause| matches!(clause.occur, Occur::Should | Occur::Must);
        !self.clauses.iter().any(finds)
    }
}

impl FromIterator<Clause> for FullTextQuery {
    fn from_iter<I: IntoIterator<Item = Clause>>(clauses: I) -> Self {
        Self::from_clauses(clauses.into_iter().collect())
    }
}
