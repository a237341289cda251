//! The rows of the table `index.meta`: the layout stamp, the watermark, the id counters and others.

use redb::{ReadableTable, TableDefinition};

use crate::error::{Error, Result};
use crate::layout;
use crate::posting::Watermark;
use crate::term::NextIds;

/// The layout stamp, the id counters, the watermark, the runs, and in an encrypted store the seal of these.
pub(crate) const META: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("index.meta");

pub(crate) const STAMP: &str = "stamp";
pub(crate) const WATERMARK: &str = "watermark";
pub(crate) const NEXT_IDS: &str = "next_ids";
/// The runs there are: see [`RunDirectory`](crate::run::directory::RunDirectory).
pub(crate) const RUNS: &str = "runs";
/// Row of the table `index.meta` with what the engine knew of the history of the log at the last
/// [`fold`](crate::fold()).
pub const HISTORY: &str = "history";

/// The layout version of the tables.
pub(crate) fn stamp(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Option<u32>> {
    let Some(row) = meta.get(STAMP)? else {
        return Ok(None);
    };
    match row.value().try_into() {
        Ok(version) => Ok(Some(u32::from_be_bytes(version))),
        Err(_) => Err(Error::integrity("the index stamp is not four bytes")),
    }
}

/// The watermark of the tables.
pub(crate) fn watermark(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<Watermark>> {
    let Some(row) = meta.get(WATERMARK)? else {
        return Ok(None);
    };
    match layout::decode_watermark(row.value()) {
        Some(mark) => Ok(Some(mark)),
        None => Err(Error::integrity("the index watermark is not forty bytes")),
    }
}

/// Stores the watermark of the tables.
pub(crate) fn set_watermark(
    meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    mark: &Watermark,
) -> Result<()> {
    meta.insert(WATERMARK, layout::watermark_row(mark).as_slice())?;
    Ok(())
}

/// The id counters of the dictionary.
pub(crate) fn next_ids(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<NextIds> {
    let row = meta.get(NEXT_IDS)?;
    let ids = row.and_then(|row| layout::decode_next_ids(row.value()));
    ids.ok_or_else(|| Error::integrity("the index has no readable counters"))
}

/// Stores the id counters of the dictionary.
pub(crate) fn set_next_ids(
    meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
    ids: &NextIds,
) -> Result<()> {
    meta.insert(NEXT_IDS, layout::next_ids_row(ids).as_slice())?;
    Ok(())
}
