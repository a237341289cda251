//! One question, said without any store's language, and what it means: the scan every peer's
//! answer is checked against.

use grainstore::{ContentAddress, Grain};
use serde::{Deserialize, Serialize};

use crate::data::{Kind, Part, Row};

/// The newest `limit` rows for which every condition that is given holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The grain type.
    pub(crate) kind: Option<Kind>,
    /// Exactly this namespace.
    pub(crate) namespace: Option<String>,
    /// Exactly this subject.
    pub(crate) subject: Option<String>,
    /// Exactly this relation.
    pub(crate) relation: Option<String>,
    /// Exactly this object.
    pub(crate) object: Option<String>,
    /// Exactly this user.
    pub(crate) user: Option<String>,
    /// Exactly this session.
    pub(crate) session: Option<String>,
    /// Carries this tag.
    pub(crate) tag: Option<String>,
    /// Epoch milliseconds, both ends included.
    pub(crate) time_ms: Option<(i64, i64)>,
    /// Rows wanted at most.
    pub(crate) limit: usize,
}

/// One field of a row and where it is stored: the cheapest useful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The grain's address.
    pub(crate) address: ContentAddress,
    /// Its object; none for events.
    pub(crate) object: Option<String>,
}

/// A row with all its fields.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    /// The grain's address.
    pub(crate) address: ContentAddress,
    /// The grain, decoded and validated.
    pub(crate) grain: Grain,
}

impl From<&Hit> for Line {
    fn from(hit: &Hit) -> Self {
        Self { address: hit.address, object: hit.grain.text("object").map(str::to_owned) }
    }
}

impl Ask {
    /// Whether every condition holds for a row.
    #[must_use]
    pub(crate) fn matches(&self, row: &Row) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        self.kind.is_none_or(|kind| kind == row.kind)
            && same(&self.namespace, Some(&row.namespace))
            && same(&self.subject, Some(&row.subject))
            && same(&self.relation, Some(&row.relation))
            && same(&self.object, row.object())
            && same(&self.user, row.user.as_deref())
            && same(&self.session, row.session.as_deref())
            && self.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
            && self.time_ms.is_none_or(|(from, to)| (from..=to).contains(&row.time_ms))
    }

    /// The right answer, found by looking at every row.
    #[must_use]
    pub(crate) fn scan(&self, data: Part<'_>) -> Vec<Line> {
        let newest_first =
            data.rows.iter().zip(data.addresses).rev().filter(|(row, _)| self.matches(row));
        let lines = newest_first.map(|(row, address)| Line {
            address: *address,
            object: row.object().map(str::to_owned),
        });
        lines.take(self.limit).collect()
    }
}
