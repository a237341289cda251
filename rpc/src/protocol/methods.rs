//! The table of methods.

use std::cell::RefCell;

use grainstore::{CAL_CONFORMANCE, CAL_EXCEPTIONS, Session, Store};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fault::Fault;
use crate::answer::Answer;
use crate::arguments::{Nothing, read};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::operations::stream::{self, Events};
use crate::operations::{
    agents, ages, alf, calls, codec, erasure, frames, graph, maintain, marks, migrate, policy,
    portable, position, query, reads, rotation, saga, saga_consent, saga_vault, signed, store,
    views, write,
};
use crate::sharing::{Call, SharedStore};

/// A method: it takes its parameters as unparsed JSON, and may send events before it answers.
type Run = fn(&mut Host, Option<&RawValue>, &mut Events<'_>) -> Result<Answer>;

/// One method.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// True if it needs `--test-clock`.
    test_clock_only: bool,
}

impl Method {
    /// Runs it, and adds to its answer where the store is in its journal.
    fn answer(
        &self,
        host: &mut Host,
        params: Option<&RawValue>,
        events: &mut Events<'_>,
    ) -> Result<Answer> {
        let answer = (self.run)(host, params, events)?;
        match host.session() {
            Ok(session) => Ok(answer.at(session)),
            Err(_) => Ok(answer),
        }
    }
}

/// Makes a method of an operation, which works on the session, or on the host.
macro_rules! method {
    ($name:literal, $run:path) => {
        method!($name, |params, host| $run(params, host.session()?))
    };
    ($name:literal, $run:path, host) => {
        method!($name, |params, host| $run(params, host))
    };
    ($name:literal, $run:path, events) => {
        Method {
            name: $name,
            run: |host, params, events| Answer::of(&$run(read(params)?, host.session()?, events)?),
            test_clock_only: false,
        }
    };
    ($name:literal, $run:path, alone) => {
        method!($name, |params, _host| $run(params))
    };
    ($name:literal, |$params:ident, $host:ident| $run:expr) => {
        Method {
            name: $name,
            run: |$host, $params, _| {
                let $params = read($params)?;
                Answer::of(&$run?)
            },
            test_clock_only: false,
        }
    };
}

const METHODS: &[Method] = &[
    method!("hello", hello, host),
    method!("encode", codec::encode, host),
    method!("decode", codec::decode, host),
    method!("open", store::open, host),
    method!("session", store::session, host),
    method!("put", write::put),
    method!("put_batch", write::put_batch),
    method!("embed", write::embed),
    method!("wait_for_vectors", write::wait_for_vectors),
    method!("position", position::position),
    method!("wait_for", position::wait_for),
    method!("resolve", reads::resolve),
    method!("get", reads::get),
    method!("get_batch", reads::get_batch),
    method!("exists", reads::exists),
    method!("supersede", write::supersede),
    method!("sign", signed::sign, host),
    method!("prove", signed::prove, host),
    method!("verify_signature", signed::verify_signature, host),
    method!("disclose", signed::disclose, host),
    method!("check_view", views::check_view, host),
    method!("restore_view", views::restore_view, host),
    method!("write_frames", frames::write_frames, alone),
    method!("read_frames", frames::read_frames, alone),
    method!("policy_explain", policy::policy_explain, host),
    method!("policy_show", policy::policy_show, host),
    method!("policy_set", policy::policy_set),
    method!("contradict", marks::contradict),
    method!("set_verification", marks::set_verification),
    method!("hold", marks::hold),
    method!("lift_hold", marks::lift_hold),
    method!("erase", erasure::erase),
    method!("erase_user", erasure::erase_user),
    method!("sweep", erasure::sweep),
    method!("subject_report", erasure::subject_report),
    method!("history", reads::history),
    method!("query", query::query),
    method!("neighbours", graph::neighbours),
    method!("paths", graph::paths),
    method!("ancestry", graph::ancestry),
    method!("children", graph::children),
    method!("related", graph::related),
    method!("versions", graph::versions),
    method!("latest", agents::latest),
    method!("thread", agents::thread),
    method!("owner", agents::owner),
    method!("capabilities", agents::capabilities),
    method!("handoffs", agents::handoffs),
    method!("cal", calls::cal, events),
    method!("cal_convert", calls::cal_convert, host),
    method!("cal_stream", stream::cal_stream, events),
    method!("prepare", calls::prepare),
    method!("execute", calls::execute),
    method!("cal_switch", calls::cal_switch),
    method!("audit", reads::audit, events),
    method!("checkpoint", maintain::checkpoint),
    method!("verify", maintain::verify),
    method!("stats", maintain::stats),
    method!("doctor", maintain::doctor),
    method!("reindex", maintain::reindex),
    method!("compact", maintain::compact),
    method!("remove_vectors", maintain::remove_vectors),
    method!("backup", maintain::backup),
    method!("rotate_keys", rotation::rotate_keys),
    method!("export", portable::export, events),
    method!("import", portable::import, events),
    method!("ages_segments", ages::ages_segments),
    method!("ages_export", ages::ages_export, events),
    method!("ages_verify", ages::ages_verify, alone),
    method!("alf_import", alf::alf_import, events),
    method!("alf_export", alf::alf_export, events),
    method!("alf_delta", alf::alf_delta, events),
    method!("alf_apply", alf::alf_apply, events),
    method!("alf_purge", alf::alf_purge, events),
    method!("alf_validate", alf::alf_validate, alone),
    method!("saga_validate", saga::saga_validate, host),
    method!("saga_import", saga::saga_import, events),
    method!("saga_export", saga::saga_export, events),
    method!("saga_sign", saga::saga_sign, alone),
    method!("saga_redact", saga::saga_redact, host),
    method!("saga_consent", saga_consent::saga_consent, host),
    method!("saga_agree", saga_consent::saga_agree, alone),
    method!("saga_vault", saga_vault::saga_vault),
    method!("migrate", migrate::migrate, events),
    method!("migrate_formats", migrate::migrate_formats, alone),
    method!("close", store::close, host),
    Method { test_clock_only: true, ..method!("clock", store::clock, host) },
];

