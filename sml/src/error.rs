//! The one error of the crate: a kind with its stable code, a message, and what to do.

use std::fmt;
use std::ops::Range;

/// What went wrong, one variant a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `CAL-E030`: a budget below what the empty envelope takes (`cal.md` section 5).
    Budget,
    /// `CAL-E082`: the caller's [`Watch`](crate::Watch) stopped it.
    Stopped,
    /// `CAL-E086`: a template of the preset that is data.
    ExtendsData,
    /// `CAL-E087`: a template of what is no preset.
    ExtendsTemplate,
    /// `CAL-E090`: a variable that templates do not have.
    UnknownVariable,
    /// `CAL-E091`: a section of a template that is not closed, or not open.
    Unbalanced,
    /// `CAL-E092`: a template that is too long.
    TooLarge,
    /// `CAL-E093`: sections of a template too deep within each other.
    TooDeep,
    /// `CAL-E094`: a tag that is none of a template's.
    Syntax,
    /// `CAL-E095`: a part of a template that stands twice.
    DuplicateSection,
    /// `CAL-E096`: ELEMENT and ELEMENT_SUMMARY that contradict each other.
    Conflict,
}

impl ErrorKind {
    /// Every kind, for tables and checks of the documentation.
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

    /// The stable code, such as `CAL-E030`.
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

    /// What to do about it.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    advice: Option<String>,
    place: Option<Place>,
    name: Option<String>,
}

/// Where in a template something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which of the sections it was made of, from 0.
    pub section: usize,
    /// The bytes in the text of that section; none where it is the section as a whole.
    pub range: Option<Range<usize>>,
}

impl Error {
    /// The budget does not hold the empty envelope, which takes this many `tokens`.
    pub(crate) fn budget(budget: usize, tokens: usize) -> Self {
        let message = format!(
            "a budget of {budget} tokens is below the empty envelope, which takes {tokens}"
        );
        Self::new(ErrorKind::Budget, message)
    }

    /// The empty envelope of a template has more characters than its budget lets a text have.
    pub(crate) fn too_long(chars: usize, most: usize) -> Self {
        let message = format!(
            "the template has {chars} characters without any grain, and its budget allows {most}"
        );
        Self::new(ErrorKind::Budget, message).advising("raise the budget, or shorten the template")
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), advice: None, place: None, name: None }
    }

    /// Of the text of a section.
    pub(crate) fn template(
        kind: ErrorKind,
        message: impl Into<String>,
        range: Range<usize>,
    ) -> Self {
        let place = Some(Place { section: 0, range: Some(range) });
        Self { place, ..Self::new(kind, message) }
    }

    /// The same, of the section at this place.
    pub(crate) fn in_section(self, section: usize) -> Self {
        let range = self.place.and_then(|place| place.range);
        Self { place: Some(Place { section, range }), ..self }
    }

    /// The same, with what to do in this very case.
    pub(crate) fn advising(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// The same, about this name, which nobody knows.
    pub(crate) fn naming(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// The caller did not want it any longer.
    pub(crate) fn stopped() -> Self {
        Self::new(ErrorKind::Stopped, "the text was stopped by its caller")
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The stable code, such as `CAL-E030`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        self.advice.as_deref().unwrap_or(self.kind.hint())
    }

    /// Where in a template it is; none for what is about none.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The name nobody knows: of a variable, or of what a template extends.
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
