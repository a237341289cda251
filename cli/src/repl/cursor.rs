//! The syntactic context of the cursor in a statement, and what may be written there.
//!
//! It looks at the pieces before the cursor and knows which word calls for what. The completion takes the
//! words themselves from the tables of the language.

use std::collections::BTreeSet;

use grainstore::cal::{SyntaxKind, SyntaxSpan, scan};

/// The kind of text expected at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// No completion.
    Nothing,
    /// One of these keywords.
    Keywords(&'static [&'static str]),
    /// One of these clauses: those that may follow, without those that are there already.
    Clauses(Vec<&'static str>),
    /// A grain type in the plural, or a clause.
    Plural,
    /// A grain type in the singular.
    Singular,
    /// A target of DESCRIBE.
    Described,
    /// A field of the named type.
    Field(Option<String>),
    /// A field for ORDER BY.
    Sortable,
    /// A field for GROUP BY.
    Groupable,
    /// An option of WITH.
    Options,
    /// A category of relations.
    Category,
    /// A format of answers.
    Format,
    /// An option of STREAM.
    Streamed,
    /// A source of an ASSEMBLE: a RECALL in parentheses, or one of these LETs.
    Source(BTreeSet<String>),
    /// A variable of a template.
    Variable,
    /// One of these labels or names.
    Names(BTreeSet<String>),
    /// A value of this field, in quotes.
    ValueOf(String),
}

/// The word at the cursor, and what is expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Byte offset at which the word begins.
    pub(crate) start: usize,
    /// True if it is in quotes.
    pub(crate) quoted: bool,
    pub(crate) wanted: Wanted,
}

/// Keywords that begin a statement.
pub(crate) const STATEMENT_KEYWORDS: &[&str] = &[
    "RECALL",
    "ASSEMBLE",
    "HISTORY",
    "EXISTS",
    "DESCRIBE",
    "EXPLAIN",
    "COALESCE",
    "BATCH",
    "LET",
    "ADD",
    "SUPERSEDE",
    "REVERT",
    "DEFINE",
];
/// Clauses and stages of RECALL.
pub(crate) const RECALL_CLAUSES: &[&str] = &[
    "WHERE",
    "AND",
    "ABOUT",
    "LIKE",
    "SINCE",
    "BETWEEN",
    "THREAD",
    "IN",
    "RECENT",
    "WITH",
    "AS",
    "SELECT",
    "PROJECT",
    "ORDER",
    "GROUP",
    "LIMIT",
    "OFFSET",
    "COUNT",
    "FIRST",
    "SUBJECTS",
    "OBJECTS",
    "HASHES",
    "CONTRADICTIONS",
];
/// Clauses that a RECALL has at most once. IN and BETWEEN also occur in conditions, and stages may repeat.
const SINGLE_CLAUSES: &[&str] =
    &["WHERE", "ABOUT", "LIKE", "SINCE", "THREAD", "RECENT", "WITH", "AS", "CONTRADICTIONS"];
/// Operators between two queries in parentheses.
const SET_OPERATORS: &[&str] = &["UNION", "INTERSECT", "EXCEPT"];
/// Stages after a pipe.
const STAGES: &[&str] = &[
    "SELECT", "PROJECT", "ORDER", "GROUP", "LIMIT", "OFFSET", "COUNT", "FIRST", "SUBJECTS",
    "OBJECTS", "HASHES",
];
/// Clauses of ASSEMBLE.
const ASSEMBLE_CLAUSES: &[&str] =
    &["FOR", "FROM", "BUDGET", "PRIORITY", "FORMAT", "STREAM", "WITH"];
/// Clauses of ADD, SUPERSEDE and REVERT.
const WRITE_CLAUSES: &[&str] = &["SET", "REASON"];
/// Parts of a template definition.
const TEMPLATE_PARTS: &[&str] =
    &["EXTENDS", "HEADER", "ELEMENT", "ELEMENT_SUMMARY", "ELEMENT_OMIT", "SOURCE_BREAK", "FOOTER"];
