//! Every case on a whole store, in text and in JSON.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use grainstore::PrepareOptions;
use grainstore::cal::{self, CancelHandle, Error, ExecuteOptions, Response, StatementType, Tier};
use grainstore_sml::TokenCounter;
use serde_json::Value as Json;

use crate::cal_corpus::case::{As, Case, Step, StoreSpec, all, stores};
use crate::cal_corpus::expect::{differences, of_error, shown};
use crate::cal_corpus::labels::Labels;
use crate::cal_corpus::stores::{Built, instant};

const THREADS: usize = 16;

/// The cases, read once.
pub(crate) static CASES: LazyLock<Vec<Case>> = LazyLock::new(all);
/// The stores, read once; each is put together where it is needed.
static STORES: LazyLock<BTreeMap<String, StoreSpec>> = LazyLock::new(stores);

#[test]
fn every_case_comes_out_as_it_says_in_both_forms() {
    println!("{} cases", CASES.len());
    assert!(CASES.len() >= 300, "{} cases", CASES.len());
    let wanted = std::env::var("CAL_CASE").ok();
    let wanted = wanted.as_deref();
    // Cases that only read share a store.
    let shared = built();
    let run = |case: &Case| -> Option<String> {
        let name = &case.about.name;
        if wanted.is_some_and(|wanted| !name.contains(wanted)) {
            return None;
        }
        let why = run(case, &shared);
        (!why.is_empty()).then(|| format!("{}: {name}:\n  {}", case.file, why.join("\n  ")))
    };
    // Most of the time goes into waiting for the disk.
    let failures: Vec<String> = thread::scope(|scope| {
        let share = |first| CASES.iter().skip(first).step_by(THREADS);
        let spawn = |first| scope.spawn(move || share(first).filter_map(run).collect());
        let running: Vec<ScopedJoinHandle<'_, Vec<String>>> = (0..THREADS).map(spawn).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(
        failures.is_empty(),
        "{} of {} cases\n{}",
        failures.len(),
        CASES.len(),
        failures.join("\n")
    );
}

/// What a store keeps secret on the disk makes no difference, where no person is to be named.
#[test]
fn every_case_that_reads_what_is_nobodys_comes_out_so_in_an_encrypted_store() {
    let nobodys =
        |spec: &StoreSpec| !spec.steps.iter().any(|step| step["grain"].get("user_id").is_some());
    let stores = STORES.iter().filter(|(_, spec)| nobodys(spec));
    let shared: BTreeMap<&str, Built> =
        stores.map(|(name, spec)| (name.as_str(), Built::encrypted(spec))).collect();
    let reads = CASES.iter().filter(|case| case.steps.len() == 1 && !writes(&case.steps[0]));
    let mut failures = Vec::new();
    for case in reads {
        let Some(built) = shared.get(case.about.store.as_str()) else { continue };
        let why = step(case, 0, built, &mut built.labels.clone(), Form::Text).1;
        failures.extend(why.into_iter().map(|why| format!("{}: {why}", case.about.name)));
    }
    assert!(shared.len() > 10 && failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn names_of_cases_are_distinct() {
    let mut names: Vec<_> = CASES.iter().map(|case| &case.about.name).collect();
    names.sort();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// EXPLAIN shows what a RECALL asks in longer words: those answer the same.
#[test]
fn a_recall_without_its_shortcuts_answers_the_same() {
    let shared = built();
    let mut failures = Vec::new();
    let mut recalls = 0;
    for case in CASES.iter().filter(|case| case.steps.len() == 1) {
        let step = &case.steps[0];
        let built = &shared[case.about.store.as_str()];
        let Some(Ok(query)) = query(step, &built.labels, Form::Text) else { continue };
        let Ok(text) = String::from_utf8(query) else { continue };
        let Ok(text) = cal::parse(&text).map(|statement| statement.to_string()) else { continue };
        if step.error.is_some() || !text.starts_with("RECALL") {
            continue;
        }
        let ask = |query: &str| {
            let answer = ask(case, 0, built, query.as_bytes(), Form::Text);
            answer.map(|answer| shown(&answer)).map_err(|error| error.to_string())
        };
        // One that is as long as can be has no room for EXPLAIN.
        let Ok(plan) = ask(&format!("EXPLAIN {text}")) else { continue };
        let parts = plan["plan"]["recalls"].as_array().unwrap();
        // What is asked where nothing has the subject of an ABOUT is told beside it.
        if parts.iter().any(|part| part.get("otherwise").is_some()) {
            continue;
        }
        recalls += 1;
        let longer = parts.last().unwrap()["desugared"].as_str().unwrap();
        let (short, long) = (ask(&text).map(|it| found(&it)), ask(longer).map(|it| found(&it)));
        if short != long {
            failures.push(format!("{text}\n{short:?}\n{longer}\n{long:?}"));
        }
    }
    assert!(recalls > 300, "{recalls}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// EXPLAIN tells of each statement that runs what it is, and runs nothing of it.
#[test]
fn every_statement_that_runs_is_explained() {
    let shared = built();
    let mut failures = Vec::new();
    let mut explained = 0;
    for case in CASES.iter().filter(|case| case.steps[0].error.is_none()) {
        let step = &case.steps[0];
        let built = &shared[case.about.store.as_str()];
        let Some(text) = step.query.as_ref().map(|query| built.labels.spell(&query.text())) else {
            continue;
        };
        let Ok(statement) = cal::parse(&text) else { continue };
        let (text, tier) = (statement.to_string(), statement.tier());
        // EXPLAIN stands behind the LETs, takes its room, and explains no definition of a template.
        let unexplained = ["LET", "EXPLAIN", "DEFINE"].iter().any(|word| text.starts_with(word));
        if unexplained || text.len() > 8_000 {
            continue;
        }
        explained += 1;
        let explain = format!("EXPLAIN {text}");
        match ask(case, 0, built, explain.as_bytes(), Form::Text).map(|answer| shown(&answer)) {
            Ok(answer) if answer["plan"]["statement"] == text && answer["plan"]["tier"] == tier => {
            }
            Ok(answer) => failures.push(format!("{text}: {answer}")),
            Err(error) if step.host.is_silent() => failures.push(format!("{text}: {error}")),
            Err(_) => {}
        }
    }
    assert!(explained > 800, "{explained}");
    let left = shared["empty"].session(&As::default()).ask("RECALL | COUNT").unwrap();
    assert_eq!(shown(&left)["count"], 0, "an ADD that was explained was made");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What an answer has found, and the text it makes of it.
fn found(answer: &Json) -> Vec<Json> {
    let rows = answer["results"].as_array().cloned().unwrap_or_default();
    let addresses = rows.iter().map(|row| row["content_address"].clone());
    let rest = ["count", "values", "groups", "total", "formatted"];
    addresses.chain(rest.map(|key| answer[key].clone())).collect()
}

/// Every store.
fn built() -> BTreeMap<&'static str, Built> {
    STORES.iter().map(|(name, spec)| (name.as_str(), Built::of(spec))).collect()
}

/// What differs from what the case says.
fn run(case: &Case, shared: &BTreeMap<&str, Built>) -> Vec<String> {
    let writes = case.steps.len() > 1 || case.steps.iter().any(writes);
    let name = case.about.store.as_str();
    let Some(shared) = shared.get(name) else { return vec![format!("no store {name:?}")] };
    if !writes {
        return [Form::Text, Form::Json, Form::Phases]
            .into_iter()
            .flat_map(|form| step(case, 0, shared, &mut shared.labels.clone(), form).1)
            .chain(alike(case, shared))
            .collect();
    }
    let mut why = Vec::new();
    for form in [Form::Text, Form::Json, Form::Phases] {
        let built = Built::of(&STORES[name]);
        let mut labels = built.labels.clone();
        for at in 0..case.steps.len() {
            let found = step(case, at, &built, &mut labels, form).1;
            why.extend(found.into_iter().map(|why| format!("statement {at}: {why}")));
        }
    }
    why
}

/// Whether the statement may change the store.
fn writes(step: &Step) -> bool {
    let tier = |text: &str| Some(cal::QuerySource::read(text).ok()?.statement().ok()?.tier());
    step.readable().and_then(|text| tier(&text)).unwrap_or_default() > 0
}

/// How a statement is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    /// In text: prepared, then executed.
    Phases,
}

/// The same answer in both forms; places of errors differ.
fn alike(case: &Case, built: &Built) -> Option<String> {
    let mut labels = built.labels.clone();
    let text = step(case, 0, built, &mut labels, Form::Text).0?;
    let json = step(case, 0, built, &mut labels, Form::Json).0?;
    let (text, json) = (without_places(shown(&text)), without_places(shown(&json)));
    (text != json).then(|| format!("in text\n{text}\nin JSON\n{json}"))
}

fn without_places(mut json: Json) -> Json {
    match &mut json {
        Json::Object(fields) => {
            if fields.contains_key("suggestion") && fields.contains_key("code") {
                fields.remove("position");
                fields.remove("pointer");
            }
            fields.values_mut().for_each(|value| *value = without_places(value.take()));
        }
        Json::Array(items) => {
            items.iter_mut().for_each(|item| *item = without_places(item.take()));
        }
        _ => {}
    }
    json
}

/// Asks one statement of a case in one form. Gives its answer, and what differs from what was expected.
fn step(
    case: &Case,
    at: usize,
    built: &Built,
    labels: &mut Labels,
    form: Form,
) -> (Option<Response>, Vec<String>) {
    let step = &case.steps[at];
    let Some(query) = query(step, labels, form) else { return (None, Vec::new()) };
    let query = match query {
        Ok(query) => query,
        Err(why) => return (None, vec![why]),
    };
    let mut why = match std::str::from_utf8(&query) {
        Ok(text) => normal_form(step, text, labels),
        Err(_) => Vec::new(),
    };
    let mut last = None;
    for _ in 0..step.times.unwrap_or(1) {
        let outcome = ask(case, at, built, &query, form);
        match (&outcome, &step.error) {
            (Ok(response), None) => {
                if let Some(label) = &step.writes {
                    let json = shown(response);
                    let address = json["content_address"].as_str().unwrap_or_default().parse();
                    match address {
                        Ok(address) => labels.name(label, address),
                        Err(_) => why.push(format!("nothing is written: {json}")),
                    }
                }
                why.extend(differences(step, response, labels));
                why.extend(envelope(response, &query, tier_of(step)));
            }
            (Err(error), Some(expected)) => {
                let text = (form != Form::Json).then(|| std::str::from_utf8(&query).unwrap_or(""));
                why.extend(of_error(expected, error, text, labels));
            }
            (Ok(response), Some(expected)) => {
                why.push(format!("{} expected, not {}", expected.code, shown(response)));
            }
            (Err(error), None) => why.push(format!("{error} {:?}", error.suggestion())),
        }
        last = outcome.ok();
    }
    if !step.expects_an_answer() && step.error.is_none() && step.writes.is_none() {
        why.push("nothing is expected".to_owned());
    }
    let why = why.into_iter().map(|why| format!("{form:?}: {why}")).collect();
    (last, why)
}

/// The statement in one form; nothing where it has none.
fn query(step: &Step, labels: &Labels, form: Form) -> Option<Result<Vec<u8>, String>> {
    if form == Form::Phases && !step.host.is_silent() {
        return None;
    }
    let text = step.query.as_ref().map(|query| labels.spell(&query.text()));
    let by_hand = step.json.as_ref().map(|json| labels.spell_all(json));
    match (form, text) {
        (Form::Text | Form::Phases, None) => step.bytes().map(Ok),
        (Form::Text | Form::Phases, Some(text)) => Some(Ok(text.into_bytes())),
        (Form::Json, _) if step.json_text.is_some() => {
            step.json_text.as_ref().map(|json| Ok(labels.spell(&json.text()).into_bytes()))
        }
        (Form::Json, None) => by_hand.map(|json| Ok(json.to_string().into_bytes())),
        (Form::Json, Some(text)) => {
            let made = cal::parse(&text).ok()?.to_json();
            let read: Json = serde_json::from_str(&made).unwrap();
            match by_hand {
                Some(by_hand) if by_hand != read => {
                    Some(Err(format!("in JSON {made}, expected {by_hand}")))
                }
                _ => Some(Ok(made.into_bytes())),
            }
        }
    }
}

/// What is wrong with the normal form of a statement: it reads as the same statement, in JSON too, and is
/// the one that was expected.
fn normal_form(step: &Step, query: &str, labels: &Labels) -> Vec<String> {
    let Ok(source) = cal::QuerySource::read(query) else { return Vec::new() };
    let Ok(statement) = source.statement() else { return Vec::new() };
    let printed = statement.to_string();
    let json = statement.to_json();
    let mut why = Vec::new();
    if let Some(expected) = &step.printed
        && labels.spell(expected) != printed
    {
        why.push(format!("normal form {printed}, expected {expected}"));
    }
    for (form, again) in [("normal form", &printed), ("JSON", &json)] {
        let read = cal::QuerySource::read(again).and_then(|source| {
            let statement = source.statement()?;
            Ok((statement.to_string(), statement.to_json()))
        });
        match read {
            Ok(read) if read == (printed.clone(), json.clone()) => {}
            Ok(read) => why.push(format!("its {form} {again} reads as {read:?}")),
            // JSON is measured as text, and the normal form may be the longer one.
            Err(error) if error.code() == "CAL-E001" => {}
            Err(error) => why.push(format!("its {form} {again} does not read: {error}")),
        }
    }
    why
}

/// What is wrong with the `_cal` of an answer, whatever was asked.
fn envelope(response: &Response, query: &[u8], asked: Tier) -> Vec<String> {
    let source = cal::QuerySource::read_bytes(query);
    let Ok(source) = source else { return vec!["what was answered does not read".to_owned()] };
    // A BATCH with an entry that does not parse has no normal form.
    let Ok(statement) = source.statement() else { return Vec::new() };
    let tier = match statement.statement_type() {
        // Kept by its namespace where the call may write, else by its session.
        StatementType::DefineTemplate => u8::from(asked == Tier::Evolve),
        _ => statement.tier(),
    };
    let expected = ("1.0", statement.statement_type(), tier, statement.query_hash());
    let meta = &response.meta;
    let found = (meta.version, meta.statement_type, meta.tier, meta.query_hash.clone());
    if found == expected {
        Vec::new()
    } else {
        vec![format!("_cal {found:?}, expected {expected:?}")]
    }
}

fn tier_of(step: &Step) -> Tier {
    if step.tier == Some(0) { Tier::Read } else { Tier::Evolve }
}

fn ask(case: &Case, at: usize, built: &Built, query: &[u8], form: Form) -> Result<Response, Error> {
    let step = &case.steps[at];
    let told = case.steps[..=at].iter().rev().find_map(|step| step.now.as_deref());
    let told = told.or(case.about.now.as_deref());
    let now = told.map_or(built.now, instant);
    let session = built.session(&step.session);
    let tier = tier_of(step);
    let spelled = |(name, value): &(String, Json)| (name.clone(), built.labels.spell_all(value));
    let params: Vec<(String, Json)> = step.params.iter().map(spelled).collect();
    if form == Form::Phases {
        let preparing =
            PrepareOptions { tier, params, now: Some(now), ..PrepareOptions::default() };
        return session.execute(&session.prepare(query, &preparing)?.token);
    }
    let mut options = ExecuteOptions::at(now);
    options.tier = tier;
    options.auto_toon = step.host.auto_toon;
    if step.host.counts_words {
        options.counter = &Words;
    }
    if step.host.time_up {
        options.cancel = CancelHandle::new().with_deadline(Duration::ZERO);
    }
    if step.host.cancelled {
        options.cancel.cancel();
    }
    for (name, value) in &params {
        options.params.bind(name, value)?;
    }
    session.ask_with(query, &options)
}

/// Counts words, so that a budget can be reckoned by hand.
struct Words;

impl TokenCounter for Words {
    fn count(&self, text: &str) -> usize {
        text.split_ascii_whitespace().count()
    }

    fn name(&self) -> &str {
        "words"
    }
}
