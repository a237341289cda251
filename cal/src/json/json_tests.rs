//! The JSON form against the text form: round trips, the text of documents, and positions of errors.

use grainstore_format::EpochMs;
use proptest::prelude::*;
use serde_json::json;

use super::{locate, translate};
use crate::correction::parse;
use crate::exec::{ExecuteOptions, execute};
use crate::limits;
use crate::parse::tests::{PRINTED, piece};
use crate::source::QuerySource;
use crate::testutil::Fake;
use crate::write_quotas::WriteQuotas;

/// Checks that JSON preserves the statement, and that writing it again gives the same JSON.
fn survives(text: &str) {
    let statement = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let printed = statement.to_json();
    let source = QuerySource::read(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    let again = source.statement().unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(again, statement, "{text}\n{printed}\n{}", source.text());
    assert_eq!(again.to_json(), printed);
    assert_eq!(again.to_string(), statement.to_string());
}

#[test]
fn every_query_of_the_text_tests_survives_json() {
    for (source, printed) in PRINTED {
        survives(source);
        survives(printed);
    }
    for extra in [
        "RECALL WITH diversity(mmr), x_A(1, $b, sha256:01234567)",
        "RECALL WITH diversity(mmr, lambda = 0.70)",
        "RECALL WITH diversity(threshold, 0.9), progressive_disclosure(full)",
        "RECALL ABOUT \"\u{1}\u{7f}\r\n\t\\\"/\u{2028}é\"",
        "RECALL ABOUT $p LIKE $p SINCE $p IN SCOPE $p THREAD $p RECENT $p",
        "HISTORY $h DIFF sha256:01234567",
        "LET $x = RECALL | HASHES | SUBJECTS; RECALL WHERE subject IN ($x) AND hash IN ($y)",
        "RECALL WHERE subject IN ($x, $y) AND hash = $x",
        "EXPLAIN (RECALL) UNION (LET $x = RECALL | OBJECTS; RECALL WHERE subject IN ($x))",
    ] {
        survives(extra);
    }
}

/// Pairs of a document and the text it stands for.
#[test]
fn documents_are_spelled_by_the_table() {
    for (document, text) in [
        (
            json!({"cal_version": 1, "statement": "recall", "grain_type": "beliefs", "about": "alice",
                   "where": [{"field": "confidence", "op": ">=", "value": 0.8}], "recent": 5, "as": "markdown"}),
            "RECALL beliefs ABOUT \"alice\" WHERE confidence >= 0.8 RECENT 5 AS markdown",
        ),
        (
            json!({"statement": "recall", "pipeline": [{"project": {"attr": ["hc:id"], "content": ["object"]}}],
                   "with": ["summarize", {"cache": {"ttl": 5}}]}),
            "RECALL WITH summarize, cache (ttl =5) | PROJECT content (object), attr (hc:id)",
        ),
        (
            json!({"statement": "assemble", "from": [{"recall": {"statement": "recall"}}],
                   "stream": ["progress", {"chunk_size": 50}]}),
            "ASSEMBLE FROM (RECALL) STREAM {progress, chunk_size =50}",
        ),
        (
            json!({"statement": "assemble", "from": [{"let": "x", "label": "y"}], "stream": true}),
            "ASSEMBLE FROM y: $x STREAM",
        ),
        (
            json!({"statement": "revert", "target": "sha256:01234567", "reason": "r"}),
            "REVERT sha256:01234567 REASON \"r\"",
        ),
        (
            json!({"statement": "recall", "where": [
                {"field": "tags", "op": "include", "value": ["a", {"param": "p"}]},
                {"field": "relation", "op": "is", "value": "preference"},
                {"field": "hash", "op": "=", "value": {"hash": "sha256:01234567"}}]}),
            "RECALL WHERE tags INCLUDE [\"a\",$p] AND relation IS PREFERENCE AND hash = sha256:01234567",
        ),
    ] {
        let spelled = translate(&document.to_string()).unwrap_or_else(|error| panic!("{error}"));
        // Serde sorts the keys it writes; the order of the grammar comes from the table.
        let squeezed = |text: &str| text.replace([' ', ','], "");
        assert_eq!(squeezed(&spelled.text), squeezed(text), "{}", spelled.text);
    }
}

/// The longest text has a JSON form that is accepted, and one byte more is refused.
#[test]
fn a_document_is_no_longer_than_the_text_it_is_made_of() {
    for (start, end) in [
        ("RECALL ABOUT\"", "\""),
        ("RECALL WHERE subject=\"", "\"AND confidence>=0.5 AND object IN(\"a\",$b)|LIMIT 5"),
        ("BATCH{sha256: RECALL,b:RECALL ABOUT\"", "\"}"),
        ("COALESCE(RECALL,RECALL ABOUT\"", "\"|OFFSET 1|LIMIT 2)"),
    ] {
        let fill = limits::MAX_QUERY_BYTES - start.len() - end.len();
        let text = format!("{start}{}{end}", "x".repeat(fill));
        let json = parse(&text).unwrap_or_else(|error| panic!("{start}: {error}")).to_json();
        let read = QuerySource::read(&json).unwrap();
        assert_eq!(read.statement().map(|statement| statement.to_json()), Ok(json.clone()));
        let longer = json.replacen("xx", "xxx", 1);
        let longer = QuerySource::read(&longer).unwrap();
        assert_eq!(
            longer.statement().err().map(|error| error.code().to_owned()).as_deref(),
            Some("CAL-E001")
        );
    }
}

/// A document, its error code, the pointer, and the text at the error's position.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str, &str)] = &[
    // Errors of the JSON form itself.
    ("{}", "CAL-E014", "", "{}"),
    (r#"{"recent":5}"#, "CAL-E002", "", r#"{"recent":5}"#),
    (r#"{"statement":"recal"}"#, "CAL-E002", "/statement", r#""recal""#),
    (r#"{"statement":5}"#, "CAL-E020", "/statement", "5"),
    (r#"{"statement":"recall","limt":5}"#, "CAL-E002", "/limt", r#""limt""#),
    (r#"{"statement":"recall","recent":5,"recent":6}"#, "CAL-E002", "/recent", r#""recent""#),
    (r#"{"cal_version":2,"statement":"recall"}"#, "CAL-E100", "/cal_version", "2"),
    (r#"{"statement":"explain","query":{"statement":"recall","let":[]}}"#, "CAL-E002", "/query/let", r#""let""#),
    (r#"{"statement":"recall","with":[{"superseded":true}]}"#, "CAL-E020", "/with/0", r#"{"superseded":true}"#),
    (r#"{"statement":"recall","with":["explaination"]}"#, "CAL-E002", "/with/0", r#""explaination""#),
    (r#"{"statement":"recall","with":["dedup"]}"#, "CAL-E020", "/with/0", r#""dedup""#),
    (r#"{"statement":"recall","pipeline":["count"]}"#, "CAL-E020", "/pipeline/0", r#""count""#),
    (r#"{"statement":"recall","pipeline":[{"limit":5,"offset":1}]}"#, "CAL-E020", "/pipeline/0", r#"{"limit":5,"offset":1}"#),
    (r#"{"statement":"recall","where":[]}"#, "CAL-E002", "/where", "[]"),
    (r#"{"statement":"recall","where":[{"field":"subject","value":1}]}"#, "CAL-E002", "/where/0", r#"{"field":"subject","value":1}"#),
    (r#"{"statement":"recall","where":[{"field":"subject","op":"~","value":1}]}"#, "CAL-E002", "/where/0/op", r#""~""#),
    (r#"{"statement":"recall","where":[{"field":"subject","op":"IN","value":{"let":"x"}}]}"#, "CAL-E008", "/where/0/value/let", r#""x""#),
    (r#"{"statement":"recall","where":[{"field":"subject","op":"=","value":null}]}"#, "CAL-E020", "/where/0/value", "null"),
    (r#"{"statement":"recall","my":false}"#, "CAL-E020", "/my", "false"),
    (r#"{"statement":"history","subject":"a"}"#, "CAL-E002", "", r#"{"statement":"history","subject":"a"}"#),
    (r#"{"statement":"assemble","from":[{"label":"a"}]}"#, "CAL-E002", "/from/0", r#"{"label":"a"}"#),
    (r#"{"statement":"exists","hash":"sha256:XYZ"}"#, "CAL-E015", "/hash", r#""sha256:XYZ""#),
    (r#"{"statement":"assemble","from":[{"let":"a"}],"stream":false}"#, "CAL-E020", "/stream", "false"),
    (r#"{"statement":"assemble","from":[{"let":"a"}],"stream":["chunk"]}"#, "CAL-E077", "/stream/0", r#""chunk""#),
    (r#"{"statement":"assemble","from":[{"let":"a"}],"stream":["all",{"size":5}]}"#, "CAL-E077", "/stream/1/size", r#""size""#),
    (r#"{"statement":"assemble","from":[{"let":"a"}],"stream":["chunk_size"]}"#, "CAL-E020", "/stream/0", r#""chunk_size""#),
    // Names cannot inject keywords.
    (r#"{"statement":"recall","grain_type":"MY"}"#, "CAL-E003", "/grain_type", r#""MY""#),
    (r#"{"statement":"recall","grain_type":"beliefs LIMIT 5"}"#, "CAL-E003", "/grain_type", r#""beliefs LIMIT 5""#),
    (r#"{"statement":"recall","pipeline":[{"order_by":{"field":"time","dir":"COUNT"}}]}"#, "CAL-E002", "/pipeline/0/order_by/dir", r#""COUNT""#),
    (r#"{"statement":"recall","pipeline":[{"group_by":"type AS sml"}]}"#, "CAL-E004", "/pipeline/0/group_by", r#""type AS sml""#),
    (r#"{"statement":"recall","about":{"param":"x LIMIT 5"}}"#, "CAL-E020", "/about/param", r#""x LIMIT 5""#),
    (r#"{"statement":"recall","with":["x_a, superseded"]}"#, "CAL-E002", "/with/0", r#""x_a, superseded""#),
    (r#"{"statement":"define_template","name":"t EXTENDS data","sections":[{"element":""}]}"#, "CAL-E020", "/name", r#""t EXTENDS data""#),
    (r#"{"statement":"define_template","name":"t","sections":[{"element":"} FOOTER {"}]}"#, "CAL-E094", "/sections/0/element", r#""} FOOTER {""#),
    (r#"{"statement":"define_template","name":"t","sections":[{"element":"{{x}"}]}"#, "CAL-E094", "/sections/0/element", r#""{{x}""#),
    (r#"{"statement":"define_template","name":"t","sections":["element"]}"#, "CAL-E020", "/sections/0", r#""element""#),
    (r#"{"statement":"define_template","name":"t"}"#, "CAL-E002", "", r#"{"statement":"define_template","name":"t"}"#),
    (r#"{"statement":"assemble","format":{"template":"x STREAM"},"from":[{"let":"a"}]}"#, "CAL-E020", "/format/template", r#""x STREAM""#),
    (r#"{"statement":"assemble","format":"TEMPLATE","from":[{"let":"a"}]}"#, "CAL-E002", "/format", r#""TEMPLATE""#),
    (r#"{"statement":"assemble","name":"x FOR","from":[{"let":"a"}]}"#, "CAL-E020", "/name", r#""x FOR""#),
    // Errors of the parser, at the value they belong to.
    (r#"{"statement":"recall","grain_type":"belief"}"#, "CAL-E003", "/grain_type", r#""belief""#),
    (r#"{"statement":"recall","in":"a","scope":"b"}"#, "CAL-E002", "/scope", r#""b""#),
    (r#"{"statement":"recall","where":[{"field":"subjct","op":"=","value":1}]}"#, "CAL-E004", "/where/0/field", r#""subjct""#),
    (r#"{"statement":"recall","where":[{"field":"key","op":"=","value":1}]}"#, "CAL-E002", "/where/0/field", r#""key""#),
    (r#"{"statement":"recall","where":[{"field":"tags","op":"INCLUDE","value":[["a"]]}]}"#, "CAL-E020", "/where/0/value/0", r#"["a"]"#),
    (r#"{"statement":"recall","about":"a\u202Eb"}"#, "CAL-E071", "/about", r#""a\u202Eb""#),
    (r#"{"statement":"recall","recent":2.5}"#, "CAL-E006", "/recent", "2.5"),
    (r#"{"statement":"recall","recent":1e2}"#, "CAL-E006", "/recent", "1e2"),
    (r#"{"statement":"recall","recent":"5"}"#, "CAL-E020", "/recent", r#""5""#),
    (r#"{"statement":"add","grain_type":"beliefs","set":[],"reason":"r"}"#, "CAL-E003", "/grain_type", r#""beliefs""#),
    (r#"{"statement":"add","grain_type":"belief","set":[{"field":"policy","value":1}],"reason":"r"}"#, "CAL-E002", "/set/0/field", r#""policy""#),
    (r#"{"statement":"add","grain_type":"belief","set":[{"field":"object","value":1}]}"#, "CAL-E018", "", r#"{"statement":"add","grain_type":"belief","set":[{"field":"object","value":1}]}"#),
    (r#"{"statement":"supersede","target":"sha256:01234567","reason":"r"}"#, "CAL-E019", "/reason", r#""r""#),
    (r#"{"statement":"coalesce","branches":[{"statement":"exists","hash":"sha256:01234567"}]}"#, "CAL-E002", "/branches/0/statement", r#""exists""#),
    (r#"{"statement":"set_op","left":{"statement":"exists","hash":{"param":"h"}},"op":"UNION","right":{"statement":"recall"}}"#, "CAL-E021", "/left/statement", r#""exists""#),
    (r#"{"statement":"explain","query":{"statement":"explain","query":{"statement":"recall"}}}"#, "CAL-E002", "/query/statement", r#""explain""#),
];

#[test]
fn wrong_documents_are_refused_with_code_place_and_pointer() {
    for (document, code, pointer, place) in REFUSED {
        let error = QuerySource::read(document)
            .and_then(|source| source.statement().map(|statement| statement.to_string()))
            .expect_err(document);
        assert_eq!(error.code(), *code, "{document}: {error}");
        let position = error.position().unwrap_or_else(|| panic!("{document}: no position"));
        let covered = document.get(position.start..position.end);
        assert_eq!(covered, Some(*place), "{document}: {error}");
        assert_eq!(error.pointer(), Some(*pointer), "{document}: {error}");
        assert!(!error.suggestion().is_empty(), "{document}");
    }
}

#[test]
fn near_misses_are_told_what_was_probably_meant() {
    for (document, suggestion) in [
        (r#"{"statement":"recal"}"#, "Did you mean \"recall\"?"),
        (r#"{"statement":"recall","abuot":"a"}"#, "Did you mean \"about\"?"),
        (r#"{"statement":"recall","grain_type":"goal"}"#, "Did you mean \"goals\"?"),
        (r#"{"statement":"add","grain_type":"goals"}"#, "Did you mean \"goal\"?"),
        (r#"{"statement":"recall","with":["superceded"]}"#, "Did you mean \"superseded\"?"),
        (r#"{"statement":"recall","pipeline":[{"limt":5}]}"#, "Did you mean \"limit\"?"),
        (
            r#"{"statement":"recall","where":[{"field":"subjet","op":"=","value":1}]}"#,
            "Did you mean \"subject\"?",
        ),
    ] {
        let error = QuerySource::read(document).and_then(|source| source.statement().map(|_| ()));
        assert_eq!(error.unwrap_err().suggestion(), suggestion, "{document}");
    }
}

#[test]
fn a_type_that_is_not_named_is_named_by_the_key_of_a_document() {
    let document =
        r#"{"statement":"recall","where":[{"field":"goal_state","op":"=","value":"active"}]}"#;
    let options = ExecuteOptions::at(EpochMs::new(0));
    let refused = execute(&Fake::at_work(), document, &options, &WriteQuotas::default());
    let error = refused.unwrap_err();
    assert_eq!(error.code(), "CAL-E061");
    assert_eq!(error.suggestion(), "name the type: \"grain_type\": \"goals\"");
}

#[test]
fn a_document_is_measured_as_text_and_bounded_itself() {
    let about = |length: usize| {
        format!(
            r#"{{"statement": "recall",{}"about": "{}"}}"#,
            " ".repeat(9_000),
            "x".repeat(length)
        )
    };
    let long = about(limits::MAX_QUERY_BYTES - 14);
    assert!(QuerySource::read(&long).unwrap().statement().is_ok());
    let longer = about(limits::MAX_QUERY_BYTES - 13);
    assert_eq!(QuerySource::read(&longer).unwrap().statement().unwrap_err().code(), "CAL-E001");
    let huge = about(limits::MAX_JSON_BYTES);
    assert_eq!(QuerySource::read(&huge).unwrap_err().code(), "CAL-E001");
    assert_eq!(QuerySource::read_bytes(huge.as_bytes()).unwrap_err().code(), "CAL-E001");
    assert_eq!(QuerySource::read_bytes(b"{\"statement\xff").unwrap_err().code(), "CAL-E070");
    let normal = r#"{"statement":"recall","about":"e\u0301"}"#;
    let statement = QuerySource::read(normal).unwrap().statement().unwrap().to_string();
    assert_eq!(statement, "RECALL ABOUT \"é\"");
}

#[test]
fn a_place_in_the_spelling_leads_to_the_value_it_spells() {
    let document = r#"{"statement":"recall","since":"never","recent":3}"#;
    let spelled = translate(document).unwrap();
    let error = crate::Error::new(crate::ErrorKind::WrongType, "m");
    let at = spelled.text.find("SINCE").unwrap();
    let error = error.at(crate::span::Span::new(at, at + 5));
    assert_eq!(locate(error, &spelled, document).pointer(), Some("/since"));
}

proptest! {
    #[test]
    fn what_parses_as_text_survives_json(
        start in prop_oneof![
            Just("RECALL"), Just("RECALL WHERE"), Just("ASSEMBLE FROM (RECALL)"), Just("ADD belief SET"), Just(""),
            Just("BATCH { a: RECALL"), Just("(RECALL) UNION (RECALL"), Just("COALESCE(RECALL, RECALL"),
            Just("RECALL WHERE subject IN (RECALL"), Just("LET $l = RECALL"), Just("EXPLAIN RECALL"),
            Just("DEFINE TEMPLATE t HEADER {"), Just("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {"),
        ],
        pieces in proptest::collection::vec(piece(), 0..12),
    ) {
        for end in ["", ")", " }", " } }", "| SUBJECTS)", "; RECALL"] {
            let source = format!("{start} {}{end}", pieces.join(" "));
            if parse(&source).is_ok() {
                survives(&source);
            }
        }
    }

    #[test]
    fn any_text_survives_json(text in any::<String>()) {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        let source = format!("RECALL ABOUT \"{escaped}\"");
        if parse(&source).is_ok() {
            survives(&source);
        }
        let document = json!({"statement": "recall", "about": text}).to_string();
        let source = QuerySource::read(&document).unwrap();
        if let Ok(statement) = source.statement() {
            let printed = statement.to_json();
            let again = QuerySource::read(&printed).unwrap();
            prop_assert_eq!(again.statement().ok(), Some(statement), "{}", printed);
        }
    }

    #[test]
    fn any_text_of_a_template_survives_json(text in "[{}#/!a \n\t\r\"\\\\é-]{0,30}") {
        let document = json!({"statement": "define_template", "name": "t", "sections": [
            {"header": text}, {"footer": text}]}).to_string();
        let Ok(source) = QuerySource::read(&document) else { return Ok(()) };
        let statement = source.statement().unwrap();
        survives(&statement.to_string());
    }

    #[test]
    fn any_document_is_read_or_refused(document in "[{\\[\"](\\PC|\"statement\":\"recall\"|[\\[\\]{}:,\"]){0,40}") {
        let refused = QuerySource::read(&document).and_then(|source| source.statement().map(|_| ())).err();
        prop_assert!(refused.is_none_or(|error| error.code().starts_with("CAL-E")));
    }
}

#[test]
fn the_schema_accepts_what_is_cal_and_refuses_what_is_not() {
    let schema = super::schema();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    // A type that ADD cannot create parses, and is refused later.
    for (source, _) in PRINTED.iter().filter(|(source, _)| !source.starts_with("ADD consent")) {
        let document = parse(source).unwrap().to_json();
        let value = serde_json::from_str(&document).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{document}: {wrong:?}");
    }
    for beyond in ["0", "1001"] {
        let limit = format!(r#"{{"statement":"recall","pipeline":[{{"limit":{beyond}}}]}}"#);
        assert!(!validator.is_valid(&serde_json::from_str(&limit).unwrap()), "{limit}");
    }
    let budget = |amount: u32, unit: &str| json!({"statement": "assemble", "from": [{"let": "x"}], "budget": {"amount": amount, "unit": unit}});
    let sources =
        |of: usize| json!({"statement": "assemble", "from": vec![json!({"let": "x"}); of]});
    let add = |of: &str, reason: &str| json!({"statement": "add", "grain_type": of, "set": [{"field": "object", "value": 1}], "reason": reason});
    let mmr =
        |lambda: f64| json!({"statement": "recall", "with": [{"diversity": {"mmr": lambda}}]});
    let (longest, longer) = ("é".repeat(500), "é".repeat(501));
    for (inside, beyond) in [
        (budget(200, "grains"), budget(201, "grains")),
        (budget(16_000, "tokens"), budget(16_001, "tokens")),
        (budget(1, "grains"), budget(0, "grains")),
        (sources(8), sources(9)),
        (add("fact", "r"), add("action", "r")),
        (add("goal", &longest), add("goal", &longer)),
        (add("belief", "r"), add("belief", "")),
        (mmr(1.0), mmr(1.1)),
        (mmr(0.0), mmr(-0.1)),
    ] {
        assert!(validator.is_valid(&inside), "{inside}");
        assert!(!validator.is_valid(&beyond), "{beyond}");
    }
    // The schema covers the form only, not the rules of the parser and the memory.
    const BEYOND: [&str; 5] = ["CAL-E006", "CAL-E018", "CAL-E019", "CAL-E071", "CAL-E094"];
    let mut refused = 0;
    for (document, code, _, _) in REFUSED {
        let value = serde_json::from_str(document).unwrap();
        let repeats = document.matches("\"recent\":").count() > 1;
        let in_scope = matches!(*code, "CAL-E008") || document.contains("\"scope\":\"b\"");
        if repeats
            || in_scope
            || BEYOND.contains(code)
            || document.contains("policy")
            || document.contains("\"key\"")
        {
            continue;
        }
        assert!(!validator.is_valid(&value), "{document}");
        refused += 1;
    }
    assert!(refused > 30, "{refused}");
}

#[test]
fn every_word_the_schema_lists_is_read() {
    let known = |error: &crate::Error| error.message().contains("not in this version");
    for format in ["markdown", "json", "yaml", "text", "sml", "triples", "toon"] {
        let document = json!({"statement": "recall", "as": format}).to_string();
        let read = QuerySource::read(&document).unwrap();
        let refused = read.statement().err();
        assert!(refused.as_ref().is_none_or(known), "{format}: {refused:?}");
    }
    let schema = super::schema();
    let fields =
        &schema["$defs"]["condition"]["anyOf"][0]["properties"]["field"]["anyOf"][0]["enum"];
    let fields: Vec<&str> =
        fields.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(fields.len() > 40 && fields.contains(&"subject"), "{fields:?}");
    for field in fields {
        let document =
            json!({"statement": "recall", "pipeline": [{"group_by": field}]}).to_string();
        assert!(QuerySource::read(&document).unwrap().statement().is_ok(), "{field}");
    }
}
