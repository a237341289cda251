//! A reasoning that asks for the review of a person and has had none: on no path does it leave the store
//! without its flag, and nobody clears the review who may not (OMS 6.1; rulings 46 and 54 of the project's
//! reading).
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use grainstore::cal::{Format, Query};
use grainstore::format::VerificationStatus::{self, Contested, Unverified, Verified};
use grainstore::format::{Encoding, Grain, SigningKey, sign};
use grainstore::graph::{EdgeQuery, GraphOptions};
use grainstore::{ContentAddress, OpenOptions, PageOptions, Session, SessionOptions, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

const FLAG: &str = "requires_human_review";
/// In every text of the reasoning, and in nothing else.
const SECRET: &str = "zebra";
const AUTHOR: &str = "did:web:author.example";
const REVIEWER: &str = "did:web:reviewer.example";
const OPERATOR: &str = "did:web:operator.example";
const OTHER: &str = "did:web:other.example";

struct World {
    _dir: TempDir,
    session: Session,
    reasoning: ContentAddress,
    other: ContentAddress,
}

fn grain(json: &Value) -> Grain {
    Grain::from_json(&json.to_string()).unwrap()
}

fn reasoning(author: &str) -> Value {
    json!({
        "type": "reasoning", "premises": ["zebra stripes"], "conclusion": "zebra conclusion",
        "inference_method": "deductive", "subject": "zebra", "relation": "leads_to", "object": "zebra end",
        "session_id": "s", FLAG: true, "created_at": 1_768_471_200_000_i64, "structural_tags": ["topic"],
        "author_did": author,
    })
}

/// The same with another field, or another value of one.
fn with(mut fields: Value, name: &str, value: impl Into<Value>) -> Value {
    fields.as_object_mut().unwrap().insert(name.to_owned(), value.into());
    fields
}

fn session(store: &Store, actor: Option<&str>) -> Session {
    let actor = actor.map(str::to_owned);
    store.session(SessionOptions { actor, ..SessionOptions::default() })
}

fn world() -> World {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).operator(OPERATOR).reviewer(REVIEWER);
    let store = Store::open(dir.path(), &options).unwrap();
    let session = session(&store, None);
    let other = json!({
        "type": "reasoning", "premises": ["lions"], "conclusion": "lion conclusion", "subject": "lion",
        "inference_method": "deductive", "relation": "leads_to", "object": "lion end", "structural_tags": ["topic"],
        "created_at": 1_768_471_200_001_i64,
    });
    let other = session.put(grain(&other)).unwrap().address();
    let link = json!([{ "hash": other.to_string(), "relation_type": "contradicts" }]);
    let fields = with(reasoning(AUTHOR), "related_to", link);
    let reasoning = session.put(grain(&fields)).unwrap().address();
    let agreed = json!({
        "type": "consensus", "participating_observers": ["a", "b"], "threshold": 2, "agreement_count": 2, "dissent_count": 0,
        "agreed_content": reasoning.to_string(), "created_at": 1_768_471_200_002_i64,
    });
    session.put(grain(&agreed)).unwrap();
    World { _dir: dir, session, reasoning, other }
}

/// Whether what is secret stands anywhere without the flag beside or above it.
fn is_told_without_flag(value: &Value, flagged: bool) -> bool {
    match value {
        Value::String(text) => !flagged && text.contains(SECRET),
        Value::Array(list) => list.iter().any(|one| is_told_without_flag(one, flagged)),
        Value::Object(map) => {
            let flagged = flagged || map.get(FLAG) == Some(&json!(true));
            map.iter().any(|(name, one)| {
                // What the statement said is nothing that was read.
                !["_cal", "explanation"].contains(&name.as_str())
                    && is_told_without_flag(one, flagged)
            })
        }
        _ => false,
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| texts(one, found)),
        Value::Object(map) => {
            for (name, one) in map {
                match (name.as_str(), one) {
                    ("formatted" | "text", Value::String(text)) => found.push(text.clone()),
                    ("summarized", Value::Array(list)) => {
                        found.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => texts(one, found),
                }
            }
        }
        _ => {}
    }
}

