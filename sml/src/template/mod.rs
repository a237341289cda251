//! Templates: user-defined text formats for assemblies (CAL 10.5 to 10.8).
//!
//! A template is rendering instructions, not a program: sections of text with variables, in a strict
//! subset of Mustache. It extends a preset, which supplies the sections the template does not have.
//!
//! - `body`: finds the text of a section in a query
//! - `parse`: parses the text of a section; `variable`: the variables it may use
//! - `value`: the values of variables; `write`: writes them, escaped
//! - `layout`: a template as an output format; `preset`: the preset it extends

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

pub use body::{body_end, body_text};
pub use layout::MAX_CHARS_PER_TOKEN;
pub(crate) use layout::TemplateLayout;
pub use parse::MAX_DEPTH;
pub use preset::Preset;
pub use variable::template_variables;
pub use write::MAX_EACH_GRAINS;

/// Maximum number of bytes in all section texts of a [`Template`] together (CAL 10.8).
pub const MAX_TEMPLATE_BYTES: usize = 4096;

/// A section of a [`Template`] (CAL 10.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// Before all grains.
    Header,
    /// For each grain.
    Element,
    /// For each grain shown at summary level, instead of [`Section::Element`].
    ElementSummary,
    /// For each grain omitted because of the budget.
    ElementOmit,
    /// Between two sources.
    SourceBreak,
    /// After all grains.
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

    /// Returns the keyword.
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

    /// Returns the section of this keyword, ignoring case.
    #[must_use]
    pub fn from_keyword(keyword: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.keyword().eq_ignore_ascii_case(keyword))
    }

    fn is_element(self) -> bool {
        matches!(self, Self::Element | Self::ElementSummary | Self::ElementOmit)
    }
}

/// A valid template.
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
    /// Parses and checks the sections of a template that extends a preset.
    ///
    /// # Errors
    /// `CAL-E090` to `CAL-E094` for the texts, `CAL-E095` for a section that occurs twice, `CAL-E096`
    /// for an ELEMENT that tests for summary level although there is an ELEMENT_SUMMARY.
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

    /// Returns `CAL-E096` if ELEMENT uses `grain.is_summary` although there is an ELEMENT_SUMMARY.
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

    /// Returns the preset it extends.
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
