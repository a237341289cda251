//! DEFINE TEMPLATE and FORMAT TEMPLATE, as written (CAL 10.6).

use std::borrow::Cow;

use grainstore_sml::Section;

use super::LetBinding;
use crate::span::Spanned;

/// DEFINE TEMPLATE, with the LETs before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemplateDefinition<'a> {
    pub(crate) lets: Vec<LetBinding<'a>>,
    pub(crate) name: Spanned<&'a str>,
    /// EXTENDS: the name of a preset, unchecked.
    pub(crate) extends: Option<Spanned<&'a str>>,
    /// At least one.
    pub(crate) sections: Vec<SectionText<'a>>,
}

/// `HEADER_BYTES { text }`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SectionText<'a> {
    /// The span is that of its keyword.
    pub(crate) section: Spanned<Section>,
    /// The trimmed text of the section, with its span.
    pub(crate) text: Spanned<Cow<'a, str>>,
}
