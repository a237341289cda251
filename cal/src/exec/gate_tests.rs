//! Tests of the gate: the properties it is given before a statement runs, its refusals, and prepared
//! statements.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use grainstore_format::{EpochMs, Grain, GrainType};

use super::{ExecuteOptions, execute, prepare};
use crate::gate::{AdmissionGate, AdmissionRequest};
use crate::memory::MemoryError;
use crate::operation::CalOperation;
use crate::testutil::Fake;
use crate::tier::Tier;
use crate::write_quotas::WriteQuotas;

/// A gate that records its calls and refuses on request.
#[derive(Default)]
struct Keeper {
    told: Mutex<Vec<AdmissionRequest>>,
    refuses: bool,
    keeps_whole: bool,
}

impl AdmissionGate for Keeper {
    fn admit(&self, admission: &AdmissionRequest) -> Result<(), MemoryError> {
        self.told.lock().unwrap().push(admission.clone());
        match self.refuses {
            true => Err(MemoryError::new("ERR_POLICY", "no", "ask for something else")),
            false => Ok(()),
        }
    }

    fn admit_whole_grain(&self, _: &Grain) -> Result<(), MemoryError> {
        match self.keeps_whole {
            true => Err(MemoryError::new("ERR_POLICY", "not whole", "name fields")),
            false => Ok(()),
        }
    }

    fn needs_texts(&self) -> bool {
        true
    }
}

fn options(gate: &Keeper) -> ExecuteOptions<'_> {
    ExecuteOptions {
        tier: Tier::Evolve,
        gate: Some(gate),
        ..ExecuteOptions::at(EpochMs::new(1_000))
    }
}

fn told(query: &str) -> AdmissionRequest {
    let (memory, keeper) = (Fake::at_work(), Keeper::default());
    let _ = execute(&memory, query, &options(&keeper), &WriteQuotas::default());
    let told = keeper.told.into_inner().unwrap();
    assert_eq!(told.len(), 1, "{query}");
    told.into_iter().next().unwrap()
}

