//! Equivalence of grammar and parser: every sentence of the grammar parses, with each of its words used,
//! and every statement that parses is a sentence of the grammar.

mod derive;
mod rules;
mod speak;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::tests::{PRINTED, piece};
use crate::correction::parse;
use crate::grammar::GRAMMAR;
use derive::Derivation;
use rules::{Expr, Rules, rules};
use speak::Speaker;

/// The files of the parser, whose comments quote the productions.
const PARSER: [&str; 16] = [
    include_str!("../assemble.rs"),
    include_str!("../condition.rs"),
    include_str!("../describe.rs"),
    include_str!("../clause.rs"),
    include_str!("../evolve.rs"),
    include_str!("../history.rs"),
    include_str!("../option.rs"),
    include_str!("../project.rs"),
    include_str!("../recall.rs"),
    include_str!("../setop.rs"),
    include_str!("../compound.rs"),
    include_str!("../stage.rs"),
    include_str!("../statement.rs"),
    include_str!("../stream.rs"),
    include_str!("../template.rs"),
    include_str!("../value.rs"),
];

/// Returns the word before each production sign.
fn productions(text: &str) -> BTreeSet<&str> {
    let heads: Vec<&str> = text.split(":=").map(str::trim_end).collect();
    let heads = heads.iter().take(heads.len() - 1);
    heads.filter_map(|head| head.rsplit([' ', '`', '\n']).next()).collect()
}

#[test]
fn the_grammar_names_the_productions_the_parser_reads() {
    let parsed: BTreeSet<&str> = PARSER.iter().flat_map(|file| productions(file)).collect();
    assert_eq!(productions(GRAMMAR), parsed);
    assert!(parsed.len() > 30, "{parsed:?}");
}

/// Collects the words and marks of an expression.
fn literals<'e>(expr: &'e Expr, found: &mut Vec<&'e str>) {
    match expr {
        Expr::Word(text) | Expr::Mark(text) => found.push(text),
        Expr::Token(_) | Expr::Rule(_) => {}
        Expr::Sequence(parts) | Expr::Choice(parts) => {
            parts.iter().for_each(|part| literals(part, found));
        }
        Expr::Optional(part) | Expr::Many(part, _) | Expr::List(part) => literals(part, found),
    }
}

/// The grammar, parsed once.
static RULES: LazyLock<Rules> = LazyLock::new(|| rules(GRAMMAR));

/// Error codes of limits: sentences may be longer and deeper than a query.
const LIMITS: [&str; 3] = ["CAL-E001", "CAL-E007", "CAL-E013"];

#[test]
fn every_sentence_of_the_grammar_parses_and_every_word_of_it_is_said() {
    let rules = &*RULES;
    let mut said = BTreeSet::new();
    for seed in 0..4_000 {
        let (sentence, words) = Speaker::new(rules, seed).sentence();
        match parse(&sentence) {
            Ok(_) => said.extend(words),
            Err(error) => assert!(LIMITS.contains(&error.code()), "{sentence}\n{error}"),
        }
    }
    let all: BTreeSet<String> = rules
        .iter()
        .flat_map(|(name, expr)| {
            let mut found = Vec::new();
            literals(expr, &mut found);
            found.into_iter().map(move |text| format!("{name}: {text}"))
        })
        .collect();
    let never: Vec<_> = all.difference(&said).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn every_terminal_of_the_grammar_is_told_what_it_is() {
    for name in
        ["ID", "WORD", "x_ID", "STR", "NUM", "INT", "HASH", "\"$\"ID", "RAW", "field", "attribute"]
    {
        let told = GRAMMAR.lines().filter_map(|line| line.strip_prefix("-- "));
        let told: Vec<_> = told.filter(|line| line.split("  ").next() == Some(name)).collect();
        assert_eq!(told.len(), 1, "{name}");
    }
}

#[test]
fn what_the_parser_takes_in_the_order_of_the_grammar_is_a_sentence_of_it() {
    let rules = &*RULES;
    for (_, printed) in PRINTED {
        assert!(Derivation::is_sentence(rules, printed), "{printed}");
    }
    for source in [
        "describe Consent",
        "RECALL WHERE tags INCLUDE [\"x\",]",
        "RECALL LIMIT 3 COUNT",
        "CAL/1 recall facts",
        "define template t { header {} footer { {{! } }} } }",
        "DEFINE TEMPLATE header EXTENDS compact ELEMENT {x} ELEMENT {y}",
    ] {
        assert!(parse(source).is_ok() && Derivation::is_sentence(rules, source), "{source}");
    }
}

#[test]
fn what_is_no_sentence_is_not_derived() {
    let rules = &*RULES;
    for source in [
        "RECALL fact",
        "EXPLAIN EXPLAIN RECALL",
        "RECALL WITH colour",
        "ADD belief REASON \"r\"",
        "RECALL AS sml AS sml",
        "EXPLAIN DEFINE TEMPLATE t ELEMENT {x}",
        "DEFINE TEMPLATE t",
        "DEFINE TEMPLATE t {}",
    ] {
        assert!(!Derivation::is_sentence(rules, source), "{source}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_parses_is_a_sentence_of_the_grammar(
        start in prop_oneof![
            Just("RECALL"), Just("RECALL WHERE"), Just("ASSEMBLE FROM (RECALL)"), Just("ADD belief SET"),
            Just("DEFINE TEMPLATE"), Just("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE"), Just("RECALL WITH"), Just("DESCRIBE"), Just("RECALL AS"), Just("ASSEMBLE FROM (RECALL) FORMAT"), Just(""),
        ],
        pieces in proptest::collection::vec(piece(), 0..8),
    ) {
        if let Ok(statement) = parse(&format!("{start} {}", pieces.join(" "))) {
            let printed = statement.to_string();
            prop_assert!(Derivation::is_sentence(&RULES, &printed), "{}", printed);
        }
    }
}
