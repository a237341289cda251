//! What a session must not see, asked by every method that reads: the grains of other
//! namespaces and users, what rests on a consent that was withdrawn, and what was erased.
//!
//! A method that is in neither list fails `every_reader_is_asked`; one that shows nothing of
//! what it may show fails as well, since it would prove nothing.

use std::collections::BTreeSet;
use std::fs;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::kit::{Place, Rpc};

const OPERATOR: &str = "did:web:ops.example";
const AGENT: &str = "did:web:agent.example";
const BASIS_AT: i64 = 1_768_471_100_000;

/// Why a grain is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hiding {
    Open,
    User,
    Space,
    Withdrawn,
    Erased,
}

const HIDINGS: [Hiding; 5] =
    [Hiding::Open, Hiding::User, Hiding::Space, Hiding::Withdrawn, Hiding::Erased];

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Ann,
    Team,
    Operator,
}

const ASKERS: [Asker; 3] = [Asker::Ann, Asker::Team, Asker::Operator];

impl Asker {
    fn session(self) -> Value {
        match self {
            Self::Ann => json!({ "namespace": "team", "user_id": "ann" }),
            Self::Team => json!({ "namespace": "team", "actor": AGENT }),
            Self::Operator => json!({ "namespace": null, "actor": OPERATOR }),
        }
    }

    /// Whether the contents of a grain are kept from it.
    fn must_not_see(self, hiding: Hiding) -> bool {
        match hiding {
            Hiding::Open => false,
            Hiding::User => self == Self::Ann,
            Hiding::Space => self != Self::Operator,
            Hiding::Withdrawn | Hiding::Erased => true,
        }
    }

    /// Whether not even that it is there may be told.
    fn must_not_know(self, hiding: Hiding) -> bool {
        matches!(hiding, Hiding::User | Hiding::Space) && self.must_not_see(hiding)
    }
}

/// One grain: what is asked about, or a secret that stands in no grain at all.
#[derive(Debug, Clone)]
struct Target {
    address: String,
    secret: String,
}

/// A store in which every kind of grain is hidden in every way.
struct World {
    place: Place,
    rpc: Option<Rpc>,
    targets: Vec<(Hiding, Target)>,
}

/// The kinds of grains: each has the secret in its words.
fn shapes(secret: &str) -> Vec<Value> {
    let words = format!("{secret} common");
    let belief = |subject: &str, relation: &str| {
        json!({ "type": "belief", "subject": subject, "relation": relation, "object": words,
            "confidence": 0.9 })
    };
    vec![
        belief("hub", "knows"),
        belief(AGENT, "mg:has_capability"),
        json!({ "type": "event", "content": words, "role": "user", "session_id": "talk" }),
        json!({ "type": "goal", "description": words, "goal_state": "active", "subject": secret,
            "relation": "mg:delegates_to", "object": "hub", "session_id": "talk" }),
        json!({ "type": "reasoning", "conclusion": words, "premises": [words] }),
    ]
}

impl World {
    fn new() -> Self {
        let place = Place::with_store();
        let mut world = Self { place, rpc: None, targets: Vec::new() };
        world.serve(Asker::Operator);
        for hiding in HIDINGS {
            let mut consent = json!({
                "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b",
                "scope": [format!("{hiding:?}")], "is_withdrawal": false, "namespace": "team",
                "user_id": "ann", "created_at": BASIS_AT,
            });
            let basis = world.put(&json!({ "grain": consent }));
            for number in 0..shapes("").len() {
                world.hide(hiding, number, &basis);
            }
            if hiding == Hiding::Withdrawn {
                consent["is_withdrawal"] = json!(true);
                consent["prior_consent"] = json!(basis);
                consent["created_at"] = json!(BASIS_AT + 1);
                world.put(&json!({ "grain": consent }));
            }
        }
        world
    }

