//! What is asked of the full text. Knows nothing of how it is answered.

use std::fmt;

use crate::error::Result;

use super::language::Language;
use super::syntax;

/// A question, analysed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// In the order they were asked.
    clauses: Vec<Clause>,
}

/// A part of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// What it does to an answer.
    pub occur: Occur,
    /// What is looked for.
    pub ask: Ask,
}

/// What a clause does to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occur {
    /// It adds to the score.
    Should,
    /// It adds to the score, and a grain without it is no answer.
    Must,
    /// A grain that has it is no answer.
    MustNot,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A word, as the terms it is kept under: one, or the whole and the parts of an identifier, or
    /// the pairs of an unspaced script.
    Word(Vec<Box<str>>),
    /// Terms at these distances from the first.
    Phrase(Vec<(Box<str>, u32)>),
    /// Every term that begins so.
    Prefix(Box<str>),
    /// The same, and these: words that begin so are kept under them, without their endings.
    Begin(Box<str>, Vec<Box<str>>),
    /// Every term this many edits away, at most.
    Fuzzy(Box<str>, u8),
}

/// As it would be asked for, in the terms that were made of it.
impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.occur {
            Occur::Should => "",
            Occur::Must => "+",
            Occur::MustNot => "-",
        })?;
        match &self.ask {
            Ask::Word(terms) => f.write_str(&terms.join(" ")),
            Ask::Phrase(terms) => {
                let terms: Vec<&str> = terms.iter().map(|(term, _)| &**term).collect();
                write!(f, "\"{}\"", terms.join(" "))
            }
            Ask::Prefix(term) | Ask::Begin(term, _) => write!(f, "{term}*"),
            Ask::Fuzzy(term, 1) => write!(f, "{term}~"),
            Ask::Fuzzy(term, edits) => write!(f, "{term}~{edits}"),
        }
    }
}

impl Question {
    /// A question of these clauses, in the order they were asked.
    pub(crate) fn from_clauses(clauses: Vec<Clause>) -> Self {
        Self { clauses }
    }

    /// Everything that several questions ask for.
    #[must_use]
    pub fn all<'q>(questions: impl IntoIterator<Item = &'q Self>) -> Self {
        questions.into_iter().flat_map(|one| one.clauses.iter().cloned()).collect()
    }

    /// The clauses, in the order they were asked.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// A question in the syntax of a search line:
    ///
    /// - `word`: adds to the score of what has it;
    /// - `"some words"`: side by side, in this order;
    /// - `begin*`: terms that begin so. Terms are kept without their endings, and an ending that was
    ///   typed is taken off: `developers*` finds `develops`. One that was typed in part is completed
    ///   where that leads to a term: `activit*` finds `activity`, kept as `activ`;
    /// - `word~`, `word~2`: terms one edit away, two edits away. Short words allow fewer: none
    ///   below three letters, one below five;
    /// - `+word`, `-word`, also before a phrase: what an answer must have, must not have. A hyphen
    ///   inside a word is none.
    ///
    /// Any text is a question: signs without a meaning here are nothing, and a quote without its
    /// second is none. Stop words of the language are dropped where they stand alone, in no phrase
    /// and without a sign, unless nothing else is left to look for. Of what adds to the score the
    /// first 64 distinct terms count.
    ///
    /// # Errors
    /// `ERR_LIMIT` for more than [`MAX_WORDS`](super::MAX_WORDS) words, for a phrase of more
    /// than [`MAX_TERMS`](super::MAX_TERMS) and for more than that under `+` and `-`: each of these
    /// would have to be cut, and the answer with it.
    pub fn parse(text: &str, language: Language) -> Result<Self> {
        syntax::parse(text, language).map(Self::from_clauses)
    }

    /// A question of plain words, whatever signs stand between them: the sentence of a person or
    /// an agent. Stop words are dropped, unless nothing else is left.
    ///
    /// # Errors
    /// `ERR_LIMIT` for more than [`MAX_WORDS`](super::MAX_WORDS) words.
    pub fn words(text: &str, language: Language) -> Result<Self> {
        syntax::words(text, language).map(Self::from_clauses)
    }

    /// Whether it asks for nothing that can be found: it is empty, or only excludes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clauses.iter().all(|clause| clause.occur == Occur::MustNot)
    }
}

impl FromIterator<Clause> for Question {
    fn from_iter<I: IntoIterator<Item = Clause>>(clauses: I) -> Self {
        Self::from_clauses(clauses.into_iter().collect())
    }
}
