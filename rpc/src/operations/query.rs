//! The method `query`: conditions as an object, answered in the envelope of OMS 28.1.

use std::collections::BTreeSet;

use grainstore::cal::{
    Direction, Expansion, Link, Near, Order, Predicate, Query, Reach, TimeRange, TypeSet,
    Visibility,
};
use grainstore::format::{DeviceProfile, GrainType, Map, Value, parse_json};
use grainstore::{Cursor, EpochMs, Grain, PageOptions, Session};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::vectors;
use crate::answer::List;
use crate::arguments::{MAX_NAMES, epoch_ms, read};
use crate::error::{Code, Error, Result};
use crate::json::{Few, Form, Formed};
use crate::question::{BeyondCal, normalise};

/// Most matches counted for `total` where that is asked for; beyond, it is null.
const MAX_COUNTED_MATCHES: u64 = 1_000;
/// Most bytes of payloads in a page, so that its JSON stays below the limit of an answer.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Kinds of links that are named.
const MAX_LINKS: usize = 100;

/// Queries grains by conditions, text or vector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryGrains<'p> {
    #[serde(rename = "where", borrow)]
    conditions: Option<&'p RawValue>,
    text: Option<String>,
    vector: Option<Formed<Vector>>,
    expand: Option<Formed<Expand>>,
    sort: Option<Sort>,
    limit: Option<usize>,
    cursor: Option<String>,
    #[serde(default)]
    include_superseded: bool,
    #[serde(default)]
    explain: bool,
    /// Counts the matches of all pages.
    #[serde(default)]
    total: bool,
}

/// The member `sort`: the order of an answer without scores.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    Newest,
    Oldest,
}

impl From<Sort> for Order {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Newest => Self::Newest,
            Sort::Oldest => Self::Oldest,
        }
    }
}

/// The member `where`: all given conditions must hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Conditions<'p> {
    namespace: Option<String>,
    #[serde(rename = "type")]
    grain_type: Option<String>,
    subject: Option<String>,
    relation: Option<String>,
    #[serde(borrow)]
    object: Option<&'p RawValue>,
    user_id: Option<String>,
    session_id: Option<String>,
    run_id: Option<String>,
    author_did: Option<String>,
    entity_id: Option<String>,
    processing_basis: Option<String>,
    tags_all: Option<Few<String, MAX_NAMES>>,
    tags_none: Option<Few<String, MAX_NAMES>>,
    time_from: Option<i64>,
    time_to: Option<i64>,
    as_of: Option<i64>,
    valid_at: Option<i64>,
}

/// The member `vector`: search by vector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    model: Option<String>,
    values: vectors::Values,
}

impl Form for Vector {
    const FORM: &'static str = "an object {model?, values: [number ...]}";
}

/// The member `expand`: expansion by links from the best answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expand {
    hops: Option<usize>,
    seeds: Option<usize>,
    links: Option<Few<String, MAX_LINKS>>,
    #[serde(default)]
    direction: Direction,
    fan_out: Option<usize>,
    reached: Option<usize>,
    decay: Option<f64>,
    #[serde(default)]
    freely: bool,
}

impl Form for Expand {
    const FORM: &'static str = "an object {hops?, seeds?, links?: [name ...], direction?, fan_out?, reached?, decay?, freely?}";
}

/// The envelope.
#[derive(Debug, Serialize)]
pub(crate) struct Envelope {
    results: List,
    total: Option<u64>,
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<grainstore::QueryPlan>,
}

/// Returns the query of an object of conditions.
pub(crate) fn conditions(given: &RawValue) -> Result<Query> {
    let conditions: Conditions<'_> = read(Some(given))?;
    conditions.query()
}

pub(crate) fn query(given: QueryGrains<'_>, session: &Session) -> Result<Envelope> {
    let mut query = given.conditions.map_or_else(|| Ok(Query::default()), conditions)?;
    if given.include_superseded {
        query = query.seeing(Visibility { superseded: true, ..Visibility::default() });
    }
    if let Some(sort) = given.sort {
        if given.text.is_some() || given.vector.is_some() || given.expand.is_some() {
            let message = "an answer with text, vector or expand is ordered by scores";
            return Err(Error::new(Code::Schema, message, "leave out sort"));
        }
        query = query.ordered(sort.into());
    }
    if let Some(text) = given.text {
        query = query.searching(check_search_text(text)?);
    }
    if let Some(Formed(Vector { model, values })) = given.vector {
        query = query.nearing(Near { model, values: values.to_f32().into() });
    }
    if let Some(Formed(expand)) = given.expand {
        query = query.expanding(expand.expansion()?);
    }
    let defaults = PageOptions::default();
    let few = session.store().rules().settings.query_limit.value;
    let few = usize::try_from(few).unwrap_or(usize::MAX);
    let cursor = given.cursor.map(|text| text.parse::<Cursor>()).transpose()?;
    let page = PageOptions {
        limit: given.limit.unwrap_or_else(|| defaults.limit.min(few)),
        max_bytes: MAX_PAGE_BYTES,
        count_to: if given.total { MAX_COUNTED_MATCHES } else { 0 },
        explain: given.explain,
        ..defaults
    };
    let answer = session.query(&query, &page.after(cursor))?;
    let mut results = List::default();
    for row in &answer.results {
        results.push(row)?;
    }
    Ok(Envelope {
        results,
        total: answer.total,
        next_cursor: answer.next_cursor.map(|cursor| cursor.to_string()),
        plan: answer.plan,
    })
}

