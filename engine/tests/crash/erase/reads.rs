//! From the erasure on no way of reading shows anything of it, whether it was scrubbed or not.

use std::collections::BTreeSet;

use grainstore::cal::{Near, Query, Visibility};
use grainstore::graph::{EdgeQuery, GraphOptions};
use grainstore::{EraseOptions, ExportOptions, PageOptions, Session};
use tempfile::TempDir;

use crate::erase::kit::{ANN, World, files, open, operator};

/// The addresses that any way of reading gives, and the words of audit reasons.
fn shown(session: &Session, world: &World, beside: &TempDir) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let all = Visibility { superseded: true, contradicted: true, retracted: true };
    let every = Query::default().seeing(all);
    let spoken = every.clone().searching(world.spoken());
    let near = every.clone().nearing(Near { model: None, values: [1.0, 0.25].into() });
    for query in [Query::default(), every.clone(), spoken, near] {
        let answer = session.query(&query, &PageOptions::first(1000)).unwrap();
        seen.extend(answer.results.iter().map(|row| row.content_address.to_string()));
    }
    for statement in ["RECALL beliefs LIMIT 1000", "RECALL events WHERE user_id = \"ann\" LIMIT 9"]
    {
        seen.insert(serde_json::to_string(&session.ask(statement).unwrap()).unwrap());
    }
    let known: Vec<_> = world.of_ann.iter().chain(&world.of_bob).copied().collect();
    let batch = session.get_batch(&known).unwrap();
    seen.extend(batch.into_iter().flatten().map(|stored| stored.address.to_string()));
    let options = GraphOptions::default();
    for address in &known {
        let prefix: String = address.to_string().chars().take(16).collect();
        seen.extend(session.resolve(&prefix, 9).unwrap().iter().map(ToString::to_string));
        let versions = session.history(address).unwrap_or_default();
        seen.extend(versions.iter().map(|version| version.address.to_string()));
        for relatives in
            [session.ancestry(address, 9, 9, &options), session.children(address, 9, &options)]
        {
            seen.insert(format!("{relatives:?}"));
        }
    }
    let versions = session.history_of("s", "likes", None, None).unwrap();
    seen.extend(versions.iter().map(|version| version.address.to_string()));
    let latest = session.latest("s", "likes").unwrap();
    seen.extend(latest.map(|stored| stored.address.to_string()));
    seen.insert(format!("{:?}", session.neighbours("s", &EdgeQuery::default()).unwrap()));
    seen.insert(format!("{:?}", session.thread_of_session("s1", &options).unwrap()));
    session.export(beside.path().join("all.mg"), &every, &ExportOptions::default()).unwrap();
    for bytes in files(beside.path()).into_values() {
        seen.insert(String::from_utf8_lossy(&bytes).into_owned());
    }
    let entries = session.audit(None, 10_000).unwrap();
    seen.extend(entries.into_iter().filter_map(|entry| entry.reason));
    seen
}

/// What is shown that tells of her: her addresses, which only errors may have, and her words.
fn telling(seen: &BTreeSet<String>, world: &World) -> Vec<String> {
    let addresses: Vec<String> = world.of_ann.iter().map(ToString::to_string).collect();
    let is_error = |text: &str| text.starts_with("Err(");
    let tells = |text: &&String| {
        let words = world.canaries.iter().chain(addresses.iter().filter(|_| !is_error(text)));
        words.into_iter().any(|word| text.contains(word.as_str()))
    };
    seen.iter().filter(tells).cloned().collect()
}

#[test]
fn nothing_is_shown_of_who_was_erased_before_and_after_the_scrub() {
    let (dir, beside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(dir.path());
    let world = World::of(&store, 2);
    let session = operator(&store);
    let before = shown(&session, &world, &beside);
    assert!(telling(&before, &world).len() > world.of_ann.len());
    session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    for _ in 0..2 {
        let after = shown(&session, &world, &beside);
        assert_eq!(telling(&after, &world), Vec::<String>::new());
        for address in &world.of_bob {
            assert!(after.contains(&address.to_string()), "{address} of Bob's is gone");
        }
        assert!(after.contains("bob has a reason") && after.contains("ann asked"));
        world.assert_ann_is_gone(&store);
        store.scrub().unwrap();
    }
}

#[test]
fn a_turn_that_was_erased_lends_its_words_to_nobody() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let world = World::of(&store, 3);
    let session = operator(&store);
    let spoken = Query::default().searching(world.spoken());
    let found = || session.query(&spoken, &PageOptions::first(100)).unwrap().results;
    let first = found();
    assert!(first.len() > 1, "its neighbours borrow the word");
    session.erase(&first[0].content_address, "said by mistake", &EraseOptions::new()).unwrap();
    assert_eq!(found().len(), 0);
    store.scrub().unwrap();
    assert_eq!(found().len(), 0);
}
