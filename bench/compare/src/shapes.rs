//! The questions of the comparison, as one table: what each binds, how many rows it wants, and how
//! it is answered. Keys are drawn from rows that are there.

use crate::ask::Ask;
use crate::data::{HUB, Kind, PEOPLE, Part, Row, STEP_MS};
use compare_facts::Random;

/// How an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Address and object of each row.
    Lines,
    /// Every row decoded.
    Decoded,
}

/// One row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// How it is answered.
    pub(crate) form: Form,
    /// Rows wanted.
    limit: usize,
    /// The question about what is known of one row; none where the row has not what is asked for.
    about: fn(&Row) -> Option<Ask>,
}

/// Rows a page of each shape holds.
const PAGE: usize = 20;
/// Rows of one subject that are decoded.
const LATEST: usize = 16;
/// Half of the time a time range spans.
const HALF_RANGE_MS: i64 = 500 * STEP_MS;

/// What is asked of the rows first stored.
pub(crate) const SHAPES: [Shape; 15] = [
    page("latest 20 of all", |_| Some(Ask::default())),
    page("latest 20 of a type", |row| Some(Ask { kind: Some(row.kind), ..Ask::default() })),
    page("s: latest 20 of a subject", |row| Some(bound(row, true, false, false))),
    page("p: latest 20 of a relation", |row| Some(bound(row, false, true, false))),
    page("o: latest 20 of an object", |row| object(row, false, false)),
    page("sp: subject and relation", |row| Some(bound(row, true, true, false))),
    page("so: subject and object", |row| object(row, true, false)),
    page("po: relation and object", |row| object(row, false, true)),
    page("spo: the whole triple", |row| object(row, true, true)),
    page("tag: latest 20", |row| Some(Ask { tag: row.tags.last().cloned(), ..Ask::default() })),
    page("user: latest 20", |row| {
        row.user.clone().map(|user| Ask { user: Some(user), ..Ask::default() })
    }),
    page("session: latest 20", |row| {
        row.session.clone().map(|session| Ask { session: Some(session), ..Ask::default() })
    }),
    page("time range of 1,000 s: latest 20", |row| {
        let range = (row.time_ms - HALF_RANGE_MS, row.time_ms + HALF_RANGE_MS);
        Some(Ask { time_ms: Some(range), ..Ask::default() })
    }),
    decoded("latest 16 of a subject of 12, decoded", LATEST, |row| {
        (row.namespace == PEOPLE).then(|| bound(row, true, false, false))
    }),
    decoded("(s, r) look-up: the latest, decoded", 1, |row| {
        Some(bound(row, true, true, false)).filter(|_| row.kind == Kind::Belief)
    }),
];

/// What is asked once one subject has rows in every namespace.
pub(crate) const HUB_SHAPES: [Shape; 3] = [
    decoded("latest 16 of a subject of 12, decoded, hub stored", LATEST, |row| {
        (row.namespace == PEOPLE).then(|| bound(row, true, false, false))
    }),
    decoded("latest 16 of the hub, every namespace, decoded", LATEST, |row| {
        (row.subject == HUB).then(|| bound(row, true, false, false))
    }),
    decoded("latest 16 of the hub in one namespace, decoded", LATEST, |row| {
        let namespace = Some(row.namespace.clone());
        (row.subject == HUB).then(|| Ask { namespace, ..bound(row, true, false, false) })
    }),
];

impl Shape {
    /// `count` questions about random rows; none where no row has what is asked for.
    #[must_use]
    pub(crate) fn asks(&self, data: Part<'_>, count: usize) -> Vec<Ask> {
        let mut random = Random::new(4);
        let able: Vec<&Row> = data.rows.iter().filter(|row| (self.about)(row).is_some()).collect();
        let ask = |_| {
            let about = random.pick(&able).and_then(|row| (self.about)(row))?;
            Some(Ask { limit: self.limit, ..about })
        };
        (0..count).filter_map(ask).collect()
    }
}

const fn page(name: &'static str, about: fn(&Row) -> Option<Ask>) -> Shape {
    Shape { name, form: Form::Lines, limit: PAGE, about }
}

const fn decoded(name: &'static str, limit: usize, about: fn(&Row) -> Option<Ask>) -> Shape {
    Shape { name, form: Form::Decoded, limit, about }
}

/// A question that binds these terms of a row.
fn bound(row: &Row, subject: bool, relation: bool, object: bool) -> Ask {
    Ask {
        subject: subject.then(|| row.subject.clone()),
        relation: relation.then(|| row.relation.clone()),
        object: row.object().filter(|_| object).map(str::to_owned),
        ..Ask::default()
    }
}

/// As [`bound`], with the object, of rows that have one.
fn object(row: &Row, subject: bool, relation: bool) -> Option<Ask> {
    row.object().map(|_| bound(row, subject, relation, true))
}
