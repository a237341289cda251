//! A reader of the grammar notation: productions by name, each an expression over tokens. The engine's
//! tests use it too (`engine/tests/cal/cal_corpus`).

use std::collections::BTreeMap;

/// An expression of a production.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    /// A word that matches itself.
    Word(String),
    /// Punctuation.
    Mark(String),
    Token(Terminal),
    /// A reference to a production.
    Rule(String),
    Sequence(Vec<Expr>),
    Choice(Vec<Expr>),
    Optional(Box<Expr>),
    /// A repetition with a minimum count.
    Many(Box<Expr>, usize),
    /// One or more, separated by commas.
    List(Box<Expr>),
}

/// Tokens whose text varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminal {
    Id,
    /// Any word, also those that cannot be names.
    AnyWord,
    /// An ID that starts with `x_`.
    Extension,
    Field,
    /// An SML attribute of a grain.
    Attribute,
    Str,
    Num,
    Int,
    Hash,
    Param,
    /// The text of a template section.
    Raw,
}

/// The productions of the grammar by name.
pub(super) type Rules = BTreeMap<String, Expr>;

/// Parses a grammar.
pub(super) fn rules(grammar: &str) -> Rules {
    let mut bodies: Vec<(String, String)> = Vec::new();
    for line in grammar.lines().filter(|line| !line.starts_with("--")) {
        let line = line.split(" -- ").next().unwrap_or("");
        match line.split_once(":=") {
            Some((name, body)) => bodies.push((name.trim().to_owned(), body.to_owned())),
            None => bodies.last_mut().expect("a production first").1.push_str(line),
        }
    }
    let names: Vec<&str> = bodies.iter().map(|(name, _)| name.as_str()).collect();
    let read = |(name, body): &(String, String)| {
        let mut reader = Reader { names: &names, pieces: pieces(body), at: 0 };
        let expr = reader.choice();
        assert_eq!(reader.at, reader.pieces.len(), "{name}: {:?}", reader.pieces.get(reader.at));
        (name.clone(), expr)
    };
    let rules: Rules = bodies.iter().map(read).collect();
    assert_eq!(rules.len(), names.len(), "a production stands once");
    rules
}

/// Splits into words, quoted marks and operators.
fn pieces(body: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = body.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest.get(1..).and_then(|tail| tail.find('"')).expect("a closing quote") + 2,
            ',' if rest.starts_with(",+") => 2,
            _ if first.is_ascii_alphabetic() => rest
                .find(|other: char| !other.is_ascii_alphanumeric() && other != '_')
                .unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (piece, tail) = rest.split_at(length);
        pieces.push(piece.to_owned());
        rest = tail.trim_start();
    }
    pieces
}

struct Reader<'r> {
    names: &'r [&'r str],
    pieces: Vec<String>,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> &str {
        self.pieces.get(self.at).map_or("", String::as_str)
    }

    fn eat(&mut self, piece: &str) -> bool {
        let found = self.peek() == piece;
        self.at += usize::from(found);
        found
    }

    fn choice(&mut self) -> Expr {
        let mut all = vec![self.sequence()];
        while self.eat("|") {
            all.push(self.sequence());
        }
        one_or(all, Expr::Choice)
    }

    fn sequence(&mut self) -> Expr {
        let mut all = Vec::new();
        while !matches!(self.peek(), "" | "|" | ")") {
            all.push(self.repeated());
        }
        one_or(all, Expr::Sequence)
    }

    fn repeated(&mut self) -> Expr {
        let expr = self.single();
        match self.peek() {
            "?" => self.after(Expr::Optional(Box::new(expr))),
            "*" => self.after(Expr::Many(Box::new(expr), 0)),
            "+" => self.after(Expr::Many(Box::new(expr), 1)),
            ",+" => self.after(Expr::List(Box::new(expr))),
            _ => expr,
        }
    }

    fn after(&mut self, expr: Expr) -> Expr {
        self.at += 1;
        expr
    }

    fn single(&mut self) -> Expr {
        let piece = self.peek().to_owned();
        self.at += 1;
        if piece == "(" {
            let inside = self.choice();
            assert!(self.eat(")"), "a closing parenthesis");
            return inside;
        }
        if let Some(quoted) = piece.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            return self.quoted(quoted);
        }
        match piece.as_str() {
            "ID" => Expr::Token(Terminal::Id),
            "x_ID" => Expr::Token(Terminal::Extension),
            "WORD" => Expr::Token(Terminal::AnyWord),
            "field" => Expr::Token(Terminal::Field),
            "attribute" => Expr::Token(Terminal::Attribute),
            "STR" => Expr::Token(Terminal::Str),
            "NUM" => Expr::Token(Terminal::Num),
            "INT" => Expr::Token(Terminal::Int),
            "HASH" => Expr::Token(Terminal::Hash),
            "RAW" => Expr::Token(Terminal::Raw),
            name if self.names.contains(&name) => Expr::Rule(name.to_owned()),
            _ => Expr::Word(piece),
        }
    }

    /// Reads a quoted mark; a dollar and an ID are one token.
    fn quoted(&mut self, text: &str) -> Expr {
        if text == "$" {
            assert!(self.eat("ID"), "$ stands before an ID");
            return Expr::Token(Terminal::Param);
        }
        match text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            true => Expr::Word(text.to_owned()),
            false => Expr::Mark(text.to_owned()),
        }
    }
}

fn one_or(mut all: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match all.len() {
        1 => all.remove(0),
        _ => many(all),
    }
}
