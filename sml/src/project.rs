//! Applies the table to an item: the text and the attributes of a grain, before any format.
//!
//! Text is returned as stored. Each format escapes it, and drops what it cannot represent.

use std::borrow::Cow;

use grainstore_format::{EpochMs, Grain, GrainType, Value};

use crate::cell::Cell;
use crate::item::{Chosen, Item, Level, address};
use crate::table::{self, Attribute, Source, Text};
use crate::time::{Clock, date_or_iso, relative_time};
use crate::words;

/// The text and the attributes that are shown of one grain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection<'a> {
    /// The type, one of the ten standard ones. Its canonical name is the SML element.
    pub grain_type: GrainType,
    /// Names and values in output order. Absent and empty ones are left out.
    pub attributes: Vec<(Cow<'a, str>, Cell<'a>)>,
    /// The text; empty if the grain has none.
    pub text: Cow<'a, str>,
    /// `true` if a query chose the attributes, so that they are not those of the type.
    pub(crate) chosen: bool,
}

/// Projects an item at a level. `None` for an item that must not be shown: an opaque type, or a
/// reasoning that waits for human review (CAL 10.3.2, ruling 46).
#[must_use]
pub fn project<'a>(item: &'a Item, level: Level, clock: &Clock) -> Option<Projection<'a>> {
    let grain_type = item.grain.grain_type();
    let row = table::row(grain_type).filter(|_| item.may_be_shown())?;
    if let Some(chosen) = &item.chosen {
        return Some(of_chosen(chosen, &item.grain));
    }
    let attributes = row
        .attributes
        .iter()
        .chain(&table::EXTRAS)
        .filter(|attribute| attribute.from <= level)
        .filter_map(|Attribute { name, value, .. }| {
            let value = value_of(*value, item, clock).filter(|cell| !cell.as_str().is_empty())?;
            Some((Cow::Borrowed(*name), value))
        })
        .collect();
    let text = text_of(&item.grain).unwrap_or_default();
    Some(Projection { grain_type, attributes, text, chosen: false })
}

/// Projects exactly the fields a query chose.
fn of_chosen<'a>(chosen: &'a Chosen, grain: &'a Grain) -> Projection<'a> {
    let there = chosen.attributes.iter().filter(|(_, cell)| !cell.as_str().is_empty());
    let text = chosen.text.as_deref().map(Cow::Borrowed);
    Projection {
        grain_type: grain.grain_type(),
        attributes: there.map(|(name, cell)| (Cow::from(name.as_str()), cell.borrowed())).collect(),
        text: text.or_else(|| text_of(grain)).unwrap_or_default(),
        chosen: true,
    }
}

/// Iterates over the names of all attributes of all types, each once.
pub fn attribute_names() -> impl Iterator<Item = &'static str> {
    table::names()
}

/// Returns the attribute of this name, if the type of the grain shows it at any level.
#[must_use]
pub fn attribute<'a>(item: &'a Item, name: &str, clock: &Clock) -> Option<Cell<'a>> {
    let row = table::row(item.grain.grain_type())?;
    let mut all = row.attributes.iter().chain(&table::EXTRAS);
    let found = all.find(|attribute| attribute.name == name)?;
    value_of(found.value, item, clock).filter(|cell| !cell.as_str().is_empty())
}

/// Returns the text of a grain, which is the same at every level.
pub(crate) fn text_of(grain: &Grain) -> Option<Cow<'_, str>> {
    let row = table::row(grain.grain_type())?;
    row.text.iter().find_map(|rule| text(*rule, grain).filter(|text| !text.is_empty()))
}

fn text(rule: Text, grain: &Grain) -> Option<Cow<'_, str>> {
    match rule {
        Text::Claim => claim(grain),
        Text::Triple => triple(grain),
        Text::Field(name) => grain.get(name).map(words::value),
        Text::InPhase(phase, name) => {
            let value = grain.get(name).filter(|_| grain.text("action_phase") == Some(phase));
            value.map(words::value)
        }
        Text::Spelled(name) => {
            let points = grain.text(name).and_then(address).is_some();
            grain.get(name).filter(|_| !points).map(words::value)
        }
        Text::Blocks(name) => blocks(grain.list(name)?),
        Text::Joined(name, separator) => words::join(grain.list(name)?, separator).map(Cow::Owned),
        Text::Numbered(name) => Some(numbered(grain.list(name)?)),
    }
}

/// Returns relation and object, such as `prefers dark mode`, or one of them if the other is elided.
fn claim(grain: &Grain) -> Option<Cow<'_, str>> {
    let relation = grain.text("relation").map(words::humanize);
    let object = grain.get("object").map(words::value);
    match (relation.filter(|relation| !relation.is_empty()), object) {
        (Some(relation), Some(object)) => Some(Cow::Owned(format!("{relation} {object}"))),
        (Some(relation), None) => Some(Cow::Owned(relation)),
        (None, object) => object,
    }
}

fn triple(grain: &Grain) -> Option<Cow<'_, str>> {
    let subject = grain.text("subject")?;
    let relation = words::humanize(grain.text("relation")?);
    let object = words::value(grain.get("object")?);
    Some(Cow::Owned(format!("{subject} {relation} {object}")))
}

/// Joins the text blocks with newlines. Thinking and tool blocks are left out.
fn blocks(blocks: &[Value]) -> Option<Cow<'_, str>> {
    let texts: Vec<_> = blocks
        .iter()
        .filter_map(Value::as_map)
        .filter(|block| block.get("type").and_then(Value::as_str) == Some("text"))
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        many => Some(Cow::Owned(many.join("\n"))),
    }
}

fn numbered(steps: &[Value]) -> Cow<'_, str> {
    let steps = steps.iter().zip(1..);
    let lines: Vec<_> = steps.map(|(step, n)| format!("{n}. {}", words::value(step))).collect();
    Cow::Owned(lines.join("  "))
}

fn value_of<'a>(source: Source, item: &'a Item, clock: &Clock) -> Option<Cell<'a>> {
    let grain = &item.grain;
    let text = match source {
        Source::Field(name) => return grain.get(name).map(Cell::of),
        Source::FieldOr(name, default) => {
            return Some(grain.get(name).map_or(Cell::from(default), Cell::of));
        }
        Source::Inside(name, keys) => {
            let map = grain.map(name)?;
            return keys.iter().find_map(|key| map.get(*key)).map(Cell::of);
        }
        Source::Reworded(name, word, replacement) => {
            let text = grain.text(name)?;
            Cow::Borrowed(if text == word { replacement } else { text })
        }
        Source::Flag(name, no, yes) => Cow::Borrowed(if grain.flag(name)? { yes } else { no }),
        Source::List(name) => Cow::Owned(words::join(grain.list(name)?, ",")?),
        Source::Date(name) => Cow::Owned(date_or_iso(EpochMs::new(grain.int(name)?))),
        Source::Time => Cow::Owned(relative_time(grain.time(), clock)),
        Source::Verification => Cow::Borrowed(item.verification()?),
    };
    Some(Cell::Text(text))
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
