//! Where the cursor stands in a statement, and what could be written there.
//!
//! It reads the pieces before the cursor and knows which word calls for what. What the words are is
//! asked of the language's own tables by whoever completes.

use std::collections::BTreeSet;

use grainstore::cal::{Piece, PieceKind, scan};

/// What a place calls for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing that could be offered.
    Nothing,
    /// One of these words of the grammar.
    Keywords(&'static [&'static str]),
    /// One of these clauses, those aside that stand already or cannot stand yet.
    Clauses(Vec<&'static str>),
    /// A grain type in the plural, or a clause.
    Plural,
    /// A grain type in the singular.
    Singular,
    /// What DESCRIBE tells about.
    Described,
    /// A field of the named type.
    Field(Option<String>),
    /// A field ORDER BY takes.
    Sortable,
    /// A field GROUP BY takes.
    Groupable,
    /// An option of WITH.
    Options,
    /// A category of relations.
    Category,
    /// A format of answers.
    Format,
    /// An option of STREAM.
    Streamed,
    /// A source of an ASSEMBLE: in parentheses, or one of these LETs.
    Source(BTreeSet<String>),
    /// A variable of a template.
    Variable,
    /// One of these labels or names.
    Names(BTreeSet<String>),
    /// In a text: what a field holds.
    ValueOf(String),
}

/// What stands before the cursor, and what it could become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where the word begins that is being written.
    pub(crate) start: usize,
    /// Whether it stands in quotes.
    pub(crate) quoted: bool,
    pub(crate) wanted: Wanted,
}

