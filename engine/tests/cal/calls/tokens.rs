//! Two phases and the token between them: what it covers, and every way to misuse it.

use std::sync::Barrier;
use std::thread;

use grainstore::cal::{CalOperation, Tier};
use grainstore::format::{EpochMs, GrainType};
use grainstore::{CapabilityToken, PrepareOptions, SessionOptions, TokenLimits};
use serde_json::json;

use crate::calls::kit::{ADD, START_MS, World, code, evolving, on_terms, prepared, shown};

const FIVE_MINUTES_MS: i64 = 5 * 60 * 1000;

#[test]
fn preparing_says_what_would_happen_and_executing_does_it_once() {
    let world = World::new();
    let agent = world.agent("work");
    let waiting = prepared(&agent, ADD);
    assert_eq!((waiting.tier, waiting.side_effects.as_slice()), (1, &["adds one grain"][..]));
    let token = &waiting.token;
    assert_eq!(token.namespace.as_deref(), Some("work"));
    assert_eq!(token.user_id.as_deref(), Some("alice"));
    assert_eq!(token.agent_id.as_deref(), Some("agent-7"));
    assert_eq!(token.allowed_grain_types, ["belief"]);
    assert_eq!((token.max_uses, token.write_quota_remaining), (1, 1));
    assert_eq!(token.expires_at - token.issued_at, FIVE_MINUTES_MS);
    assert_eq!(world.store.stats().unwrap().grains, 0, "nothing ran");
    let done = shown(&agent.execute(token).unwrap());
    assert_eq!(done["_cal"]["tier"], 1);
    assert_eq!(world.store.stats().unwrap().grains, 1);
    assert_eq!(code(agent.execute(token)), "ERR_TOKEN", "replayed");
    assert_eq!(world.store.stats().unwrap().grains, 1);
}

#[test]
fn a_token_of_a_read_writes_nothing_and_names_no_write() {
    let world = World::new();
    world.put("work", "tea");
    let agent = world.agent("work");
    let waiting = agent.prepare(b"RECALL beliefs", &PrepareOptions::default()).unwrap();
    assert_eq!((waiting.tier, waiting.token.write_quota_remaining), (0, 0));
    assert!(!waiting.token.allowed_ops.contains(&CalOperation::Add));
    assert_eq!(
        shown(&agent.execute(&waiting.token).unwrap())["results"].as_array().unwrap().len(),
        1
    );
    assert_eq!(code(agent.prepare(ADD.as_bytes(), &PrepareOptions::default())), "CAL-E044");
    let explained = format!("EXPLAIN {ADD}");
    let waiting = agent.prepare(explained.as_bytes(), &PrepareOptions::default()).unwrap();
    assert_eq!(shown(&agent.execute(&waiting.token).unwrap())["plan"]["tier"], 1);
}

#[test]
fn what_was_altered_forged_or_swapped_is_no_token_and_uses_none_up() {
    let world = World::new();
    let agent = world.agent("work");
    let one = prepared(&agent, ADD).token;
    let other = agent.prepare(b"DESCRIBE server", &PrepareOptions::default()).unwrap().token;
    let good = serde_json::to_value(&one).unwrap();
    for (field, value) in [
        ("namespace", json!("private")),
        ("namespace", json!(null)),
        ("user_id", json!("bob")),
        ("tier", json!(0)),
        ("allowed_ops", json!(["Add", "Supersede", "Revert"])),
        ("allowed_grain_types", json!([])),
        ("expires_at", json!(i64::MAX)),
        ("issued_at", json!(0)),
        ("max_uses", json!(50)),
        ("write_quota_remaining", json!(50)),
        ("token_id", json!(other.token_id)),
        ("token_id", json!("no-such-token")),
        ("signature", json!(other.signature)),
        ("signature", json!("")),
        ("signature", json!("zz")),
    ] {
        let mut altered = good.clone();
        altered[field] = value;
        let altered: CapabilityToken = serde_json::from_value(altered).unwrap();
        let refused = agent.execute(&altered).unwrap_err();
        assert_eq!(refused.code(), "ERR_TOKEN", "{field}");
        assert_eq!(refused.message(), "this is no token of this store that is in force", "{field}");
    }
    let more = json!({"extra": 1});
    let mut extended = good.clone();
    extended.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert!(serde_json::from_value::<CapabilityToken>(extended).is_err(), "unknown fields");
    assert_eq!(code(agent.execute(&one)), "done", "the token itself is as good as before");
}

