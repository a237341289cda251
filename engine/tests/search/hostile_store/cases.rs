//! One word in every grain, very many versions, very many tags, one word as long as a grain.

use grainstore::cal::Query;
use grainstore::format::Encoding;
use grainstore::{PageOptions, PutOutcome, SameFact};
use serde_json::{Value, json};

use crate::hostile_store::world::{Target, World, belief, grain, number};

fn target(world: &World, fields: &Value, words: &str) -> Target {
    let put = world.timed("put", || world.session().put(grain(fields))).unwrap();
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    Target {
        address: put.address(),
        subject: text("subject"),
        relation: text("relation"),
        words: words.to_owned(),
        is_current: true,
    }
}

#[test]
fn one_word_in_every_grain() {
    let world = World::new("one word");
    let session = world.session();
    let count = number(3_000, 60_000);
    let grains = (0..count).map(|at| {
        let (subject, object) = (format!("subject{at}"), format!("everywhere word{at}"));
        grain(&belief(&subject, "says", &object, at))
    });
    let put = world.timed("put_batch", || session.put_batch(grains)).unwrap();
    let search = |text: &str| {
        let asked = Query::default().searching(text);
        let mut found = world.all(&session, text, &asked).unwrap();
        found.sort_unstable();
        found
    };
    let mut every: Vec<_> = put.iter().map(PutOutcome::address).collect();
    let one = every[count / 2];
    every.sort_unstable();
    for text in ["everywhere", "+everywhere", "everyw*", "everywhere says", "everywhre~"] {
        assert_eq!(search(text), every, "{text}");
    }
    let rare = format!("word{}", count / 2);
    for text in [
        format!("+everywhere +{rare}"),
        format!("+{rare} -oolong"),
        format!("\"everywhere {rare}\""),
    ] {
        assert_eq!(search(&text), [one], "{text}");
    }
    assert_eq!(search("oolong -everywhere").len(), 1);
    let subject = format!("subject{}", count / 2);
    let words = format!("everywhere {rare}");
    let (address, relation) = (one, "says".to_owned());
    world.examine(&[Target { address, subject, relation, words, is_current: true }]);
}

