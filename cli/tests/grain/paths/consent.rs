//! Withdrawals of consent, and grants in their place, by everybody: which hide and which erase at once.
//!
//! A withdrawal waits for no policy, whoever makes it, so what is asked is what it comes to: the operator's
//! ends what rests on the consent at once, any other is for review. The same of a grant.

use std::fs;

use serde_json::{Value, json};

use super::file;
use super::target::seed;
use super::world::{ASKERS, Asker, OPERATOR, bytes};
use crate::kit::{Place, Rpc};

const STORE: &str = "memory.grains";
/// Ways to bring a consent, by rpc and by the command.
const WAYS: [&str; 7] =
    ["grain", "batch", "blob", "envelope", "import", "grain put", "grain import"];

/// A store with a consent, and what ends with it.
struct World {
    place: Place,
    rpc: Option<Rpc>,
    grant: String,
    resting: String,
}

/// A consent that names no user: sessions of every user see it.
fn consent(created_at: i64, is_withdrawal: bool, prior: Option<&str>) -> Value {
    let mut consent = json!({
        "type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:shop",
        "scope": ["store"], "is_withdrawal": is_withdrawal, "namespace": "team",
        "created_at": 1_768_471_200_000_i64 + created_at,
    });
    if let Some(prior) = prior {
        consent["prior_consent"] = json!(prior);
    }
    consent
}

impl World {
    fn new() -> Self {
        let place = Place::with_store();
        let mut world = Self { place, rpc: None, grant: String::new(), resting: String::new() };
        world.serve(Asker::Operator);
        let granted = world.asked("put", &json!({ "grain": consent(0, false, None) }));
        world.grant = address_in(&granted);
        let resting = json!({
            "type": "belief", "subject": "ann", "relation": "likes", "object": "tea",
            "confidence": 0.9, "created_at": 1_768_471_200_000_i64, "namespace": "team",
            "processing_basis": world.grant, "invalidation_policy": { "mode": "consent_cascade" },
        });
        world.resting = address_in(&world.asked("put", &json!({ "grain": resting })));
        world
    }

    fn serve(&mut self, asker: Asker) {
        if self.rpc.is_none() {
            let mut rpc = self.place.rpc();
            let path = self.place.path().join(STORE);
            rpc.result("open", &json!({ "path": path, "operator": OPERATOR }));
            self.rpc = Some(rpc);
        }
        self.asked("session", &asker.session());
    }

    fn asked(&mut self, method: &str, params: &Value) -> Value {
        self.rpc.as_mut().unwrap().call(method, params)
    }

    /// Brings a consent by a way, as somebody.
    fn brings(&mut self, way: &str, asker: Asker, consent: &Value) {
        self.serve(asker);
        let blob = self.asked("encode", &json!({ "grain": consent }))["result"]["blob"].clone();
        match way {
            "grain" => drop(self.asked("put", &json!({ "grain": consent }))),
            "batch" => drop(self.asked("put_batch", &json!({ "grains": [consent] }))),
            "blob" => drop(self.asked("put", &json!({ "blob": blob }))),
            "envelope" => {
                // By a stranger: neither party.
                let signed = self.asked("sign", &json!({ "grain": consent, "key": seed(9) }));
                self.asked("put", &json!({ "cose": signed["result"]["cose"] }));
            }
            "import" => {
                fs::write(self.place.path().join("in.mg"), file::of(&bytes(&blob), None)).unwrap();
                let path = self.place.path().join("in.mg");
                self.asked("import", &json!({ "path": path }));
            }
            "grain put" => self.runs(asker, &["put"], &consent.to_string()),
            "grain import" => {
                fs::write(self.place.path().join("in.mg"), file::of(&bytes(&blob), None)).unwrap();
                self.runs(asker, &["import", "in.mg"], "");
            }
            other => panic!("{other}"),
        }
        self.serve(Asker::Operator);
    }

    fn runs(&mut self, asker: Asker, arguments: &[&str], stdin: &str) {
        if let Some(rpc) = self.rpc.take() {
            rpc.end();
        }
        let mut all = arguments.to_vec();
        all.extend(["--operator", OPERATOR]);
        all.extend(asker.arguments());
        self.place.feed(&all, stdin).done();
    }

    /// The last version of the consent, for its address and whether it is for review.
    fn last(&mut self) -> (String, bool) {
        let stored = self.asked("get", &json!({ "address": self.grant }));
        let by = stored["result"]["state"]["superseded_by"].as_str().unwrap().to_owned();
        let last = self.asked("get", &json!({ "address": by }));
        (by, last["result"]["state"]["needs_review"].as_bool().unwrap())
    }

    /// What becomes of what rests on the consent: the code of a get, and how many a sweep erases.
    fn comes_to(&mut self) -> (Value, u64) {
        let got =
            self.asked("get", &json!({ "address": self.resting }))["error"]["data"]["code"].clone();
        let swept = self.asked("sweep", &json!({}));
        // One that the store erased by itself before it was looked at is told with it.
        (got, swept["result"]["erased"].as_u64().unwrap())
    }
}

fn address_in(answer: &Value) -> String {
    answer["result"]["address"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_withdrawal_ends_at_once_what_rests_on_the_consent_if_the_operator_of_the_whole_store_makes_it()
{
    for way in WAYS {
        for asker in ASKERS {
            let mut world = World::new();
            let taken = consent(1, true, Some(&world.grant.clone()));
            world.brings(way, asker, &taken);
            let is_operator = asker == Asker::Operator;
            let (_, for_review) = world.last();
            assert_eq!(for_review, !is_operator, "{way}, {asker:?}");
            let (code, erased) = world.comes_to();
            match is_operator {
                // The store may have swept by itself when it was opened, in another process.
                true => assert!(code == "ERR_ERASED" || erased == 1, "{way}, {asker:?}: {code}"),
                false => {
                    assert_eq!((code, erased), (json!("ERR_WITHDRAWN"), 0), "{way}, {asker:?}");
                }
            }
        }
    }
}

#[test]
fn a_grant_in_the_place_of_a_withdrawal_is_the_word_of_the_operator_of_the_whole_store_alone() {
    for asker in ASKERS {
        let mut world = World::new();
        let taken = consent(1, true, Some(&world.grant.clone()));
        world.brings("grain", Asker::Unnamed, &taken);
        let (taken, _) = world.last();
        world.serve(asker);
        let anew = consent(2, false, Some(&taken));
        let params = json!({ "old": taken, "grain": anew, "justification": "agreed again" });
        let granted = world.asked("supersede", &params);
        assert!(granted["result"].is_object(), "{asker:?}: {granted}");
        world.serve(Asker::Operator);
        let log = world.asked("audit", &json!({ "limit": 1000 }));
        let is_anew = log["result"]["entries"].as_array().unwrap().iter().any(|entry| {
            entry["rules"].as_array().is_some_and(|rules| rules.contains(&json!("granted_anew")))
        });
        assert_eq!(is_anew, asker == Asker::Operator, "{asker:?}");
    }
}
