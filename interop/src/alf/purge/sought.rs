//! What is looked for of records that go: their texts, the files they came from, their ids in side indexes.

use std::collections::BTreeSet;
use std::io::Read;

use super::mentions::{Finder, Mentions};
use crate::alf::names::VECTORS_ENTRY;
use crate::error::Result;
use crate::json::Value;

/// The folder of what other programs keep of the memory: indexes, embeddings.
const MEMORY_FOLDER: &str = "memory/";

/// What is looked for.
#[derive(Debug, Default)]
pub(in super::super) struct Sought {
    texts: Mentions,
    ids: Mentions,
    own_files: BTreeSet<String>,
    has_records: bool,
}

impl Sought {
    /// Looks for a record by its id.
    pub(in super::super) fn add_id(&mut self, id: &str) {
        self.ids.add_id(id);
    }

    /// Looks for what a record says, and for the file that it came from.
    pub(in super::super) fn add(&mut self, record: &Value) {
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        self.has_records = true;
        self.texts.add(&text(record, "content"));
        let source = record.get("source").cloned().unwrap_or_default();
        let (runtime, file) = (text(&source, "runtime"), text(&source, "origin_file"));
        if !file.is_empty() {
            self.own_files.insert(format!("raw/{runtime}/{file}"));
        }
    }

    /// Returns which of these files have something of a record: its text, or in a side index its id; or are what it came
    /// from. Of vectors without ids nobody knows whose they are.
    ///
    /// # Errors
    /// Those of `open`, and of what it opens.
    pub(in super::super) fn copies<R: Read>(
        &self,
        files: &[&str],
        open: impl Fn(&str) -> Result<Option<R>>,
    ) -> Result<BTreeSet<String>> {
        let is_own = |name: &str| {
            self.own_files.contains(name) || (self.has_records && name == VECTORS_ENTRY)
        };
        let own = files.iter().filter(|name| is_own(name));
        let mut found: BTreeSet<String> = own.map(|name| (*name).to_owned()).collect();
        let mut look = |finder: &Finder, folder: &str| {
            for name in files.iter().filter(|name| is_in(name, folder)) {
                if !found.contains(*name)
                    && let Some(source) = open(name)?
                    && finder.is_in(source)?
                {
                    found.insert((*name).to_owned());
                }
            }
            Ok(())
        };
        self.texts.each_finder(|finder| look(finder, ""))?;
        self.ids.each_finder(|finder| look(finder, MEMORY_FOLDER))?;
        Ok(found)
    }

    /// Calls `each` with finders of the texts.
    ///
    /// # Errors
    /// As [`Mentions::each_finder`].
    pub(in super::super) fn each_finder(
        &self,
        each: impl FnMut(&Finder) -> Result<()>,
    ) -> Result<()> {
        self.texts.each_finder(each)
    }
}

/// Returns `true` for a file of a folder, whose name may be written in either case.
fn is_in(name: &str, folder: &str) -> bool {
    name.get(..folder.len()).is_some_and(|start| start.eq_ignore_ascii_case(folder))
}