#[test]
fn tokens_of_another_store_and_of_before_it_was_closed_are_none() {
    let (world, other) = (World::new(), World::new());
    let foreign = prepared(&other.agent("work"), ADD).token;
    assert_eq!(code(world.agent("work").execute(&foreign)), "ERR_TOKEN");
    let waiting = prepared(&world.agent("work"), ADD).token;
    let used = prepared(&world.agent("work"), ADD).token;
    assert_eq!(code(world.agent("work").execute(&used)), "done");
    let world = world.reopened();
    for token in [&waiting, &used] {
        assert_eq!(code(world.agent("work").execute(token)), "ERR_TOKEN");
    }
    assert_eq!(world.store.stats().unwrap().grains, 1);
}

#[test]
fn tokens_end_by_the_clock_and_a_clock_set_back_brings_none_back() {
    let world = World::new();
    let agent = world.agent("work");
    let at = |ms| world.clock.set(EpochMs::new(ms));
    let token = prepared(&agent, ADD).token;
    at(START_MS + FIVE_MINUTES_MS);
    assert_eq!(code(agent.execute(&token)), "ERR_TOKEN");
    at(START_MS + FIVE_MINUTES_MS - 1);
    let short = TokenLimits { life_ms: 1, ..TokenLimits::default() };
    let short = agent.prepare(ADD.as_bytes(), &on_terms(Tier::Evolve, short)).unwrap().token;
    // Longer than it holds, by a clock that nobody sets back.
    thread::sleep(std::time::Duration::from_millis(20));
    at(START_MS - 1_000_000);
    let refused = agent.execute(&short).unwrap_err();
    assert_eq!((refused.code(), refused.message()), ("ERR_TOKEN", "the token is over"));
    assert_eq!(world.store.stats().unwrap().grains, 0);
}

#[test]
fn of_many_who_execute_at_once_as_many_do_as_there_are_uses() {
    let world = World::new();
    let agent = world.agent("work");
    for uses in [1, 3] {
        let terms = TokenLimits { max_uses: uses, ..TokenLimits::default() };
        let token = agent.prepare(ADD.as_bytes(), &on_terms(Tier::Evolve, terms)).unwrap().token;
        let start = Barrier::new(8);
        let done = thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        code(agent.execute(&token))
                    })
                })
                .collect();
            tries.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        let count = |code: &str| done.iter().filter(|done| *done == code).count();
        assert_eq!((count("done"), count("ERR_TOKEN")), (uses as usize, 8 - uses as usize));
    }
}

#[test]
fn a_write_quota_may_be_smaller_than_the_uses() {
    let world = World::new();
    let agent = world.agent("work");
    let terms = TokenLimits { max_uses: 3, write_quota: Some(2), ..TokenLimits::default() };
    let token = agent.prepare(ADD.as_bytes(), &on_terms(Tier::Evolve, terms)).unwrap().token;
    assert_eq!(token.write_quota_remaining, 2);
    let codes: Vec<_> = (0..3).map(|_| code(agent.execute(&token))).collect();
    assert_eq!(codes, ["done", "done", "ERR_TOKEN"]);
    for bad in [
        TokenLimits { max_uses: 0, ..TokenLimits::default() },
        TokenLimits { max_uses: 101, ..TokenLimits::default() },
        TokenLimits { life_ms: 0, ..TokenLimits::default() },
        TokenLimits { life_ms: 300_001, ..TokenLimits::default() },
    ] {
        let refused = agent.prepare(b"RECALL", &on_terms(Tier::Read, bad.clone()));
        assert_eq!(code(refused), "ERR_SCHEMA", "{bad:?}");
    }
}

