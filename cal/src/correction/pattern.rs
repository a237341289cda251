//! A small pattern language over the pieces of a query, with replacement texts.
//!
//! A pattern is words apart by blanks, each for one piece or more:
//!
//! | word | matches |
//! |---|---|
//! | `LIMIT`, `TOP\|HEAD` | a piece of one of these texts in any case; with `@` in front it is kept |
//! | `$w`, `$s`, `$n`, `$v`, `$h`, `$x` | any word, a string, a number, a value, an address, anything |
//! | `$p`, `$f`, `$k`, `$r` | a plural type, a field, a word that begins a statement, or one that reads |
//! | `$u`, `$q`, `$e`, `$d` | text without its quotes, a string with quotes in it, a number with an exponent, a string that tells a time |
//! | `$l`, `$L` | names apart by commas, values apart by commas |
//! | `$*`, `$c` | all pieces up to what the next word of the pattern matches; `$c` stops at a pipeline |
//! | `^`, `END` | the beginning, the end |
//! | `#1` | the text of the first capture again |
//!
//! Punctuation matches itself, except that `|`, `$` and `@` are written `PIPE`, `DOLLAR` and `AT_SIGN`.
//!
//! In a replacement `#1` is the first capture and `#1:name` a transformation of it; the part after `>>` is
//! inserted at the end of the statement.

use std::cell::Cell;

use grainstore_format::{ContentAddress, EpochMs};

use crate::fields;
use crate::lex;
use crate::scan::{SyntaxKind, SyntaxSpan};
use crate::time_phrase;
use crate::types;

use super::whole::is_tail;
use super::{FAR_FUTURE_MS, is_value};

/// A query and its pieces.
#[derive(Clone, Copy)]
pub(super) struct QueryPieces<'a> {
    pub(super) text: &'a str,
    pub(super) all: &'a [SyntaxSpan],
    /// How many pieces may still be looked at: what is not mended by then is not mended, on any machine.
    pub(super) steps: &'a Cell<usize>,
}

/// A match of a pattern: the range of pieces, and the range of each capture.
pub(super) struct PatternMatch {
    pub(super) from: usize,
    pub(super) to: usize,
    captures: Vec<(usize, usize)>,
}

/// The words that begin statements that read.
const READS: [&str; 9] =
    ["RECALL", "ASSEMBLE", "EXISTS", "HISTORY", "EXPLAIN", "DESCRIBE", "BATCH", "COALESCE", "LET"];
/// The words that begin statements that write.
const WRITES: [&str; 3] = ["ADD", "SUPERSEDE", "REVERT"];

