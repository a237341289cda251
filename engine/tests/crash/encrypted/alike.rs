//! A plain and an encrypted store with the same grains give the same answers to the same questions, for
//! every session that names a person: found in any way, before and after folding, reopening, compaction.

use std::collections::BTreeSet;

use grainstore::cal::{Expansion, Near, Query};
use grainstore::embed::{Embedding, Metric};
use grainstore::graph::EdgeQuery;
use grainstore::{ContentAddress, Grain, Offer, OpenOptions, Session, Store};
use tempfile::TempDir;

use super::random::Random;
use super::world::{as_user, asked, options};

const USERS: [&str; 4] = ["ann", "bob", "cem", ""];
const SUBJECTS: [&str; 5] = ["kim", "lee", "ann", "the sky", "Ö"];
const RELATIONS: [&str; 3] = ["likes", "mg:knows", "owns"];
const OBJECTS: [&str; 5] = ["tea", "green tea", "kim", "lee", "a red boat"];
const TAGS: [&str; 3] = ["taste", "pii:name", "x"];

/// The same store twice.
struct Twins {
    dirs: [TempDir; 2],
    stores: [Store; 2],
    addresses: Vec<ContentAddress>,
}

fn open(dirs: &[TempDir; 2]) -> [Store; 2] {
    [
        Store::open(dirs[0].path(), &OpenOptions::new().create(true)).unwrap(),
        Store::open(dirs[1].path(), &options(grainstore::MasterKey::new([9; 32]))).unwrap(),
    ]
}

impl Twins {
    fn new(random: &mut Random, grains: i64) -> Self {
        let dirs = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let stores = open(&dirs);
        let mut addresses: Vec<ContentAddress> = Vec::new();
        for at in 0..grains {
            let grain = some_grain(random, at, &addresses);
            let vector = vec![1.0, random.below(9) as f32, random.below(9) as f32];
            let vector = Embedding::new("m", Metric::Cosine, vector).unwrap();
            let offer = || Offer::from(grain.clone()).with_vectors(vec![vector.clone()]);
            let [plain, keyed] = stores.each_ref().map(|store| {
                store.session(Default::default()).put(offer()).map(|put| put.address())
            });
            assert_eq!(plain.as_ref().ok(), keyed.as_ref().ok(), "{plain:?} {keyed:?}");
            addresses.extend(plain);
            if at % 9 == 0 && !addresses.is_empty() {
                supersede_one(random, &stores, &addresses, at);
            }
        }
        Self { dirs, stores, addresses }
    }

    fn sessions(&self, user: &str) -> [Session; 2] {
        self.stores.each_ref().map(|store| as_user(store, user))
    }

    fn reopened(self) -> Self {
        self.stores.iter().for_each(|store| store.close().unwrap());
        let stores = open(&self.dirs);
        Self { stores, ..self }
    }
}

fn some_grain(random: &mut Random, at: i64, known: &[ContentAddress]) -> Grain {
    let mut json = serde_json::json!({
        "created_at": 1000 + at / 3, "structural_tags": [random.pick(&TAGS)], "namespace": random.pick(&["a", "a:b", "c"]),
    });
    let user = random.pick(&USERS);
    if !user.is_empty() {
        json["user_id"] = user.into();
    }
    if random.percent(33) {
        json["type"] = "event".into();
        json["role"] = "user".into();
        json["content"] =
            format!("{} and {}", random.pick(&OBJECTS), random.pick(&SUBJECTS)).into();
        json["session_id"] = (random.pick(&["s", "t"])).into();
    } else {
        json["type"] = "belief".into();
        json["confidence"] = 0.5.into();
        json["subject"] = (random.pick(&SUBJECTS)).into();
        json["relation"] = (random.pick(&RELATIONS)).into();
        json["object"] = match random.below(5) {
            0 => serde_json::json!({ "deep": { "is": random.pick(&OBJECTS) } }),
            _ => (random.pick(&OBJECTS)).into(),
        };
        json["context"] = serde_json::json!({ "hc:fhir_id": random.pick(&TAGS) });
    }
    if let Some(parent) = known.get(random.below(40)) {
        json["related_to"] =
            serde_json::json!([{ "hash": parent.to_string(), "relation_type": "supports" }]);
    }
    Grain::from_json(&json.to_string()).unwrap()
}

fn supersede_one(random: &mut Random, stores: &[Store; 2], addresses: &[ContentAddress], at: i64) {
    let old = addresses[random.below(addresses.len())];
    let [plain, keyed] = stores.each_ref().map(|store| {
        let session = store.session(Default::default());
        let grain = session.get(&old).unwrap().grain().unwrap();
        let mut json: serde_json::Value = serde_json::to_value(&grain).unwrap();
        json["created_at"] = (9000 + at).into();
        json.as_object_mut().unwrap().remove("derived_from");
        let next = Grain::from_json(&json.to_string()).unwrap();
        session.supersede(&old, next, Some("it is newer")).map_err(|error| error.code())
    });
    assert_eq!(plain, keyed);
}

