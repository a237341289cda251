//! A statement derived from the grammar that DESCRIBE tells, and what of the grammar the derivation uses.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::cal_corpus::rules::{Expr, Rules, Terminal};

/// The words before the text of a template, which is one token between its braces.
const SECTIONS: [&str; 6] =
    ["HEADER", "ELEMENT", "ELEMENT_SUMMARY", "ELEMENT_OMIT", "SOURCE_BREAK", "FOOTER"];

/// What a derivation went through, put together on the way.
enum Trace {
    Nothing,
    Name(String),
    Both(Rc<Self>, Rc<Self>),
}

/// Where an expression can end, and one way to each place.
type Ends = BTreeMap<usize, Rc<Trace>>;

/// A text and the grammar it is derived from.
pub(crate) struct Derivation<'d> {
    rules: &'d Rules,
    fields: &'d BTreeSet<String>,
    tokens: Vec<&'d str>,
    known: RefCell<BTreeMap<(String, usize), Ends>>,
}

impl<'d> Derivation<'d> {
    /// The productions a statement is made of, and the words in them as `production: word`; nothing where it
    /// is none of the grammar.
    pub(crate) fn uses(
        rules: &'d Rules,
        fields: &'d BTreeSet<String>,
        statement: &'d str,
    ) -> Option<BTreeSet<String>> {
        let all = Self { rules, fields, tokens: tokens(statement), known: RefCell::default() };
        let ends = all.rule("query", 0);
        let mut used = BTreeSet::new();
        collect(ends.get(&all.tokens.len())?, &mut used);
        Some(used)
    }

    fn ends(&self, expr: &Expr, within: &str, at: usize) -> Ends {
        match expr {
            Expr::Word(word) => {
                let found = self.token(at, |text| text.eq_ignore_ascii_case(word));
                named(found, &format!("{within}: {word}"))
            }
            Expr::Mark(mark) => {
                named(self.token(at, |text| text == mark), &format!("{within}: {mark}"))
            }
            Expr::Token(Terminal::Raw) => self.token(at, |_| is_raw(&self.tokens[..at])),
            Expr::Token(terminal) => self.token(at, |text| self.is(*terminal, text)),
            Expr::Rule(name) => self.rule(name, at),
            Expr::Sequence(parts) => {
                let start = Ends::from([(at, Rc::new(Trace::Nothing))]);
                parts.iter().fold(start, |from, part| self.after(part, within, &from))
            }
            Expr::Choice(parts) => joined(parts.iter().map(|part| self.ends(part, within, at))),
            Expr::Optional(part) => {
                let nothing = Ends::from([(at, Rc::new(Trace::Nothing))]);
                joined([self.ends(part, within, at), nothing])
            }
            Expr::Many(part, least) => {
                let mut start = Ends::from([(at, Rc::new(Trace::Nothing))]);
                for _ in 0..*least {
                    start = self.after(part, within, &start);
                }
                repeated(start, |from| self.after(part, within, from))
            }
            Expr::List(part) => repeated(self.ends(part, within, at), |from| {
                let comma = Expr::Mark(",".to_owned());
                self.after(part, within, &self.after(&comma, within, from))
            }),
        }
    }

    /// Goes on from each of these places.
    fn after(&self, expr: &Expr, within: &str, from: &Ends) -> Ends {
        joined(from.iter().map(|(at, before)| {
            let ends = self.ends(expr, within, *at).into_iter();
            let both = |trace| Rc::new(Trace::Both(Rc::clone(before), trace));
            ends.map(|(end, trace)| (end, both(trace))).collect()
        }))
    }

    fn rule(&self, name: &str, at: usize) -> Ends {
        let key = (name.to_owned(), at);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let ends = named(self.ends(&self.rules[name], name, at), name);
        self.known.borrow_mut().insert(key, ends.clone());
        ends
    }

    fn token(&self, at: usize, wanted: impl Fn(&str) -> bool) -> Ends {
        let found = self.tokens.get(at).is_some_and(|text| wanted(text));
        found.then(|| (at + 1, Rc::new(Trace::Nothing))).into_iter().collect()
    }

