//! Subjects and relations for completion, from the newest grains the session sees.
//!
//! The work is bounded, and the result is cached until the next statement. If the rules of the store audit
//! reads, these reads are audited too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use grainstore::PageOptions;
use grainstore::cal::Query;
use grainstore_serve::StoredValues;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Result;
use crate::reach::Reach;

/// Grains that are read.
const MAX_GRAINS: usize = 500;
/// The longest time a read may take.
const PATIENCE: Duration = Duration::from_millis(250);

/// The cached values of a store.
pub(crate) struct Newest {
    reach: Reach,
    kept: RefCell<Option<Found>>,
}

#[derive(Debug, Clone, Default)]
struct Found {
    subjects: BTreeSet<String>,
    relations: BTreeSet<String>,
}

impl Newest {
    pub(crate) fn of(reach: &Reach) -> Self {
        Self { reach: reach.clone(), kept: RefCell::new(None) }
    }

    /// Clears the cache, since the next statement may change the store.
    pub(crate) fn forget(&self) {
        self.kept.replace(None);
    }

    fn cached(&self) -> Found {
        self.kept.borrow_mut().get_or_insert_with(|| read_newest(&self.reach)).clone()
    }
}

impl StoredValues for Newest {
    fn subjects(&self) -> BTreeSet<String> {
        self.cached().subjects
    }

    fn relations(&self) -> BTreeSet<String> {
        self.cached().relations
    }
}

/// Reads the newest grains. A refusal or a timeout gives no values.
fn read_newest(reach: &Reach) -> Found {
    let Some(session) = reach.session() else { return ask_newest(reach).unwrap_or_default() };
    let page = PageOptions { count_to: 0, timeout: PATIENCE, ..PageOptions::first(MAX_GRAINS) };
    let Ok(answer) = session.query(&Query::default(), &page) else { return Found::default() };
    let texts = |name: &'static str| {
        let texts = answer.results.iter().filter_map(move |row| row.grain.text(name));
        texts.map(ToString::to_string).collect()
    };
    Found { subjects: texts("subject"), relations: texts("relation") }
}

/// What is wanted of an answer to `query`.
#[derive(Deserialize)]
struct Page {
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    grain: Names,
}

#[derive(Deserialize)]
struct Names {
    subject: Option<Value>,
    relation: Option<Value>,
}

/// Asks the process that has the store open for the newest grains.
fn ask_newest(reach: &Reach) -> Result<Found> {
    let page: Page = reach.read("query", &json!({ "limit": MAX_GRAINS }))?;
    let mut found = Found::default();
    for Row { grain: Names { subject, relation } } in page.results {
        let text = |value: Option<Value>| value.and_then(|value| Some(value.as_str()?.to_owned()));
        found.subjects.extend(text(subject));
        found.relations.extend(text(relation));
    }
    Ok(found)
}