impl<'a> QueryPieces<'a> {
    pub(super) fn text_at(&self, at: usize) -> &'a str {
        self.between(at, at + 1)
    }

    pub(super) fn kind(&self, at: usize) -> Option<SyntaxKind> {
        self.all.get(at).map(|piece| piece.kind)
    }

    /// Returns the text of a range of pieces, with the text between them.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a str {
        if from >= to {
            return "";
        }
        let (Some(first), Some(last)) = (self.all.get(from), self.all.get(to - 1)) else {
            return "";
        };
        self.text.get(first.range.start..last.range.end).unwrap_or("")
    }

    pub(super) fn is_word(&self, at: usize) -> bool {
        matches!(self.kind(at), Some(SyntaxKind::Keyword | SyntaxKind::Name))
    }

    /// Matches a pattern at this piece.
    pub(super) fn find(&self, pattern: &str, from: usize) -> Option<PatternMatch> {
        let elements = match pattern.strip_prefix("^ ") {
            Some(_) if from > 0 => return None,
            Some(elements) => elements,
            None => pattern,
        };
        let mut kept = Vec::new();
        let to = self.matches(Some(elements), from, &mut kept)?;
        Some(PatternMatch { from, to, captures: kept })
    }

    /// Matches the elements in order, with backtracking; returns the piece after the match.
    fn matches(
        &self,
        elements: Option<&str>,
        at: usize,
        kept: &mut Vec<(usize, usize)>,
    ) -> Option<usize> {
        let Some(elements) = elements else { return Some(at) };
        let (first, rest) = match elements.split_once(' ') {
            Some((first, rest)) => (first, Some(rest)),
            None => (elements, None),
        };
        self.steps.set(self.steps.get().checked_sub(1)?);
        if first == "END" {
            return (at == self.all.len()).then_some(at);
        }
        let keeps = first.starts_with('$') || first.starts_with('@');
        let ends = self.element_ends(first, at, kept);
        self.steps.set(self.steps.get().saturating_sub(ends.len()));
        for end in ends {
            let before = kept.len();
            if keeps {
                kept.push((at, end));
            }
            if let Some(end) = self.matches(rest, end, kept) {
                return Some(end);
            }
            kept.truncate(before);
        }
        None
    }

    /// Returns the pieces after which one element may end, in the order to try them.
    fn element_ends(&self, element: &str, at: usize, kept: &[(usize, usize)]) -> Vec<usize> {
        let one = |holds: bool| if holds { vec![at + 1] } else { Vec::new() };
        let text = self.text_at(at);
        let kind = self.kind(at);
        match element {
            "$*" => (at..=self.all.len()).collect(),
            "$c" => {
                let ends = |at: &usize| is_tail(self.text_at(*at));
                (at..=(at..self.all.len()).find(ends).unwrap_or(self.all.len())).collect()
            }
            "$d" => one(kind == Some(SyntaxKind::Text) && self.is_time(at)),
            "$w" => one(self.is_word(at)),
            "$s" => one(kind == Some(SyntaxKind::Text)),
            "$o" => one(kind == Some(SyntaxKind::UnterminatedText)),
            "$n" => one(kind == Some(SyntaxKind::Number)),
            "$h" => one(kind == Some(SyntaxKind::Hash)),
            "$P" => one(kind == Some(SyntaxKind::Parameter)),
            "$x" => one(kind.is_some()),
            "$v" => one(self.is_value(at)),
            "$p" => one(types::by_plural(text).is_some()),
            "$f" => one(self.is_word(at) && fields::by_name(text).is_some()),
            "$k" => one(self.begins_statement(at)),
            "$r" => one(READS.iter().any(|word| word.eq_ignore_ascii_case(text))),
            "$e" => match (kind, self.kind(at + 1)) {
                (Some(SyntaxKind::Invalid), Some(SyntaxKind::Number)) => vec![at + 2],
                _ => Vec::new(),
            },
            "$q" => self.unescaped_string_end(at).into_iter().collect(),
            "$u" => self.unquoted(at),
            "$l" => self.list(at, |at| self.is_word(at)),
            "$L" => self.list(at, |at| self.is_value(at)),
            _ if element.starts_with('#') => {
                let same = capture_index(element).and_then(|of| kept.get(of));
                one(same.is_some_and(|(from, to)| self.between(*from, *to) == text))
            }
            _ => {
                let names = element.strip_prefix('@').unwrap_or(element);
                one(kind.is_some() && names.split('|').any(|name| is_named(name, text)))
            }
        }
    }

    pub(super) fn is_value(&self, at: usize) -> bool {
        let flag = ["true", "false"].iter().any(|flag| flag.eq_ignore_ascii_case(self.text_at(at)));
        self.kind(at).is_some_and(is_value) || flag
    }

    /// Whether a statement begins here.
    pub(super) fn begins_statement(&self, at: usize) -> bool {
        READS.iter().chain(&WRITES).any(|word| word.eq_ignore_ascii_case(self.text_at(at)))
    }

    fn is_time(&self, at: usize) -> bool {
        time_phrase::of_text(self.text_at(at).trim_matches('"'), EpochMs::new(FAR_FUTURE_MS))
            .is_some()
    }

    /// Matches unquoted text: names, numbers, and characters that form no token. The longest end comes first.
    fn unquoted(&self, at: usize) -> Vec<usize> {
        let loose = |at: &usize| {
            let kind = self.kind(*at);
            matches!(kind, Some(SyntaxKind::Name | SyntaxKind::Number | SyntaxKind::Invalid))
                && self.text_at(*at) != "$"
                || matches!(self.text_at(*at), ":" | "/")
        };
        let mut ends: Vec<usize> =
            (at..self.all.len()).take_while(loose).map(|at| at + 1).collect();
        ends.reverse();
        ends
    }

    /// Matches a string whose inner quotes are not escaped, so that it was scanned as several
    /// pieces. Two strings with nothing but a mark between them are a list, and so are two side by
    /// side in brackets.
    fn unescaped_string_end(&self, at: usize) -> Option<usize> {
        let of = |at: usize| self.all.get(at).filter(|_| self.kind(at) == Some(SyntaxKind::Text));
        let mut end = of(at)?.range.end;
        for next in at + 1..self.all.len() {
            let piece = self.all.get(next).filter(|piece| piece.range.start == end)?;
            if of(next).is_some() {
                let is_list = match next - at {
                    1 => self.is_in_brackets(at),
                    2 => matches!(self.text_at(at + 1), "," | ";" | "|"),
                    _ => false,
                };
                return (!is_list).then_some(next + 1);
            }
            end = piece.range.end;
        }
        None
    }

    /// Whether a string stands in brackets, behind other strings or none.
    fn is_in_brackets(&self, at: usize) -> bool {
        let is_text = |at: &usize| self.kind(*at) == Some(SyntaxKind::Text);
        let before = (0..at).rev().find(|at| !is_text(at) && self.text_at(*at) != ",");
        before.is_some_and(|before| matches!(self.text_at(before), "(" | "["))
    }

    /// Matches one or more pieces separated by commas, as many as there are.
    fn list(&self, at: usize, holds: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut end = at;
        let mut next = at;
        while holds(next) {
            end = next + 1;
            if self.text_at(end) != "," {
                break;
            }
            next = end + 1;
        }
        if end > at { vec![end] } else { Vec::new() }
    }

    /// Returns the query with `text` in the place of the match.
    pub(super) fn replace(&self, found: &PatternMatch, text: &str) -> Option<String> {
        let (here, behind) = match text.split_once(">>") {
            Some((here, behind)) => (here.trim_end(), Some(behind.trim_start())),
            None => (text, None),
        };
        let start = self.all.get(found.from).map_or(self.text.len(), |piece| piece.range.start);
        let last = found.to.checked_sub(1).and_then(|last| self.all.get(last));
        let stop = last.map_or(start, |piece| piece.range.end).max(start);
        let mut out = self.text.get(..start)?.to_owned();
        if !out.is_empty() && !out.ends_with([' ', '\n', '(', '{']) {
            out.push(' ');
        }
        out += &self.expand(here, found)?;
        let rest = self.text.get(stop..)?;
        let Some(behind) = behind else { return Some(out + rest) };
        let cut = self.statement_end(found.to).max(stop);
        out += self.text.get(stop..cut)?.trim_end();
        out.push(' ');
        out += &self.expand(behind, found)?;
        Some(out + self.text.get(cut..)?)
    }

    /// Returns the byte offset at which the statement around this piece ends.
    fn statement_end(&self, from: usize) -> usize {
        let mut open = 0_usize;
        for piece in self.all.iter().skip(from) {
            match self.text.get(piece.range.clone()) {
                Some("(" | "[" | "{") => open += 1,
                Some(")" | "]" | "}" | ";") if open == 0 => return piece.range.start,
                Some(")" | "]" | "}") => open -= 1,
                _ => {}
            }
        }
        self.text.trim_end().len()
    }

    /// Expands a replacement: each `#` becomes its capture. `None` if one cannot be transformed.
    fn expand(&self, text: &str, found: &PatternMatch) -> Option<String> {
        let mut parts = text.split('#');
        let mut out = parts.next()?.to_owned();
        for part in parts {
            let digit = part.get(..1)?.parse::<usize>().ok()?;
            let (from, to) = *found.captures.get(digit.checked_sub(1)?)?;
            let kept = self.between(from, to);
            let rest = part.get(1..)?;
            let Some(named) = rest.strip_prefix(':') else {
                out += kept;
                out += rest;
                continue;
            };
            let ends = named.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(named.len());
            let (how, rest) = named.split_at(ends);
            if how.is_empty() {
                out += kept;
                out.push(':');
            } else {
                out += &transform(kept, how)?;
            }
            out += rest;
        }
        Some(out)
    }
}

