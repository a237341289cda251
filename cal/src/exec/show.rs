//! Grains as text, for AS.

use grainstore_sml::{Disclosure, Item, Level, render};

use super::Run;
use crate::ast::Format;
use crate::check::plan::Show;
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
        asked: u64,
    ) -> Result<String> {
        let items = self.items(hits)?;
        let clock = self.clock(show.iso_timestamps);
        let level = match show.disclosure {
            Some(Disclosure::Fixed(level)) => level,
            Some(Disclosure::Auto) if asked <= limits::FEW => Level::Full,
            _ => Level::Standard,
        };
        Ok(render(&items, format, level, &clock))
    }

    /// The grains as items to be shown; a consensus that names its claim by address gets the text.
    pub(super) fn items(&self, hits: &[Hit]) -> Result<Vec<Item>> {
        hits.iter().map(|hit| self.item(hit)).collect()
    }

    fn item(&self, hit: &Hit) -> Result<Item> {
        let mut item = plain(hit);
        if let Some(address) = item.agreed_address()
            && let Some(agreed) = self.memory.get(&address)?
        {
            item.resolve_agreed(&plain(&agreed))?;
        }
        Ok(item)
    }
}

fn plain(hit: &Hit) -> Item {
    let status = hit.state.verification_status.name().to_owned();
    Item { grain: hit.grain.clone(), verification: Some(status) }
}
