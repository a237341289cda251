//! Grains as text, for AS.

use grainstore_sml::{Clock, Disclosure, Item, Level, Watch, render_watched, summarize};

use super::Run;
use super::assemble::unwritten;
use super::project::chosen;
use crate::ast::Format;
use crate::check::plan::{ProjectPlan, Show};
use crate::error::Result;
use crate::limits;
use crate::memory::Hit;

impl Run<'_> {
    /// Grains as text; `asked` is how many were asked for.
    pub(super) fn show(
        &self,
        hits: &[Hit],
        format: Format,
        show: &Show,
        project: Option<&ProjectPlan>,
        asked: u64,
    ) -> Result<String> {
        let clock = self.clock(show.iso_timestamps);
        let items = self.items(hits, project, &clock)?;
        let level = match show.disclosure {
            Some(Disclosure::Fixed(level)) => level,
            Some(Disclosure::Auto) if asked <= limits::FEW => Level::Full,
            _ => Level::Standard,
        };
        let stops = || self.cancel.stopped().is_some();
        render_watched(&items, format, level, &clock, Watch::until(&stops))
            .map_err(|error| unwritten(&error, &self.cancel, self.stopped))
    }

    /// The sentences that say most of what the grains say, where someone asked for them.
    pub(super) fn summarize(
        &self,
        hits: &[Hit],
        show: &Show,
        project: Option<&ProjectPlan>,
    ) -> Result<Option<Vec<String>>> {
        if !show.summarize {
            return Ok(None);
        }
        let clock = self.clock(show.iso_timestamps);
        let stops = || self.cancel.stopped().is_some();
        summarize(&self.items(hits, project, &clock)?, &clock, Watch::until(&stops))
            .map(Some)
            .map_err(|error| unwritten(&error, &self.cancel, self.stopped))
    }

    /// The grains as items to be shown; a consensus that names its claim by address gets the text.
    pub(super) fn items(
        &self,
        hits: &[Hit],
        project: Option<&ProjectPlan>,
        clock: &Clock,
    ) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(hits.len());
        for hit in hits {
            self.go_on()?;
            if project.is_none() {
                self.gives_whole(&hit.grain)?;
            }
            let mut item = self.item(hit)?;
            item.chosen = project.map(|plan| chosen(plan, hit, &item, clock));
            items.push(item);
        }
        Ok(items)
    }

    fn item(&self, hit: &Hit) -> Result<Item> {
        let mut item = plain(hit);
        if let Some(address) = item.agreed_address()
            && let Some(agreed) = self.memory.get(&address)?
        {
            self.gives_whole(&agreed.grain)?;
            item.resolve_agreed(&plain(&agreed))?;
        }
        Ok(item)
    }
}

fn plain(hit: &Hit) -> Item {
    let status = hit.state.verification_status.name().to_owned();
    Item {
        grain: hit.grain.clone(),
        verification: Some(status),
        chosen: None,
        score: Some(hit.score.value),
    }
}
