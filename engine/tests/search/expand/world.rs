//! Small stores of grains that are linked in every way, and what may be seen of them.

use std::collections::BTreeMap;

use grainstore::cal::{Predicate, Query, Visibility};
use grainstore::embed::{Embedding, Metric};
use grainstore::{ContentAddress, EpochMs, GrainState, Offer, Session};
use serde_json::{Value, json};

use crate::expand::kit::grain;
use crate::expand::random::Random;

/// Names of nodes, of which some are found by the words that are searched for.
const NODES: [&str; 10] =
    ["alice", "bob", "tea", "green tea", "black tea", "milk", "cup", "tea cup", "carol", "kettle"];

/// A grain as it stands in the store.
pub(crate) struct Known {
    pub(crate) json: Value,
    pub(crate) state: GrainState,
}

/// Everything in a store, by address.
pub(crate) type World = BTreeMap<ContentAddress, Known>;

/// What is asked beside what is searched for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    pub(crate) namespace: Option<&'static str>,
    pub(crate) user: Option<&'static str>,
    pub(crate) subject: Option<&'static str>,
    pub(crate) valid_at: Option<i64>,
    pub(crate) known_at: Option<i64>,
    pub(crate) everything: bool,
}

impl Bounds {
    pub(crate) fn random(random: &mut Random) -> Self {
        let mut bounds = Self::default();
        if random.percent(25) {
            bounds.namespace = Some("a");
        }
        if random.percent(25) {
            bounds.user = Some(random.pick(&["ann", "ben"]));
        }
        if random.percent(25) {
            bounds.subject = Some(random.pick(&NODES));
        }
        match random.below(6) {
            0 => bounds.valid_at = Some(1500),
            1 => bounds.known_at = Some(1040),
            2 => bounds.everything = true,
            _ => {}
        }
        bounds
    }

    pub(crate) fn query(&self) -> Query {
        let mut query = Query::default();
        for (field, text) in [("user_id", self.user), ("subject", self.subject)] {
            if let Some(text) = text {
                query = query.when(Predicate::text_is(field, text).unwrap());
            }
        }
        if let Some(at) = self.valid_at {
            query = query.valid_at(EpochMs::new(at));
        }
        if let Some(at) = self.known_at {
            query = query.known_at(EpochMs::new(at));
        }
        if self.everything {
            query = query.seeing(Visibility::EVERYTHING);
        }
        query
    }

    /// Whether a grain may lie on the way.
    pub(crate) fn pass(&self, Known { json, state }: &Known) -> bool {
        let number = |name: &str| json[name].as_i64();
        let namespace = json["namespace"].as_str().unwrap_or("shared");
        let is_here = self
            .namespace
            .is_none_or(|own| namespace == own || namespace.starts_with(&format!("{own}:")));
        let is_seen = match (self.known_at, state.system_valid_to) {
            (None, _) => self.everything || state.is_current(),
            (Some(at), until) => {
                let is_known = number("created_at").is_some_and(|from| from <= at);
                is_known && until.is_none_or(|until| at < until.get())
            }
        };
        let is_valid = self.valid_at.is_none_or(|at| {
            number("valid_from").is_none_or(|from| from <= at)
                && number("valid_to").is_none_or(|to| at <= to)
        });
        is_here && is_seen && is_valid && self.user.is_none_or(|user| json["user_id"] == user)
    }
}

/// Some grains, of which some have vectors, some are no longer current, and most are linked.
pub(crate) fn fill(session: &Session, random: &mut Random, count: i64) {
    let mut there: Vec<ContentAddress> = Vec::new();
    for at in 0..count {
        let mut fields = json!({
            "type": "belief", "subject": random.pick(&NODES), "relation": "likes",
            "object": random.pick(&NODES), "confidence": 0.5, "created_at": 1000 + at,
            "user_id": random.pick(&["ann", "ann", "ann", "ben"]),
            "namespace": random.pick(&["a", "a", "a:b", "c"]),
        });
        if random.percent(20) {
            fields["type"] = json!("event");
            fields["content"] = json!(random.pick(&NODES));
            fields["role"] = json!("user");
            for name in ["subject", "relation", "object", "confidence"] {
                fields.as_object_mut().unwrap().remove(name);
            }
        }
        if let Some(other) = there.get(random.below(there.len().max(1))) {
            match random.below(6) {
                0 => fields["derived_from"] = json!([other.to_string()]),
                1 | 2 => {
                    let link = json!({"hash": other.to_string(), "relation_type": "elaborates", "weight": 0.5});
                    fields["related_to"] = json!([link]);
                }
                3 if fields["type"] == "event" => {
                    fields["parent_message_id"] = json!(other.to_string());
                }
                _ => {}
            }
        }
        if random.percent(10) {
            fields["valid_from"] = json!(1900);
        }
        let mut offer = Offer::Grain(grain(&fields.to_string()));
        if random.percent(50) {
            let values = (0..3).map(|_| random.below(100) as f32 + 1.0).collect();
            let vector = Embedding::new("eyes", Metric::Cosine, values).unwrap();
            offer = offer.with_vectors(vec![vector]);
        }
        // One that says the same as what it derives from would have to supersede it.
        let Ok(put) = session.put(offer) else { continue };
        let address = put.address();
        there.push(address);
        let other = there[random.below(there.len())];
        match random.below(12) {
            0 => drop(session.contradict(&other, "not so", None)),
            1 => {
                let mut new = fields.clone();
                new["created_at"] = json!(2000 + at);
                new.as_object_mut().unwrap().remove("derived_from");
                drop(session.supersede(&address, grain(&new.to_string()), None));
            }
            2 if random.percent(30) => session.store().flush().unwrap(),
            _ => {}
        }
    }
}

/// Everything a session of all namespaces sees.
pub(crate) fn world(session: &Session) -> World {
    let everything = Query::default().seeing(Visibility::EVERYTHING);
    let addresses = crate::expand::kit::addresses(session, &everything);
    let read = |address: ContentAddress| {
        let stored = session.get(&address).unwrap();
        let json = serde_json::to_value(stored.grain().unwrap()).unwrap();
        (address, Known { json, state: stored.state })
    };
    addresses.into_iter().map(read).collect()
}
