//! Streamed assemblies on a store: to a listener, from a thread, with a token, and in the audit log.

use std::ops::ControlFlow;

use grainstore::cal::{CancelHandle, Event, EventKind, ExecuteOptions};
use grainstore::format::EpochMs;
use grainstore::{
    AuditedStream, OpenOptions, PrepareOptions, Preset, Session, StreamOptions, TokenLimits,
};

use crate::calls::kit::{START_MS, World, code, on_terms};

const QUERY: &str = "ASSEMBLE FROM likes: (RECALL beliefs LIMIT 100), none: (RECALL goals) \
    STREAM { all, chunk_size = 20 }";

fn options() -> ExecuteOptions<'static> {
    ExecuteOptions::at(EpochMs::new(START_MS))
}

fn filled(options: OpenOptions) -> World {
    let world = World::with(options);
    for at in 0..12 {
        world.put("work", &format!("tea number {at}"));
    }
    world
}

/// The text of the chunks among these events.
fn text(events: &[Event]) -> String {
    let content = |event: &Event| match &event.kind {
        EventKind::Chunk { content, .. } => Some(content.clone()),
        _ => None,
    };
    events.iter().filter_map(content).collect()
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.name()).collect()
}

fn heard(session: &Session, query: &str) -> (Vec<Event>, String) {
    let mut events = Vec::new();
    let mut listener = |event| {
        events.push(event);
        ControlFlow::Continue(())
    };
    let ended = session.ask_streaming(query.as_bytes(), &options(), &mut listener);
    (events, code(ended))
}

#[test]
fn an_iterator_and_a_listener_have_the_same_events_and_the_text_of_the_answer() {
    let world = filled(OpenOptions::new());
    let agent = world.agent("work");
    let (events, ended) = heard(&agent, QUERY);
    assert_eq!(ended, "done");
    let now = Some(EpochMs::new(START_MS));
    let mut stream =
        agent.stream(QUERY, StreamOptions { now, ..StreamOptions::default() }).unwrap();
    let streamed: Vec<Event> = stream.by_ref().collect();
    assert_eq!(streamed, events);
    assert!(events.len() > 20, "more than may wait: {}", events.len());
    let whole = agent.ask_with(QUERY.as_bytes(), &options()).unwrap();
    assert_eq!(whole.text(), Some(text(&events).as_str()));
    assert_eq!(stream.finish().unwrap().text(), whole.text());
    let unread = agent.stream(QUERY, StreamOptions { now, ..StreamOptions::default() }).unwrap();
    assert_eq!(unread.finish().unwrap().text(), whole.text(), "events nobody took");
}

#[test]
fn sources_that_search_at_once_say_what_they_say_in_turn() {
    let world = filled(OpenOptions::new());
    let agent = world.agent("work");
    let searches = ["(RECALL LIKE \"tea\" LIMIT 5)", "(RECALL LIKE \"number\" LIMIT 7)"];
    let more = ["(RECALL LIKE \"tea number 3\")", "(RECALL ABOUT \"tea\" ORDER BY object)"];
    let (mut lets, mut by_let, mut at_once) = (String::new(), Vec::new(), Vec::new());
    for (at, source) in searches.iter().chain(&more).enumerate() {
        let bare = source.trim_matches(['(', ')']);
        lets.push_str(&format!("LET $v{at} = {bare}; "));
        by_let.push(format!("s{at}: $v{at}"));
        at_once.push(format!("s{at}: {source}"));
    }
    // LETs run one after the other, before the sources, which have nothing left to do.
    let in_turn = format!("{lets}ASSEMBLE FROM {} STREAM", by_let.join(", "));
    let at_once = format!("ASSEMBLE FROM {} STREAM", at_once.join(", "));
    let told = |query: &str| {
        let (events, ended) = heard(&agent, query);
        assert_eq!(ended, "done", "{query}");
        let whole = agent.ask_with(query.as_bytes(), &options()).unwrap();
        assert_eq!(whole.text(), Some(text(&events).as_str()));
        let kinds: Vec<EventKind> = events.into_iter().map(|event| event.kind).collect();
        (kinds, whole.text().map(str::to_owned), whole.meta.budget)
    };
    let expected = told(&in_turn);
    for _ in 0..20 {
        assert_eq!(told(&at_once), expected);
    }
}

