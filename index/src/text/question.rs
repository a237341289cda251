//! What is asked of the full text. Knows nothing of how it is answered.

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
    /// Every term this many edits away, at most.
    Fuzzy(Box<str>, u8),
}

impl Question {
    /// A question of these clauses, in the order they were asked.
    pub(crate) fn from_clauses(clauses: Vec<Clause>) -> Self {
        Self { clauses }
    }

    /// The clauses, in the order they were asked.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }
}

impl FromIterator<Clause> for Question {
    fn from_iter<I: IntoIterator<Item = Clause>>(clauses: I) -> Self {
        Self::from_clauses(clauses.into_iter().collect())
    }
}
