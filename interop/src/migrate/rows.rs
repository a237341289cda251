//! Lists of objects, in whichever form a tool or a database wrote them: a JSON list, one in an object, JSON lines, CSV.
//!
//! One row is held at a time. Knows forms, not what rows say.

use std::io::Read;

use grainstore::EpochMs;
use serde_json::{Map, Value};

use super::record::Sink;
use super::source::{Source, SourceFile};
use crate::archive::unread;
use crate::error::{Error, Result};
use crate::json::{
    self, Budget, Document, Element, Lines, MAX_ELEMENT_BYTES, MAX_TOKEN_BYTES, Metered,
};

/// Most bytes of a line of JSON lines, and of the text of a mapping.
pub(super) const MAX_ROW_BYTES: usize = 4 << 20;
/// Bytes that are looked at to tell the form.
const LOOK_BYTES: u64 = 64 << 10;

/// A row of a list.
#[derive(Debug)]
pub(super) struct Row {
    /// Where it is: the line, or the place in the list.
    pub(super) place: String,
    /// The list it is of, where an object has several.
    pub(super) list: String,
    pub(super) members: Map<String, Value>,
    /// When the file was changed last.
    pub(super) modified: Option<EpochMs>,
}

/// What takes the rows; it hands the sink through.
pub(super) type OnRow<'o> = &'o mut dyn FnMut(Row, &mut dyn Sink) -> Result<()>;

/// Endings of the names of files that have lists.
pub(super) const ENDINGS: [&str; 4] = ["json", "jsonl", "ndjson", "csv"];

/// The files of an export that may have lists: the only one, or those with such a name. The others are left out.
///
/// # Errors
/// Those of the sink.
pub(super) fn files<'s>(source: &'s Source, sink: &mut dyn Sink) -> Result<Vec<&'s SourceFile>> {
    let mut found = Vec::new();
    for file in source.files() {
        match source.single().is_some() || ENDINGS.iter().any(|ending| file.has_extension(ending)) {
            true => found.push(file),
            false => sink.skip(&file.name, "it is no list of records")?,
        }
    }
    Ok(found)
}

/// The form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Object,
    Lines,
    Csv,
}

/// Reads the rows of a file. `lists` are the members that have them where the file is one object; what it has
/// besides is no row. Rows that cannot be read are left out.
///
/// # Errors
/// `ERR_CORRUPT` for a file that is no list in any form; `ERR_LIMIT`, `ERR_IO`; those of the sink.
pub(super) fn read(
    source: &Source,
    file: &SourceFile,
    lists: &[&str],
    sink: &mut dyn Sink,
    on: OnRow<'_>,
) -> Result<()> {
    let form = Form::of(&source.beginning(file, LOOK_BYTES)?, lists);
    let text = without_mark(source.reader(file)?).map_err(unread);
    let named = |error: Error| match error.entry() {
        None => error.in_entry(&file.name),
        Some(_) => error,
    };
    let text = text.map_err(named)?;
    match form {
        Form::Json => json_rows(text, file, lists, sink, on).map_err(named),
        Form::Object => one_row(text, file, sink, on).map_err(named),
        Form::Lines => line_rows(text, file, sink, on),
        Form::Csv => csv_rows(text, file, sink, on),
    }
}

impl Form {
    fn of(beginning: &[u8], lists: &[&str]) -> Self {
        let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        match text.trim_ascii_start().first() {
            Some(b'[' | b'"') => Self::Json,
            Some(b'{') => {
                let names = json::outline(text);
                let is_document = lists.iter().any(|list| names.contains(&format!("{list}[]")));
                // An object that is written over several lines is one row.
                let first = text.trim_ascii_start().split_inclusive(|byte| *byte == b'\n').next();
                let first = first.unwrap_or_default();
                let is_broken = first.ends_with(b"\n") && json::parse(first).is_err();
                match (is_document, is_broken) {
                    (true, _) => Self::Json,
                    (false, true) => Self::Object,
                    (false, false) => Self::Lines,
                }
            }
            None => Self::Lines,
            Some(_) => Self::Csv,
        }
    }
}

/// Passes over a byte order mark at the start of a text.
pub(super) fn without_mark<R: Read>(mut source: R) -> std::io::Result<impl Read> {
    let mut start = Vec::new();
    (&mut source).take(3).read_to_end(&mut start)?;
    if start == b"\xef\xbb\xbf" {
        start.clear();
    }
    Ok(std::io::Cursor::new(start).chain(source))
}

