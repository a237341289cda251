//! A lesson: what an agent knows about somebody lies under that person's own key, is found for them, and
//! is gone when they ask.
//!
//! Run it with `cargo run -p grainstore --example encrypt_and_erase`.
#![expect(clippy::print_stdout, reason = "a lesson shows what it does")]

use grainstore::cal::Query;
use grainstore::{
    EraseOptions, Grain, MasterKey, OpenOptions, PageOptions, Result, SessionOptions, Store,
};

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    // A host keeps its key elsewhere: in a file of its own (KeyFile), a passphrase, or a key service.
    let key = MasterKey::random()?;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true).key(key.clone()))?;

    // Whose a grain is its user_id says. A session that names the person sees theirs, and nobody else's.
    let as_user = |user: &str| {
        let user_id = Some(user.to_owned());
        store.session(SessionOptions { user_id, ..SessionOptions::default() })
    };
    let (alice, bob) = (as_user("alice"), as_user("bob"));
    let tea = alice.put(likes("alice", "green tea")?)?.address();
    bob.put(likes("bob", "green tea")?)?;
    let drinks = Query::default().searching("tea");
    assert_eq!(alice.query(&drinks, &PageOptions::first(9))?.results.len(), 1);

    // Nothing tells whose grains a question is about: it is refused, not half answered.
    let operator = store.session(SessionOptions::default());
    let refused = operator.query(&drinks, &PageOptions::first(9)).map(drop);
    assert_eq!(refused.map_err(|error| error.code()), Err("ERR_KEY"));

    // Alice asks to be forgotten: her key is destroyed, and the bytes are scrubbed before this returns.
    let erasure =
        operator.erase_user("alice", "she asked for it", &EraseOptions::new().now(true))?;
    println!("erased {} grain; certificate: {}", erasure.erased, erasure.certificate.is_some());
    assert_eq!(alice.get(&tea).map(drop).map_err(|error| error.code()), Err("ERR_ERASED"));
    assert_eq!(
        bob.query(&drinks, &PageOptions::first(9))?.results.len(),
        1,
        "bob's is another key"
    );
    Ok(())
}

fn likes(user: &str, what: &str) -> Result<Grain> {
    let json = format!(
        r#"{{"type": "belief", "subject": "{user}", "relation": "likes", "object": "{what}",
            "confidence": 0.9, "created_at": "2026-01-15T10:00:00Z", "user_id": "{user}"}}"#
    );
    Ok(Grain::from_json(&json)?)
}
