//! Every way to read, by methods and by commands.

use serde_json::{Value, json};

use super::world::{AGENT, Target};

/// A way to read, by a method with these parameters or by a command with these arguments.
pub(super) struct Read {
    pub(super) name: &'static str,
    /// Whether it shows secrets or addresses of what is open.
    pub(super) shows: bool,
    pub(super) params: fn(&Target) -> Vec<Value>,
}

const fn read(name: &'static str, params: fn(&Target) -> Vec<Value>) -> Read {
    Read { name, shows: true, params }
}

const fn silent(name: &'static str, params: fn(&Target) -> Vec<Value>) -> Read {
    Read { name, shows: false, params }
}

pub(super) const READS: &[Read] = &[
    silent("resolve", |on| vec![json!({ "prefix": on.address.get(..10).unwrap(), "limit": 9 })]),
    read("get", of_address),
    read("get_batch", |on| vec![json!({ "addresses": [on.address] })]),
    silent("exists", of_address),
    read("history", |on| {
        let triple = |as_of: i64| json!({ "subject": "hub", "relation": "knows", "as_of": as_of });
        vec![json!({ "address": on.address }), triple(1_900_000_000_000)]
    }),
    read("versions", |on| {
        let versions = |towards| json!({ "address": on.address, "towards": towards });
        ["older", "newer"].map(versions).to_vec()
    }),
    read("latest", |_| vec![json!({ "subject": "hub", "relation": "knows" })]),
    read("query", |on| {
        vec![
            json!({ "where": {}, "limit": 100, "explain": true }),
            json!({ "where": {}, "limit": 100, "include_superseded": true }),
            json!({ "text": on.secret, "explain": true }),
            json!({ "text": "common", "limit": 100, "explain": true }),
            json!({ "where": { "tags_all": [on.secret] }, "limit": 9, "explain": true }),
            json!({ "where": { "user_id": "bob" }, "limit": 9 }),
            json!({ "where": { "author_did": AGENT }, "sort": "oldest", "limit": 99 }),
            json!({ "where": { "namespace": "home" }, "limit": 9 }),
            json!({ "vector": { "model": "m", "values": [1.0, 0.6] }, "limit": 99, "explain": true }),
            json!({ "text": "common", "expand": { "freely": true, "hops": 2 }, "limit": 99 }),
        ]
    }),
    read("cal", |on| statements(on).into_iter().map(|query| json!({ "query": query })).collect()),
    read("prepare", |on| {
        statements(on).into_iter().map(|query| json!({ "query": query })).collect()
    }),
    read("cal_stream", |_| {
        let query = "ASSEMBLE FROM a: (RECALL beliefs), b: (RECALL events LIKE \"common\") STREAM";
        vec![json!({ "query": query })]
    }),
    read("neighbours", |_| vec![json!({ "node": "hub" }), json!({ "node": AGENT })]),
    read("paths", |on| vec![json!({ "from": "hub", "to": format!("{} common", on.secret) })]),
    silent("ancestry", of_address),
    silent("children", of_address),
    silent("related", of_address),
    read("thread", |on| {
        vec![
            json!({ "session_id": "talk" }),
            json!({ "message": on.address }),
            json!({ "state": on.address }),
        ]
    }),
    silent("owner", |_| vec![json!({ "agent": AGENT })]),
    silent("capabilities", |on| {
        vec![json!({ "agent": AGENT }), json!({ "name": format!("{} common", on.secret) })]
    }),
    read("handoffs", |_| vec![json!({ "session_id": "talk" })]),
    silent("verify_signature", of_address),
    read("disclose", |on| vec![json!({ "address": on.address, "hide": ["subject"] })]),
    silent("check_view", |on| vec![json!({ "view": view_of(on) })]),
    read("policy_explain", of_address),
    silent("audit", |_| vec![json!({ "limit": 1000 }), json!({ "reads": true, "limit": 1000 })]),
    silent("stats", |_| vec![json!({})]),
    silent("doctor", |_| vec![json!({})]),
    silent("verify", |_| vec![json!({ "full": true })]),
    read("export", |_| vec![json!({ "path": "", "compress": "none" })]),
    silent("subject_report", |_| vec![json!({ "user_id": "ann" }), json!({ "user_id": "bob" })]),
];

