//! Streamed assemblies: the events, their order, their content, and how they end.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use grainstore_format::EpochMs;
use grainstore_sml::Format;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{NOW_MS, belief, four_beliefs, options, run, run_with};
use super::{ExecuteOptions, stream};
use crate::cancel::CancelHandle;
use crate::event::{Event, EventListener, StreamStart};
use crate::params::Params;
use crate::response::Response;
use crate::testutil::Fake;
use crate::write_quotas::WriteQuotas;

/// A listener that records its events, and stops accepting after so many.
pub(super) struct Ear {
    pub(super) began: Vec<(String, String)>,
    pub(super) events: Vec<Value>,
    pub(super) most: usize,
    /// A handle it cancels, in place of refusing events.
    pub(super) cancels: Option<CancelHandle>,
}

impl EventListener for Ear {
    fn on_start(&mut self, began: &StreamStart<'_>) {
        self.began.push((began.assembly_id.to_owned(), began.options.to_owned()));
    }

    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        self.events.push(serde_json::to_value(event).unwrap());
        if self.events.len() < self.most {
            return ControlFlow::Continue(());
        }
        match &self.cancels {
            Some(cancel) => {
                cancel.cancel();
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

impl Ear {
    pub(super) fn names(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }

    fn of(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == name).collect()
    }

    fn text(&self) -> String {
        self.of("chunk").iter().map(|chunk| chunk["content"].as_str().unwrap()).collect()
    }
}

pub(super) type Ended = Result<Response, (String, String)>;

pub(super) fn heard(
    memory: &Fake,
    source: &str,
    options: &ExecuteOptions<'_>,
    mut ear: Ear,
) -> (Ear, Ended) {
    let done = stream(memory, source.as_bytes(), options, &WriteQuotas::default(), &mut ear);
    let place = |error: &crate::Error| {
        let at = error.position().and_then(|at| source.get(at.start..at.end));
        at.unwrap_or("").to_owned()
    };
    (ear, done.map_err(|error| (error.code().to_owned(), place(&error))))
}

pub(super) fn all(memory: &Fake, source: &str, options: &ExecuteOptions<'_>) -> (Ear, Ended) {
    let ear = Ear { began: Vec::new(), events: Vec::new(), most: usize::MAX, cancels: None };
    heard(memory, source, options, ear)
}

const TWO: &str = "ASSEMBLE talk FOR \"a test\" FROM few: (RECALL ABOUT \"alice\"), \
    more: (RECALL beliefs) BUDGET 300 tokens PRIORITY more STREAM { all, chunk_size = 30 }";

#[test]
fn every_event_comes_in_its_place_with_its_fields() {
    let memory = four_beliefs();
    let (ear, ended) = all(&memory, TWO, &options());
    let [(id, asked)] = ear.began.as_slice() else { panic!("{:?}", ear.began) };
    assert_eq!(asked, "progress, budget, chunks, chunk_size = 30");
    assert!(id.strip_prefix("asm_").is_some_and(|id| id.len() == 16), "{id}");
    let mut expected = vec![
        json!({"type": "assembly_started", "name": "talk", "intent": "a test", "sources": ["few", "more"],
            "budget": {"amount": 300, "unit": "tokens"}}),
        json!({"type": "source_started", "source": "few", "index": 0}),
        json!({"type": "source_started", "source": "more", "index": 1}),
        json!({"type": "source_completed", "source": "few", "index": 0, "grain_count": 3,
            "estimated_tokens": 58}),
        json!({"type": "source_completed", "source": "more", "index": 1, "grain_count": 4,
            "estimated_tokens": 77}),
        json!({"type": "dedup_completed", "before": 7, "after": 4}),
        json!({"type": "budget_allocated", "allocations": [
            {"source": "few", "tokens": 0}, {"source": "more", "tokens": 77}]}),
        json!({"type": "disclosure_decided", "levels": [
            {"source": "few", "full": 0, "standard": 0, "summary": 0, "omitted": 0},
            {"source": "more", "full": 0, "standard": 4, "summary": 0, "omitted": 0}]}),
    ];
    let text = run(&memory, TWO).unwrap()["formatted_context"]["text"].clone();
    let text = text.as_str().unwrap();
    let counter = options().counter;
    let tokens = counter.count(text);
    let mut left = 300;
    for (at, chunk) in ear.of("chunk").into_iter().enumerate() {
        let content = chunk["content"].as_str().unwrap();
        left -= counter.count(content);
        expected.push(json!({"type": "chunk", "chunk_index": at, "content": content,
            "tokens": counter.count(content), "budget_remaining": left}));
    }
    assert!(expected.len() > 10, "several chunks");
    expected.push(json!({"type": "assembly_completed", "summary": {
        "tokens_used": tokens, "budget_remaining": 300 - tokens,
        "utilization": (tokens * 10_000 / 300) as f64 / 10_000.0, "grains_included": 4,
        "grains_omitted": 0, "sources_failed": [], "format": "sml", "warnings": []}}));
    for event in &mut expected {
        event["assembly_id"] = json!(id);
    }
    assert_eq!(ear.events, expected);
    assert_eq!(ear.text(), text);
    assert_eq!(left, 300 - tokens);
    let answer = serde_json::to_value(ended.unwrap()).unwrap();
    assert_eq!(answer["formatted_context"]["text"], text, "the answer is the whole one");
    assert_eq!(answer["_cal"]["warnings"], json!([]), "and STREAM did something");
}

#[test]
fn an_event_is_written_type_first() {
    let (mut first, memory) = (String::new(), four_beliefs());
    let mut listener = |event: Event| {
        first = serde_json::to_string(&event).unwrap();
        ControlFlow::Break(())
    };
    let ended = stream(
        &memory,
        b"ASSEMBLE FROM (RECALL) STREAM",
        &options(),
        &WriteQuotas::default(),
        &mut listener,
    );
    assert_eq!(ended.unwrap_err().code(), "CAL-E082");
    assert!(first.starts_with(r#"{"type":"assembly_started","assembly_id":"asm_"#), "{first}");
}

#[test]
fn options_choose_events_and_never_hide_how_it_ends() {
    let progress = ["assembly_started", "source_started", "source_completed", "assembly_completed"];
    let budget = ["dedup_completed", "budget_allocated", "disclosure_decided"];
    let every = [&progress[..3], &budget[..], &["chunk"], &progress[3..]].concat();
    let mut memory = four_beliefs();
    for (clause, expected) in [
        ("STREAM { progress }", &progress[..]),
        ("STREAM { budget }", &budget),
        ("STREAM { chunks }", &["chunk"]),
        ("STREAM { chunks, chunk_size = 1000 }", &["chunk"]),
        ("STREAM { all }", &every),
        ("STREAM { chunk_size = 1000 }", &every),
        ("STREAM", &every),
        ("", &every),
    ] {
        let source = format!("ASSEMBLE FROM (RECALL) {clause}");
        let (ear, ended) = all(&memory, &source, &options());
        assert_eq!((ear.names(), ended.is_ok()), (expected.to_vec(), true), "{clause}");
    }
    memory.broken_subject = Some("bob".to_owned());
    let source =
        "ASSEMBLE FROM b: (RECALL ABOUT \"bob\"), a: (RECALL ABOUT \"alice\") STREAM { chunks }";
    let (ear, _) = all(&memory, source, &options());
    assert_eq!(ear.names(), ["error", "chunk"]);
    let source = "ASSEMBLE FROM b: (RECALL ABOUT \"bob\") STREAM { budget }";
    let (ear, ended) = all(&memory, source, &options());
    assert_eq!(ear.names(), ["error", "error"], "of the source, and of the assembly");
    assert_eq!(ended.unwrap_err().0, "CAL-E076");
    let cancelled = options();
    cancelled.cancel.cancel();
    let (ear, ended) = all(&memory, "ASSEMBLE FROM (RECALL) STREAM { budget }", &cancelled);
    assert_eq!(ear.names(), ["cancelled"]);
    assert_eq!(ended.unwrap_err(), ("CAL-E082".to_owned(), "ASSEMBLE".to_owned()));
}

#[test]
fn a_source_that_fails_is_told_of_and_its_share_goes_to_the_others() {
    let mut memory = four_beliefs();
    memory.broken_subject = Some("bob".to_owned());
    let source = "ASSEMBLE FROM b: (RECALL ABOUT \"bob\"), a: (RECALL ABOUT \"alice\") \
        BUDGET 100 tokens STREAM { progress, budget }";
    let (ear, ended) = all(&memory, source, &options());
    let names = [
        "assembly_started",
        "source_started",
        "source_started",
        "source_completed",
        "error",
        "source_completed",
        "dedup_completed",
        "budget_allocated",
        "budget_allocated",
        "disclosure_decided",
        "assembly_completed",
    ];
    assert_eq!(ear.names(), names);
    let failed = &ear.events[3];
    assert_eq!((&failed["source"], &failed["grain_count"]), (&json!("b"), &json!(0)));
    assert_eq!(failed["error"]["code"], "ERR_BROKEN");
    let error = json!({"type": "error", "assembly_id": ear.began[0].0, "code": "ERR_BROKEN",
        "message": "the subject is broken", "source": "b"});
    assert_eq!(ear.events[4], error);
    let [meant, given] = ear.of("budget_allocated")[..] else { panic!("{:?}", ear.events) };
    let tokens = |event: &Value, at: usize| event["allocations"][at]["tokens"].as_u64().unwrap();
    assert!(tokens(meant, 0) > tokens(meant, 1), "by their weights");
    assert_eq!(tokens(given, 0), 0);
    assert!(tokens(given, 1) > tokens(meant, 1), "{given}");
    let summary = &ear.events[10]["summary"];
    assert_eq!(
        (&summary["sources_failed"], &summary["grains_included"]),
        (&json!(["b"]), &json!(3))
    );
    assert!(ended.is_ok());

    let source = "ASSEMBLE FROM a: (RECALL ABOUT \"bob\"), b: (RECALL ABOUT \"bob\")";
    let (ear, ended) = all(&memory, source, &options());
    let last = ear.events.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("error"), &json!("CAL-E076")));
    assert_eq!(last.get("source"), None, "that of the assembly");
    assert_eq!(ended.unwrap_err().0, "CAL-E076");
}

#[test]
fn a_budget_of_grains_counts_grains() {
    let memory = four_beliefs();
    let source = "ASSEMBLE FROM a: (RECALL) BUDGET 3 grains STREAM { all, chunk_size = 20 }";
    let (ear, _) = all(&memory, source, &options());
    let left: Vec<_> =
        ear.of("chunk").iter().map(|chunk| chunk["budget_remaining"].as_u64().unwrap()).collect();
    assert_eq!(left.first().zip(left.last()), Some((&2, &0)), "{left:?}");
    let allocated = ear.of("budget_allocated");
    assert_eq!(allocated[0]["allocations"], json!([{"source": "a", "grains": 3}]));
    let summary = &ear.events.last().unwrap()["summary"];
    assert_eq!(
        [&summary["budget_remaining"], &summary["utilization"], &summary["grains_omitted"]],
        [&json!(0), &json!(1.0), &json!(1)]
    );
}

#[test]
fn what_is_refused_before_it_begins_has_no_events() {
    let memory = four_beliefs();
    for (source, code, place) in [
        ("RECALL", "CAL-E079", "RECALL"),
        ("EXPLAIN ASSEMBLE FROM (RECALL) STREAM", "CAL-E079", "EXPLAIN"),
        ("BATCH { a: RECALL }", "CAL-E079", "BATCH"),
        ("ASSEMBLE FROM (RECALL) STREAM { all, all }", "CAL-E002", "all"),
        ("ASSEMBLE FROM (RECALL) STREAM { chunk_size = 1001 }", "CAL-E078", "chunk_size = 1001"),
        ("ASSEMBLE FROM (RECALL) STREAM { chunk_size = $n }", "CAL-E008", "chunk_size = $n"),
        ("ASSEMBLE FROM (RECALL) BUDGET 0 tokens STREAM", "CAL-E030", "0"),
        ("ASSEMBLE", "CAL-E002", ""),
    ] {
        let (ear, ended) = all(&memory, source, &options());
        let refused = (code.to_owned(), place.to_owned());
        assert_eq!(ended.map(|_| ()), Err(refused), "{source}");
        assert!(ear.began.is_empty() && ear.events.is_empty(), "{source}: {:?}", ear.events);
    }
    let mut params = Params::new();
    params.bind("n", &json!(20)).unwrap();
    let bound = ExecuteOptions { params, ..options() };
    let source = "ASSEMBLE FROM (RECALL) STREAM { chunk_size = $n }";
    assert_eq!(
        all(&memory, source, &bound).0.began[0].1,
        "progress, budget, chunks, chunk_size = 20"
    );
}

#[test]
fn an_answer_that_comes_at_once_says_that_stream_did_nothing() {
    let memory = four_beliefs();
    let (plain, streamed) = ("ASSEMBLE FROM (RECALL)", "ASSEMBLE FROM (RECALL) STREAM { chunks }");
    let (plain, streamed) = (run(&memory, plain).unwrap(), run(&memory, streamed).unwrap());
    assert_eq!(streamed["formatted_context"], plain["formatted_context"]);
    assert_eq!(streamed["_cal"]["warnings"][0]["code"], "CAL-W004");
    assert_eq!(plain["_cal"]["warnings"], json!([]));
    assert!(run(&memory, "EXPLAIN ASSEMBLE FROM (RECALL) STREAM").is_ok());
}

#[test]
fn texts_that_no_event_carries_are_warned_of() {
    let memory = four_beliefs();
    for (source, warned) in [
        ("ASSEMBLE FROM (RECALL)", false),
        ("ASSEMBLE FROM (RECALL AS markdown)", true),
        ("ASSEMBLE FROM (RECALL WITH summarize)", true),
        ("ASSEMBLE FROM (RECALL) WITH summarize", true),
        ("LET $all = RECALL; ASSEMBLE FROM $all", false),
    ] {
        let events = all(&memory, source, &options()).0.events;
        let warnings = &events.last().unwrap()["summary"]["warnings"];
        let about = |warning: &Value| warning["message"].as_str().unwrap().contains("no event");
        assert_eq!(warnings.as_array().unwrap().iter().any(about), warned, "{source}");
    }
}

#[test]
fn the_same_question_has_the_same_events_and_another_another_id() {
    let memory = four_beliefs();
    let (first, second) = (all(&memory, TWO, &options()).0, all(&memory, TWO, &options()).0);
    assert_eq!(first.events, second.events);
    let id = |source: &str, options: &ExecuteOptions<'_>| {
        all(&memory, source, options).0.began[0].0.clone()
    };
    let own = id(TWO, &options());
    assert_eq!(id(&TWO.to_lowercase().replace("recall", "RECALL"), &options()), own, "spelling");
    let mut params = Params::new();
    params.bind("unused", &json!("x")).unwrap();
    for other in [
        ExecuteOptions { now: EpochMs::new(NOW_MS + 1), ..options() },
        ExecuteOptions { as_format: Some(Format::Json), ..options() },
        ExecuteOptions { params, ..options() },
    ] {
        assert_ne!(id(TWO, &other), own);
    }
    assert_ne!(id("ASSEMBLE FROM (RECALL)", &options()), own);
}

/// Forty beliefs of several lengths, five goals among them.
fn many() -> Fake {
    let memory = Fake::at_work();
    for at in 0..40 {
        let object = format!("thing {at} {}", "and more ".repeat(at % 7));
        memory.keep(&belief("alice", "likes", &object, ""));
        if at % 8 == 0 {
            memory.keep(&format!(
                r#"{{"type": "goal", "description": "goal {at}", "goal_state": "active"}}"#
            ));
        }
    }
    memory
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn chunks_join_to_the_text_of_the_same_statement_unstreamed(
        format in prop::sample::select(Format::ALL.to_vec()),
        size in 20_u64..=1_000,
        budget in prop_oneof![
            (30_u64..2_000).prop_map(|tokens| format!("{tokens} tokens")),
            (1_u64..60).prop_map(|grains| format!("{grains} grains")),
        ],
    ) {
        let memory = many();
        let source = format!(
            "ASSEMBLE n FOR \"w\" FROM g: (RECALL goals), b: (RECALL beliefs LIMIT 40) BUDGET {budget} \
             FORMAT {} STREAM {{ chunks, progress, chunk_size = {size} }}", format.name()
        );
        let (ear, ended) = all(&memory, &source, &options());
        let whole = run(&memory, &source);
        if let Err((code, _)) = &ended {
            prop_assert_eq!(code, "CAL-E030");
            prop_assert!(whole.is_err());
            return Ok(());
        }
        let context = &whole.unwrap()["formatted_context"];
        prop_assert_eq!(ear.text(), context["text"].as_str().unwrap());
        let summary = ear.events.last().unwrap()["summary"].clone();
        let mut left = u64::MAX;
        let chunks = ear.of("chunk");
        for (at, chunk) in chunks.iter().enumerate() {
            let remaining = chunk["budget_remaining"].as_u64().unwrap();
            prop_assert!(remaining <= left);
            left = remaining;
            prop_assert_eq!(chunk["chunk_index"].as_u64(), Some(at as u64));
        }
        prop_assert_eq!(Some(left), summary["budget_remaining"].as_u64());
        let tokens: u64 = chunks.iter().map(|chunk| chunk["tokens"].as_u64().unwrap()).sum();
        prop_assert_eq!(Some(tokens), context["tokens"].as_u64(), "the estimator adds up");
        prop_assert_eq!(&summary["tokens_used"], &context["tokens"]);
    }
}

#[test]
fn the_text_of_a_template_comes_in_chunks_of_whole_elements() {
    let memory = many();
    let source = "ASSEMBLE n FROM g: (RECALL goals), b: (RECALL beliefs LIMIT 40) BUDGET 500 tokens \
        FORMAT TEMPLATE { HEADER { {{assembly.name}} } ELEMENT { <{{grain.type}}>{{grain.content}}</{{grain.type}}> } \
        ELEMENT_OMIT { no room } FOOTER { end } } STREAM { chunks, progress, chunk_size = 20 }";
    let (ear, ended) = all(&memory, source, &options());
    assert!(ended.is_ok());
    let text = run(&memory, source).unwrap()["formatted_context"]["text"].clone();
    assert_eq!(ear.text(), text.as_str().unwrap());
    let chunks = ear.of("chunk");
    assert!(chunks.len() > 5, "{}", chunks.len());
    for chunk in chunks {
        let content = chunk["content"].as_str().unwrap();
        assert_eq!(content.matches("<belief>").count(), content.matches("</belief>").count());
        assert!(content.ends_with('\n'), "{content:?}");
    }
    assert_eq!(ear.events.last().unwrap()["summary"]["format"], "template");
}

#[test]
fn a_cancelled_stream_is_the_beginning_of_the_whole_one_whenever_it_is_cancelled() {
    let memory = many();
    let source = "LET $g = RECALL goals; ASSEMBLE FROM g: $g, b: (RECALL beliefs LIMIT 40), \
        c: (RECALL LIKE \"more\" AS json WITH summarize) BUDGET 700 tokens \
        WITH progressive_disclosure, summarize STREAM { all, chunk_size = 20 }";
    let counted = ExecuteOptions { cancel: CancelHandle::after(u64::MAX), ..options() };
    let (whole, ended) = all(&memory, source, &counted);
    assert!(ended.is_ok());
    let looks = counted.cancel.looks();
    let mut told_last = BTreeSet::new();
    for after in (0..looks).step_by(3).chain([looks - 1]) {
        let stopping = ExecuteOptions { cancel: CancelHandle::after(after), ..options() };
        let (cut, ended) = all(&memory, source, &stopping);
        assert_eq!(
            ended.map(|_| ()),
            Err(("CAL-E082".to_owned(), "ASSEMBLE".to_owned())),
            "{after}"
        );
        let (last, before) = cut.events.split_last().unwrap();
        assert_eq!(last["type"], "cancelled", "{after}");
        assert_eq!(last["reason"], "the host cancelled the assembly");
        assert_eq!(before, whole.events.get(..before.len()).unwrap(), "{after}");
        let more = stopping.cancel.looks() - after;
        assert!(more < 5, "{more} looks after the one that cancelled at {after}");
        told_last.extend(before.last().map(|event| event["type"].to_string()));
    }
    for phase in
        ["source_started", "source_completed", "dedup_completed", "budget_allocated", "chunk"]
    {
        assert!(told_last.contains(&json!(phase).to_string()), "{phase}: {told_last:?}");
    }
}

#[test]
fn a_listener_cancels_between_any_two_events() {
    let memory = many();
    let (whole, _) = all(&memory, TWO, &options());
    for most in 1..whole.events.len() {
        let ear = |cancels| Ear { began: Vec::new(), events: Vec::new(), most, cancels };
        let asked = options();
        let (cut, ended) = heard(&memory, TWO, &asked, ear(Some(asked.cancel.clone())));
        assert_eq!(ended.unwrap_err().0, "CAL-E082");
        assert_eq!(cut.events.len(), most + 1);
        assert_eq!(cut.events[most]["type"], "cancelled");
        assert_eq!(cut.events[..most], whole.events[..most]);
        let (deaf, ended) = heard(&memory, TWO, &options(), ear(None));
        assert_eq!(ended.unwrap_err().0, "CAL-E082");
        assert_eq!(deaf.events[..], whole.events[..most], "and nothing after it");
    }
    let last =
        Ear { began: Vec::new(), events: Vec::new(), most: whole.events.len(), cancels: None };
    assert!(heard(&memory, TWO, &options(), last).1.is_ok(), "it was complete");
}

#[test]
fn an_assembly_that_takes_too_long_ends_with_an_error() {
    let late =
        ExecuteOptions { cancel: CancelHandle::new().with_deadline(Duration::ZERO), ..options() };
    let (ear, ended) = all(&four_beliefs(), "ASSEMBLE FROM (RECALL) STREAM { chunks }", &late);
    // Time spent waiting for the listener is not the statement's, but this one was late before.
    let told: Vec<_> = ear.events.iter().map(|event| &event["code"]).collect();
    assert_eq!((ear.names(), told), (vec!["error"], vec![&json!("CAL-E075")]));
    assert_eq!(ended.unwrap_err().0, "CAL-E075");
}

#[test]
fn a_listener_takes_from_the_time_of_the_statement_once_patience_is_over() {
    let time = Duration::from_millis(500);
    let heard_for = |patience| {
        let options = ExecuteOptions {
            cancel: CancelHandle::new().with_deadline(time),
            listener_timeout: patience,
            ..options()
        };
        let (mut events, memory) = (0, four_beliefs());
        let mut ear = |_| {
            if events == 0 {
                std::thread::sleep(time + time / 5);
            }
            events += 1;
            ControlFlow::Continue(())
        };
        let ended = stream(&memory, TWO.as_bytes(), &options, &WriteQuotas::default(), &mut ear);
        (ended.err().map(|error| error.code().to_owned()), events)
    };
    let late = (Some("CAL-E075".to_owned()), 2);
    assert_eq!(heard_for(Duration::ZERO), late, "the first, and how it ended");
    assert_eq!(heard_for(Duration::from_secs(3600)).0, None);
}

#[test]
fn a_listener_is_told_of_the_grains_before_any_event_that_tells_of_them() {
    struct Told(Vec<String>);
    impl EventListener for Told {
        fn on_text(&mut self, grains: u64) {
            self.0.push(format!("{grains} grains"));
        }
        fn on_event(&mut self, event: Event) -> ControlFlow<()> {
            self.0.push(event.kind.name().to_owned());
            ControlFlow::Continue(())
        }
    }
    let heard = |source: &str| {
        let mut told = Told(Vec::new());
        let ended = stream(
            &four_beliefs(),
            source.as_bytes(),
            &options(),
            &WriteQuotas::default(),
            &mut told,
        );
        (ended.is_ok(), told.0)
    };
    let (done, told) = heard("ASSEMBLE FROM (RECALL) STREAM { budget, chunks }");
    assert!(done);
    let gives: Vec<_> = told.iter().filter(|name| name.ends_with("grains")).collect();
    assert_eq!(gives, ["4 grains"]);
    let at = |name: &str| told.iter().position(|of| of == name).unwrap();
    assert!(at("4 grains") < at("disclosure_decided") && at("disclosure_decided") < at("chunk"));
    let (done, told) = heard("ASSEMBLE FROM (RECALL beliefs WHERE subject IN ($p)) STREAM");
    assert_eq!((done, told.is_empty()), (false, true), "refused before it begins");
}

#[test]
fn a_hundred_thousand_results_are_left_halfway() {
    let memory = four_beliefs();
    memory.again.store(24_999, Ordering::Relaxed);
    let source = "ASSEMBLE FROM (RECALL ORDER BY object LIMIT 1000) STREAM { chunks }";
    let stopping = ExecuteOptions { cancel: CancelHandle::after(50_000), ..options() };
    let (ear, ended) = all(&memory, source, &stopping);
    assert_eq!((ear.names(), ended.unwrap_err().0), (vec!["cancelled"], "CAL-E082".to_owned()));
    assert!(stopping.cancel.looks() < 50_010, "{}", stopping.cancel.looks());
    let counting = ExecuteOptions { cancel: CancelHandle::after(50_000), ..options() };
    assert_eq!(run_with(&memory, "RECALL COUNT", &counting), Err("CAL-E082 at RECALL".to_owned()));
}

#[test]
fn a_text_of_a_thousand_large_grains_stops_while_it_is_written() {
    let memory = Fake::at_work();
    memory.keep(&belief("s", "r", &"word ".repeat(400), ""));
    memory.again.store(999, Ordering::Relaxed);
    for format in Format::ALL {
        let source = format!("RECALL LIMIT 1000 AS {}", format.name());
        let plain =
            ExecuteOptions { cancel: CancelHandle::after(u64::MAX), totals: false, ..options() };
        let text = run_with(&memory, &source, &plain).unwrap()["formatted"].clone();
        assert!(text.as_str().unwrap().len() > 2_000_000, "{format:?}");
        // Finding, preparing and writing a grain take one poll each.
        let stopping =
            ExecuteOptions { cancel: CancelHandle::after(2_500), totals: false, ..options() };
        assert_eq!(run_with(&memory, &source, &stopping), Err("CAL-E082 at RECALL".to_owned()));
        assert!(stopping.cancel.looks() < 2_505, "{format:?}: {}", stopping.cancel.looks());
        assert!(plain.cancel.looks() > 3_000, "{format:?}");
    }
}
