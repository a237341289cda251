//! EXPLAIN of a query: the posting lists that are scanned, their lengths, and the counts of a run.

use grainstore_cal::{CancelHandle, Direction, Link, Near, Query, Search};
use grainstore_index::text::{FullTextQuery, Occur, SeenFilter};
use grainstore_index::{IndexLookup, Object, TermValue, TimeOrder};
use serde::Serialize;

use super::access_path::{AccessPath, PostingUnion};
use super::expand::{self, ExpansionStats};
use super::scan::CandidateScan;
use super::text::{MAX_SCORED_DIRECTLY, ParsedSearch};
use super::visible::{self, VisibleGrains};
use crate::base::error::Result;
use crate::handle::session::Session;
use crate::state::view::View;

/// Most grains of a list that are read to count those a session sees.
const MAX_SAMPLED_GRAINS: u64 = 8 * MAX_SCORED_DIRECTLY;

/// The plan of a query: [`Session::explain`](crate::Session::explain).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueryPlan {
    /// The driving index: `SPO`, `PSO`, `structural_tags`, `time`, `address`, `text` ...
    pub index: String,
    /// Every list looked up, the driving one first; several are intersected.
    pub lists: Vec<QueryList>,
    /// Description of what is searched for: text queries, then vectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Grains that are read if all matches are wanted: the length of the shortest list.
    pub estimated: u64,
    /// Most grains that can be read; `None` if the list was estimated by a sample, or for a search.
    pub at_most: Option<u64>,
    /// Number of reads of grains in the session's namespace, if it was run. A grain found by both text and
    /// vector counts twice, and again for a total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned: Option<u64>,
    /// Grains among them that matched, if it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
    /// The expansion along links, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<QueryExpansion>,
}

/// The expansion of a plan ([`Session::explain`](crate::Session::explain)).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueryExpansion {
    /// Most links from an answer to a grain.
    pub hops: usize,
    /// The links that are followed.
    pub links: Vec<Link>,
    /// The direction followed.
    pub direction: Direction,
    /// Its statistics, if it was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<ExpansionStats>,
}

/// One posting list of a plan ([`Session::explain`](crate::Session::explain)).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueryList {
    /// Its index.
    pub index: String,
    /// The lookups whose union is the list. For text, a session with a namespace or a user gets its own query
    /// terms; other sessions get every term looked up, with its document frequency.
    pub lookups: Vec<String>,
    /// Its length. For a session that may not see every grain of the store (it has a namespace or a user, or a
    /// consent, a rule or an erasure to be scrubbed may hide some) the number of those it sees, up to 2,049. For
    /// text in a session with a namespace or a user, the number of grains its other conditions leave.
    pub rows: u64,
    /// True if the rows were counted; false if they were estimated by a sample.
    pub exact: bool,
}

impl QueryPlan {
    /// Adds the counts of a run.
    pub(super) fn with_counts(self, walk: &CandidateScan<'_>) -> Self {
        let (scanned, matched) = (Some(walk.scanned), Some(walk.matched));
        let run = walk.expanded;
        let expansion = self.expansion.map(|expansion| QueryExpansion { run, ..expansion });
        Self { scanned, matched, expansion, ..self }
    }

