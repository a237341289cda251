//! The table of dot commands, which the parser, the help and the completion share.

use grainstore::cal::{Format, vocabulary};
use serde_json::Value;

use crate::error::{Code, Error, Result};

/// A row of the table.
pub(crate) struct Dot {
    pub(crate) name: &'static str,
    /// Its arguments, for the help.
    pub(crate) arguments: &'static str,
    /// Its effect, in a few words.
    pub(crate) summary: &'static str,
    parse: fn(&str) -> Result<Command>,
}

/// A parsed dot command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Help,
    Mode(Option<Mode>),
    Timer(Option<bool>),
    Explain(Explain),
    Pager(Option<bool>),
    Param(Param),
    Read(String),
    /// A file, or `None` for the terminal.
    Output(Option<String>),
    Stats,
    Audit(u64),
    Tables,
    Schema(Option<String>),
    History {
        clear: bool,
    },
    Exit,
}

/// `.explain`: the plan of one statement, or a switch for all that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Explain {
    Statement(String),
    Switch(Option<bool>),
}

/// `.param`: lists the parameters, removes all, or binds one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Param {
    List,
    Clear,
    Bind(String, Value),
}

/// The display of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Rows that fit the terminal; text if a statement asks for a format.
    Table,
    /// The text of a format, if an answer has one.
    As(Format),
}

/// The entries `.audit` shows without an argument.
const DEFAULT_AUDIT_ENTRIES: u64 = 20;

/// All dot commands, in the order of the help.
#[rustfmt::skip]
pub(crate) const DOT_COMMANDS: [Dot; 14] = [
    Dot { name: ".help", arguments: "", summary: "this list", parse: |rest| no_arguments(rest, Command::Help) },
    Dot { name: ".mode", arguments: "[table|FORMAT]", summary: "how answers are shown", parse: parse_mode },
    Dot { name: ".timer", arguments: "[on|off]", summary: "how long each statement takes", parse: |rest| Ok(Command::Timer(parse_switch(rest)?)) },
    Dot { name: ".explain", arguments: "[on|off|STATEMENT]", summary: "the plan of a statement, or of each", parse: parse_explain },
    Dot { name: ".param", arguments: "[NAME=VALUE|clear]", summary: "bind $NAME; VALUE as JSON, else text", parse: parse_param },
    Dot { name: ".read", arguments: "FILE", summary: "run what stands in a file", parse: |rest| Ok(Command::Read(required(rest, ".read FILE")?)) },
    Dot { name: ".output", arguments: "[FILE]", summary: "answers into a file; alone: here again", parse: |rest| Ok(Command::Output(optional(rest))) },
    Dot { name: ".tables", arguments: "", summary: "the grain types, and how many current grains each has", parse: |rest| no_arguments(rest, Command::Tables) },
    Dot { name: ".schema", arguments: "[TYPE]", summary: "the grain types, or the fields of one", parse: |rest| Ok(Command::Schema(optional(rest))) },
    Dot { name: ".stats", arguments: "", summary: "figures of the store", parse: |rest| no_arguments(rest, Command::Stats) },
    Dot { name: ".audit", arguments: "[N]", summary: "the last entries of the audit log", parse: parse_audit },
    Dot { name: ".history", arguments: "[clear]", summary: "where what is typed is kept; forget it", parse: parse_history },
    Dot { name: ".pager", arguments: "[on|off]", summary: "long answers screen by screen", parse: |rest| Ok(Command::Pager(parse_switch(rest)?)) },
    Dot { name: ".exit", arguments: "", summary: "leave; so does Ctrl-D", parse: |rest| no_arguments(rest, Command::Exit) },
];

impl Command {
    /// Parses a line that begins with a dot.
    pub(crate) fn parse(line: &str) -> Result<Self> {
        // A semicolon after a dot command is a habit and not part of its argument.
        let line = line.trim().trim_end_matches(';').trim_end();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = if name.eq_ignore_ascii_case(".quit") { ".exit" } else { name };
        let found = DOT_COMMANDS.iter().find(|dot| dot.name.eq_ignore_ascii_case(name));
        let Some(dot) = found else { return Err(unknown_command(name)) };
        (dot.parse)(rest.trim())
    }
}

impl Mode {
    /// Returns the name.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Table => "table".to_owned(),
            Self::As(format) => format.name().to_owned(),
        }
    }
}

/// Returns the values of `.mode`.
pub(crate) fn mode_names() -> impl Iterator<Item = String> {
    let formats = Format::ALL.iter().map(|format| format.name().to_owned());
    std::iter::once(Mode::Table.name()).chain(formats)
}

fn unknown_command(name: &str) -> Error {
    let hint = match vocabulary::closest(name, DOT_COMMANDS.iter().map(|dot| dot.name)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => ".help lists what there is".to_owned(),
    };
    Error::usage(Code::Schema, format!("{name} is no command of the prompt"), hint)
}

