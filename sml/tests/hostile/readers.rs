//! Strict readers of the other formats, written from their rules. Each answers what stands around
//! the grains, and of each grain a line that says all a reader can tell.

#![expect(clippy::string_slice, reason = "a wrong cut in a reader fails its test")]

use std::collections::BTreeMap;

use grainstore_sml::Format;
use serde_json::Value;

use crate::decoder::{Scalar, decode};

/// A text as its reader sees it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Read {
    pub(crate) name: Option<String>,
    pub(crate) intent: Option<String>,
    /// What TOON says it used, and of how much.
    pub(crate) used: Option<(usize, usize)>,
    pub(crate) grains: Vec<String>,
}

/// The types and their plurals.
pub(crate) const TYPES: [(&str, &str); 10] = [
    ("belief", "beliefs"),
    ("event", "events"),
    ("state", "states"),
    ("workflow", "workflows"),
    ("action", "actions"),
    ("observation", "observations"),
    ("goal", "goals"),
    ("reasoning", "reasonings"),
    ("consensus", "consensuses"),
    ("consent", "consents"),
];

pub(crate) fn read(format: Format, text: &str) -> Result<Read, String> {
    match format {
        Format::Json => json(text),
        Format::Yaml => yaml(text),
        Format::Text => lines(text),
        Format::Markdown => markdown(text),
        Format::Triples => triples(text),
        Format::Toon => toon(text),
        Format::Sml => Err("SML has a reader of its own".to_owned()),
    }
}

fn json(text: &str) -> Result<Read, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let known = ["name", "intent", "grains"];
    let object = value.as_object().ok_or("no object")?;
    if let Some(other) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("key {other:?}"));
    }
    let own = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let grains = object.get("grains").and_then(Value::as_array).ok_or("no grains")?;
    let grains = grains.iter().map(Value::to_string).collect();
    Ok(Read { name: own("name"), intent: own("intent"), used: None, grains })
}

/// YAML as far as the format uses it, to the same values as JSON.
fn yaml(text: &str) -> Result<Read, String> {
    let mut read = Read::default();
    let mut lines = text.strip_suffix('\n').ok_or("no last newline")?.split('\n').peekable();
    for (key, slot) in [("name: ", &mut read.name), ("intent: ", &mut read.intent)] {
        if let Some(value) = lines.next_if(|line| line.starts_with(key)) {
            *slot = scalar(&value[key.len()..])?.as_str().map(str::to_owned);
        }
    }
    match lines.next() {
        Some("grains: []") if lines.peek().is_none() => return Ok(read),
        Some("grains:") if lines.peek().is_some() => {}
        other => return Err(format!("{other:?} for grains")),
    }
    while let Some(line) = lines.next() {
        let kind = line.strip_prefix("  - type: ").ok_or(format!("{line:?} for a grain"))?;
        let text =
            lines.next().and_then(|line| line.strip_prefix("    text: ")).ok_or("no text")?;
        let mut attributes = serde_json::Map::new();
        match lines.next() {
            Some("    attributes: {}") => {}
            Some("    attributes:") => {
                while let Some(line) = lines.next_if(|line| line.starts_with("      ")) {
                    let (key, value) = line.trim_start().split_once(": ").ok_or("no pair")?;
                    attributes.insert(key.to_owned(), scalar(value)?);
                }
            }
            other => return Err(format!("{other:?} for attributes")),
        }
        let text = scalar(text)?;
        let grain = serde_json::json!({"type": kind, "text": text, "attributes": attributes});
        read.grains.push(grain.to_string());
    }
    Ok(read)
}

fn scalar(text: &str) -> Result<Value, String> {
    if text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        return serde_json::from_str(text).map_err(|error| format!("{text:?}: {error}"));
    }
    match text {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let other = ["null", "yes", "no", "on", "off", "y", "n"];
    let means_else = other.contains(&text.to_lowercase().as_str())
        || !text.starts_with(char::is_alphabetic)
        || text.contains(": ")
        || text.contains(" #")
        || text.ends_with([' ', ':'])
        || text.chars().any(char::is_control);
    if means_else { Err(format!("{text:?} is no plain scalar")) } else { Ok(text.into()) }
}

fn lines(text: &str) -> Result<Read, String> {
    let mut read = Read::default();
    for line in text.lines() {
        let (kind, said) = line
            .strip_prefix('[')
            .and_then(|line| line.split_once("] "))
            .ok_or(format!("{line:?} has no type"))?;
        read.grains.push(sentence(kind, said)?);
    }
    Ok(read)
}

fn markdown(text: &str) -> Result<Read, String> {
    let mut read = Read::default();
    let mut kind = None;
    for (at, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## Context").filter(|_| at == 0) {
            read.intent = title.strip_prefix(": ").map(unescape);
        } else if let Some(plural) = line.strip_prefix("**").and_then(|l| l.strip_suffix("**")) {
            let known = TYPES.iter().find(|(_, known)| *known == plural.to_lowercase());
            kind = Some(known.ok_or(format!("heading {plural:?}"))?.0);
        } else if let Some(said) = line.strip_prefix("- ") {
            if starts_block(said) || has_markup(said) {
                return Err(format!("{said:?} is not text alone"));
            }
            read.grains.push(sentence(kind.ok_or("a bullet before a heading")?, said)?);
        } else if !line.is_empty() {
            return Err(format!("{line:?} is neither heading nor bullet"));
        }
    }
    Ok(read)
}

