//! Splits input into entries: statements that end with `;`, and lines that begin with a dot.
//!
//! It works on bytes, since input need not be UTF-8. Of the language it knows only where a semicolon does not
//! end a statement: in strings, comments, templates, and after a LET, which belongs to the statement after
//! it.

use std::ops::Range;

use grainstore_sml::{Section, body_end};

/// Commands that work without their dot when they stand alone.
const BARE_COMMANDS: [&str; 3] = ["help", "exit", "quit"];

/// A statement or dot command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A dot command, with the dot added if it was written without; and its line, from 0.
    Dot(String, usize),
    /// A statement without its semicolon, and the line it begins on, from 0.
    Statement(Vec<u8>, usize),
}

impl Entry {
    /// Returns the line it begins on, from 0.
    pub(crate) fn line(&self) -> usize {
        match self {
            Self::Dot(_, line) | Self::Statement(_, line) => *line,
        }
    }
}

/// Returns the complete entries of a text, and the offset of the rest.
pub(crate) fn entries(text: &[u8]) -> (Vec<Entry>, usize) {
    let mut found = Vec::new();
    let (mut from, mut line) = (0, 0_usize);
    while let Some((mut entry, end)) = next_entry(text, from) {
        if let Some(Entry::Statement(_, begins) | Entry::Dot(_, begins)) = &mut entry {
            *begins = begins.saturating_add(line);
        }
        found.extend(entry);
        line = line.saturating_add(count_lines(text, from, end));
        from = end;
    }
    (found, from)
}

/// Returns the unterminated statement at the end of the input; `None` if there is none.
pub(crate) fn final_entry(text: &[u8], from: usize) -> Option<Entry> {
    let start = skip_blank(text, from);
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    Some(Entry::Statement(rest.trim_ascii_end().to_vec(), count_lines(text, 0, start)))
}

/// Returns `true` if a text has no incomplete entry.
pub(crate) fn is_finished(text: &str) -> bool {
    let (_, from) = entries(format!("{text}\n").as_bytes());
    skip_blank(text.as_bytes(), from) >= text.len()
}

/// Returns the offset at which EXPLAIN is inserted in a statement: after its LETs.
pub(crate) fn explain_offset(statement: &[u8]) -> usize {
    let mut from = 0;
    while let Some(end) = next_semicolon(statement, from) {
        from = end.saturating_add(1);
    }
    let start = skip_blank(statement, from);
    skip_version(statement, start)
}

/// Returns the next entry, with its line counted from `from`, and the offset after it. Of an empty statement
/// only the offset.
fn next_entry(text: &[u8], from: usize) -> Option<(Option<Entry>, usize)> {
    let start = skip_blank(text, from);
    if let Some((line, end)) = dot_command(text, start) {
        return Some((Some(Entry::Dot(line, count_lines(text, from, start))), end));
    }
    let mut segment = start;
    loop {
        let end = next_semicolon(text, segment)?;
        if is_let(text, segment) {
            segment = end.saturating_add(1);
            continue;
        }
        let statement = text.get(start..end)?.trim_ascii_end().to_vec();
        let entry = Entry::Statement(statement, count_lines(text, from, start));
        let is_empty = segment == start && skip_blank(text, start) == end;
        return Some(((!is_empty).then_some(entry), end.saturating_add(1)));
    }
}

/// Returns the dot command that begins here, and the offset after its line.
fn dot_command(text: &[u8], start: usize) -> Option<(String, usize)> {
    let rest = text.get(start..)?;
    let length = rest.iter().position(|byte| *byte == b'\n')?;
    let line = String::from_utf8_lossy(rest.get(..length)?);
    let line = line.trim();
    let word = line.trim_end_matches(';').trim_end();
    let end = start.saturating_add(length).saturating_add(1);
    if BARE_COMMANDS.iter().any(|bare| bare.eq_ignore_ascii_case(word)) {
        return Some((format!(".{}", word.to_ascii_lowercase()), end));
    }
    line.starts_with('.').then(|| (line.to_owned(), end))
}

/// Returns the offset of the next semicolon outside strings, comments and templates.
fn next_semicolon(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // True if the word before begins a section of a template, and if a name follows it.
    let (mut is_section, mut names) = (false, false);
    loop {
        match text.get(at)? {
            b';' => return Some(at),
            byte if byte.is_ascii_whitespace() => at = at.saturating_add(1),
            b'-' if text.get(at.saturating_add(1)) == Some(&b'-') => at = after_line(text, at),
            byte if byte.is_ascii_alphabetic() => {
                let end = after_word(text, at);
                let word = text.get(at..end).and_then(|word| std::str::from_utf8(word).ok());
                is_section = !names && word.and_then(Section::from_keyword).is_some();
                let before_name = ["TEMPLATE", "EXTENDS"]
                    .map(|known| known.eq_ignore_ascii_case(word.unwrap_or("")));
                names = before_name.contains(&true);
                at = end;
            }
            byte => {
                at = match byte {
                    b'"' => after_text(text, at)?,
                    b'{' if is_section => {
                        let start = at.saturating_add(1);
                        start.saturating_add(body_end(text.get(start..)?)?)
                    }
                    _ => at.saturating_add(1),
                };
                (is_section, names) = (false, false);
            }
        }
    }
}

/// Returns the offset after a word.
fn after_word(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    from.saturating_add(rest.iter().take_while(is_part).count())
}

/// Returns the offset after the closing quote of a string.
fn after_text(text: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote.saturating_add(1);
    loop {
        match text.get(at)? {
            b'"' => return Some(at.saturating_add(1)),
            b'\\' => at = at.saturating_add(2),
            _ => at = at.saturating_add(1),
        }
    }
}