/// Statements whose answer is the reasoning, or has it among others; whether it leaves as text.
fn statements(world: &World) -> Vec<(String, bool)> {
    let (one, other) = (world.reasoning, world.other);
    let mut all: Vec<(String, bool)> = [
        "RECALL reasonings".to_owned(),
        "RECALL".to_owned(),
        "RECALL reasonings WITH superseded, provenance, score_breakdown, explanation".to_owned(),
        "RECALL reasonings WHERE query = \"zebra conclusion\"".to_owned(),
        "RECALL reasonings | SELECT conclusion".to_owned(),
        "RECALL reasonings | SELECT subject, object, premises, hash".to_owned(),
        "RECALL reasonings WITH provenance | SELECT subject".to_owned(),
        "RECALL reasonings | PROJECT content(conclusion)".to_owned(),
        "RECALL reasonings | GROUP BY subject".to_owned(),
        "(RECALL reasonings) UNION (RECALL beliefs)".to_owned(),
        "COALESCE (RECALL reasonings WHERE subject = \"zebra\", RECALL goals)".to_owned(),
        "BATCH { a: RECALL reasonings | SELECT object, b: RECALL reasonings }".to_owned(),
        format!("HISTORY sha256:{one}"),
        format!("HISTORY sha256:{one} DIFF sha256:{other}"),
        format!("HISTORY sha256:{other} DIFF sha256:{one}"),
    ]
    .map(|text| (text, false))
    .into();
    for format in Format::ALL {
        let name = format.name();
        all.push((format!("RECALL reasonings AS {name}"), true));
        all.push((
            format!("RECALL reasonings | PROJECT content(conclusion), attr(subject) AS {name}"),
            true,
        ));
        all.push((format!("ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings) FORMAT {name}"), true));
        all.push((format!("ASSEMBLE FOR \"x\" FROM a: (RECALL consensuses) FORMAT {name}"), true));
    }
    for level in ["summary", "standard", "full"] {
        all.push((format!("RECALL reasonings WITH progressive_disclosure({level}) AS sml"), true));
    }
    for text in [
        "ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings) FORMAT TEMPLATE {\n ELEMENT {\n{{grain.content}} {{grain.subject}}\n }\n}",
        "ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings) WITH summarize, provenance, score_breakdown",
        "RECALL reasonings WITH summarize",
    ] {
        all.push((text.to_owned(), true));
    }
    all
}

