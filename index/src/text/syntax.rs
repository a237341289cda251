//! The parser of query texts. Knows nothing of grains.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::error::{Error, Result};

use super::analysis::{Analyser, Token, TokenKind};
use super::clause::{Clause, Occur, Phrase, TermMatch};
use super::language::Language;
use super::lexer::{ItemForm, SuffixOperator, next_item, split_suffix};
use super::stop_words::is_stop_word;
use super::suffixes::completed_terms;

/// The most words of a [`FullTextQuery`](super::FullTextQuery).
pub const MAX_WORDS: usize = 1024;

/// The most distinct terms of a [`FullTextQuery`](super::FullTextQuery): of those that add to the score the
/// first ones count, and of those under `+` and `-` more are an error.
pub const MAX_TERMS: usize = 64;

/// The most tokens kept of one identifier. A word has at most eleven, so a phrase with too many words is
/// still recognised.
const MAX_TOKENS: usize = 12 * (MAX_TERMS + 1);

/// Parses the syntax of [`FullTextQuery::parse`](super::FullTextQuery::parse).
pub(super) fn parse(text: &str, language: Language) -> Result<Vec<Clause>> {
    let mut builder = ClauseBuilder::new(language);
    let mut rest = text;
    while let Some((item, after)) = next_item(rest) {
        rest = after;
        match item.form {
            ItemForm::Quoted(words) => builder.phrase(item.occur, words)?,
            ItemForm::Bare(word) => builder.bare(item.occur, word)?,
        }
    }
    Ok(builder.into_clauses())
}

/// Parses a text of plain words.
pub(super) fn words(text: &str, language: Language) -> Result<Vec<Clause>> {
    let mut builder = ClauseBuilder::new(language);
    let words = builder.words_of(text)?;
    words.iter().try_for_each(|word| builder.word(Occur::Should, word))?;
    Ok(builder.into_clauses())
}

/// The tokens of one identifier, word, run or emoji.
#[derive(Default)]
struct QueryWord {
    tokens: Vec<OwnedToken>,
}

struct OwnedToken {
    term: Box<str>,
    unstemmed: Box<str>,
    kind: TokenKind,
    position: u32,
}

impl QueryWord {
    /// The token that names it as a whole: a whole identifier, or a single word. `None` for a run.
    fn name(&self) -> Option<&OwnedToken> {
        let named = self.tokens.iter().find(|token| token.kind == TokenKind::Whole);
        let mut words = self.positioned_tokens();
        named.or_else(|| words.next().filter(|_| words.next().is_none()))
    }

    /// The tokens that have positions of their own.
    fn positioned_tokens(&self) -> impl Iterator<Item = &OwnedToken> {
        self.tokens.iter().filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Lone))
    }

    /// The clause for a required or excluded item: its words side by side, or an identifier.
    fn as_condition(&self) -> Option<TermMatch> {
        match self.name() {
            Some(OwnedToken { kind: TokenKind::Whole, term, .. }) if !self.has_parts() => {
                Some(TermMatch::Word(vec![term.clone()]))
            }
            _ => self.as_identifier().or_else(|| phrase_of(self.positioned_tokens())),
        }
    }

    /// Returns `true` for an identifier of several words, or with parts that its capitals and digits show.
    fn has_parts(&self) -> bool {
        let has = |kind| self.tokens.iter().any(|token| token.kind == kind);
        has(TokenKind::Inner) || has(TokenKind::Whole) && self.positioned_tokens().count() > 1
    }

    /// The clause for an identifier: the whole of it, or its words side by side, or the parts of these side by
    /// side, or its words as the parts of one word. `None` for what has no parts.
    fn as_identifier(&self) -> Option<TermMatch> {
        let name = self.tokens.first().filter(|_| self.has_parts())?;
        let words: Vec<&OwnedToken> = self.positioned_tokens().collect();
        // In place of a word the parts that its capitals and digits show.
        let parts_of = |word: &OwnedToken| {
            let at = word.position;
            self.tokens.iter().filter(move |t| t.kind == TokenKind::Inner && t.position == at)
        };
        let mut parts: Vec<&OwnedToken> = Vec::new();
        for word in &words {
            let before = parts.len();
            parts.extend(parts_of(word));
            if parts.len() == before {
                parts.push(word);
            }
        }
        let mut phrases: Vec<Phrase> = Vec::new();
        for (tokens, step) in [(&words, 1), (&parts, 1), (&words, 0)] {
            let terms = tokens.iter().map(|token| token.term.clone());
            let phrase: Phrase = terms.zip((0..).map(|at| at * step)).collect();
            // One term twice in one place would be one term.
            let differ = step > 0 || distinct_terms(&phrase) == phrase.len();
            if differ && (2..=MAX_TERMS).contains(&phrase.len()) && !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        Some(TermMatch::Identifier(name.term.clone(), phrases))
    }

    fn is_stop_word(&self, language: Language) -> bool {
        matches!(&*self.tokens, [only] if is_stop_word(language, &only.unstemmed))
    }

    /// The parts of an identifier, each by itself: they find nothing, but a grain that is found and has some ranks
    /// higher. Single digits and letters say too little.
    fn parts(&self) -> Vec<Box<str>> {
        if !self.has_parts() {
            return Vec::new();
        }
        let says_much = |token: &&OwnedToken| match token.kind {
            TokenKind::Word => true,
            TokenKind::Inner => token.unstemmed.chars().filter(|c| c.is_alphabetic()).count() > 1,
            _ => false,
        };
        let parts = self.tokens.iter().skip(1).filter(says_much);
        parts.map(|token| token.term.clone()).collect()
    }

    /// The clause for an item that adds to the score: an identifier, or all its terms. The last character of a
    /// run alone is left out.
    fn as_optional(&self) -> TermMatch {
        if let Some(identifier) = self.as_identifier() {
            return identifier;
        }
        if let [OwnedToken { kind: TokenKind::Lone, term, .. }] = &*self.tokens {
            return TermMatch::Prefix(term.clone());
        }
        let mut seen = HashSet::new();
        let tokens = self.tokens.iter().filter(|token| token.kind != TokenKind::Last);
        TermMatch::Word(
            tokens.map(|t| t.term.clone()).filter(|term| seen.insert(term.clone())).collect(),
        )
    }
}

