//! Templates: the text of an assembly as its asker writes it down (`cal.md` section 8, Templates).
//!
//! A template is rendering instructions, no program: sections of text with values in them, in a strict
//! subset of Mustache, over one preset that says what the sections say it does not have. Its modules:
//! `body` cuts texts out of a query, `parse` reads one, `variable` is what it may name, `value` what that
//! stands for, `write` puts values in, `layout` makes a format of it, `preset` is what it extends.

mod body;
mod layout;
mod parse;
mod preset;
mod value;
mod variable;
mod write;

use crate::error::{Error, ErrorKind};
use parse::{Node, mentions, parse};
use variable::Variable;

pub use body::{body_end, body_of};
pub use layout::CHARS_A_TOKEN;
pub(crate) use layout::Templated;
pub use parse::MAX_DEPTH;
pub use preset::Preset;
pub use variable::template_variables;
pub use write::MAX_EACH;

/// Bytes of the texts of a template, all together.
pub const MAX_TEMPLATE_BYTES: usize = 4096;

/// A section of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// Before the grains.
    Header,
    /// Each grain.
    Element,
    /// Each grain that is shown in summary form, in place of [`Section::Element`].
    ElementSummary,
    /// Each grain that the budget leaves out.
    ElementOmit,
    /// Between two sources.
    SourceBreak,
    /// Behind the grains.
    Footer,
}

impl Section {
    /// Every section, in the order of the grammar.
    pub const ALL: [Self; 6] = [
        Self::Header,
        Self::Element,
        Self::ElementSummary,
        Self::ElementOmit,
        Self::SourceBreak,
        Self::Footer,
    ];

    /// Its keyword.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Header => "HEADER",
            Self::Element => "ELEMENT",
            Self::ElementSummary => "ELEMENT_SUMMARY",
            Self::ElementOmit => "ELEMENT_OMIT",
            Self::SourceBreak => "SOURCE_BREAK",
            Self::Footer => "FOOTER",
        }
    }

    /// The section of this keyword, in any case.
    #[must_use]
    pub fn named(keyword: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.keyword().eq_ignore_ascii_case(keyword))
    }

    fn is_element(self) -> bool {
        matches!(self, Self::Element | Self::ElementSummary | Self::ElementOmit)
    }
}

/// A template that holds to all rules.
///
/// ```
/// use grainstore_sml::{Preset, Section, Template};
///
/// let element = "- {{grain.content}}{{#grain.confidence}} ({{grain.confidence}}){{/grain.confidence}}\n";
/// assert!(Template::new(Preset::Readable, &[(Section::Element, element)]).is_ok());
///
/// let error = Template::new(Preset::Readable, &[(Section::Element, "{{grain.text}}")]).unwrap_err();
/// assert_eq!((error.code(), error.name()), ("CAL-E090", Some("grain.text")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    preset: Preset,
    sections: Vec<(Section, Vec<Node>)>,
}

impl Template {
    /// A template of these sections, over a preset.
    ///
    /// # Errors
    /// E090 to E094 for their texts, E095 for a section that stands twice, E096 for an ELEMENT that asks
    /// for the summary that another section writes.
    pub fn new(preset: Preset, sections: &[(Section, &str)]) -> Result<Self, Error> {
        let mut template = Self { preset, sections: Vec::with_capacity(sections.len()) };
        let mut bytes = 0_usize;
        for (at, (section, text)) in sections.iter().enumerate() {
            if template.section(*section).is_some() {
                let message = format!("{} stands twice", section.keyword());
                return Err(Error::new(ErrorKind::DuplicateSection, message).in_section(at));
            }
            bytes = bytes.saturating_add(text.len());
            if bytes > MAX_TEMPLATE_BYTES {
                let message =
                    format!("the texts of a template are {MAX_TEMPLATE_BYTES} bytes at most");
                return Err(Error::new(ErrorKind::TooLarge, message).in_section(at));
            }
            let nodes = parse(text, !section.is_element()).map_err(|error| error.in_section(at))?;
            template.sections.push((*section, nodes));
        }
        template.check_summary()?;
        Ok(template)
    }

    /// E096: beside an ELEMENT_SUMMARY, no ELEMENT asks whether it is one.
    fn check_summary(&self) -> Result<(), Error> {
        let has_summary = self.section(Section::ElementSummary).is_some();
        let is_element = |(section, _): &(Section, _)| *section == Section::Element;
        let Some(at) = self.sections.iter().position(is_element).filter(|_| has_summary) else {
            return Ok(());
        };
        let asks = self.section(Section::Element).unwrap_or_default();
        if mentions(asks, Variable::GrainIsSummary) {
            let message = "ELEMENT asks for grain.is_summary, which ELEMENT_SUMMARY is written for";
            return Err(Error::new(ErrorKind::Conflict, message).in_section(at));
        }
        Ok(())
    }

    /// The preset it extends.
    #[must_use]
    pub fn preset(&self) -> Preset {
        self.preset
    }

    fn section(&self, wanted: Section) -> Option<&[Node]> {
        let found = self.sections.iter().find(|(section, _)| *section == wanted);
        found.map(|(_, nodes)| nodes.as_slice())
    }

    fn mentions(&self, variables: &[Variable]) -> bool {
        let all =
            self.sections.iter().flat_map(|(_, nodes)| variables.iter().map(move |of| (nodes, of)));
        all.into_iter().any(|(nodes, variable)| mentions(nodes, *variable))
    }
}

#[cfg(test)]
mod tests;
