//! Beliefs of `agent:identity` about agents: their owners (OMS 12.5) and capabilities (OMS 28.5).
//!
//! Both are read from exactly that namespace, so a session that cannot see it gets no answer.

use grainstore_format::{ContentAddress, GrainRef, GrainType, Value};
use grainstore_index::{Field, IndexLookup, Object, Scope, Sequence};
use serde::Serialize;

use super::reader::{GraphReader, VisibleGrain, addresses_in, normalised};
use super::{BoundedList, BoundedListBuilder, GraphOptions};
use crate::base::error::{Result, catch_storage_panic};
use crate::handle::session::Session;
use crate::rules::policy::PolicyTerms;

/// Most capabilities of one answer of [`Session::capabilities`], which then says `more`.
pub const MAX_CAPABILITIES: usize = 1_000;

/// Most claims listed beside the canonical record. [`Session::owner`] leaves out the rest.
pub const MAX_CLAIMS: usize = 1_000;

/// The namespace of identities (OMS 28.2).
const IDENTITY: &str = "agent:identity";
/// The relation of ownership, and its spelling in OMS 12.5.3, which means the same (ruling 24).
const OWNED_BY: [&str; 2] = ["mg:owned_by", "owned_by"];
const HAS_CAPABILITY: &str = "mg:has_capability";

/// The owner of an agent according to this store: [`Session::owner`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ownership {
    /// The canonical record; `None` if no claim is one.
    pub owner: Option<Owner>,
    /// Other current claims, newest first: unprotected, written by the agent itself or without an author, or
    /// protected but begun later. They decide nothing; at most [`MAX_CLAIMS`] are listed.
    pub other_claims: Vec<ContentAddress>,
}

/// A record of ownership: [`Session::owner`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Owner {
    /// The belief.
    pub address: ContentAddress,
    /// The name of the owner, if the object is text.
    pub name: Option<String>,
    /// The `owner` map: the legal entity (OMS 12.5.1).
    pub entity: Option<Value>,
    /// The DID that wrote the record.
    pub author: String,
}

/// A declared capability of an agent: [`Session::capabilities`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Capability {
    /// The belief.
    pub address: ContentAddress,
    /// The DID of the agent.
    pub agent: String,
    /// The object: a map of the keys of OMS 28.5, or a text.
    pub capability: Value,
}

impl Session {
    /// The owner of an agent (OMS 12.5.3): the current belief about it in `agent:identity` that is protected
    /// by a policy and has an `author_did` other than the agent's own.
    ///
    /// Of several, the one whose protected supersession chain entered the store first: a later claim never
    /// replaces a protected one, whatever time it states; only a supersession its policy allows does.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// session.put(Grain::from_json(
    ///     r#"{"type": "belief", "subject": "did:web:agent.example", "relation": "mg:owned_by",
    ///         "object": "Example Corp", "namespace": "agent:identity", "confidence": 1,
    ///         "author_did": "did:web:corp.example", "invalidation_policy": {"mode": "locked"},
    ///         "created_at": "2026-03-02T09:00:00Z"}"#,
    /// )?)?;
    /// let ownership = session.owner("did:web:agent.example")?;
    /// assert_eq!(ownership.owner.and_then(|owner| owner.name).as_deref(), Some("Example Corp"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` for an agent with too many claims to read, `ERR_TIMEOUT`, `ERR_INTEGRITY`, `ERR_IO`.
    pub fn owner(&self, agent: &str) -> Result<Ownership> {
        let agent = normalised(agent)?;
        let options = GraphOptions::default();
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, &options);
            let about = |relation| IndexLookup::subject_relation(agent.as_str().into(), relation);
            let shapes = OWNED_BY.map(|relation| about(relation.into()));
            let mut claims = Vec::new();
            for posting in reader.postings_in(&Scope::Exact(IDENTITY.into()), &shapes)? {
                claims.extend(reader.read_current(posting?.sequence, |seen| {
                    let fits = is_identity_belief(seen.grain, &OWNED_BY)
                        && has_subject(seen.grain, &agent);
                    Ok(fits.then(|| OwnershipClaim::of(seen, &agent)))
                })?);
            }
            let canonical = earliest_record(&mut reader, &claims)?;
            let owner = match canonical {
                Some(claim) => reader.read_current(claim.sequence, |seen| Ok(Owner::of(seen)))?,
                None => None,
            };
            let others = claims.iter().map(|claim| claim.address);
            let others =
                others.filter(|address| canonical.is_none_or(|own| own.address != *address));
            Ok(Ownership { owner, other_claims: others.take(MAX_CLAIMS).collect() })
        })
    }

    /// The capabilities of an agent: its current beliefs of `mg:offers`, newest first.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// session.put(Grain::from_json(
    ///     r#"{"type": "belief", "subject": "did:web:agent.example", "relation": "mg:has_capability",
    ///         "object": {"name": "summaries", "supported_tools": ["cite"]}, "confidence": 1,
    ///         "namespace": "agent:identity", "created_at": "2026-03-02T09:00:00Z"}"#,
    /// )?)?;
    /// assert_eq!(session.capabilities("did:web:agent.example")?.items.len(), 1);
    /// assert_eq!(session.agents_with("cite")?.items[0].agent, "did:web:agent.example");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::owner`].
    pub fn capabilities(&self, agent: &str) -> Result<BoundedList<Capability>> {
        let agent = normalised(agent)?;
        let shape = IndexLookup::subject_relation(agent.as_str().into(), HAS_CAPABILITY.into());
        self.capabilities_at(&[shape], |grain| has_subject(grain, &agent))
    }

    /// The agents that have a capability of this name, or support a tool of this name, newest first.
    /// [`Session::capabilities`] shows both.
    ///
    /// # Errors
    /// As [`Session::owner`].
    pub fn agents_with(&self, name: &str) -> Result<BoundedList<Capability>> {
        let name = normalised(name)?;
        let object = Some(Object::Text(name.as_str().into()));
        let relation = Some(HAS_CAPABILITY.into());
        let shapes = [
            IndexLookup::Value(Field::ObjectLeaf, name.as_str().into()),
            IndexLookup::Triple { subject: None, relation, object },
        ];
        self.capabilities_at(&shapes, |grain| has_capability(grain, &name))
    }

    fn capabilities_at(
        &self,
        shapes: &[IndexLookup<'_>],
        fits: impl Fn(&GrainRef<'_>) -> bool,
    ) -> Result<BoundedList<Capability>> {
        let options = GraphOptions::default();
        let mut found = BoundedListBuilder::new(MAX_CAPABILITIES, MAX_CAPABILITIES)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, &options);
            for posting in reader.postings_in(&Scope::Exact(IDENTITY.into()), shapes)? {
                let capability = reader.read_current(posting?.sequence, |seen| {
                    let grain = seen.grain;
                    let fits = is_identity_belief(grain, &[HAS_CAPABILITY]) && fits(grain);
                    let said = grain.text("subject").zip(grain.get("object"));
                    Ok(said.filter(|_| fits).map(|(agent, capability)| {
                        let (address, agent) = (seen.address(), agent.to_owned());
                        let capability = capability.to_value();
                        (Capability { address, agent, capability }, grain.payload_len())
                    }))
                })?;
                let Some((capability, bytes)) = capability else { continue };
                if let Some(full) = found.push(capability, bytes) {
                    return Ok(full);
                }
            }
            Ok(found.end())
        })
    }
}