#[test]
fn what_is_refused_before_it_begins_is_no_stream() {
    let world = filled(OpenOptions::new());
    let agent = world.agent("work");
    for (query, refused) in [
        ("RECALL beliefs", "CAL-E079"),
        ("ASSEMBLE FROM (RECALL) STREAM { chunk_size = 5 }", "CAL-E078"),
        ("ASSEMBLE FROM (RECALL beleifs)", "CAL-E003"),
    ] {
        assert_eq!(
            code(agent.stream(query, StreamOptions::default()).map(drop)),
            refused,
            "{query}"
        );
        assert_eq!(heard(&agent, query), (Vec::new(), refused.to_owned()), "{query}");
    }
}

#[test]
fn a_stream_is_cancelled_by_its_handle_and_by_dropping_it() {
    let world = filled(OpenOptions::new());
    let agent = world.agent("work");
    let mut stream = agent.stream(QUERY, StreamOptions::default()).unwrap();
    let first = stream.next().unwrap();
    assert_eq!(first.kind.name(), "assembly_started");
    stream.cancel_handle().cancel();
    let rest: Vec<Event> = stream.by_ref().collect();
    // At most what waited, what was being handed over, and how it ended.
    assert!(rest.len() <= 19, "{:?}", names(&rest));
    assert_eq!(rest.last().unwrap().kind.name(), "cancelled");
    assert_eq!(code(stream.finish()), "CAL-E082");
    drop(agent.stream(QUERY, StreamOptions::default()).unwrap());
    let (events, ended) = heard(&agent, QUERY);
    assert_eq!(
        (events.last().unwrap().kind.name(), ended.as_str()),
        ("assembly_completed", "done")
    );
}

#[test]
fn a_prepared_assembly_is_streamed_by_its_token_within_what_that_covers() {
    let world = filled(OpenOptions::new());
    let agent = world.agent("work");
    let terms = TokenLimits { max_uses: 2, ..TokenLimits::default() };
    let preparing = PrepareOptions {
        now: Some(EpochMs::new(START_MS)),
        ..on_terms(grainstore::cal::Tier::Read, terms)
    };
    let token = agent.prepare(QUERY.as_bytes(), &preparing).unwrap().token;
    let mut events = Vec::new();
    let mut listener = |event: Event| {
        events.push(event);
        ControlFlow::Continue(())
    };
    let answer = agent.execute_streaming(&token, &mut listener).unwrap();
    assert_eq!(answer.text(), Some(text(&events).as_str()));
    assert_eq!(agent.execute(&token).unwrap().text(), answer.text());
    assert_eq!(
        code(agent.execute_streaming(&token, &mut |_: Event| ControlFlow::Continue(()))),
        "ERR_TOKEN"
    );
}

/// What the newest entry of a call says of its events.
fn noted(world: &World) -> Option<AuditedStream> {
    let entries = world.entries();
    entries.iter().rev().find_map(|entry| entry.call.clone()).unwrap().stream
}

