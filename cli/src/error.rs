//! The one error type of the command line: a stable code, a message, a hint, and the exit code.
//!
//! Converts errors of the store, the format and CAL without changing their codes.

use std::borrow::Cow;
use std::io::{self, Write};

use grainstore::{Finding, cal, format};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::patience::Stalled;
use crate::text::printable;

/// Hint for damage to a store, if there is no better one.
const DAMAGED: &str =
    "copy the directory first; `grain verify` tells what is damaged; restore a backup";

/// Results of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason a command ended early.
#[derive(Debug)]
pub(crate) enum Error {
    /// The reader of stdout has closed it: no error, and there is nowhere to report one.
    HungUp,
    /// The error was reported already; only the exit code remains.
    Told(u8),
    /// The operation was refused or failed.
    Refused(Box<Refusal>),
}

/// A refusal or failure, as it is reported.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// The CAL error object (CAL 22), for JSON output.
    cal: Option<Value>,
    /// The position in the query, drawn for people.
    drawing: Option<String>,
    /// The accepted values, for people; JSON output has them in the CAL error object.
    valid: Vec<Cow<'static, str>>,
    /// True if the error is about the input, not about stored data.
    of_input: bool,
    /// True if the command line itself was wrong.
    of_usage: bool,
}

/// The codes that this crate raises itself; all others come from the crates below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Malformed input.
    Corrupt,
    /// Input over a size limit.
    TooLarge,
    /// An invalid option or value.
    Schema,
    /// A missing, wrong or unexpected key.
    Key,
    /// The target exists already.
    Conflict,
    /// No such store or grain.
    NotFound,
    /// An address prefix that is ambiguous.
    HashLength,
    /// A name that is no grain type.
    UnknownType,
    /// More than one answer may hold.
    Limit,
    /// A file that cannot be read or written.
    Io,
    /// A signature that is not valid.
    Signature,
    /// A store that was found damaged.
    Integrity,
    /// Cancelled work, by its CAL code.
    Cancelled,
    /// An invalid capability token.
    Token,
}

impl Code {
    /// The stable code.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Corrupt => "ERR_CORRUPT",
            Self::Signature => "ERR_SIGNATURE",
            Self::Integrity => "ERR_INTEGRITY",
            Self::Token => "ERR_TOKEN",
            Self::TooLarge => "ERR_TOO_LARGE",
            Self::Schema => "ERR_SCHEMA",
            Self::Key => "ERR_KEY",
            Self::Conflict => "ERR_CONFLICT",
            Self::NotFound => "ERR_NOT_FOUND",
            Self::HashLength => "ERR_HASH_LENGTH",
            Self::UnknownType => "ERR_UNKNOWN_TYPE",
            Self::Limit => "ERR_LIMIT",
            Self::Io => "ERR_IO",
            Self::Cancelled => "CAL-E082",
        }
    }
}

