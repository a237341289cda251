//! Searching by structure: conditions, pages, what was so at some time, and the graph.
//!
//! Run it with `cargo run -p grainstore --example search`.
#![expect(clippy::print_stdout, reason = "a lesson shows what it does")]

use grainstore::cal::{Predicate, Query};
use grainstore::format::BeliefBuilder;
use grainstore::graph::EdgeQuery;
use grainstore::{AsOf, EpochMs, OpenOptions, PageOptions, SessionOptions, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    let session = store.session(SessionOptions::default());
    for (day, (subject, relation, object)) in (1..).zip([
        ("alice", "works_at", "acme"),
        ("bob", "works_at", "acme"),
        ("alice", "likes", "tea"),
        ("alice", "works_at", "globex"),
    ]) {
        let at = EpochMs::new(day * 86_400_000);
        session.put(BeliefBuilder::new(at, subject, relation, object, 0.8).build()?)?;
    }

    // A query is a set of conditions. The store chooses the index; `explain` would show which.
    let about_alice = Query::default().when(Predicate::text_is("subject", "alice")?);

    // Answers come in pages. All pages show the store as the first one found it, whatever is
    // written meanwhile.
    let mut page = PageOptions::first(2);
    loop {
        let answer = session.query(&about_alice, &page)?;
        for found in &answer.results {
            let text = |name| found.grain.text(name).unwrap_or("?");
            println!("alice {} {}", text("relation"), text("object"));
        }
        match answer.next_cursor {
            Some(cursor) => page = PageOptions::first(2).after(Some(cursor)),
            None => break,
        }
    }

    // The newest value of a relation: now, or as it was known at some time.
    let now = session.latest("alice", "works_at")?.ok_or("nothing is known")?;
    let then = AsOf { known_at: Some(EpochMs::new(2 * 86_400_000)), valid_at: None };
    let then =
        session.latest_as_of("alice", "works_at", None, &then)?.ok_or("nothing was known")?;
    for (when, found) in [("now", now), ("on day 2", then)] {
        println!("{when}: {}", found.grain()?.text("object").unwrap_or("?"));
    }

    // Beliefs are edges from subject to object, and the store is a graph: who is near acme?
    for edge in session.neighbours("acme", &EdgeQuery::default())?.items {
        println!("{} -{}-> {}", edge.subject, edge.relation, edge.object);
    }
    Ok(())
}