#[test]
fn the_audit_log_tells_what_became_of_the_events() {
    let world = filled(OpenOptions::new().preset(Preset::from_name("hipaa").unwrap()));
    let agent = world.agent("work");
    let (events, _) = heard(&agent, QUERY);
    let entry = noted(&world).unwrap();
    assert_eq!(entry.options, "progress, budget, chunks, chunk_size = 20");
    assert_eq!(entry.events_emitted, events.len() as u64);
    assert_eq!((entry.cancel_reason.as_deref(), entry.is_cancelled()), (None, false));
    assert_eq!(entry.sources_failed, 0);

    agent.ask(QUERY).unwrap();
    assert_eq!(noted(&world), None, "one that was not streamed");

    let cancel = CancelHandle::new();
    let asked = ExecuteOptions { cancel: cancel.clone(), ..options() };
    let mut cancelling = |event: Event| {
        if event.kind.name() == "chunk" {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    };
    let ended = agent.ask_streaming(QUERY.as_bytes(), &asked, &mut cancelling);
    assert_eq!(code(ended), "CAL-E082");
    assert_eq!(noted(&world).unwrap().cancel_reason.as_deref(), Some("host"));
    let read = world.entries().into_iter().next_back().unwrap();
    assert_eq!((read.operation.as_str(), read.decision.as_str()), ("read", "done"));
    let call = read.call.unwrap();
    assert_eq!((call.result_count, call.code.as_deref()), (Some(12), Some("CAL-E082")));
    let mut deaf = |_: Event| ControlFlow::Break(());
    assert_eq!(code(agent.ask_streaming(QUERY.as_bytes(), &options(), &mut deaf)), "CAL-E082");
    let entry = noted(&world).unwrap();
    assert_eq!((entry.cancel_reason.as_deref(), entry.events_emitted), (Some("listener"), 1));
    let refused = world.entries().into_iter().next_back().unwrap();
    assert_eq!(refused.decision, "refused");
    assert_eq!(refused.call.unwrap().code.as_deref(), Some("CAL-E082"));

    let failing = format!(
        "ASSEMBLE FROM bad: (RECALL LIKE \"{}\"), good: (RECALL) STREAM {{ chunks }}",
        "a ".repeat(1_025)
    );
    let (events, ended) = heard(&agent, &failing);
    assert_eq!((names(&events)[0], ended.as_str()), ("error", "done"));
    assert_eq!(noted(&world).unwrap().sources_failed, 1);
    assert!(world.store.verify(true).unwrap().ok);
    for finding in world.store.check_cal().unwrap() {
        assert_eq!(finding.health, grainstore::Health::Good, "{finding:?}");
    }
}

#[test]
fn a_panic_of_the_listener_is_its_own_and_the_call_is_in_the_log() {
    let world = filled(OpenOptions::new().preset(Preset::from_name("hipaa").unwrap()));
    let agent = world.agent("work");
    let mut failing = |_: Event| -> ControlFlow<()> { panic!("the host's own") };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        agent.ask_streaming(QUERY.as_bytes(), &options(), &mut failing).map(drop)
    }));
    assert_eq!(ended.unwrap_err().downcast_ref::<&str>(), Some(&"the host's own"));
    let refused = world.entries().into_iter().next_back().unwrap().call.unwrap();
    assert_eq!(refused.code.as_deref(), Some("CAL-E082"));
    assert_eq!(refused.stream.unwrap().cancel_reason.as_deref(), Some("listener"));
    assert_eq!(heard(&agent, QUERY).1, "done");
}

#[test]
fn the_read_log_of_every_store_tells_of_streams_and_how_they_were_cancelled() {
    let world = filled(OpenOptions::new());
    let agent = world.agent("work");
    let last = || world.reads().pop().unwrap();
    let (events, _) = heard(&agent, QUERY);
    let stream = last().stream.unwrap();
    assert_eq!(stream.options, "progress, budget, chunks, chunk_size = 20");
    assert_eq!((stream.events_emitted, stream.is_cancelled()), (events.len() as u64, false));
    let token = agent.prepare(QUERY.as_bytes(), &PrepareOptions::default()).unwrap().token;
    agent.execute_streaming(&token, &mut |_: Event| ControlFlow::Continue(())).unwrap();
    assert_eq!(last().stream.unwrap().events_emitted, events.len() as u64);
    assert_eq!(last().token_id, Some(token.token_id));

    let cancel = CancelHandle::new();
    let asked = ExecuteOptions { cancel: cancel.clone(), ..options() };
    let mut cancelling = |event: Event| {
        if event.kind.name() == "chunk" {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    };
    let ended = agent.ask_streaming(QUERY.as_bytes(), &asked, &mut cancelling);
    assert_eq!(code(ended), "CAL-E082");
    assert_eq!(last().stream.unwrap().cancel_reason.as_deref(), Some("host"));
    assert_eq!((last().code.as_deref(), last().result_count), (Some("CAL-E082"), Some(12)));
    let mut deaf = |_: Event| ControlFlow::Break(());
    assert_eq!(code(agent.ask_streaming(QUERY.as_bytes(), &options(), &mut deaf)), "CAL-E082");
    assert_eq!(last().stream.unwrap().cancel_reason.as_deref(), Some("listener"));
    let mut dropped = agent.stream(QUERY, StreamOptions::default()).unwrap();
    dropped.next().unwrap();
    drop(dropped);
    assert!(last().stream.unwrap().is_cancelled());
    assert!(world.entries().iter().all(|entry| entry.call.is_none()), "in one log alone");
}
