//! A store with one grain for each protection, and those who try to change them.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::target::{PROTECTIONS, Shape};
use crate::kit::{Place, Rpc, Run};

pub(super) const OPERATOR: &str = "did:web:ops.example";
const AGENT: &str = "did:web:agent.example";
/// Length of vectors.
const DIMENSION: usize = 16;
pub(super) const MODEL: &str = "m";

/// Who tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// An agent with an identity of its own, in the namespace.
    Agent,
    /// A session in the namespace without an actor, which is no operator for that.
    Unnamed,
    /// Another user: does not see the grains.
    Other,
    Operator,
}

pub(super) const ASKERS: [Asker; 4] = [Asker::Agent, Asker::Unnamed, Asker::Other, Asker::Operator];

impl Asker {
    pub(super) fn session(self) -> Value {
        match self {
            Self::Agent => json!({ "namespace": "team", "actor": AGENT }),
            Self::Unnamed => json!({ "namespace": "team" }),
            Self::Other => json!({ "namespace": "team", "user_id": "bob", "actor": AGENT }),
            Self::Operator => json!({ "namespace": null, "actor": OPERATOR }),
        }
    }

    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Agent => &["--namespace", "team", "--actor", AGENT],
            Self::Unnamed => &["--namespace", "team"],
            Self::Other => &["--namespace", "team", "--user", "bob", "--actor", AGENT],
            Self::Operator => &["--actor", OPERATOR],
        }
    }
}

/// A store, by rpc while that is open.
pub(super) struct World {
    pub(super) place: Place,
    rpc: Option<Rpc>,
    /// Who is served.
    pub(super) asker: Asker,
    /// The targets in the order of the protections.
    pub(super) addresses: Vec<String>,
    /// The same as JSON.
    pub(super) grains: Vec<Value>,
    now: i64,
}

