//! Random stores and every session of them: nobody is told of what they do not see, and everybody is
//! shown what they do.

use std::collections::BTreeSet;

use grainstore::ContentAddress;
use proptest::prelude::*;

use crate::isolation::kit::Place;
use crate::isolation::model::{Kind, Who, World, Written};
use crate::isolation::reads::{About, Asking, READS, Read};
use crate::isolation::steps::steps;
use crate::isolation::told::Told;

/// Namespaces and users of sessions.
const SPACES: [Option<&str>; 6] =
    [None, Some("a"), Some("a:b"), Some("ab"), Some(""), Some("agent:identity")];
const USERS: [Option<&str>; 4] = [None, Some("ann"), Some("bob"), Some("")];
const PEOPLE: [Option<&str>; 2] = [Some("ann"), Some("bob")];

/// What a session is to be shown by a way to read; nothing where the model does not say.
fn expected(
    world: &World,
    who: Who,
    read: &Read,
    about: Option<&Written>,
) -> Option<BTreeSet<ContentAddress>> {
    let among = |wanted: &dyn Fn(&Written) -> bool| {
        let seen = world.grains.iter().filter(|grain| world.sees(who, grain) && wanted(grain));
        Some(seen.map(|grain| grain.address).collect())
    };
    let is_it = |grain: &Written| about.is_some_and(|about| about.address == grain.address);
    let is_hub = |grain: &Written| grain.kind == Kind::Belief;
    match read.name {
        "get_batch" | "exists" | "resolve" | "query, by address" => among(&is_it),
        "query" | "export" => among(&|_| true),
        "query, current" => among(&|grain| grain.is_current),
        "query, by vector" => among(&|grain| grain.is_current && grain.has_vector),
        "query, by words" | "query, reranked" => {
            among(&|grain| grain.is_current && grain.kind != Kind::Consent)
        }
        "history_of" => among(&is_hub),
        "neighbours" => {
            let edges = [Kind::Belief, Kind::Skill, Kind::Goal];
            among(&|grain| grain.is_current && edges.contains(&grain.kind))
        }
        _ => None,
    }
}

/// What a session may know: what it sees, what stands in that, and what took its place.
struct Knows {
    secrets: BTreeSet<String>,
    addresses: BTreeSet<ContentAddress>,
}

impl Knows {
    fn of(world: &World, who: Who) -> Self {
        let seen = || world.grains.iter().filter(|grain| world.sees(who, grain));
        let named = seen().flat_map(|grain| grain.names.iter().chain(&grain.superseded_by));
        Self {
            secrets: seen().map(|grain| grain.secret.clone()).collect(),
            addresses: seen().map(|grain| &grain.address).chain(named).copied().collect(),
        }
    }
}

fn check(world: &World, who: Who, knows: &Knows, read: &Read, about: Option<&Written>) {
    let session = world.place.session(who.space, who.user);
    let any = about.unwrap_or(&world.grains[0]);
    let asking = Asking {
        place: &world.place,
        session: &session,
        address: any.address,
        secret: &any.secret,
    };
    let mut told = Told::default();
    (read.ask)(&asking, &mut told);
    if read.name == "audit" && who.space.is_none() && who.user.is_none() {
        // The log of what was done is whole for whoever sees the whole store.
        return;
    }
    let what = || format!("{} of {:?} to {who:?}", read.name, about.map(|about| &about.secret));
    let asked = about.map(|about| about.secret.clone());
    let secrets: Vec<_> = told
        .secrets()
        .into_iter()
        .filter(|secret| !knows.secrets.contains(secret) && Some(secret) != asked.as_ref())
        .filter(|secret| world.grains.iter().any(|grain| grain.secret == *secret))
        .collect();
    assert!(secrets.is_empty(), "{} tells of {secrets:?}", what());
    let stored: BTreeSet<_> = world.grains.iter().map(|grain| grain.address).collect();
    let addresses: Vec<_> = told
        .addresses(stored.iter())
        .into_iter()
        .filter(|address| stored.contains(address) && !knows.addresses.contains(address))
        .filter(|address| about.is_none_or(|about| about.address != *address))
        .collect();
    assert!(addresses.is_empty(), "{} tells of {addresses:?}", what());
    if let Some(expected) = expected(world, who, read, about) {
        assert_eq!(told.shown, Some(expected), "{}: {:?}", what(), told.refused);
    } else if let Some(shown) = &told.shown {
        let unseen: Vec<_> = world
            .grains
            .iter()
            .filter(|grain| shown.contains(&grain.address) && !world.sees(who, grain))
            .collect();
        assert!(unseen.is_empty(), "{} shows {unseen:?}", what());
    }
    if let Some(about) = about.filter(|_| ["get", "inspect"].contains(&read.name)) {
        let answer = match (world.reaches(who, about), world.holds(about)) {
            _ if about.is_erased => vec!["ERR_ERASED"],
            (false, _) => vec!["ERR_NOT_FOUND"],
            (true, false) => vec!["ERR_WITHDRAWN"],
            (true, true) => vec![],
        };
        assert_eq!(told.refused, answer, "{}", what());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_told_of_what_they_do_not_see(
        encrypted in any::<bool>(),
        steps in steps(),
        waits in any::<bool>(),
        erased in prop::option::of((1..3_usize, any::<bool>())),
        whose in prop::sample::subsequence((0..24_usize).collect::<Vec<_>>(), 3),
    ) {
        let place = if encrypted { Place::encrypted() } else { Place::new() };
        let mut world = World::of(place, &steps);
        if waits {
            world.wait();
        }
        prop_assume!(!world.grains.is_empty());
        if let Some((user, at_once)) = erased {
            world.erase(user, at_once);
        }
        for at in whose {
            // Who names nobody is refused what is encrypted, whatever it is.
            let user = if encrypted { PEOPLE[at % 2] } else { USERS[at % 4] };
            let who = Who { space: SPACES[at / 4], user };
            let knows = Knows::of(&world, who);
            for read in READS {
                match read.about {
                    About::Everything => check(&world, who, &knows, read, None),
                    About::Grain => {
                        let about = |grain| check(&world, who, &knows, read, Some(grain));
                        world.grains.iter().for_each(about);
                    }
                }
            }
        }
    }
}

/// How many stores: `GRAINSTORE_ISOLATION=2000` for a full run.
fn cases() -> u32 {
    let wanted = std::env::var("GRAINSTORE_ISOLATION").ok();
    wanted.and_then(|cases| cases.parse().ok()).unwrap_or(12)
}