/// A chain of supersessions, asked for at both of its ends.
#[test]
fn a_fact_that_was_superseded_very_often() {
    let world = World::new("chain");
    let session = world.session();
    let count = number(1_200, 12_000);
    let mut chain = Vec::with_capacity(count);
    let mut waiting = Vec::with_capacity(count);
    for at in 0..count {
        let mut fields = belief("restless", "is at", &format!("place{at}"), at);
        let Some(old) = chain.last().copied() else {
            chain.push(session.put(grain(&fields)).unwrap().address());
            continue;
        };
        fields["derived_from"] = json!([old.to_string()]);
        let next = grain(&fields);
        chain.push(next.encode(Encoding::default()).unwrap().address());
        waiting.push(session.submit_supersede(&old, next, None));
    }
    let stored = world.timed("supersede", || {
        waiting.into_iter().map(|waiting| waiting.wait().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(stored, chain[1..]);
    ends(&world, "restless", "is at", &chain);
}

/// Versions of one fact, each put in place of the one before.
#[test]
fn a_fact_that_was_said_anew_very_often() {
    let world = World::new("same fact");
    let session = world.session();
    let count = number(1_200, 12_000);
    let submitted: Vec<_> = (0..count)
        .map(|at| {
            session.submit(grain(&belief("restless", "is at", "sea", at)), SameFact::Supersede)
        })
        .collect();
    let chain: Vec<_> = world
        .timed("put", || submitted.into_iter().map(|put| put.wait().unwrap().address()).collect());
    ends(&world, "restless", "is at", &chain);
}

/// The first and the last version of a chain, in every way, and that no search gives an ended one.
fn ends(world: &World, subject: &str, relation: &str, chain: &[grainstore::ContentAddress]) {
    let end = |at: usize, is_current| Target {
        address: chain[at],
        subject: subject.to_owned(),
        relation: relation.to_owned(),
        words: subject.to_owned(),
        is_current,
    };
    let session = world.session();
    let query = Query::default().searching(subject);
    let found = session.query(&query, &PageOptions::first(10)).unwrap();
    let found: Vec<_> = found.results.iter().map(|row| row.content_address).collect();
    assert_eq!(found, [*chain.last().unwrap()]);
    let versions = world.timed("history", || session.history(&chain[0]));
    match versions {
        Ok(versions) => {
            let versions: Vec<_> = versions.iter().rev().map(|version| version.address).collect();
            assert_eq!(versions, chain);
        }
        Err(error) => assert_eq!((error.code(), chain.len() > 10_000), ("ERR_LIMIT", true)),
    }
    world.examine(&[end(0, false), end(chain.len() / 2, false), end(chain.len() - 1, true)]);
}

/// Versions of one fact that nobody put in place of others: all are current.
#[test]
fn a_fact_with_very_many_current_grains() {
    let world = World::new("crowd");
    let session = world.session();
    let count = number(1_200, 40_000);
    let grains =
        (0..count).map(|at| grain(&belief("restless", "is at", &format!("place{at}"), at)));
    let put = world.timed("put_batch", || session.put_batch(grains)).unwrap();
    let (subject, relation) = ("restless".to_owned(), "is at".to_owned());
    let address = put[count / 3].address();
    let words = format!("restless place{}", count / 3);
    world.examine(&[Target { address, subject, relation, words, is_current: true }]);
}

#[test]
fn a_grain_with_very_many_tags() {
    let world = World::new("tags");
    let mut fields = belief("labelled", "has", "tags", 1);
    let tags = |from: usize, to: usize| (from..to).map(|at| format!("tag:{at:06}")).collect();
    let many: Vec<String> = tags(0, 10_000);
    fields["structural_tags"] = many.into();
    let labelled = target(&world, &fields, "labelled tags");
    let session = world.session();
    let with = |tag: &str| {
        let asked = format!(r#"RECALL WHERE tags INCLUDE ["{tag}"] | COUNT"#);
        let answer = session.ask(&asked).unwrap().answer;
        serde_json::to_value(answer).unwrap()["count"].clone()
    };
    assert_eq!(
        (with("tag:000000"), with("tag:009999"), with("tag:010000")),
        (1.into(), 1.into(), 0.into())
    );
    // As many as a grain has room for, and one more than that.
    let many: Vec<String> = tags(10_000, 90_000);
    fields["structural_tags"] = many.into();
    let full = target(&world, &fields, "labelled tags");
    world.examine(&[labelled, full]);
}

#[test]
fn one_word_as_long_as_a_grain() {
    let world = World::new("long word");
    let events = [
        ("letters", "x".repeat(1_000_000)),
        ("digits", "7".repeat(1_000_000)),
        ("accents", format!("e{}", "\u{301}".repeat(500_000))),
        ("characters", "語".repeat(330_000)),
        ("parts", "aB1-".repeat(250_000)),
        ("emoji", "👩‍👩‍👧".repeat(55_000)),
        ("separators", ":/.".repeat(333_000)),
    ];
    let mut addresses = Vec::new();
    for (name, text) in &events {
        let event = json!({
            "type": "event", "role": "user", "content": text, "subject": name, "created_at": 1000,
        });
        let put = world.timed(&format!("put of {name}"), || world.session().put(grain(&event)));
        addresses.push(put.unwrap().address());
    }
    let session = world.session();
    for ((name, text), address) in events.iter().zip(&addresses) {
        let query = Query::default().searching(text.as_str());
        let answer = world.answered(&format!("search of {name}"), || {
            session.query(&query, &PageOptions::first(10)).map_err(super::world::told)
        });
        let found: Option<Vec<_>> =
            answer.map(|page| page.results.iter().map(|row| row.content_address).collect());
        let has_words = *name != "separators";
        assert!(found.is_none_or(|found| found.contains(address) == has_words), "{name}");
    }
    world.examine(&[]);
    for address in addresses {
        world.timed("get", || world.session().get(&address)).unwrap();
        world.timed("history", || world.session().history(&address)).unwrap();
    }
    let asked = "ASSEMBLE FROM (RECALL events) BUDGET 400 tokens";
    world.timed("ASSEMBLE of events", || world.session().ask(asked)).unwrap();
}