#[test]
fn nothing_of_it_leaves_cal_without_its_flag_and_no_text_has_it_until_it_is_reviewed() {
    let world = world();
    let World { session, reasoning, .. } = &world;
    let answered = |text: &str| {
        let answer = session.ask(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        serde_json::to_value(answer).unwrap()
    };
    for status in [Unverified, Contested] {
        session.set_verification(reasoning, status, "as it is", None).unwrap();
        for (text, is_text) in statements(&world) {
            let answer = answered(&text);
            assert!(!is_told_without_flag(&answer, false), "{text}: {answer:#}");
            let mut told = Vec::new();
            texts(&answer, &mut told);
            assert!(!told.concat().contains(SECRET), "{text}: {told:?}");
            assert_eq!(
                is_text,
                !told.is_empty() || text.contains("summarize"),
                "{text}: {answer:#}"
            );
        }
        for (text, left) in [("subjects", "lion"), ("objects", "lion end")] {
            let answer = answered(&format!("RECALL | {text}"));
            assert_eq!(answer["values"], json!([left]));
            assert_eq!(answer["_cal"]["warnings"][0]["code"], "CAL-W006", "{answer:#}");
        }
        assert_eq!(answered("RECALL reasonings | COUNT")["count"], 2);
        let hashes = answered("RECALL reasonings | hashes");
        assert_eq!(hashes["values"].as_array().unwrap().len(), 2);
        assert_eq!(hashes["_cal"]["warnings"], json!([]));
        let named = "RECALL WHERE subject IN (RECALL | subjects) | COUNT";
        assert_eq!(answered(named)["count"], 1, "what waits for its review names nothing");
    }
    session.set_verification(reasoning, Verified, "reviewed", None).unwrap();
    for (text, is_text) in statements(&world) {
        let answer = answered(&text);
        let mut told = Vec::new();
        texts(&answer, &mut told);
        let told = if is_text { told.concat() } else { answer.to_string() };
        assert!(told.contains(SECRET), "{text}: {answer:#}");
        let rows = answer["results"].as_array();
        for row in rows.into_iter().flatten() {
            assert_eq!(row.get(FLAG), None, "{text}: {row}");
        }
    }
    let values = answered("RECALL | subjects");
    assert_eq!(values["values"], json!(["lion", "zebra"]));
    assert_eq!(values["_cal"]["warnings"], json!([]));
    for flagless in
        ["RECALL reasonings | GROUP BY subject", "RECALL reasonings | SELECT conclusion"]
    {
        assert!(!answered(flagless).to_string().contains(FLAG));
    }
}

#[test]
fn a_value_is_flagged_where_nobody_else_says_it() {
    let World { session, .. } = world();
    let again = with(reasoning(OTHER), FLAG, false);
    let groups = |session: &Session| {
        let answer = session.ask("RECALL reasonings | GROUP BY subject").unwrap();
        let answer = serde_json::to_value(answer).unwrap();
        let groups = answer["groups"].as_array().unwrap().clone();
        groups.into_iter().find(|group| group["key"] == "zebra").unwrap()
    };
    assert_eq!(groups(&session), json!({ "key": "zebra", "count": 1, FLAG: true }));
    session.put(grain(&again)).unwrap();
    assert_eq!(groups(&session), json!({ "key": "zebra", "count": 2 }));
}

#[test]
fn what_the_engine_gives_has_the_flag_until_it_is_reviewed() {
    let world = world();
    let World { session, reasoning, other, .. } = &world;
    let told = || {
        let walk = EdgeQuery::default();
        let options = GraphOptions::default();
        let edges = session.neighbours("zebra", &walk).unwrap();
        let paths = session.paths("zebra", "zebra end", 2, &walk).unwrap();
        let out = session.related(reasoning, None, 9, &options).unwrap();
        let back = session.related(other, None, 9, &options).unwrap();
        let found = session.query(&Query::default(), &PageOptions::default()).unwrap();
        let batch = session.get_batch(&[*reasoning]).unwrap();
        [
            ("neighbours", serde_json::to_value(&edges.items).unwrap()),
            ("paths", serde_json::to_value(&paths.items).unwrap()),
            ("related", serde_json::to_value(&out.items).unwrap()),
            ("related to it", serde_json::to_value(&back.items).unwrap()),
            ("query", serde_json::to_value(&found.results).unwrap()),
            (
                "get",
                serde_json::to_value(session.get(reasoning).unwrap().grain().unwrap()).unwrap(),
            ),
            (
                "get_batch",
                serde_json::to_value(batch[0].as_ref().unwrap().grain().unwrap()).unwrap(),
            ),
            (
                "history",
                serde_json::to_value(session.history(reasoning).unwrap()[0].grain().unwrap())
                    .unwrap(),
            ),
        ]
    };
    for (path, answer) in told() {
        assert!(!is_told_without_flag(&answer, false), "{path}: {answer:#}");
        assert!(answer.to_string().contains(FLAG), "{path}: {answer:#}");
    }
    session.set_verification(reasoning, Verified, "reviewed", None).unwrap();
    for (path, answer) in told() {
        let is_index = ["neighbours", "paths", "related", "related to it"].contains(&path);
        assert_eq!(answer.to_string().contains(FLAG), !is_index, "{path}: {answer:#}");
    }
}

#[test]
fn a_review_is_cleared_by_the_operator_or_a_named_reviewer_who_did_not_write_it() {
    let key = SigningKey::ed25519_from_seed(&[7; 32]);
    let did = key.did().to_string();
    let options = |operator: bool| {
        let options = OpenOptions::new().create(true).reviewer(REVIEWER).reviewer(&did);
        let options = options.reviewer(format!("{AUTHOR}#key-1"));
        if operator { options.operator(OPERATOR) } else { options }
    };
    for (named, kind, may) in [
        (true, "reasoning", [true, true, true, false, false, true]),
        (true, "event", [true, true, true, false, false, true]),
        // Without a named operator every actor that is limited to nothing is the operator.
        (false, "reasoning", [true, true, true, true, false, true]),
    ] {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), &options(named)).unwrap();
        let host = session(&store, None);
        let actors = [None, Some(OPERATOR), Some(REVIEWER), Some(OTHER), Some(AUTHOR), Some(&*did)];
        for ((actor, may), at) in actors.into_iter().zip(may).zip(1_768_471_200_000_i64..) {
            let fields = with(reasoning(AUTHOR), "type", kind);
            let fields = with(with(fields, "content", "c"), "role", "user");
            let fields = with(fields, "created_at", at);
            let address = host.put(grain(&fields)).unwrap().address();
            let of = |status: VerificationStatus| {
                let done = session(&store, actor).set_verification(&address, status, "why", None);
                done.map_err(|error| error.code())
            };
            assert_eq!(of(Contested), Ok(()), "that says less for it: {actor:?}");
            assert_eq!(of(Unverified).is_ok(), actor != Some(AUTHOR), "and that clears nothing");
            assert_eq!(of(Verified).is_ok(), may, "{kind} {named} {actor:?}");
            let state = host.get(&address).unwrap().state.verification_status;
            assert_eq!(state == Verified, may, "{actor:?}");
            let entries = host.audit(None, 10_000).unwrap();
            let last = entries.iter().rfind(|entry| {
                entry.operation == "set_verification" && entry.status == Some(Verified)
            });
            let last = last.unwrap();
            let rule = match (may, actor == Some(AUTHOR)) {
                (true, _) => "review",
                (false, true) => "own_verification",
                (false, false) => "not_reviewer",
            };
            assert_eq!(
                (&*last.rules[0], &*last.decision),
                (rule, if may { "done" } else { "refused" })
            );
        }
        // A session that is limited is nobody's operator, and a reviewer reviews where it works.
        let fields = json!({
            "type": "reasoning", "premises": ["p"], "conclusion": "c", "inference_method": "deductive",
            "namespace": "team", FLAG: true, "created_at": 1,
        });
        let address = host.put(grain(&fields)).unwrap().address();
        for (actor, may) in [(None, false), (Some(OPERATOR), false), (Some(REVIEWER), true)] {
            let limited = store.session(SessionOptions {
                namespace: Some("team".to_owned()),
                actor: actor.map(str::to_owned),
                ..SessionOptions::default()
            });
            let done = limited.set_verification(&address, Verified, "why", None);
            assert_eq!(done.is_ok(), may, "{actor:?}");
        }
    }
}

