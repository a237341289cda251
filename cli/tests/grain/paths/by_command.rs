//! The ways of the table that go by the command.

use std::fs;

use serde_json::Value;

use super::by_rpc::{same_fact, statement, successor};
use super::target::PROTECTIONS;
use super::world::{Asker, World};
use super::{How, Power, Way, file};

const fn way(
    name: &'static str,
    by: &'static str,
    power: Power,
    attempt: fn(&World, Asker, usize),
) -> Way {
    Way { name, by, power, how: How::Command(attempt) }
}

pub(super) const COMMANDS: &[Way] = &[
    way("grain put of a successor", "put", Power::Never, |world, asker, place| {
        world.run(asker, &["put"], successor(world, place).to_string());
    }),
    way("grain put of an envelope", "put", Power::Never, |world, asker, place| {
        let cose = signed(world, &successor(world, place));
        world.run(asker, &["put", "--format", "cose"], cose);
    }),
    way("grain put --same-fact", "put", Power::Nothing, |world, asker, place| {
        let Some(grain) = same_fact(world, place) else { return };
        world.run(asker, &["put", "--same-fact", "supersede"], grain.to_string());
    }),
    way("grain supersede", "supersede", Power::Nothing, |world, asker, place| {
        let rival = PROTECTIONS[place].rival().to_string();
        world.run(asker, &["supersede", &world.addresses[place], "-"], rival);
    }),
    way("grain supersede, justified", "supersede", Power::Justified, |world, asker, place| {
        let rival = PROTECTIONS[place].rival().to_string();
        let why = ["--justification", "measured"];
        world.run(asker, &["supersede", &world.addresses[place], "-", why[0], why[1]], rival);
    }),
    way("grain supersede by an envelope", "supersede", Power::Nothing, |world, asker, place| {
        let cose = signed(world, &successor(world, place));
        world.run(asker, &["supersede", &world.addresses[place], "-", "--format", "cose"], cose);
    }),
    way("grain contradict", "contradict", Power::Justified, |world, asker, place| {
        world.run(asker, &["contradict", &world.addresses[place], "--reason", "measured"], "");
    }),
    way("grain set-verification", "set-verification", Power::Justified, |world, asker, place| {
        let address = &*world.addresses[place];
        let mark = ["set-verification", address, "retracted", "--reason", "measured"];
        world.run(asker, &mark, "");
    }),
    way("grain lift-hold", "lift-hold", Power::Lift, |world, asker, place| {
        world.run(asker, &["lift-hold", &world.addresses[place]], "");
    }),
    way("grain erase", "erase", Power::Erase, |world, asker, place| {
        let address = &*world.addresses[place];
        world.run(asker, &["erase", "--address", address, "--reason", "away", "--yes"], "");
    }),
    way("grain remove-vectors", "remove-vectors", Power::Model, |world, asker, place| {
        // Each of them takes all.
        if place == 0 {
            world.run(asker, &["remove-vectors", "m"], "");
        }
    }),
    way("grain cal --evolve", "cal", Power::Justified, |world, asker, place| {
        world.run(asker, &["cal", "--evolve", &statement(world, place)], "");
    }),
    way("grain repl --evolve", "repl", Power::Justified, |world, asker, place| {
        world.run(asker, &["repl", "--evolve"], format!("{}\n", statement(world, place)));
    }),
    way("grain import of a successor", "import", Power::Beside, |world, asker, place| {
        import(world, asker, place, false);
    }),
    way("grain import of a claim", "import", Power::Nothing, |world, asker, place| {
        import(world, asker, place, true);
    }),
];

/// A grain in an envelope of somebody whom no policy names.
fn signed(world: &World, grain: &Value) -> Vec<u8> {
    let key = world.place.path().join("stranger");
    if !key.exists() {
        world.place.grain(&["keys", "new", "stranger"]).done();
    }
    world.place.feed(&["sign", "--key-seed", "stranger"], grain.to_string()).done().out
}

fn import(world: &World, asker: Asker, place: usize, claims: bool) {
    let blob = world.place.feed(&["encode", "-"], successor(world, place).to_string()).done().out;
    let old = claims.then(|| &*world.addresses[place]);
    fs::write(world.place.path().join("in.mg"), file::of(&blob, old)).unwrap();
    world.run(asker, &["import", "in.mg"], "");
}
