//! Whether the cases cover the language. What there is to cover is read from the language itself, so that
//! a new production, option, field or code without a case fails; what a case claims to cover has to occur in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use grainstore::cal::{self, vocabulary};
use serde_json::Value as Json;

use crate::cal_corpus::case::{As, Case, Step, stores};
use crate::cal_corpus::derive::{Derivation, literals};
use crate::cal_corpus::rules::{Rules, rules};
use crate::cal_corpus::run::CASES;
use crate::cal_corpus::stores::Built;

/// Codes of the language that this version never raises, and why.
const WITHOUT_A_PATH: &[(&str, &str)] = &[
    ("CAL-E080", "every grain can be formatted"),
    ("CAL-E081", "there is no connection to take up again"),
];

/// Raised by calls that stream alone; `engine/tests/cal/calls` has them.
const WHERE_STREAMED: &str = "CAL-E079";

/// The error codes of section 9, first and last of each run.
const SECTION_9: [(u16, u16); 9] =
    [(1, 22), (30, 31), (40, 46), (50, 52), (60, 66), (70, 71), (75, 82), (85, 96), (100, 100)];

/// Limits that DESCRIBE capabilities does not tell.
const MORE_LIMITS: [&str; 10] = [
    "thread_limit",
    "let_depth",
    "assembly_name",
    "intent",
    "reason",
    "budget_tokens",
    "budget_grains",
    "versions",
    "set_clauses",
    "summary_sentences",
];

/// Productions whose words are named one by one.
const WORD_BY_WORD: [&str; 6] =
    ["option", "stage", "format_type", "preset", "category", "extractor"];

/// Where the codes are registered.
const CODES: &str = include_str!("../../../../cal/src/codes.rs");

/// What the language says of itself.
struct Language {
    rules: Rules,
    /// The operators of each field.
    fields: BTreeMap<String, BTreeSet<String>>,
    limits: BTreeSet<String>,
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(Language::described);

impl Language {
    /// As DESCRIBE tells it.
    fn described() -> Self {
        let session = Built::of(&stores()["empty"]).session(&As::default());
        let describe = |what: &str| {
            let answer = session.ask(&format!("DESCRIBE {what}")).unwrap();
            serde_json::to_value(answer).unwrap()["description"].clone()
        };
        let mut fields = BTreeMap::new();
        for grain_type in vocabulary::singulars() {
            let rows = describe(&format!("fields {grain_type}"))["fields"].clone();
            for row in rows.as_array().unwrap() {
                let operators: Vec<String> =
                    serde_json::from_value(row["operators"].clone()).unwrap();
                let name = row["name"].as_str().unwrap().to_owned();
                fields.insert(name, operators.into_iter().collect());
            }
        }
        let capabilities = describe("capabilities");
        let told = ["limits", "writes_a_minute"].map(|what| capabilities[what].clone());
        let told = told.iter().flat_map(|table| table.as_object().unwrap().keys().cloned());
        let limits = told.chain(MORE_LIMITS.map(str::to_owned));
        Self {
            rules: rules(describe("grammar")["grammar"].as_str().unwrap()),
            fields,
            limits: limits.map(|name| format!("limit: {name}")).collect(),
        }
    }

    /// Codes that this version can raise, warnings too.
    fn codes(&self) -> BTreeSet<String> {
        let numbers = SECTION_9.iter().flat_map(|(first, last)| *first..=*last);
        let named = numbers.map(|number| format!("CAL-E{number:03}"));
        let registered = CODES.split('"').filter(|text| is_code(text)).map(str::to_owned);
        let without = |code: &String| {
            code != WHERE_STREAMED && WITHOUT_A_PATH.iter().all(|(known, _)| known != code)
        };
        named.chain(registered).filter(without).collect()
    }

    /// Everything that a case has to name.
    fn universe(&self) -> BTreeSet<String> {
        let one_by_one = |name: &String| {
            WORD_BY_WORD.iter().any(|production| name.starts_with(&format!("{production}: ")))
        };
        let words = literals(&self.rules).into_iter().filter(one_by_one);
        let words = words.filter(|name| name.ends_with(|c: char| c.is_ascii_alphanumeric()));
        let productions = self.rules.keys().cloned();
        productions.chain(words).chain(self.limits.clone()).chain(self.codes()).collect()
    }

    /// What of the grammar a statement uses; nothing where it is no sentence of it.
    fn uses(&self, statement: &str) -> Option<BTreeSet<String>> {
        Derivation::uses(&self.rules, &self.fields.keys().cloned().collect(), statement)
    }
}

fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix("CAL-E").or_else(|| text.strip_prefix("CAL-W"));
    digits.is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The statement of a step as it is read, if it is.
struct Read {
    /// As it is written, or spelled.
    text: String,
    /// Its normal form.
    printed: String,
    json: Json,
}

impl Read {
    fn of(step: &Step) -> Option<Self> {
        let text = step.readable()?;
        let source = cal::QuerySource::read(&text).ok()?;
        let statement = source.statement().ok()?;
        let (printed, json) = (statement.to_string(), statement.to_json());
        let text = source.text().to_owned();
        Some(Self { text, printed, json: serde_json::from_str(&json).unwrap() })
    }