/// A statement about anything that an index knows.
fn statement(random: &mut Random) -> String {
    let mut conditions = Vec::new();
    for _ in 0..=random.below(3) {
        conditions.push(match random.below(8) {
            0 | 1 => format!("subject = {:?}", random.pick(&SUBJECTS)),
            2 => format!("relation = {:?}", random.pick(&RELATIONS)),
            3 => format!("object = {:?}", random.pick(&OBJECTS)),
            4 => format!("tags INCLUDE [{:?}]", random.pick(&TAGS)),
            5 => format!("session_id = {:?}", random.pick(&["s", "t"])),
            6 => format!("subject IN ({:?}, {:?})", random.pick(&SUBJECTS), random.pick(&SUBJECTS)),
            _ => format!("namespace = {:?}", random.pick(&["a", "a:b"])),
        });
    }
    conditions.sort();
    conditions.dedup_by_key(|condition| condition.split(' ').next().map(str::to_owned));
    let kind = random.pick(&["beliefs", "events", "grains"]);
    format!("RECALL {kind} WHERE {} LIMIT {}", conditions.join(" AND "), 1 + random.below(30))
}

/// The addresses of an answer in its order, or its code.
fn said(session: &Session, statement: &str) -> Result<Vec<String>, String> {
    let response = session.ask(statement).map_err(|error| error.code().to_owned())?;
    let response = serde_json::to_value(response).unwrap();
    let rows = response["results"].as_array().cloned().unwrap_or_default();
    let addresses = rows.iter().map(|row| row["content_address"].as_str().unwrap().to_owned());
    Ok(addresses.collect())
}

fn compare(twins: &Twins, random: &mut Random, questions: usize) -> usize {
    let mut found = 0;
    for _ in 0..questions {
        let user = USERS[random.below(3)];
        let [plain, keyed] = twins.sessions(user);
        let statement = statement(random);
        let answer = said(&plain, &statement);
        assert_eq!(said(&keyed, &statement), answer, "{user}: {statement}");
        found += answer.map_or(0, |rows| rows.len());
        let words = random.pick(&OBJECTS);
        let by_words = Query::default().searching(words);
        let all = |session| -> BTreeSet<ContentAddress> {
            asked(session, &by_words).unwrap().into_iter().collect()
        };
        assert_eq!(all(&keyed), all(&plain), "{user}: {words}");
        let near = Near { model: None, values: vec![1.0, random.below(9) as f32, 2.0].into() };
        let near = Query::default().nearing(near);
        assert_eq!(asked(&keyed, &near), asked(&plain, &near), "{user}");
        let address = twins.addresses[random.below(twins.addresses.len())];
        let state = |session: &Session| {
            session
                .get(&address)
                .map(|stored| stored.state.superseded_by)
                .map_err(|error| error.code())
        };
        assert_eq!(state(&keyed), state(&plain), "{user}: {address}");
        let linked = Query::default().among(vec![address]);
        let linked = linked.expanding(Expansion { freely: true, hops: 2, ..Expansion::default() });
        let linked = |session| asked(session, &linked).map(BTreeSet::from_iter);
        assert_eq!(linked(&keyed), linked(&plain), "{user}: {address}");
        let subject = random.pick(&SUBJECTS);
        let edges = |session: &Session| {
            let edges =
                session.neighbours(subject, &EdgeQuery { limit: 500, ..EdgeQuery::default() });
            // Edges of one instant come as the index has them, which knows no addresses here.
            let all =
                |listed: grainstore::graph::BoundedList<grainstore::graph::Edge>| -> BTreeSet<String> {
                    listed.items.iter().map(|edge| format!("{edge:?}")).collect()
                };
            edges.map(all).map_err(|error| error.code())
        };
        assert_eq!(edges(&keyed), edges(&plain), "{user}: {subject}");
    }
    found
}

#[test]
fn both_answer_alike_before_and_after_folding_and_reopening() {
    let mut random = Random::new(11);
    let mut twins = Twins::new(&mut random, 180);
    let mut found = compare(&twins, &mut random, 30);
    twins.stores.iter().for_each(|store| store.flush().unwrap());
    found += compare(&twins, &mut random, 30);
    for store in &twins.stores {
        store.compact().unwrap();
    }
    twins = twins.reopened();
    found += compare(&twins, &mut random, 30);
    for store in &twins.stores {
        store.reindex().unwrap();
    }
    found += compare(&twins, &mut random, 30);
    assert!(found > 200, "{found} rows are no test");
    let verified = twins.stores[1].verify(true).unwrap();
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
}

#[test]
fn what_one_exports_the_other_imports() {
    let mut random = Random::new(12);
    let twins = Twins::new(&mut random, 30);
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("all.mg");
    let operator = |store: &Store| store.session(Default::default());
    let exported = operator(&twins.stores[1]).export(&file, &Query::default(), &Default::default());
    let exported = exported.unwrap();
    let dirs = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let stores = open(&dirs);
    for store in &stores {
        let imported =
            operator(store).import(std::slice::from_ref(&file), &Default::default()).unwrap();
        assert_eq!(imported.added, exported.exported);
        assert!(store.verify(true).unwrap().problems.is_empty());
    }
    let copies = Twins { dirs, stores, addresses: twins.addresses.clone() };
    assert!(compare(&copies, &mut random, 40) > 20);
}
