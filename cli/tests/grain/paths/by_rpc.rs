//! The ways of the table that go by rpc.

use std::fs;

use serde_json::{Value, json};

use super::target::{PROTECTIONS, seed};
use super::world::{MODEL, World, bytes, far};
use super::{How, Power, Way, archive, file};

/// The key of somebody whom no policy names.
const STRANGER: u8 = 9;

const fn way(
    name: &'static str,
    by: &'static str,
    power: Power,
    attempt: fn(&mut World, usize),
) -> Way {
    Way { name, by, power, how: How::Rpc(attempt) }
}

pub(super) const METHODS: &[Way] = &[
    way("put of a successor", "put", Power::Never, |world, place| {
        let grain = successor(world, place);
        world.asked("put", &json!({ "grain": grain }));
    }),
    way("put of a successor as a blob", "put", Power::Never, |world, place| {
        let grain = successor(world, place);
        let blob = world.blob(&grain);
        world.asked("put", &json!({ "blob": blob }));
    }),
    way("put of a successor in an envelope", "put", Power::Never, |world, place| {
        let grain = successor(world, place);
        let cose = world.signed(&grain, &seed(STRANGER));
        world.asked("put", &json!({ "cose": cose }));
    }),
    way("put_batch of a successor", "put_batch", Power::Never, |world, place| {
        let grain = successor(world, place);
        world.asked("put_batch", &json!({ "grains": [grain] }));
    }),
    way("put of a digest of one", "put", Power::Never, |world, place| {
        let grain = digest_of_one(world, place);
        world.asked("put", &json!({ "grain": grain }));
    }),
    way("put in place of the same fact", "put", Power::Nothing, |world, place| {
        let Some(grain) = same_fact(world, place) else { return };
        world.asked("put", &json!({ "grain": grain, "same_fact": "supersede" }));
    }),
    way("put again with vectors", "put", Power::Vectors, |world, place| {
        let grain = world.grains[place].clone();
        world.asked("put", &json!({ "grain": grain, "vectors": far() }));
    }),
    way("put_batch again with vectors", "put_batch", Power::Vectors, |world, place| {
        let grain = world.grains[place].clone();
        world.asked("put_batch", &json!({ "grains": [grain], "vectors": [far()] }));
    }),
    way("embed", "embed", Power::Vectors, |world, place| {
        let address = &world.addresses[place];
        let params = json!({ "address": address, "vectors": far() });
        world.asked("embed", &params);
    }),
    way("remove_vectors", "remove_vectors", Power::Model, |world, _| {
        world.asked("remove_vectors", &json!({ "model": MODEL }));
    }),
    way("supersede", "supersede", Power::Nothing, |world, place| {
        let (old, grain) = (&world.addresses[place], PROTECTIONS[place].rival());
        let params = json!({ "old": old, "grain": grain });
        world.asked("supersede", &params);
    }),
    way("supersede for somebody else", "supersede", Power::Nothing, |world, place| {
        let (old, mut grain) = (&world.addresses[place], PROTECTIONS[place].rival());
        let fields = grain.as_object_mut().unwrap();
        // Of a goal nothing but that stands against its transition.
        fields.retain(|name, _| !matches!(&**name, "user_id" | "importance"));
        let params = json!({ "old": old, "grain": grain });
        world.asked("supersede", &params);
    }),
    way("supersede with a justification", "supersede", Power::Justified, |world, place| {
        let (old, grain) = (&world.addresses[place], PROTECTIONS[place].rival());
        let params = json!({ "old": old, "grain": grain, "justification": "measured" });
        world.asked("supersede", &params);
    }),
    way("supersede by a blob", "supersede", Power::Nothing, |world, place| {
        let grain = successor(world, place);
        let (old, blob) = (world.addresses[place].clone(), world.blob(&grain));
        world.asked("supersede", &json!({ "old": old, "blob": blob }));
    }),
    way("supersede by an envelope", "supersede", Power::Nothing, |world, place| {
        let grain = successor(world, place);
        let cose = world.signed(&grain, &seed(STRANGER));
        let old = &world.addresses[place];
        let params = json!({ "old": old, "cose": cose });
        world.asked("supersede", &params);
    }),
    way("supersede with a stranger's proof", "supersede", Power::Nothing, |world, place| {
        let (old, rival) = (world.addresses[place].clone(), PROTECTIONS[place].rival());
        let proved = json!({
            "operation": "supersede", "address": old, "grain": rival, "key": seed(STRANGER),
        });
        let grain = world.asked("prove", &proved)["result"]["grain"].clone();
        world.asked("supersede", &json!({ "old": old, "grain": grain }));
    }),
    way("supersede with one proof", "supersede", Power::Nothing, |world, place| {
        // Of a signer whom both policies name; under quorum one is too few.
        if PROTECTIONS[place].name == "delegated" {
            return;
        }
        let (old, rival) = (world.addresses[place].clone(), PROTECTIONS[place].rival());
        let proved =
            json!({ "operation": "supersede", "address": old, "grain": rival, "key": seed(1) });
        let grain = world.asked("prove", &proved)["result"]["grain"].clone();
        world.asked("supersede", &json!({ "old": old, "grain": grain }));
    }),
    way("contradict", "contradict", Power::Justified, |world, place| {
        let address = &world.addresses[place];
        let params = json!({ "address": address, "reason": "measured" });
        world.asked("contradict", &params);
    }),
    way("contradict with a stranger's proof", "contradict", Power::Justified, |world, place| {
        marked(world, place, "contradict", "contradict", &json!({}));
    }),
    way("set_verification contested", "set_verification", Power::Justified, |world, place| {
        let params = json!({ "status": "contested" });
        marked(world, place, "contest", "set_verification", &params);
    }),
    way("set_verification retracted", "set_verification", Power::Justified, |world, place| {
        let params = json!({ "status": "retracted" });
        marked(world, place, "retract", "set_verification", &params);
    }),
    way("lift_hold", "lift_hold", Power::Lift, |world, place| {
        let address = &world.addresses[place];
        let params = json!({ "address": address, "reason": "over" });
        world.asked("lift_hold", &params);
    }),
    way("lift_hold with a stranger's proof", "lift_hold", Power::Lift, |world, place| {
        marked(world, place, "lift_hold", "lift_hold", &json!({}));
    }),
    way("erase", "erase", Power::Erase, |world, place| {
        let address = &world.addresses[place];
        let params = json!({ "address": address, "reason": "away" });
        world.asked("erase", &params);
    }),
    way("erase_user of who has something held", "erase_user", Power::Never, |world, _| {
        world.asked("erase_user", &json!({ "user_id": "ann", "reason": "away" }));
    }),
    way("SUPERSEDE in CAL", "cal", Power::Justified, |world, place| {
        let query = supersede(world, place);
        world.asked("cal", &json!({ "query": query, "tier": 1, "namespace": "team" }));
    }),
    way("SUPERSEDE in CAL/JSON", "cal", Power::Justified, |world, place| {
        let query = supersede(world, place);
        let converted = world.asked("cal_convert", &json!({ "query": query }));
        let document = converted["result"]["json"].clone();
        assert!(!document.is_null(), "{converted}");
        let params = json!({ "query": document, "tier": 1, "namespace": "team" });
        world.asked("cal", &params);
    }),
    way("REVERT in CAL", "cal", Power::Justified, |world, place| {
        world.pass_time();
        let head = &world.addresses[place];
        let query = format!(r#"REVERT sha256:{head} REASON "as it was""#);
        world.asked("cal", &json!({ "query": query, "tier": 1, "namespace": "team" }));
    }),
    way("SUPERSEDE in two phases", "execute", Power::Justified, |world, place| {
        let query = supersede(world, place);
        let params = json!({ "query": query, "tier": 1, "namespace": "team" });
        let token = world.asked("prepare", &params)["result"]["token"].clone();
        world.asked("execute", &json!({ "token": token }));
    }),
    way("SUPERSEDE that is only prepared", "prepare", Power::Never, |world, place| {
        let query = supersede(world, place);
        world.asked("prepare", &json!({ "query": query, "tier": 1, "namespace": "team" }));
    }),
    way("import of a successor", "import", Power::Beside, |world, place| {
        let grain = successor(world, place);
        import(world, &grain, None);
    }),
    way("import of a digest of one", "import", Power::Beside, |world, place| {
        let grain = digest_of_one(world, place);
        import(world, &grain, None);
    }),
    way("import of a claim", "import", Power::Nothing, |world, place| {
        let (grain, old) = (successor(world, place), world.addresses[place].clone());
        import(world, &grain, Some(&old));
    }),
    way("alf_import of a changed record", "alf_import", Power::OfOperator, |world, place| {
        let changed = archive::changed(world, place);
        archive::import(world, &[changed], false);
    }),
    way("alf_import of a successor", "alf_import", Power::OfOperator, |world, place| {
        let successor = archive::successor(world, place);
        archive::import(world, &[successor], false);
    }),
    way("alf_import without it", "alf_import", Power::OfOperator, |world, place| {
        let (mut records, at) = archive::records(world, place);
        records.remove(at);
        archive::import(world, &records, true);
    }),
    way("alf_purge", "alf_purge", Power::Erase, |world, place| {
        let record = archive::record(world, place);
        let params = json!({
            "ids": [record["id"]], "reason": "user_request", "requested_by": archive::AGENT,
        });
        world.asked("alf_purge", &params);
    }),
];

/// What somebody would have in the place of a target, derived from it.
pub(super) fn successor(world: &World, place: usize) -> Value {
    let mut grain = PROTECTIONS[place].rival();
    grain["derived_from"] = json!([world.addresses[place]]);
    grain
}

/// A successor that says it brings several grains together, and names one that is here.
fn digest_of_one(world: &World, place: usize) -> Value {
    let mut grain = successor(world, place);
    grain["consolidation_level"] = json!(1);
    grain["derived_from"] = json!([world.addresses[place], "0".repeat(64)]);
    grain
}

/// What says the same as a target, and is under no policy. A goal states no fact.
pub(super) fn same_fact(world: &World, place: usize) -> Option<Value> {
    let mut grain = world.grains[place].clone();
    let fields = grain.as_object_mut().unwrap();
    fields.retain(|name, _| !matches!(&**name, "invalidation_policy" | "derived_from"));
    fields.insert("created_at".to_owned(), json!(1_768_471_300_000_i64));
    (grain["type"] != "goal").then_some(grain)
}

/// A statement that supersedes a target.
pub(super) fn statement(world: &World, place: usize) -> String {
    let (old, words) = (&world.addresses[place], PROTECTIONS[place].words());
    format!(r#"SUPERSEDE sha256:{old} SET {words} = "gone" REASON "measured""#)
}

fn supersede(world: &mut World, place: usize) -> String {
    world.pass_time();
    statement(world, place)
}

/// Calls a method with a stranger's proof of what it does.
fn marked(world: &mut World, place: usize, proved: &str, method: &str, more: &Value) {
    let address = world.addresses[place].clone();
    let proof = json!({ "operation": proved, "address": address, "key": seed(STRANGER) });
    let cose = world.asked("prove", &proof)["result"]["cose"].clone();
    assert!(cose.is_string());
    let mut params = json!({ "address": address, "reason": "measured", "cose": cose });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.asked(method, &params);
}

/// Imports a file of one grain, which is said to have superseded the other.
fn import(world: &mut World, grain: &Value, claims: Option<&str>) {
    let blob = bytes(&world.blob(grain));
    let path = world.place.path().join("in.mg");
    fs::write(&path, file::of(&blob, claims)).unwrap();
    world.asked("import", &json!({ "path": path }));
}
