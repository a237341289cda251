//! Command lines that are run beside a process that has the store open, in tales that begin with the same store.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Place, belief, head};

pub(super) const TEA: &str = "b56760b769976e5a8fb5fbea57b375817de789cc6dfb438492ae332e21b97a12";
const WALLET: &[&str] = &["--chain", "eip155:8453", "--key-seed", "wallet"];

/// The steps of a tale; each tale begins with the same store.
type Tale = Vec<Case>;

/// A command line, and what stands on stdin.
pub(super) struct Case {
    pub(super) arguments: Vec<String>,
    pub(super) stdin: String,
}

fn case(arguments: &[&str]) -> Case {
    fed(arguments, "")
}

fn fed(arguments: &[&str], stdin: &str) -> Case {
    let arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
    Case { arguments, stdin: stdin.to_owned() }
}

/// A place with a store and files, all of which have the same bytes in each copy.
pub(super) fn world() -> Place {
    let place = Place::with_store();
    place.put(&belief("alice", "tea"));
    place.put(&belief("alice", "coffee"));
    place.put(&dated(&json!({ "type": "event", "content": "we met", "session_id": "s-1" }), 1));
    let review = json!({
        "type": "reasoning", "premises": ["a"], "conclusion": "b", "inference_method": "deductive",
        "requires_human_review": true,
    });
    place.put(&dated(&review, 2));
    let held = json!({
        "type": "belief", "subject": "bob", "relation": "likes", "object": "jazz",
        "confidence": 0.1, "user_id": "bob", "namespace": "notes", "run_id": "r-7",
    });
    place.put(&dated(&held, 3));
    fs::write(place.path().join("wallet"), [0x11; 32]).unwrap();
    fs::create_dir(place.path().join("full")).unwrap();
    fs::write(place.path().join("full/file"), "x").unwrap();
    fs::write(place.path().join("more.jsonl"), format!("{}\n", belief("carol", "tea"))).unwrap();
    fs::write(place.path().join("bad.jsonl"), "{\"type\": \"belief\"}\n").unwrap();
    fs::write(
        place.path().join("rules.toml"),
        "settings.query_limit = { value = 20, article = \"1\" }",
    )
    .unwrap();
    let identity = json!({ "handle": "aria-chen", "chain": "eip155:8453",
        "walletAddress": "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A", "createdAt": "2026-01-15T08:00:00Z" });
    let aria = json!({ "$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0",
        "documentId": "saga_test0001", "exportedAt": "2026-03-20T10:00:00Z", "exportType": "profile",
        "layers": { "identity": identity, "persona": { "name": "Aria" } } });
    fs::write(place.path().join("aria.json"), aria.to_string()).unwrap();
    let graph = json!({ "type": "entity", "name": "Ann", "entityType": "person",
        "observations": ["likes tea"] });
    fs::write(place.path().join("graph.jsonl"), format!("{graph}\n")).unwrap();
    place
}

fn dated(grain: &Value, minutes: i64) -> String {
    let mut grain = grain.clone();
    grain["created_at"] = json!(1_768_471_200_000 + minutes * 60_000);
    grain.to_string()
}

/// All tales.
pub(super) fn tales() -> Vec<Tale> {
    let mut tales = vec![reading(), asking(), writing(), marking(), rules(), erasing(), keeping()];
    tales.extend([moving(), archives(), wallets(), evidence(), migrating()]);
    // A prompt that closes the store writes what was read into its audit log.
    tales.extend(prompt().into_iter().map(|one| vec![one]));
    tales
}

fn reading() -> Tale {
    vec![
        case(&["get", TEA]),
        case(&["get", head(TEA, 12)]),
        case(&["get", TEA, "--format", "hex"]),
        case(&["get", TEA, "--format", "mg"]),
        case(&["get", TEA, "--format", "sml"]),
        case(&["--json", "get", TEA]),
        case(&["get", "00000000"]),
        case(&["get", "xyz"]),
        case(&["--namespace", "other", "get", TEA]),
        case(&["history", TEA]),
        case(&["--json", "history", TEA]),
        case(&["history", "--subject", "alice", "--relation", "prefers"]),
        case(&["audit", "--tail", "3"]),
        case(&["--json", "audit"]),
        case(&["audit", "--reads"]),
        case(&["--user", "bob", "audit"]),
        case(&["stats"]),
        case(&["--json", "stats"]),
        case(&["--user", "bob", "stats"]),
        case(&["disclose", TEA, "--hide", "subject,user_id"]),
        fed(&["disclose", "--hide", "subject"], &belief("alice", "tea")),
        case(&["check-view", "missing"]),
        case(&["subject-report", "--user", "bob"]),
        case(&["subject-report", "--user", "nobody"]),
        case(&["subject-report", "--user", "bob", "--out", "bob.mg"]),
        case(&["subject-report", "--user", "bob", "--out", "bob.mg", "--access-request"]),
    ]
}

