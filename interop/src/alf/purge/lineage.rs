//! The grains that a record was in: all its versions.

use grainstore::format::Value as Field;
use grainstore::{ContentAddress, Grain, Session};

use crate::alf::agent::RecordRow;
use crate::alf::names::{AFTER, PROFILE};
use crate::error::Result;

/// Most versions of a record that are walked.
const MAX_VERSIONS: usize = 100_000;

/// Returns the addresses of all versions of a record, the newest first.
pub(super) fn lineage(session: &Session, id: &str, row: &RecordRow) -> Result<Vec<ContentAddress>> {
    let address = row.address.parse::<ContentAddress>()?;
    if row.native.is_some() {
        return Ok(vec![address]);
    }
    let mut next = Some(newest(session, id, address)?);
    let mut versions = Vec::new();
    while let Some(address) = next.take().filter(|_| versions.len() < MAX_VERSIONS) {
        let Ok(stored) = session.inspect(&address) else { break };
        let grain = stored.grain()?;
        // What a record took the place of may be another record.
        if !is_of(&grain, id) {
            break;
        }
        versions.push(address);
        let after = grain.map("context").and_then(|context| context.get(&PROFILE.key(AFTER)));
        let before = grain.texts("derived_from").next().or(after.and_then(Field::as_str));
        next = before.map(str::parse).transpose()?;
    }
    Ok(versions)
}

/// Returns the newest version: an import that was interrupted may have left one that the row does not know.
fn newest(session: &Session, id: &str, noted: ContentAddress) -> Result<ContentAddress> {
    let mut address = noted;
    for _ in 0..MAX_VERSIONS {
        let Ok(stored) = session.inspect(&address) else { return Ok(address) };
        let Some(newer) = stored.state.superseded_by else { return Ok(address) };
        let is_own = match session.inspect(&newer) {
            Ok(newer) => is_of(&newer.grain()?, id),
            Err(_) => false,
        };
        if !is_own {
            return Ok(address);
        }
        address = newer;
    }
    Ok(address)
}

/// Returns `true` for a grain of the record with this id.
fn is_of(grain: &Grain, id: &str) -> bool {
    let own = grain.map("context").and_then(|context| context.get(&PROFILE.key("id"))?.as_str());
    own.is_some_and(|own| own.eq_ignore_ascii_case(id))
}
