//! An exhaustive recogniser: derives a text from the grammar.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Expr, Rules, Terminal};
use crate::fields;
use crate::lex::{Lexer, TokenKind};
use crate::words::WordClass;

/// Returns a text as tokens, each with its spelling.
fn tokens(source: &str) -> Vec<(TokenKind, &str)> {
    let mut lexer = Lexer::new(source);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next().unwrap();
        if token.kind == TokenKind::End {
            return tokens;
        }
        tokens.push((token.kind, source.get(token.span.start()..token.span.end()).unwrap()));
    }
}

/// A recogniser of one text, with memoised results.
pub(super) struct Derivation<'d> {
    rules: &'d Rules,
    tokens: Vec<(TokenKind, &'d str)>,
    /// End positions of each production by start position.
    known: RefCell<BTreeMap<(String, usize), BTreeSet<usize>>>,
}

impl<'d> Derivation<'d> {
    pub(super) fn is_sentence(rules: &'d Rules, source: &'d str) -> bool {
        let all = Self { rules, tokens: tokens(source), known: RefCell::default() };
        all.ends(&Expr::Rule("query".to_owned()), 0).contains(&all.tokens.len())
    }

    /// Returns the positions where the expression can end if it starts at `at`.
    fn ends(&self, expr: &Expr, at: usize) -> BTreeSet<usize> {
        match expr {
            Expr::Word(word) => self.token(at, |kind, text| {
                matches!(kind, TokenKind::Word(_)) && text.eq_ignore_ascii_case(word)
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

    fn token(&self, at: usize, wanted: impl Fn(TokenKind, &str) -> bool) -> BTreeSet<usize> {
        let found = self.tokens.get(at).is_some_and(|(kind, text)| wanted(*kind, text));
        found.then_some(at + 1).into_iter().collect()
    }
}

/// Returns `true` if a token matches a terminal; a parameter matches any literal.
fn is(terminal: Terminal, kind: TokenKind, text: &str) -> bool {
    let name = matches!(kind, TokenKind::Word(word) if word != WordClass::Forbidden);
    match (terminal, kind) {
        (Terminal::Id, _) => name,
        (Terminal::AnyWord, _) => matches!(kind, TokenKind::Word(_)),
        (Terminal::Extension, _) => {
            name && text.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("x_"))
        }
        (Terminal::Field, _) => name && fields::by_name(text).is_some(),
        (Terminal::Attribute, _) => {
            name && grainstore_sml::attribute_names().any(|attribute| attribute == text)
        }
        (Terminal::Str, TokenKind::Str { .. })
        | (Terminal::Num, TokenKind::Number)
        | (Terminal::Hash, TokenKind::Hash)
        | (Terminal::Raw, TokenKind::RawText) => true,
        (Terminal::Int, TokenKind::Number) => text.bytes().all(|byte| byte.is_ascii_digit()),
        (_, TokenKind::Param) => true,
        _ => false,
    }
}