#[test]
fn a_token_works_in_its_own_namespace_whatever_the_statement_or_the_session_says() {
    let world = World::new();
    world.put("work", "tea");
    world.put("private", "secrets");
    let query = br#"RECALL beliefs IN "private""#;
    let token = |session: &grainstore::Session| {
        session.prepare(query, &PrepareOptions::default()).unwrap().token
    };
    let work = world.agent("work");
    let found = shown(&work.execute(&token(&work)).unwrap());
    assert_eq!(found["_cal"]["warnings"][0]["code"], "CAL-W101");
    assert_eq!(found["results"][0]["grain"]["object"], "tea");
    assert_eq!(code(world.agent("private").execute(&token(&work))), "ERR_TOKEN");
    assert_eq!(code(work.execute(&token(&world.operator()))), "ERR_TOKEN", "wider than it");
    let found = shown(&world.operator().execute(&token(&work)).unwrap());
    assert_eq!(found["results"][0]["grain"]["object"], "tea", "not as wide as who executes it");
    let added = prepared(&work, ADD).token;
    let address = shown(&world.operator().execute(&added).unwrap());
    let address = address["content_address"].as_str().unwrap().parse().unwrap();
    let grain = world.operator().get(&address).unwrap().grain().unwrap();
    assert_eq!(grain.text("namespace"), Some("work"));
    assert_eq!(grain.text("user_id"), Some("alice"));
    assert_eq!(grain.text("author_did"), Some("did:web:agent.example"));
}

#[test]
fn another_user_actor_or_agent_executes_nothing_of_this_one() {
    let world = World::new();
    let agent = world.agent("work");
    let own = agent.options().clone();
    for other in [
        SessionOptions { user_id: Some("bob".to_owned()), ..own.clone() },
        SessionOptions { actor: Some("did:web:other".to_owned()), ..own.clone() },
        SessionOptions { agent_id: Some("agent-8".to_owned()), ..own.clone() },
        SessionOptions { namespace: Some("work:below".to_owned()), ..own.clone() },
    ] {
        let token = prepared(&agent, ADD).token;
        assert_eq!(
            code(world.store.session(other.clone()).execute(&token)),
            "ERR_TOKEN",
            "{other:?}"
        );
        assert_eq!(code(agent.execute(&token)), "done", "and the token is still good");
    }
}

#[test]
fn a_token_covers_what_its_terms_say() {
    let world = World::new();
    world.put("work", "tea");
    let agent = world.agent("work");
    let with = |query: &str, ops: &[CalOperation], types: &[GrainType]| {
        let terms = TokenLimits {
            allowed_ops: (!ops.is_empty()).then(|| ops.to_vec()),
            allowed_grain_types: types.to_vec(),
            ..TokenLimits::default()
        };
        agent.prepare(query.as_bytes(), &on_terms(Tier::Evolve, terms))
    };
    let goals = [GrainType::Goal];
    for (query, ops, types, expected) in [
        ("RECALL beliefs", &[CalOperation::Recall][..], &[][..], "done"),
        ("RECALL beliefs | COUNT", &[CalOperation::Recall], &[], "ERR_TOKEN"),
        ("BATCH { a: RECALL }", &[CalOperation::Batch], &[], "ERR_TOKEN"),
        ("BATCH { a: RECALL }", &[CalOperation::Batch, CalOperation::Recall], &[], "done"),
        ("ASSEMBLE FROM (RECALL)", &[CalOperation::Assemble], &[], "done"),
        (ADD, &[CalOperation::Supersede], &[], "ERR_TOKEN"),
        (ADD, &[], &goals, "ERR_TOKEN"),
        ("RECALL beliefs", &[], &goals, "ERR_TOKEN"),
        ("RECALL goals", &[], &goals, "done"),
    ] {
        assert_eq!(code(with(query, ops, types)), expected, "{query} {ops:?} {types:?}");
    }
    let count = |query: &str, types: &[GrainType]| {
        let token = with(query, &[], types).unwrap().token;
        shown(&agent.execute(&token).unwrap())["count"].as_u64()
    };
    assert_eq!(count("RECALL | COUNT", &[]), Some(1));
    assert_eq!(count("RECALL | COUNT", &[GrainType::Belief]), Some(1));
    assert_eq!(count("RECALL | COUNT", &goals), Some(0), "other types are not there");
    let address = world.put("work", "water");
    for (types, sees) in [(&[][..], true), (&goals, false)] {
        let token = with(&format!("EXISTS sha256:{address}"), &[], types).unwrap().token;
        assert_eq!(shown(&agent.execute(&token).unwrap())["exists"], sees);
    }
}

