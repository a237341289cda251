//! A store in which grains of every kind are hidden in every way, and those who ask.

use std::fs;

use serde_json::{Value, json};

use super::table::Read;
use crate::kit::{Place, Rpc};

pub(super) const OPERATOR: &str = "did:web:ops.example";
pub(super) const AGENT: &str = "did:web:agent.example";
const BASIS_AT: i64 = 1_768_471_100_000;

/// Why a grain is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hiding {
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
pub(super) enum Asker {
    Ann,
    Team,
    Operator,
}

pub(super) const ASKERS: [Asker; 3] = [Asker::Ann, Asker::Team, Asker::Operator];

impl Asker {
    fn session(self) -> Value {
        match self {
            Self::Ann => json!({ "namespace": "team", "user_id": "ann" }),
            Self::Team => json!({ "namespace": "team", "actor": AGENT }),
            Self::Operator => json!({ "namespace": null, "actor": OPERATOR }),
        }
    }

    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Ann => &["--namespace", "team", "--user", "ann"],
            Self::Team => &["--namespace", "team", "--actor", AGENT],
            Self::Operator => &["--actor", OPERATOR],
        }
    }

    /// Whether the contents of a grain are kept from it.
    pub(super) fn must_not_see(self, hiding: Hiding) -> bool {
        match hiding {
            Hiding::Open => false,
            Hiding::User => self == Self::Ann,
            Hiding::Space => self != Self::Operator,
            Hiding::Withdrawn | Hiding::Erased => true,
        }
    }

    /// Whether not even that it is there may be told.
    pub(super) fn must_not_know(self, hiding: Hiding) -> bool {
        matches!(hiding, Hiding::User | Hiding::Space) && self.must_not_see(hiding)
    }
}

/// One grain: what is asked about, or a secret that stands in no grain at all.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) address: String,
    pub(super) secret: String,
}

/// A store in which every kind of grain is hidden in every way.
pub(super) struct World {
    pub(super) place: Place,
    pub(super) rpc: Option<Rpc>,
    pub(super) targets: Vec<(Hiding, Target)>,
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
    pub(super) fn new() -> Self {
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

    pub(super) fn serve(&mut self, asker: Asker) {
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
    pub(super) fn told(&mut self, read: &Read, target: &Target) -> Vec<Value> {
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