    /// Puts one grain that is hidden in one way.
    fn hide(&mut self, hiding: Hiding, number: usize, basis: &str) {
        let letter = |at: usize| char::from(b'b' + u8::try_from(at).unwrap());
        let secret = format!("zq{}{}x", letter(hiding as usize), letter(number));
        let mut grain = shapes(&secret).swap_remove(number);
        let (space, user) = match hiding {
            Hiding::User => ("team", "bob"),
            Hiding::Space => ("home", "ann"),
            _ => ("team", "ann"),
        };
        grain["namespace"] = json!(space);
        grain["user_id"] = json!(user);
        grain["structural_tags"] = json!([secret]);
        grain["created_at"] = json!(BASIS_AT + 10 + i64::try_from(self.targets.len()).unwrap());
        if hiding == Hiding::Withdrawn {
            grain["processing_basis"] = json!(basis);
        }
        let near = if hiding == Hiding::Open { 0.5 } else { 0.6 };
        let vectors = json!([{ "model": "m", "values": [1.0, near] }]);
        let address = self.put(&json!({ "grain": grain, "vectors": vectors }));
        if hiding == Hiding::Erased {
            let erased = self.asked("erase", &json!({ "address": address, "reason": "asked" }));
            assert!(erased["result"].is_object(), "{erased}");
        }
        self.targets.push((hiding, Target { address, secret }));
    }

    fn put(&mut self, params: &Value) -> String {
        let answer = self.asked("put", params);
        answer["result"]["address"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn serve(&mut self, asker: Asker) {
        if self.rpc.is_none() {
            let mut rpc = self.place.rpc();
            let path = self.place.path().join("memory.grains");
            rpc.result("open", &json!({ "path": path, "operator": OPERATOR }));
            rpc.result("clock", &json!({ "now_ms": 1_800_000_000_000_i64 }));
            self.rpc = Some(rpc);
        }
        self.asked("session", &asker.session());
    }

    fn asked(&mut self, method: &str, params: &Value) -> Value {
        self.hearing(method, params).1
    }

    /// The events and the response of a call.
    fn hearing(&mut self, method: &str, params: &Value) -> (Vec<Value>, Value) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.rpc.as_mut().unwrap().ask_hearing(request.to_string())
    }

    /// What a session is told by a method: events, responses and files.
    fn told(&mut self, read: &Read, target: &Target) -> Vec<Value> {
        let mut told = Vec::new();
        let file = self.place.path().join("out.mg");
        for mut params in (read.params)(target) {
            if params.get("path").is_some() {
                params["path"] = json!(file);
            }
            let (events, response) = self.hearing(read.name, &params);
            told.extend(events);
            let token = response["result"]["token"].clone();
            told.push(response);
            if read.name == "prepare" && token.is_object() {
                told.push(self.asked("execute", &json!({ "token": token })));
            }
            if let Ok(bytes) = fs::read(&file) {
                told.push(json!(String::from_utf8_lossy(&bytes)));
                fs::remove_file(&file).unwrap();
            }
        }
        told
    }
}

/// A way to read.
struct Read {
    name: &'static str,
    /// Whether it shows secrets or addresses of what is open.
    shows: bool,
    params: fn(&Target) -> Vec<Value>,
}

const fn read(name: &'static str, params: fn(&Target) -> Vec<Value>) -> Read {
    Read { name, shows: true, params }
}

const fn silent(name: &'static str, params: fn(&Target) -> Vec<Value>) -> Read {
    Read { name, shows: false, params }
}

const READS: &[Read] = &[
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
    read("policy_explain", of_address),
    silent("audit", |_| vec![json!({ "limit": 1000 }), json!({ "reads": true, "limit": 1000 })]),
    silent("stats", |_| vec![json!({})]),
    silent("doctor", |_| vec![json!({})]),
    silent("verify", |_| vec![json!({ "full": true })]),
    read("export", |_| vec![json!({ "path": "", "compress": "none" })]),
    silent("subject_report", |_| vec![json!({ "user_id": "ann" }), json!({ "user_id": "bob" })]),
];

/// Methods that tell nothing of stored grains beyond those named to them, or write.
const OTHER_METHODS: &[&str] = &[
    "hello",
    "encode",
    "decode",
    "open",
    "session",
    "put",
    "put_batch",
    "embed",
    "wait_for_vectors",
    "supersede",
    "sign",
    "prove",
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

/// All words of an answer, those of what is in base64 too.
fn unpacked(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                *text += name;
                unpacked(value, text);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| unpacked(value, text)),
        other => {
            let shown = other.to_string();
            let base64 = BASE64.decode(shown.trim_matches('"').as_bytes());
            *text += &base64.map_or_else(|_| shown, |bytes| String::from_utf8_lossy(&bytes).into());
        }
    }
    text.push('\n');
}

