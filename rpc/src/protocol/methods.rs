//! The table of methods.

use serde_json::value::RawValue;

use super::answer::Answer;
use super::fault::Fault;
use super::host::Host;
use crate::operations::stream::Events;
use crate::operations::{
    agents, calls, codec, erasure, graph, maintain, marks, policy, portable, query, read, signed,
    store, stream, write,
};

/// A method: it takes its parameters as unparsed JSON.
type Call = fn(&mut Host, Option<&RawValue>) -> Result<Answer, Fault>;
/// A method that sends events before it answers.
type Telling = fn(&mut Host, Option<&RawValue>, &mut Events<'_>) -> Result<Answer, Fault>;

/// The function of a method.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Answers(Call),
    Tells(Telling),
}

/// One method.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// True if it needs `--test-clock`.
    test: bool,
}

const fn method(name: &'static str, run: Call) -> Method {
    Method { name, run: Run::Answers(run), test: false }
}

const METHODS: &[Method] = &[
    method("hello", store::hello),
    method("encode", codec::encode),
    method("decode", codec::decode),
    method("open", store::open),
    method("session", store::session),
    method("put", write::put),
    method("put_batch", write::put_batch),
    method("embed", write::embed),
    method("wait_for_vectors", write::wait_for_vectors),
    method("get", read::get),
    method("get_batch", read::get_batch),
    method("exists", read::exists),
    method("supersede", write::supersede),
    method("sign", signed::sign),
    method("prove", signed::prove),
    method("verify_signature", signed::verify_signature),
    method("disclose", signed::disclose),
    method("policy_explain", marks::policy_explain),
    method("policy_show", policy::show),
    method("policy_set", policy::set),
    method("contradict", marks::contradict),
    method("set_verification", marks::set_verification),
    method("hold", marks::hold),
    method("lift_hold", marks::lift_hold),
    method("erase", erasure::erase),
    method("erase_user", erasure::erase_user),
    method("sweep", erasure::sweep),
    method("subject_report", erasure::subject_report),
    method("history", read::history),
    method("query", query::query),
    method("neighbours", graph::neighbours),
    method("paths", graph::paths),
    method("ancestry", graph::ancestry),
    method("children", graph::children),
    method("related", graph::related),
    method("versions", graph::versions),
    method("latest", agents::latest),
    method("thread", agents::thread),
    method("owner", agents::owner),
    method("capabilities", agents::capabilities),
    method("handoffs", agents::handoffs),
    method("cal", read::cal),
    method("cal_convert", calls::convert),
    Method { name: "cal_stream", run: Run::Tells(stream::cal_stream), test: false },
    method("prepare", calls::prepare),
    method("execute", calls::execute),
    method("cal_switch", calls::switch),
    method("audit", read::audit),
    method("checkpoint", maintain::checkpoint),
    method("verify", maintain::verify),
    method("stats", maintain::stats),
    method("doctor", maintain::doctor),
    method("reindex", maintain::reindex),
    method("compact", maintain::compact),
    method("remove_vectors", maintain::remove_vectors),
    method("backup", maintain::backup),
    method("export", portable::export),
    method("import", portable::import),
    method("close", store::close),
    Method { name: "clock", run: Run::Answers(store::clock), test: true },
];

/// Returns the available methods.
pub(crate) fn all(test_clock: bool) -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(move |method| test_clock || !method.test)
}

/// Returns the method of this name.
pub(crate) fn find(name: &str, test_clock: bool) -> Option<&'static Method> {
    all(test_clock).find(|method| method.name == name)
}