fn asking() -> Tale {
    let mut tale = vec![
        case(&["recall", "alice"]),
        case(&["--json", "recall", "alice"]),
        case(&["recall", "--text", "tea", "--scores"]),
        case(&["--json", "recall", "--text", "tea", "--scores"]),
        case(&["recall", "alice", "--expand", "2", "--as", "text"]),
        case(&["recall", "--run", "r-7"]),
        case(&["recall", "--basis", "contract", "--as", "toon"]),
        case(&["recall", "--session", "s-1", "--sort", "oldest"]),
        case(&["recall", "nobody"]),
        case(&["cal", "RECALL beleifs"]),
        case(&["--json", "cal", "RECALL beleifs"]),
        case(&["cal", "RECALL\n  WHERE nonsense = 1"]),
        case(&["cal", "RECALL ABOUT $who"]),
        case(&["cal", "RECALL ABOUT $who", "--param", "who=alice", "--as", "markdown"]),
        case(&["cal", "RECALL | COUNT", "--as", "text"]),
        case(&[
            "cal",
            "ADD belief SET subject = \"x\" SET relation = \"y\" SET object = \"z\" REASON \"r\"",
        ]),
        case(&["cal", "DEFINE TEMPLATE short EXTENDS structured ELEMENT { {{grain.subject}} }"]),
        case(&[
            "cal",
            "ASSEMBLE FROM (RECALL ABOUT \"alice\") BUDGET 200 tokens STREAM { chunks }",
            "--stream",
        ]),
        case(&["cal", "ASSEMBLE FROM (RECAL) BUDGET 200 tokens", "--stream"]),
    ];
    for statement in STATEMENTS {
        tale.push(case(&["cal", statement]));
        tale.push(case(&["--json", "cal", statement]));
    }
    tale
}

/// Statements with an answer of each kind.
const STATEMENTS: &[&str] = &[
    "RECALL",
    "RECALL beliefs ABOUT \"alice\" WITH provenance, score_breakdown, explanation AS sml",
    "RECALL beliefs ABOUT \"alice\" WITH superseded, total",
    "RECALL reasonings",
    "RECALL beliefs | SELECT subject, object",
    "RECALL beliefs | COUNT",
    "RECALL | GROUP BY type",
    "RECALL beliefs SUBJECTS",
    "RECALL WITH explanation",
    "EXISTS sha256:b56760b769976e5a8fb5fbea57b375817de789cc6dfb438492ae332e21b97a12",
    "HISTORY sha256:b56760b769976e5a8fb5fbea57b375817de789cc6dfb438492ae332e21b97a12",
    "COALESCE (RECALL ABOUT \"nobody\", RECALL ABOUT \"alice\")",
    "BATCH { a: RECALL beliefs ABOUT \"alice\" | COUNT, b: RECALL goals AS text, c: RECALL ABOUT $who }",
    "EXPLAIN RECALL ABOUT \"alice\"",
    "DESCRIBE grain_types",
    "DESCRIBE fields belief",
    "ASSEMBLE FOR \"a reply\" FROM a: (RECALL ABOUT \"alice\"), b: (RECALL goals) BUDGET 40 tokens",
    "(RECALL ABOUT \"alice\") UNION (RECALL ABOUT \"bob\")",
];