    /// Whether a token is what a terminal stands for; a parameter stands for any literal.
    fn is(&self, terminal: Terminal, text: &str) -> bool {
        let Some(first) = text.chars().next() else { return false };
        let word = (first.is_ascii_alphabetic() || first == '_') && !text.starts_with("sha256:");
        let number = first.is_ascii_digit() || (first == '-' && text.len() > 1);
        match terminal {
            Terminal::Id | Terminal::AnyWord | Terminal::Attribute => word,
            Terminal::Extension => text.starts_with("x_"),
            Terminal::Field => self.fields.contains(text),
            Terminal::Str => first == '"' || first == '$',
            Terminal::Num => number || first == '$',
            Terminal::Int => (number && text.bytes().all(|b| b.is_ascii_digit())) || first == '$',
            Terminal::Hash => text.starts_with("sha256:") || first == '$',
            Terminal::Param => first == '$',
            // Told by where it stands.
            Terminal::Raw => false,
        }
    }
}

/// The words and marks of a grammar as `production: word`.
pub(crate) fn literals(rules: &Rules) -> BTreeSet<String> {
    fn walk(name: &str, expr: &Expr, found: &mut BTreeSet<String>) {
        match expr {
            Expr::Word(text) | Expr::Mark(text) => drop(found.insert(format!("{name}: {text}"))),
            Expr::Token(_) | Expr::Rule(_) => {}
            Expr::Sequence(parts) | Expr::Choice(parts) => {
                parts.iter().for_each(|part| walk(name, part, found));
            }
            Expr::Optional(part) | Expr::Many(part, _) | Expr::List(part) => {
                walk(name, part, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    rules.iter().for_each(|(name, expr)| walk(name, expr, &mut found));
    found
}

fn named(ends: Ends, name: &str) -> Ends {
    let name = Rc::new(Trace::Name(name.to_owned()));
    let both = |trace| Rc::new(Trace::Both(Rc::clone(&name), trace));
    ends.into_iter().map(|(end, trace)| (end, both(trace))).collect()
}

/// The first way to each place.
fn joined(all: impl IntoIterator<Item = Ends>) -> Ends {
    let mut joined = Ends::new();
    for (end, trace) in all.into_iter().flatten() {
        joined.entry(end).or_insert(trace);
    }
    joined
}

/// These places, and those that going on from them leads to, any number of times.
fn repeated(start: Ends, once: impl Fn(&Ends) -> Ends) -> Ends {
    let (mut all, mut last) = (start.clone(), start);
    while !last.is_empty() {
        last = once(&last);
        last.retain(|end, _| !all.contains_key(end));
        all.extend(last.clone());
    }
    all
}

fn collect(trace: &Trace, used: &mut BTreeSet<String>) {
    match trace {
        Trace::Nothing => {}
        Trace::Name(name) => drop(used.insert(name.clone())),
        Trace::Both(one, other) => {
            collect(one, used);
            collect(other, used);
        }
    }
}

/// The tokens of a statement that reads, without comments.
fn tokens(statement: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = statement.trim_start();
    while let Some(first) = rest.chars().next() {
        if is_raw(&tokens) {
            let (raw, tail) = rest.split_at(grainstore_sml::body_end(rest.as_bytes()).unwrap());
            tokens.push(raw);
            rest = tail;
            continue;
        }
        let word = |text: &str| {
            text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())
        };
        let length = match first {
            '-' if rest.starts_with("--") => {
                rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
                continue;
            }
            '"' => string(rest),
            _ if rest.starts_with("sha256:") => 7 + word(&rest[7..]),
            '$' => 1 + word(&rest[1..]),
            '-' | '0'..='9' => {
                let digits = |c: char| !(c.is_ascii_digit() || c == '.');
                1 + rest[1..].find(digits).unwrap_or(rest.len() - 1)
            }
            '!' | '>' | '<' if rest[1..].starts_with('=') => 2,
            _ if first.is_ascii_alphabetic() || first == '_' => word(rest),
            _ => first.len_utf8(),
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail.trim_start();
    }
    tokens
}

/// Whether the text of a template stands next.
fn is_raw(before: &[&str]) -> bool {
    matches!(before, [.., word, "{"] if SECTIONS.iter().any(|known| known.eq_ignore_ascii_case(word)))
}

/// The length of the string that a text starts with, quotes and all.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match (escaped, c) {
            (false, '"') => return at + 1,
            (_, c) => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}
