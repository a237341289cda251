//! Printing of the other statements.

use std::fmt::{Display, Formatter, Result};

use super::literal::{CountDisplay, HashDisplay, TextDisplay, clause, options, sets};
use crate::ast::{
    Add, Assemble, AssembleSource, BudgetUnit, History, Revert, SourceOrigin, StreamOption,
    Supersede,
};
use crate::span::Spanned;

impl Display for Assemble<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("ASSEMBLE")?;
        clause(f, " ", self.name.as_ref().map(|name| name.node))?;
        clause(f, " FOR ", self.intent.as_ref().map(|intent| TextDisplay(&intent.node)))?;
        for (at, source) in self.sources.iter().enumerate() {
            f.write_str(if at == 0 { " FROM " } else { ", " })?;
            source.node.fmt(f)?;
        }
        if let Some(budget) = &self.budget {
            let unit = match budget.node.unit {
                BudgetUnit::Tokens => "tokens",
                BudgetUnit::Grains => "grains",
            };
            write!(f, " BUDGET {} {unit}", CountDisplay(&budget.node.amount.node))?;
        }
        for (at, label) in self.priority.iter().flat_map(|labels| &labels.node).enumerate() {
            f.write_str(if at == 0 { " PRIORITY " } else { " > " })?;
            f.write_str(label.node)?;
        }
        clause(f, " FORMAT ", self.format.as_ref().map(|format| &format.node))?;
        if let Some(stream) = &self.stream {
            streamed(f, &stream.node)?;
        }
        options(f, self.options.as_ref())
    }
}

/// Prints ` STREAM { chunks, chunk_size = 50 }`.
fn streamed(f: &mut Formatter<'_>, options: &[Spanned<StreamOption<'_>>]) -> Result {
    f.write_str(" STREAM")?;
    for (at, option) in options.iter().enumerate() {
        f.write_str(if at == 0 { " { " } else { ", " })?;
        f.write_str(option.node.name())?;
        if let StreamOption::ChunkSize(size) = &option.node {
            write!(f, " = {}", CountDisplay(size))?;
        }
    }
    f.write_str(if options.is_empty() { "" } else { " }" })
}

impl Display for AssembleSource<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(label) = &self.label {
            write!(f, "{}: ", label.node)?;
        }
        match &self.body {
            SourceOrigin::Recall(recall) => write!(f, "({recall})"),
            SourceOrigin::Let(name) => write!(f, "${}", name.node),
        }
    }
}

impl Display for History<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("HISTORY")?;
        match self {
            Self::ByHash { target, diff } => {
                write!(f, " {}", HashDisplay(&target.node))?;
                clause(f, " DIFF ", diff.as_ref().map(|diff| HashDisplay(&diff.node)))
            }
            Self::Triple { within, subject, relation, as_of } => {
                clause(f, " ", within.as_ref().map(|within| &within.node))?;
                write!(f, " WHERE subject = {} AND relation = {}", subject.node, relation.node)?;
                clause(f, " AS OF ", as_of.as_ref().map(|as_of| TextDisplay(&as_of.node)))
            }
        }
    }
}

impl Display for Add<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "ADD {}", self.grain_type.node.singular)?;
        sets(f, &self.sets)?;
        write!(f, " REASON {}", TextDisplay(&self.reason.node))
    }
}

impl Display for Supersede<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "SUPERSEDE {}", HashDisplay(&self.target.node))?;
        sets(f, &self.sets)?;
        write!(f, " REASON {}", TextDisplay(&self.reason.node))
    }
}

impl Display for Revert<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(
            f,
            "REVERT {} REASON {}",
            HashDisplay(&self.target.node),
            TextDisplay(&self.reason.node)
        )
    }
}
