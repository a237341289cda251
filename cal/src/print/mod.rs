//! The printer: a statement to text, with clauses in grammar order and stages after pipes (rulings 1 and
//! 2).
//!
//! Parsing the result gives an equal statement. The query hash is taken of this normal form; parameters
//! stay unbound in it.

mod compound;
mod literal;
mod recall;
mod statement;
mod template;

use std::fmt::{Display, Formatter, Result};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::ast::{Extractor, LetBinding, ParsedQuery, Statement, StatementBody, StatementWithLets};
use crate::parse::RefusedEntry;
use compound::{batch, coalesce};
use literal::{HashDisplay, clause};

impl Statement<'_> {
    /// Returns `sha256:` and the SHA-256 of the normal form, as in `_cal.query_hash`.
    #[must_use]
    pub fn query_hash(&self) -> String {
        hash_of(&self.to_string())
    }
}

/// Returns the hash of a query with refused entries, which have no normal form and are hashed as written.
pub(crate) fn query_hash(statement: &Statement<'_>, refused: &[RefusedEntry<'_>]) -> String {
    if refused.is_empty() {
        return statement.query_hash();
    }
    let mut text = statement.to_string();
    for entry in refused {
        text += &format!("\n{} {}: {}", entry.at, entry.label.node, entry.text);
    }
    hash_of(&text)
}

/// Returns `sha256:` and the SHA-256 of a text.
pub(crate) fn hash_of(text: &str) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
}

impl Display for Statement<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.0 {
            ParsedQuery::Statement(request) => request.fmt(f),
            ParsedQuery::Define(definition) => {
                lets(f, &definition.node.lets)?;
                definition.node.fmt(f)
            }
        }
    }
}

impl Display for StatementWithLets<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        lets(f, &self.lets)?;
        self.body.node.fmt(f)
    }
}

fn lets(f: &mut Formatter<'_>, lets: &[LetBinding<'_>]) -> Result {
    for binding in lets {
        write!(f, "LET ${} = {}", binding.name.node, binding.recall)?;
        clause(f, " | ", binding.extract.map(Extractor::text))?;
        f.write_str("; ")?;
    }
    Ok(())
}

impl Display for StatementBody<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            StatementBody::Recall(recall) => recall.fmt(f),
            StatementBody::Assemble(assemble) => assemble.fmt(f),
            StatementBody::Set(set) => set.fmt(f),
            StatementBody::Explain(statement) => write!(f, "EXPLAIN {}", statement.node),
            StatementBody::Describe(describe) => describe.fmt(f),
            StatementBody::Batch(entries) => batch(f, entries),
            StatementBody::Coalesce(branches) => coalesce(f, branches),
            StatementBody::Exists(target) => write!(f, "EXISTS {}", HashDisplay(&target.node)),
            StatementBody::History(history) => history.fmt(f),
            StatementBody::Add(add) => add.fmt(f),
            StatementBody::Supersede(supersede) => supersede.fmt(f),
            StatementBody::Revert(revert) => revert.fmt(f),
        }
    }
}