impl Error {
    /// An error of this crate.
    pub(crate) fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::refused(code.name(), message.into(), hint.into())
    }

    /// An error in the use of the command line.
    pub(crate) fn usage(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let mut error = Self::new(code, message, hint);
        if let Self::Refused(refusal) = &mut error {
            refusal.of_usage = true;
        }
        error
    }

    /// Converts an error of the command-line parser.
    pub(crate) fn of_arguments(wrong: &clap::Error) -> Self {
        let told = wrong.to_string();
        let told = told.strip_prefix("error: ").unwrap_or(&told);
        let (what, rest) = told.split_once("\n\nUsage: ").unwrap_or((told, ""));
        let what = what.split("\n\nFor more information").next().unwrap_or_default();
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let hint = match rest.lines().next() {
            Some(usage) => format!("write {usage}"),
            None => "`grain help` lists what there is".to_owned(),
        };
        Self::usage(Code::Schema, what, hint)
    }

    /// Converts a CAL error, with its position drawn under the query.
    pub(crate) fn cal(error: &cal::Error, query: &str) -> Self {
        let hint = cal_hint(error);
        let mut object = serde_json::to_value(error).unwrap_or_default();
        if let Value::Object(fields) = &mut object {
            fields.insert("hint".to_owned(), Value::from(hint));
        }
        Self::Refused(Box::new(Refusal {
            code: Cow::Owned(error.code().to_owned()),
            message: error.message().to_owned(),
            hint: hint.to_owned(),
            cal: Some(object),
            drawing: error.position().and_then(|place| draw(query, place)),
            valid: error.valid_values().to_vec(),
            of_input: false,
            of_usage: false,
        }))
    }

    /// Adds where in the input it happened.
    pub(crate) fn within(mut self, place: &str) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.message = format!("{place}: {}", refusal.message);
        }
        self
    }

    /// Replaces the hint if the error has this code.
    pub(crate) fn with_hint_for(mut self, code: &str, hint: &str) -> Self {
        if let Self::Refused(refusal) = &mut self
            && refusal.code == code
        {
            hint.clone_into(&mut refusal.hint);
            if let Some(Value::Object(object)) = &mut refusal.cal {
                object.insert("hint".to_owned(), Value::from(hint));
            }
        }
        self
    }

    /// Converts a bad finding of `grain doctor`.
    pub(crate) fn doctor(bad: Finding) -> Self {
        let code = bad.code.unwrap_or(Code::Io.name());
        Self::refused(code, bad.detail, bad.advice.unwrap_or_default())
    }

    /// Returns `true` if the error has this code.
    pub(crate) fn is(&self, code: Code) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == code.name())
    }

    /// Returns the exit code: 1 refused or failed, 2 wrong usage, 3 store open elsewhere, 4 stored data
    /// damaged.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::HungUp => 0,
            Self::Told(code) => *code,
            Self::Refused(refusal) if refusal.of_usage => 2,
            Self::Refused(refusal) => match refusal.code.as_ref() {
                "ERR_BUSY" => 3,
                "ERR_INTEGRITY" if !refusal.of_input => 4,
                _ => 1,
            },
        }
    }

    /// Reports the error: two or three lines for people, or one JSON object.
    pub(crate) fn write(&self, to: &mut dyn Write, json: bool) -> io::Result<()> {
        let Self::Refused(refusal) = self else {
            return Ok(());
        };
        if json {
            return writeln!(to, "{}", json!({ "error": refusal.object() }));
        }
        writeln!(to, "error: {}: {}", refusal.code, printable(&refusal.message))?;
        if let Some(drawing) = &refusal.drawing {
            writeln!(to, "{drawing}")?;
        }
        if !refusal.hint.is_empty() {
            writeln!(to, "  hint: {}", printable(&refusal.hint))?;
        }
        // The values are not repeated if the hint names them all.
        if !refusal.valid.iter().all(|valid| refusal.hint.contains(&**valid)) {
            writeln!(to, "  one of: {}", printable(&refusal.valid.join(", ")))?;
        }
        Ok(())
    }

    fn refused(code: impl Into<Cow<'static, str>>, message: String, hint: String) -> Self {
        let code = code.into();
        Self::Refused(Box::new(Refusal {
            code,
            message,
            hint,
            cal: None,
            drawing: None,
            valid: Vec::new(),
            of_input: false,
            of_usage: false,
        }))
    }

    /// Marks the error as one about the input.
    fn of_input(mut self) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.of_input = true;
        }
        self
    }
}

impl Refusal {
    /// Returns code, message and hint, or the CAL error object with a hint.
    pub(crate) fn object(&self) -> Value {
        self.cal.clone().unwrap_or_else(
            || json!({ "code": self.code, "message": self.message, "hint": self.hint }),
        )
    }

    /// Returns the error object without the message, for responses that have it elsewhere.
    pub(crate) fn data(&self) -> Value {
        self.cal.clone().unwrap_or_else(|| json!({ "code": self.code, "hint": self.hint }))
    }
}

impl From<grainstore::Error> for Error {
    fn from(error: grainstore::Error) -> Self {
        if error.is_of_input() {
            return Self::refused(error.code(), error.to_string(), error.hint().to_owned())
                .of_input();
        }
        let hint = store_hint(error.code(), error.hint());
        Self::refused(error.code(), error.to_string(), hint.to_owned())
    }
}

