//! Rows of values as text, for AS behind SELECT, COUNT, GROUP BY and the extractors.

use grainstore_format::Value;
use grainstore_sml::{CancelCheck, DisplayValue, Rows, Shape};

use super::assemble::text_error;
use super::project::cell_without_addresses;
use super::value::HitRef;
use super::{Executor, count};
use crate::ast::Extractor;
use crate::check::plan::RecallPlan;
use crate::error::Result;
use crate::fields::FieldRef;
use crate::memory::Hit;
use crate::response::GroupCount;
use crate::types;

impl Executor<'_> {
    /// The text of rows, where AS asks for one.
    pub(super) fn written<'a>(
        &mut self,
        plan: &RecallPlan,
        rows: impl FnOnce() -> Rows<'a>,
    ) -> Result<Option<String>> {
        let Some(format) = plan.rows else { return Ok(None) };
        let stops = || self.cancel.stop_reason().is_some();
        let text = rows().render(format, CancelCheck::from_fn(&stops));
        let text = text.map_err(|error| text_error(&error, &self.cancel, self.stop_error))?;
        self.usage.tokens_used += count(self.options.counter.count(&text));
        Ok(Some(text))
    }

    /// The fields a SELECT names, of grains that a text may show: not of reasonings that wait for their review.
    pub(super) fn selected(&mut self, plan: &RecallPlan, hits: &[Hit]) -> Result<Option<String>> {
        let Some(fields) = &plan.select else { return Ok(None) };
        self.written(plan, || {
            let row = |looked: HitRef<'_>| {
                let cell = |field: &FieldRef| {
                    looked.field(field).and_then(|value| cell_without_addresses(&value))
                };
                fields.iter().map(cell).collect()
            };
            let shown = hits.iter().map(HitRef::from).filter(|looked| !looked.awaits_review());
            Rows {
                shape: Shape::Table,
                name: plan.grain_type.map(types::plural_of),
                columns: fields.iter().map(|field| field.name).collect(),
                rows: shown.map(row).collect(),
            }
        })
    }

    /// The values an extractor takes out.
    pub(super) fn list(
        &mut self,
        plan: &RecallPlan,
        extractor: Extractor,
        values: &[Value],
    ) -> Result<Option<String>> {
        let name = extractor.text().to_ascii_lowercase();
        self.written(plan, || Rows {
            shape: Shape::List,
            name: Some(&name),
            columns: vec![name.trim_end_matches('s')],
            rows: values
                .iter()
                .filter_map(|value| Some(vec![Some(cell_without_addresses(value)?)]))
                .collect(),
        })
    }

    /// Groups, but those that only grains are in that no text shows.
    pub(super) fn tally(
        &mut self,
        plan: &RecallPlan,
        field: FieldRef,
        groups: &[GroupCount],
    ) -> Result<Option<String>> {
        self.written(plan, || {
            let shown = groups.iter().filter(|group| !group.requires_human_review);
            let row = |group: &GroupCount| {
                vec![
                    cell_without_addresses(&group.key),
                    Some(DisplayValue::Number(group.count.to_string())),
                ]
            };
            Rows {
                shape: Shape::Table,
                name: Some("groups"),
                columns: vec![field.name, "count"],
                rows: shown.map(row).collect(),
            }
        })
    }
}
