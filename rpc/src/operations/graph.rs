//! Methods that follow links between grains: edges, derivation, cross-links, versions.

use grainstore::graph::{BoundedList, Direction, EdgeQuery, GraphOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::params::{self, address};
use crate::protocol::answer::{Answer, List};
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::shape::Version;

/// Default number of items in an answer.
const DEFAULT_LIMIT: usize = 50;
/// Default number of edges in a path, and of derivation steps.
const DEFAULT_HOPS: usize = 4;
const DEFAULT_ANCESTRY_HOPS: usize = 16;

/// Parameters of `neighbours`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Neighbours {
    node: String,
    #[serde(default)]
    direction: Direction,
    relation: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn neighbours(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Neighbours = params::read(params)?;
    let walk = EdgeQuery {
        direction: params.direction,
        relation: params.relation,
        limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        lens: lens(params.include_superseded),
    };
    listed("edges", &host.session()?.neighbours(&params.node, &walk)?)
}

/// Parameters of `paths`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paths {
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

pub(crate) fn paths(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Paths = params::read(params)?;
    let walk = EdgeQuery {
        direction: params.direction,
        relation: params.relation,
        limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        lens: lens(params.include_superseded),
    };
    let hops = params.max_hops.unwrap_or(DEFAULT_HOPS);
    listed("paths", &host.session()?.paths(&params.from, &params.to, hops, &walk)?)
}

/// Parameters of `ancestry`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ancestry {
    address: String,
    max_hops: Option<usize>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn ancestry(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Ancestry = params::read(params)?;
    let lens = lens(params.include_superseded);
    let hops = params.max_hops.unwrap_or(DEFAULT_ANCESTRY_HOPS);
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let address = address(&params.address)?;
    listed("grains", &host.session()?.ancestry(&address, hops, limit, &lens)?)
}

/// Parameters of `children`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Children {
    address: String,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn children(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Children = params::read(params)?;
    let lens = lens(params.include_superseded);
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let address = address(&params.address)?;
    listed("grains", &host.session()?.children(&address, limit, &lens)?)
}

/// Parameters of `related`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Related {
    address: String,
    kind: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    include_superseded: bool,
}

pub(crate) fn related(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Related = params::read(params)?;
    let lens = lens(params.include_superseded);
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let address = address(&params.address)?;
    let kind = params.kind.as_deref();
    listed("links", &host.session()?.related(&address, kind, limit, &lens)?)
}

/// The direction in which a version chain is read.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Towards {
    Older,
    Newer,
}

/// Parameters of `versions`: a section of a version chain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    address: String,
    towards: Towards,
    limit: Option<usize>,
}

pub(crate) fn versions(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: Versions = params::read(params)?;
    let address = address(&params.address)?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let session = host.session()?;
    let found = match params.towards {
        Towards::Older => session.older_versions(&address, limit)?,
        Towards::Newer => session.newer_versions(&address, limit)?,
    };
    let (mut versions, mut more) = (List::default(), found.more);
    for stored in found.items {
        if !versions.offer(&Version::try_from(stored)?)? {
            // The first version is the one asked from, so an answer with only one would not advance.
            if versions.len() < 2 {
                return Err(Fault::answer_too_large());
            }
            more = true;
            break;
        }
    }
    Answer::of(&json!({ "versions": versions, "more": more }))
}

pub(crate) fn lens(include_superseded: bool) -> GraphOptions {
    GraphOptions { include_superseded, ..GraphOptions::default() }
}

/// Serialises a list under its name, as far as it fits, and whether there is more.
///
/// # Errors
/// `ERR_LIMIT` if not even one item fits.
pub(crate) fn listed<T: Serialize>(name: &str, found: &BoundedList<T>) -> Result<Answer, Fault> {
    let (mut items, mut more) = (List::default(), found.more);
    for item in &found.items {
        if !items.offer(item)? {
            if items.len() == 0 {
                return Err(Fault::answer_too_large());
            }
            more = true;
            break;
        }
    }
    Answer::of(&json!({ name: items, "more": more }))
}
