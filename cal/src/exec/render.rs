//! Rendering of grains as text, for AS.

use grainstore_format::{Map, Value};
use grainstore_sml::{
    CancelCheck, Clock, Disclosure, DisplayValue, Item, Level, render_cancellable, summarize,
};

use super::Executor;
use super::assemble::text_error;
use super::project::project_grain;
use crate::ast::Format;
use crate::check::plan::{DisplayOptions, ProjectPlan};
use crate::error::Result;
use crate::limits;
use crate::memory::Hit;

impl Executor<'_> {
    /// Renders grains as text; `asked` is the number that was requested, by which progressive disclosure
    /// decides.
    pub(super) fn render(
        &self,
        hits: &[Hit],
        format: Format,
        show: &DisplayOptions,
        project: Option<&ProjectPlan>,
        asked: u64,
    ) -> Result<String> {
        let clock = self.clock(show.iso_timestamps);
        let items = self.items(hits, project, &clock)?;
        let level = match show.disclosure {
            Some(Disclosure::Fixed(level)) => level,
            Some(Disclosure::Auto) if asked <= limits::FULL_DISCLOSURE_LIMIT => Level::Full,
            _ => Level::Standard,
        };
        let stops = || self.cancel.stop_reason().is_some();
        render_cancellable(&items, format, level, &clock, CancelCheck::from_fn(&stops))
            .map_err(|error| text_error(&error, &self.cancel, self.stop_error))
    }

    /// Returns the fields a PROJECT selects of each grain if there is no format: its text as `content`, and
    /// the attributes.
    pub(super) fn project_rows(
        &self,
        hits: &[Hit],
        project: &ProjectPlan,
        show: &DisplayOptions,
    ) -> Result<Vec<Map>> {
        let clock = self.clock(show.iso_timestamps);
        let items = self.items(hits, Some(project), &clock)?;
        // Grains that no text shows, such as a reasoning with a pending review, stay empty.
        let shown = |item: &Item| {
            let shown = grainstore_sml::project(item, Level::Standard, &clock)?;
            let content = ("content".to_owned(), Value::from(shown.text.as_ref()));
            let named =
                shown.attributes.iter().map(|(name, cell)| (name.to_string(), cell_value(cell)));
            Some(named.chain([content]).collect())
        };
        Ok(items.iter().map(|item| shown(item).unwrap_or_default()).collect())
    }

    /// Returns the most informative sentences of the grains, WITH summarize.
    pub(super) fn summarize(
        &self,
        hits: &[Hit],
        show: &DisplayOptions,
        project: Option<&ProjectPlan>,
    ) -> Result<Option<Vec<String>>> {
        if !show.summarize {
            return Ok(None);
        }
        let clock = self.clock(show.iso_timestamps);
        let stops = || self.cancel.stop_reason().is_some();
        summarize(&self.items(hits, project, &clock)?, &clock, CancelCheck::from_fn(&stops))
            .map(Some)
            .map_err(|error| text_error(&error, &self.cancel, self.stop_error))
    }

    /// Converts grains to renderable items. A consensus that names its claim by address gets the text of that
    /// claim.
    pub(super) fn items(
        &self,
        hits: &[Hit],
        project: Option<&ProjectPlan>,
        clock: &Clock,
    ) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(hits.len());
        for hit in hits {
            self.check_stop()?;
            if project.is_none() {
                self.check_whole_grain(&hit.grain)?;
            }
            let mut item = self.item(hit)?;
            item.chosen = project.map(|plan| project_grain(plan, hit, &item, clock));
            items.push(item);
        }
        Ok(items)
    }

    fn item(&self, hit: &Hit) -> Result<Item> {
        let mut item = to_item(hit);
        if let Some(address) = item.agreed_address()
            && let Some(agreed) = self.memory.get(&address)?
        {
            self.check_whole_grain(&agreed.grain)?;
            item.resolve_agreed(&to_item(&agreed))?;
        }
        Ok(item)
    }
}

/// Converts a cell to its JSON value.
fn cell_value(cell: &DisplayValue<'_>) -> Value {
    match cell {
        DisplayValue::Flag(flag) => Value::from(*flag),
        DisplayValue::Number(digits) => match (digits.parse::<i64>(), digits.parse::<f64>()) {
            (Ok(whole), _) => Value::from(whole),
            (_, Ok(number)) => Value::from(number),
            _ => Value::from(digits.as_str()),
        },
        DisplayValue::Text(text) => Value::from(text.as_ref()),
    }
}

fn to_item(hit: &Hit) -> Item {
    let status = hit.state.verification_status.name().to_owned();
    Item {
        grain: hit.grain.clone(),
        verification: Some(status),
        chosen: None,
        score: Some(hit.score.value),
    }
}
