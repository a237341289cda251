//! Templates that are kept: by a session, and by a namespace in the store; who names them, what the audit
//! log has of them, and that they stay whatever happens to the files.

use grainstore::cal::{CalOperation, ExecuteOptions, Tier};
use grainstore::format::EpochMs;
use grainstore::{
    CalSwitch, EraseOptions, MasterKey, OpenOptions, PrepareOptions, Session, SessionOptions,
    Store, TokenLimits,
};
use tempfile::TempDir;

use crate::calls::kit::{START_MS, World, code, evolving, on_terms, shown};

const BRIEF: &str =
    "DEFINE TEMPLATE brief EXTENDS compact ELEMENT { * {{grain.content}} quetzalcoatl }";
const ASSEMBLE: &str = "ASSEMBLE FROM (RECALL beliefs) FORMAT TEMPLATE brief";

fn tier_one() -> ExecuteOptions<'static> {
    ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(EpochMs::new(START_MS)) }
}

fn store_it(session: &Session) -> String {
    code(session.ask_with(BRIEF.as_bytes(), &tier_one()))
}

/// What an assembly by the template says.
fn said(session: &Session) -> String {
    match session.ask(ASSEMBLE) {
        Ok(answer) => answer.text().unwrap().to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

fn is_there(files: &std::path::Path, word: &[u8]) -> bool {
    std::fs::read_dir(files).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        path.is_file()
            && std::fs::read(&path).unwrap().windows(word.len()).any(|window| window == word)
    })
}

#[test]
fn a_session_keeps_its_own_for_itself_and_nobody_else_names_it() {
    let world = World::new();
    world.put("work", "tea");
    let agent = world.agent("work");
    agent.ask(BRIEF).unwrap();
    assert_eq!(said(&agent), "* likes tea quetzalcoatl\n");
    assert_eq!(said(&agent.clone()), "* likes tea quetzalcoatl\n");
    assert_eq!(said(&agent.part(agent.options().clone())), "* likes tea quetzalcoatl\n");
    assert_eq!(code(agent.ask(BRIEF)), "CAL-E088");
    let other = SessionOptions { user_id: Some("bob".to_owned()), ..agent.options().clone() };
    assert_eq!(said(&agent.part(other)), "CAL-E085", "of another user");
    assert_eq!(said(&world.agent("work")), "CAL-E085", "in another session");
    assert_eq!(said(&world.reopened().agent("work")), "CAL-E085", "after the session");
}

#[test]
fn a_namespace_keeps_one_for_everybody_in_it_and_for_good() {
    for options in [OpenOptions::new(), OpenOptions::new().key(MasterKey::new([7; 32]))] {
        let world = World::with(options.clone());
        world.put("work", "tea");
        let agent = world.agent("work");
        assert_eq!(store_it(&agent), "ERR_ACCESS", "for one user");
        let host = world.host("work");
        host.ask(&BRIEF.replace('*', "-")).unwrap();
        assert_eq!(store_it(&host), "CAL-E088", "its own says something else");
        let host = world.host("work");
        host.ask(BRIEF).unwrap();
        assert_eq!(store_it(&host), "done");
        assert_eq!(store_it(&host), "CAL-E088");
        assert_eq!(code(host.prepare(BRIEF.as_bytes(), &evolving())), "CAL-E088");
        assert_eq!(code(world.agent("work").ask(BRIEF)), "CAL-E088", "in no session either");
        let described = shown(&host.ask("DESCRIBE templates").unwrap());
        let listed = described["description"]["templates"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "the session's own gave way");
        assert_eq!(
            (&listed[0]["name"], &listed[0]["kept"]),
            (&"brief".into(), &"namespace".into())
        );
        for namespace in ["work:a", "wor", "other"] {
            let elsewhere = world.agent(namespace);
            assert_eq!(said(&elsewhere), "CAL-E085", "{namespace}");
            assert_eq!(store_it(&world.host(namespace)), "done", "{namespace}");
        }
        assert_eq!(said(&world.operator()), "CAL-E085", "of the whole store");
        let verified = world.store.verify(true).unwrap();
        assert!(verified.ok, "{verified:?}");
        assert_eq!(verified.checked.unwrap().templates, 4);
        let World { store, clock, dir } = world;
        store.close().unwrap();
        let encrypted =
            options.clone().clock(std::sync::Arc::<grainstore::ManualClock>::clone(&clock));
        let store = Store::open(dir.path().join("s.grains"), &encrypted).unwrap();
        let world = World { store, clock, dir };
        assert_eq!(said(&world.agent("work")), "* likes tea quetzalcoatl\n");
    }
}

