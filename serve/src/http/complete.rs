//! Completion of a statement for the console (docs/console.md), with values that the caller sees.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Response;
use grainstore::cal::CancelHandle;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::access::{Access, Caller};
use super::call::{CancelOnDrop, call, json_response, read_body};
use super::failure::{Failure, Result};
use super::state::Server;
use crate::completion::{ValuesOfGrains, complete_statement};

/// Grains whose values are offered: the newest ones.
const MAX_GRAINS: usize = 500;
/// How long values are offered before they are read again.
const KEPT: Duration = Duration::from_secs(10);
/// Most bytes of a request: a statement has 8,192.
const MAX_BYTES: usize = 64 << 10;

/// Values of the newest grains, and when they were read.
#[derive(Default)]
pub(super) struct Values(Mutex<Option<(Instant, Arc<ValuesOfGrains>)>>);

/// What is asked: the statement up to the cursor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    before: String,
}

/// The values that somebody sees; none where they cannot be read.
async fn values(access: &Access, held: impl Send + 'static) -> Arc<ValuesOfGrains> {
    let known = access.values.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((since, known)) = known
        && since.elapsed() < KEPT
    {
        return known;
    }
    let read = Arc::new(newest(access, held).await.unwrap_or_default());
    let kept = Some((Instant::now(), Arc::clone(&read)));
    *access.values.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    read
}

async fn newest(access: &Access, held: impl Send + 'static) -> Result<ValuesOfGrains> {
    let params = json!({ "limit": MAX_GRAINS });
    let params = to_raw_value(&params).map_err(grainstore_rpc::Error::from)?;
    let cancel = CancelHandle::new();
    let _ended = CancelOnDrop(cancel.clone());
    let page = call(&access.client, "query", params, cancel, held).await?;
    Ok(serde_json::from_str(page.get()).map_err(grainstore_rpc::Error::from)?)
}

/// Answers what may stand at the end of a statement: `start` is the place of the word that is replaced, in UTF-16 code
/// units as pages count them, and each candidate has its `text` and what it `insert`s.
pub(super) async fn respond(
    server: &Server,
    caller: &Caller,
    body: Body,
) -> Result<Response<Body>> {
    let body = read_body(body, MAX_BYTES).await?;
    let asked: Asked = serde_json::from_slice(&body)
        .map_err(|error| Failure::malformed(format!("give before, a text: {error}")))?;
    // One thread at a time works for it, and holds its turn to its end.
    let turn = Arc::new(server.gate.enter(&caller.access.running, false).await?);
    let values = values(&caller.access, Arc::clone(&turn)).await;
    let work = move || {
        let _turn = turn;
        let (start, found) = complete_statement(&asked.before, &[], &*values);
        let before = asked.before.get(..start).unwrap_or_default();
        let candidates = found
            .into_iter()
            .map(|found| json!({ "text": found.display, "insert": found.replacement }));
        json!({
            "start": before.encode_utf16().count(),
            "candidates": candidates.collect::<Vec<_>>(),
        })
    };
    // The parser takes a while for a long statement.
    let told = tokio::task::spawn_blocking(work).await;
    let told = told.map_err(|_| Failure::malformed("this statement cannot be completed"))?;
    Ok(json_response(told.to_string()))
}
