//! A generator of sentences of the grammar from a seed.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Expr, Rules, Terminal};

/// Generates one sentence of the grammar from a seed.
pub(super) struct Speaker<'s> {
    rules: &'s Rules,
    /// Minimum nesting depth of productions below each production.
    depths: BTreeMap<&'s str, usize>,
    state: u64,
    names: usize,
    /// Words and marks of the sentence, with their production.
    said: BTreeSet<String>,
    sentence: Vec<String>,
}

/// Nesting depth beyond which the shortest alternative is taken.
const DEEP: usize = 10;

impl<'s> Speaker<'s> {
    pub(super) fn new(rules: &'s Rules, seed: u64) -> Self {
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

    pub(super) fn sentence(mut self) -> (String, BTreeSet<String>) {
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

    /// Repeats a part the minimum number of times, sometimes once more; optional parts are mostly left out
    /// to keep sentences short.
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
            Terminal::Attribute => "observer".to_owned(),
            Terminal::Str => "\"text\"".to_owned(),
            Terminal::Num => "0.5".to_owned(),
            Terminal::Int => "1".to_owned(),
            Terminal::Hash => "sha256:01234567".to_owned(),
            Terminal::Param => "$p".to_owned(),
            Terminal::Raw => "{{grain.content}} { DROP \" }".to_owned(),
        };
        self.sentence.push(text);
    }
}

/// Returns the minimum nesting depth of an expression, if known already.
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
