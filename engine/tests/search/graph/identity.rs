//! Owners, capabilities and handoffs of agents.

use grainstore::graph::Ownership;
use serde_json::{Value, json};

use crate::graph::kit::{Place, edge, grain_of};

const AGENT: &str = "did:web:example.com:agents:a";
const OPERATOR: &str = "did:web:example.com";

/// A claim of ownership, protected or not.
fn claim(owner: &str, author: Option<&str>, mode: Option<&str>) -> Value {
    let mut grain = edge(AGENT, "mg:owned_by", owner);
    grain["namespace"] = json!("agent:identity");
    grain["owner"] = json!({"type": "org", "name": owner});
    if let Some(author) = author {
        grain["author_did"] = json!(author);
    }
    if let Some(mode) = mode {
        grain["invalidation_policy"] = json!({"mode": mode, "authorized": [OPERATOR]});
    }
    grain
}

fn at(mut grain: Value, field: &str, value: Value) -> Value {
    grain[field] = value;
    grain
}

fn name(ownership: &Ownership) -> Option<&str> {
    ownership.owner.as_ref()?.name.as_deref()
}

#[test]
fn only_a_protected_claim_by_somebody_else_is_canonical() {
    for (author, mode, canonical) in [
        (Some(OPERATOR), Some("locked"), true),
        (Some(OPERATOR), Some("delegated"), true),
        (Some(OPERATOR), Some("soft_locked"), true),
        (Some(OPERATOR), Some("no such mode"), true),
        (Some(OPERATOR), Some("open"), false),
        (Some(OPERATOR), Some("consent_cascade"), false),
        (Some(OPERATOR), None, false),
        (None, Some("locked"), false),
    ] {
        let place = Place::new();
        let address = place.put(&claim("Example Corp", author, mode));
        let found = place.session.owner(AGENT).unwrap();
        let expected =
            if canonical { (Some("Example Corp"), vec![]) } else { (None, vec![address]) };
        assert_eq!((name(&found), found.other_claims.clone()), expected, "{author:?} {mode:?}");
        if let Some(owner) = found.owner {
            assert_eq!((owner.address, owner.author.as_str()), (address, OPERATOR));
            assert_eq!(owner.entity.unwrap().as_map().unwrap()["type"].as_str(), Some("org"));
        }
    }
}

#[test]
fn an_agents_own_claim_is_not_stored() {
    for author in [AGENT, "did:web:example.com:agents:a#key-1"] {
        let place = Place::new();
        let claim = claim("Example Corp", Some(author), Some("locked"));
        let refused = place.session.put(grain_of(&claim)).map_err(|error| error.code());
        assert_eq!(refused, Err("ERR_POLICY"), "{author}");
    }
}

#[test]
fn claims_elsewhere_and_of_other_kinds_are_none() {
    let place = Place::new();
    let good = || claim("Example Corp", Some(OPERATOR), Some("locked"));
    for other in [
        at(good(), "namespace", json!("agent:identity:below")),
        at(good(), "namespace", json!("agent")),
        at(good(), "relation", json!("mg:owns")),
        at(good(), "subject", json!("did:web:example.com:agents:b")),
    ] {
        place.put(&other);
    }
    let nobody = Ownership { owner: None, other_claims: Vec::new() };
    assert_eq!(place.session.owner(AGENT).unwrap(), nobody);
    place.put(&at(good(), "relation", json!("owned_by")));
    assert_eq!(name(&place.session.owner(AGENT).unwrap()), Some("Example Corp"));
    assert_eq!(name(&place.within("agent").owner(AGENT).unwrap()), Some("Example Corp"));
    assert_eq!(place.within("elsewhere").owner(AGENT).unwrap(), nobody, "out of reader");
}