/// Whether CommonMark would read this as more than a paragraph of the bullet.
fn starts_block(said: &str) -> bool {
    let rest = said.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.len() < said.len()
        && [".", ")"].iter().any(|sign| {
            rest.strip_prefix(sign).is_some_and(|r| r.is_empty() || r.starts_with(' '))
        });
    numbered
        || said.starts_with(['#', '>', '-', '+', '*', '=', '~', '|', '\t'])
        || said.starts_with("    ")
}

/// Whether there is code, emphasis by stars, a link or a tag in it.
fn has_markup(said: &str) -> bool {
    unescaped(said).any(|(_, c)| matches!(c, '`' | '*' | '[' | ']' | '<' | '~'))
}

/// The characters that no backslash takes the meaning of, with their places.
fn unescaped(text: &str) -> impl DoubleEndedIterator<Item = (usize, char)> {
    let mut escaped = false;
    let mut found = Vec::new();
    let chars: Vec<_> = text.char_indices().collect();
    for (at, (place, c)) in chars.iter().enumerate() {
        let next = chars.get(at + 1).map(|(_, next)| *next);
        if escaped {
            escaped = false;
        } else if *c == '\\' && next.is_some_and(|next| next.is_ascii_punctuation()) {
            escaped = true;
        } else {
            found.push((*place, *c));
        }
    }
    found.into_iter()
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let entity = [("lt;", '<'), ("amp;", '&')]
            .into_iter()
            .find(|(tail, _)| c == '&' && chars.clone().take(tail.len()).eq(tail.chars()));
        match (chars.peek(), entity) {
            (_, Some((tail, meant))) => {
                out.push(meant);
                chars.by_ref().take(tail.len()).for_each(drop);
            }
            (Some(next), _) if c == '\\' && next.is_ascii_punctuation() => {
                out.extend(chars.next());
            }
            _ => out.push(c),
        }
    }
    out
}

/// `lead: text (list)`, the lead and the list where they stand.
fn sentence(kind: &str, said: &str) -> Result<String, String> {
    let (mut rest, mut list) = (said, Vec::new());
    if unescaped(said).next_back().is_some_and(|(at, c)| c == ')' && at + 1 == said.len()) {
        let open = unescaped(said).rfind(|(_, c)| *c == '(').ok_or("no ( for the last )")?.0;
        let inside = &said[open + 1..said.len() - 1];
        rest = said[..open].strip_suffix(' ').ok_or("no space before the list")?;
        let mut start = 0;
        for (at, c) in unescaped(inside) {
            if c == ',' && inside[at + 1..].starts_with(' ') {
                list.push(unescape(&inside[start..at]));
                start = at + 2;
            }
        }
        list.push(unescape(&inside[start..]));
    }
    let colon = unescaped(rest)
        .find(|(at, c)| *c == ':' && (rest[at + 1..].is_empty() || rest[at + 1..].starts_with(' ')))
        .filter(|_| kind != "belief");
    let (lead, text) = match colon {
        Some((at, _)) => (Some(unescape(&rest[..at])), rest[at + 1..].trim_start_matches(' ')),
        None => (None, rest),
    };
    Ok(format!("{kind} {lead:?} {:?} {list:?}", unescape(text)))
}

fn triples(text: &str) -> Result<Read, String> {
    let mut read = Read::default();
    for line in text.lines() {
        let parts: Vec<_> = line.split('\t').collect();
        if parts.len() != 3 {
            return Err(format!("{line:?} is no triple"));
        }
        read.grains.push(format!("{parts:?}"));
    }
    Ok(read)
}

fn toon(text: &str) -> Result<Read, String> {
    let document = decode(text)?;
    let mut read = Read::default();
    for (key, value) in document.pairs {
        let Scalar::Text(value) = value else { return Err(format!("{key} is {value:?}")) };
        match key.as_str() {
            "context" => read.name = Some(value),
            "intent" => read.intent = Some(value),
            "tokens" | "grains" => {
                let (used, total) = value.split_once('/').ok_or("no /")?;
                let number = |text: &str| text.parse().map_err(|_| format!("{text:?}"));
                read.used = Some((number(used)?, number(total)?));
            }
            other => return Err(format!("key {other:?}")),
        }
    }
    for table in document.tables {
        let known = TYPES.iter().find(|(_, plural)| *plural == table.key);
        let kind = known.ok_or(format!("table {:?}", table.key))?.0;
        for row in table.rows {
            let cells = table.fields.iter().cloned().zip(row);
            let cells: BTreeMap<_, _> = cells.filter(|(_, cell)| *cell != Scalar::Null).collect();
            read.grains.push(format!("{kind} {cells:?}"));
        }
    }
    Ok(read)
}