fn json_rows(
    text: impl Read,
    file: &SourceFile,
    lists: &[&str],
    sink: &mut dyn Sink,
    on: OnRow<'_>,
) -> Result<()> {
    let document = json::elements(text, lists, &mut |element| {
        let Element { list, number, value } = element;
        let place = match list {
            "" => format!("{}: element {number}", file.name),
            _ => format!("{}: {list} {number}", file.name),
        };
        match value {
            Some(Value::Object(members)) => {
                let (list, modified) = (list.to_owned(), file.modified);
                on(Row { place, list, members, modified }, &mut *sink)
            }
            Some(_) => sink.misshapen(&place, "it is no object"),
            None => sink.refuse(&place, Error::limit("it takes more memory than a record may")),
        }
    })?;
    match document {
        Document::List | Document::Object(_) => Ok(()),
        Document::Other(_) => Err(Error::schema("it is no list of records")),
    }
}

/// Reads an object that is one row.
fn one_row(text: impl Read, file: &SourceFile, sink: &mut dyn Sink, on: OnRow<'_>) -> Result<()> {
    match json::elements(text, &[], &mut |_| Ok(()))? {
        Document::Object(members) => {
            let (place, modified) = (file.name.clone(), file.modified);
            on(Row { place, list: String::new(), members, modified }, sink)
        }
        _ => Err(Error::schema("it is no object")),
    }
}

fn line_rows(text: impl Read, file: &SourceFile, sink: &mut dyn Sink, on: OnRow<'_>) -> Result<()> {
    let mut good = 0_u64;
    for line in Lines::limited(text, MAX_ROW_BYTES, MAX_ELEMENT_BYTES) {
        let line = line.map_err(|error| error.in_entry(&file.name))?;
        let place = format!("{}: line {}", file.name, line.number);
        match line.value {
            Ok(Value::Object(members)) => {
                good = good.saturating_add(1);
                let (list, modified) = (String::new(), file.modified);
                on(Row { place, list, members, modified }, &mut *sink)?;
            }
            Ok(_) => sink.misshapen(&place, "it is no object")?,
            // A file that begins with no line of JSON is of another form.
            Err(error) if good == 0 && line.number == 1 => {
                return Err(error.in_entry(&file.name));
            }
            Err(error) => sink.refuse(&place, error)?,
        }
    }
    Ok(())
}

fn csv_rows(text: impl Read, file: &SourceFile, sink: &mut dyn Sink, on: OnRow<'_>) -> Result<()> {
    let budget = Budget::unlimited();
    let metered = Metered { source: text, budget: &budget };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(metered);
    let unreadable = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(_) if budget.has_long_token() => {
            Error::limit(format!("a row has {MAX_TOKEN_BYTES} bytes at most"))
        }
        csv::ErrorKind::Io(error) => unread(error),
        kind => Error::corrupt(format!("no CSV: {kind:?}")),
    };
    let at_file = |error: Error| error.in_entry(&file.name);
    let header = reader.byte_headers().cloned().map_err(|error| at_file(unreadable(error)))?;
    let columns = header.iter().map(|name| Ok(std::str::from_utf8(name)?.trim().to_owned()));
    let columns: Result<Vec<String>, std::str::Utf8Error> = columns.collect();
    let columns = columns.map_err(|_| at_file(Error::corrupt("it is no UTF-8")))?;
    if columns.len() < 2 {
        let why = "it is neither JSON nor a table with a line of names";
        return Err(at_file(Error::corrupt(why)));
    }
    let mut record = csv::ByteRecord::new();
    loop {
        budget.begin_token();
        if !reader.read_byte_record(&mut record).map_err(|error| at_file(unreadable(error)))? {
            return Ok(());
        }
        let line = record.position().map_or(0, csv::Position::line);
        let place = format!("{}: line {line}", file.name);
        match members(&columns, &record) {
            Ok(members) => {
                let (list, modified) = (String::new(), file.modified);
                on(Row { place, list, members, modified }, &mut *sink)?;
            }
            Err(error) => sink.refuse(&place, error)?,
        }
    }
}

/// A row of a table as an object. An empty field is none.
fn members(columns: &[String], record: &csv::ByteRecord) -> Result<Map<String, Value>> {
    if record.len() != columns.len() {
        let (found, named) = (record.len(), columns.len());
        return Err(Error::schema(format!("it has {found} fields, and {named} are named")));
    }
    let mut members = Map::new();
    for (name, field) in columns.iter().zip(record.iter()) {
        let field = std::str::from_utf8(field).map_err(|_| Error::corrupt("it is no UTF-8"))?;
        if !field.is_empty() && members.insert(name.clone(), Value::from(field)).is_some() {
            return Err(Error::schema(format!("two columns are called {name}")));
        }
    }
    Ok(members)
}
