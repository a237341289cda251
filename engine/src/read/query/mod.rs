//! Structured queries of a session, without a language (OMS 28.1, 28.4).
//!
//! - `access_path`, `postings`: the access path of a query, and its postings in order.
//! - `scan`: the candidates, each rechecked on its grain, in the order of the answer.
//! - `rerank`: the best of them in another order. `similarity`: the similarity of grains.
//! - `text`: answers to a text search; `visible`: the grains its statistics are of. `vector`: to a vector, and to both.
//! - `links`: the links of a grain. `expand`: grains linked to the best answers, ranked among them.
//! - `cursor`: the position after a page. `explain`: the plan of a query.
//!
//! CAL runs on the same walk. All pages of an answer show one state of the log, that of the first page:
//! grains written since are on none of them, and grains ended since are still there and shown as current.

mod access_path;
mod cursor;
mod expand;
mod explain;
mod links;
mod postings;
mod rerank;
mod scan;
mod similarity;
mod text;
mod vector;
mod visible;

use std::ops::ControlFlow;
use std::time::Duration;

use grainstore_cal::{CancelHandle, Candidate, Query, Score};
use grainstore_format::{ContentAddress, Grain, GrainState};
use grainstore_index::text::ANALYSIS_VERSION;
use serde::Serialize;
use sha2::{Digest, Sha256};

use self::cursor::{CursorContent, LastRow, LogPoint, RankingKind, ScorePosition, TimePosition};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::handle::session::Session;
use crate::search::embed::Space;
use crate::state::view::View;

pub use cursor::Cursor;
pub use expand::ExpansionStats;
pub(crate) use explain::explain;
pub use explain::{QueryExpansion, QueryList, QueryPlan};
pub(crate) use scan::{CandidateScan, ScanError};
pub(crate) use text::ParsedSearch;

/// Most rows of one page of [`Session::query`]; `ERR_LIMIT` for a limit beyond.
pub const MAX_PAGE: usize = 10_000;
/// Most payload bytes of one page of [`Session::query`], unless its first row is larger: a page ends before
/// it would exceed them. Decoded, they take up to some thirty times that.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// Options of one page of an answer of [`Session::query`].
///
/// All pages show the grains that existed, and were current, when the first was read. Changes that do not end
/// a grain (a verification status, a review, a hold) are seen as of the reading of each page, also by
/// conditions on them.
#[derive(Debug, Clone)]
pub struct PageOptions {
    /// Most rows; 0 for none.
    pub limit: usize,
    /// The end of the page before; `None` for the first page.
    pub cursor: Option<Cursor>,
    /// Most payload bytes, up to [`MAX_PAGE_BYTES`]: the page ends before it would exceed them.
    pub max_bytes: usize,
    /// Number up to which matches are counted for [`QueryPage::total`]; 0 to count none beyond the page.
    pub count_to: u64,
    /// True to return the plan of the answer.
    pub explain: bool,
    /// Time limit of the page.
    pub timeout: Duration,
    /// Cancels the work on request of the host.
    pub cancel: CancelHandle,
}

impl Default for PageOptions {
    /// The first 50 rows, within five seconds.
    fn default() -> Self {
        Self {
            limit: 50,
            cursor: None,
            max_bytes: MAX_PAGE_BYTES,
            count_to: 0,
            explain: false,
            timeout: Duration::from_secs(5),
            cancel: CancelHandle::default(),
        }
    }
}

impl PageOptions {
    /// The first rows, at most `limit`.
    #[must_use]
    pub fn first(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Continues after this cursor.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.cursor = cursor;
        self
    }
}

/// A page of an answer of [`Session::query`]: the envelope of OMS 28.1.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueryPage {
    /// The rows, in the order of the query.
    pub results: Vec<QueryMatch>,
    /// Rows of all pages together, if counted.
    pub total: Option<u64>,
    /// The start of the next page, if there is one.
    pub next_cursor: Option<Cursor>,
    /// The plan, if it was asked for.
    pub plan: Option<QueryPlan>,
}

/// A grain that matches a [`Session::query`].
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueryMatch {
    /// The grain.
    pub grain: Grain,
    /// Its relevance to a search, from 0 to 1; 1.0 for a structural match (ruling 45).
    pub score: f64,
    /// The fields the query has conditions on, which the grain therefore has, and those with terms searched
    /// for.
    pub matched_fields: Vec<String>,
    /// Its address.
    pub content_address: ContentAddress,
    /// Its index-layer state.
    #[serde(skip)]
    pub state: GrainState,
}

