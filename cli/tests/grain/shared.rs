//! Every command beside a process that has the store open: it says the same as where it opens the store itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::kit::{Place, Rpc, Run, belief, head};

const STORE: &str = "memory.grains";
const TEA: &str = "b56760b769976e5a8fb5fbea57b375817de789cc6dfb438492ae332e21b97a12";
const OPERATOR: &[&str] = &["--operator", "did:web:ops.example"];
const WALLET: &[&str] = &["--chain", "eip155:8453", "--key-seed", "wallet"];

/// Commands that ask no store, or that are other than a call of one, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("init", "makes a store, which no other process can have open"),
    ("demo", "builds a store of its own"),
    ("bench", "measures stores of its own"),
    ("encode", "needs no store"),
    ("decode", "needs no store"),
    ("sign", "needs no store"),
    ("verify-signature", "needs no store"),
    ("restore-view", "needs no store"),
    ("frames", "needs no store"),
    ("rpc", "relays by itself: tests of rpc"),
    ("help", "needs no store"),
    ("doctor", "tells of the process, so that both tell other things: its own test"),
];

/// A command line, and what stands on stdin.
struct Case {
    arguments: Vec<String>,
    stdin: String,
}

fn case(arguments: &[&str]) -> Case {
    fed(arguments, "")
}

fn fed(arguments: &[&str], stdin: &str) -> Case {
    let arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
    Case { arguments, stdin: stdin.to_owned() }
}

impl Case {
    fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    fn command(&self) -> &str {
        let words = self.arguments.iter().map(String::as_str);
        let commands = commands();
        words.into_iter().find(|word| commands.iter().any(|name| name == word)).unwrap()
    }
}

fn commands() -> BTreeSet<String> {
    static ALL: std::sync::OnceLock<BTreeSet<String>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| Place::empty().commands()).clone()
}

/// The steps of a tale; each tale begins with the same store.
type Tale = Vec<Case>;

/// A place with a store and files, all of which have the same bytes in each copy.
fn world() -> Place {
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

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &target),
            kind if kind.is_file() => drop(fs::copy(entry.path(), target).unwrap()),
            _ => {}
        }
    }
}

/// A process that has the store of a place open.
fn owner(place: &Place) -> Rpc {
    let mut owner = place.rpc();
    owner.result("open", &json!({ "path": place.path().join(STORE) }));
    owner
}

/// What a run told, without what two runs of one command tell otherwise: times, and what is made of them.
fn told(place: &Place, run: &Run) -> (String, String, i32) {
    let here = place.path().to_str().unwrap();
    let clean = |text: &str| timeless(&text.replace(&format!("{here}/"), "").replace(here, "."));
    (clean(&String::from_utf8_lossy(&run.out)), clean(&run.err), run.code)
}

/// Commands whose figures are those of the process too: their numbers are not compared.
const FIGURES: &[&str] = &["stats", "compact", "backup", ".stats"];

/// Replaces the numbers behind these names, or all of them.
fn numberless(text: &str, all: bool) -> String {
    let (mut out, mut digits) = (String::new(), String::new());
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let timed = ["duration_ms\":", "latency_ms\":", "duration_ms\": "]
            .iter()
            .any(|name| out.ends_with(name));
        let is_now = digits.len() >= 13 && !digits.starts_with("17684");
        match !digits.is_empty() && (all || timed || is_now) {
            true => out.push('N'),
            false => out.push_str(&digits),
        }
        digits.clear();
        out.push(c);
    }
    out
}

/// Replaces times and digests that are made of times.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || "-:.+_/=".contains(c) {
            word.push(c);
            continue;
        }
        out.push_str(&plain(&word));
        word.clear();
        out.push(c);
    }
    out
}

fn plain(word: &str) -> String {
    let is_time = word.starts_with("20") && word.contains('T') && word.contains(':');
    let is_made_up = word.starts_with("vi_")
        || word.starts_with("asm_")
        || (word.len() == 36 && word.starts_with("01a"));
    let is_digest = word.len() >= 64 && word != TEA && word.chars().all(|c| c.is_ascii_hexdigit());
    let is_base64 = word.len() > 100;
    if is_time || is_made_up || is_digest || is_base64 {
        return "#".to_owned();
    }
    word.to_owned()
}

