//! Newline-delimited JSON-RPC 2.0 (docs/rpc.md).
//!
//! - `request`: parses a line into a request, or an error (`bytes`: for lines that are not UTF-8).
//! - `methods`: the table of methods.
//! - `fault`: errors in the form of the protocol.

mod bytes;
mod fault;
mod methods;
mod request;

use std::io::{BufRead, Write};

use serde_json::value::RawValue;
use zeroize::Zeroize as _;

use crate::answer::Answer;
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::lines::{Line, MAX_REQUEST_BYTES, read_line, read_whole_line, skip_line};
use crate::operations::stream::Events;
use crate::patience::Patience;
use crate::sharing::{Call, Conversation};

use bytes::{UnreadableQuery, refused};
use fault::Fault;
use methods::answer;
pub(crate) use methods::{is_of_store, run};
use request::{Rejected, Rejection, Request, parse};

/// Bytes of the request buffer that are kept for the next request.
const RETAINED_BUFFER_BYTES: usize = 1 << 20;

/// Answers the requests of one connection, one a line, until their end, and closes its store. Events of a
/// stream wait for their reader as `patience` has it. With `test_clock` there is the method `clock`.
///
/// ```
/// use grainstore_rpc::{Patience, serve};
///
/// let requests = r#"{"jsonrpc": "2.0", "id": 1, "method": "exists"}"#;
/// let mut responses = Vec::new();
/// serve(&mut requests.as_bytes(), &mut responses, &Patience::default(), false)?;
/// assert!(String::from_utf8_lossy(&responses).contains(r#""error""#));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
///
/// # Errors
/// Those of reading requests, writing responses, and closing the store.
pub fn serve(
    requests: &mut dyn BufRead,
    responses: &mut dyn Write,
    patience: &Patience,
    test_clock: bool,
) -> Result<()> {
    let mut host = Host::new(test_clock, converse);
    let served = answer_all(&mut host, requests, responses, patience);
    let closed = host.close();
    served.and(closed)
}

/// Answers the requests of another process that shares the store.
pub(crate) fn converse(with: Conversation<'_>) -> Result<()> {
    let Conversation { session, hosting, cancels, requests, responses } = with;
    let mut host = Host::joined(session, hosting, cancels);
    answer_all(&mut host, requests, responses, &Patience::default())
}

/// Answers requests in order until the end of input.
fn answer_all(
    host: &mut Host,
    requests: &mut dyn BufRead,
    responses: &mut dyn Write,
    patience: &Patience,
) -> Result<()> {
    let unreadable =
        |error| Error::new(Code::Io, format!("cannot read stdin: {error}"), "check what feeds it");
    let mut line = Vec::new();
    loop {
        let read = match host.is_fixed() {
            // Another process takes a request that it could not send whole for one that was not done.
            true => read_whole_line(requests, &mut line, MAX_REQUEST_BYTES),
            false => read_line(requests, &mut line, MAX_REQUEST_BYTES),
        };
        match read.map_err(unreadable)? {
            Line::End => return Ok(()),
            Line::TooLong => {
                respond(responses, None, Err(Fault::request_too_large(MAX_REQUEST_BYTES)))?;
                skip_line(requests).map_err(unreadable)?;
            }
            Line::Read => handle(host, &line, responses, patience)?,
        }
        // It may hold a key.
        line.as_mut_slice().zeroize();
        if patience.is_stopped() {
            return Err(Error::new(Code::Cancelled, "a signal ended the connection", ""));
        }
        line.clear();
        line.shrink_to(RETAINED_BUFFER_BYTES);
    }
}