    /// Makes the full text drive the plan, each term with its document frequency.
    fn driven_by_terms(mut self, words: Vec<(String, u64)>) -> Self {
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

    /// Makes the full text drive the plan, for a session that may not learn how frequent terms are elsewhere:
    /// shows its own query terms without numbers.
    fn driven_by_query(mut self, question: &FullTextQuery) -> Self {
        let asked = question.clauses().iter().filter(|clause| clause.occur != Occur::MustNot);
        let lookups = asked.map(ToString::to_string).collect();
        let index = "text".to_owned();
        self.index = index.clone();
        self.lists.insert(0, QueryList { index, lookups, rows: self.estimated, exact: false });
        self
    }

    fn of_addresses(count: usize) -> Self {
        let rows = to_u64(count);
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
    cancel: &CancelHandle,
) -> Result<QueryPlan> {
    view.retry_text(|| plan(view, session, query, cancel), || true)
}

fn plan(view: &View, session: &Session, query: &Query, cancel: &CancelHandle) -> Result<QueryPlan> {
    expand::check_expansion(query)?;
    if query.is_impossible() {
        return Ok(QueryPlan::of_addresses(0));
    }
    let expansion = query.expansion().map(|expansion| QueryExpansion {
        hops: expansion.hops,
        links: expansion.links.iter().collect(),
        direction: expansion.direction,
        run: None,
    });
    let mut plan = QueryPlan { expansion, ..plan_conditions(view, session, query)? };
    plan.search = describe_search(view, session, query)?;
    if !plan.search.is_empty() {
        // A grain found by both text and vector is read twice.
        plan.at_most = None;
    }
    match query.search() {
        Some(search) if plan.estimated > MAX_SCORED_DIRECTLY => {
            let sought = ParsedSearch::parse(session, query.reach(), search)?;
            // Blinded tokens would tell a reader nothing.
            let is_blinded = view.vault().keyring().is_some();
            if !session.viewer().is_unrestricted()
                || session.visibility(view).has_read_rules()
                || is_blinded
            {
                return Ok(plan.driven_by_query(sought.query()));
            }
            let visible = VisibleGrains::of(session, view)?;
            let sees = visible.as_ref().map(|visible| |sequence| visible.has(sequence));
            let seen = sees.as_ref().map(|sees| sees as &SeenFilter<'_>);
            let texts = view.texts(session.store().inner().library(), cancel)?;
            let query = std::slice::from_ref(sought.query());
            let stop = || cancel.stop_reason().is_some();
            let asked = texts.map(|texts| texts.prepare_cancellable(query, None, seen, stop));
            let asked = asked.transpose();
            visible.as_ref().map_or(Ok(()), VisibleGrains::failed)?;
            let asked = asked?;
            Ok(plan.driven_by_terms(asked.map(|asked| asked.terms()).unwrap_or_default()))
        }
        _ => Ok(plan),
    }
}

/// Descriptions of what a query searches for: its text, and the vector it has or the embedder makes of the
/// text.
fn describe_search(view: &View, session: &Session, query: &Query) -> Result<Vec<String>> {
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
    // The models of the store are not revealed to a session that sees a part of it.
    let is_told = session.viewer().is_unrestricted() || query.near().is_some();
    sought.extend(model.map(|model| match is_told {
        true => format!("vectors of {model}"),
        false => "vectors".to_owned(),
    }));
    Ok(sought)
}

/// The plan of a query without its search.
fn plan_conditions(view: &View, session: &Session, query: &Query) -> Result<QueryPlan> {
    if query.address().is_some() {
        return Ok(QueryPlan::of_addresses(1));
    }
    if let Some(addresses) = query.addresses() {
        return Ok(QueryPlan::of_addresses(addresses.len()));
    }
    let reader = view.index();
    let access = AccessPath::choose(&reader, session, query)?;
    // How many grains other users have, a rule or a consent hides, or wait for their scrub must not be revealed.
    let own = !visible::sees_all(session, view)?;
    let mut lists = Vec::new();
    for list in &access.lists {
        let (rows, exact) = match list.estimate {
            _ if own => visible_rows(view, session, &access, list)?,
            Some(size) => (size.postings, size.exact),
            None => {
                let size = list.estimate_rows(&reader, (&access.namespaces, access.times))?;
                (size.postings, size.exact)
            }
        };
        let lookups = list.lookups.iter().map(describe_lookup).collect();
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

/// Number of grains of a list that a session sees, counted up to a limit, and `true` if those are all.
fn visible_rows(
    view: &View,
    session: &Session,
    access: &AccessPath<'_>,
    list: &PostingUnion<'_>,
) -> Result<(u64, bool)> {
    let (reader, reach) = (view.index(), session.visibility(view));
    let found = reader.intersect_unions(
        &access.namespaces,
        &[&list.lookups],
        access.times,
        TimeOrder::Newest,
    )?;
    let (mut looked, mut own) = (0, 0);
    for posting in found {
        if own > MAX_SCORED_DIRECTLY || looked == MAX_SAMPLED_GRAINS {
            return Ok((own, false));
        }
        looked += 1;
        let sequence = posting?.sequence;
        // An erased grain that waits for its scrub cannot be read.
        if view.is_hidden(sequence)? {
            continue;
        }
        let seen = view.with_live_blob(sequence, |blob| {
            reach.is_blob_visible(sequence, blob).map(|seen| seen.then_some(()))
        })?;
        own += u64::from(seen.is_some());
    }
    Ok((own, true))
}

/// Description of a lookup.
fn describe_lookup(shape: &IndexLookup<'_>) -> String {
    let word = |word: &TermValue<'_>| match word {
        TermValue::Plain(text) => format!("{text:?}"),
        TermValue::Token(_) => "(blinded)".to_owned(),
    };
    match shape {
        IndexLookup::All => "everything".to_owned(),
        IndexLookup::Type(grain_type) => format!("type = {grain_type}"),
        IndexLookup::Value(field, value) => format!("{} = {}", field.name(), word(value)),
        IndexLookup::Triple { subject, relation, object } => {
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

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