#[test]
fn a_stored_template_has_its_entry_and_a_refused_one_too() {
    let world = World::new();
    let agent = world.host("work");
    agent.ask(BRIEF).unwrap();
    assert!(world.entries().iter().all(|entry| entry.call.is_none()), "a session's own has none");
    store_it(&agent);
    store_it(&agent);
    let entries = world.entries();
    let told: Vec<_> = entries.iter().filter(|entry| entry.call.is_some()).collect();
    let [done, refused] = told[..] else { panic!("{told:?}") };
    assert_eq!((done.operation.as_str(), done.decision.as_str()), ("define_template", "done"));
    let call = done.call.as_ref().unwrap();
    assert_eq!((call.statement.as_deref(), call.tier), (Some("define_template"), 1));
    assert_eq!(call.namespace.as_deref(), Some("work"));
    assert_eq!((refused.operation.as_str(), refused.decision.as_str()), ("cal", "refused"));
    assert_eq!(refused.call.as_ref().unwrap().code.as_deref(), Some("CAL-E088"));
    assert!(world.store.verify(true).unwrap().ok);
}

#[test]
fn where_nothing_is_written_a_template_that_was_to_stay_is_refused() {
    let world = World::new();
    let (operator, agent) = (world.operator(), world.host("work"));
    let before = agent.prepare(BRIEF.as_bytes(), &evolving()).unwrap().token;
    operator.switch_cal(CalSwitch::Reads, "an incident").unwrap();
    assert_eq!(store_it(&agent), "CAL-E044");
    assert_eq!(code(agent.prepare(BRIEF.as_bytes(), &evolving())), "CAL-E044");
    assert_eq!(code(agent.execute(&before)), "CAL-E044");
    assert_eq!(code(agent.ask(BRIEF)), "done", "the session keeps its own");
    operator.switch_cal(CalSwitch::Off, "worse").unwrap();
    assert_eq!(code(world.agent("work").ask(BRIEF)), "ERR_DISABLED");
    assert_eq!(store_it(&agent), "ERR_DISABLED");
}

#[test]
fn a_token_defines_in_its_tier_and_only_where_its_terms_say_so() {
    let world = World::new();
    let agent = world.host("work");
    let prepared = agent.prepare(BRIEF.as_bytes(), &evolving()).unwrap();
    assert_eq!((prepared.tier, prepared.token.tier), (1, 1));
    assert_eq!(prepared.side_effects, ["keeps a template for the namespace"]);
    assert!(prepared.token.allowed_ops.contains(&CalOperation::DefineTemplate));
    assert_eq!(code(agent.execute(&prepared.token)), "done");
    assert_eq!(code(agent.execute(&prepared.token)), "ERR_TOKEN");
    let reading = agent.prepare(
        BRIEF.replace("brief", "own").as_bytes(),
        &PrepareOptions { tier: Tier::Read, ..PrepareOptions::default() },
    );
    let reading = reading.unwrap();
    assert_eq!(reading.token.tier, 0);
    agent.execute(&reading.token).unwrap();
    assert_eq!(code(agent.ask("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE own")), "done");
    let terms =
        TokenLimits { allowed_ops: Some(vec![CalOperation::Add]), ..TokenLimits::default() };
    let narrow =
        agent.prepare(BRIEF.replace("brief", "third").as_bytes(), &on_terms(Tier::Evolve, terms));
    assert_eq!(code(narrow), "ERR_TOKEN");
}

#[test]
fn a_namespace_has_fifty_at_most() {
    let world = World::new();
    let agent = world.host("work");
    let define = |at: usize| {
        let query = format!("DEFINE TEMPLATE t{at} ELEMENT {{x}}");
        code(agent.ask_with(query.as_bytes(), &tier_one()))
    };
    for at in 0..50 {
        assert_eq!(define(at), "done");
    }
    assert_eq!(define(50), "CAL-E089");
    assert_eq!(store_it(&world.host("other")), "done");
}

#[test]
fn in_an_encrypted_store_no_template_stands_in_the_open() {
    let world = World::with(OpenOptions::new().key(MasterKey::new([7; 32])));
    store_it(&world.host("xochipilli"));
    world.store.flush().unwrap();
    let files = world.dir.path().join("s.grains");
    assert!(!is_there(&files, b"quetzalcoatl") && !is_there(&files, b"xochipilli"));
    let plain = World::new();
    store_it(&plain.host("xochipilli"));
    plain.store.flush().unwrap();
    let files = plain.dir.path().join("s.grains");
    assert!(is_there(&files, b"quetzalcoatl"), "what is looked for can be found");
}

#[test]
fn templates_outlast_scrubbing_compaction_and_backup() {
    for options in [OpenOptions::new(), OpenOptions::new().key(MasterKey::new([7; 32]))] {
        let world = World::with(options.clone());
        let erased = world.put("work", "coffee");
        world.put("work", "tea");
        store_it(&world.host("work"));
        let erasing = EraseOptions::new().now(true);
        world.operator().erase(&erased, "asked to", &erasing).unwrap();
        world.store.scrub().unwrap();
        assert_eq!(said(&world.agent("work")), "* likes tea quetzalcoatl\n");
        world.store.compact().unwrap();
        assert_eq!(said(&world.agent("work")), "* likes tea quetzalcoatl\n");
        let to = TempDir::new().unwrap();
        world.store.backup(to.path()).unwrap();
        assert!(world.store.verify(true).unwrap().ok);
        world.store.close().unwrap();
        let copy = Store::open(to.path(), &options);
        let copy = World { store: copy.unwrap(), ..world };
        assert_eq!(said(&copy.agent("work")), "* likes tea quetzalcoatl\n");
    }
}
