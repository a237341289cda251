//! The first fact of its subject and relation, where several sessions store one at the same time.
//!
//! No method stores a fact only if there is none. So the session looks again when its own is stored: all but the first,
//! in the order of the audit log, are taken back.

use serde_json::{Value, json};

use crate::mcp::failure::{Failure, Kind, Result};
use crate::memory::Calls;

/// Most facts, and most entries of the audit log, that are looked at.
const MOST: u64 = 1_000;

/// The end of the audit log before it was looked whether there is a fact.
pub(super) struct First {
    after: Option<u64>,
}

impl First {
    /// Begins; what is stored from now on by others is found later.
    pub(super) fn begin(store: &Calls<'_>) -> Self {
        // A session that is not shown the log cannot tell an order, and stores its fact as it would otherwise.
        let head = store.call("audit", &json!({ "limit": 1 })).ok();
        Self { after: head.and_then(|head| head.pointer("/head/sequence").and_then(Value::as_u64)) }
    }

    /// Takes a fact that was just stored back if another one of its subject and relation came before it.
    ///
    /// # Errors
    /// `ERR_CONFLICT` for one that was taken back; those of looking for others.
    pub(super) fn check(&self, address: &str, grain: &Value, store: &Calls<'_>) -> Result<()> {
        let Some(after) = self.after else { return Ok(()) };
        let others = others(address, grain, store)?;
        if others.is_empty() {
            return Ok(());
        }
        let log = store.call("audit", &json!({ "after": after, "limit": MOST }))?;
        let entries = log.get("entries").and_then(Value::as_array);
        let earlier = earlier(address, entries.map(Vec::as_slice).unwrap_or_default());
        match others.iter().find(|other| earlier.contains(&other.as_str())) {
            Some(other) => Err(take_back(address, other, store)),
            None => Ok(()),
        }
    }
}

/// The grains that were written before this one, and those that replaced them since.
fn earlier<'e>(address: &str, entries: &'e [Value]) -> Vec<&'e str> {
    let mut earlier = Vec::new();
    let mut is_later = false;
    for entry in entries {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let subjects = entry.get("subjects").and_then(Value::as_array);
        let subjects = subjects.map(Vec::as_slice).unwrap_or_default();
        let subjects: Vec<_> = subjects.iter().filter_map(Value::as_str).collect();
        if text("decision") != Some("done") {
            continue;
        }
        is_later |= subjects.contains(&address);
        let replaces = text("operation") == Some("supersede")
            && subjects.iter().any(|subject| earlier.contains(subject));
        if !is_later || replaces {
            earlier.extend(subjects);
        }
    }
    earlier
}

/// The other current facts of the same subject, relation and namespace that the session sees.
fn others(address: &str, grain: &Value, store: &Calls<'_>) -> Result<Vec<String>> {
    let member = |name: &str| grain.get(name).cloned().unwrap_or_default();
    let of = json!({ "subject": member("subject"), "relation": member("relation") });
    let found = store.call("query", &json!({ "where": of, "limit": MOST }))?;
    let found = found.get("results").and_then(Value::as_array);
    let found = found.map(Vec::as_slice).unwrap_or_default().iter();
    let same_place = |found: &&Value| {
        let of = found.pointer("/grain/namespace").cloned().unwrap_or_default();
        of == member("namespace")
    };
    let addresses = found.filter(same_place).filter_map(|found| found.get("content_address"));
    let addresses = addresses.filter_map(Value::as_str).filter(|other| *other != address);
    Ok(addresses.map(str::to_owned).collect())
}

/// Retracts a fact in favour of another; the error that tells it.
fn take_back(address: &str, other: &str, store: &Calls<'_>) -> Failure {
    let reason = format!("stored at the same time as {other}, which came first");
    let call = json!({ "address": address, "status": "retracted", "reason": reason });
    let retracted = store.call("set_verification", &call).map_err(Failure::from);
    let of = "another fact of this subject and relation was stored at the same time";
    let message = match retracted {
        Ok(_) => format!("{of}: {other}"),
        Err(refused) => {
            format!("{of}: {other}; this one is stored too, as {address}: {}", refused.message)
        }
    };
    Failure::new(
        Kind::Conflict,
        message,
        "recall what is current, and give its address in replaces",
    )
}