fn writing() -> Tale {
    let new = json!({ "type": "belief", "subject": "alice", "relation": "prefers", "object": "water",
        "confidence": 0.5, "created_at": 1_768_471_400_000_i64 });
    vec![
        case(&["put", "more.jsonl"]),
        case(&["--json", "put", "more.jsonl"]),
        case(&["put", "bad.jsonl"]),
        fed(&["put"], &format!("{}\n{{\"type\": \"goal\"}}\n", belief("x", "y"))),
        fed(&["put", "--same-fact", "keep"], &belief("dora", "tea")),
        fed(&["put", "--same-fact", "supersede"], &belief("dora", "tea").replace("0.9", "0.8")),
        fed(&["put", "--format", "mg"], "no blob"),
        fed(&["put"], ""),
        case(&["add", "eve", "likes", "tea", "--created-at", "2026-01-15T10:00:00Z"]),
        case(&["--user", "eve", "add", "--event", "hello", "--created-at", "2026-01-15T10:00:00Z"]),
        fed(&["supersede", head(TEA, 10), "--justification", "she said so"], &new.to_string()),
        fed(&["--json", "supersede", TEA], &new.to_string().replace("water", "juice")),
        case(&["history", TEA]),
        case(&[
            "cal",
            "--evolve",
            "ADD belief SET subject = \"x\" SET relation = \"y\" SET object = \"z\" REASON \"r\"",
        ]),
    ]
}

fn marking() -> Tale {
    vec![
        case(&["hold", head(TEA, 8), "--reason", "case 7"]),
        case(&["contradict", TEA, "--reason", "measured"]),
        case(&["lift-hold", TEA]),
        case(&["--json", "lift-hold", TEA]),
        case(&["set-verification", TEA, "contested", "--reason", "she says so"]),
        case(&["set-verification", TEA, "nonsense", "--reason", "none"]),
        case(&["contradict", TEA, "--reason", "measured"]),
        case(&["prove", "contradict", head(TEA, 10), "--key-seed", "wallet"]),
        case(&["audit", "--tail", "5"]),
    ]
}

fn rules() -> Tale {
    vec![
        case(&["policy", "show"]),
        case(&["--json", "policy", "show"]),
        case(&["policy", "show", "hipaa"]),
        case(&["policy", "show", TEA]),
        case(&["policy", "explain", TEA]),
        case(&["--json", "policy", "explain", TEA]),
        fed(&["policy", "explain", "-", "--supersede", TEA], &belief("alice", "water")),
        fed(&["policy", "explain", "-"], &belief("alice", "water")),
        case(&["policy", "set", "rules.toml", "--reason", "less at a time"]),
        case(&["policy", "set", "rules.toml", "--reason", "again"]),
        case(&["--user", "bob", "policy", "set", "rules.toml", "--reason", "no"]),
        case(&["policy", "show"]),
        case(&["policy", "cal"]),
        case(&["policy", "cal", "reads", "--reason", "an agent runs wild"]),
        case(&["policy", "cal", "off", "--reason", "it still does"]),
        case(&["recall", "alice"]),
    ]
}

fn erasing() -> Tale {
    vec![
        case(&["erase", "--address", TEA, "--reason", "asked", "--dry-run"]),
        case(&["erase", "--address", TEA, "--reason", "asked"]),
        case(&["--json", "erase", "--address", TEA, "--reason", "asked", "--yes", "--now"]),
        case(&["erase", "--address", TEA, "--reason", "asked", "--yes"]),
        case(&["erase", "--user", "nobody", "--reason", "asked", "--yes"]),
        case(&["erase", "--user", "bob", "--reason", "asked", "--yes"]),
        case(&["--user", "bob", "sweep"]),
        case(&["sweep"]),
        case(&["--json", "sweep"]),
        case(&["keys", "rotate", "new-key"]),
        case(&["keys", "rotate", "--user", "bob"]),
        case(&["erase", "--certificate", "missing", "--reason", "again", "--yes"]),
        case(&["--user", "bob", "erase", "--address", TEA, "--reason", "mine", "--yes"]),
    ]
}

fn keeping() -> Tale {
    vec![
        case(&["verify"]),
        case(&["--json", "verify", "--full"]),
        case(&["--user", "bob", "verify"]),
        case(&["verify", "--checkpoint", "missing"]),
        case(&["reindex"]),
        case(&["--json", "reindex"]),
        case(&["compact"]),
        case(&["remove-vectors", "none"]),
        case(&["backup", "copy.grains"]),
        case(&["backup", "full"]),
        case(&["--user", "bob", "backup", "other.grains"]),
        case(&["audit", "--checkpoint", "--key-seed", "missing"]),
    ]
}