/// Sections of a template in braces.
const TEMPLATE_SECTIONS: &[&str] =
    &["HEADER", "ELEMENT", "ELEMENT_SUMMARY", "ELEMENT_OMIT", "SOURCE_BREAK", "FOOTER"];
/// Clauses of HISTORY.
const HISTORY_CLAUSES: &[&str] = &["WHERE", "AND", "IN", "DIFF", "AS"];
/// Statements that a BATCH may contain.
const BATCH_STATEMENTS: &[&str] = &["RECALL", "EXISTS", "HISTORY", "DESCRIBE", "COALESCE"];
/// Operators after a field of a condition, apart from comparison signs.
const CONDITION_OPERATORS: &[&str] = &["IN", "BETWEEN", "INCLUDE", "EXCLUDE", "IS"];

/// Returns the context at the end of `before`, the text up to the cursor.
pub(crate) fn place(before: &str) -> Place {
    let mut pieces = scan(before);
    let touched = pieces.pop_if(|piece| {
        piece.range.end == before.len()
            && !matches!(piece.kind, SyntaxKind::Punctuation | SyntaxKind::Semicolon)
    });
    pieces.retain(|piece| piece.kind != SyntaxKind::Comment);
    let line = Line { text: before, pieces: &pieces };
    let Some(touched) = touched else {
        return Place { start: before.len(), quoted: false, wanted: line.word() };
    };
    let start = touched.range.start;
    let word = before.get(touched.range.clone()).unwrap_or_default();
    let (start, quoted, wanted) = match touched.kind {
        SyntaxKind::UnterminatedText => (start.saturating_add(1), true, line.value()),
        SyntaxKind::Keyword | SyntaxKind::Name | SyntaxKind::Forbidden => {
            (start, false, line.word())
        }
        SyntaxKind::Parameter => (start, false, Wanted::Names(line.lets())),
        SyntaxKind::Invalid if word == "$" => (start, false, Wanted::Names(line.lets())),
        SyntaxKind::Template => match tag_name_start(word) {
            Some(name) => (start.saturating_add(name), false, Wanted::Variable),
            None => (before.len(), false, Wanted::Nothing),
        },
        _ => (before.len(), false, Wanted::Nothing),
    };
    Place { start, quoted, wanted }
}

/// Returns the offset of the name in the template tag that is being written at the end of `text`.
fn tag_name_start(text: &str) -> Option<usize> {
    let opens = text.rfind("{{")?.saturating_add(2);
    let name = text.get(opens..)?.trim_start_matches(['#', '^', '/', ' ']);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    is_name.then(|| text.len().saturating_sub(name.len()))
}

/// The pieces before the word at the cursor.
struct Line<'l> {
    text: &'l str,
    pieces: &'l [SyntaxSpan],
}