impl Session {
    /// One page of the grains that match and that this session can see. Grains of opaque types are included
    /// if the query names no type.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// for drink in ["tea", "coffee", "water"] {
    ///     session.put(BeliefBuilder::new(session.now(), "alice", "likes", drink, 0.9).build()?)?;
    /// }
    /// let alice = Query::default().when(Predicate::text_is("subject", "alice")?);
    /// let (mut cursor, mut count) = (None, 0);
    /// loop {
    ///     let page = session.query(&alice, &PageOptions::first(2).after(cursor))?;
    ///     count += page.results.len();
    ///     cursor = page.next_cursor;
    ///     if cursor.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(count, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_PAGE`] and the bounds of an expansion; `ERR_SCHEMA` for an expansion that
    /// cannot be done; `ERR_CURSOR` for a cursor of another query, session, store or history; `ERR_ACCESS`
    /// for a namespace outside the session's; `ERR_TIMEOUT`; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn query(&self, query: &Query, page: &PageOptions) -> Result<QueryPage> {
        if page.limit > MAX_PAGE {
            let message = format!("a page holds {MAX_PAGE} rows at most, not {}", page.limit);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.check_scope(query)?;
        let query = &query.clone().of_any_type();
        let view = self.view_for_query(self.view()?, query)?;
        let answer = catch_storage_panic(|| self.page(&view, query, page))?;
        self.audit_read(answer.results.iter().map(|row| row.content_address))?;
        Ok(answer)
    }

    /// The plan of a query, without running it.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let alice = Query::default().when(Predicate::text_is("subject", "alice")?);
    /// let plan = session.explain(&alice)?;
    /// assert_eq!((plan.index.as_str(), plan.scanned), ("SPO", None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn explain(&self, query: &Query) -> Result<QueryPlan> {
        self.check_scope(query)?;
        let query = &query.clone().of_any_type();
        let view = self.view_for_query(self.view()?, query)?;
        catch_storage_panic(|| explain(&view, self, query, &CancelHandle::new()))
    }

    pub(crate) fn check_scope(&self, query: &Query) -> Result<()> {
        use grainstore_cal::Reach;
        match query.reach() {
            Reach::Session => Ok(()),
            Reach::Exact(namespace) | Reach::Subtree(namespace) => {
                self.scope_within(Some(namespace)).map(drop)
            }
        }
    }

    fn page(&self, view: &View, query: &Query, page: &PageOptions) -> Result<QueryPage> {
        view.retry_text(|| self.try_page(view, query, page), || true)
    }

    fn try_page(&self, view: &View, query: &Query, page: &PageOptions) -> Result<QueryPage> {
        let resume = |cursor| open_cursor(self, view, query, cursor);
        let resumed = page.cursor.as_ref().map(resume).transpose()?;
        let (after, total) = match resumed {
            Some(CursorContent { origin, last, total }) => (Some((origin, last)), Some(total)),
            None => (None, None),
        };
        let sought = query.search().map(|search| ParsedSearch::parse(self, query.reach(), search));
        let mut rows = PageCollector {
            limit: page.limit,
            count_to: page.cursor.as_ref().map_or(page.count_to, |_| 0),
            condition_fields: condition_fields(query),
            search: sought.transpose()?,
            rows: Vec::new(),
            bytes: 0,
            max_bytes: page.max_bytes.min(MAX_PAGE_BYTES),
            matches: 0,
            failed: None,
        };
        let cancel = page.cancel.with_deadline(page.timeout);
        let origin = match &after {
            Some((origin, _)) => *origin,
            None => current_log_point(view)?,
        };
        let mut walk = CandidateScan::new((self, view), query, &cancel, page.limit)?.behind(after);
        let ended = if query.is_impossible() {
            ControlFlow::Continue(())
        } else {
            walk.run(&mut |candidate| rows.add(&candidate))?
        };
        if let Some(error) = rows.failed {
            return Err(error);
        }
        let more = rows.matches > rows.rows.len() as u64;
        let total = match total {
            Some(counted) => counted,
            None if ended.is_continue() && !walk.cut => Some(rows.matches),
            None => walk.total_by_index()?,
        };
        let next_cursor = match rows.rows.last().filter(|_| more) {
            None => None,
            Some(last) => {
                let rank = match is_ranked(query) {
                    true => Some(walk.scores.get(rows.rows.len() - 1).copied().unwrap_or_default()),
                    // Among answers by conditions alone, only linked grains have a score to continue from.
                    false => Some(last.score).filter(|score| *score < Score::STRUCTURAL.value),
                };
                let statistics = walk.carried(rows.rows.len());
                let last = last_row(last, rank, (walk.ranking, statistics));
                let opened = CursorContent { origin, last, total };
                let key = self.store().inner().cursor_key();
                Some(opened.seal(key, cursor_identity(self, view, query)?.as_bytes())?)
            }
        };
        let plan = match page.explain {
            true => Some(explain(view, self, query, &cancel)?.with_counts(&walk)),
            false => None,
        };
        Ok(QueryPage { results: rows.rows, total, next_cursor, plan })
    }
}

