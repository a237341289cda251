//! How a query is answered, for people: the lists that are walked, how long they are, and what a
//! run found.

use grainstore_cal::{Cancel, Query};
use grainstore_index::text::{Occur, Question};
use grainstore_index::{Object, Shape, Word};
use serde::Serialize;

use super::access::Access;
use super::search::{FEW, Sought};
use crate::error::Result;
use crate::session::Session;
use crate::view::View;

/// How a query is answered.
#[derive(Debug, Clone, Serialize)]
pub struct QueryPlan {
    /// The index that drives: `SPO`, `PSO`, `structural_tags`, `time`, `address`, `text` ...
    pub index: String,
    /// Every list looked up, the driving one first; several are intersected.
    pub lists: Vec<QueryList>,
    /// Grains that will be looked at where all are wanted: the length of the shortest list.
    pub estimated: u64,
    /// The most grains that can be looked at; nothing where the list was judged by a sample.
    pub at_most: Option<u64>,
    /// Grains of the session's namespace that were read to see whether they match, once it was run;
    /// one that is found in several ways counts for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned: Option<u64>,
    /// Grains that matched among them, once it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
}

/// One list of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct QueryList {
    /// Its index.
    pub index: String,
    /// What is looked up in it; several lookups are one list, merged. Of words, a session with a
    /// namespace or a user is told what it asked for, others every word that was looked up and how many
    /// grains have it.
    pub lookups: Vec<String>,
    /// How long it is; of words, to a session with a namespace or a user, how many grains its other
    /// conditions leave.
    pub rows: u64,
    /// Whether the rows were counted; else they were judged by a sample.
    pub exact: bool,
}

impl QueryPlan {
    /// The same with what a run found.
    pub(super) fn with_counts(self, scanned: u64, matched: u64) -> Self {
        Self { scanned: Some(scanned), matched: Some(matched), ..self }
    }

    /// The same driven by words, each with the number of grains that have it.
    fn behind_words(mut self, words: Vec<(String, u64)>) -> Self {
        let rows = words.iter().map(|(_, grains)| *grains).fold(0, u64::saturating_add);
        let lookups =
            words.into_iter().map(|(word, grains)| format!("{word:?} in {grains} grains"));
        let index = "text".to_owned();
        let list = QueryList { index, lookups: lookups.collect(), rows, exact: false };
        self.estimated = self.estimated.min(rows);
        self.index = list.index.clone();
        self.at_most = None;
        self.lists.insert(0, list);
        self
    }

    /// The same driven by words, for a session that may not see how often they stand elsewhere: what
    /// it asked for, and no word or number that is not its own.
    fn behind_asked(mut self, question: &Question) -> Self {
        let asked = question.clauses().iter().filter(|clause| clause.occur != Occur::MustNot);
        let lookups = asked.map(ToString::to_string).collect();
        let index = "text".to_owned();
        self.index = index.clone();
        self.at_most = None;
        self.lists.insert(0, QueryList { index, lookups, rows: self.estimated, exact: false });
        self
    }

    fn of_addresses(count: usize) -> Self {
        let rows = wide(count);
        let index = "address".to_owned();
        let lists = vec![QueryList { index, lookups: Vec::new(), rows, exact: true }];
        Self {
            index: "address".to_owned(),
            lists,
            estimated: rows,
            at_most: Some(rows),
            scanned: None,
            matched: None,
        }
    }
}

/// The plan of a query on a view.
pub(crate) fn explain(view: &View, session: &Session, query: &Query) -> Result<QueryPlan> {
    if query.is_impossible() {
        return Ok(QueryPlan::of_addresses(0));
    }
    let plan = by_conditions(view, session, query)?;
    match query.search() {
        Some(search) if plan.estimated > FEW => {
            let sought = Sought::of(session, query.reach(), search)?;
            if !session.sees_everything() {
                return Ok(plan.behind_asked(sought.question()));
            }
            let texts = view.texts(session.store().inner().library(), &Cancel::new())?;
            let asked = texts.map(|texts| texts.ask(sought.question())).transpose()?;
            Ok(plan.behind_words(asked.map(|asked| asked.terms()).unwrap_or_default()))
        }
        _ => Ok(plan),
    }
}

/// The plan of a query, whatever it searches for.
fn by_conditions(view: &View, session: &Session, query: &Query) -> Result<QueryPlan> {
    if query.address().is_some() {
        return Ok(QueryPlan::of_addresses(1));
    }
    if let Some(addresses) = query.addresses() {
        return Ok(QueryPlan::of_addresses(addresses.len()));
    }
    let reader = view.index();
    let access = Access::choose(&reader, session, query)?;
    let mut lists = Vec::new();
    for list in &access.lists {
        let size = match list.size {
            Some(size) => size,
            None => list.measure(&reader, (&access.spaces, access.times))?,
        };
        lists.push(QueryList {
            index: list.index_name(),
            lookups: list.shapes.iter().map(lookup).collect(),
            rows: size.postings,
            exact: size.exact,
        });
    }
    let driving = lists.first();
    Ok(QueryPlan {
        index: driving.map_or_else(String::new, |list| list.index.clone()),
        estimated: driving.map_or(0, |list| list.rows),
        at_most: driving.filter(|list| list.exact).map(|list| list.rows),
        lists,
        scanned: None,
        matched: None,
    })
}

/// What a shape looks up, as a person reads it.
fn lookup(shape: &Shape<'_>) -> String {
    let word = |word: &Word<'_>| match word {
        Word::Plain(text) => format!("{text:?}"),
        Word::Token(_) => "(blinded)".to_owned(),
    };
    match shape {
        Shape::All => "everything".to_owned(),
        Shape::Type(grain_type) => format!("type = {grain_type}"),
        Shape::Value(field, value) => format!("{} = {}", field.name(), word(value)),
        Shape::Triple { subject, relation, object } => {
            let object = object.as_ref().map(|object| match object {
                Object::Text(text) => word(text),
                Object::Map(_) => "(a map)".to_owned(),
            });
            let parts = [
                ("subject", subject.as_ref().map(word)),
                ("relation", relation.as_ref().map(word)),
                ("object", object),
            ];
            let bound = parts.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let bound: Vec<_> = bound.map(|(name, value)| format!("{name} = {value}")).collect();
            bound.join(" AND ")
        }
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
