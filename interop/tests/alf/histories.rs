//! Whatever a store did, another that takes its archive answers the same: the same grains with the same histories, and the
//! same answers of CAL.

use grainstore::VerificationStatus::Retracted;
use grainstore::cal::{Query, Visibility};
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions};
use proptest::prelude::*;

use crate::again::normal;
use crate::kit::*;
use crate::round_trip::assert_same;

/// What an agent does, to which of its grains.
#[derive(Debug, Clone)]
enum Step {
    Learn(usize, usize),
    Happen(usize),
    Replace(usize, usize),
    Retract(usize),
    Relate(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0_usize..12;
    prop_oneof![
        4 => (number.clone(), number.clone()).prop_map(|(who, what)| Step::Learn(who, what)),
        2 => number.clone().prop_map(Step::Happen),
        4 => (number.clone(), number.clone()).prop_map(|(which, what)| Step::Replace(which, what)),
        1 => number.clone().prop_map(Step::Retract),
        1 => number.prop_map(Step::Relate),
    ]
}

fn grain(kind: &str, members: &str, second: usize) -> Grain {
    let time = format!("2026-07-15T10:00:{:02}Z", second % 60);
    let text = format!(r#"{{"type": "{kind}", "created_at": "{time}", {members}}}"#);
    Grain::from_json(&text).unwrap()
}

fn likes(who: usize, what: usize, second: usize, more: &str) -> Grain {
    let who = who % 3;
    let members = format!(
        r#""subject": "person {who}", "relation": "mg:prefers", "object": "drink {what}",
        "confidence": 0.5, "namespace": "team {who}", "user_id": "user {who}"{more}"#
    );
    grain("belief", &members, second)
}

/// Takes a step; what the store refuses, such as a second successor, is no step.
fn take(session: &Session, done: &mut Vec<ContentAddress>, step: &Step, second: usize) {
    let one = |number: usize| done.get(number % done.len().max(1)).copied();
    let made = match step {
        Step::Learn(who, what) => {
            session.put(likes(*who, *what, second, "")).map(|put| put.address())
        }
        Step::Happen(what) => {
            let event = format!(r#""content": "happening {what}", "session_id": "s{}""#, what % 2);
            session.put(grain("event", &event, second)).map(|put| put.address())
        }
        Step::Replace(which, what) => {
            let Some(old) = one(*which) else { return };
            let stored = session.inspect(&old).unwrap().grain().unwrap();
            let who =
                stored.text("subject").and_then(|subject| subject.rsplit(' ').next()?.parse().ok());
            let Some(who) = who else { return };
            session.supersede(&old, likes(who, *what, second, ""), None)
        }
        Step::Retract(which) => {
            let Some(old) = one(*which) else { return };
            let _ = session.set_verification(&old, Retracted, "wrong", None);
            return;
        }
        Step::Relate(which) => {
            let Some(to) = one(*which) else { return };
            let link =
                format!(r#", "related_to": [{{"hash": "{to}", "relation_type": "supports"}}]"#);
            session.put(likes(*which, 99, second, &link)).map(|put| put.address())
        }
    };
    done.extend(made.ok());
}

fn export(world: &World) -> Read {
    let path = world.dir.path().join("out.alf");
    let options = ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..ExportOptions::default()
    };
    alf::export(&world.session, &path, &options, &Monitor::default()).unwrap();
    read(&path)
}

/// Each grain of the agent's own, whether it is current, what took its place, and its history.
fn told(world: &World) -> Vec<(ContentAddress, bool, Option<ContentAddress>, Vec<ContentAddress>)> {
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let found = world.session.query(&all, &PageOptions::first(1_000)).unwrap().results;
    let own = found.iter().filter(|row| {
        let context = row.grain.map("context");
        !context.is_some_and(|context| context.keys().any(|key| key.starts_with("alf:")))
    });
    let mut told: Vec<_> = own
        .map(|row| {
            let history = world.session.history(&row.content_address).unwrap();
            let history = history.into_iter().map(|version| version.address).collect();
            (row.content_address, row.state.is_current(), row.state.superseded_by, history)
        })
        .collect();
    told.sort_unstable();
    told
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(10), ..ProptestConfig::default() })]

    #[test]
    fn another_store_tells_the_same(steps in prop::collection::vec(step(), 1..24)) {
        let [one, other] = [World::new(), World::new()];
        let mut done = Vec::new();
        for (second, step) in steps.iter().enumerate() {
            take(&one.session, &mut done, step, second);
        }
        let out = export(&one);
        other.import(&one.dir.path().join("out.alf"));
        prop_assert_eq!(told(&one), told(&other));
        for question in [
            "RECALL beliefs LIMIT 100",
            "RECALL beliefs WHERE subject = \"person 1\" LIMIT 100",
            "RECALL beliefs WHERE user_id = \"user 2\" LIMIT 100",
            "RECALL events WHERE session_id = \"s1\" LIMIT 100",
            "RECALL beliefs WHERE object = \"drink 3\" LIMIT 100",
        ] {
            let answers = [&one, &other].map(|world| {
                let answer = serde_json::to_value(world.session.ask(question).unwrap()).unwrap();
                answer["results"].clone()
            });
            prop_assert_eq!(&answers[0], &answers[1], "{}", question);
            prop_assert!(answers[0].is_array(), "{}", &answers[0]);
        }
        for grains in ["beliefs", "events"] {
            prop_assert_eq!(one.assembled(grains), other.assembled(grains));
        }
        assert_same(&normal(out), &normal(export(&other)));
        one.verify();
        other.verify();
    }
}