/// Returns `true` if a grain is a belief of the identity namespace in one of these relations.
fn is_identity_belief(grain: &GrainRef<'_>, relations: &[&str]) -> bool {
    grain.grain_type() == GrainType::Belief
        && grain.partition() == IDENTITY
        && grain.text("relation").is_some_and(|relation| relations.contains(&relation))
}

fn has_subject(grain: &GrainRef<'_>, agent: &str) -> bool {
    grain.text("subject") == Some(agent)
}

/// A claim of ownership.
#[derive(Clone, Copy)]
struct OwnershipClaim {
    address: ContentAddress,
    sequence: Sequence,
    /// True if it is protected and written by another than the agent.
    is_record: bool,
}

impl OwnershipClaim {
    fn of(seen: &VisibleGrain<'_>, agent: &str) -> Self {
        let is_record =
            independent_author(seen, agent).is_some() && PolicyTerms::of(seen.grain).protects();
        Self { address: seen.address(), sequence: seen.sequence, is_record }
    }
}

impl Owner {
    fn of(seen: &VisibleGrain<'_>) -> Option<Self> {
        Some(Self {
            address: seen.address(),
            name: seen.grain.text("object").map(str::to_owned),
            entity: seen.grain.get("owner").map(|entity| entity.to_value()),
            author: seen.grain.text("author_did")?.to_owned(),
        })
    }
}

/// The record whose protected chain began first in the log.
fn earliest_record<'c>(
    reader: &mut GraphReader<'_>,
    claims: &'c [OwnershipClaim],
) -> Result<Option<&'c OwnershipClaim>> {
    let mut first: Option<(Sequence, &OwnershipClaim)> = None;
    for claim in claims.iter().filter(|claim| claim.is_record) {
        let began = chain_start(reader, claim)?;
        if first.is_none_or(|(earliest, _)| began < earliest) {
            first = Some((began, claim));
        }
    }
    Ok(first.map(|(_, claim)| claim))
}

/// The author of a claim; `None` if there is none or it is the agent itself. A key of a DID (`did#key`)
/// counts as that DID.
fn independent_author<'g>(seen: &VisibleGrain<'g>, agent: &str) -> Option<&'g str> {
    let author = seen.grain.text("author_did").filter(|author| !author.is_empty())?;
    let did = |text: &str| text.split('#').next().map(str::to_owned);
    (did(author) != did(agent)).then_some(author)
}

/// The sequence at which the protected chain of a record begins.
fn chain_start(reader: &mut GraphReader<'_>, record: &OwnershipClaim) -> Result<Sequence> {
    let (mut address, mut began) = (record.address, record.sequence);
    loop {
        let parents = reader.read_any(began, |seen| {
            Ok(Some(addresses_in(seen.grain, "derived_from").collect::<Vec<_>>()))
        })?;
        let mut before = None;
        for parent in parents.into_iter().flatten() {
            before = before.or(reader.read_by_address(&parent, |seen| {
                let is_version = seen.state.superseded_by == Some(address);
                let protects = PolicyTerms::of(seen.grain).protects();
                Ok((is_version && protects).then_some((parent, seen.sequence)))
            })?);
        }
        let Some(earlier) = before else { return Ok(began) };
        (address, began) = earlier;
    }
}

/// Returns `true` if a capability has this name or lists a tool of this name.
fn has_capability(grain: &GrainRef<'_>, name: &str) -> bool {
    let Some(object) = grain.get("object") else { return false };
    let Some(map) = object.as_map() else { return object.as_str() == Some(name) };
    let tools = map.get("supported_tools").and_then(|tools| tools.as_array());
    let mut tools = tools.into_iter().flat_map(|tools| tools.iter());
    map.get("name").and_then(|value| value.as_str()) == Some(name)
        || tools.any(|tool| tool.as_str() == Some(name))
}
