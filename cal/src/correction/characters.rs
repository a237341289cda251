//! Corrections of characters that CAL does not have outside strings: fences and quotes around a statement,
//! curly quotes, letters of other scripts that look like Latin ones, comment syntax of other languages.

use super::Rewrite;
use crate::{fields, types};

/// Rewrites a query in the characters of CAL; `None` if it has no others.
pub(super) fn rewrite(text: &str) -> Option<Rewrite> {
    let inside = strip_wrapping(text);
    let around = inside != text;
    let (plain, why) = to_cal_characters(inside);
    let why = if around && why.is_empty() {
        "send the statement alone, without marks around it"
    } else {
        why
    };
    (plain != text).then(|| Rewrite { advice: why.to_owned(), text: plain })
}

/// Returns the text without a fence, quotes or a byte order mark around it.
fn strip_wrapping(text: &str) -> &str {
    let mut inside = text.trim().trim_matches('\u{feff}').trim();
    if let Some(fenced) = inside.strip_prefix("```") {
        let body = fenced.split_once('\n').map_or(fenced, |(_, body)| body);
        inside = body.trim_end().trim_end_matches('`').trim();
    }
    for quote in ['`', '"', '\''] {
        let quoted = inside.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = quoted.filter(|inner| !inner.contains(quote)) {
            inside = inner.trim();
        }
    }
    if inside == text.trim() { text } else { inside }
}

const QUOTES: &str = "strings stand in double quotes: \"text\"";
const NAMES: &str = "names stand without quotes";
const LETTERS: &str = "names, keywords and operators are ASCII; text stands in double quotes";
const COMMENTS: &str = "a comment is -- and the rest of the line";

/// Replaces characters outside strings by the ASCII they stand for; returns the text and the advice.
/// Templates keep their quotes and comments, which are part of their text.
fn to_cal_characters(text: &str) -> (String, &'static str) {
    let (mut out, mut why) = (String::new(), "");
    let mut rest = text;
    let template = text.to_ascii_uppercase().contains("TEMPLATE");
    while let Some(first) = rest.chars().next() {
        let taken = if first == '"' {
            let ends = string_end(rest);
            out.push_str(rest.get(..ends).unwrap_or(rest));
            ends
        } else if let Some((inner, ends)) = foreign_string(rest).filter(|_| !template) {
            why = QUOTES;
            if first == '`' && is_name(inner) {
                why = NAMES;
                out.push_str(inner);
            } else {
                out.push('"');
                let plain = inner.replace("\\'", "'").replace("''", "'");
                out.push_str(&plain.replace('"', "\\\""));
                out.push('"');
            }
            ends
        } else if let Some(ends) = foreign_comment_end(rest).filter(|_| !template) {
            why = COMMENTS;
            out.push(' ');
            ends
        } else {
            let ascii = ascii_of(first);
            if let Some(ascii) = ascii {
                why = if why.is_empty() { LETTERS } else { why };
                out.push_str(ascii);
            } else {
                out.push(first);
            }
            first.len_utf8()
        };
        rest = rest.get(taken..).unwrap_or("");
    }
    (if why == COMMENTS { out.trim().to_owned() } else { out }, why)
}

/// Whether this is the name of a field or a type.
fn is_name(text: &str) -> bool {
    fields::by_name(text).is_some() || types::by_plural(text).is_some()
}

/// Returns the offset after the closing quote of the string in double quotes that begins here.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the text between other quotes that begin here, and the offset after them.
fn foreign_string(text: &str) -> Option<(&str, usize)> {
    const PAIRS: [(char, &[char]); 7] = [
        ('\u{201c}', &['\u{201d}', '\u{201c}', '"']),
        ('\u{201d}', &['\u{201d}']),
        ('\u{201e}', &['\u{201c}', '\u{201d}']),
        ('\u{2018}', &['\u{2019}', '\u{2018}']),
        ('\u{ab}', &['\u{bb}']),
        ('\'', &['\'']),
        ('`', &['`']),
    ];
    let first = text.chars().next()?;
    let (_, closing) = PAIRS.iter().find(|(open, _)| *open == first)?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && closing.contains(&c) {
            // SQL writes a quote within quotes twice.
            let twice = c == '\'' && text.get(at + 1..).is_some_and(|rest| rest.starts_with('\''));
            if twice && at > first.len_utf8() {
                escaped = true;
                continue;
            }
            return Some((text.get(first.len_utf8()..at)?, at + c.len_utf8()));
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

/// Returns the offset after a comment of another language that begins here.
fn foreign_comment_end(text: &str) -> Option<usize> {
    if text.starts_with("/*") {
        return text.find("*/").map(|at| at + 2);
    }
    let dashes = ["\u{2013} ", "\u{2014} "].iter().any(|dash| text.starts_with(dash));
    let begins = text.starts_with("//") || text.starts_with('#') || dashes;
    begins.then(|| text.find('\n').unwrap_or(text.len()))
}

/// Returns the ASCII that a character stands for or looks like.
fn ascii_of(c: char) -> Option<&'static str> {
    const FULL: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    const ALIKE: [(&str, &str); 10] = [
        ("\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}", ""),
        ("\u{a0}\u{2007}\u{2009}\u{202f}\u{3000}\u{2003}\u{2002}", " "),
        ("\u{2265}", ">="),
        ("\u{2264}", "<="),
        ("\u{2260}", "!="),
        ("\u{2013}\u{2014}\u{2212}", "-"),
        ("\u{2019}\u{2018}", "'"),
        ("\u{d7}", "*"),
        ("\u{2026}", "..."),
        ("\u{a6}", "|"),
    ];
    const CYRILLIC: &str = "\u{430}\u{435}\u{43e}\u{440}\u{441}\u{443}\u{445}\u{456}\u{458}\u{455}\u{410}\u{412}\u{415}\u{41a}\u{41c}\u{41d}\u{41e}\u{420}\u{421}\u{422}\u{425}\u{406}";
    const LATIN: &str = "aeopcyxijsABEKMHOPCTXI";
    if c.is_ascii() {
        return None;
    }
    if let Some((_, ascii)) = ALIKE.iter().find(|(from, _)| from.contains(c)) {
        return Some(ascii);
    }
    let at = u32::from(c);
    let digit = [0x660, 0x6f0].iter().find_map(|zero| at.checked_sub(*zero).filter(|d| *d < 10));
    if let Some(digit) = digit {
        let digit = usize::try_from(digit).ok()?;
        return "0123456789".get(digit..=digit);
    }
    if (0xff01..=0xff5e).contains(&at) {
        let place = usize::try_from(at - 0xff01).ok()?;
        return FULL.get(place..=place);
    }
    let place = CYRILLIC.chars().position(|known| known == c)?;
    LATIN.get(place..=place)
}
