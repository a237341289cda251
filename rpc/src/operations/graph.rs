//! Operations that follow links between grains: edges, derivation, cross-links, versions.

use grainstore::Session;
use grainstore::graph::{BoundedList, Direction, EdgeQuery, GraphOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::List;
use crate::error::{Error, Result};
use crate::json::Address;
use crate::shape::Version;

/// Default number of items in an answer.
const DEFAULT_LIMIT: usize = 50;
/// Default number of edges in a path, and of derivation steps.
const DEFAULT_HOPS: usize = 4;
const DEFAULT_ANCESTRY_HOPS: usize = 16;

/// Lists the edges of a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Neighbours {
    node: String,
    #[serde(default)]
    direction: Direction,
    relation: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn neighbours(given: Neighbours, session: &Session) -> Result<Value> {
    let edges = edges(given.direction, given.relation, given.limit, given.include_superseded);
    list_answer("edges", &session.neighbours(&given.node, &edges)?)
}

/// Lists the paths from a node to another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paths {
    from: String,
    to: String,
    max_hops: Option<usize>,
    #[serde(default)]
    direction: Direction,
    relation: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn paths(given: Paths, session: &Session) -> Result<Value> {
    let edges = edges(given.direction, given.relation, given.limit, given.include_superseded);
    let hops = given.max_hops.unwrap_or(DEFAULT_HOPS);
    list_answer("paths", &session.paths(&given.from, &given.to, hops, &edges)?)
}

fn edges(
    direction: Direction,
    relation: Option<String>,
    limit: Option<usize>,
    include_superseded: bool,
) -> EdgeQuery {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    EdgeQuery { direction, relation, limit, options: graph_options(include_superseded) }
}

/// Lists what a grain is derived from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ancestry {
    address: Address,
    max_hops: Option<usize>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn ancestry(given: Ancestry, session: &Session) -> Result<Value> {
    let options = graph_options(given.include_superseded);
    let hops = given.max_hops.unwrap_or(DEFAULT_ANCESTRY_HOPS);
    let limit = given.limit.unwrap_or(DEFAULT_LIMIT);
    list_answer("grains", &session.ancestry(&given.address.get()?, hops, limit, &options)?)
}

/// Lists what is derived from a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Children {
    address: Address,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn children(given: Children, session: &Session) -> Result<Value> {
    let options = graph_options(given.include_superseded);
    let limit = given.limit.unwrap_or(DEFAULT_LIMIT);
    list_answer("grains", &session.children(&given.address.get()?, limit, &options)?)
}

/// Lists the cross-links of a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Related {
    address: Address,
    kind: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn related(given: Related, session: &Session) -> Result<Value> {
    let options = graph_options(given.include_superseded);
    let limit = given.limit.unwrap_or(DEFAULT_LIMIT);
    let kind = given.kind.as_deref();
    list_answer("links", &session.related(&given.address.get()?, kind, limit, &options)?)
}

/// The direction in which a version chain is read.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Towards {
    Older,
    Newer,
}

/// Reads a section of a version chain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Versions {
    address: Address,
    towards: Towards,
    limit: Option<usize>,
}

pub(crate) fn versions(given: Versions, session: &Session) -> Result<Value> {
    let limit = given.limit.unwrap_or(DEFAULT_LIMIT);
    let found = match given.towards {
        Towards::Older => session.older_versions(&given.address.get()?, limit)?,
        Towards::Newer => session.newer_versions(&given.address.get()?, limit)?,
    };
    // The first version is the one asked from, so an answer with only one would not advance.
    bounded("versions", found.items.into_iter().map(Version::try_from), found.more, 2)
}

pub(crate) fn graph_options(include_superseded: bool) -> GraphOptions {
    GraphOptions { include_superseded, ..GraphOptions::default() }
}

/// Serialises a list under its name, as far as it fits, and whether there is more.
pub(crate) fn list_answer<T: Serialize>(name: &str, found: &BoundedList<T>) -> Result<Value> {
    bounded(name, found.items.iter().map(Ok), found.more, 1)
}

/// Serialises items as far as they fit.
fn bounded<T: Serialize>(
    name: &str,
    found: impl Iterator<Item = Result<T>>,
    mut more: bool,
    least: usize,
) -> Result<Value> {
    let mut items = List::default();
    for item in found {
        if !items.try_push(&item?)? {
            if items.len() < least {
                return Err(Error::answer_too_large());
            }
            more = true;
            break;
        }
    }
    Ok(json!({ name: items, "more": more }))
}