fn no_arguments(rest: &str, command: Command) -> Result<Command> {
    if rest.is_empty() {
        return Ok(command);
    }
    let message = format!("nothing stands behind this command: {rest}");
    Err(Error::usage(Code::Schema, message, ".help lists what each takes"))
}

fn optional(rest: &str) -> Option<String> {
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn required(rest: &str, form: &str) -> Result<String> {
    optional(rest).ok_or_else(|| {
        Error::usage(Code::Schema, "what it is about is missing", format!("write {form}"))
    })
}

fn parse_switch(rest: &str) -> Result<Option<bool>> {
    match rest.to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => {
            let message = format!("{other} is neither on nor off");
            Err(Error::usage(Code::Schema, message, "write on or off, or nothing to be told"))
        }
    }
}

fn parse_mode(rest: &str) -> Result<Command> {
    if rest.is_empty() {
        return Ok(Command::Mode(None));
    }
    if rest.eq_ignore_ascii_case("table") {
        return Ok(Command::Mode(Some(Mode::Table)));
    }
    match Format::from_name(rest) {
        Some(format) => Ok(Command::Mode(Some(Mode::As(format)))),
        None => {
            let hint = format!("one of: {}", mode_names().collect::<Vec<_>>().join(", "));
            Err(Error::usage(Code::Schema, format!("{rest} is no mode"), hint))
        }
    }
}

fn parse_explain(rest: &str) -> Result<Command> {
    Ok(Command::Explain(match parse_switch(rest) {
        Ok(from_now) => Explain::Switch(from_now),
        Err(_) => Explain::Statement(rest.to_owned()),
    }))
}

fn parse_param(rest: &str) -> Result<Command> {
    Ok(Command::Param(match rest {
        "" => Param::List,
        "clear" => Param::Clear,
        rest => {
            let bound = crate::commands::parse_param(rest.trim_start_matches('$'));
            let (name, value) = bound.map_err(|hint| {
                Error::usage(Code::Schema, format!("{rest} binds no parameter"), hint)
            })?;
            Param::Bind(name, value)
        }
    }))
}

fn parse_audit(rest: &str) -> Result<Command> {
    if rest.is_empty() {
        return Ok(Command::Audit(DEFAULT_AUDIT_ENTRIES));
    }
    rest.parse().map(Command::Audit).map_err(|_| {
        Error::usage(Code::Schema, format!("{rest} is no number of entries"), "write .audit 20")
    })
}

fn parse_history(rest: &str) -> Result<Command> {
    match rest {
        "" => Ok(Command::History { clear: false }),
        "clear" => Ok(Command::History { clear: true }),
        other => {
            let message = format!(".history does not know {other}");
            Err(Error::usage(Code::Schema, message, "write .history, or .history clear"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        let mut text = Vec::new();
        crate::error::write(&Command::parse(line).unwrap_err(), &mut text, false).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn every_command_of_the_contract_is_read() {
        // The dot commands of docs/prompt.md.
        for name in [
            ".help", ".mode", ".timer", ".explain", ".param", ".output", ".stats", ".audit",
            ".tables", ".schema", ".exit", ".quit", ".HELP;",
        ] {
            assert!(Command::parse(name).is_ok(), "{name}");
        }
        assert_eq!(Command::parse(".read a b.cal").unwrap(), Command::Read("a b.cal".to_owned()));
    }

    #[test]
    fn what_stands_behind_a_command_is_read() {
        for (line, command) in [
            (".mode JSON", Command::Mode(Some(Mode::As(Format::Json)))),
            (".mode table", Command::Mode(Some(Mode::Table))),
            (".timer off", Command::Timer(Some(false))),
            (".explain on", Command::Explain(Explain::Switch(Some(true)))),
            (
                ".explain RECALL goals;",
                Command::Explain(Explain::Statement("RECALL goals".to_owned())),
            ),
            (".param $n=5", Command::Param(Param::Bind("n".to_owned(), Value::from(5)))),
            (".param who=al x", Command::Param(Param::Bind("who".to_owned(), Value::from("al x")))),
            (".audit", Command::Audit(20)),
            (".audit 3", Command::Audit(3)),
            (".history clear", Command::History { clear: true }),
        ] {
            assert_eq!(Command::parse(line).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        for (line, expected) in [
            (".tmier on", "did you mean .timer?"),
            (".xyzzy", ".help lists what there is"),
            (".mode fancy", "one of: table, sml, markdown"),
            (".timer maybe", "write on or off"),
            (".read", "write .read FILE"),
            (".audit many", "write .audit 20"),
            (".param x", "write it as NAME=VALUE"),
            (".exit now", ".help lists what each takes"),
            (".history all", ".history clear"),
        ] {
            let told = told(line);
            assert!(told.contains(expected), "{line}: {told}");
            assert_eq!(Command::parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