/// Tokens side by side: one token is a word; a lone character is a prefix.
fn phrase_of<'a>(tokens: impl Iterator<Item = &'a OwnedToken>) -> Option<TermMatch> {
    let tokens: Vec<&OwnedToken> = tokens.collect();
    let first = tokens.first()?;
    Some(match &*tokens {
        [OwnedToken { kind: TokenKind::Lone, term, .. }] => TermMatch::Prefix(term.clone()),
        [one] => TermMatch::Word(vec![one.term.clone()]),
        _ => {
            let distance = |token: &OwnedToken| token.position.saturating_sub(first.position);
            TermMatch::Phrase(tokens.iter().map(|t| (t.term.clone(), distance(t))).collect())
        }
    })
}

/// Collects the clauses of a query.
struct ClauseBuilder {
    language: Language,
    analyser: Analyser,
    clauses: Vec<Clause>,
    /// Stop words, used if no other clause remains.
    stop_word_clauses: Vec<Clause>,
    words: usize,
    /// The parts of identifiers that add to the score.
    boosts: Vec<Box<str>>,
    /// The terms of words that add to the score.
    words_seen: HashSet<Box<str>>,
    /// The number of terms that add to the score.
    optional_terms: usize,
    /// The number of terms under `+` and `-`.
    conditional_terms: usize,
}

impl ClauseBuilder {
    fn new(language: Language) -> Self {
        Self {
            language,
            analyser: Analyser::new(language),
            clauses: Vec::new(),
            stop_word_clauses: Vec::new(),
            words: 0,
            boosts: Vec::new(),
            words_seen: HashSet::new(),
            optional_terms: 0,
            conditional_terms: 0,
        }
    }

    fn into_clauses(mut self) -> Vec<Clause> {
        let parts = TermMatch::Word(std::mem::take(&mut self.boosts));
        if let Some(ask) = self.within_limit(parts) {
            self.clauses.push(Clause { occur: Occur::Boost, ask });
        }
        let finds = |clause: &Clause| matches!(clause.occur, Occur::Should | Occur::Must);
        let finds = self.clauses.iter().any(finds);
        let mut clauses = self.clauses;
        if !finds {
            clauses.extend(self.stop_word_clauses);
        }
        clauses
    }

    fn phrase(&mut self, occur: Occur, text: &str) -> Result<()> {
        let units = self.words_of(text)?;
        match phrase_of(units.iter().flat_map(QueryWord::positioned_tokens)) {
            Some(ask) => self.add(occur, ask),
            None => Ok(()),
        }
    }

    fn bare(&mut self, occur: Occur, text: &str) -> Result<()> {
        let (text, suffix) = split_suffix(text);
        let mut units = self.words_of(text)?;
        let last = units.pop();
        units.iter().try_for_each(|unit| self.word(occur, unit))?;
        let Some(last) = last else { return Ok(()) };
        let ask = match suffix {
            SuffixOperator::None => None,
            SuffixOperator::Prefix => last.name().map(|name| self.prefix_match(name)),
            SuffixOperator::Fuzzy(edits) => last.name().and_then(|name| fuzzy_match(name, edits)),
        };
        match ask {
            Some(ask) => self.add(occur, ask),
            None => self.word(occur, &last),
        }
    }

    /// Builds a prefix clause. Terms are stored without suffixes: if the typed word has one, its stem is the
    /// prefix; if it ends within a suffix, the terms of the completed words are added.
    fn prefix_match(&mut self, name: &OwnedToken) -> TermMatch {
        let stem = name.unstemmed.starts_with(&*name.term);
        let prefix = if stem { name.term.clone() } else { name.unstemmed.clone() };
        let others = match name.kind {
            TokenKind::Word => {
                let word = (&*name.unstemmed, &*name.term);
                completed_terms(word, &prefix, self.language, &mut self.analyser)
            }
            _ => Vec::new(),
        };
        if others.is_empty() { TermMatch::Prefix(prefix) } else { TermMatch::Begin(prefix, others) }
    }

