//! Tests of parallel sources: they do run in parallel, and the result shows it in no way but by its duration.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::stream_tests::{Ear, Ended, all, heard};
use super::tests::{belief, options, run_with};
use super::{ExecuteOptions, TestLimits};
use crate::cancel::{CancelHandle, StopReason};
use crate::memory::MemoryError;
use crate::query::Query;
use crate::testutil::Fake;

/// The longest wait for an event that is due at once, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn given(threads: usize, row_bytes: Option<usize>) -> ExecuteOptions<'static> {
    ExecuteOptions { test_limits: TestLimits { threads: Some(threads), row_bytes }, ..options() }
}

/// Thirty beliefs of alice and ten of bob; recalls about bob fail.
fn memory() -> Fake {
    let mut memory = Fake::at_work();
    for at in 0..40 {
        let subject = if at % 4 == 0 { "bob" } else { "alice" };
        let object = format!("thing {at} red {}", "and more ".repeat(at % 7));
        memory.keep(&belief(subject, "likes", &object, ""));
    }
    memory.broken_subject = Some("bob".to_owned());
    memory
}

fn is_search(query: &Query) -> bool {
    query.search().is_some()
}

/// A counter, and a condition to wait for a number.
#[derive(Default)]
struct Gathering(Mutex<usize>, Condvar);

impl Gathering {
    fn join(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    /// Waits until so many arrived; false if they did not in time.
    fn waits_for(&self, many: usize) -> bool {
        let came = self.0.lock().unwrap();
        let waited = self.1.wait_timeout_while(came, PATIENCE, |came| *came < many).unwrap();
        !waited.1.timed_out()
    }
}

/// Returns `true` if the statement is cancelled before the time is up.
fn is_cancelled_soon(cancel: &CancelHandle) -> bool {
    let began = Instant::now();
    while cancel.stop_reason().is_none() && began.elapsed() < PATIENCE {
        thread::yield_now();
    }
    cancel.stop_reason() == Some(StopReason::Cancelled)
}

const SEARCHES: &str = "ASSEMBLE FROM a: (RECALL LIKE \"red\" LIMIT 5), b: (RECALL LIKE \"more\" LIMIT 5), \
    c: (RECALL LIKE \"thing\" LIMIT 5), d: (RECALL LIKE \"and\" LIMIT 5)";

#[test]
fn sources_that_search_run_at_once() {
    let (all_there, meeting) = (Arc::new(AtomicBool::new(true)), Arc::new(Gathering::default()));
    let mut memory = memory();
    for threads in [2, 4] {
        let (seen, meets) = (Arc::clone(&all_there), Arc::clone(&meeting));
        *meeting.0.lock().unwrap() = 0;
        memory.begins = Some(Box::new(move |_, _| {
            meets.join();
            // No recall continues before as many have begun as there are threads.
            seen.fetch_and(meets.waits_for(threads), Ordering::Relaxed);
        }));
        assert!(run_with(&memory, SEARCHES, &given(threads, None)).is_ok());
        assert!(all_there.load(Ordering::Relaxed), "{threads} threads");
    }
}

#[test]
fn only_what_takes_long_leaves_the_thread_of_the_caller() {
    type Seen = BTreeSet<(bool, bool)>;
    let here = thread::current().id();
    let mut memory = memory();
    let mut seen = |source: &str, threads: usize| -> (Seen, usize) {
        let told: Arc<Mutex<Vec<(ThreadId, bool)>>> = Arc::default();
        let tells = Arc::clone(&told);
        memory.begins = Some(Box::new(move |query, _| {
            tells.lock().unwrap().push((thread::current().id(), is_search(query)));
        }));
        run_with(&memory, source, &given(threads, None)).unwrap();
        let told = told.lock().unwrap();
        let ids: Vec<ThreadId> = told.iter().map(|(id, _)| *id).collect();
        let mut workers: Vec<ThreadId> = Vec::new();
        for id in ids {
            if !workers.contains(&id) {
                workers.push(id);
            }
        }
        (told.iter().map(|(id, search)| (*id == here, *search)).collect(), workers.len())
    };
    for source in [
        "ASSEMBLE FROM a: (RECALL ABOUT \"alice\"), b: (RECALL beliefs), c: (RECALL RECENT 3)",
        "ASSEMBLE FROM a: (RECALL LIKE \"red\"), b: (RECALL beliefs), c: (RECALL ABOUT \"alice\")",
        "ASSEMBLE FROM a: (RECALL ABOUT \"alice\" ORDER BY object), b: (RECALL ABOUT \"alice\" ORDER BY object)",
        "LET $a = RECALL LIKE \"red\"; LET $b = RECALL LIKE \"more\"; ASSEMBLE FROM a: $a, b: $b",
    ] {
        let (seen, workers) = seen(source, 4);
        assert!(seen.iter().all(|(here, _)| *here), "{source}: {seen:?}");
        assert_eq!(workers, 1, "{source}");
    }
    for threads in [1, 2, 4] {
        let source = SEARCHES.replace("FROM", "FROM x: (RECALL beliefs), y: (RECALL RECENT 3),");
        let (seen, workers) = seen(&source, threads);
        assert!(!seen.contains(&(false, false)), "an index is read where the caller is: {seen:?}");
        assert!(workers <= threads, "{workers} of {threads}");
    }
}

#[test]
fn searches_that_ask_a_program_outside_run_in_turn() {
    let here = thread::current().id();
    let mut memory = memory();
    memory.asks_outside = true;
    let elsewhere = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&elsewhere);
    memory.begins = Some(Box::new(move |_, _| {
        seen.fetch_or(thread::current().id() != here, Ordering::Relaxed);
    }));
    // The last two may fall back to a search, since no grain has their subject.
    let source = SEARCHES.replace(
        "d: (",
        "e: (RECALL ABOUT \"nobody\" ORDER BY object), \
        f: (RECALL WHERE subject IN (RECALL ABOUT \"none\" ORDER BY object | SUBJECTS)), d: (",
    );
    assert!(run_with(&memory, &source, &given(4, None)).is_ok());
    assert!(!elsewhere.load(Ordering::Relaxed));
}

