//! A strict decoder of the TOON a context is written in, made from the rules of TOON 3.0; it knows
//! nothing of the encoder.

/// A value of a cell or of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Flag(bool),
    Number(String),
    Text(String),
}

/// An array of uniform objects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) key: String,
    pub(crate) fields: Vec<String>,
    pub(crate) rows: Vec<Vec<Scalar>>,
}

/// A document: its keys with single values, then its tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) pairs: Vec<(String, Scalar)>,
    pub(crate) tables: Vec<Table>,
}

/// Reads a document. A single table may have its rows at depth 0, as CAL writes a root array.
pub(crate) fn decode(text: &str) -> Result<Document, String> {
    let mut document = Document::default();
    if text == "[0]:" {
        return Ok(document);
    }
    if text.ends_with('\n') || text.lines().any(|line| line.ends_with(' ')) {
        return Err("a last newline or trailing space".to_owned());
    }
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let (key, rest) = key(line)?;
        let Some(header) = rest.strip_prefix('[') else {
            let value = rest.strip_prefix(": ").ok_or(format!("no value in {line:?}"))?;
            let mut cells = cells(value)?;
            if cells.len() != 1 || !document.tables.is_empty() {
                return Err(format!("{line:?} holds no single value, or stands behind a table"));
            }
            document.pairs.push((key, cells.remove(0)));
            continue;
        };
        let (count, rest) = header.split_once(']').ok_or("no ] in a header")?;
        let count: usize = count.parse().map_err(|_| format!("{count:?} is no length"))?;
        let fields = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix("}:"));
        let fields = fields.ok_or(format!("{line:?} has no fields"))?.split(',');
        let fields = fields.map(key_alone).collect::<Result<Vec<_>, _>>()?;
        let root = document.pairs.is_empty()
            && document.tables.is_empty()
            && lines.peek().is_some_and(|row| !row.starts_with("  "));
        let mut rows = Vec::new();
        for _ in 0..count {
            let line = lines.next().ok_or("fewer rows than announced")?;
            let row = if root { Some(line) } else { line.strip_prefix("  ") };
            let row = cells(row.ok_or(format!("{line:?} is not indented"))?)?;
            if row.len() != fields.len() {
                return Err(format!("{line:?} has {} cells for {fields:?}", row.len()));
            }
            rows.push(row);
        }
        if root && lines.peek().is_some() {
            return Err("text behind a root array".to_owned());
        }
        document.tables.push(Table { key, fields, rows });
    }
    Ok(document)
}

/// A key at the start of a line, and what follows it.
fn key(line: &str) -> Result<(String, &str), String> {
    if let Some(quoted) = line.strip_prefix('"') {
        return unquote(quoted);
    }
    let end = line.find([':', '[']).ok_or(format!("no key in {line:?}"))?;
    let (key, rest) = line.split_at(end);
    Ok((key_alone(key)?, rest))
}

fn key_alone(key: &str) -> Result<String, String> {
    if let Some(quoted) = key.strip_prefix('"') {
        return unquote(quoted).map(|(key, _)| key);
    }
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let bare =
        key.starts_with(letter) && key.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '.');
    if bare { Ok(key.to_owned()) } else { Err(format!("{key:?} is no bare key")) }
}

/// The values between commas.
fn cells(line: &str) -> Result<Vec<Scalar>, String> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let after = if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = unquote(quoted)?;
            cells.push(Scalar::Text(text));
            after
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            cells.push(bare(token)?);
            after
        };
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(cells),
            None => return Err(format!("{after:?} behind a quoted cell")),
        }
    }
}

fn bare(token: &str) -> Result<Scalar, String> {
    if token.is_empty()
        || token.trim() != token
        || token.contains(['"', '\\', ':', '[', ']', '{', '}'])
    {
        return Err(format!("{token:?} needs quotes"));
    }
    if token.chars().any(char::is_control) {
        return Err(format!("a control in {token:?}"));
    }
    Ok(match token {
        "null" => Scalar::Null,
        "true" => Scalar::Flag(true),
        "false" => Scalar::Flag(false),
        _ if is_number(token) => Scalar::Number(token.to_owned()),
        _ if token.starts_with('-') => return Err(format!("{token:?} reads as a list item")),
        _ => Scalar::Text(token.to_owned()),
    })
}

/// Digits, maybe with a sign, a fraction and an exponent.
fn is_number(token: &str) -> bool {
    let starts = token.strip_prefix('-').unwrap_or(token).starts_with(|c: char| c.is_ascii_digit());
    let ends = token.ends_with(|c: char| c.is_ascii_digit());
    starts && ends && token.parse::<f64>().is_ok()
}

/// The text up to the closing quote, and what follows it.
fn unquote(text: &str) -> Result<(String, &str), String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok((out, chars.as_str())),
            '\\' => out.push(match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('\\') => '\\',
                Some('"') => '"',
                other => return Err(format!("escape {other:?}")),
            }),
            c if c.is_control() => return Err(format!("{c:?} in quotes")),
            c => out.push(c),
        }
    }
    Err("no closing quote".to_owned())
}
