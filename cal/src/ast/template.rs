//! DEFINE TEMPLATE and FORMAT TEMPLATE, as they were written.

use std::borrow::Cow;

use grainstore_sml::Section;

use super::Let;
use crate::span::Spanned;

/// DEFINE TEMPLATE, and the LETs before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition<'a> {
    pub(crate) lets: Vec<Let<'a>>,
    pub(crate) name: Spanned<&'a str>,
    /// EXTENDS: the name of a preset, or what is none.
    pub(crate) extends: Option<Spanned<&'a str>>,
    /// At least one.
    pub(crate) sections: Vec<SectionText<'a>>,
}

/// `HEADER { text }`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SectionText<'a> {
    /// Placed at its keyword.
    pub(crate) section: Spanned<Section>,
    /// What counts of the text, placed where it stands.
    pub(crate) text: Spanned<Cow<'a, str>>,
}
