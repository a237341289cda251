//! PROJECT (CAL 10.3.5): the values a query chose to show of a grain, for every format.

use std::borrow::Cow;

use grainstore_format::{ContentAddress, EpochMs, Grain, Value, int_key};
use grainstore_sml::{
    ChosenFields, Clock, DisplayValue, Item, attribute, date_or_iso, humanize, relative_time,
};

use super::value::HitRef;
use crate::check::plan::{ProjectPlan, ProjectedField};
use crate::fields::Field;
use crate::memory::Hit;

/// Returns what a PROJECT shows of a grain.
pub(super) fn project_grain(
    plan: &ProjectPlan,
    hit: &Hit,
    item: &Item,
    clock: &Clock,
) -> ChosenFields {
    let cell = |projected: &ProjectedField| projected_cell(projected, hit, item, clock);
    let text = plan.content.as_ref().map(|fields| {
        let cells: Vec<_> = fields.iter().filter_map(cell).collect();
        cells.iter().map(DisplayValue::as_str).collect::<Vec<_>>().join(" ")
    });
    let attributes = plan.attr.iter().filter_map(|one| Some((one.name().to_owned(), cell(one)?)));
    ChosenFields { text, attributes: attributes.collect() }
}

fn projected_cell(
    projected: &ProjectedField,
    hit: &Hit,
    item: &Item,
    clock: &Clock,
) -> Option<DisplayValue<'static>> {
    let value = match projected {
        ProjectedField::Attribute(name) => {
            return attribute(item, name, clock).map(DisplayValue::into_owned);
        }
        ProjectedField::Field(field) => return field_cell(field, hit, item, clock),
        ProjectedField::Domain(name) => domain_value(&hit.grain, name)?,
        ProjectedField::Payload(name) => hit.grain.get(name)?,
    };
    cell_without_addresses(value)
}

fn field_cell(
    field: &Field,
    hit: &Hit,
    item: &Item,
    clock: &Clock,
) -> Option<DisplayValue<'static>> {
    let value = || HitRef::from(hit).field(field);
    match field.name {
        "time" => Some(text_cell(relative_time(hit.grain.time(), clock))),
        "deadline" | "expires_at" => {
            Some(text_cell(date_or_iso(EpochMs::new(hit.grain.int(field.payload)?))))
        }
        "relation" => Some(text_cell(humanize(hit.grain.text("relation")?))),
        "tags" => attribute(item, "tags", clock).map(DisplayValue::into_owned),
        _ => cell_without_addresses(&value()?),
    }
}

/// Returns a field of a domain profile: at top level, else in `context`, where `int:` fields also have short
/// keys.
fn domain_value<'g>(grain: &'g Grain, name: &str) -> Option<&'g Value> {
    let inside = || {
        let context = grain.map("context")?;
        std::iter::once(name).chain(int_key(name)).find_map(|key| context.get(key))
    };
    grain.get(name).or_else(inside)
}

/// Returns a value as a cell, without the addresses in it, which no formatted text shows (CAL 14.2). `None`
/// if that leaves it empty.
pub(super) fn cell_without_addresses(value: &Value) -> Option<DisplayValue<'static>> {
    let parts: Vec<&Value> = match value.as_array() {
        Some(list) => list.iter().filter(|part| !is_address(part)).collect(),
        None if is_address(value) => return None,
        None => return Some(DisplayValue::of(value).into_owned()),
    };
    let texts: Vec<_> = parts.iter().map(|part| DisplayValue::of(part)).collect();
    let joined = texts.iter().map(DisplayValue::as_str).collect::<Vec<_>>().join(", ");
    (!joined.is_empty()).then(|| text_cell(joined))
}

fn is_address(value: &Value) -> bool {
    let digits = value.as_str().map(ContentAddress::digits);
    digits.is_some_and(|digits| digits.parse::<ContentAddress>().is_ok())
}

fn text_cell(text: String) -> DisplayValue<'static> {
    DisplayValue::Text(Cow::Owned(text))
}
