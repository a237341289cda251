//! Applies the table to an item: the text and the attributes of a grain, before any format.
//!
//! Text is returned as stored. Each format escapes it, and drops what it cannot represent.

use std::borrow::Cow;

use grainstore_format::{EpochMs, Grain, GrainType, Value};

use crate::display_value::DisplayValue;
use crate::item::{ChosenFields, Item, parse_address};
use crate::level::Level;
use crate::table::{self, Attribute, AttributeSource, TextRule};
use crate::time::{Clock, date_or_iso, relative_time};
use crate::words;

/// The text and the attributes that are shown of one grain, as [`project`](crate::project()) finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection<'a> {
    /// The type, one of the ten standard ones. Its canonical name is the SML element.
    pub grain_type: GrainType,
    /// Names and values in output order. Absent and empty ones are left out.
    pub attributes: Vec<(Cow<'a, str>, DisplayValue<'a>)>,
    /// The text; empty if the grain has none.
    pub text: Cow<'a, str>,
    /// `true` if a query chose the attributes, so that they are not those of the type.
    pub(crate) chosen: bool,
}

/// Projects an item at a level. `None` for an item that must not be shown: an opaque type, or a
/// reasoning that waits for human review (CAL 10.3.2, ruling 46).
///
/// ```
/// use grainstore_format::{BeliefBuilder, EpochMs};
/// use grainstore_sml::{Clock, Item, Level, project};
///
/// let created_at = EpochMs::new(1_768_471_200_000);
/// let grain = BeliefBuilder::new(created_at, "alice", "mg:works_at", "Acme", 0.9).build()?;
/// let item = Item { grain, verification: None, chosen: None, score: None };
/// let clock = Clock { now: created_at, iso_timestamps: false };
/// let shown = project(&item, Level::Standard, &clock);
/// assert_eq!(shown.map(|shown| shown.text.into_owned()).as_deref(), Some("works at Acme"));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[must_use]
pub fn project<'a>(item: &'a Item, level: Level, clock: &Clock) -> Option<Projection<'a>> {
    let grain_type = item.grain.grain_type();
    let row = table::rule_for(grain_type).filter(|_| item.is_displayable())?;
    if let Some(chosen) = &item.chosen {
        return Some(project_chosen(chosen, &item.grain));
    }
    let attributes = row
        .attributes
        .iter()
        .chain(&table::FULL_LEVEL_ATTRIBUTES)
        .filter(|attribute| attribute.min_level <= level)
        .filter_map(|Attribute { name, value, .. }| {
            let value =
                attribute_value(*value, item, clock).filter(|cell| !cell.as_str().is_empty())?;
            Some((Cow::Borrowed(*name), value))
        })
        .collect();
    let text = projected_text(&item.grain).unwrap_or_default();
    Some(Projection { grain_type, attributes, text, chosen: false })
}

/// Projects exactly the fields a query chose.
fn project_chosen<'a>(chosen: &'a ChosenFields, grain: &'a Grain) -> Projection<'a> {
    let there = chosen.attributes.iter().filter(|(_, cell)| !cell.as_str().is_empty());
    let text = chosen.text.as_deref().map(Cow::Borrowed);
    Projection {
        grain_type: grain.grain_type(),
        attributes: there
            .map(|(name, cell)| (Cow::from(name.as_str()), cell.as_borrowed()))
            .collect(),
        text: text.or_else(|| projected_text(grain)).unwrap_or_default(),
        chosen: true,
    }
}

/// Iterates over the names of all attributes of all types, each once; [`attribute`] finds their values.
pub fn attribute_names() -> impl Iterator<Item = &'static str> {
    table::attribute_names()
}

