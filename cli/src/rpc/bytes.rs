//! Requests that are not UTF-8. If the invalid bytes are in a CAL query, the query is refused with the CAL
//! code (CAL-E070), and the response has the id of the request.

use std::ops::Range;

use grainstore::cal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::Fault;
use crate::error::Error;

/// The methods that take a query.
const CAL: [&str; 3] = ["cal", "prepare", "cal_stream"];

/// The members of a request that are read before it is refused.
#[derive(Deserialize)]
struct Members<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    method: String,
    #[serde(borrow)]
    params: Asked<'l>,
}

#[derive(Deserialize)]
struct Asked<'l> {
    #[serde(borrow)]
    query: &'l RawValue,
}

/// Returns the refusal of a query that is not UTF-8, with the range of the id. `None` if the line is no CAL
/// call, or the invalid bytes are elsewhere.
pub(super) fn of_query(line: &[u8]) -> Option<(Option<Range<usize>>, Fault)> {
    let plain = with_bad_bytes_as_signs(line);
    let members: Members<'_> = serde_json::from_str(&plain).ok()?;
    if !CAL.contains(&members.method.as_str()) {
        return None;
    }
    let first_bad = std::str::from_utf8(line).err()?.valid_up_to();
    let place = place(members.params.query, &plain);
    if !place.contains(&first_bad) {
        return None;
    }
    let query = unquoted(line.get(place.start..first_bad)?, line.get(first_bad..place.end)?);
    let error = cal::parse_bytes(&query).err()?;
    let fault = Error::cal(&error, &String::from_utf8_lossy(&query)).into();
    Some((members.id.map(|id| self::place(id, &plain)), fault))
}

/// Replaces each invalid byte by one ASCII character, so that all offsets stay the same.
fn with_bad_bytes_as_signs(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// Returns the range of a part of `text` in it.
fn place(part: &RawValue, text: &str) -> Range<usize> {
    let start = part.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start.saturating_add(part.get().len())
}

/// Returns the query without its JSON quoting, as far as it is valid, so that the position of the error is
/// one in the query and not in the line.
fn unquoted(before: &[u8], from_bad: &[u8]) -> Vec<u8> {
    let mut closed = before.to_vec();
    closed.push(b'"');
    let mut query = match serde_json::from_slice::<String>(&closed) {
        Ok(text) => text.into_bytes(),
        // A query in the JSON form has no quotes.
        Err(_) => before.to_vec(),
    };
    query.extend_from_slice(from_bad);
    query
}
