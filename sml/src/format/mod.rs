//! The output formats, one file each, behind one trait (CAL 10.1).
//!
//! A format writes projections and knows neither stores, budgets nor selection. Each format escapes
//! what it writes, so the content of a grain cannot break out of its place in the text.
//!
//! - `line`: shared by the formats with one line per grain
//! - `quote`: text in the double quotes of JSON and YAML
//! - `rows`: rows of values in the formats that hold them

mod json;
mod line;
mod markdown;
mod quote;
mod rows;
mod sml;
mod text;
mod toon;
mod triples;
mod yaml;

use grainstore_format::GrainType;

use crate::budget::Budget;
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::item::Item;
use crate::level::Level;
use crate::project::{Projection, project};
use crate::text_builder::TextBuilder;
use crate::time::Clock;

pub(crate) use line::one_line;
pub use rows::{RowFormat, Rows, Shape};
#[cfg(test)]
pub(crate) use sml::tag;
pub(crate) use sml::{escape_attribute, escape_text};

/// An output format (CAL 10.1).
///
/// ```
/// use grainstore_sml::Format;
///
/// assert_eq!(Format::from_name("TOON"), Some(Format::Toon));
/// assert_eq!(Format::ALL.map(Format::name)[..2], ["sml", "markdown"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Semantic markup: one flat element per grain.
    Sml,
    /// A heading per type, a bullet per grain.
    Markdown,
    /// `{name, intent, grains [{type, text, attributes}]}`.
    Json,
    /// The structure of [`Format::Json`], in YAML.
    Yaml,
    /// One line per grain, with its type in brackets.
    Text,
    /// Subject, relation and object, separated by tabs.
    Triples,
    /// One table per grain type, in Token-Oriented Object Notation.
    Toon,
}

impl Format {
    /// Every format, the default first.
    pub const ALL: [Self; 7] =
        [Self::Sml, Self::Markdown, Self::Json, Self::Yaml, Self::Text, Self::Triples, Self::Toon];

    /// Returns the name used by AS and FORMAT.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sml => "sml",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Text => "text",
            Self::Triples => "triples",
            Self::Toon => "toon",
        }
    }

    /// Returns the format of this name, ignoring case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn layout(self) -> &'static dyn Layout {
        match self {
            Self::Sml => &sml::Sml,
            Self::Markdown => &markdown::Markdown,
            Self::Json => &json::Json,
            Self::Yaml => &yaml::Yaml,
            Self::Text => &text::PlainText,
            Self::Triples => &triples::Triples,
            Self::Toon => &toon::Toon,
        }
    }
}

/// Writes texts in one format. The methods for the single parts give the pieces that are priced against
/// a budget.
pub(crate) trait Layout {
    /// Returns the parts of the text that do not depend on grains, in the pieces that are counted.
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String>;

    /// Returns the text that opens the group of this element, without the element.
    fn group(&self, first: &Element<'_>) -> String;

    /// Appends one element.
    fn element(&self, out: &mut String, element: &Element<'_>);

    /// Writes the whole text, with `elements` in output order. `used` is the amount of the budget used,
    /// for formats that state it.
    ///
    /// # Errors
    /// `CAL-E082` if cancelled.
    fn document<'w>(
        &self,
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        used: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error>;

    /// Returns `true` if the text states the amount of the budget used.
    fn states_usage(&self) -> bool {
        false
    }

    /// Returns the lowest level grains are projected at. The format may still leave out parts of the
    /// projection.
    fn min_level(&self) -> Level {
        Level::Summary
    }

    /// Returns the maximum number of characters of the text, or `None` if only the budget limits it.
    fn max_chars(&self) -> Option<usize> {
        None
    }

    /// Returns `true` if the text has a note for each omitted grain.
    fn has_omission_notes(&self) -> bool {
        false
    }
}

/// The context besides its grains. All empty for a RECALL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContextInfo<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) intent: Option<&'a str>,
    /// The budget; `None` for a RECALL.
    pub(crate) budget: Option<Budget>,
}

/// A group of adjacent elements: one source, split where the type changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) source: usize,
    pub(crate) grain_type: GrainType,
}

/// A grain as it is written.
pub(crate) struct Element<'a> {
    pub(crate) group: Group,
    /// The rank of its source by priority.
    pub(crate) rank: usize,
    pub(crate) item: &'a Item,
    pub(crate) level: Level,
    /// `true` if it is a note for an omitted grain.
    pub(crate) omitted: bool,
    pub(crate) projection: Projection<'a>,
}

impl<'a> Element<'a> {
    /// Projects an item for this format, or returns `None` if it must not be shown.
    pub(crate) fn of(
        item: &'a Item,
        level: Level,
        layout: &dyn Layout,
        clock: &Clock,
    ) -> Option<Self> {
        let shown = project(item, level.max(layout.min_level()), clock)?;
        let group = Group { source: 0, grain_type: shown.grain_type };
        Some(Self { group, rank: 0, item, level, omitted: false, projection: shown })
    }
}

impl Element<'_> {
    /// Returns `true` if it is shown at this level.
    pub(crate) fn is_at(&self, level: Level) -> bool {
        !self.omitted && self.level == level
    }
}

/// Splits elements into groups.
fn groups<'e, 'a>(elements: &'e [Element<'a>]) -> impl Iterator<Item = &'e [Element<'a>]> {
    elements.chunk_by(|one, next| one.group == next.group)
}

/// Writes items as one text without a budget, for `RECALL .. AS format`. Items that must not be shown
/// are left out.
///
/// ```
/// use grainstore_format::{BeliefBuilder, EpochMs};
/// use grainstore_sml::{Clock, Format, Item, Level, render};
///
/// # let belief = |object: &str| -> Result<Item, grainstore_format::Error> {
/// #     let created_at = EpochMs::new(1_768_471_200_000);
/// #     let grain = BeliefBuilder::new(created_at, "alice", "mg:prefers", object, 0.9).build()?;
/// #     Ok(Item { grain, verification: None, chosen: None, score: None })
/// # };
/// // `belief("tea")?` is an item: alice prefers tea.
/// let items = [belief("tea")?];
/// let clock = Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false };
/// for format in Format::ALL {
///     assert!(render(&items, format, Level::Summary, &clock).contains("tea"));
/// }
/// assert_eq!(render(&items, Format::Triples, Level::Summary, &clock), "alice\tprefers\ttea\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn render(items: &[Item], format: Format, level: Level, clock: &Clock) -> String {
    // Cancellation is the only error, and `NEVER` does not cancel.
    render_cancellable(items, format, level, clock, CancelCheck::NEVER).unwrap_or_default()
}

/// Like [`render`], with a check that may cancel it.
///
/// # Errors
/// `CAL-E082` if cancelled.
pub fn render_cancellable(
    items: &[Item],
    format: Format,
    level: Level,
    clock: &Clock,
    watch: CancelCheck<'_>,
) -> Result<String, Error> {
    let layout = format.layout();
    let elements: Vec<_> =
        items.iter().filter_map(|item| Element::of(item, level, layout, clock)).collect();
    Ok(layout.document(&ContextInfo::default(), &elements, 0, watch)?.text)
}

#[cfg(test)]
#[path = "../format_tests.rs"]
mod tests;