fn after_line(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.iter().position(|byte| *byte == b'\n');
    length.map_or(text.len(), |length| from.saturating_add(length).saturating_add(1))
}

/// Returns the offset of the first byte that is neither white space nor in a comment.
fn skip_blank(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        match (text.get(at), text.get(at.saturating_add(1))) {
            (Some(byte), _) if byte.is_ascii_whitespace() => at = at.saturating_add(1),
            (Some(b'-'), Some(b'-')) => at = after_line(text, at),
            _ => return at.min(text.len()),
        }
    }
}

/// Returns `true` if a LET begins here.
fn is_let(text: &[u8], from: usize) -> bool {
    let start = skip_version(text, skip_blank(text, from));
    let found = word(text, start);
    text.get(found).is_some_and(|word| word.eq_ignore_ascii_case(b"LET"))
}

/// Returns the offset after `CAL/1`, if that begins here.
fn skip_version(text: &[u8], from: usize) -> usize {
    let head = word(text, from);
    let names_cal = text.get(head.clone()).is_some_and(|word| word.eq_ignore_ascii_case(b"CAL"));
    if !names_cal || text.get(head.end) != Some(&b'/') {
        return from;
    }
    skip_blank(text, word(text, head.end.saturating_add(1)).end)
}

fn word(text: &[u8], from: usize) -> Range<usize> {
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    from..from.saturating_add(length)
}

/// Counts the line ends between two offsets.
fn count_lines(text: &[u8], from: usize, to: usize) -> usize {
    let between = text.get(from..to).unwrap_or_default();
    between.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (Vec<String>, String) {
        let (entries, rest) = entries(text.as_bytes());
        let entries = entries.into_iter().map(|entry| match entry {
            Entry::Dot(text, line) => format!("{line}:{text}"),
            Entry::Statement(text, line) => format!("{line}:{}", String::from_utf8(text).unwrap()),
        });
        (entries.collect(), text.get(rest..).unwrap().trim().to_owned())
    }

    #[test]
    fn statements_end_at_semicolons_that_are_their_own() {
        for (text, expected, rest) in [
            ("", &[][..], ""),
            ("a;b ;c", &["0:a", "0:b"], "c"),
            ("a \"x;\\\";y\" ; b", &["0:a \"x;\\\";y\""], "b"),
            ("a -- no; end\nb;", &["0:a -- no; end\nb"], ""),
            ("-- only\n\n a;", &["2:a"], ""),
            (";; a;", &["0:a"], ""),
            ("LET $x = r; r $x;", &["0:LET $x = r; r $x"], ""),
            (
                "cal/1 let $x = r;\nlet $y = r; r $x; r;",
                &["0:cal/1 let $x = r;\nlet $y = r; r $x", "1:r"],
                "",
            ),
            ("LET $x = r;", &[], "LET $x = r;"),
            ("LETTER; b;", &["0:LETTER", "0:b"], ""),
            ("a \"open; b;", &[], "a \"open; b;"),
            (
                "define template t element { {{! ; } }} ; \" } footer -- ; {\n{;} }; b;",
                &["0:define template t element { {{! ; } }} ; \" } footer -- ; {\n{;} }", "1:b"],
                "",
            ),
            (
                "DEFINE TEMPLATE header { ELEMENT_OMIT {;}}; BATCH { header: r }; b",
                &["0:DEFINE TEMPLATE header { ELEMENT_OMIT {;}}", "0:BATCH { header: r }"],
                "b",
            ),
            ("DEFINE TEMPLATE t ELEMENT { a;", &[], "DEFINE TEMPLATE t ELEMENT { a;"),
        ] {
            let expected: Vec<String> = expected.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(shown(text), (expected, rest.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn lines_with_a_dot_are_commands_between_statements_only() {
        for (text, expected, rest) in [
            (".timer on\na;", &["0:.timer on", "1:a"][..], ""),
            ("a;\n-- c\n.timer on\n\n.b\n", &["0:a", "2:.timer on", "4:.b"], ""),
            ("a\n.b;\n", &["0:a\n.b"], ""),
            ("help\nEXIT;\n", &["0:.help", "1:.exit"], ""),
            ("helper\n", &[], "helper"),
            (".mode", &[], ".mode"),
        ] {
            let expected: Vec<String> = expected.iter().map(|one| (*one).to_owned()).collect();
            assert_eq!(shown(text), (expected, rest.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn what_is_finished_waits_for_nothing() {
        for (text, finished) in [
            ("", true),
            ("  -- nothing yet", true),
            ("RECALL", false),
            ("RECALL;", true),
            ("RECALL; RECALL", false),
            (".mode", true),
            ("quit", true),
            ("RECALL \"x;", false),
            ("LET $a = RECALL;", false),
        ] {
            assert_eq!(is_finished(text), finished, "{text:?}");
        }
    }

    #[test]
    fn the_end_of_input_ends_the_last_statement() {
        assert_eq!(final_entry(b"a;\n b \n", 2), Some(Entry::Statement(b"b".to_vec(), 1)));
        assert_eq!(final_entry(b"a; -- done\n", 2), None);
    }

    #[test]
    fn a_plan_is_asked_for_behind_the_lets() {
        for (text, body_of) in [
            ("RECALL", "RECALL"),
            ("LET $a = RECALL; RECALL x", "RECALL x"),
            ("-- why\nCAL/1 RECALL", "RECALL"),
            ("CAL/1 LET $a = r; -- c\n RECALL", "RECALL"),
        ] {
            assert_eq!(text.get(explain_offset(text.as_bytes())..), Some(body_of), "{text:?}");
        }
    }
}