/// Collector of the rows of a page.
struct PageCollector {
    limit: usize,
    count_to: u64,
    condition_fields: Vec<String>,
    /// The parsed text search, if any.
    search: Option<ParsedSearch>,
    rows: Vec<QueryMatch>,
    bytes: usize,
    max_bytes: usize,
    /// Matches seen, returned or only counted.
    matches: u64,
    failed: Option<Error>,
}

impl PageCollector {
    /// The fields a grain matches on: those of the conditions, then those with terms searched for.
    fn matched_fields(&self, candidate: &Candidate<'_>) -> Vec<String> {
        let mut names = match candidate.score.is_linked_only() {
            true => Vec::new(),
            false => self.condition_fields.clone(),
        };
        for name in self.search.iter().flat_map(|sought| sought.matched_fields_in(candidate.grain))
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Adds a match, or counts it if the page is full.
    fn add(&mut self, candidate: &Candidate<'_>) -> ControlFlow<()> {
        self.matches += 1;
        let size = candidate.grain.payload_len();
        let full = self.rows.len() >= self.limit
            || self.matches > self.rows.len() as u64 + 1
            || (self.bytes.saturating_add(size) > self.max_bytes && !self.rows.is_empty());
        if full {
            return match self.matches > self.count_to {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
        }
        match candidate.grain.to_grain() {
            Ok(grain) => {
                self.bytes = self.bytes.saturating_add(size);
                self.rows.push(QueryMatch {
                    grain,
                    score: candidate.score.value,
                    matched_fields: self.matched_fields(candidate),
                    content_address: candidate.address,
                    state: *candidate.state,
                });
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failed = Some(error.into());
                ControlFlow::Break(())
            }
        }
    }
}

/// The position of a row in an answer, with the inputs of the scores of a search.
fn last_row(
    row: &QueryMatch,
    rank: Option<f64>,
    (ranking, statistics): (RankingKind, Vec<u8>),
) -> LastRow {
    let (time, address) = (row.grain.time(), row.content_address);
    match rank {
        None => LastRow::ByTime(TimePosition { time, address }),
        Some(score) => LastRow::ByScore(ScorePosition { score, address, ranking, statistics }),
    }
}

/// Returns `true` if the answer is ordered by scores, or by an order made from them.
fn is_ranked(query: &Query) -> bool {
    query.search().is_some() || query.near().is_some() || query.rerank().is_some()
}

/// The fields a query has conditions on, each once.
fn condition_fields(query: &Query) -> Vec<String> {
    let mut names = Vec::new();
    for predicate in query.predicates() {
        let name = predicate.field_name().to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Identity of a query for its cursors: the query, the session, the analysis of the text searched for, and
/// the model whose vectors answer if the query names none.
fn cursor_identity(session: &Session, view: &View, query: &Query) -> Result<String> {
    let scope = session.options();
    let words = query
        .search()
        .map(|_| (text::language_of(session, query.reach()).code(), ANALYSIS_VERSION));
    let question = format!("{:?} {query:?}", (&scope.namespace, &scope.user_id, words));
    let model_of = |space: &Space| space.model().to_owned();
    let serving = match (query.near(), query.search()) {
        (Some(near), _) if near.model.is_none() => view.serving_space()?.map(model_of),
        (None, Some(_)) => {
            session.store().inner().meaning(view)?.map(|keeping| model_of(keeping.space()))
        }
        _ => None,
    };
    Ok(match serving {
        Some(model) => format!("{question} {model:?}"),
        None => question,
    })
}

/// The present state of the log.
fn current_log_point(view: &View) -> Result<LogPoint> {
    let (sequence, entries) = (view.last_sequence()?, view.audit_len()?);
    Ok(LogPoint { sequence, entry: entry_hash_prefix(view, entries)?, entries })
}

/// Opens a cursor, and checks that it belongs to this history.
fn open_cursor(
    session: &Session,
    view: &View,
    query: &Query,
    cursor: &Cursor,
) -> Result<CursorContent> {
    let key = session.store().inner().cursor_key();
    let opened = cursor.open(key, cursor_identity(session, view, query)?.as_bytes())?;
    let origin = opened.origin;
    if origin.sequence > view.last_sequence()?
        || origin.entries > view.audit_len()?
        || entry_hash_prefix(view, origin.entries)? != origin.entry
    {
        let message = "this cursor belongs to another history of the store";
        return Err(Error::new(ErrorKind::Cursor, message));
    }
    Ok(opened)
}

/// The first bytes of the hash of the last of these audit entries: erasures do not change it.
fn entry_hash_prefix(view: &View, entries: u64) -> Result<[u8; 8]> {
    let missing = || Error::integrity("the audit log has lost its last entry");
    let head = view.audit_head()?;
    if entries == head.count {
        return head.hash.first_chunk().copied().ok_or_else(missing);
    }
    let entry = view.audit_rows()?.get(entries.saturating_sub(1))?.ok_or_else(missing)?;
    Sha256::digest(&entry).first_chunk().copied().ok_or_else(missing)
}
