//! What a lookup asks for: namespaces, and what its grains have in common. Plain data.

use grainstore_format::GrainType;

use crate::term::Word;

/// The namespaces a lookup covers. An empty name is the partition of grains without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope<'a> {
    /// All of them.
    All,
    /// This one.
    Exact(Word<'a>),
    /// This one and those below it: `a` covers `a`, `a:b` and `a:b:c`, but not `ab`. Namespaces
    /// that are blinded are not found this way.
    Subtree(&'a str),
}

/// What the grains of a lookup have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape<'a> {
    /// Nothing: every grain.
    All,
    /// Their type, by header byte.
    Type(GrainType),
    /// Their subject.
    Subject(Word<'a>),
    /// Their subject and relation.
    SubjectRelation(Word<'a>, Word<'a>),
    /// Their `session_id`.
    Session(Word<'a>),
    /// One of their `structural_tags`.
    Tag(Word<'a>),
}
