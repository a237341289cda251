//! Protecting a grain: a memory that says itself who may replace it, and how.
//!
//! Run it with `cargo run -p grainstore --example protect_a_grain`.
#![expect(clippy::print_stdout, reason = "a lesson shows what it does")]

use grainstore::{Grain, OpenOptions, SessionOptions, Store};

/// A rule about refunds, with an invalidation policy where one is given (OMS 23).
fn rule(text: &str, policy: &str) -> grainstore::format::Result<Grain> {
    Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "refunds", "relation": "mg:requires", "object": "{text}",
            "confidence": 1.0, "created_at": "2026-01-15T10:00:00Z"{policy}}}"#
    ))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    let session = store.session(SessionOptions::default());

    // `soft_locked` asks for a reason. Without one, nothing may take the place of the grain.
    let policy = r#", "invalidation_policy": {"mode": "soft_locked"}"#;
    let old = session.put(rule("a receipt", policy)?)?.address();
    let refused = session.supersede(&old, rule("nothing", "")?, None);
    println!("without a reason: {}", refused.map_or_else(|error| error.code(), |_| "done"));

    // With a reason it is done, and the successor is marked for a person to look at.
    let new = session.supersede(&old, rule("a receipt or a bank statement", "")?, Some("law"))?;
    println!("with a reason: {new}, review: {}", session.get(&new)?.state.needs_review);

    // `locked` means never. Its successors and what is derived from it may not get around it.
    let policy = r#", "invalidation_policy": {"mode": "locked"}"#;
    let locked = session.put(rule("a manager above 500", policy)?)?.address();
    let refused = session.supersede(&locked, rule("nobody", "")?, Some("I was told to"));
    if let Err(error) = refused {
        assert_eq!(error.code(), "ERR_INVALIDATION_DENIED");
        println!("locked: {error}\n  {}", error.hint());
    }

    // Whether it is done or refused, an entry of the audit log tells of it.
    for entry in session.audit(None, 10)? {
        println!("{} {} {} {:?}", entry.sequence, entry.operation, entry.decision, entry.rules);
    }
    Ok(())
}