#[test]
fn a_gate_is_told_what_a_statement_does() {
    use CalOperation::{Add, Assemble, Batch, Coalesce, Count, Describe, Exists, Explain, Recall};
    for (query, operations) in [
        ("RECALL beliefs", vec![Recall]),
        ("RECALL beliefs | COUNT", vec![Count]),
        ("(RECALL beliefs) UNION (RECALL goals | LIMIT 3)", vec![Recall]),
        ("COALESCE(RECALL beliefs, RECALL events)", vec![Coalesce]),
        ("BATCH { a: RECALL, b: EXISTS sha256:aaaaaaaa }", vec![Batch, Recall, Exists]),
        ("ASSEMBLE FROM (RECALL beliefs)", vec![Assemble]),
        ("EXPLAIN RECALL beliefs", vec![Explain]),
        ("DESCRIBE server", vec![Describe]),
        (r#"ADD goal SET subject = "a" SET relation = "b" SET object = "c" REASON "r""#, vec![Add]),
    ] {
        assert_eq!(told(query).operations, operations, "{query}");
    }
    let of = told("RECALL goals WHERE subject IN (RECALL beliefs | SUBJECTS) | LIMIT 7");
    assert_eq!(of.reads, [GrainType::Goal, GrainType::Belief]);
    assert_eq!((of.writes, of.tier), (None, 0));
    let add = told(r#"ADD goal SET subject = "a" SET relation = "b" SET object = "c" REASON "r""#);
    assert_eq!((add.writes, add.tier), (Some(GrainType::Goal), 1));
    assert_eq!(told("RECALL LIMIT 7").max_grains, Some(7));
    assert_eq!(told("RECALL | COUNT").max_grains, None);
}

#[test]
fn a_gate_reads_the_normal_form_and_the_recalls_without_shortcuts() {
    let texts = told("recall beliefs -- quietly\n about \"alice\" recent 3").texts;
    assert_eq!(texts[0], r#"RECALL beliefs ABOUT "alice" RECENT 3"#);
    assert!(texts[1].contains(r#"subject = "alice""#), "{texts:?}");
    let silent = Keeper::default();
    let memory = Fake::at_work();
    let plain = ExecuteOptions { gate: Some(&silent), ..ExecuteOptions::at(EpochMs::new(1)) };
    let prepared = prepare(&memory, "RECALL beliefs", &plain).unwrap();
    assert_eq!(prepared.text, "RECALL beliefs");
}

#[test]
fn more_work_has_more_points() {
    let points = |query: &str| told(query).complexity;
    for (less, more) in [
        ("RECALL", r#"RECALL WHERE subject = "a""#),
        ("RECALL LIMIT 20", "RECALL LIMIT 1000"),
        ("RECALL LIMIT 1000", "(RECALL LIMIT 1000) UNION (RECALL LIMIT 1000)"),
        ("RECALL", r#"RECALL LIKE "tea""#),
        ("RECALL", "RECALL WITH dedup(subject)"),
        ("RECALL", "RECALL | COUNT"),
        ("ASSEMBLE FROM (RECALL) BUDGET 100 tokens", "ASSEMBLE FROM (RECALL) BUDGET 9000 tokens"),
        ("RECALL beliefs", "RECALL beliefs WHERE subject IN (RECALL | SUBJECTS)"),
    ] {
        assert!(points(less) < points(more), "{less} has {}, {more}", points(less));
    }
    assert_eq!(points("EXPLAIN RECALL LIMIT 1000"), 1, "nothing of it runs");
}

#[test]
fn what_a_gate_refuses_does_not_run_and_says_where() {
    let memory = Fake::at_work();
    memory.keep(
        r#"{"type":"belief","subject":"alice","relation":"likes","object":"tea","confidence":1.0}"#,
    );
    let refusing = Keeper { refuses: true, ..Keeper::default() };
    let query = "LET $a = RECALL beliefs | SUBJECTS; RECALL beliefs WHERE subject IN ($a)";
    let error = execute(&memory, query, &options(&refusing), &WriteQuotas::default()).unwrap_err();
    assert_eq!((error.code(), error.suggestion()), ("ERR_POLICY", "ask for something else"));
    let place = error.position().unwrap();
    assert_eq!((query.get(place.start..place.end), place.start), (Some("RECALL"), 36));
    assert_eq!(memory.recalls.load(Ordering::Relaxed), 0, "nothing was looked at");
}

#[test]
fn whole_grains_pass_the_gate_and_selected_fields_do_not_have_to() {
    let memory = Fake::at_work();
    memory.keep(
        r#"{"type":"belief","subject":"alice","relation":"likes","object":"tea","confidence":1.0}"#,
    );
    let keeping = Keeper { keeps_whole: true, ..Keeper::default() };
    let run = |query: &str| {
        execute(&memory, query, &options(&keeping), &WriteQuotas::default())
            .map(|_| ())
            .map_err(|error| error.code().to_owned())
    };
    assert_eq!(run("RECALL beliefs"), Err("ERR_POLICY".to_owned()));
    assert_eq!(run("COALESCE(RECALL beliefs, RECALL events)"), Err("ERR_POLICY".to_owned()));
    assert_eq!(run("(RECALL beliefs) UNION (RECALL)"), Err("ERR_POLICY".to_owned()));
    let tea = memory.keep(
        r#"{"type":"belief","subject":"bob","relation":"likes","object":"tea","confidence":1.0}"#,
    );
    for query in [
        format!("HISTORY sha256:{tea}"),
        format!("HISTORY sha256:{tea} DIFF sha256:{tea}"),
        r#"HISTORY WHERE subject = "bob" AND relation = "likes""#.to_owned(),
    ] {
        assert_eq!(run(&query), Err("ERR_POLICY".to_owned()), "{query}");
    }
    assert_eq!(run("RECALL beliefs | SELECT object"), Ok(()));
    assert_eq!(run("RECALL beliefs | COUNT"), Ok(()));
}

#[test]
fn a_host_may_want_fewer_grains_than_the_language() {
    let memory = Fake::at_work();
    for object in 0..30 {
        memory.keep(&format!(
            r#"{{"type":"belief","subject":"alice","relation":"likes","object":"{object}","confidence":1.0}}"#
        ));
    }
    let few = |query: &str, few| {
        let options = ExecuteOptions { default_limit: few, ..ExecuteOptions::at(EpochMs::new(1)) };
        let response = execute(&memory, query, &options, &WriteQuotas::default()).unwrap();
        response.meta.budget.grains_returned
    };
    assert_eq!(few("RECALL", None), 20);
    assert_eq!(few("RECALL", Some(5)), 5);
    assert_eq!(few("RECALL", Some(500)), 20, "never more than the language gives");
    assert_eq!(few("RECALL LIMIT 25", Some(5)), 25, "what is asked for is given");
    let fewer = ExecuteOptions { default_limit: Some(5), ..ExecuteOptions::at(EpochMs::new(1)) };
    let told = execute(&memory, "DESCRIBE capabilities", &fewer, &WriteQuotas::default()).unwrap();
    let told = serde_json::to_value(told).unwrap();
    assert_eq!(told["description"]["limits"]["default_limit"], 5);
    let explained = execute(
        &memory,
        "EXPLAIN RECALL",
        &ExecuteOptions { default_limit: Some(5), ..ExecuteOptions::at(EpochMs::new(1)) },
        &WriteQuotas::default(),
    );
    let json = serde_json::to_value(explained.unwrap()).unwrap();
    assert_eq!(json["plan"]["recalls"][0]["desugared"], "RECALL | LIMIT 5");
}

#[test]
fn preparing_finds_the_target_and_writes_nothing() {
    let memory = Fake::at_work();
    let tea =
        r#"{"type":"belief","subject":"alice","relation":"likes","object":"tea","confidence":1.0}"#;
    let address = memory.keep(tea);
    let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(EpochMs::new(1)) };
    let prefix: String = address.to_string().chars().take(8).collect();
    let query = format!(r#"SUPERSEDE sha256:{prefix} SET object = "water" REASON "asked""#);
    let prepared = prepare(&memory, &query, &options).unwrap();
    assert_eq!(prepared.target, Some(address));
    assert_eq!(prepared.plan.side_effects, ["adds one grain", "supersedes one grain"]);
    assert!(memory.reasons.lock().unwrap().is_empty());
    let pinned = ExecuteOptions { pinned_target: Some(address), ..options.clone() };
    let ambiguous = |options: &ExecuteOptions<'_>| {
        memory.claim_ambiguous.store(true, Ordering::Relaxed);
        let ran = execute(&memory, &query, options, &WriteQuotas::default());
        memory.claim_ambiguous.store(false, Ordering::Relaxed);
        ran.err().map(|error| error.code().to_owned())
    };
    assert_eq!(ambiguous(&options).as_deref(), Some("CAL-E015"));
    assert_eq!(memory.reasons.lock().unwrap().len(), 0);
    let refused = |query: &str, tier| {
        let options = ExecuteOptions { tier, ..ExecuteOptions::at(EpochMs::new(1)) };
        prepare(&memory, query, &options).unwrap_err().code().to_owned()
    };
    assert_eq!(refused(&query, Tier::Read), "CAL-E044");
    let nowhere = r#"SUPERSEDE sha256:00000000 SET object = "x" REASON "r""#;
    assert_eq!(refused(nowhere, Tier::Evolve), "CAL-E046");
    assert!(execute(&memory, &query, &pinned, &WriteQuotas::default()).is_ok());
    assert_eq!(refused(&query, Tier::Evolve), "CAL-E040");
}

#[test]
fn what_is_wrong_in_an_entry_of_a_batch_is_told_when_it_runs() {
    let memory = Fake::at_work();
    let options = ExecuteOptions::at(EpochMs::new(1_768_471_200_000));
    let query = "BATCH { a: RECALL WHERE subjct = \"x\", b: RECALL }";
    let prepared = prepare(&memory, query, &options).unwrap();
    let answer = execute(&memory, query, &options, &WriteQuotas::default()).unwrap();
    assert_eq!(prepared.query_hash, answer.meta.query_hash);
    let parts: Vec<&str> = prepared.plan.recalls.iter().map(|recall| &*recall.part).collect();
    assert_eq!(parts, ["entry b"]);
}