/// Answers one request; a notification gets no response.
fn handle(
    host: &mut Host,
    line: &[u8],
    responses: &mut dyn Write,
    patience: &Patience,
) -> Result<()> {
    match parse(line) {
        Ok(Request { id: Some(id), method, params }) => {
            let mut events = Events::of(responses, Some(id), patience, host.new_cancel());
            let call = Call { id: id.get(), method: &method, params };
            let answer = answer(host, &call, &mut events);
            events.finish()?;
            respond(responses, Some(id), answer)
        }
        Ok(Request { id: None, method, params }) => {
            // By the protocol a notification gets no response, not even an error.
            let call = Call { id: "0", method: &method, params };
            let cancel = host.new_cancel();
            let _ = answer(host, &call, &mut Events::of(responses, None, patience, cancel));
            Ok(())
        }
        Err(Rejected { id, why }) => {
            let fault = match why {
                Rejection::Fault(fault) => fault,
                Rejection::Query(query) => refuse_query(host, line, query),
            };
            respond(responses, id, Err(fault))
        }
    }
}

/// Refuses a query that cannot be read; the store records it, here or where it is open.
fn refuse_query(host: &mut Host, line: &[u8], query: UnreadableQuery) -> Fault {
    let Some(store) = host.store() else { return refused(host.session().ok(), query).into() };
    let call = Call { id: "0", method: "cal", params: None };
    let query = std::cell::Cell::new(Some(query));
    let answered = store.with(
        &call,
        |session, _| match query.take() {
            Some(query) => refused(Some(&session), query).into(),
            None => Fault::invalid_request("the query is not UTF-8"),
        },
        |connection, _| {
            let answered = connection.exchange(line, &|| false, &mut |_| Ok(()))?;
            Ok(answered.map_or_else(
                |fault| Fault::of_json(&fault),
                |_| Fault::invalid_request("the query is not UTF-8"),
            ))
        },
    );
    answered.unwrap_or_else(Fault::from)
}

/// Writes and flushes one response line.
fn respond(to: &mut dyn Write, id: Option<&RawValue>, answer: Result<Answer, Fault>) -> Result<()> {
    let id = id.map_or("null", RawValue::get);
    match answer {
        Ok(answer) => {
            write!(to, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")?;
            to.write_all(answer.json())?;
            if let Some(position) = answer.position() {
                write!(to, ",\"position\":\"{position}\"")?;
            }
        }
        Err(fault) => {
            write!(to, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":")?;
            serde_json::to_writer(&mut *to, &fault)?;
        }
    }
    to.write_all(b"}\n")?;
    Ok(to.flush()?)
}

#[cfg(test)]
mod tests {
    use std::io::BufWriter;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::patience::PatientWriter;
    use crate::patience::tests::Stuck;

    fn request(id: u32, method: &str, params: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
    }

    #[test]
    fn a_stream_whose_events_nobody_reads_ends_the_connection_and_frees_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            request(1, "open", &json!({ "path": dir.path().join("s.grains"), "create": true }));
        let query = "ASSEMBLE FROM (RECALL) BUDGET 100 tokens STREAM";
        let asked = request(2, "cal_stream", &json!({ "query": query }));
        let after = request(3, "hello", &json!({}));
        let requests = [open.as_str(), &asked, &after].concat();
        let patience = Patience::of(Duration::from_millis(20));
        let (stuck, taken, reader) = Stuck::from("\"event\"");
        let mut out = BufWriter::new(PatientWriter::new(stuck, &patience));
        let mut host = Host::new(false, converse);
        let served = answer_all(&mut host, &mut requests.as_bytes(), &mut out, &patience);
        assert!(served.unwrap_err().has_code(Code::Cancelled));
        host.close().unwrap();
        let told = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
        assert_eq!(told.lines().count(), 1, "only open was answered: {told}");
        let mut again = Vec::new();
        let reads = request(2, "audit", &json!({ "reads": true }));
        let requests = [open.as_str(), &reads].concat();
        answer_all(&mut host, &mut requests.as_bytes(), &mut again, &patience).unwrap();
        host.close().unwrap();
        let last = again.split(|byte| *byte == b'\n').nth(1).unwrap();
        let last: Value = serde_json::from_slice(last).unwrap();
        let call = &last["result"]["entries"][0]["call"];
        assert_eq!(call["code"], "CAL-E082", "{last}");
        assert_eq!(call["cancel_reason"], "listener", "{last}");
        drop(reader);
    }
}
