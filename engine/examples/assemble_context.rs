//! Assembling context: what a language model is told, within a budget of tokens.
//!
//! Run it with `cargo run -p grainstore --example assemble_context`.
#![expect(clippy::print_stdout, reason = "a lesson shows what it does")]

use grainstore::format::{BeliefBuilder, EventBuilder};
use grainstore::{OpenOptions, SessionOptions, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    let session = store.session(SessionOptions::default());
    let now = session.now();

    // What is known of alice, and what was said in a conversation with her.
    for (relation, object) in [("prefers", "tea"), ("lives_in", "Oslo"), ("allergic_to", "nuts")] {
        session.put(BeliefBuilder::new(now, "alice", relation, object, 0.9).build()?)?;
    }
    for text in ["What shall I cook tonight?", "Something warm, please."] {
        let said = EventBuilder::new(now, text).role("user").session_id("chat-1");
        session.put(said.build()?)?;
    }

    // CAL reads and never destroys. ASSEMBLE splits the budget between its sources and says each
    // grain as fully as there is room for. The text escapes what grains say, so that a stored text
    // cannot pose as markup.
    let answer = session.ask(
        r#"ASSEMBLE dinner FOR "helping alice to cook"
           FROM facts: (RECALL beliefs ABOUT "alice"), talk: (RECALL events THREAD "chat-1")
           BUDGET 300 tokens"#,
    )?;
    println!("{}", answer.text().unwrap_or_default());

    // The budget is a promise: with less room, less is said, and never more than asked for.
    let short = session.ask(r#"ASSEMBLE FROM (RECALL beliefs ABOUT "alice") BUDGET 40 tokens"#)?;
    println!("{}", short.text().unwrap_or_default());

    // A statement that is wrong is answered with a code, its place and what to write instead.
    let wrong = session.ask("RECALL beleifs").map(drop);
    if let Err(error) = wrong {
        println!("{error}");
    }
    Ok(())
}
