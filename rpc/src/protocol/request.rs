//! Parses a line into a JSON-RPC request, strictly. Parameters stay text, so that a grain reaches its parser
//! exactly as it was written.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::bytes::{self, UnreadableQuery};
use super::fault::Fault;
use crate::json::{Object, present};

/// Most bytes of an id, which is echoed in the bounded response.
const MAX_ID_BYTES: usize = 1024;

/// A request, or a notification if it has no id.
#[derive(Debug)]
pub(crate) struct Request<'l> {
    pub(crate) id: Option<&'l RawValue>,
    pub(crate) method: String,
    pub(crate) params: Option<&'l RawValue>,
}

/// A line that is no valid request, with its id if that is usable.
#[derive(Debug)]
pub(crate) struct Rejected<'l> {
    pub(crate) id: Option<&'l RawValue>,
    pub(crate) why: Rejection,
}

/// The reason a line is rejected.
#[derive(Debug)]
pub(crate) enum Rejection {
    Fault(Fault),
    /// A query that CAL refuses for its bytes, which is recorded.
    Query(UnreadableQuery),
}

/// The members of a request object, unparsed, so that one bad member does not hide the id.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members<'l> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'l RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'l RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'l RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'l RawValue>,
}

/// Parses a line.
pub(crate) fn parse(line: &[u8]) -> Result<Request<'_>, Rejected<'_>> {
    let reject = |id, fault| Err(Rejected { id, why: Rejection::Fault(fault) });
    let text = match std::str::from_utf8(line) {
        Ok(text) => Ok(text),
        Err(error) => match bytes::refuse_query(line) {
            Some((place, query)) => {
                let id = place.and_then(|place| usable_id(line.get(place)?));
                return Err(Rejected { id, why: Rejection::Query(query) });
            }
            None => Err(error.to_string()),
        },
    };
    let json = text.and_then(|text| {
        serde_json::from_str::<&RawValue>(text).map_err(|error| error.to_string())
    });
    let json = match json {
        Ok(json) => json,
        Err(message) => return reject(None, Fault::parse(&message)),
    };
    if json.get().starts_with('[') {
        return reject(None, Fault::invalid_request("batches are refused: one request a line"));
    }
    let members = match serde_json::from_str::<Object<Members<'_>>>(json.get()) {
        Ok(Object(members)) => members,
        Err(error) => return reject(None, Fault::invalid_request(&error.to_string())),
    };
    if members.id.is_some_and(|id| !is_usable(id)) {
        let message = format!("id must be a JSON scalar of at most {MAX_ID_BYTES} bytes");
        return reject(None, Fault::invalid_request(&message));
    }
    let id = members.id;
    let text = |member: Option<&'_ RawValue>| {
        member.and_then(|member| serde_json::from_str::<String>(member.get()).ok())
    };
    if text(members.jsonrpc).as_deref() != Some("2.0") {
        return reject(id, Fault::invalid_request("jsonrpc must be \"2.0\""));
    }
    match text(members.method) {
        Some(method) => {
            // A notification is not answered.
            let asked = members.params.filter(|_| id.is_some());
            match asked.and_then(|params| bytes::refuse_escapes(&method, params)) {
                Some(query) => Err(Rejected { id, why: Rejection::Query(query) }),
                None => Ok(Request { id, method, params: members.params }),
            }
        }
        None => reject(id, Fault::invalid_request("method must be a string")),
    }
}

/// Returns `true` if an id is a scalar, and short.
fn is_usable(id: &RawValue) -> bool {
    !id.get().starts_with(['{', '[']) && id.get().len() <= MAX_ID_BYTES
}

/// Parses an id from a line that is not UTF-8 as a whole.
fn usable_id(id: &[u8]) -> Option<&RawValue> {
    let id: &RawValue = serde_json::from_slice(id).ok()?;
    is_usable(id).then_some(id)
}
