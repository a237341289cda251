//! Requests that are not UTF-8, or have half of a surrogate pair as an escape. If that is in a
//! CAL query, the query is refused with the CAL code (CAL-E070), and the response has the id of
//! the request.

use std::fmt;
use std::ops::Range;

use grainstore::Session;
use grainstore::cal::{self, Tier};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Error;

/// The methods that take a query.
const QUERY_METHODS: [&str; 3] = ["cal", "prepare", "cal_stream"];

/// A query that is not UTF-8.
#[derive(Debug)]
pub(crate) struct UnreadableQuery {
    /// Its bytes, without JSON quoting.
    pub(crate) query: Vec<u8>,
    pub(crate) error: cal::Error,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

/// Returns the refusal of a query that is not UTF-8, recorded if a store is open.
pub(crate) fn refused(session: Option<&Session>, unreadable: UnreadableQuery) -> Error {
    let UnreadableQuery { query, error, namespace, user_id, agent_id } = unreadable;
    let error = match session {
        Some(own) => {
            // A session that it may not ask for is not recorded in the place of its own.
            let narrowed = own.narrower_part(namespace, user_id, agent_id);
            let session = narrowed.unwrap_or_else(|_| own.clone());
            session.record_failed_call(&query, Tier::Read, error)
        }
        None => error,
    };
    Error::from_cal(&error, &String::from_utf8_lossy(&query))
}

/// The members of a request that are read before it is refused.
#[derive(serde::Deserialize)]
struct Members<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    method: String,
    #[serde(borrow)]
    params: Asked<'l>,
}

#[derive(serde::Deserialize)]
struct Asked<'l> {
    #[serde(borrow)]
    query: &'l RawValue,
    namespace: Option<Value>,
    user_id: Option<Value>,
    agent_id: Option<Value>,
}

/// Returns the query that is not UTF-8, with the range of the id. `None` if the line is no CAL call, or the
/// invalid bytes are elsewhere.
pub(crate) fn refuse_query(line: &[u8]) -> Option<(Option<Range<usize>>, UnreadableQuery)> {
    let plain = replace_invalid_bytes(line);
    let Members { id, method, params } = serde_json::from_str(&plain).ok()?;
    if !QUERY_METHODS.contains(&method.as_str()) {
        return None;
    }
    let first_bad = std::str::from_utf8(line).err()?.valid_up_to();
    let place = range_in(params.query, &plain);
    if !place.contains(&first_bad) {
        return None;
    }
    let unreadable = params.unreadable(unquote(line.get(place)?))?;
    Some((id.map(|id| range_in(id, &plain)), unreadable))
}

/// Returns the query of a call whose escapes are no Unicode text: half of a surrogate pair
/// stands alone.
pub(crate) fn refuse_escapes(method: &str, params: &RawValue) -> Option<UnreadableQuery> {
    if !QUERY_METHODS.contains(&method) || !params.get().contains("\\u") {
        return None;
    }
    let params: Asked<'_> = serde_json::from_str(params.get()).ok()?;
    let query = unquote(params.query.get().as_bytes());
    std::str::from_utf8(&query).err()?;
    params.unreadable(query)
}

impl Asked<'_> {
    /// The query that CAL refuses for its bytes, with what else was given.
    fn unreadable(self, query: Vec<u8>) -> Option<UnreadableQuery> {
        let error = cal::parse_bytes(&query).err()?;
        let text = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        Some(UnreadableQuery {
            query,
            error,
            namespace: text(self.namespace),
            user_id: text(self.user_id),
            agent_id: text(self.agent_id),
        })
    }
}

/// Replaces each invalid byte by one ASCII character, so that all offsets stay the same.
fn replace_invalid_bytes(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// Returns the range of a part of `text` in it.
fn range_in(part: &RawValue, text: &str) -> Range<usize> {
    let start = part.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start.saturating_add(part.get().len())
}

/// Returns a query without its JSON quoting, if it has any: positions are those in the query, and so is its
/// hash.
fn unquote(sent: &[u8]) -> Vec<u8> {
    // A query in the JSON form has no quotes.
    serde_json::from_slice(sent).map_or_else(|_| sent.to_vec(), |Bytes(query)| query)
}

/// The content of a JSON string that need not be UTF-8.
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_bytes(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(bytes.to_vec()))
    }
}