/// Runs a tale where each command opens the store, and where another process has it open.
fn compare(world: &Place, tale: &[Case]) {
    let (alone, shared) = (Place::empty(), Place::empty());
    copy(world.path(), alone.path());
    copy(world.path(), shared.path());
    let owner = owner(&shared);
    let mut wrong = String::new();
    for case in tale {
        let words = case.words();
        let all = FIGURES.iter().any(|one| words.contains(one) || case.stdin.contains(one));
        let expected = alone.feed(&words, &case.stdin);
        let run = shared.feed(&words, &case.stdin);
        let (out, err, code) = told(&shared, &run);
        let expected = told(&alone, &expected);
        for (run, alone) in [(out, expected.0), (err, expected.1)] {
            let (run, alone) = (numberless(&run, all), numberless(&alone, all));
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
            let (run, alone) = (lines(&run), lines(&alone));
            let different = run.iter().zip(&alone).find(|(run, alone)| run != alone);
            if run != alone {
                let at = different.map_or((run.last(), alone.last()), |(a, b)| (Some(a), Some(b)));
                wrong += &format!("{words:?}\n  beside: {at:?}\n");
            }
        }
        if code != expected.2 || code == 3 {
            wrong += &format!("{words:?}: exit {code}, alone {}\n", expected.2);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(owner.end().1, 0);
}

fn tales() -> Vec<Tale> {
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
        case(&["disclose", TEA, "--hide", "subject,valid_to"]),
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
        case(&["cal", "COUNT", "--as", "text"]),
        case(&[
            "cal",
            "ADD belief SET subject = \"x\" SET relation = \"y\" SET object = \"z\" REASON \"r\"",
        ]),
        case(&["cal", "DEFINE TEMPLATE short AS { ELEMENT \"{{grain.subject}}\" }"]),
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
    "RECALL beliefs ABOUT \"alice\" AS sml WITH provenance, score_breakdown, state",
    "RECALL reasonings",
    "RECALL beliefs | SELECT subject, object",
    "RECALL beliefs | COUNT",
    "RECALL | GROUP BY type",
    "RECALL beliefs SUBJECTS",
    "RECALL WITH explanation",
    "EXISTS (RECALL ABOUT \"alice\")",
    "HISTORY sha256:b56760b769976e5a8fb5fbea57b375817de789cc6dfb438492ae332e21b97a12",
    "COALESCE (RECALL ABOUT \"nobody\", RECALL ABOUT \"alice\")",
    "BATCH { a: RECALL ABOUT \"alice\" AS text; b: RECALL ABOUT \"bob\" }",
    "EXPLAIN RECALL ABOUT \"alice\"",
    "DESCRIBE grain_types",
    "DESCRIBE fields belief",
    "ASSEMBLE FOR \"a reply\" FROM a: (RECALL ABOUT \"alice\"), b: (RECALL goals) BUDGET 40 tokens",
    "RECALL ABOUT \"alice\" UNION RECALL ABOUT \"bob\"",
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
            "ADD belief SET subject = \"x\" SET relation = \"y\" SET object = 1 REASON \"r\"",
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
        case(&["alf", "apply", "agent.alf"]),
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
        saga(&["vault", "add", "note", "codes"], "{\"content\": \"7 7 7\", \"a\": 1}"),
        saga(&["vault", "add", "note", "codes"], "no JSON"),
        saga(&["vault", "open", "codes"], ""),
        saga(&["vault", "rotate"], ""),
        saga(&["export", "agent.saga"], ""),
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

#[test]
fn commands_say_the_same_beside_a_process_that_has_the_store_open() {
    let world = world();
    std::thread::scope(|scope| {
        for tale in tales() {
            let world = &world;
            scope.spawn(move || compare(world, &tale));
        }
    });
}

#[test]
fn every_command_is_among_them_or_left_out_with_a_reason() {
    let run: BTreeSet<String> =
        tales().iter().flatten().map(|case| case.command().to_owned()).collect();
    let left: BTreeSet<String> = LEFT_OUT.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(run.intersection(&left).next(), None);
    assert_eq!(run.union(&left).cloned().collect::<BTreeSet<_>>(), commands());
}

#[test]
fn the_store_of_an_encrypted_place_gets_its_new_key_where_it_is_open() {
    let place = Place::empty();
    place.grain(&["--key-file", "old", "init", "--encrypt"]).done();
    let mut owner = place.rpc();
    let key = data_encoding::BASE64.encode(&fs::read(place.path().join("old")).unwrap());
    owner.result("open", &json!({ "path": place.path().join(STORE), "key": key }));
    let rotated = place.grain(&["--key-file", "old", "keys", "rotate", "new"]).done();
    assert_eq!(rotated.line(), "from now on the store opens with new");
    assert_eq!(owner.end().1, 0);
    assert_eq!(place.grain(&["--key-file", "old", "stats"]).error_code(), "ERR_KEY");
    place.grain(&["--key-file", "new", "stats"]).done();
}

#[test]
fn doctor_asks_the_process_that_has_the_store_open() {
    let place = world();
    let owner = owner(&place);
    let told = place.grain(&["doctor"]).done();
    assert!(told.text().contains("store format") && !told.text().contains("BAD"));
    assert_eq!(owner.end().1, 0);
}

#[test]
fn a_store_that_is_open_for_one_process_alone_is_refused() {
    let place = world();
    let owner = owner(&place);
    let refused = place.grain(&["--exclusive", "--wait-ms", "10", "get", TEA]);
    assert_eq!((refused.error_code().as_str(), refused.code), ("ERR_BUSY", 3));
    let settings = place.grain(&["--wait-ms", "10", "reindex", "--language", "de"]);
    assert_eq!((settings.error_code().as_str(), settings.code), ("ERR_BUSY", 3));
    let other = place.grain(&[OPERATOR, &["get", TEA]].concat());
    assert_eq!(other.error_code(), "ERR_CONFLICT", "{}", other.err);
    assert_eq!(owner.end().1, 0);
}