fn moving() -> Tale {
    vec![
        case(&["export", "all.mg"]),
        case(&[
            "--json",
            "export",
            "alice.mg",
            "--where",
            "subject = \"alice\"",
            "--compress",
            "none",
        ]),
        case(&["export", "no.mg", "--where", "nonsense = 1"]),
        case(&["export", "-", "--compress", "none", "--where", "subject = \"nobody\""]),
        case(&["import", "all.mg"]),
        case(&["--json", "import", "alice.mg", "all.mg"]),
        case(&["import", "missing.mg"]),
    ]
}

fn archives() -> Tale {
    let agent = "0a1b2c3d-0000-4000-8000-00000000000a";
    vec![
        case(&[
            "alf",
            "export",
            "agent.alf",
            "--agent-id",
            agent,
            "--agent-name",
            "Ada",
            "--native",
        ]),
        case(&["alf", "validate", "agent.alf"]),
        case(&["alf", "import", "agent.alf", "--dry-run"]),
        case(&["alf", "import", "agent.alf"]),
        case(&["alf", "delta", "changes.alf", "--since", "0"]),
        case(&["alf", "apply", "changes.alf"]),
        case(&[
            "alf",
            "purge",
            "--whole-agent",
            "--reason",
            "user_request",
            "--requested-by",
            agent,
        ]),
        case(&[
            "alf",
            "purge",
            "--whole-agent",
            "--reason",
            "user_request",
            "--requested-by",
            agent,
            "--dry-run",
        ]),
    ]
}

fn wallets() -> Tale {
    let saga = |words: &[&str], stdin: &str| fed(&[&["saga"][..], words, WALLET].concat(), stdin);
    vec![
        saga(&["vault", "list"], ""),
        saga(&["sign", "aria.json"], ""),
        case(&["saga", "import", "aria.json"]),
        case(&["--json", "saga", "import", "aria.json"]),
        saga(&["vault", "add", "note", "codes"], "{\"content\": \"7 7 7\", \"a\": 1}"),
        saga(&["vault", "add", "note", "codes"], "no JSON"),
        saga(&["vault", "open", "codes"], ""),
        saga(&["vault", "rotate"], ""),
        saga(&["vault", "list"], ""),
        saga(&["export", "agent.saga"], ""),
        saga(&["export", "agent.json", "--type", "identity", "--document-id", "saga_one1"], ""),
        saga(&["export", "no.saga", "--grains", "nonsense = 1"], ""),
        case(&["saga", "import", "agent.saga"]),
        case(&["saga", "import", "missing.json"]),
    ]
}

fn evidence() -> Tale {
    vec![
        case(&["ages", "segments"]),
        case(&["--json", "ages", "segments"]),
        case(&["ages", "export", "packs/"]),
        case(&["--user", "bob", "ages", "segments"]),
    ]
}

fn migrating() -> Tale {
    vec![
        case(&["migrate", "server-memory", "graph.jsonl", "--dry-run", "--undated"]),
        case(&["--namespace", "tools", "migrate", "server-memory", "graph.jsonl", "--undated"]),
        case(&["--json", "migrate", "server-memory", "graph.jsonl", "--undated"]),
        case(&["migrate", "server-memory", "missing.jsonl"]),
    ]
}

fn prompt() -> Tale {
    let lines = "RECALL ABOUT \"alice\";\n.mode table\nRECALL ABOUT \"alice\";\nRECALL | GROUP BY type;\n\
        HISTORY sha256:b56760b769976e5a8fb5fbea57b375817de789cc6dfb438492ae332e21b97a12;\n\
        RECALL beliefs | SELECT subject;\n.param who=alice\nRECALL ABOUT $who;\nRECALL ABOUT 7;\n\
        .stats\n.audit 2\n.tables\n.schema goal\n.explain RECALL;\nnonsense;\n";
    let write = "ADD belief SET subject = \"x\" SET relation = \"y\" SET object = \"z\" REASON \"r\";\nRECALL ABOUT \"x\";\n";
    vec![
        fed(&["repl"], lines),
        fed(&["--json", "repl"], lines),
        fed(&["repl", "--evolve", "--as", "text"], write),
        fed(&["repl"], write),
    ]
}
