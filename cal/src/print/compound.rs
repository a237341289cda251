//! Printing of compound statements and DESCRIBE.

use std::fmt::{Display, Formatter, Result};

use crate::ast::{BatchEntry, Describe, Recall, SetOp, SetOperator};
use crate::span::Spanned;

impl Display for SetOp<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "({}) {} ({})", self.left, self.operator.text(), self.right)
    }
}

impl SetOperator {
    /// Returns the keyword.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Union => "UNION",
            Self::Intersect => "INTERSECT",
            Self::Except => "EXCEPT",
        }
    }
}

pub(super) fn batch(f: &mut Formatter<'_>, entries: &[BatchEntry<'_>]) -> Result {
    f.write_str("BATCH {")?;
    for (at, entry) in entries.iter().enumerate() {
        f.write_str(if at == 0 { " " } else { ", " })?;
        write!(f, "{}: {}", entry.label.node, entry.body.node)?;
    }
    f.write_str(" }")
}

pub(super) fn coalesce(f: &mut Formatter<'_>, branches: &[Spanned<Recall<'_>>]) -> Result {
    f.write_str("COALESCE (")?;
    for (at, branch) in branches.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { ", " })?;
        branch.node.fmt(f)?;
    }
    f.write_str(")")
}

impl Display for Describe {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("DESCRIBE ")?;
        match self {
            Self::GrainTypes => f.write_str("grain_types"),
            Self::Fields(None) => f.write_str("fields"),
            Self::Fields(Some(name)) => write!(f, "fields {}", name.node.singular),
            Self::Capabilities => f.write_str("capabilities"),
            Self::Server => f.write_str("server"),
            Self::Templates => f.write_str("templates"),
            Self::Grammar => f.write_str("grammar"),
        }
    }
}
