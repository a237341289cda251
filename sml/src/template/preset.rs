//! The preset a template extends: it supplies the sections the template does not have (CAL 10.7).

use crate::error::{Error, ErrorKind};
use crate::format::{ContextInfo, Element, Format, Layout};

/// A preset that templates can extend.
///
/// ```
/// use grainstore_sml::{Format, Preset};
///
/// assert_eq!(Preset::from_extends("COMPACT")?, Preset::Compact);
/// assert_eq!(Preset::Compact.format(), Format::Text);
/// assert!(Preset::from_extends("data").is_err_and(|error| error.code() == "CAL-E086"));
/// # Ok::<(), grainstore_sml::Error>(())
/// ```
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
    /// Every preset that templates can extend.
    pub const ALL: [Self; 3] = [Self::Structured, Self::Readable, Self::Compact];

    /// Returns the name used by EXTENDS and FORMAT.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Readable => "readable",
            Self::Compact => "compact",
        }
    }

    /// Returns the output format of the preset.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::Structured => Format::Sml,
            Self::Readable => Format::Markdown,
            Self::Compact => Format::Text,
        }
    }

    /// Returns the preset that EXTENDS names, ignoring case.
    ///
    /// # Errors
    /// `CAL-E086` for `data`, `CAL-E087` for a name that is not a preset.
    pub fn from_extends(name: &str) -> Result<Self, Error> {
        let named = |preset: &Self| preset.name().eq_ignore_ascii_case(name);
        if let Some(preset) = Self::ALL.into_iter().find(named) {
            return Ok(preset);
        }
        if name.eq_ignore_ascii_case("data") {
            let message = "data is no text that a template could change";
            return Err(Error::new(ErrorKind::ExtendsData, message));
        }
        let message = format!("a template extends a preset, which \"{name}\" is not");
        let error = Error::new(ErrorKind::ExtendsTemplate, message).with_name(name);
        let format = Format::from_name(name);
        let preset = Self::ALL.into_iter().find(|preset| Some(preset.format()) == format);
        Err(match preset {
            Some(preset) => error.with_hint(format!("write EXTENDS {}", preset.name())),
            None => error,
        })
    }

    pub(super) fn layout(self) -> &'static dyn Layout {
        self.format().layout()
    }

    /// Returns the text before the first element.
    pub(super) fn header(self, frame: &ContextInfo<'_>) -> String {
        let head = if self == Self::Structured { 2 } else { 1 };
        self.layout().frame(frame).into_iter().take(head).collect()
    }

    /// Returns the text after the last element. `any` is set if there are elements.
    pub(super) fn footer(self, frame: &ContextInfo<'_>, any: bool) -> String {
        match self {
            Self::Structured => {
                let close: String = self.layout().frame(frame).into_iter().skip(2).collect();
                format!("{}{close}", if any { GAP } else { "" })
            }
            Self::Readable | Self::Compact => String::new(),
        }
    }

    /// Returns the text between two sources.
    pub(super) fn source_break(self) -> &'static str {
        match self {
            Self::Structured | Self::Readable => GAP,
            Self::Compact => "",
        }
    }

    /// Returns the text before an element of the preset where the type of the grains changes. `first`
    /// is set for the first element of the text.
    pub(super) fn opening(self, element: &Element<'_>, first: bool) -> String {
        match self {
            Self::Structured if first => String::new(),
            Self::Structured | Self::Readable => self.layout().group(element),
            Self::Compact => String::new(),
        }
    }
}
