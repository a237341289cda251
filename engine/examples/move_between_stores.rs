//! Two people in one store, and what one of them takes along to another store.
//!
//! Run it with `cargo run -p grainstore --example move_between_stores`.
#![expect(clippy::print_stdout, reason = "a lesson shows what it does")]

use grainstore::cal::{Predicate, Query};
use grainstore::{
    ExportOptions, Grain, ImportOptions, OpenOptions, PageOptions, SessionOptions, Store,
};

/// A belief about what somebody prefers.
fn prefers(user: &str, object: &str) -> grainstore::format::Result<Grain> {
    Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "{user}", "relation": "mg:prefers", "object": "{object}",
            "confidence": 0.9, "user_id": "{user}", "created_at": "2026-01-15T10:00:00Z"}}"#
    ))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path().join("old"), &OpenOptions::new().create(true))?;

    // A session for a user reads and writes what is theirs, and does not see what is another's.
    let of = |store: &Store, user: &str| {
        store.session(SessionOptions { user_id: Some(user.to_owned()), ..Default::default() })
    };
    let (ann, bob) = (of(&store, "ann"), of(&store, "bob"));
    let first = ann.put(prefers("ann", "tea")?)?.address();
    let newer = ann.supersede(&first, prefers("ann", "white tea")?, Some("ann said so"))?;
    bob.put(prefers("bob", "coffee")?)?;
    println!("bob sees ann's grain: {}", bob.exists(&newer)?);

    // A file has whole grains in a form that other stores of the standard read, the superseded ones too.
    let file = dir.path().join("ann.mg");
    let exported = ann.export(&file, &Query::default(), &ExportOptions::default())?;
    println!("exported {} grains in {} bytes", exported.exported, exported.bytes);

    // Addresses are hashes of the bytes, so both stores call a grain by the same name.
    let other = Store::open(dir.path().join("new"), &OpenOptions::new().create(true))?;
    let imported = of(&other, "ann").import([&file], &ImportOptions::default())?;
    println!("imported {} grains", imported.added);
    let current = Query::default().when(Predicate::text_is("subject", "ann")?);
    for found in of(&other, "ann").query(&current, &PageOptions::first(10))?.results {
        println!("now: ann prefers {}", found.grain.text("object").unwrap_or("?"));
    }

    // The same file again changes nothing.
    let again = of(&other, "ann").import([&file], &ImportOptions::default())?;
    assert_eq!((again.added, of(&other, "ann").exists(&newer)?), (0, true));
    Ok(())
}