fn address_in(answer: &Value) -> String {
    answer["result"]["address"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A vector of its own for each target.
pub(super) fn vector(place: usize) -> Value {
    let values: Vec<f32> = (0..DIMENSION).map(|at| f32::from(u8::from(at == place))).collect();
    json!([{ "model": MODEL, "values": values }])
}

/// A vector that is like no target's.
pub(super) fn far() -> Value {
    vector(DIMENSION - 1)
}

impl World {
    pub(super) fn new() -> Self {
        let place = Place::with_store();
        let mut world = Self {
            place,
            rpc: None,
            asker: Asker::Operator,
            addresses: Vec::new(),
            grains: Vec::new(),
            now: 1_800_000_000_000,
        };
        world.serve(Asker::Operator);
        let root = json!({
            "type": "belief", "subject": "root", "relation": "says", "object": "kept",
            "confidence": 0.9, "created_at": 1_768_471_100_000_i64, "namespace": "team",
            "user_id": "ann", "invalidation_policy": { "mode": "locked", "scope": "subtree" },
        });
        // The first model serves, and its vectors are not for removal.
        let vectors = json!([{ "model": "serving", "values": [1.0] }]);
        let root = world.asked("put", &json!({ "grain": root, "vectors": vectors }));
        let root = address_in(&root);
        for (number, protection) in PROTECTIONS.iter().enumerate() {
            let vectors = vector(number);
            let answer = match protection.shape {
                // What comes from what is locked has no other version.
                Shape::Child => {
                    let grain = protection.grain(Some(&root));
                    let put = json!({ "grain": grain, "vectors": vectors });
                    world.asked("put", &put)
                }
                _ => {
                    let older = world.asked("put", &json!({ "grain": protection.older() }));
                    let (older, grain) = (address_in(&older), protection.grain(None));
                    let new = json!({ "old": older, "grain": grain, "vectors": vectors });
                    world.asked("supersede", &new)
                }
            };
            let address = address_in(&answer);
            let stored = world.asked("get", &json!({ "address": address }));
            world.grains.push(stored["result"]["grain"].clone());
            world.addresses.push(address.clone());
            if protection.shape == Shape::Held {
                let held = world.asked("hold", &json!({ "address": address, "reason": "case 7" }));
                assert!(held["result"].is_object(), "{held}");
            }
        }
        world
    }

    /// Serves somebody by rpc.
    pub(super) fn serve(&mut self, asker: Asker) {
        if self.rpc.is_none() {
            let mut rpc = self.place.rpc();
            let path = self.place.path().join("memory.grains");
            rpc.result("open", &json!({ "path": path, "operator": OPERATOR }));
            self.rpc = Some(rpc);
        }
        self.asked("session", &asker.session());
        self.asker = asker;
    }

    /// Closes the store, so that commands can open it.
    pub(super) fn close(&mut self) {
        if let Some(rpc) = self.rpc.take() {
            rpc.end();
        }
    }

    /// Lets ten seconds pass: writes in CAL are counted by the minute.
    pub(super) fn pass_time(&mut self) {
        self.now += 10_000;
        let now = json!({ "now_ms": self.now });
        self.asked("clock", &now);
    }

    /// The response to a call.
    pub(super) fn asked(&mut self, method: &str, params: &Value) -> Value {
        self.rpc.as_mut().unwrap().call(method, params)
    }

    /// The base64 blob of a grain.
    pub(super) fn blob(&mut self, grain: &Value) -> Value {
        self.asked("encode", &json!({ "grain": grain }))["result"]["blob"].clone()
    }

    /// A grain in an envelope signed with this key, as base64.
    pub(super) fn signed(&mut self, grain: &Value, key: &str) -> Value {
        let signed = self.asked("sign", &json!({ "grain": grain, "key": key }));
        signed["result"]["cose"].clone()
    }

    /// What the operator sees of each target: whether it is as it was.
    pub(super) fn seen(&mut self) -> Vec<Value> {
        self.serve(Asker::Operator);
        (0..PROTECTIONS.len()).map(|place| self.seen_at(place)).collect()
    }

    fn seen_at(&mut self, place: usize) -> Value {
        let address = self.addresses[place].clone();
        let mut got = self.asked("get", &json!({ "address": address }));
        if let Some(state) = got["result"]["state"].as_object_mut() {
            state.remove("access_count");
            state.remove("last_accessed_at");
        }
        let subject = PROTECTIONS[place].subject();
        let current = json!({ "where": { "subject": subject }, "limit": 10 });
        let current = self.asked("query", &current)["result"]["results"].clone();
        let current = current.as_array().into_iter().flatten();
        let current: Vec<_> = current.map(|row| row["content_address"].clone()).collect();
        let vector = &vector(place)[0];
        let near = json!({ "where": { "subject": subject }, "vector": vector, "limit": 1 });
        let near = self.asked("query", &near)["result"]["results"][0].clone();
        json!({
            "error": got["error"]["data"]["code"], "blob": got["result"]["blob"],
            "state": got["result"]["state"], "current": current.contains(&json!(address)),
            "alone": current.len(), "near": [near["content_address"], near["score"]],
        })
    }

    /// Refusals in the audit log.
    pub(super) fn refusals(&mut self) -> u64 {
        self.serve(Asker::Operator);
        let log = self.asked("audit", &json!({ "limit": 1000 }));
        let entries = log["result"]["entries"].as_array().unwrap().iter();
        let refused = |entry: &&Value| {
            entry["decision"] == "refused" || entry["import"]["refused"].as_u64() > Some(0)
        };
        entries.filter(refused).count() as u64
    }

    /// Runs a command for somebody, with this on stdin.
    pub(super) fn run(&self, asker: Asker, arguments: &[&str], stdin: impl AsRef<[u8]>) -> Run {
        let mut all = arguments.to_vec();
        all.extend(["--operator", OPERATOR]);
        all.extend(asker.arguments());
        self.place.feed(&all, stdin)
    }
}

/// The bytes of base64 in a response.
pub(super) fn bytes(base64: &Value) -> Vec<u8> {
    BASE64.decode(base64.as_str().unwrap().as_bytes()).unwrap()
}
