//! What a template takes from the preset it extends, for the sections it does not have.

use crate::error::{Error, ErrorKind};
use crate::format::{Element, Format, Frame, Layout};

/// A preset that templates extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Preset {
    /// SML.
    Structured,
    /// Markdown, the default.
    #[default]
    Readable,
    /// Plain text.
    Compact,
}

/// An empty line.
const GAP: &str = "\n";

impl Preset {
    /// Every preset that templates extend.
    pub const ALL: [Self; 3] = [Self::Structured, Self::Readable, Self::Compact];

    /// Its name in EXTENDS and FORMAT.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Readable => "readable",
            Self::Compact => "compact",
        }
    }

    /// The format it stands for.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::Structured => Format::Sml,
            Self::Readable => Format::Markdown,
            Self::Compact => Format::Text,
        }
    }

    /// What EXTENDS means by this name, in any case.
    ///
    /// # Errors
    /// E086 for `data`, E087 for what is no preset.
    pub fn extended(name: &str) -> Result<Self, Error> {
        let named = |preset: &Self| preset.name().eq_ignore_ascii_case(name);
        if let Some(preset) = Self::ALL.into_iter().find(named) {
            return Ok(preset);
        }
        if name.eq_ignore_ascii_case("data") {
            let message = "data is no text that a template could change";
            return Err(Error::new(ErrorKind::ExtendsData, message));
        }
        let message = format!("a template extends a preset, which \"{name}\" is not");
        let error = Error::new(ErrorKind::ExtendsTemplate, message).naming(name);
        let format = Format::named(name);
        let preset = Self::ALL.into_iter().find(|preset| Some(preset.format()) == format);
        Err(match preset {
            Some(preset) => error.advising(format!("write EXTENDS {}", preset.name())),
            None => error,
        })
    }

    pub(super) fn layout(self) -> &'static dyn Layout {
        self.format().layout()
    }

    /// The text before the first element.
    pub(super) fn header(self, frame: &Frame<'_>) -> String {
        let head = if self == Self::Structured { 2 } else { 1 };
        self.layout().frame(frame).into_iter().take(head).collect()
    }

    /// The text behind the last element.
    pub(super) fn footer(self, frame: &Frame<'_>, any: bool) -> String {
        match self {
            Self::Structured => {
                let close: String = self.layout().frame(frame).into_iter().skip(2).collect();
                format!("{}{close}", if any { GAP } else { "" })
            }
            Self::Readable | Self::Compact => String::new(),
        }
    }

    /// What stands between two sources.
    pub(super) fn source_break(self) -> &'static str {
        match self {
            Self::Structured | Self::Readable => GAP,
            Self::Compact => "",
        }
    }

    /// What stands before its own element where the type of the grains changes; `first` where it is the
    /// first of the text.
    pub(super) fn opening(self, element: &Element<'_>, first: bool) -> String {
        match self {
            Self::Structured if first => String::new(),
            Self::Structured | Self::Readable => self.layout().group(element),
            Self::Compact => String::new(),
        }
    }
}