/// OMS conformance level (section 17): a production store, with envelopes encrypted under users' keys, blind
/// tokens, the hexastore, full text, an audit chain, recovery and presets.
const OMS_LEVEL: u8 = 3;

/// Names the program, its conformance and its methods.
fn hello(_: Nothing, host: &mut Host) -> Result<Value> {
    let store = host.session().ok().map(Session::store);
    let every = || CAL_EXCEPTIONS.map(str::to_owned).to_vec();
    let methods = all(host.clock().is_some()).map(|method| method.name);
    Ok(json!({
        "name": "grainstore",
        "version": env!("CARGO_PKG_VERSION"),
        "oms_level": OMS_LEVEL,
        "cal_conformance": store.map_or(CAL_CONFORMANCE, |store| store.cal_conformance()),
        "cal_exceptions": store.map_or_else(every, Store::cal_exceptions),
        // `cal` with tier 1 is the host's own choice to write in one call.
        "cal_one_step_writes": true,
        "methods": methods.collect::<Vec<_>>(),
    }))
}

/// Returns the available methods.
fn all(test_clock: bool) -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(move |method| test_clock || !method.test_clock_only)
}

/// Returns the method of this name.
fn find(name: &str, test_clock: bool) -> Option<&'static Method> {
    all(test_clock).find(|method| method.name == name)
}

/// Methods that concern the connection and no store, or open and close one.
const OF_CONNECTION: &[&str] = &["open", "session", "close"];

/// Methods that need no open store, and are not sent to another process.
const WITHOUT_STORE: &[&str] = &[
    "encode",
    "decode",
    "sign",
    "write_frames",
    "read_frames",
    "ages_verify",
    "alf_validate",
    "saga_sign",
    "saga_agree",
    "saga_consent",
    "saga_redact",
    "cal_convert",
    "migrate_formats",
];

/// Returns `true` for the methods of an open store that another process may answer.
pub(crate) fn is_of_store(method: &str, test_clock: bool) -> bool {
    find(method, test_clock).is_some() && !OF_CONNECTION.contains(&method)
}

/// Runs a method of an open store on the session of `host`.
pub(crate) fn run(
    host: &mut Host,
    method: &str,
    params: Option<&RawValue>,
    events: &mut Events<'_>,
) -> Result<Answer> {
    let test_clock = host.clock().is_some();
    match find(method, test_clock) {
        Some(found) if is_of_store(method, test_clock) => found.answer(host, params, events),
        _ => {
            let message = format!("{method} is no method of an open store");
            Err(Error::usage(Code::Schema, message, "docs/rpc.md lists the methods"))
        }
    }
}

/// Answers a request with a method, which may send events before it answers: here, or by the process that has the
/// store open.
pub(crate) fn answer(
    host: &mut Host,
    call: &Call<'_>,
    events: &mut Events<'_>,
) -> Result<Answer, Fault> {
    let Call { method, params, .. } = *call;
    let test_clock = host.clock().is_some();
    let Some(found) = find(method, test_clock) else {
        return Err(Fault::unknown_method(method));
    };
    let elsewhere = is_of_store(method, test_clock) && !WITHOUT_STORE.contains(&method);
    match host.store().filter(|_| elsewhere) {
        None => Ok(found.answer(host, params, events)?),
        Some(store) => relay(host, &store, call, found, events),
    }
}

/// Answers a call of the open store, here or by the process that has it open.
fn relay(
    host: &mut Host,
    store: &SharedStore,
    call: &Call<'_>,
    method: &Method,
    events: &mut Events<'_>,
) -> Result<Answer, Fault> {
    let (host, events) = (RefCell::new(host), RefCell::new(events));
    store.with(
        call,
        |session, _| {
            let mut host = host.borrow_mut();
            host.set_session(Some(session));
            let answer = method.answer(&mut host, call.params, &mut events.borrow_mut());
            host.set_session(None);
            Ok(answer?)
        },
        |connection, line| {
            if call.method == "clock" {
                // Its own too, which counts once this process owns the store.
                let _ =
                    method.answer(&mut host.borrow_mut(), call.params, &mut events.borrow_mut());
            }
            let is_cancelled = || events.borrow().is_cancelled();
            let mut forward = |line: &[u8]| events.borrow_mut().forward(line);
            let answered = connection.exchange(line, &is_cancelled, &mut forward)?;
            Ok(match answered {
                Ok((result, position)) => Ok(Answer::of_json(&result, position)),
                Err(fault) => Err(Fault::of_json(&fault)),
            })
        },
    )?
}
