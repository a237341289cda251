//! The grammar and the parser held to each other: every sentence of the grammar parses, with each of its
//! words at work, and whatever parses is a sentence of the grammar.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::parse;
use super::tests::{PRINTED, piece};
use crate::fields;
use crate::grammar::GRAMMAR;
use crate::grammar::rules::{Expr, Rules, Terminal, rules};
use crate::lex::{Kind, Lexer};
use crate::words::Word;

/// The parser's files, whose comments quote the productions.
const PARSER: [&str; 12] = [
    include_str!("assemble.rs"),
    include_str!("condition.rs"),
    include_str!("describe.rs"),
    include_str!("evolve.rs"),
    include_str!("history.rs"),
    include_str!("option.rs"),
    include_str!("recall.rs"),
    include_str!("setop.rs"),
    include_str!("several.rs"),
    include_str!("stage.rs"),
    include_str!("statement.rs"),
    include_str!("value.rs"),
];

/// The word before each `:=`.
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

/// A text as tokens: what each is, and how it is written.
fn tokens(source: &str) -> Vec<(Kind, &str)> {
    let mut lexer = Lexer::new(source);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next().unwrap();
        if token.kind == Kind::End {
            return tokens;
        }
        tokens.push((token.kind, source.get(token.span.start()..token.span.end()).unwrap()));
    }
}

/// Derives a text from the grammar, trying every way.
struct Derivation<'d> {
    rules: &'d Rules,
    tokens: Vec<(Kind, &'d str)>,
    /// Where each production can end that starts at a place.
    known: RefCell<BTreeMap<(String, usize), BTreeSet<usize>>>,
}

impl<'d> Derivation<'d> {
    fn is_sentence(rules: &'d Rules, source: &'d str) -> bool {
        let all = Self { rules, tokens: tokens(source), known: RefCell::default() };
        all.ends(&Expr::Rule("query".to_owned()), 0).contains(&all.tokens.len())
    }

    /// Where an expression can end that starts here.
    fn ends(&self, expr: &Expr, at: usize) -> BTreeSet<usize> {
        match expr {
            Expr::Word(word) => self.token(at, |kind, text| {
                matches!(kind, Kind::Word(_)) && text.eq_ignore_ascii_case(word)
            }),
            Expr::Mark(mark) => self.token(at, |_, text| text == mark),
            Expr::Token(terminal) => self.token(at, |kind, text| is(*terminal, kind, text)),
            Expr::Rule(name) => self.rule(name, at),
            Expr::Sequence(parts) => {
                parts.iter().fold(BTreeSet::from([at]), |from, part| self.ends_from(part, &from))
            }
            Expr::Choice(parts) => parts.iter().flat_map(|part| self.ends(part, at)).collect(),
            Expr::Optional(part) => self.ends(part, at).into_iter().chain([at]).collect(),
            Expr::Many(part, least) => self.many(at, *least, |at| self.ends(part, at)),
            Expr::List(part) => {
                let comma = |at| self.token(at, |_, text| text == ",");
                let more = |at| self.ends_from(part, &comma(at));
                let first = self.ends(part, at);
                first.iter().flat_map(|at| self.many(*at, 0, more)).collect()
            }
        }
    }

    fn ends_from(&self, expr: &Expr, from: &BTreeSet<usize>) -> BTreeSet<usize> {
        from.iter().flat_map(|at| self.ends(expr, *at)).collect()
    }

    fn many(
        &self,
        at: usize,
        least: usize,
        once: impl Fn(usize) -> BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let mut last = BTreeSet::from([at]);
        for _ in 0..least {
            last = last.iter().flat_map(|at| once(*at)).collect();
        }
        let mut all = last.clone();
        while !last.is_empty() {
            let next: BTreeSet<usize> = last.iter().flat_map(|at| once(*at)).collect();
            last = next.difference(&all).copied().collect();
            all.extend(&last);
        }
        all
    }

    fn rule(&self, name: &str, at: usize) -> BTreeSet<usize> {
        let key = (name.to_owned(), at);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let ends = self.ends(self.rules.get(name).unwrap(), at);
        self.known.borrow_mut().insert(key, ends.clone());
        ends
    }

    fn token(&self, at: usize, wanted: impl Fn(Kind, &str) -> bool) -> BTreeSet<usize> {
        let found = self.tokens.get(at).is_some_and(|(kind, text)| wanted(*kind, text));
        found.then_some(at + 1).into_iter().collect()
    }
}

/// Whether a token is what a terminal stands for; a parameter stands for any literal.
fn is(terminal: Terminal, kind: Kind, text: &str) -> bool {
    let name = matches!(kind, Kind::Word(word) if word != Word::Forbidden);
    match (terminal, kind) {
        (Terminal::Id, _) => name,
        (Terminal::AnyWord, _) => matches!(kind, Kind::Word(_)),
        (Terminal::Extension, _) => {
            name && text.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("x_"))
        }
        (Terminal::Field, _) => name && fields::by_name(text).is_some(),
        (Terminal::Str, Kind::Str { .. })
        | (Terminal::Num, Kind::Number)
        | (Terminal::Hash, Kind::Hash) => true,
        (Terminal::Int, Kind::Number) => text.bytes().all(|byte| byte.is_ascii_digit()),
        (_, Kind::Param) => true,
        _ => false,
    }
}