/// Errors of the format concern input bytes, before the store is involved.
impl From<format::Error> for Error {
    fn from(error: format::Error) -> Self {
        Self::refused(error.code(), error.to_string(), error.hint().to_owned()).of_input()
    }
}

/// For output errors; errors of reading name the file.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::HungUp;
        }
        if Stalled::is(&error) {
            let message = "nobody read the events of the stream any longer, so it was cancelled";
            let hint = "read them while it runs: a stream waits 60 seconds for its reader";
            return Self::new(Code::Cancelled, message, hint);
        }
        Self::new(Code::Io, format!("cannot write the output: {error}"), "check the disk")
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

/// Returns the hint for an error of the store. The format's hint for damaged bytes assumes that they can be
/// fetched again from elsewhere, which those of a store cannot.
fn store_hint<'h>(code: &str, hint: &'h str) -> &'h str {
    let of_format = format::ErrorKind::Integrity.hint();
    if code == Code::Integrity.name() && hint == of_format { DAMAGED } else { hint }
}

/// Returns the hint for a CAL error, that of the store if the error is the store's.
fn cal_hint(error: &cal::Error) -> &str {
    match error.kind() {
        cal::ErrorKind::Memory => store_hint(error.code(), error.suggestion()),
        _ => error.suggestion(),
    }
}

/// Most lines drawn of a position that spans more.
const DRAWN_LINES: usize = 6;

/// Draws the lines of the query that an error points at, with a mark under the position in each.
fn draw(query: &str, place: cal::Position) -> Option<String> {
    let mut start = 0_usize;
    let lines = query.split('\n').map(|line| {
        let at = start;
        start = start.saturating_add(line.len()).saturating_add(1);
        (at, line.trim_end_matches('\r'))
    });
    let lines = lines.skip(place.line.checked_sub(1)?);
    let about = lines.take_while(|(at, _)| *at < place.end.max(place.start.saturating_add(1)));
    let mut drawn = Vec::new();
    for (at, line) in about.filter(|(_, line)| !line.trim().is_empty()).take(DRAWN_LINES) {
        let place = place.start.saturating_sub(at)..place.end.saturating_sub(at).min(line.len());
        drawn.push(underlined(line, place));
    }
    (!drawn.is_empty()).then(|| drawn.join("\n"))
}

/// Most characters drawn of a line.
const WIDEST: usize = 120;

