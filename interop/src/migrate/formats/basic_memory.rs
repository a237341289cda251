//! basic-memory: Markdown notes with front matter, whose lists have observations and relations.
//!
//! A note is known as a whole, and each observation and relation of it besides.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::migrate::format::Ask;
use crate::migrate::markdown::{MAX_NOTE_BYTES, Note};
use crate::migrate::record::{Body, Record, Sink, Who, relation, rest, text, texts};
use crate::migrate::source::SourceFile;
use crate::migrate::time::{Dated, Unit, instant};

/// The relation of a link that is in the text of a note.
const LINKS_TO: &str = "links_to";
/// Bytes of the name of a note, which is repeated with each of its statements, and of a name that relations point at.
const MAX_NAME_BYTES: usize = 512;
/// Tags of a note that are repeated with each of its statements, and their bytes in all. The note itself has all.
const MAX_REPEATED_TAGS: usize = 64;
const MAX_REPEATED_TAG_BYTES: usize = 1024;

/// Front matter that has a place.
const USED: [&str; 8] =
    ["title", "permalink", "tags", "created", "created_at", "date", "updated", "modified"];

pub(crate) fn read(ask: &Ask<'_>, sink: &mut dyn Sink) -> Result<()> {
    let mut reader = Reader { ask, titles: BTreeSet::new(), targets: BTreeSet::new() };
    for file in ask.source.files() {
        match file.has_extension("md") {
            true => reader.file(file, sink)?,
            false => sink.skip(&file.name, "it is no Markdown")?,
        }
    }
    for target in reader.targets.difference(&reader.titles) {
        sink.note(format!("no note is called {target:?}, which relations point at"));
    }
    Ok(())
}

struct Reader<'r> {
    ask: &'r Ask<'r>,
    /// What notes are called, in small letters.
    titles: BTreeSet<String>,
    /// What relations point at, in small letters.
    targets: BTreeSet<String>,
}

/// A line of a note that says something by itself.
#[derive(Debug, PartialEq, Eq)]
enum Statement<'l> {
    Observation { category: &'l str, said: &'l str },
    Relation { name: &'l str, target: &'l str },
}

impl Reader<'_> {
    fn file(&mut self, file: &SourceFile, sink: &mut dyn Sink) -> Result<()> {
        let note = self.ask.source.text(file, MAX_NOTE_BYTES).and_then(|text| Note::parse(&text));
        let note = match note {
            Ok(note) => note,
            Err(error) => return sink.refuse(&file.name, error),
        };
        let path = file.name.rsplit_once('.').map_or(file.name.as_str(), |(path, _)| path);
        let title = text(&note.front, "title").unwrap_or(file.stem());
        let permalink = text(&note.front, "permalink").unwrap_or(path);
        if [title, permalink].iter().any(|name| name.len() > MAX_NAME_BYTES) {
            let message = format!("the name of a note has {MAX_NAME_BYTES} bytes at most");
            return sink.refuse(&file.name, Error::limit(message));
        }
        self.titles.extend([title, permalink, path, file.stem()].map(str::to_lowercase));
        let base = self.base(&note.front, file);
        let said = note.body.trim();
        if !said.is_empty() {
            let record = Record {
                rest: rest(&note.front, &USED),
                body: Body::knows(title, said),
                ..base.clone()
            };
            sink.record(format!("note {permalink}"), record)?;
        }
        let base = Record { tags: repeated(&base.tags), ..base };
        let mut told = BTreeSet::new();
        for (number, line) in (1..).zip(note.body.lines()) {
            for statement in statements(line) {
                let id = statement.id(permalink);
                // The same line twice in a note says no more.
                if told.insert(id.clone()) {
                    let record = self.statement(&statement, title, &base);
                    let place = format!("{}: line {number} of its text", file.name);
                    sink.record(id, Record { place, ..record })?;
                }
            }
        }
        match said.is_empty() && told.is_empty() {
            true => sink.skip(&file.name, "the note is empty"),
            false => Ok(()),
        }
    }

    fn base(&self, front: &Map<String, Value>, file: &SourceFile) -> Record {
        let dates = ["created", "created_at", "date"].map(|name| front.get(name));
        let created = Dated::first(dates, Unit::Seconds).or(|| Dated::of_file(file.modified));
        let updated = front.get("updated").or_else(|| front.get("modified"));
        let tags = match front.get("tags") {
            Some(Value::String(tags)) => tags
                .split(',')
                .map(|tag| tag.trim().to_owned())
                .filter(|tag| !tag.is_empty())
                .collect(),
            tags => texts(tags),
        };
        Record {
            updated: updated.and_then(|at| instant(at, Unit::Seconds)),
            tags,
            who: Who { user: self.ask.user.map(str::to_owned), ..Who::default() },
            ..Record::new(&file.name, "note", Body::knows("", ""), created)
        }
    }

    fn statement(&mut self, statement: &Statement<'_>, title: &str, base: &Record) -> Record {
        match *statement {
            Statement::Observation { category, said } => {
                let words = said.split_whitespace();
                let own =
                    words.filter_map(|word| word.strip_prefix('#')).filter(|tag| !tag.is_empty());
                let mut tags = base.tags.clone();
                tags.extend(own.map(str::to_owned));
                let body = Body::fact(title, relation(category), said);
                Record { kind: "observation", body, tags, ..base.clone() }
            }
            Statement::Relation { name, target } => {
                if target.len() <= MAX_NAME_BYTES {
                    self.targets.insert(target.to_lowercase());
                }
                let body = Body::fact(title, relation(name), target);
                Record { kind: "relation", body, ..base.clone() }
            }
        }
    }
}