/// Methods that tell nothing of stored grains beyond those named to them, or write.
pub(super) const OTHER_METHODS: &[&str] = &[
    "rotate_keys",
    // Of neighbouring formats: the operator's, over the whole store, or about what is given.
    "ages_segments",
    "ages_export",
    "ages_verify",
    "alf_import",
    "alf_export",
    "alf_delta",
    "alf_apply",
    "alf_purge",
    "alf_validate",
    "saga_validate",
    "saga_import",
    "saga_export",
    "saga_sign",
    "saga_redact",
    "saga_consent",
    "saga_agree",
    "saga_vault",
    "migrate",
    "migrate_formats",
    "hello",
    "encode",
    "decode",
    "open",
    "session",
    "put",
    "put_batch",
    "embed",
    "wait_for_vectors",
    // The number of a commit, whoever asks (docs/security.md).
    "position",
    "wait_for",
    "supersede",
    "sign",
    "prove",
    "restore_view",
    "write_frames",
    "read_frames",
    "policy_show",
    "policy_set",
    "contradict",
    "set_verification",
    "hold",
    "lift_hold",
    "erase",
    "erase_user",
    "sweep",
    "cal_convert",
    "execute",
    "cal_switch",
    "checkpoint",
    "reindex",
    "compact",
    "remove_vectors",
    "backup",
    "import",
    "close",
    "clock",
];

/// Commands, with the arguments behind their names.
pub(super) const COMMANDS: &[Read] = &[
    read("get", |on| vec![json!([on.address, "--json"]), json!([on.address.get(..9), "--json"])]),
    read("history", |on| {
        vec![json!([on.address]), json!(["--subject", "hub", "--relation", "knows"])]
    }),
    read("recall", |on| {
        vec![
            json!(["hub", "--json"]),
            json!(["--text", on.secret, "--json"]),
            json!(["--text", "common"]),
            json!(["--session", "talk"]),
        ]
    }),
    // Each is a process of its own: a third of them, by words, by address and by neither.
    read("cal", |on| statements(on).into_iter().step_by(3).map(|query| json!([query])).collect()),
    read("export", |_| vec![json!(["-", "--compress", "none"])]),
    read("disclose", |on| vec![json!([on.address, "--hide", "subject"])]),
    silent("verify-signature", |on| vec![json!([on.address])]),
    read("policy", |on| vec![json!(["explain", on.address, "--json"])]),
    silent("audit", |_| vec![json!(["--tail", "200", "--json"]), json!(["--reads", "--json"])]),
    silent("verify", |_| vec![json!(["--full"])]),
    silent("stats", |_| vec![json!([])]),
    silent("doctor", |_| vec![json!([])]),
];

/// Commands that tell nothing of stored grains beyond those named to them, or write.
pub(super) const OTHER_COMMANDS: &[&str] = &[
    // Of neighbouring formats: the operator's, over the whole store, or about what is given.
    "ages",
    "alf",
    "migrate",
    "saga",
    "add",
    "init",
    "put",
    "supersede",
    "contradict",
    "set-verification",
    "hold",
    "lift-hold",
    "erase",
    "sweep",
    "subject-report",
    "repl",
    "import",
    "encode",
    "decode",
    "sign",
    "prove",
    // Reads a view from a file, and what it names as the method does.
    "check-view",
    "restore-view",
    "frames",
    "keys",
    "compact",
    "reindex",
    "remove-vectors",
    "backup",
    "demo",
    "bench",
    "mcp",
    "rpc",
    "serve",
    "cluster",
    "tokens",
    "help",
];

/// A view of the grain that somebody makes up.
fn view_of(on: &Target) -> Value {
    json!({ "type": "belief", "subject": "hub", "relation": "knows", "object": on.secret, "confidence": 1,
        "created_at": 1_768_471_200_000_i64, "_disclosure_of": format!("sha256:{}", on.address) })
}

fn of_address(on: &Target) -> Vec<Value> {
    vec![json!({ "address": on.address })]
}

/// Statements that read in CAL.
fn statements(on: &Target) -> Vec<String> {
    let Target { address, secret } = on;
    let mut all: Vec<String> = [
        "RECALL | LIMIT 100",
        "RECALL WITH superseded | LIMIT 100",
        "RECALL LIKE \"common\" WITH explanation",
        "RECALL events THREAD \"talk\"",
        "RECALL beliefs WHERE user_id = \"bob\"",
        "RECALL IN \"home\" | LIMIT 100",
        "RECALL beliefs | SUBJECTS",
        "RECALL beliefs | OBJECTS",
        "RECALL | HASHES",
        "RECALL | GROUP BY subject",
        "RECALL beliefs ABOUT \"hub\" AS markdown",
        "ASSEMBLE FROM a: (RECALL), b: (RECALL LIKE \"common\") FORMAT json",
        "HISTORY WHERE subject = \"hub\" AND relation = \"knows\"",
        "BATCH { a: RECALL | LIMIT 100, b: RECALL beliefs | COUNT }",
        "COALESCE (RECALL IN \"home\", RECALL beliefs)",
        "DESCRIBE server",
    ]
    .map(str::to_owned)
    .into();
    all.extend([
        format!("EXISTS sha256:{address}"),
        format!("HISTORY sha256:{address}"),
        format!("RECALL events THREAD FROM sha256:{address}"),
        format!("RECALL LIKE \"{secret}\""),
        format!("RECALL WHERE hash = sha256:{address} WITH superseded"),
        format!("EXPLAIN RECALL ABOUT \"{secret}\""),
    ]);
    all
}
