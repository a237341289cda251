//! Grains as resources: `grain://ADDRESS`.

use rmcp::model::{
    CacheScope, ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};

use super::answer::uri;
use super::arguments::address;
use super::failure::Failure;
use super::tools::plain;
use crate::memory::{Calls, Memory, Ticket};

/// Grains of a page of the list.
const PAGE: u64 = 20;
/// Longest title, in bytes.
const MAX_TITLE_BYTES: usize = 120;
const JSON: &str = "application/json";

/// How a grain is named.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new("grain://{address}", "grain")
        .with_title("A grain by its address")
        .with_description("All fields of one grain and its state")
        .with_mime_type(JSON)
}

/// Lists the newest grains.
pub(super) async fn list(
    memory: &Memory,
    ticket: Ticket,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ErrorData> {
    let mut query = json!({ "limit": PAGE });
    if let (Some(cursor), Value::Object(query)) = (cursor, &mut query) {
        query.insert("cursor".to_owned(), Value::from(cursor));
    }
    let work = move |store: &Calls<'_>| Ok::<_, Failure>(store.call("query", &query)?);
    let answer = memory.with(ticket, work).await.map_err(Failure::into_error)?;
    let found = answer.get("results").and_then(Value::as_array);
    let found = found.map(Vec::as_slice).unwrap_or_default().iter().filter_map(resource);
    let mut list = ListResourcesResult::with_all_items(found.collect());
    list.next_cursor = answer.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
    (list.ttl_ms, list.cache_scope) = (Some(0), Some(CacheScope::Private));
    Ok(list)
}

/// A grain in a list.
fn resource(found: &Value) -> Option<Resource> {
    let address = found.get("content_address").and_then(Value::as_str)?;
    let grain = found.get("grain")?;
    let said = ["subject", "relation", "object", "content"]
        .iter()
        .filter_map(|name| grain.get(name)?.as_str());
    let said = said.collect::<Vec<_>>().join(" ");
    let kind = grain.get("type").and_then(Value::as_str).unwrap_or("grain");
    let title = plain(&format!("{kind}: {said}"), MAX_TITLE_BYTES);
    let name = address.get(..12).unwrap_or(address);
    Some(Resource::new(uri(address), name).with_title(title).with_mime_type(JSON))
}

/// Reads a grain: its fields and its state.
pub(super) async fn read(
    memory: &Memory,
    ticket: Ticket,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let unknown = |uri: &str| {
        let shown: String = uri.chars().take(100).collect();
        ErrorData::resource_not_found(
            format!("no resource {shown:?}"),
            Some(json!({ "uri": shown })),
        )
    };
    if !uri.starts_with("grain://") {
        return Err(unknown(&uri));
    }
    let Ok(of) = address(&uri) else { return Err(unknown(&uri)) };
    let work =
        move |store: &Calls<'_>| Ok::<_, Failure>(store.call("get", &json!({ "address": of }))?);
    let stored = memory.with(ticket, work).await.map_err(|failure| {
        match failure.has_code("ERR_NOT_FOUND") {
            true => unknown(&uri),
            false => failure.into_error(),
        }
    })?;
    let kept = ["address", "grain", "state", "signature"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), stored.get(name)?.clone())));
    let text = Value::Object(kept.collect()).to_string();
    let contents = ResourceContents::text(text, uri).with_mime_type(JSON);
    // The fields never change, the state does.
    let result = ReadResourceResult::new(vec![contents]);
    Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}