    fn word(&mut self, occur: Occur, unit: &QueryWord) -> Result<()> {
        if occur != Occur::Should {
            return unit.as_condition().map_or(Ok(()), |ask| self.add(occur, ask));
        }
        self.boosts.extend(unit.parts());
        if unit.is_stop_word(self.language) {
            let clause = Clause { occur, ask: unit.as_optional() };
            if self.stop_word_clauses.len() < MAX_TERMS && !self.stop_word_clauses.contains(&clause)
            {
                self.stop_word_clauses.push(clause);
            }
            return Ok(());
        }
        self.add(occur, unit.as_optional())
    }

    /// Adds a clause, unless it is a duplicate.
    fn add(&mut self, occur: Occur, ask: TermMatch) -> Result<()> {
        if matches!(&ask, TermMatch::Phrase(terms) if terms.len() > MAX_TERMS) {
            return Err(Error::limit(format!("a phrase has at most {MAX_TERMS} words")));
        }
        let clause = Clause { occur, ask };
        if self.clauses.contains(&clause) {
            return Ok(());
        }
        if matches!(occur, Occur::Must | Occur::MustNot) {
            self.conditional_terms += term_count(&clause.ask);
            if self.conditional_terms > MAX_TERMS {
                let message = format!("a question has at most {MAX_TERMS} words under + and -");
                return Err(Error::limit(message));
            }
            self.clauses.push(clause);
        } else if let Some(ask) = self.within_limit(clause.ask) {
            self.clauses.push(Clause { occur, ask });
        }
        Ok(())
    }

    /// The part of a clause that is within the limit; of words, without the terms of earlier words.
    fn within_limit(&mut self, ask: TermMatch) -> Option<TermMatch> {
        let Self { words_seen, optional_terms: loose, .. } = self;
        let mut fits = |terms: usize| {
            let fits = *loose + terms <= MAX_TERMS;
            *loose += if fits { terms } else { 0 };
            fits
        };
        match ask {
            TermMatch::Word(mut terms) => {
                terms.retain(|term| {
                    !words_seen.contains(term) && fits(1) && words_seen.insert(term.clone())
                });
                (!terms.is_empty()).then_some(TermMatch::Word(terms))
            }
            TermMatch::Identifier(term, phrases) => {
                let whole = TermMatch::Identifier(term.clone(), Vec::new());
                let all = TermMatch::Identifier(term, phrases);
                match fits(term_count(&all)) {
                    true => Some(all),
                    false => fits(1).then_some(whole),
                }
            }
            other => fits(term_count(&other)).then_some(other),
        }
    }

    /// The identifiers, words, runs and emoji of a text.
    fn words_of(&mut self, text: &str) -> Result<Vec<QueryWord>> {
        let mut units: Vec<QueryWord> = Vec::new();
        let mut unit = None;
        let mut left = MAX_WORDS.saturating_sub(self.words);
        let flow = self.analyser.analyse(text, &mut |token| {
            if unit != Some(token.unit) {
                if left == 0 {
                    return ControlFlow::Break(());
                }
                left -= 1;
                unit = Some(token.unit);
                units.push(QueryWord::default());
            }
            if let Some(unit) = units.last_mut().filter(|unit| unit.tokens.len() < MAX_TOKENS) {
                unit.tokens.push(owned(token));
            }
            ControlFlow::Continue(())
        });
        if flow.is_break() {
            return Err(Error::limit(format!("a question has at most {MAX_WORDS} words")));
        }
        self.words = MAX_WORDS.saturating_sub(left);
        Ok(units)
    }
}

fn owned(token: &Token<'_>) -> OwnedToken {
    let (term, plain) = (token.term.into(), token.unstemmed.into());
    OwnedToken { term, unstemmed: plain, kind: token.kind, position: token.position }
}

/// Limits the edits so that something of a short word remains.
fn fuzzy_match(name: &OwnedToken, edits: u8) -> Option<TermMatch> {
    let most = match name.term.chars().count() {
        0..=2 => 0,
        3..=4 => 1,
        _ => 2,
    };
    (most > 0).then(|| TermMatch::Fuzzy(name.term.clone(), edits.min(most)))
}

fn distinct_terms(phrase: &Phrase) -> usize {
    phrase.iter().map(|(term, _)| term).collect::<HashSet<_>>().len()
}

/// The terms that count toward the limit: of an identifier itself and its words.
fn term_count(ask: &TermMatch) -> usize {
    match ask {
        TermMatch::Word(terms) => terms.len(),
        TermMatch::Phrase(terms) => terms.len(),
        TermMatch::Identifier(_, phrases) => 1 + phrases.first().map_or(0, Vec::len),
        TermMatch::Prefix(_) | TermMatch::Begin(..) | TermMatch::Fuzzy(..) => 1,
    }
}

#[cfg(test)]
#[path = "syntax_tests.rs"]
mod tests;
