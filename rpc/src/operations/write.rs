//! Operations that write grains: `put`, `put_batch`, `supersede`; also `embed` and `wait_for_vectors`.

use grainstore::embed::Embedding;
use grainstore::format::EncodeOptions;
use grainstore::limits::MAX_BATCH as MAX_ITEMS;
use grainstore::{ContentAddress, Grain, Offer, SameFact, Session};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::codec::Sensitive;
use super::vectors::{Vectors, embeddings};
use crate::answer::List;
use crate::arguments::{Nothing, offer, wait};
use crate::error::{Code, Error, Result};
use crate::json::{Address, Base64, Few};
use crate::shape::{FORMAT_VERSION, PutAnswer, SupersedeAnswer};

/// Most grains of one batch: the answer to more would exceed its limit after they are stored.
const MAX_BATCH_GRAINS: usize = 75_000;
/// Most grains of one batch with warnings, for the same reason.
const MAX_WARNED_GRAINS: usize = 256;

/// Said where a sensitivity is given for bytes.
const SENSITIVITY_OF_BYTES: &str = "sensitivity is for a grain in JSON: bytes have theirs";

/// Encodes a grain with the sensitivity of its writer, if that is given (OMS 13.1).
///
/// ```
/// use grainstore::{EpochMs, Offer, format::BeliefBuilder};
/// use grainstore_rpc::{Sensitive, as_sensitive};
///
/// let at = EpochMs::new(1_768_471_200_000);
/// let grain = BeliefBuilder::new(at, "alice", "prefers", "tea", 0.9).build()?;
/// let offer = as_sensitive(grain.into(), Some(Sensitive::Pii))?;
/// assert!(matches!(offer, Offer::Blob(_)));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
///
/// # Errors
/// `ERR_SENSITIVITY_MISMATCH` for less than its tags require; that of arguments for a grain in bytes.
pub fn as_sensitive(offer: Offer, level: Option<Sensitive>) -> Result<Offer> {
    let Some(level) = level else { return Ok(offer) };
    let Offer::Grain(grain) = offer else { return Err(Error::arguments(SENSITIVITY_OF_BYTES)) };
    let options = EncodeOptions { sensitivity: Some(level.into()), ..EncodeOptions::default() };
    Ok(grain.encode_with(&options)?.into())
}

/// Stores a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put<'p> {
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    #[serde(default)]
    vectors: Vectors,
    #[serde(default)]
    same_fact: SameFact,
    sensitivity: Option<Sensitive>,
}

pub(crate) fn put(given: Put<'_>, session: &Session) -> Result<PutAnswer> {
    let offer = offer(given.grain, given.blob, given.cose)?;
    let offer = as_sensitive(offer, given.sensitivity)?;
    let offer = offer.with_vectors(embeddings(given.vectors)?);
    let warnings = offer.warnings();
    Ok(PutAnswer::new(session.put_fact(offer, given.same_fact)?, warnings))
}

/// Stores a batch of grains, all of them or none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutBatch<'p> {
    #[serde(borrow)]
    grains: Option<Few<&'p RawValue, MAX_ITEMS>>,
    blobs: Option<Few<Base64, MAX_ITEMS>>,
    cose: Option<Few<Base64, MAX_ITEMS>>,
    /// Blobs and signed grains, as `read_frames` answers them.
    entries: Option<Few<Base64, MAX_ITEMS>>,
    #[serde(default)]
    vectors: Few<Vectors, MAX_ITEMS>,
    sensitivity: Option<Sensitive>,
}

pub(crate) fn put_batch(given: PutBatch<'_>, session: &Session) -> Result<Value> {
    let vectors = given.vectors.all("vectors")?.into_iter().map(embeddings);
    let vectors = vectors.collect::<Result<_>>()?;
    if given.sensitivity.is_some() && given.grains.is_none() {
        return Err(Error::arguments(SENSITIVITY_OF_BYTES));
    }
    let offers = match (given.grains, given.blobs, given.cose, given.entries) {
        (Some(grains), None, None, None) => convert_grains(grains.all("grains")?, |grain| {
            as_sensitive(Grain::from_json(grain.get())?.into(), given.sensitivity)
        })?,
        (None, Some(blobs), None, None) => {
            convert_grains(blobs.all("blobs")?, |Base64(blob)| Ok(Offer::Blob(blob)))?
        }
        (None, None, Some(cose), None) => {
            convert_grains(cose.all("cose")?, |Base64(cose)| Ok(Offer::Signed(cose)))?
        }
        (None, None, None, Some(entries)) => {
            convert_grains(entries.all("entries")?, |Base64(entry)| {
                // No envelope begins with the version byte of a blob.
                Ok(match entry.first() {
                    Some(&FORMAT_VERSION) => Offer::Blob(entry),
                    _ => Offer::Signed(entry),
                })
            })?
        }
        _ => return Err(Error::arguments("give exactly one of grains, blobs, cose and entries")),
    };
    let offers = with_vectors(offers, vectors)?;
    let mut doubtful = 0;
    let warnings: Vec<_> = offers
        .iter()
        .map(|offer| {
            let warnings = if doubtful < MAX_WARNED_GRAINS { offer.warnings() } else { Vec::new() };
            doubtful += usize::from(!warnings.is_empty());
            warnings
        })
        .collect();
    let mut results = List::default();
    for (put, warnings) in session.put_batch(offers)?.into_iter().zip(warnings) {
        results.push(&PutAnswer::new(put, warnings))?;
    }
    Ok(json!({ "results": results }))
}

