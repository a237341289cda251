//! What the audit log has of calls in CAL: one entry each, with the hash of the query and never its text.

use grainstore::cal::Tier;
use grainstore::format::EpochMs;
use grainstore::{AuditEntry, AuditedCall, Health, MasterKey, OpenOptions, PrepareOptions, Preset};
use sha2::{Digest, Sha256};

use crate::calls::kit::{ADD, START_MS, World, code, prepared};

fn calls(world: &World) -> Vec<(AuditEntry, AuditedCall)> {
    let entries = world.entries().into_iter();
    entries.filter_map(|entry| entry.call.clone().map(|call| (entry, call))).collect()
}

fn evolving() -> grainstore::cal::ExecuteOptions<'static> {
    let options = grainstore::cal::ExecuteOptions::at(EpochMs::new(START_MS));
    grainstore::cal::ExecuteOptions { tier: Tier::Evolve, ..options }
}

#[test]
fn what_writes_is_in_the_entry_of_its_write() {
    let world = World::new();
    let agent = world.agent("work");
    let token = prepared(&agent, ADD).token;
    agent.execute(&token).unwrap();
    agent.ask_with(ADD.as_bytes(), &evolving()).unwrap();
    let found = calls(&world);
    let [(first, by_token), (_, direct)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.operation.as_str(), first.decision.as_str()), ("put", "done"));
    assert_eq!(first.reason.as_deref(), Some("he said so"));
    assert_eq!(first.subjects.len(), 1);
    assert_eq!(by_token.token_id.as_ref(), Some(&token.token_id));
    assert_eq!((by_token.statement.as_deref(), by_token.tier), (Some("add"), 1));
    assert_eq!(by_token.namespace.as_deref(), Some("work"));
    assert_eq!(direct.token_id, None);
    let hash: [u8; 32] = Sha256::digest(grainstore::cal::parse(ADD).unwrap().to_string()).into();
    assert_eq!((by_token.query_hash, direct.query_hash), (hash, hash));
    assert_eq!(by_token.agent.as_ref().map(String::len), Some(32), "a pseudonym");
    assert!(world.store.verify(true).unwrap().ok);
}

#[test]
fn what_writes_is_told_alike_in_json() {
    let world = World::new();
    let agent = world.agent("work");
    let statement = grainstore::cal::parse(ADD).unwrap();
    let json = statement.to_json();
    assert_eq!(code(agent.ask(&json)), "CAL-E044");
    agent.ask_with(json.as_bytes(), &evolving()).unwrap();
    agent.execute(&prepared(&agent, &json).token).unwrap();
    let found = calls(&world);
    let operations: Vec<_> = found.iter().map(|(entry, _)| entry.operation.as_str()).collect();
    assert_eq!(operations, ["put", "cal", "put"]);
    let hash: [u8; 32] = Sha256::digest(statement.to_string()).into();
    for (_, call) in &found {
        assert_eq!((call.statement.as_deref(), call.tier), (Some("add"), 1));
        assert_eq!(call.query_hash, hash, "that of the text");
    }
    assert_eq!(found[1].1.code.as_deref(), Some("CAL-E044"));
}

#[test]
fn a_batch_with_an_entry_that_does_not_read_has_the_hash_of_its_answer() {
    let world = World::new();
    let agent = world.agent("work");
    let query = b"BATCH { a: RECALL beliefs, b: RECALL bogus }";
    let prepared = agent.prepare(query, &PrepareOptions::default()).unwrap();
    let answer = agent.execute(&prepared.token).unwrap();
    assert_eq!(calls(&world), []);
    // What prepared it, and itself.
    let found = world.reads();
    let [_, call] = &found[..] else { panic!("{found:?}") };
    assert_eq!(call.statement.as_deref(), Some("batch"));
    let hash = grainstore::ContentAddress::from_bytes(call.query_hash);
    assert_eq!(answer.meta.query_hash, format!("sha256:{hash}"));
}

