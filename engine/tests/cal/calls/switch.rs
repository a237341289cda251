//! The switches: what they stop, who sets them, that they are kept.

use grainstore::cal::Tier;
use grainstore::format::EpochMs;
use grainstore::{CalSwitch, PrepareOptions, SessionOptions};

use crate::calls::kit::{ADD, START_MS, World, code, evolving, prepared};

fn tier_one() -> grainstore::cal::ExecuteOptions<'static> {
    let options = grainstore::cal::ExecuteOptions::at(EpochMs::new(START_MS));
    grainstore::cal::ExecuteOptions { tier: Tier::Evolve, ..options }
}

#[test]
fn reads_only_refuses_what_writes_and_off_refuses_everything() {
    let world = World::new();
    let (operator, agent) = (world.operator(), world.agent("work"));
    let (before, reading) = (prepared(&agent, ADD).token, prepared(&agent, "RECALL").token);
    assert!(operator.switch_cal(CalSwitch::Reads, "an incident").unwrap());
    assert!(!operator.switch_cal(CalSwitch::Reads, "again").unwrap(), "it was so");
    assert_eq!(code(agent.ask_with(ADD.as_bytes(), &tier_one())), "CAL-E044");
    assert_eq!(code(agent.execute(&before)), "CAL-E044");
    assert_eq!(code(agent.prepare(ADD.as_bytes(), &evolving())), "CAL-E044");
    assert_eq!(code(agent.ask(&format!("EXPLAIN {ADD}"))), "done");
    assert_eq!(code(agent.ask("RECALL beliefs")), "done");
    operator.switch_cal(CalSwitch::Off, "worse").unwrap();
    for query in ["RECALL beliefs", "DESCRIBE server", "EXPLAIN RECALL", ADD] {
        assert_eq!(code(agent.ask(query)), "ERR_DISABLED", "{query}");
        assert_eq!(code(operator.ask(query)), "ERR_DISABLED", "{query}");
    }
    assert_eq!(code(agent.prepare(b"RECALL", &PrepareOptions::default())), "ERR_DISABLED");
    assert_eq!(code(agent.execute(&reading)), "ERR_DISABLED");
    assert_eq!(operator.get(&world.put("work", "tea")).map(|_| ()).map_err(|e| e.code()), Ok(()));
    operator.switch_cal(CalSwitch::On, "over").unwrap();
    assert_eq!(code(agent.ask_with(ADD.as_bytes(), &tier_one())), "done");
}

#[test]
fn a_switch_is_kept_and_in_the_audit_log() {
    let world = World::new();
    for (to, reason) in [(CalSwitch::Off, "an incident"), (CalSwitch::Reads, "checked")] {
        world.operator().switch_cal(to, reason).unwrap();
    }
    let world = world.reopened();
    assert_eq!(world.store.cal_switch(), CalSwitch::Reads);
    assert_eq!(code(world.operator().ask_with(ADD.as_bytes(), &tier_one())), "CAL-E044");
    let told: Vec<_> = world
        .entries()
        .into_iter()
        .filter(|entry| entry.operation == "cal_switch")
        .map(|entry| (entry.rules, entry.reason.unwrap(), entry.decision))
        .collect();
    let entry =
        |to: &str, reason: &str| (vec![to.to_owned()], reason.to_owned(), "done".to_owned());
    assert_eq!(told, [entry("off", "an incident"), entry("reads", "checked")]);
    world.operator().switch_cal(CalSwitch::On, "over").unwrap();
    let world = world.reopened();
    assert_eq!(world.store.cal_switch(), CalSwitch::On);
    assert!(world.store.verify(true).unwrap().ok);
}

#[test]
fn only_the_operator_switches_and_with_a_reason() {
    let options = grainstore::OpenOptions::new().operator("did:web:operator");
    let world = World::with(options);
    let of = |options: SessionOptions| {
        let switched = world.store.session(options).switch_cal(CalSwitch::Off, "r");
        switched.map_err(|error| error.code())
    };
    let actor = |name: &str| Some(name.to_owned());
    let plain = SessionOptions::default();
    assert_eq!(
        of(SessionOptions { actor: actor("did:web:agent"), ..plain.clone() }),
        Err("ERR_ACCESS")
    );
    assert_eq!(of(SessionOptions { namespace: actor("work"), ..plain.clone() }), Err("ERR_ACCESS"));
    assert_eq!(of(SessionOptions { user_id: actor("alice"), ..plain.clone() }), Err("ERR_ACCESS"));
    let blank = world.operator().switch_cal(CalSwitch::Off, "  ");
    assert_eq!(blank.map_err(|error| error.code()), Err("ERR_EMPTY"));
    assert_eq!(world.store.cal_switch(), CalSwitch::On);
    assert_eq!(of(SessionOptions { actor: actor("did:web:operator"), ..plain }), Ok(true));
}