/// What a statement begins with.
pub(crate) const STARTS: &[&str] = &[
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
/// The clauses of RECALL.
pub(crate) const CLAUSES: &[&str] = &[
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
/// Those that stand once in a RECALL. IN and BETWEEN are also of conditions, and stages may come again.
const ONCE: &[&str] =
    &["WHERE", "ABOUT", "LIKE", "SINCE", "THREAD", "RECENT", "WITH", "AS", "CONTRADICTIONS"];
/// What joins two queries in parentheses.
const JOINS: &[&str] = &["UNION", "INTERSECT", "EXCEPT"];
/// The stages behind a pipe.
const STAGES: &[&str] = &[
    "SELECT", "PROJECT", "ORDER", "GROUP", "LIMIT", "OFFSET", "COUNT", "FIRST", "SUBJECTS",
    "OBJECTS", "HASHES",
];
/// The clauses of ASSEMBLE.
const ASSEMBLY: &[&str] = &["FOR", "FROM", "BUDGET", "PRIORITY", "FORMAT", "STREAM", "WITH"];
/// The clauses of ADD, SUPERSEDE and REVERT.
const EVOLVING: &[&str] = &["SET", "REASON"];
/// The parts of a template.
const OF_TEMPLATE: &[&str] =
    &["EXTENDS", "HEADER", "ELEMENT", "ELEMENT_SUMMARY", "ELEMENT_OMIT", "SOURCE_BREAK", "FOOTER"];
/// Those of one in braces.
const SECTIONS: &[&str] =
    &["HEADER", "ELEMENT", "ELEMENT_SUMMARY", "ELEMENT_OMIT", "SOURCE_BREAK", "FOOTER"];
/// The clauses of HISTORY.
const OF_HISTORY: &[&str] = &["WHERE", "AND", "IN", "DIFF", "AS"];
/// What a BATCH holds.
const READS: &[&str] = &["RECALL", "EXISTS", "HISTORY", "DESCRIBE", "COALESCE"];
/// What stands behind a field.
const TESTS: &[&str] = &["IN", "BETWEEN", "INCLUDE", "EXCLUDE", "IS"];

/// The place at the end of `before`, the text up to the cursor.
pub(crate) fn place(before: &str) -> Place {
    let mut pieces = scan(before);
    let touched = pieces.pop_if(|piece| {
        piece.range.end == before.len()
            && !matches!(piece.kind, PieceKind::Mark | PieceKind::Semicolon)
    });
    pieces.retain(|piece| piece.kind != PieceKind::Comment);
    let line = Line { text: before, pieces: &pieces };
    let Some(touched) = touched else {
        return Place { start: before.len(), quoted: false, wanted: line.word() };
    };
    let start = touched.range.start;
    let word = before.get(touched.range.clone()).unwrap_or_default();
    let (start, quoted, wanted) = match touched.kind {
        PieceKind::OpenText => (start.saturating_add(1), true, line.value()),
        PieceKind::Keyword | PieceKind::Name | PieceKind::Forbidden => (start, false, line.word()),
        PieceKind::Parameter => (start, false, Wanted::Names(line.lets())),
        PieceKind::Wrong if word == "$" => (start, false, Wanted::Names(line.lets())),
        PieceKind::Template => match tag(word) {
            Some(name) => (start.saturating_add(name), false, Wanted::Variable),
            None => (before.len(), false, Wanted::Nothing),
        },
        _ => (before.len(), false, Wanted::Nothing),
    };
    Place { start, quoted, wanted }
}

/// Where the name begins of the tag that is being written at the end of the text of a template.
fn tag(text: &str) -> Option<usize> {
    let opens = text.rfind("{{")?.saturating_add(2);
    let name = text.get(opens..)?.trim_start_matches(['#', '^', '/', ' ']);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    is_name.then(|| text.len().saturating_sub(name.len()))
}

/// The pieces before the word at the cursor.
struct Line<'l> {
    text: &'l str,
    pieces: &'l [Piece],
}

impl<'l> Line<'l> {
    fn text_of(&self, piece: &Piece) -> &'l str {
        self.text.get(piece.range.clone()).unwrap_or_default()
    }

    /// The text of the piece `back` places before the cursor, in upper case where it is a keyword.
    fn back(&self, back: usize) -> Option<(PieceKind, String)> {
        let at = self.pieces.len().checked_sub(back)?;
        let piece = self.pieces.get(at)?;
        let text = self.text_of(piece);
        let text = match piece.kind {
            PieceKind::Keyword => text.to_ascii_uppercase(),
            _ => text.to_owned(),
        };
        Some((piece.kind, text))
    }

    /// What may stand here outside of a text.
    fn word(&self) -> Wanted {
        let Some((kind, last)) = self.back(1) else { return Wanted::Keywords(STARTS) };
        if let Some(wanted) = self.in_braces(&last) {
            return wanted;
        }
        match (kind, last.as_str()) {
            (PieceKind::Semicolon, _) | (PieceKind::Keyword, "EXPLAIN") => Wanted::Keywords(STARTS),
            (PieceKind::Keyword, keyword) => self.after_keyword(keyword),
            (PieceKind::Mark, "|") => Wanted::Keywords(STAGES),
            (PieceKind::Mark, ",") => self.in_list(),
            (PieceKind::Mark, "(") => self.in_parentheses(),
            (PieceKind::Mark, ">") if self.governing() == "PRIORITY" => {
                Wanted::Names(self.labels())
            }
            (PieceKind::Mark, "=") if self.is_let() => Wanted::Keywords(&["RECALL"]),
            (PieceKind::Mark, ":") if self.head() == "BATCH" => Wanted::Keywords(READS),
            (PieceKind::Mark, ":") if self.governing() == "FROM" => Wanted::Source(self.lets()),
            (PieceKind::Name, "fields") if self.head() == "DESCRIBE" => Wanted::Singular,
            (PieceKind::Mark, ")" | "]" | "}") => self.clauses(),
            (PieceKind::Mark, _) => Wanted::Nothing,
            (PieceKind::Name, _) if self.stands_in_condition() => Wanted::Keywords(TESTS),
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
            "BY" if self.back(2).is_some_and(|(_, word)| word == "GROUP") => Wanted::Groupable,
            "BY" => Wanted::Sortable,
            "WITH" => Wanted::Options,
            "IS" => Wanted::Category,
            "AS" if self.head() == "HISTORY" => Wanted::Keywords(&["OF"]),
            "AS" | "FORMAT" => Wanted::Format,
            "PRIORITY" => Wanted::Names(self.labels()),
            "HISTORY" => Wanted::Keywords(&["WHERE", "IN"]),
            "IN" => Wanted::Keywords(&["SCOPE"]),
            "THREAD" => Wanted::Keywords(&["FROM"]),
            "FROM" if self.back(2).is_none_or(|(_, word)| word != "THREAD") => {
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

    /// What goes on with a list.
    fn in_list(&self) -> Wanted {
        match self.governing().as_str() {
            "SELECT" | "SET" => Wanted::Field(self.named_type()),
            "WITH" => Wanted::Options,
            "FROM" => Wanted::Source(self.lets()),
            _ => Wanted::Nothing,
        }
    }

    /// What the braces around the cursor call for, behind `last`: those of STREAM and of a template.
    fn in_braces(&self, last: &str) -> Option<Wanted> {
        let mut depth = 0_usize;
        let opens = self.pieces.iter().rposition(|piece| {
            if piece.kind != PieceKind::Mark {
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
            "{" if SECTIONS.iter().any(|section| self.is(before, section)) => Wanted::Nothing,
            "{" | "}" => Wanted::Keywords(SECTIONS),
            _ => Wanted::Nothing,
        })
    }

    fn in_parentheses(&self) -> Wanted {
        match self.back(2) {
            Some((PieceKind::Name, word)) if word == "dedup" => {
                Wanted::Field(self.type_in(&self.pieces.iter().collect::<Vec<_>>()))
            }
            Some((PieceKind::Name, _)) => Wanted::Nothing,
            _ => Wanted::Keywords(&["RECALL"]),
        }
    }

    /// The clauses of the statement that is being written.
    fn clauses(&self) -> Wanted {
        let open = self.open();
        let recall = open.iter().rposition(|piece| self.is(piece, "RECALL"));
        if let Some(pieces) = recall.and_then(|at| open.get(at..)) {
            return self.of_recall(pieces);
        }
        match self.head().as_str() {
            "ASSEMBLE" => self.of_assemble(&open),
            "RECALL" => Wanted::Keywords(JOINS),
            "ADD" | "SUPERSEDE" | "REVERT" => Wanted::Keywords(EVOLVING),
            "HISTORY" => Wanted::Keywords(OF_HISTORY),
            "DEFINE" => Wanted::Keywords(OF_TEMPLATE),
            "EXISTS" | "DESCRIBE" | "BATCH" => Wanted::Nothing,
            _ => Wanted::Clauses(CLAUSES.to_vec()),
        }
    }

    /// What may go on with a RECALL of these pieces.
    fn of_recall(&self, pieces: &[&Piece]) -> Wanted {
        let stands = |word: &str| pieces.iter().any(|piece| self.is(piece, word));
        let joins = stands("WHERE") || stands("BETWEEN");
        let fits = |word: &&str| {
            if *word == "AND" { joins } else { !ONCE.contains(word) || !stands(word) }
        };
        Wanted::Clauses(CLAUSES.iter().copied().filter(fits).collect())
    }

    /// What may go on with an ASSEMBLE of these pieces: FOR and FROM first, then each clause once.
    fn of_assemble(&self, pieces: &[&Piece]) -> Wanted {
        let stands = |word: &str| pieces.iter().any(|piece| self.is(piece, word));
        let sourced = stands("FROM");
        let fits = |word: &&str| {
            let is_first = matches!(*word, "FOR" | "FROM");
            is_first != sourced && !stands(word)
        };
        Wanted::Clauses(ASSEMBLY.iter().copied().filter(fits).collect())
    }

    /// The pieces since the last semicolon, as far as they are in the parentheses around the cursor.
    fn open(&self) -> Vec<&Piece> {
        let mut open = Vec::new();
        let mut depth = 0_usize;
        for piece in self.pieces.iter().rev() {
            match self.text_of(piece) {
                ";" if piece.kind == PieceKind::Semicolon => break,
                ")" | "]" | "}" if piece.kind == PieceKind::Mark => depth = depth.saturating_add(1),
                "(" | "[" | "{" if piece.kind == PieceKind::Mark => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => break,
                },
                _ if depth == 0 => open.push(piece),
                _ => {}
            }
        }
        open.reverse();
        open
    }

    /// The first keyword since the last semicolon that is a statement, EXPLAIN aside.
    fn head(&self) -> String {
        let semicolon = |piece: &Piece| piece.kind == PieceKind::Semicolon;
        let from = self.pieces.iter().rposition(semicolon).map_or(0, |at| at.saturating_add(1));
        let mut heads = self.pieces.iter().skip(from).filter(|piece| {
            piece.kind == PieceKind::Keyword && !self.is(piece, "EXPLAIN") && !self.is(piece, "CAL")
        });
        heads.next().map(|piece| self.text_of(piece).to_ascii_uppercase()).unwrap_or_default()
    }

    /// The last clause keyword in the parentheses around the cursor.
    fn governing(&self) -> String {
        let open = self.open();
        let governs = |piece: &&&Piece| {
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

    fn is(&self, piece: &Piece, keyword: &str) -> bool {
        piece.kind == PieceKind::Keyword && self.text_of(piece).eq_ignore_ascii_case(keyword)
    }

    /// Whether this is the `=` of a LET.
    fn is_let(&self) -> bool {
        self.back(3).is_some_and(|(_, word)| word == "LET")
    }

    /// Whether the name before the cursor is the field of a condition.
    fn stands_in_condition(&self) -> bool {
        self.back(2).is_some_and(|(_, word)| matches!(word.as_str(), "WHERE" | "AND"))
    }

    /// The type behind the RECALL or ADD that the cursor is in.
    fn named_type(&self) -> Option<String> {
        self.type_in(&self.open())
    }

    /// The type behind the last RECALL or ADD of these.
    fn type_in(&self, pieces: &[&Piece]) -> Option<String> {
        let names = |piece: &&Piece| self.is(piece, "RECALL") || self.is(piece, "ADD");
        let at = pieces.iter().rposition(names)?;
        let mut after =
            pieces.iter().skip(at.saturating_add(1)).filter(|piece| !self.is(piece, "MY"));
        let named = after.next().filter(|piece| piece.kind == PieceKind::Name);
        named.map(|piece| self.text_of(piece).to_owned())
    }

    /// The names that stand before a colon.
    fn labels(&self) -> BTreeSet<String> {
        let pairs = self.pieces.iter().zip(self.pieces.iter().skip(1));
        let labelled = pairs.filter(|(_, colon)| self.text_of(colon) == ":");
        labelled.map(|(name, _)| self.text_of(name).to_owned()).collect()
    }

    /// What the LETs bind, with its dollar.
    fn lets(&self) -> BTreeSet<String> {
        let pairs = self.pieces.iter().zip(self.pieces.iter().skip(1));
        let bound = pairs.filter(|(before, _)| self.is(before, "LET"));
        bound.map(|(_, name)| self.text_of(name).to_owned()).collect()
    }

    /// What a text here is a value of.
    fn value(&self) -> Wanted {
        let passes = |piece: &&Piece| match piece.kind {
            PieceKind::Mark | PieceKind::Text | PieceKind::Number => true,
            _ => ["IN", "INCLUDE", "EXCLUDE"].iter().any(|word| self.is(piece, word)),
        };
        let asked = self.pieces.iter().rev().find(|piece| !passes(piece));
        match asked {
            Some(piece) if self.is(piece, "ABOUT") => Wanted::ValueOf("subject".to_owned()),
            Some(piece) if piece.kind == PieceKind::Name => {
                Wanted::ValueOf(self.text_of(piece).to_owned())
            }
            _ => Wanted::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