/// What answers tell of targets: of the one that was asked about what was not in the question.
fn told_of<'w>(
    told: &[Value],
    asked: &Target,
    all: &'w [(Hiding, Target)],
) -> Vec<&'w (Hiding, Target)> {
    let mut text = String::new();
    told.iter().for_each(|one| unpacked(one, &mut text));
    let is_told = |word: &str, own: &str| word != own && text.contains(word);
    all.iter()
        .filter(|(_, target)| {
            is_told(&target.secret, &asked.secret) || is_told(&target.address, &asked.address)
        })
        .collect()
}

/// Names of what differs from one call to the next, whatever is asked.
const PASSING: [&str; 10] = [
    "duration_ms",
    "query_hash",
    "token",
    "issued_at",
    "expires_at",
    "sequence",
    "hash",
    "head",
    "assembly_id",
    "score",
];

/// Answers without what passes, and without what was in the question.
fn plain(told: &[Value], on: &Target) -> String {
    fn still(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| !PASSING.contains(&name.as_str()));
                kept.map(|(name, value)| (name.clone(), still(value))).collect()
            }
            Value::Array(values) => values.iter().map(still).collect(),
            other => other.clone(),
        }
    }
    let told: String = told.iter().map(|one| still(one).to_string()).collect();
    told.replace(&on.address, "ADDRESS").replace(&on.secret, "SECRET")
}

/// Where two answers part.
fn apart(told: &str, nothing: &str) -> String {
    let same = told.chars().zip(nothing.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(80);
    let part = |text: &str| text.chars().skip(from).take(240).collect::<String>();
    format!("{}\n  {}", part(told), part(nothing))
}

/// Somebody asks about every target, and about one that is not there; what is told that must not be.
fn ask_all(
    asker: Asker,
    reads: &[Read],
    all: &[(Hiding, Target)],
    mut tell: impl FnMut(&Read, &Target) -> Vec<Value>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let absent = Target { address: "5a".repeat(32), secret: "zqzzz".to_owned() };
    for read in reads {
        let nothing = plain(&tell(read, &absent), &absent);
        let mut asked = vec![(read.params)(&absent)];
        let mut shows = false;
        for (hiding, target) in all {
            let params = (read.params)(target);
            if asked.contains(&params) && asked.len() > 1 {
                continue;
            }
            asked.push(params);
            let told = tell(read, target);
            if *hiding != Hiding::Erased
                && told.iter().any(|one| one.to_string().contains("ERR_ERASED"))
            {
                wrong.push(format!("{}, {asker:?}: an erased grain stands in the way", read.name));
            }
            for (other, leaked) in told_of(&told, target, all) {
                if asker.must_not_see(*other) {
                    let (name, secret) = (read.name, &leaked.secret);
                    wrong.push(format!(
                        "{name}, {asker:?}, asked of {hiding:?}: {other:?} {secret}"
                    ));
                }
                shows |= *other == Hiding::Open;
            }
            let told = plain(&told, target);
            if *hiding == Hiding::Open {
                shows |= told != nothing;
            } else if asker.must_not_know(*hiding) && told != nothing {
                let name = read.name;
                let apart = apart(&told, &nothing);
                wrong.push(format!("{name}, {asker:?}: {hiding:?} {}\n  {apart}", target.secret));
            }
        }
        if read.shows && !shows {
            wrong.push(format!("{}, {asker:?}: shows nothing", read.name));
        }
    }
    wrong
}

#[test]
fn no_method_shows_what_is_hidden() {
    let mut world = World::new();
    let all = world.targets.clone();
    let mut wrong = Vec::new();
    for asker in ASKERS {
        world.serve(asker);
        wrong.extend(ask_all(asker, READS, &all, |read, target| world.told(read, target)));
    }
    assert!(wrong.is_empty(), "{} answers:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_reader_is_asked() {
    let hello = Place::empty().rpc().result("hello", &json!({}));
    let methods = hello["methods"].as_array().unwrap().iter();
    let methods: BTreeSet<_> = methods.map(|name| name.as_str().unwrap().to_owned()).collect();
    let listed = READS.iter().map(|read| read.name).chain(OTHER_METHODS.iter().copied());
    let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
    assert_eq!(methods, listed, "add what is new to READS, or to OTHER_METHODS");
}