/// The tags of a note that its statements have too.
fn repeated(tags: &[String]) -> Vec<String> {
    let mut bytes = 0_usize;
    let fits = |tag: &&String| {
        bytes = bytes.saturating_add(tag.len());
        bytes <= MAX_REPEATED_TAG_BYTES
    };
    tags.iter().take(MAX_REPEATED_TAGS).take_while(fits).cloned().collect()
}

impl Statement<'_> {
    fn id(&self, permalink: &str) -> String {
        let (kind, parts) = match self {
            Self::Observation { category, said } => ("observation", [permalink, *category, *said]),
            Self::Relation { name, target } => ("relation", [permalink, *name, *target]),
        };
        format!("{kind} {}", Value::from(parts.to_vec()))
    }
}

/// What a line says: `- [category] text`, `- relation [[target]]`, or links within other text.
fn statements(line: &str) -> Vec<Statement<'_>> {
    let line = line.trim();
    let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).map(str::trim);
    if let Some(observation) = item.and_then(observation) {
        return vec![observation];
    }
    let mut links = links(line);
    if let (Some(item), [target]) = (item, links.as_slice())
        && let Some((name, _)) = item.split_once("[[")
        && !name.trim().is_empty()
        && name.split_whitespace().count() <= 5
    {
        return vec![Statement::Relation { name: name.trim(), target }];
    }
    links.dedup();
    links.into_iter().map(|target| Statement::Relation { name: LINKS_TO, target }).collect()
}

fn observation(item: &str) -> Option<Statement<'_>> {
    let (category, said) = item.strip_prefix('[')?.split_once(']')?;
    let (category, said) = (category.trim(), said.trim());
    // Boxes to tick and links are no categories.
    let is_box = matches!(category, "" | "x" | "X" | "-");
    let is_link = category.starts_with('[') || said.starts_with(['(', ']', '[']);
    (!is_box && !is_link && !said.is_empty()).then_some(Statement::Observation { category, said })
}

/// The targets of the links of a line; what stands behind a bar is how the link is shown.
fn links(line: &str) -> Vec<&str> {
    let inner = line.split("[[").skip(1).filter_map(|part| part.split_once("]]"));
    let targets = inner.map(|(link, _)| link.split('|').next().unwrap_or(link).trim());
    targets.filter(|target| !target.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_are() {
        let cases: [(&str, &[(&str, &str)]); 11] = [
            (
                "- [method] Pour slowly #brew (by hand)",
                &[("method", "Pour slowly #brew (by hand)")],
            ),
            ("* [tip] Wait", &[("tip", "Wait")]),
            ("- [ ] to do", &[]),
            ("- [x] done", &[]),
            ("- [a link](https://example.org)", &[]),
            ("- part_of [[Tea]]", &[("part_of", "Tea")]),
            ("- pairs well with [[Cake|cakes]] (sometimes)", &[("pairs well with", "Cake")]),
            ("- [[Tea]]", &[("links_to", "Tea")]),
            ("See [[Tea]] and [[Cake]].", &[("links_to", "Tea"), ("links_to", "Cake")]),
            ("- [[", &[]),
            ("- [", &[]),
        ];
        for (line, expected) in cases {
            let found: Vec<_> = statements(line);
            let found: Vec<_> = found
                .iter()
                .map(|statement| match statement {
                    Statement::Observation { category, said } => (*category, *said),
                    Statement::Relation { name, target } => (*name, *target),
                })
                .collect();
            assert_eq!(found, expected, "{line}");
        }
    }
}