/// Returns the zero-based index of the capture that an element refers to.
fn capture_index(element: &str) -> Option<usize> {
    element.get(1..)?.parse::<usize>().ok()?.checked_sub(1)
}

fn is_named(name: &str, text: &str) -> bool {
    let name = match name {
        "PIPE" => "|",
        "DOLLAR" => "$",
        "AT_SIGN" => "@",
        _ => name,
    };
    name.eq_ignore_ascii_case(text)
}

/// Transforms a capture as a replacement asks; `None` if it cannot be.
fn transform(kept: &str, how: &str) -> Option<String> {
    let bare = kept.trim_matches('"');
    Some(match how {
        "bare" => bare.to_owned(),
        "quoted" => format!("\"{}\"", bare.replace('"', "\\\"")),
        "within" => {
            let inside = kept.strip_prefix('"')?.strip_suffix('"')?;
            format!("\"{}\"", inside.replace('"', "\\\""))
        }
        "like" => {
            let wanted = bare.trim_matches(['%', '*', '.', '_']).trim();
            // A pattern that is open behind one word asks for words that begin so.
            let is_open = bare.ends_with(['%', '*']) && !bare.starts_with(['%', '*', '_']);
            let more = if is_open && !wanted.contains(' ') { "*" } else { "" };
            (!wanted.is_empty()).then(|| format!("\"{wanted}{more}\""))?
        }
        "begin" => {
            let wanted = bare.trim_matches(['%', '*']).trim();
            (!wanted.is_empty()).then(|| format!("\"{wanted}*\""))?
        }
        "span" => match bare.to_ascii_lowercase() {
            phrase if phrase.starts_with("last") || phrase.ends_with("ago") => {
                format!("\"{bare}\"")
            }
            _ => format!("\"last {bare}\""),
        },
        "slug" => {
            let letters = bare.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
            let name: String = letters.collect();
            lex::is_word(&name).then_some(name)?
        }
        "share" => {
            let value = kept.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value))?;
            (value / 100.0).to_string()
        }
        "number" => bare.parse::<f64>().ok().filter(|value| value.is_finite())?.to_string(),
        "count" => parse_count(bare)?.to_string(),
        "cap" => parse_count(bare)?.min(1000).to_string(),
        "address" => {
            let lower = bare.to_ascii_lowercase();
            let digits = ContentAddress::digits(&lower);
            lex::is_hash_digits(digits).then(|| format!("sha256:{digits}"))?
        }
        "singular" => types::by_plural(bare)
            .map(|name| format!("\"{}\"", types::singular_of(name.grain_type)))?,
        _ => return None,
    })
}

/// Parses a positive whole number as people write it: digits with separators, `5k`, or a word up to ten.
fn parse_count(written: &str) -> Option<u64> {
    const WORDS: [&str; 11] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let lower = written.to_ascii_lowercase().replace(['_', ','], "");
    if let Some(value) = WORDS.iter().position(|word| **word == lower) {
        return u64::try_from(value).ok().filter(|value| *value > 0);
    }
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let times = match lower.get(digits.len()..)? {
        "k" => 1000,
        "" | "tokens" | "grains" => 1,
        _ => return None,
    };
    let whole = digits.strip_suffix(".0").unwrap_or(digits);
    whole.parse::<u64>().ok()?.checked_mul(times).filter(|value| *value > 0)
}
