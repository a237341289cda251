//! The first memory: open a store, remember something, change your mind, look back.
//!
//! Run it with `cargo run -p grainstore --example first_memory`.
#![expect(clippy::print_stdout, reason = "a lesson shows what it does")]

use grainstore::format::BeliefBuilder;
use grainstore::{OpenOptions, SessionOptions, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A store is a directory. It is open in one process at a time, and as many threads as you like.
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;

    // All reading and writing goes through a session, which says who you are. This one belongs to
    // an agent in a namespace: it sees that namespace and what lies below it, and nothing else.
    let session = store.session(SessionOptions {
        namespace: Some("assistant".to_owned()),
        actor: Some("did:web:example.com:assistant".to_owned()),
        ..SessionOptions::default()
    });

    // A memory is a grain. This kind, a belief, says something of a subject, with a confidence.
    let prefers = |object: &str| {
        BeliefBuilder::new(session.now(), "alice", "prefers", object, 0.9)
            .namespace("assistant")
            .build()
    };

    // Its address is the hash of its bytes: the same grain has the same address everywhere. When
    // `put` returns, it is on the disk.
    let tea = session.put(prefers("tea")?)?.address();
    println!("remembered {tea}");

    // Grains never change. What is no longer so is superseded, for a reason that is kept.
    let coffee = session.supersede(&tea, prefers("coffee")?, Some("alice said so on Monday"))?;
    println!("superseded by {coffee}");

    // Nothing is lost: the first grain is there, and knows what took its place.
    let first = session.get(&tea)?;
    assert_eq!(first.state.superseded_by, Some(coffee));
    for version in session.history(&coffee)? {
        let grain = version.grain()?;
        println!("{}: alice prefers {}", version.address, grain.text("object").unwrap_or("?"));
    }
    Ok(())
}