impl<'l> Line<'l> {
    fn text_of(&self, piece: &SyntaxSpan) -> &'l str {
        self.text.get(piece.range.clone()).unwrap_or_default()
    }

    /// Returns the kind and text of the piece `back` positions before the cursor; keywords in upper case.
    fn piece_back(&self, back: usize) -> Option<(SyntaxKind, String)> {
        let at = self.pieces.len().checked_sub(back)?;
        let piece = self.pieces.get(at)?;
        let text = self.text_of(piece);
        let text = match piece.kind {
            SyntaxKind::Keyword => text.to_ascii_uppercase(),
            _ => text.to_owned(),
        };
        Some((piece.kind, text))
    }

    /// Returns what is expected outside quotes.
    fn word(&self) -> Wanted {
        let Some((kind, last)) = self.piece_back(1) else {
            return Wanted::Keywords(STATEMENT_KEYWORDS);
        };
        if let Some(wanted) = self.in_braces(&last) {
            return wanted;
        }
        match (kind, last.as_str()) {
            (SyntaxKind::Semicolon, _) | (SyntaxKind::Keyword, "EXPLAIN") => {
                Wanted::Keywords(STATEMENT_KEYWORDS)
            }
            (SyntaxKind::Keyword, keyword) => self.after_keyword(keyword),
            (SyntaxKind::Punctuation, "|") => Wanted::Keywords(STAGES),
            (SyntaxKind::Punctuation, ",") => self.in_list(),
            (SyntaxKind::Punctuation, "(") => self.in_parentheses(),
            (SyntaxKind::Punctuation, ">") if self.governing_clause() == "PRIORITY" => {
                Wanted::Names(self.labels())
            }
            (SyntaxKind::Punctuation, "=") if self.is_let() => Wanted::Keywords(&["RECALL"]),
            (SyntaxKind::Punctuation, ":") if self.statement_keyword() == "BATCH" => {
                Wanted::Keywords(BATCH_STATEMENTS)
            }
            (SyntaxKind::Punctuation, ":") if self.governing_clause() == "FROM" => {
                Wanted::Source(self.lets())
            }
            (SyntaxKind::Name, "fields") if self.statement_keyword() == "DESCRIBE" => {
                Wanted::Singular
            }
            (SyntaxKind::Punctuation, ")" | "]" | "}") => self.clauses(),
            (SyntaxKind::Punctuation, _) => Wanted::Nothing,
            (SyntaxKind::Name, _) if self.stands_in_condition() => {
                Wanted::Keywords(CONDITION_OPERATORS)
            }
            _ => self.clauses(),
        }
    }

    fn after_keyword(&self, keyword: &str) -> Wanted {
        match keyword {
            "RECALL" | "MY" => Wanted::Plural,
            "ADD" => Wanted::Singular,
            "DESCRIBE" => Wanted::Described,
            "WHERE" | "AND" | "SELECT" | "SET" => Wanted::Field(self.named_type()),
            "ORDER" | "GROUP" => Wanted::Keywords(&["BY"]),
            "BY" if self.piece_back(2).is_some_and(|(_, word)| word == "GROUP") => {
                Wanted::Groupable
            }
            "BY" => Wanted::Sortable,
            "WITH" => Wanted::Options,
            "IS" => Wanted::Category,
            "AS" if self.statement_keyword() == "HISTORY" => Wanted::Keywords(&["OF"]),
            "AS" | "FORMAT" => Wanted::Format,
            "PRIORITY" => Wanted::Names(self.labels()),
            "HISTORY" => Wanted::Keywords(&["WHERE", "IN"]),
            "IN" => Wanted::Keywords(&["SCOPE"]),
            "THREAD" => Wanted::Keywords(&["FROM"]),
            "FROM" if self.piece_back(2).is_none_or(|(_, word)| word != "THREAD") => {
                Wanted::Source(self.lets())
            }
            "ASSEMBLE" => Wanted::Keywords(&["FOR", "FROM"]),
            "DEFINE" => Wanted::Keywords(&["TEMPLATE"]),
            "ABOUT" | "LIKE" | "SINCE" | "BETWEEN" | "LIMIT" | "OFFSET" | "RECENT" | "BUDGET"
            | "FOR" | "FROM" | "TEMPLATE" | "EXTENDS" | "REASON" | "LET" | "EXISTS" | "DIFF"
            | "OF" | "SCOPE" | "LAST" => Wanted::Nothing,
            _ => self.clauses(),
        }
    }

    /// Returns what is expected after a comma.
    fn in_list(&self) -> Wanted {
        match self.governing_clause().as_str() {
            "SELECT" | "SET" => Wanted::Field(self.named_type()),
            "WITH" => Wanted::Options,
            "FROM" => Wanted::Source(self.lets()),
            _ => Wanted::Nothing,
        }
    }

    /// Returns what is expected in the braces around the cursor, after `last`: those of STREAM and of a
    /// template.
    fn in_braces(&self, last: &str) -> Option<Wanted> {
        let mut depth = 0_usize;
        let opens = self.pieces.iter().rposition(|piece| {
            if piece.kind != SyntaxKind::Punctuation {
                return false;
            }
            match self.text_of(piece) {
                ")" | "]" | "}" => depth = depth.saturating_add(1),
                "(" | "[" | "{" if depth == 0 => return true,
                "(" | "[" | "{" => depth = depth.saturating_sub(1),
                _ => {}
            }
            false
        })?;
        let opening = self.pieces.get(opens)?;
        let before = self.pieces.get(opens.checked_sub(1)?)?;
        if self.text_of(opening) != "{" || self.is(before, "BATCH") {
            return None;
        }
        Some(match last {
            "{" | "," if self.is(before, "STREAM") => Wanted::Streamed,
            _ if self.is(before, "STREAM") => Wanted::Nothing,
            // The text of a section that is still empty.
            "{" if TEMPLATE_SECTIONS.iter().any(|section| self.is(before, section)) => {
                Wanted::Nothing
            }
            "{" | "}" => Wanted::Keywords(TEMPLATE_SECTIONS),
            _ => Wanted::Nothing,
        })
    }

    fn in_parentheses(&self) -> Wanted {
        match self.piece_back(2) {
            Some((SyntaxKind::Name, word)) if word == "dedup" => {
                Wanted::Field(self.type_in(&self.pieces.iter().collect::<Vec<_>>()))
            }
            Some((SyntaxKind::Name, _)) => Wanted::Nothing,
            _ => Wanted::Keywords(&["RECALL"]),
        }
    }

    /// Returns the clauses that may follow in the statement at the cursor.
    fn clauses(&self) -> Wanted {
        let open = self.open();
        let recall = open.iter().rposition(|piece| self.is(piece, "RECALL"));
        if let Some(pieces) = recall.and_then(|at| open.get(at..)) {
            return self.recall_clauses(pieces);
        }
        match self.statement_keyword().as_str() {
            "ASSEMBLE" => self.assemble_clauses(&open),
            "RECALL" => Wanted::Keywords(SET_OPERATORS),
            "ADD" | "SUPERSEDE" | "REVERT" => Wanted::Keywords(WRITE_CLAUSES),
            "HISTORY" => Wanted::Keywords(HISTORY_CLAUSES),
            "DEFINE" => Wanted::Keywords(TEMPLATE_PARTS),
            "EXISTS" | "DESCRIBE" | "BATCH" => Wanted::Nothing,
            _ => Wanted::Clauses(RECALL_CLAUSES.to_vec()),
        }
    }

    /// Returns the clauses that may follow in a RECALL of these pieces.
    fn recall_clauses(&self, pieces: &[&SyntaxSpan]) -> Wanted {
        let stands = |word: &str| pieces.iter().any(|piece| self.is(piece, word));
        let joins = stands("WHERE") || stands("BETWEEN");
        let fits = |word: &&str| {
            if *word == "AND" { joins } else { !SINGLE_CLAUSES.contains(word) || !stands(word) }
        };
        Wanted::Clauses(RECALL_CLAUSES.iter().copied().filter(fits).collect())
    }

    /// Returns the clauses that may follow in an ASSEMBLE of these pieces: FOR and FROM first, then each
    /// clause once.
    fn assemble_clauses(&self, pieces: &[&SyntaxSpan]) -> Wanted {
        let stands = |word: &str| pieces.iter().any(|piece| self.is(piece, word));
        let sourced = stands("FROM");
        let fits = |word: &&str| {
            let is_first = matches!(*word, "FOR" | "FROM");
            is_first != sourced && !stands(word)
        };
        Wanted::Clauses(ASSEMBLE_CLAUSES.iter().copied().filter(fits).collect())
    }

    /// Returns the pieces since the last semicolon, limited to the parentheses around the cursor.
    fn open(&self) -> Vec<&SyntaxSpan> {
        let mut open = Vec::new();
        let mut depth = 0_usize;
        for piece in self.pieces.iter().rev() {
            match self.text_of(piece) {
                ";" if piece.kind == SyntaxKind::Semicolon => break,
                ")" | "]" | "}" if piece.kind == SyntaxKind::Punctuation => {
                    depth = depth.saturating_add(1);
                }
                "(" | "[" | "{" if piece.kind == SyntaxKind::Punctuation => {
                    match depth.checked_sub(1) {
                        Some(less) => depth = less,
                        None => break,
                    }
                }
                _ if depth == 0 => open.push(piece),
                _ => {}
            }
        }
        open.reverse();
        open
    }

    /// Returns the keyword that begins the statement, without EXPLAIN and the version; empty if there is
    /// none.
    fn statement_keyword(&self) -> String {
        let semicolon = |piece: &SyntaxSpan| piece.kind == SyntaxKind::Semicolon;
        let from = self.pieces.iter().rposition(semicolon).map_or(0, |at| at.saturating_add(1));
        let mut heads = self.pieces.iter().skip(from).filter(|piece| {
            piece.kind == SyntaxKind::Keyword
                && !self.is(piece, "EXPLAIN")
                && !self.is(piece, "CAL")
        });
        heads.next().map(|piece| self.text_of(piece).to_ascii_uppercase()).unwrap_or_default()
    }

    /// Returns the last clause keyword in the parentheses around the cursor; empty if there is none.
    fn governing_clause(&self) -> String {
        let open = self.open();
        let governs = |piece: &&&SyntaxSpan| {
            ["SELECT", "WITH", "SET", "FROM", "PRIORITY", "WHERE", "BY"]
                .iter()
                .any(|word| self.is(piece, word))
        };
        open.iter()
            .rev()
            .find(governs)
            .map(|piece| self.text_of(piece).to_ascii_uppercase())
            .unwrap_or_default()
    }

    fn is(&self, piece: &SyntaxSpan, keyword: &str) -> bool {
        piece.kind == SyntaxKind::Keyword && self.text_of(piece).eq_ignore_ascii_case(keyword)
    }

    /// Returns `true` if the `=` before the cursor is that of a LET.
    fn is_let(&self) -> bool {
        self.piece_back(3).is_some_and(|(_, word)| word == "LET")
    }

    /// Returns `true` if the name before the cursor is the field of a condition.
    fn stands_in_condition(&self) -> bool {
        self.piece_back(2).is_some_and(|(_, word)| matches!(word.as_str(), "WHERE" | "AND"))
    }

    /// Returns the type named by the RECALL or ADD around the cursor.
    fn named_type(&self) -> Option<String> {
        self.type_in(&self.open())
    }

    /// Returns the type named by the last RECALL or ADD among these pieces.
    fn type_in(&self, pieces: &[&SyntaxSpan]) -> Option<String> {
        let names = |piece: &&SyntaxSpan| self.is(piece, "RECALL") || self.is(piece, "ADD");
        let at = pieces.iter().rposition(names)?;
        let mut after =
            pieces.iter().skip(at.saturating_add(1)).filter(|piece| !self.is(piece, "MY"));
        let named = after.next().filter(|piece| piece.kind == SyntaxKind::Name);
        named.map(|piece| self.text_of(piece).to_owned())
    }

    /// Returns the names before a colon.
    fn labels(&self) -> BTreeSet<String> {
        let pairs = self.pieces.iter().zip(self.pieces.iter().skip(1));
        let labelled = pairs.filter(|(_, colon)| self.text_of(colon) == ":");
        labelled.map(|(name, _)| self.text_of(name).to_owned()).collect()
    }

    /// Returns the names of the LETs, with the dollar sign.
    fn lets(&self) -> BTreeSet<String> {
        let pairs = self.pieces.iter().zip(self.pieces.iter().skip(1));
        let bound = pairs.filter(|(before, _)| self.is(before, "LET"));
        bound.map(|(_, name)| self.text_of(name).to_owned()).collect()
    }

    /// Returns the field whose value a string at the cursor is.
    fn value(&self) -> Wanted {
        let passes = |piece: &&SyntaxSpan| match piece.kind {
            SyntaxKind::Punctuation | SyntaxKind::Text | SyntaxKind::Number => true,
            _ => ["IN", "INCLUDE", "EXCLUDE"].iter().any(|word| self.is(piece, word)),
        };
        let asked = self.pieces.iter().rev().find(|piece| !passes(piece));
        match asked {
            Some(piece) if self.is(piece, "ABOUT") => Wanted::ValueOf("subject".to_owned()),
            Some(piece) if piece.kind == SyntaxKind::Name => {
                Wanted::ValueOf(self.text_of(piece).to_owned())
            }
            _ => Wanted::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