#[test]
fn what_sorts_and_what_waits_for_a_search_takes_long_too() {
    let mut memory = memory();
    for other in [
        "(RECALL beliefs ORDER BY object)",
        "(RECALL WHERE subject IN (RECALL LIKE \"red\" | SUBJECTS))",
    ] {
        let (met, meeting) = (Arc::new(AtomicBool::new(true)), Arc::new(Gathering::default()));
        let (seen, meets) = (Arc::clone(&met), Arc::clone(&meeting));
        memory.begins = Some(Box::new(move |_, _| {
            meets.join();
            seen.fetch_and(meets.waits_for(2), Ordering::Relaxed);
        }));
        let source = format!("ASSEMBLE FROM a: (RECALL LIKE \"red\"), b: {other}");
        assert!(run_with(&memory, &source, &given(2, None)).is_ok());
        assert!(met.load(Ordering::Relaxed), "{other}");
    }
}

/// An answer or error as text, without its duration.
fn told(
    memory: &Fake,
    source: &str,
    options: &ExecuteOptions<'_>,
    ear: Ear,
) -> (Vec<Value>, Value) {
    let (ear, ended) = heard(memory, source, options, ear);
    (ear.events, answer(ended))
}

fn answer(ended: Ended) -> Value {
    match ended {
        Ok(response) => {
            let mut answer = serde_json::to_value(response).unwrap();
            assert!(answer["_cal"]["duration_ms"].take().is_u64());
            answer
        }
        Err(error) => json!(error),
    }
}

fn ear(most: usize, cancels: Option<CancelHandle>) -> Ear {
    Ear { began: Vec::new(), events: Vec::new(), most, cancels }
}

#[test]
fn what_a_statement_may_hold_decides_the_same_whoever_runs_ahead() {
    let memory = memory();
    let source = "LET $x = RECALL beliefs LIMIT 2; ASSEMBLE FROM a: (RECALL LIKE \"red\" LIMIT 12), l: $x, \
        b: (RECALL LIKE \"more\" LIMIT 3), i: (RECALL beliefs LIMIT 4), c: (RECALL ORDER BY object LIMIT 5), \
        d: (RECALL LIKE \"thing\" LIMIT 6 WITH dedup(object)) STREAM { progress }";
    let (mut failed, mut again) = (BTreeSet::new(), 0);
    for row_bytes in (0..80_000).step_by(500) {
        let alone = told(&memory, source, &given(1, Some(row_bytes)), ear(usize::MAX, None));
        let recalls = memory.recalls.swap(0, Ordering::Relaxed);
        for threads in [2, 4] {
            let several =
                told(&memory, source, &given(threads, Some(row_bytes)), ear(usize::MAX, None));
            assert_eq!(several, alone, "{row_bytes} bytes, {threads} threads");
            again += memory.recalls.swap(0, Ordering::Relaxed).saturating_sub(recalls);
        }
        let events = alone.0.iter().filter(|event| event["type"] == "source_completed");
        failed.insert(events.filter(|event| event["error"]["code"] == "CAL-E030").count());
    }
    assert!(failed.contains(&0) && failed.len() > 3, "{failed:?} sources failed");
    assert!(again > 0, "some share was too small, and enough was left in turn");
}

