//! The output formats: one file each, behind one seam (`cal.md` section 8).
//!
//! A format writes projections and knows nothing of stores, budgets or selection. Whatever a grain
//! says, it cannot leave the place its format gives it: each format escapes what it writes.
//!
//! - `line`: what the formats of one line a grain share
//! - `quote`: text in the quotes of JSON and YAML
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
use crate::error::Error;
use crate::item::{Item, Level};
use crate::page::Page;
use crate::project::{Projection, project};
use crate::time::Clock;
use crate::watch::Watch;

pub(crate) use line::one_line;
pub use rows::{RowFormat, Rows, Shape};
#[cfg(test)]
pub(crate) use sml::tag;
pub(crate) use sml::{escape_attribute, escape_text};

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Semantic markup, one flat element a grain.
    Sml,
    /// A heading a type, a bullet a grain.
    Markdown,
    /// `{name, intent, grains [{type, text, attributes}]}`.
    Json,
    /// The same as [`Format::Json`], in YAML.
    Yaml,
    /// One line a grain, its type in brackets.
    Text,
    /// Subject, relation and object between tabs.
    Triples,
    /// Tables, one a grain type, in Token-Oriented Object Notation.
    Toon,
}

impl Format {
    /// Every format, the default first.
    pub const ALL: [Self; 7] =
        [Self::Sml, Self::Markdown, Self::Json, Self::Yaml, Self::Text, Self::Triples, Self::Toon];

    /// The name in AS and FORMAT.
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

    /// The format of this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn layout(self) -> &'static dyn Layout {
        match self {
            Self::Sml => &sml::Sml,
            Self::Markdown => &markdown::Markdown,
            Self::Json => &json::Json,
            Self::Yaml => &yaml::Yaml,
            Self::Text => &text::Text,
            Self::Triples => &triples::Triples,
            Self::Toon => &toon::Toon,
        }
    }
}

/// How a format puts a text together; the parts are what a budget is spent on.
pub(crate) trait Layout {
    /// What stands in the text whatever it shows, in the pieces that are counted.
    fn frame(&self, frame: &Frame<'_>) -> Vec<String>;

    /// What opening the group of this element takes, beside the element.
    fn group(&self, first: &Element<'_>) -> String;

    /// Adds one element.
    fn element(&self, out: &mut String, element: &Element<'_>);

    /// The whole text, `elements` in the order they are shown; `used` is what the text takes of its
    /// budget, for formats that tell.
    ///
    /// # Errors
    /// `CAL-E082` where the watch stopped it.
    fn document<'w>(
        &self,
        frame: &Frame<'_>,
        elements: &[Element<'_>],
        used: usize,
        watch: Watch<'w>,
    ) -> Result<Page<'w>, Error>;

    /// Whether the text tells what it takes.
    fn tells_use(&self) -> bool {
        false
    }

    /// The lowest level it projects grains at; it may still leave out what it makes of them.
    fn lowest(&self) -> Level {
        Level::Summary
    }

    /// How many characters the text may have; none where the budget alone decides.
    fn longest(&self) -> Option<usize> {
        None
    }

    /// Whether something stands in the text for a grain that is left out.
    fn shows_omitted(&self) -> bool {
        false
    }
}

/// What a text is about, beside its grains. A RECALL has nothing of this.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) intent: Option<&'a str>,
    /// The budget; none for a RECALL.
    pub(crate) budget: Option<Budget>,
}

/// What stands together: a source, cut where the type changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) source: usize,
    pub(crate) grain_type: GrainType,
}

/// A grain that is written.
pub(crate) struct Element<'a> {
    pub(crate) group: Group,
    /// The place of its source in the order of priority.
    pub(crate) rank: usize,
    pub(crate) item: &'a Item,
    pub(crate) level: Level,
    /// Whether it stands for a grain that is left out.
    pub(crate) omitted: bool,
    pub(crate) shown: Projection<'a>,
}

impl<'a> Element<'a> {
    /// The item as this format shows it; none where it must not be shown.
    pub(crate) fn of(
        item: &'a Item,
        level: Level,
        layout: &dyn Layout,
        clock: &Clock,
    ) -> Option<Self> {
        let shown = project(item, level.max(layout.lowest()), clock)?;
        let group = Group { source: 0, grain_type: shown.grain_type };
        Some(Self { group, rank: 0, item, level, omitted: false, shown })
    }
}

impl Element<'_> {
    /// Whether it is shown, at this level.
    pub(crate) fn is_at(&self, level: Level) -> bool {
        !self.omitted && self.level == level
    }
}

/// The groups of elements that stand in order.
fn groups<'e, 'a>(elements: &'e [Element<'a>]) -> impl Iterator<Item = &'e [Element<'a>]> {
    elements.chunk_by(|one, next| one.group == next.group)
}

/// Items as one text without a budget, for `RECALL .. AS format`. Items that must not be shown are
/// left out.
#[must_use]
pub fn render(items: &[Item], format: Format, level: Level, clock: &Clock) -> String {
    // Nothing stops it, so it does not fail.
    render_watched(items, format, level, clock, Watch::NEVER).unwrap_or_default()
}

/// As [`render`], until the watch stops it.
///
/// # Errors
/// `CAL-E082` once it does.
pub fn render_watched(
    items: &[Item],
    format: Format,
    level: Level,
    clock: &Clock,
    watch: Watch<'_>,
) -> Result<String, Error> {
    let layout = format.layout();
    let elements: Vec<_> =
        items.iter().filter_map(|item| Element::of(item, level, layout, clock)).collect();
    Ok(layout.document(&Frame::default(), &elements, 0, watch)?.text)
}

#[cfg(test)]
#[path = "../format_tests.rs"]
mod tests;
