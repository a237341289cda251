//! Printing of templates. Each section's text is on lines of its own, so that parsing returns it unchanged.

use std::fmt::{Display, Formatter, Result};

use super::literal::clause;
use crate::ast::{FormatClause, SectionText, TemplateDefinition};

impl Display for TemplateDefinition<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "DEFINE TEMPLATE {}", self.name.node)?;
        clause(f, " EXTENDS ", self.extends.as_ref().map(|preset| preset.node))?;
        sections(f, &self.sections)
    }
}

impl Display for FormatClause<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Name(name) => f.write_str(name.name()),
            Self::Template(name) => write!(f, "TEMPLATE {}", name.node),
            Self::Inline(parts) => {
                f.write_str("TEMPLATE {")?;
                sections(f, parts)?;
                f.write_str(" }")
            }
        }
    }
}

fn sections(f: &mut Formatter<'_>, sections: &[SectionText<'_>]) -> Result {
    for SectionText { section, text } in sections {
        write!(f, " {} {{\n{}}}", section.node.keyword(), text.node)?;
    }
    Ok(())
}
