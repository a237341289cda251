//! The one error type of the crate: a kind with a stable code, a message and a hint.

use std::fmt;
use std::ops::Range;

/// The kind of an [`Error`], one variant per stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `CAL-E030`: the empty envelope does not fit the budget (CAL 8.2).
    Budget,
    /// `CAL-E082`: the caller's [`CancelCheck`](crate::CancelCheck) cancelled the work.
    Stopped,
    /// `CAL-E086`: a template extends `data`, the preset that is not text.
    ExtendsData,
    /// `CAL-E087`: a template extends a name that is not a preset.
    ExtendsTemplate,
    /// `CAL-E090`: a variable that does not exist.
    UnknownVariable,
    /// `CAL-E091`: a section tag that is not closed, or a closing tag without its section.
    Unbalanced,
    /// `CAL-E092`: a template over the size limit.
    TooLarge,
    /// `CAL-E093`: section tags nested too deeply.
    TooDeep,
    /// `CAL-E094`: a tag that is not part of the template syntax.
    Syntax,
    /// `CAL-E095`: a section of a template that occurs twice.
    DuplicateSection,
    /// `CAL-E096`: an ELEMENT that contradicts ELEMENT_SUMMARY.
    Conflict,
}

impl ErrorKind {
    /// Every kind, for tables and for checks of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Budget,
        Self::Stopped,
        Self::ExtendsData,
        Self::ExtendsTemplate,
        Self::UnknownVariable,
        Self::Unbalanced,
        Self::TooLarge,
        Self::TooDeep,
        Self::Syntax,
        Self::DuplicateSection,
        Self::Conflict,
    ];

    /// Returns the stable code, such as `CAL-E030`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Budget => "CAL-E030",
            Self::Stopped => "CAL-E082",
            Self::ExtendsData => "CAL-E086",
            Self::ExtendsTemplate => "CAL-E087",
            Self::UnknownVariable => "CAL-E090",
            Self::Unbalanced => "CAL-E091",
            Self::TooLarge => "CAL-E092",
            Self::TooDeep => "CAL-E093",
            Self::Syntax => "CAL-E094",
            Self::DuplicateSection => "CAL-E095",
            Self::Conflict => "CAL-E096",
        }
    }

    /// Returns one sentence on what the user can do about it.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Budget => "raise the budget, or shorten the intent",
            Self::Stopped => "write the text again if it is still wanted",
            Self::ExtendsData => "extend structured, readable or compact",
            Self::ExtendsTemplate => {
                "extend structured, readable or compact, and say the rest anew"
            }
            Self::UnknownVariable => "use one of the listed variables",
            Self::Unbalanced => "close each section behind what it holds",
            Self::TooLarge => "shorten the template",
            Self::TooDeep => "take a section out of the others",
            Self::Syntax => "check the tags of the template",
            Self::DuplicateSection => "keep one of the two",
            Self::Conflict => {
                "leave grain.is_summary out of ELEMENT, or ELEMENT_SUMMARY out of the template"
            }
        }
    }
}

/// An error of this crate.
///
/// ```
/// use grainstore_sml::{ErrorKind, Preset, Section, Template};
///
/// let refused = Template::new(Preset::Readable, &[(Section::Element, "- {{grain.text}}")]);
/// if let Err(error) = refused {
///     assert_eq!((error.kind(), error.code()), (ErrorKind::UnknownVariable, "CAL-E090"));
///     assert_eq!(error.name(), Some("grain.text"));
///     assert_eq!(error.place().map(|place| place.section), Some(0));
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    place: Option<TemplateLocation>,
    name: Option<String>,
}

/// The location of an [`Error`] in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateLocation {
    /// The index of the section, in the order given.
    pub section: usize,
    /// The range of bytes in the text of that section, or `None` for the section as a whole.
    pub range: Option<Range<usize>>,
}

impl Error {
    /// Creates the error for an empty envelope of `tokens` tokens, which is over the budget.
    pub(crate) fn budget(budget: usize, tokens: usize) -> Self {
        let message = format!(
            "a budget of {budget} tokens is below the empty envelope, which takes {tokens}"
        );
        Self::new(ErrorKind::Budget, message)
    }

    /// Creates the error for an empty envelope of a template with more characters than its budget
    /// allows.
    pub(crate) fn too_long(chars: usize, most: usize) -> Self {
        let message = format!(
            "the template has {chars} characters without any grain, and its budget allows {most}"
        );
        Self::new(ErrorKind::Budget, message).with_hint("raise the budget, or shorten the template")
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, place: None, name: None }
    }

    /// Creates an error at a range of a section's text.
    pub(crate) fn in_template(
        kind: ErrorKind,
        message: impl Into<String>,
        range: Range<usize>,
    ) -> Self {
        let place = Some(TemplateLocation { section: 0, range: Some(range) });
        Self { place, ..Self::new(kind, message) }
    }

    /// Sets the index of the section.
    pub(crate) fn in_section(self, section: usize) -> Self {
        let range = self.place.and_then(|place| place.range);
        Self { place: Some(TemplateLocation { section, range }), ..self }
    }

    /// Replaces the hint of the kind with a more specific one.
    pub(crate) fn with_hint(self, advice: impl Into<String>) -> Self {
        Self { hint: Some(advice.into()), ..self }
    }

    /// Sets the unknown name.
    pub(crate) fn with_name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Creates the error of cancelled work.
    pub(crate) fn stopped() -> Self {
        Self::new(ErrorKind::Stopped, "the text was stopped by its caller")
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the stable code, such as `CAL-E030`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Returns one sentence on what the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(self.kind.hint())
    }

    /// Returns the location in a template, or `None` for an error that is not about a template.
    #[must_use]
    pub fn place(&self) -> Option<&TemplateLocation> {
        self.place.as_ref()
    }

    /// Returns the unknown name: of a variable, or of what a template extends.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