#[test]
fn what_sources_look_at_and_hold_is_added_up() {
    let memory = memory();
    for source in ["(RECALL beliefs LIMIT 10)", "(RECALL LIKE \"red\" LIMIT 10)"] {
        let ran = |sources: &str, threads, row_bytes| {
            let answer =
                run_with(&memory, &format!("ASSEMBLE FROM {sources}"), &given(threads, row_bytes));
            let answer = answer.ok()?;
            let code = answer["sources"]["b"]["error"]["code"].as_str().map(str::to_owned);
            Some((answer["_cal"]["budget"]["grains_scanned"].as_u64()?, code))
        };
        let one = (0..100_000).step_by(50).find(|most| ran(source, 1, Some(*most)).is_some());
        let (one, scanned) = (one.unwrap(), ran(source, 1, None).unwrap().0);
        assert!(scanned > 0);
        let both = format!("a: {source}, b: {source}");
        for threads in [1, 4] {
            assert_eq!(ran(&both, threads, None), Some((2 * scanned, None)), "{source}");
            assert_eq!(ran(&both, threads, Some(2 * one)), Some((2 * scanned, None)), "{source}");
            let (_, code) = ran(&both, threads, Some(one + one / 2)).unwrap();
            assert_eq!(code.as_deref(), Some("CAL-E030"), "{source} on {threads} threads");
        }
    }
}

#[test]
fn cancelling_stops_all_that_runs() {
    let mut memory = memory();
    let (meeting, over) = (Arc::new(Gathering::default()), Arc::new(AtomicUsize::new(0)));
    let (meets, overs) = (Arc::clone(&meeting), Arc::clone(&over));
    memory.begins = Some(Box::new(move |_, cancel| {
        meets.join();
        overs.fetch_add(usize::from(is_cancelled_soon(cancel)), Ordering::Relaxed);
    }));
    let asked = given(4, None);
    let host = asked.cancel.clone();
    let ended = thread::scope(|scope| {
        scope.spawn(move || {
            assert!(meeting.waits_for(4));
            host.cancel();
        });
        let (ear, ended) = all(&memory, SEARCHES, &asked);
        assert_eq!(ear.names().last(), Some(&"cancelled"));
        ended
    });
    assert_eq!(ended.unwrap_err().0, "CAL-E082");
    assert_eq!(over.load(Ordering::Relaxed), 4, "nobody is left behind");
}

#[test]
fn a_listener_that_takes_no_more_stops_all_that_runs_and_not_the_host() {
    let mut memory = memory();
    let (meeting, left) = (Arc::new(Gathering::default()), Arc::new(AtomicUsize::new(0)));
    let (meets, leaves) = (Arc::clone(&meeting), Arc::clone(&left));
    memory.begins = Some(Box::new(move |query, cancel| {
        if !is_search(query) {
            assert!(meets.waits_for(1), "somebody searches meanwhile");
            return;
        }
        meets.join();
        leaves.fetch_add(usize::from(is_cancelled_soon(cancel)), Ordering::Relaxed);
    }));
    let source = SEARCHES.replace("FROM", "FROM x: (RECALL beliefs),");
    let asked = given(3, None);
    // The assembly, its five sources, and the completion of the first.
    let (deaf, ended) = heard(&memory, &source, &asked, ear(7, None));
    assert_eq!(deaf.names().last(), Some(&"source_completed"));
    assert_eq!(ended.unwrap_err().0, "CAL-E082");
    assert_eq!(asked.cancel.stop_reason(), None, "the handle is the host's");
    assert_eq!(left.load(Ordering::Relaxed), *meeting.0.lock().unwrap());
}