/// Returns the attribute of this name, if the type of the grain shows it at any level.
///
/// ```
/// use grainstore_format::{EpochMs, EventBuilder};
/// use grainstore_sml::{Clock, Item, attribute, attribute_names};
///
/// let grain = EventBuilder::new(EpochMs::new(0), "alice said hello").role("user").build()?;
/// let item = Item { grain, verification: None, chosen: None, score: None };
/// let clock = Clock { now: EpochMs::new(1_000), iso_timestamps: false };
/// assert_eq!(attribute(&item, "role", &clock), Some("user".into()));
/// assert_eq!(attribute(&item, "confidence", &clock), None);
/// assert!(attribute_names().any(|name| name == "confidence"));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[must_use]
pub fn attribute<'a>(item: &'a Item, name: &str, clock: &Clock) -> Option<DisplayValue<'a>> {
    let row = table::rule_for(item.grain.grain_type())?;
    let mut all = row.attributes.iter().chain(&table::FULL_LEVEL_ATTRIBUTES);
    let found = all.find(|attribute| attribute.name == name)?;
    attribute_value(found.value, item, clock).filter(|cell| !cell.as_str().is_empty())
}

impl Item {
    /// Replaces the address by the text of the `agreed` grain, for display only: the grain held
    /// afterwards is no longer the stored one.
    ///
    /// # Errors
    /// The errors of [`Grain::from_fields`], if the grain is not valid with the text.
    pub fn resolve_agreed(&mut self, agreed: &Self) -> grainstore_format::Result<()> {
        let shown = self.agreed_address().is_some() && agreed.is_displayable();
        let Some(text) = projected_text(&agreed.grain).filter(|_| shown) else {
            return Ok(());
        };
        let mut fields = self.grain.fields().clone();
        // A grain that is read may say so, to no effect, and none that is made may.
        fields.remove("contradicted");
        fields.insert("agreed_content".to_owned(), Value::from(text.into_owned()));
        self.grain = Grain::from_fields(fields)?;
        Ok(())
    }
}

/// Returns the text of a grain, which is the same at every level.
pub(crate) fn projected_text(grain: &Grain) -> Option<Cow<'_, str>> {
    let row = table::rule_for(grain.grain_type())?;
    row.text.iter().find_map(|rule| apply_text_rule(*rule, grain).filter(|text| !text.is_empty()))
}

fn apply_text_rule(rule: TextRule, grain: &Grain) -> Option<Cow<'_, str>> {
    match rule {
        TextRule::Claim => claim(grain),
        TextRule::Triple => triple(grain),
        TextRule::Field(name) => grain.get(name).map(words::value),
        TextRule::InPhase(phase, name) => {
            let value = grain.get(name).filter(|_| grain.text("action_phase") == Some(phase));
            value.map(words::value)
        }
        TextRule::UnlessAddress(name) => {
            let points = grain.text(name).and_then(parse_address).is_some();
            grain.get(name).filter(|_| !points).map(words::value)
        }
        TextRule::Blocks(name) => blocks(grain.list(name)?),
        TextRule::Joined(name, separator) => {
            words::join(grain.list(name)?, separator).map(Cow::Owned)
        }
        TextRule::Numbered(name) => Some(numbered(grain.list(name)?)),
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

fn attribute_value<'a>(
    source: AttributeSource,
    item: &'a Item,
    clock: &Clock,
) -> Option<DisplayValue<'a>> {
    let grain = &item.grain;
    let text = match source {
        AttributeSource::Field(name) => return grain.get(name).map(DisplayValue::of),
        AttributeSource::FieldOr(name, default) => {
            return Some(grain.get(name).map_or(DisplayValue::from(default), DisplayValue::of));
        }
        AttributeSource::MapEntry(name, keys) => {
            let map = grain.map(name)?;
            return keys.iter().find_map(|key| map.get(*key)).map(DisplayValue::of);
        }
        AttributeSource::Replaced(name, word, replacement) => {
            let text = grain.text(name)?;
            Cow::Borrowed(if text == word { replacement } else { text })
        }
        AttributeSource::Flag(name, no, yes) => {
            Cow::Borrowed(if grain.flag(name)? { yes } else { no })
        }
        AttributeSource::List(name) => Cow::Owned(words::join(grain.list(name)?, ",")?),
        AttributeSource::Date(name) => Cow::Owned(date_or_iso(EpochMs::new(grain.int(name)?))),
        AttributeSource::Time => Cow::Owned(relative_time(grain.time(), clock)),
        AttributeSource::Verification => Cow::Borrowed(item.verification()?),
    };
    Some(DisplayValue::Text(text))
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