#[test]
fn the_target_is_pinned_when_it_is_prepared() {
    let world = World::new();
    let target = world.put("work", "tea");
    let agent = world.agent("work");
    let prefix: String = target.to_string().chars().take(12).collect();
    let query = format!(r#"SUPERSEDE sha256:{prefix} SET object = "water" REASON "he changed""#);
    let (one, other) = (prepared(&agent, &query), prepared(&agent, &query));
    assert_eq!(one.target, Some(target));
    let done = shown(&agent.execute(&one.token).unwrap());
    assert_eq!(done["superseded"], target.to_string());
    // The same grain is meant, and it is not current any more.
    assert_eq!(code(agent.execute(&other.token)), "CAL-E040");
    assert_eq!(code(agent.execute(&other.token)), "ERR_TOKEN", "used up by trying");
    assert_eq!(code(agent.prepare(query.as_bytes(), &evolving())), "CAL-E040");
    let first = format!(r#"REVERT sha256:{target} REASON "r""#);
    assert_eq!(code(agent.prepare(first.as_bytes(), &evolving())), "CAL-E041", "no token for it");
    let erased = world.put("work", "coffee");
    let query = format!(r#"SUPERSEDE sha256:{erased} SET object = "x" REASON "r""#);
    let waiting = prepared(&agent, &query);
    world.operator().erase(&erased, "asked", &grainstore::EraseOptions::default()).unwrap();
    assert_eq!(code(agent.execute(&waiting.token)), "CAL-E046");
}

#[test]
fn parameters_and_the_present_are_those_of_preparing() {
    let world = World::new();
    world.put("work", "tea");
    let agent = world.agent("work");
    let preparing = PrepareOptions {
        params: vec![("who".to_owned(), json!("bob"))],
        now: Some(EpochMs::new(START_MS + 86_400_000)),
        ..PrepareOptions::default()
    };
    let query = br#"RECALL beliefs WHERE subject = $who SINCE "yesterday" | COUNT"#;
    let token = agent.prepare(query, &preparing).unwrap().token;
    assert_eq!(shown(&agent.execute(&token).unwrap())["count"], 1);
    assert_eq!(code(agent.prepare(query, &PrepareOptions::default())), "CAL-E008");
    assert_eq!(code(agent.prepare(b"RECALL \xff", &preparing)), "CAL-E070");
    assert_eq!(code(agent.prepare(b"", &preparing)), "CAL-E014");
}

#[test]
fn one_who_asks_cannot_fill_the_store_with_prepared_statements() {
    let world = World::new();
    let (agent, other) = (world.agent("work"), world.agent("elsewhere"));
    let prepare = |session: &grainstore::Session| {
        session.prepare(b"DESCRIBE server", &PrepareOptions::default())
    };
    let tokens: Vec<_> = (0..256).map(|_| prepare(&agent).unwrap().token).collect();
    assert_eq!(code(prepare(&agent)), "ERR_LIMIT");
    assert_eq!(code(prepare(&other)), "done", "another is not kept from it");
    assert_eq!(code(agent.execute(&tokens[0])), "done");
    assert_eq!(code(prepare(&agent)), "done");
    world.clock.set(EpochMs::new(START_MS + FIVE_MINUTES_MS));
    assert_eq!(code(prepare(&agent)), "done", "those are over");
    let large = PrepareOptions {
        params: vec![("text".to_owned(), "x".repeat(7 << 20).into())],
        ..PrepareOptions::default()
    };
    let prepare = |session: &grainstore::Session| {
        session.prepare(b"RECALL beliefs WHERE object = $text", &large)
    };
    let first = prepare(&agent).unwrap().token;
    assert_eq!(code(prepare(&agent)), "done");
    assert_eq!(code(prepare(&agent)), "ERR_LIMIT", "what they hold counts as well");
    assert_eq!(code(prepare(&other)), "done");
    assert_eq!(code(agent.execute(&first)), "done");
    assert_eq!(code(prepare(&agent)), "done");
}