/// Adds vectors to a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Embed {
    address: Address,
    vectors: Vectors,
}

pub(crate) fn embed(given: Embed, session: &Session) -> Result<Nothing> {
    session.embed(&given.address.get()?, embeddings(given.vectors)?)?;
    Ok(Nothing {})
}

/// Waits until the embedder has made all vectors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitForVectors {
    /// The longest time to wait, ten seconds by default.
    timeout_ms: Option<u64>,
}

pub(crate) fn wait_for_vectors(given: WaitForVectors, session: &Session) -> Result<Value> {
    let done = session.store().wait_for_vectors(wait(given.timeout_ms)?)?;
    Ok(json!({ "done": done }))
}

/// Supersedes a grain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Supersede<'p> {
    old: Address,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    #[serde(default)]
    vectors: Vectors,
    justification: Option<String>,
    sensitivity: Option<Sensitive>,
}

pub(crate) fn supersede(given: Supersede<'_>, session: &Session) -> Result<SupersedeAnswer> {
    let old = given.old.get()?;
    let offer = offer(given.grain, given.blob, given.cose)?;
    let offer = as_sensitive_successor(offer, given.sensitivity)?;
    let offer = offer.with_vectors(embeddings(given.vectors)?);
    let new = supersede_by(session, &old, offer, given.justification.as_deref())?;
    Ok(SupersedeAnswer { superseded: None, ..new })
}

/// As [`as_sensitive`], of a grain that is to take the place of another: it still gets its `derived_from` and its
/// justification when it does.
///
/// ```
/// # use grainstore::{EpochMs, Offer, format::BeliefBuilder};
/// # use grainstore_rpc::{Sensitive, as_sensitive_successor};
/// # let at = EpochMs::new(1_768_471_200_000);
/// let grain = BeliefBuilder::new(at, "alice", "prefers", "tea", 0.9).build()?;
/// let offer = as_sensitive_successor(grain.into(), Some(Sensitive::Pii))?;
/// assert!(matches!(offer, Offer::Grain(_)));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
///
/// # Errors
/// Those of [`as_sensitive`].
pub fn as_sensitive_successor(offer: Offer, level: Option<Sensitive>) -> Result<Offer> {
    match as_sensitive(offer, level)? {
        Offer::Blob(bytes) if level.is_some() => Ok(Grain::decode(&bytes)?.into()),
        offer => Ok(offer),
    }
}

/// Supersedes a grain by another.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// # let tea = session.put(grain)?.address();
/// let coffee = BeliefBuilder::new(session.now(), "alice", "prefers", "coffee", 0.9).build()?;
/// let answer = grainstore_rpc::supersede_by(&session, &tea, coffee.into(), Some("she said so"))?;
/// assert_eq!(answer.superseded, Some(tea));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn supersede_by(
    session: &Session,
    old: &ContentAddress,
    new: Offer,
    justification: Option<&str>,
) -> Result<SupersedeAnswer> {
    let warnings = session.warnings_of_successor(old, &new);
    let address = session.supersede(old, new, justification)?;
    Ok(SupersedeAnswer { address, superseded: Some(*old), warnings })
}

/// Adds the vectors to the offers, if there are any.
fn with_vectors(offers: Vec<Offer>, vectors: Vec<Vec<Embedding>>) -> Result<Vec<Offer>> {
    if vectors.is_empty() {
        return Ok(offers);
    }
    if vectors.len() != offers.len() {
        let message = "vectors: as many lists as there are grains, [] for a grain without any";
        return Err(Error::arguments(message));
    }
    let pairs = offers.into_iter().zip(vectors);
    Ok(pairs.map(|(offer, vectors)| offer.with_vectors(vectors)).collect())
}

/// Converts the grains of a batch; an error names the position, from 0.
fn convert_grains<T>(items: Vec<T>, offer: impl Fn(T) -> Result<Offer>) -> Result<Vec<Offer>> {
    if items.len() > MAX_BATCH_GRAINS {
        let message = format!("a batch holds {MAX_BATCH_GRAINS} grains at most");
        return Err(Error::new(Code::Limit, message, "send several batches"));
    }
    let offers = items.into_iter().enumerate().map(|(at, item)| {
        offer(item).map_err(|error| error.in_context(&format!("grain {at}")).of_grain(at))
    });
    offers.collect()
}
