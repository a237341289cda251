//! How exports look from outside, and how a source looks.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::json;
use crate::migrate::source::{Source, SourceFile};

/// Bytes of a file that are looked at to tell its format.
pub(super) const LOOK_BYTES: u64 = 64 << 10;

/// How an export looks.
pub(super) enum Looks {
    /// One of these sets of names is in a JSON document, or the first line, or the first row of a table. With the names of
    /// the files to look in if it is a folder or an archive.
    /// A single document that is an object and has none of the names of the sets, nor of `also`, is of no such format.
    Names {
        files: &'static [&'static str],
        sets: &'static [&'static [&'static str]],
        also: &'static [&'static str],
    },
    /// A folder of Markdown whose files have one of these in their names, or in their front matter.
    Markdown { names: &'static [&'static str], front: &'static [&'static str] },
    /// Like anything.
    Anything,
}

/// How a source looks: the names in the beginning of its files.
pub(super) struct Look {
    /// For each file that tells: its last name, and the names in it.
    documents: Vec<(String, BTreeSet<String>)>,
    /// Whether the last of them begins as an object with names.
    is_object: bool,
    markdown: Vec<String>,
    front: String,
}

impl Look {
    pub(super) fn of(source: &Source) -> Result<Self> {
        let tells = |file: &&SourceFile| {
            source.single().is_some() || file.base_name().starts_with("conversations")
        };
        let (mut documents, mut is_object) = (Vec::new(), false);
        for file in source.files().iter().filter(tells).take(4) {
            let beginning = source.beginning(file, LOOK_BYTES)?;
            let outline =
                json::outline(beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&beginning));
            is_object = outline.iter().any(|name| !name.starts_with(['[', '"']));
            documents.push((file.base_name().to_owned(), names_in(&beginning)));
        }
        let notes = || source.files().iter().filter(|file| file.has_extension("md"));
        let mut front = String::new();
        for file in notes().take(4) {
            let beginning = source.beginning(file, LOOK_BYTES / 16)?;
            let text = String::from_utf8_lossy(&beginning);
            let block = text.strip_prefix("---").and_then(|text| text.split("\n---").next());
            front.push_str(block.unwrap_or_default());
        }
        let markdown = notes().map(|file| file.name.clone()).collect();
        Ok(Self { documents, is_object, markdown, front })
    }
}

/// The names in the beginning of a document, of JSON lines, or of a table.
fn names_in(beginning: &[u8]) -> BTreeSet<String> {
    let found = json::outline(beginning);
    if !found.is_empty() {
        return found;
    }
    let first = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let columns = String::from_utf8_lossy(first);
    columns
        .split(',')
        .map(|name| name.trim_matches(['"', ' ', '\r', '\u{feff}']).to_owned())
        .collect()
}

impl Looks {
    /// Returns `false` for an object that has none of the names that one of this format may have.
    pub(super) fn may_be(&self, look: &Look) -> bool {
        let Self::Names { sets, also, .. } = self else { return true };
        let known = sets.iter().flat_map(|set| set.iter()).flat_map(|place| place.split("[]."));
        let known: BTreeSet<&str> = known.chain(also.iter().copied()).collect();
        look.documents.iter().any(|(_, names)| {
            let is_object = look.is_object && !names.is_empty();
            !is_object || names.iter().any(|name| known.contains(name.as_str()))
        })
    }

    /// Returns `true` if an export of this format looks so.
    pub(super) fn fit(&self, look: &Look) -> bool {
        match self {
            Self::Anything => true,
            Self::Names { files, sets, .. } => look.documents.iter().any(|(name, names)| {
                let has = |set: &&[&str]| set.iter().all(|name| names.contains(*name));
                let is_named =
                    look.documents.len() == 1 || files.is_empty() || files.contains(&name.as_str());
                is_named && sets.iter().any(has)
            }),
            Self::Markdown { names, front } => {
                let has_name = |name: &&str| look.markdown.iter().any(|file| file.contains(name));
                let has_field = |field: &&str| {
                    look.front.lines().any(|line| line.starts_with(&format!("{field}:")))
                };
                names.iter().any(has_name) || front.iter().any(has_field)
            }
        }
    }
}