#[test]
fn refusals_of_what_writes_have_one_entry_each() {
    let world = World::new();
    let agent = world.agent("work");
    let tea = world.put("work", "tea");
    let supersede = format!(r#"SUPERSEDE sha256:{tea} SET object = "x" REASON "r""#);
    agent.ask_with(supersede.as_bytes(), &evolving()).unwrap();
    let before = calls(&world).len();
    let refused = |query: &str| code(agent.ask_with(query.as_bytes(), &evolving()));
    assert_eq!(refused(&supersede), "CAL-E040");
    assert_eq!(code(agent.ask(ADD)), "CAL-E044");
    assert_eq!(refused("RECALL beleifs"), "CAL-E003");
    let token = prepared(&agent, ADD).token;
    agent.execute(&token).unwrap();
    assert_eq!(code(agent.execute(&token)), "ERR_TOKEN");
    let found = calls(&world).split_off(before);
    let told: Vec<_> = found
        .iter()
        .map(|(entry, call)| {
            (entry.operation.as_str(), entry.decision.as_str(), call.code.as_deref())
        })
        .collect();
    let refused = |code| ("cal", "refused", Some(code));
    // Refusals wait for the next commit, behind its own entries.
    let put = ("put", "done", None);
    assert_eq!(told, [put, refused("CAL-E040"), refused("CAL-E044"), refused("ERR_TOKEN")]);
    assert_eq!(found[3].1.token_id, Some(token.token_id));
    let policy = world.put_locked("work");
    let locked = format!(r#"SUPERSEDE sha256:{policy} SET object = "x" REASON "r""#);
    let before = calls(&world).len();
    assert_eq!(code(agent.ask_with(locked.as_bytes(), &evolving())), "ERR_INVALIDATION_DENIED");
    let found = calls(&world).split_off(before);
    let [(entry, call)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((entry.operation.as_str(), entry.decision.as_str()), ("supersede", "refused"));
    assert_eq!((call.tier, call.code.as_deref()), (1, None), "the rules say why");
    assert!(!entry.rules.is_empty());
}

#[test]
fn reads_are_there_where_the_rules_ask_for_them_and_else_in_the_read_log() {
    for preset in ["open", "hipaa"] {
        let audited = preset == "hipaa";
        let world = World::with(OpenOptions::new().preset(Preset::from_name(preset).unwrap()));
        world.put("work", "tea");
        let agent = world.agent("work");
        agent.ask("RECALL beliefs").unwrap();
        agent.ask("RECALL goals").unwrap();
        agent.ask("DESCRIBE server").unwrap();
        agent.ask("BATCH { a: RECALL beliefs, b: RECALL goals }").unwrap();
        assert_eq!(code(agent.ask("RECALL beleifs")), "CAL-E003");
        let told: Vec<_> = calls(&world)
            .into_iter()
            .map(|(entry, call)| (entry.operation, entry.subjects.len(), call.result_count))
            .collect();
        let expected = [
            ("read", 1, Some(1)),
            ("read", 0, Some(0)),
            ("cal", 0, Some(0)),
            ("read", 1, Some(1)),
            ("cal", 0, None),
        ];
        let expected = expected.map(|(name, subjects, count)| (name.to_owned(), subjects, count));
        assert_eq!(told, if audited { &expected[..] } else { &[] }, "{preset}");
        let before = calls(&world).len();
        let token = agent.prepare(b"RECALL beliefs", &PrepareOptions::default()).unwrap().token;
        agent.execute(&token).unwrap();
        let found = calls(&world).split_off(before);
        let steps: Vec<_> = found.iter().map(|(entry, _)| entry.operation.as_str()).collect();
        assert_eq!(steps, if audited { vec!["cal", "read"] } else { vec![] }, "{preset}");
        let recorded = world.reads();
        assert_eq!(recorded.len(), if audited { 0 } else { 7 }, "{preset}: in one log alone");
        let by_token = found.last().map(|(_, call)| call).or(recorded.last()).unwrap();
        assert_eq!((by_token.tier, by_token.result_count), (0, Some(1)));
        assert_eq!(by_token.token_id.as_ref(), Some(&token.token_id));
        assert!(world.store.verify(true).unwrap().ok);
    }
}

#[test]
fn no_text_of_a_query_is_in_the_store() {
    let world = World::with(OpenOptions::new().preset(Preset::from_name("hipaa").unwrap()));
    let agent = world.agent("work");
    let query = r#"RECALL beliefs WHERE subject = "quetzalcoatl" OR nonsense"#;
    assert_eq!(code(agent.ask(query)), "CAL-E002");
    agent.ask(r#"RECALL beliefs WHERE subject = "quetzalcoatl""#).unwrap();
    agent.prepare(br#"RECALL beliefs ABOUT "quetzalcoatl""#, &PrepareOptions::default()).unwrap();
    world.store.flush().unwrap();
    assert_eq!(calls(&world).len(), 3);
    world.store.close().unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(world.dir.path().join("s.grains")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            let there = bytes.windows(12).any(|window| window == b"quetzalcoatl");
            assert!(!there, "{}", path.display());
        }
    }
    assert!(files > 1);
}

#[test]
fn in_an_encrypted_store_hash_namespace_and_agent_are_pseudonyms() {
    let world = World::with(OpenOptions::new().key(MasterKey::new([7; 32])));
    let agent = world.agent("quetzalcoatl-wing");
    agent.ask_with(ADD.as_bytes(), &evolving()).unwrap();
    let (_, call) = calls(&world).pop().unwrap();
    let hash: [u8; 32] = Sha256::digest(grainstore::cal::parse(ADD).unwrap().to_string()).into();
    assert_ne!(call.query_hash, hash, "it cannot be tested without the key");
    assert_eq!(call.namespace.as_ref().map(String::len), Some(32));
    assert_eq!(call.agent.as_ref().map(String::len), Some(32));
    assert!(world.store.verify(true).unwrap().ok);
    for finding in world.store.check_cal().unwrap() {
        assert_eq!(finding.health, Health::Good, "{finding:?}");
    }
}

#[test]
fn a_session_is_told_of_calls_only_about_what_it_sees() {
    let world = World::with(OpenOptions::new().preset(Preset::from_name("hipaa").unwrap()));
    world.put("work", "tea");
    world.put("private", "secrets");
    world.operator().ask("RECALL beliefs").unwrap();
    world.agent("work").ask("RECALL beliefs").unwrap();
    let seen = world.agent("work").audit(None, 1000).unwrap();
    let counts: Vec<_> = seen
        .iter()
        .filter(|entry| entry.operation == "read")
        .map(|entry| entry.call.as_ref().map(|call| call.result_count))
        .collect();
    assert_eq!(counts, [None, Some(Some(1))], "not that there was more");
}

#[test]
fn calls_that_are_refused_alike_over_many_openings_do_not_grow_the_log() {
    let mut world = World::new();
    for _ in 0..6 {
        assert_eq!(code(world.agent("work").ask(ADD)), "CAL-E044");
        world = world.reopened();
    }
    let refused = |world: &World| -> Vec<_> {
        let entries = world.entries().into_iter().filter(|entry| entry.decision == "refused");
        entries.map(|entry| entry.count).collect()
    };
    assert_eq!(refused(&world), [None, Some(1)]);
    world.clock.set(EpochMs::new(START_MS + 61_000));
    world = world.reopened();
    assert_eq!(refused(&world), [None, Some(1), Some(4)]);
    assert!(world.store.verify(true).unwrap().ok);
}