#[test]
fn a_panic_comes_to_the_caller_in_its_turn() {
    let mut memory = memory();
    memory.begins = Some(Box::new(|query, _| {
        let asks = query.search().map(|search| search.asks()[0].text.clone());
        assert_ne!(asks.as_deref(), Some("thing"), "a memory that panics");
    }));
    let mut before = None;
    for threads in [1, 2, 4] {
        let asked = given(threads, None);
        let mut events = Vec::new();
        let mut listener = |event: crate::event::Event| {
            events.push(serde_json::to_value(event).unwrap());
            std::ops::ControlFlow::Continue(())
        };
        let writes = crate::write_quotas::WriteQuotas::default();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            super::stream(&memory, SEARCHES.as_bytes(), &asked, &writes, &mut listener)
        }));
        let panic = ended.unwrap_err();
        let said = panic.downcast_ref::<String>().map_or("", String::as_str);
        assert!(said.contains("a memory that panics"), "{said}");
        assert_eq!(events.len(), 7, "two sources of four were done");
        assert_eq!(*before.get_or_insert(events.clone()), events, "{threads} threads");
    }
}

#[test]
fn a_source_that_was_stopped_stops_the_assembly() {
    let mut memory = memory();
    for (stop, code) in [(StopReason::Timeout, "CAL-E075"), (StopReason::Cancelled, "CAL-E082")] {
        memory.broken_with = Some(MemoryError::stopped(stop));
        for threads in [1, 2] {
            let source = "ASSEMBLE FROM a: (RECALL LIKE \"red\"), b: (RECALL WHERE subject = \"bob\" LIKE \"red\")";
            let (ear, ended) = all(&memory, source, &given(threads, None));
            assert_eq!(ended.unwrap_err(), (code.to_owned(), "ASSEMBLE".to_owned()));
            let first = ear.events.iter().filter(|event| event["type"] == "source_completed");
            assert_eq!(first.count(), 1, "{threads} threads");
        }
    }
}

#[test]
fn a_cancelled_stream_is_the_beginning_of_the_whole_one() {
    let memory = memory();
    let counted = ExecuteOptions { cancel: CancelHandle::after(u64::MAX), ..given(1, None) };
    let (whole, _) = told(&memory, SEARCHES, &counted, ear(usize::MAX, None));
    let looks = counted.cancel.looks();
    for after in (0..looks).step_by(7) {
        let stopping = ExecuteOptions { cancel: CancelHandle::after(after), ..given(4, None) };
        let (mut events, ended) = told(&memory, SEARCHES, &stopping, ear(usize::MAX, None));
        assert_eq!(ended, json!(["CAL-E082", "ASSEMBLE"]), "{after}");
        assert_eq!(events.pop().unwrap()["type"], "cancelled", "{after}");
        assert_eq!(events, whole.get(..events.len()).unwrap(), "{after}");
    }
}

/// A source by its text, with a label of its own if it has none.
fn sources() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(
        prop::sample::select(vec![
            "(RECALL LIKE \"red\" LIMIT 10)",
            "(RECALL LIKE \"more\" LIMIT 20 AS json)",
            "(RECALL LIKE \"thing\" WITH summarize)",
            "(RECALL LIKE \"nothing of it\")",
            "(RECALL WHERE subject = \"bob\" LIKE \"red\")",
            "(RECALL ABOUT \"bob\")",
            "(RECALL ABOUT \"alice\")",
            "(RECALL ABOUT \"carol\")",
            "(RECALL ORDER BY object LIMIT 8)",
            "(RECALL beliefs WITH dedup(subject))",
            "(RECALL LIKE \"red\" WITH dedup(subject))",
            "(RECALL WHERE subject IN (RECALL LIKE \"red\" | SUBJECTS) LIMIT 3)",
            "$x",
        ]),
        1..=8,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn threads_change_nothing_but_the_time(
        sources in sources(),
        row_bytes in prop_oneof![Just(None), (0_usize..120_000).prop_map(Some)],
        budget in 40_u64..2_000,
        most in 1_usize..40,
        cancels in any::<bool>(),
        threads in 2_usize..=4,
    ) {
        let memory = memory();
        let labelled = sources.iter().enumerate().map(|(at, source)| format!("s{at}: {source}"));
        let source = format!(
            "LET $x = RECALL LIKE \"and\" LIMIT 3; ASSEMBLE n FROM {} BUDGET {budget} tokens \
             STREAM {{ all, chunk_size = 40 }}",
            labelled.collect::<Vec<_>>().join(", ")
        );
        for most in [usize::MAX, most] {
            let by = |threads| {
                let asked = given(threads, row_bytes);
                let cancel = cancels.then(|| asked.cancel.clone());
                told(&memory, &source, &asked, ear(most, cancel))
            };
            let alone = by(1);
            prop_assert_eq!(by(threads), alone.clone());
            if let Some(code) = alone.1[0].as_str() {
                prop_assert!(["CAL-E030", "CAL-E076", "CAL-E082"].contains(&code), "{}", code);
            }
        }
    }
}
