//! How a query is answered, for people: the lists that are walked, how long they are, and what a
//! run found.

use grainstore_cal::{Cancel, Direction, Link, Near, Query, Search};
use grainstore_index::text::{Occur, Question};
use grainstore_index::{Object, Order, Shape, Word};
use serde::Serialize;

use super::access::{Access, List};
use super::expand::{self, Expanded};
use super::search::{FEW, Sought};
use super::walk::Walk;
use crate::base::error::Result;
use crate::handle::session::Session;
use crate::state::view::View;

/// Grains of a list that are looked at to count those that a session sees.
const LOOKED_AT: u64 = 8 * FEW;

/// How a query is answered.
#[derive(Debug, Clone, Serialize)]
pub struct QueryPlan {
    /// The index that drives: `SPO`, `PSO`, `structural_tags`, `time`, `address`, `text` ...
    pub index: String,
    /// Every list looked up, the driving one first; several are intersected.
    pub lists: Vec<QueryList>,
    /// What is searched for among them, each part as a person reads it: words, then vectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Grains that will be looked at where all are wanted: the length of the shortest list.
    pub estimated: u64,
    /// The most grains that can be looked at; nothing where the list was judged by a sample, or where
    /// something is searched for.
    pub at_most: Option<u64>,
    /// How often a grain of the session's namespace was looked at, once it was run: once for words and
    /// once for vectors, where both have found it, and again for a total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned: Option<u64>,
    /// Grains that matched among them, once it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
    /// How far what is linked to the best answers is followed, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<QueryExpansion>,
}

/// The links of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct QueryExpansion {
    /// Links from an answer to what it leads to, at most.
    pub hops: usize,
    /// The links that are followed.
    pub links: Vec<Link>,
    /// Which way.
    pub direction: Direction,
    /// What it came to, once it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Expanded>,
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
    /// How long it is; to a session with a user, how many of it are its own, up to 2,049; of words, to a session with a namespace or a user, how many grains its other
    /// conditions leave.
    pub rows: u64,
    /// Whether the rows were counted; else they were judged by a sample.
    pub exact: bool,
}

impl QueryPlan {
    /// The same with what a run found.
    pub(super) fn with_counts(self, walk: &Walk<'_>) -> Self {
        let (scanned, matched) = (Some(walk.scanned), Some(walk.matched));
        let run = walk.expanded;
        let expansion = self.expansion.map(|expansion| QueryExpansion { run, ..expansion });
        Self { scanned, matched, expansion, ..self }
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
            search: Vec::new(),
            estimated: rows,
            at_most: Some(rows),
            scanned: None,
            matched: None,
            expansion: None,
        }
    }
}

/// The plan of a query on a view.
pub(crate) fn explain(
    view: &View,
    session: &Session,
    query: &Query,
    cancel: &Cancel,
) -> Result<QueryPlan> {
    expand::check(query)?;
    if query.is_impossible() {
        return Ok(QueryPlan::of_addresses(0));
    }
    let expansion = query.expansion().map(|expansion| QueryExpansion {
        hops: expansion.hops,
        links: expansion.links.iter().collect(),
        direction: expansion.direction,
        run: None,
    });
    let mut plan = QueryPlan { expansion, ..by_conditions(view, session, query)? };
    plan.search = sought(view, session, query)?;
    if !plan.search.is_empty() {
        // What is found in two ways is looked at twice.
        plan.at_most = None;
    }
    match query.search() {
        Some(search) if plan.estimated > FEW => {
            let sought = Sought::of(session, query.reach(), search)?;
            // Tokens tell nobody anything.
            let is_blinded = view.vault().keyring().is_some();
            if !session.viewer().is_everyone() || session.reach(view).asks_rules() || is_blinded {
                return Ok(plan.behind_asked(sought.question()));
            }
            let texts = view.texts(session.store().inner().library(), cancel)?;
            let asked = texts.map(|texts| texts.ask(sought.question())).transpose()?;
            Ok(plan.behind_words(asked.map(|asked| asked.terms()).unwrap_or_default()))
        }
        _ => Ok(plan),
    }
}

/// What a query searches for: its words, and the vector it gives or the embedder would make of them.
fn sought(view: &View, session: &Session, query: &Query) -> Result<Vec<String>> {
    let asks = query.search().map(Search::asks).unwrap_or_default();
    let mut sought: Vec<String> = asks
        .iter()
        .map(|ask| match ask.field {
            Some(field) => format!("words {:?} in {field}", ask.text),
            None => format!("words {:?}", ask.text),
        })
        .collect();
    let keeping = session.store().inner().meaning(view)?;
    let model = match (query.near(), keeping) {
        (Some(Near { model: Some(model), .. }), _) => Some(model.clone()),
        (Some(_), _) => Some("the model that serves".to_owned()),
        (None, Some(keeping)) if asks.iter().any(|ask| ask.field.is_none()) => {
            Some(keeping.space().model().to_owned())
        }
        (None, _) => None,
    };
    // Which models there are is no matter of a session that sees a part of the store.
    let is_told = session.viewer().is_everyone() || query.near().is_some();
    sought.extend(model.map(|model| match is_told {
        true => format!("vectors of {model}"),
        false => "vectors".to_owned(),
    }));
    Ok(sought)
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
    // How many grains others have, or a rule hides, is no matter of the session.
    let own = session.viewer().has_user() || session.reach(view).asks_rules();
    let mut lists = Vec::new();
    for list in &access.lists {
        let (rows, exact) = match list.size {
            _ if own => own_of(view, session, &access, list)?,
            Some(size) => (size.postings, size.exact),
            None => {
                let size = list.measure(&reader, (&access.spaces, access.times))?;
                (size.postings, size.exact)
            }
        };
        let lookups = list.shapes.iter().map(lookup).collect();
        lists.push(QueryList { index: list.index_name(), lookups, rows, exact });
    }
    let driving = lists.first();
    Ok(QueryPlan {
        index: driving.map_or_else(String::new, |list| list.index.clone()),
        estimated: driving.map_or(0, |list| list.rows),
        at_most: driving.filter(|list| list.exact).map(|list| list.rows),
        lists,
        search: Vec::new(),
        scanned: None,
        matched: None,
        expansion: None,
    })
}

/// How many grains of a list a session sees, counted as far as it matters, and whether those are all.
fn own_of(
    view: &View,
    session: &Session,
    access: &Access<'_>,
    list: &List<'_>,
) -> Result<(u64, bool)> {
    let (reader, reach) = (view.index(), session.reach(view));
    let found = reader.find(&access.spaces, &[&list.shapes], access.times, Order::Newest)?;
    let (mut looked, mut own) = (0, 0);
    for posting in found {
        if own > FEW || looked == LOOKED_AT {
            return Ok((own, false));
        }
        looked += 1;
        let sequence = posting?.sequence;
        // Nobody can read what was erased and still waits for its scrub.
        if view.hides(sequence)? {
            continue;
        }
        let seen = view.with_blob(sequence, |blob| reach.sees_blob(sequence, blob))?;
        own += u64::from(seen);
    }
    Ok((own, true))
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