/// Says sentences of the grammar, choosing by a seed.
struct Speaker<'s> {
    rules: &'s Rules,
    /// The fewest productions that lie within each other below a production.
    depths: BTreeMap<&'s str, usize>,
    state: u64,
    names: usize,
    /// The words and marks of the sentence, by the production that has them.
    said: BTreeSet<String>,
    sentence: Vec<String>,
}

/// Productions within each other, beyond which the shortest way out is taken.
const DEEP: usize = 7;

impl<'s> Speaker<'s> {
    fn new(rules: &'s Rules, seed: u64) -> Self {
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..rules.len() {
            for (name, expr) in rules {
                if let Some(depth) = depth(expr, &depths) {
                    depths.insert(name, depth + 1);
                }
            }
        }
        let (said, sentence) = (BTreeSet::new(), Vec::new());
        Self { rules, depths, state: seed, names: 0, said, sentence }
    }

    fn sentence(mut self) -> (String, BTreeSet<String>) {
        self.say(&Expr::Rule("query".to_owned()), "query", 0);
        (self.sentence.join(" "), self.said)
    }

    fn below(&mut self, most: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % most
    }

    fn say(&mut self, expr: &Expr, within: &str, deep: usize) {
        match expr {
            Expr::Word(text) | Expr::Mark(text) => {
                self.said.insert(format!("{within}: {text}"));
                self.sentence.push(text.clone());
            }
            Expr::Token(terminal) => self.token(*terminal),
            Expr::Rule(name) => {
                let rules = self.rules;
                self.say(rules.get(name).unwrap(), name, deep + 1);
            }
            Expr::Sequence(parts) => parts.iter().for_each(|part| self.say(part, within, deep)),
            Expr::Choice(parts) if deep < DEEP => {
                let chosen = self.below(parts.len());
                self.say(&parts[chosen], within, deep);
            }
            Expr::Choice(parts) => {
                let shortest = parts.iter().min_by_key(|part| depth(part, &self.depths));
                self.say(shortest.unwrap(), within, deep);
            }
            Expr::Optional(part) => self.times(part, 0, within, deep, ""),
            Expr::Many(part, least) => self.times(part, *least, within, deep, ""),
            Expr::List(part) => self.times(part, 1, within, deep, ","),
        }
    }

    /// At least so often, once more or not; a part that is left out most of the time keeps sentences short.
    fn times(&mut self, part: &Expr, least: usize, within: &str, deep: usize, between: &str) {
        let more = usize::from(deep < DEEP && self.below(4) == 0);
        for at in 0..least + more {
            if at > 0 && !between.is_empty() {
                self.sentence.push(between.to_owned());
            }
            self.say(part, within, deep);
        }
    }

    fn token(&mut self, terminal: Terminal) {
        self.names += 1;
        let text = match terminal {
            Terminal::Id => format!("n{}", self.names),
            Terminal::AnyWord => "key".to_owned(),
            Terminal::Extension => format!("x_n{}", self.names),
            Terminal::Field => "subject".to_owned(),
            Terminal::Str => "\"text\"".to_owned(),
            Terminal::Num => "0.5".to_owned(),
            Terminal::Int => "1".to_owned(),
            Terminal::Hash => "sha256:01234567".to_owned(),
            Terminal::Param => "$p".to_owned(),
        };
        self.sentence.push(text);
    }
}

/// The fewest productions that lie within each other in an expression, where that is known already.
fn depth(expr: &Expr, depths: &BTreeMap<&str, usize>) -> Option<usize> {
    match expr {
        Expr::Word(_) | Expr::Mark(_) | Expr::Token(_) | Expr::Optional(_) | Expr::Many(_, 0) => {
            Some(0)
        }
        Expr::Rule(name) => depths.get(name.as_str()).copied(),
        Expr::Sequence(parts) => parts
            .iter()
            .map(|part| depth(part, depths))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max(),
        Expr::Choice(parts) => parts.iter().filter_map(|part| depth(part, depths)).min(),
        Expr::Many(part, _) | Expr::List(part) => depth(part, depths),
    }
}

/// The words and marks of an expression.
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

/// The grammar, read once.
static RULES: LazyLock<Rules> = LazyLock::new(rules);

/// Codes of limits: sentences may be longer and deeper than a query.
const LIMITS: [&str; 3] = ["CAL-E001", "CAL-E007", "CAL-E013"];

#[test]
fn every_sentence_of_the_grammar_parses_and_every_word_of_it_is_said() {
    let rules = &*RULES;
    let mut said = BTreeSet::new();
    for seed in 0..3_000 {
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
            Just("RECALL WITH"), Just("DESCRIBE"), Just("RECALL AS"), Just("ASSEMBLE FROM (RECALL) FORMAT"), Just(""),
        ],
        pieces in proptest::collection::vec(piece(), 0..8),
    ) {
        if let Ok(statement) = parse(&format!("{start} {}", pieces.join(" "))) {
            let printed = statement.to_string();
            prop_assert!(Derivation::is_sentence(&RULES, &printed), "{}", printed);
        }
    }
}