/// Draws a line and a mark under these bytes of it, by their width on a terminal. A long line is cut around
/// the position.
fn underlined(line: &str, place: std::ops::Range<usize>) -> String {
    let before = line.get(..place.start).unwrap_or_default().chars().count();
    let cut = if line.chars().count() > WIDEST { before.saturating_sub(WIDEST / 2) } else { 0 };
    let at = |number: usize| line.char_indices().nth(number).map_or(line.len(), |(at, _)| at);
    let (first, last) = (at(cut), at(cut.saturating_add(WIDEST)));
    let place = place.start.saturating_sub(first)..place.end.clamp(first, last) - first;
    let line = line.get(first..last).unwrap_or_default();
    let indent = line.len().saturating_sub(line.trim_start().len());
    // A position that began on a line above is marked from the first non-blank character of this line.
    let from = if place.start == 0 { indent.min(place.end) } else { place.start };
    let width = |text: Option<&str>| text.map_or(0, |text| printable(text).width());
    let before = width(line.get(..from));
    let mark = "^".repeat(width(line.get(from..place.end)).max(1));
    format!("  {}\n  {}{mark}", printable(line), " ".repeat(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &Error, json: bool) -> String {
        let mut text = Vec::new();
        error.write(&mut text, json).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn of_a_long_line_what_stands_around_the_place_is_drawn() {
        let query = format!("RECALL ABOUT \"{}\" LIMIT x", "y".repeat(10_000));
        let drawn = told(&Error::cal(&cal::parse(&query).unwrap_err(), &query), false);
        assert!(drawn.contains("CAL-E001") && drawn.contains("^^^"), "{drawn}");
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest < 200, "{widest}");
    }

    #[test]
    fn exit_codes_follow_the_code() {
        for (code, exit) in [("ERR_BUSY", 3), ("ERR_INTEGRITY", 4), ("ERR_SCHEMA", 1)] {
            let error = Error::refused(code, String::new(), String::new());
            assert_eq!(error.exit_code(), exit, "{code}");
        }
        let given = Error::from(format::Error::new(format::ErrorKind::Integrity, "no"));
        assert_eq!(
            (given.exit_code(), told(&given, false).contains("restore a backup")),
            (1, false)
        );
        assert_eq!(Error::HungUp.exit_code(), 0);
    }

    #[test]
    fn a_closed_pipe_is_the_quiet_end_and_other_failures_are_not() {
        let closed = Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(told(&closed, false), "");
        let full = Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(told(&full, false).starts_with("error: ERR_IO: cannot write the output"));
    }

    #[test]
    fn an_error_reads_as_lines_or_as_one_object_and_forges_neither() {
        let error = Error::new(Code::Schema, "no \u{1b}[31mred", "drop it").within("line 3");
        assert_eq!(
            told(&error, false),
            "error: ERR_SCHEMA: line 3: no \\u{1b}[31mred\n  hint: drop it\n"
        );
        let object: Value = serde_json::from_str(&told(&error, true)).unwrap();
        assert_eq!(object["error"]["code"], "ERR_SCHEMA");
        assert_eq!(object["error"]["hint"], "drop it");
    }

    #[test]
    fn a_cal_error_is_drawn_under_its_line() {
        let query = "RECALL beliefs\n WHERE nonsense = 1";
        let error = Error::cal(&cal::parse("RECALL beleifs").unwrap_err(), "RECALL beleifs");
        assert!(told(&error, false).contains("\n  RECALL beleifs\n         ^^^^^^^\n"));
        let place = cal::Position { start: 22, end: 30, line: 2, col: 8 };
        assert_eq!(draw(query, place).unwrap(), "   WHERE nonsense = 1\n         ^^^^^^^^");
    }

    #[test]
    fn what_would_be_accepted_is_listed_once() {
        let of = |query: &str| told(&Error::cal(&cal::parse(query).unwrap_err(), query), false);
        let listed = of("RECALL AS x");
        assert!(listed.contains("hint: expected sml, ") && !listed.contains("one of"), "{listed}");
        assert!(of("RECALL AS markdwn").contains("one of: sml, "));
        assert!(!of("RECALL ABOUT").contains("one of"));
    }

    #[test]
    fn a_place_of_several_lines_is_marked_in_each_by_its_width() {
        let query = "RECALL (a\r\n\n  b \u{1b}c) x";
        let place = cal::Position { start: 7, end: 19, line: 1, col: 8 };
        assert_eq!(
            draw(query, place).unwrap(),
            "  RECALL (a\n         ^^\n    b \\u{1b}c) x\n    ^^^^^^^^^^"
        );
        let wide = "ABOUT \"漢字\" x";
        let place = cal::Position { start: 15, end: 16, line: 1, col: 12 };
        assert_eq!(draw(wide, place).unwrap(), "  ABOUT \"漢字\" x\n               ^");
        let end = cal::Position { start: 6, end: 6, line: 1, col: 7 };
        assert_eq!(draw("RECALL", end).unwrap(), "  RECALL\n        ^");
        let long = "x\n".repeat(20);
        let place = cal::Position { start: 0, end: 40, line: 1, col: 1 };
        assert_eq!(draw(&long, place).unwrap().lines().count(), 2 * DRAWN_LINES);
    }

    #[test]
    fn damage_in_a_store_is_not_fetched_again_and_better_hints_stay() {
        let of_format = format::ErrorKind::Integrity.hint();
        assert_eq!(store_hint("ERR_INTEGRITY", of_format), DAMAGED);
        assert_eq!(store_hint("ERR_INTEGRITY", "grain reindex"), "grain reindex");
        assert_eq!(store_hint("ERR_BUSY", "wait"), "wait");
    }
}