impl Expand {
    /// Returns the expansion, with defaults for missing members.
    pub(super) fn expansion(self) -> Result<Expansion> {
        let usual = Expansion::default();
        let links = self.links.map(|names| names.all("links")).transpose()?;
        let links = links.map(|names| names.iter().map(|name| parse_link_kind(name)).collect());
        Ok(Expansion {
            hops: self.hops.unwrap_or(usual.hops),
            seeds: self.seeds.unwrap_or(usual.seeds),
            links: links.transpose()?.unwrap_or(usual.links),
            direction: self.direction,
            fan_out: self.fan_out.unwrap_or(usual.fan_out),
            reached: self.reached.unwrap_or(usual.reached),
            decay: self.decay.unwrap_or(usual.decay),
            freely: self.freely,
        })
    }
}

/// Parses the kind of a link.
fn parse_link_kind(name: &str) -> Result<Link> {
    let refused = || {
        let names = Link::ALL.map(Link::name).join(", ");
        Error::new(Code::Schema, format!("no links of the kind {name:?}"), format!("use {names}"))
    };
    Link::named(name).ok_or_else(refused)
}

impl Conditions<'_> {
    fn query(self) -> Result<Query> {
        let mut query = Query::default();
        if let Some(namespace) = self.namespace {
            query = query.within(Reach::Subtree(normalise(&namespace)?));
        }
        if let Some(name) = &self.grain_type {
            let Some(grain_type) = GrainType::from_name(name) else {
                let message = format!("no grain type {name:?}");
                let hint = "use one of belief, event, state, workflow, action, observation, goal, reasoning, consensus, consent";
                return Err(Error::new(Code::UnknownType, message, hint));
            };
            query = query.of_types(TypeSet::of(grain_type));
        }
        let texts = [
            ("subject", self.subject),
            ("relation", self.relation),
            ("user_id", self.user_id),
            ("session_id", self.session_id),
        ];
        for (field, wanted) in texts {
            if let Some(wanted) = wanted {
                let wanted = Predicate::text_is(field, normalise(&wanted)?);
                query = query.when(wanted.map_err(|error| Error::from_cal(&error, ""))?);
            }
        }
        let beyond = BeyondCal {
            run_id: self.run_id,
            author_did: self.author_did,
            entity_id: self.entity_id,
            processing_basis: self.processing_basis,
        };
        for condition in beyond.conditions()? {
            query = query.when(condition);
        }
        if let Some(object) = self.object {
            query = query.when(object_predicate(object)?);
        }
        if let Some(tags) = tags("tags_all", self.tags_all)? {
            query = query.when(Predicate::tags_include(tags));
        }
        if let Some(tags) = tags("tags_none", self.tags_none)? {
            query = query.when(Predicate::tags_exclude(tags));
        }
        let from = self.time_from.map_or(TimeRange::ALWAYS.from, EpochMs::new);
        let to = self.time_to.map_or(TimeRange::ALWAYS.to, EpochMs::new);
        query = query.during(TimeRange { from, to });
        if let Some(at) = epoch_ms(self.as_of) {
            query = query.known_at(at);
        }
        if let Some(at) = epoch_ms(self.valid_at) {
            query = query.valid_at(at);
        }
        Ok(query)
    }
}

/// Refuses an empty search text.
fn check_search_text(text: String) -> Result<String> {
    if text.trim().is_empty() {
        let message = "there is nothing to search for";
        return Err(Error::new(Code::Schema, message, "write some words, or leave text out"));
    }
    Ok(text)
}

/// The tags of a list, each once; nothing where there are none.
fn tags(name: &str, given: Option<Few<String, MAX_NAMES>>) -> Result<Option<Vec<String>>> {
    let given = given.unwrap_or_default().all(name)?;
    let tags = given.iter().map(|tag| normalise(tag)).collect::<Result<BTreeSet<_>, _>>()?;
    Ok((!tags.is_empty()).then(|| tags.into_iter().collect()))
}

/// Returns the condition that a grain has this object, normalised as it is in grains.
fn object_predicate(object: &RawValue) -> Result<Predicate> {
    let fields: [(&str, Value); 6] = [
        ("type", "belief".into()),
        ("subject", "s".into()),
        ("relation", "r".into()),
        ("object", parse_json(object.get(), &DeviceProfile::EXTENDED)?),
        ("confidence", 1.0.into()),
        ("created_at", 0.into()),
    ];
    let fields: Map = fields.map(|(name, value)| (name.to_owned(), value)).into();
    let grain = Grain::from_fields(fields)?;
    let object = grain.get("object").cloned();
    object
        .and_then(Predicate::object_is)
        .ok_or_else(|| Error::arguments("object must be a string or an object"))
}