    /// What of the grammar it uses. Only the normal form has to be a sentence: clauses may be written in
    /// another order.
    fn uses(&self) -> Option<BTreeSet<String>> {
        let mut used = LANGUAGE.uses(&self.printed)?;
        used.extend(LANGUAGE.uses(&self.text).into_iter().flatten());
        Some(used)
    }
}

/// The codes that a step brings about: its error, its warnings, and errors within its answer.
fn codes(step: &Step) -> BTreeSet<String> {
    fn within(json: &Json, found: &mut BTreeSet<String>) {
        match json {
            Json::String(text) if is_code(text) => drop(found.insert(text.clone())),
            Json::Array(items) => items.iter().for_each(|item| within(item, found)),
            Json::Object(fields) => fields.values().for_each(|value| within(value, found)),
            _ => {}
        }
    }
    let mut found: BTreeSet<String> = step.warnings.iter().cloned().collect();
    found.extend(step.error.iter().map(|error| error.code.clone()));
    step.answer.iter().for_each(|answer| within(answer, &mut found));
    found
}

/// What occurs in a case.
fn shown(case: &Case) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for step in &case.steps {
        found.extend(codes(step));
        found.extend(Read::of(step).and_then(|read| read.uses()).into_iter().flatten());
    }
    found
}

/// The fields that a statement in JSON tests, each with its operator.
fn conditions(json: &Json, found: &mut BTreeSet<(String, String)>) {
    match json {
        Json::Object(fields) => {
            if let (Some(field), Some(operator)) = (fields.get("field"), fields.get("op")) {
                let text = |json: &Json| json.as_str().unwrap().to_owned();
                found.insert((text(field), text(operator)));
            }
            fields.values().for_each(|value| conditions(value, found));
        }
        Json::Array(items) => items.iter().for_each(|item| conditions(item, found)),
        _ => {}
    }
}

#[test]
fn what_a_case_covers_occurs_in_it() {
    let mut wrong = Vec::new();
    for case in CASES.iter() {
        let shown = shown(case);
        let known = |name: &&String| shown.contains(*name) || LANGUAGE.limits.contains(*name);
        let claims: Vec<_> = case.about.covers.iter().filter(|name| !known(name)).collect();
        if !claims.is_empty() {
            wrong.push(format!("{}: {}: {claims:?}", case.file, case.about.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn everything_the_language_has_is_covered_by_name() {
    let codes = CASES.iter().flat_map(|case| case.steps.iter().flat_map(codes));
    let named: BTreeSet<String> =
        CASES.iter().flat_map(|case| case.about.covers.clone()).chain(codes).collect();
    let universe = LANGUAGE.universe();
    assert!(universe.len() > 150, "{universe:?}");
    let never: Vec<_> = universe.difference(&named).collect();
    assert!(never.is_empty(), "no case covers {never:?}");
}

#[test]
fn every_statement_that_reads_is_a_sentence_and_every_word_of_the_grammar_is_said() {
    let mut said = BTreeSet::new();
    for read in CASES.iter().flat_map(|case| &case.steps).filter_map(Read::of) {
        let used = read.uses();
        said.extend(used.unwrap_or_else(|| panic!("no sentence: {}", read.printed)));
    }
    let never: Vec<_> = literals(&LANGUAGE.rules).difference(&said).cloned().collect();
    assert!(never.is_empty(), "never said: {never:?}");
}

#[test]
fn every_field_is_tested_with_each_of_its_operators_and_refuses_another() {
    let (mut tested, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for step in CASES.iter().flat_map(|case| &case.steps) {
        let Some(read) = Read::of(step) else { continue };
        let mut found = BTreeSet::new();
        conditions(&read.json, &mut found);
        match &step.error {
            None => tested.extend(found),
            Some(error) if error.code == "CAL-E020" => refused.extend(found),
            Some(_) => {}
        }
    }
    assert!(LANGUAGE.fields.len() > 40);
    let mut never = Vec::new();
    for (field, operators) in &LANGUAGE.fields {
        let pair = |operator: &String| (field.clone(), operator.clone());
        let missing = operators.iter().filter(|operator| !tested.contains(&pair(operator)));
        never.extend(missing.map(|operator| format!("{field} {operator}")));
        let refuses =
            |(name, operator): &(String, String)| name == field && !operators.contains(operator);
        if !refused.iter().any(refuses) {
            never.push(format!("{field} with an operator it lacks"));
        }
    }
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn every_code_is_held_to_a_place_and_a_suggestion() {
    let mut held = BTreeSet::new();
    for error in CASES.iter().flat_map(|case| &case.steps).filter_map(|step| step.error.as_ref()) {
        let placed = error.at.is_some() || error.position.is_some() || error.nowhere;
        if placed && error.suggestion.is_some() {
            held.insert(error.code.clone());
        }
    }
    let codes = LANGUAGE.codes();
    let never: Vec<_> =
        codes.iter().filter(|code| code.starts_with("CAL-E") && !held.contains(*code)).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn a_code_that_is_excused_has_no_path() {
    for (code, why) in WITHOUT_A_PATH {
        assert!(
            !CODES.contains(&format!("\"{code}\"")),
            "{code} is registered, but excused: {why}"
        );
    }
}