#[test]
fn whoever_signed_it_reviews_nothing_whatever_author_it_names() {
    let key = SigningKey::ed25519_from_seed(&[7; 32]);
    let did = key.did().to_string();
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).operator(OPERATOR).reviewer(&did);
    let store = Store::open(dir.path(), &options).unwrap();
    let blob = grain(&reasoning(AUTHOR)).encode(Encoding::MessagePack).unwrap();
    let envelope = sign(blob.bytes(), &key, Some(1)).unwrap();
    let host = session(&store, None);
    let signed = grainstore::Offer::Signed(envelope.bytes().to_vec());
    let address = host.put(signed).unwrap().address();
    let own = session(&store, Some(&did));
    let refused = own.set_verification(&address, Verified, "mine", None).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    host.set_verification(&address, Verified, "seen", None).unwrap();
}

#[test]
fn a_file_that_says_so_clears_no_review_for_who_could_not() {
    let World { session: host, reasoning, .. } = world();
    host.set_verification(&reasoning, Verified, "reviewed", None).unwrap();
    let files = TempDir::new().unwrap();
    let file = files.path().join("all.mg");
    host.export(&file, &Query::default(), &grainstore::ExportOptions::default()).unwrap();
    for (actor, may) in
        [(None, true), (Some(REVIEWER), true), (Some(OTHER), false), (Some(AUTHOR), false)]
    {
        for known in [false, true] {
            let dir = TempDir::new().unwrap();
            let options = OpenOptions::new().create(true).operator(OPERATOR).reviewer(REVIEWER);
            let store = Store::open(dir.path(), &options).unwrap();
            if known {
                session(&store, None).put(host.get(&reasoning).unwrap().grain().unwrap()).unwrap();
            }
            let imported = session(&store, actor).import([&file], &Default::default()).unwrap();
            let told = session(&store, None).get(&reasoning).unwrap().state.verification_status;
            assert_eq!(told == Verified, may, "{actor:?}, known: {known}");
            let disputed = imported.conflicts.iter().filter(|one| one.address == reasoning).count();
            assert_eq!(disputed, usize::from(!may), "{imported:?}");
            let audit = session(&store, None).audit(None, 100).unwrap();
            let refused = audit.iter().filter(|entry| {
                entry.decision == "refused" && entry.operation == "set_verification"
            });
            assert_eq!(refused.count(), usize::from(!may), "{audit:?}");
        }
    }
}
