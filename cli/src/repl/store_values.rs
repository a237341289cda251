//! Subjects and relations for completion, from the newest grains the session sees.
//!
//! The work is bounded, and the result is cached until the next statement. If the rules of the store audit
//! reads, these reads are audited too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use grainstore::PageOptions;
use grainstore::cal::Query;
use grainstore_serve::{StoredValues, ValuesOfGrains};
use serde_json::json;

use crate::error::Result;
use crate::reach::Reach;

/// Grains that are read.
const MAX_GRAINS: usize = 500;
/// The longest time a read may take.
const PATIENCE: Duration = Duration::from_millis(250);

/// The cached values of a store.
pub(crate) struct Newest {
    reach: Reach,
    kept: RefCell<Option<ValuesOfGrains>>,
}

impl Newest {
    pub(crate) fn of(reach: &Reach) -> Self {
        Self { reach: reach.clone(), kept: RefCell::new(None) }
    }

    /// Clears the cache, since the next statement may change the store.
    pub(crate) fn forget(&self) {
        self.kept.replace(None);
    }

    fn cached(&self) -> ValuesOfGrains {
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
fn read_newest(reach: &Reach) -> ValuesOfGrains {
    let Some(session) = reach.session() else { return ask_newest(reach).unwrap_or_default() };
    let page = PageOptions { count_to: 0, timeout: PATIENCE, ..PageOptions::first(MAX_GRAINS) };
    let Ok(answer) = session.query(&Query::default(), &page) else {
        return ValuesOfGrains::default();
    };
    let texts = |name: &'static str| {
        let texts = answer.results.iter().filter_map(move |row| row.grain.text(name));
        texts.map(ToString::to_string).collect()
    };
    ValuesOfGrains { subjects: texts("subject"), relations: texts("relation") }
}

/// Asks the process that has the store open for the newest grains.
fn ask_newest(reach: &Reach) -> Result<ValuesOfGrains> {
    reach.read("query", &json!({ "limit": MAX_GRAINS }))
}
