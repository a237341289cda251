//! The grains that a record was in: all its versions.

use grainstore::format::Value as Field;
use grainstore::{ContentAddress, Session};

use crate::alf::agent::RecordRow;
use crate::alf::names::PROFILE;
use crate::error::Result;

/// Most versions of a record that are walked.
const MAX_VERSIONS: usize = 100_000;

/// Returns the addresses of all versions of a record, the newest first.
pub(super) fn lineage(session: &Session, id: &str, row: &RecordRow) -> Result<Vec<ContentAddress>> {
    let address = row.address.parse::<ContentAddress>()?;
    if row.native.is_some() {
        return Ok(vec![address]);
    }
    let mut next = Some(address);
    let mut versions = Vec::new();
    while let Some(address) = next.take().filter(|_| versions.len() < MAX_VERSIONS) {
        let Ok(stored) = session.inspect(&address) else { break };
        let grain = stored.grain()?;
        let own = grain.map("context").and_then(|context| context.get(&PROFILE.key("id")));
        // What a record took the place of may be another record.
        if own.and_then(Field::as_str).is_none_or(|own| !own.eq_ignore_ascii_case(id)) {
            break;
        }
        versions.push(address);
        next = grain.texts("derived_from").next().map(str::parse).transpose()?;
    }
    Ok(versions)
}