#[test]
fn a_later_claim_does_not_take_over_whatever_time_it_gives() {
    let place = Place::new();
    place.put(&claim("Rightful", Some(OPERATOR), Some("soft_locked")));
    let thief = Some("did:web:thief.example");
    let late = place.put(&at(claim("Late", thief, Some("locked")), "created_at", json!(9000)));
    let early = place.put(&at(claim("Early", thief, Some("locked")), "created_at", json!(1)));
    let found = place.session.owner(AGENT).unwrap();
    assert_eq!(name(&found), Some("Rightful"));
    assert_eq!(found.other_claims, [late, early], "newest first");

    let open = place.put(&at(claim("Open", thief, None), "created_at", json!(5)));
    let found = place.session.owner(AGENT).unwrap();
    assert_eq!(found.other_claims, [late, open, early], "whatever they lack");

    let rightful = found.owner.unwrap().address;
    let grain = claim("Successor", Some(OPERATOR), Some("locked")).to_string();
    let successor = grainstore::Grain::from_json(&grain).unwrap();
    place.session.supersede(&rightful, successor, Some("the company was sold")).unwrap();
    let found = place.session.owner(AGENT).unwrap();
    assert_eq!(name(&found), Some("Successor"), "its chain began first");
    assert_eq!(found.other_claims, [late, open, early]);
}

fn capability(agent: &str, object: Value) -> Value {
    let mut grain = edge(agent, "mg:has_capability", "x");
    grain["namespace"] = json!("agent:identity");
    grain["object"] = object;
    grain
}

#[test]
fn agents_are_found_by_what_they_can_do() {
    let place = Place::new();
    let card = json!({
        "name": "Summarizer", "description": "translate", "supported_tools": ["summarize", "cite"],
    });
    place.put(&capability("did:a", card.clone()));
    place.put(&capability("did:b", json!({"name": "cite", "supported_tools": []})));
    place.put(&capability("did:c", json!("translate")));
    place.put(&at(capability("did:d", json!("cite")), "namespace", json!("elsewhere")));
    place.put(&at(capability("did:e", json!("cite")), "relation", json!("mg:lacks")));
    let old = place.put(&capability("did:f", json!({"supported_tools": ["cite"]})));
    place.supersede(&old, &capability("did:f", json!({"supported_tools": ["draw"]})));
    for (name, expected) in [
        ("cite", vec!["did:a", "did:b"]),
        ("summarize", vec!["did:a"]),
        ("Summarizer", vec!["did:a"]),
        ("translate", vec!["did:c"]),
        ("draw", vec!["did:f"]),
        ("fly", vec![]),
    ] {
        let found = place.session.agents_with(name).unwrap().items;
        let mut agents: Vec<_> = found.iter().map(|one| one.agent.as_str()).collect();
        agents.sort_unstable();
        assert_eq!(agents, expected, "{name}");
    }
    let own = place.session.capabilities("did:a").unwrap();
    assert_eq!((own.items.len(), own.more), (1, false));
    assert_eq!(serde_json::to_value(&own.items[0].capability).unwrap(), card);
    assert_eq!(place.within("elsewhere").capabilities("did:a").unwrap().items, []);
}

#[test]
fn a_handoff_is_followed_until_it_comes_back() {
    let place = Place::new();
    let context = place.edge("what", "is", "needed");
    let goal = |relation: &str, fields: Value| {
        let mut grain = json!({
            "type": "goal", "subject": "did:a", "relation": relation, "object": "did:b",
            "description": "finish it", "goal_state": "active", "criteria": ["it is done"],
            "source_type": "system", "created_at": 1000, "session_id": "s",
        });
        for (name, value) in fields.as_object().unwrap() {
            grain[name] = value.clone();
        }
        place.put(&grain)
    };
    let fields = json!({"context_grains": [context], "return_to": "did:a"});
    let handoff = goal("mg:delegates_to", fields);
    goal("mg:delegates_to", json!({"session_id": "t"}));
    goal("mg:wants", json!({}));
    let found = place.session.handoffs("s").unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].address, handoff);
    assert_eq!((found[0].from.as_str(), found[0].to.as_str()), ("did:a", "did:b"));
    assert_eq!((found[0].return_to.as_deref(), found[0].completed_by), (Some("did:a"), None));
    assert_eq!(found[0].context_grains, [context]);
    let fields = json!({
        "description": "it is finished", "goal_state": "satisfied", "derived_from": [handoff],
    });
    let done = goal("mg:wants", fields);
    assert_eq!(place.session.handoffs("s").unwrap().items[0].completed_by, Some(done));
}
