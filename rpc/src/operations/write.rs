//! Methods that write grains: `put`, `put_batch`, `supersede`; also `embed` and `wait_for_vectors`.

use grainstore::embed::Embedding;
use grainstore::{Grain, Offer};
use serde_json::json;
use serde_json::value::RawValue;

use super::params::{self, address};
use super::vectors;
use crate::error::{Code, Error};
use crate::protocol::answer::{Answer, List};
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Base64;
use crate::shape::{PutAnswer, SupersedeAnswer};

/// Most grains of one batch: the answer to more would exceed its limit after they are stored.
const MAX_BATCH: usize = 75_000;
/// Most grains of one batch with warnings, for the same reason.
const MAX_DOUBTFUL: usize = 256;

pub(crate) fn put(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::Put<'_> = params::read(params)?;
    let session = host.session()?;
    let offer = params.offer()?;
    let warnings = offer.warnings();
    let put = session.put_fact(offer, params.same_fact)?;
    Answer::of(&PutAnswer::new(put, warnings))
}

pub(crate) fn put_batch(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::PutBatch<'_> = params::read(params)?;
    let session = host.session()?;
    let vectors = params.vectors()?;
    let offers: Vec<Offer> = match (params.grains, params.blobs, params.cose) {
        (Some(grains), None, None) => {
            each(grains.all("grains")?, |grain| Ok(Grain::from_json(grain.get())?.into()))?
        }
        (None, Some(blobs), None) => {
            each(blobs.all("blobs")?, |Base64(blob)| Ok(Offer::Blob(blob)))?
        }
        (None, None, Some(cose)) => {
            each(cose.all("cose")?, |Base64(cose)| Ok(Offer::Signed(cose)))?
        }
        _ => return Err(Fault::params("give exactly one of grains, blobs and cose")),
    };
    let offers = with_vectors(offers, vectors)?;
    let mut doubtful = 0;
    let warnings: Vec<_> = offers
        .iter()
        .map(|offer| {
            let warnings = if doubtful < MAX_DOUBTFUL { offer.warnings() } else { Vec::new() };
            doubtful += usize::from(!warnings.is_empty());
            warnings
        })
        .collect();
    let mut results = List::default();
    for (put, warnings) in session.put_batch(offers)?.into_iter().zip(warnings) {
        results.push(&PutAnswer::new(put, warnings))?;
    }
    Answer::of(&json!({ "results": results }))
}

pub(crate) fn embed(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: vectors::Embed = params::read(params)?;
    let of = address(&params.address)?;
    host.session()?.embed(&of, params.vectors()?)?;
    Ok(Answer::empty())
}

pub(crate) fn wait_for_vectors(
    host: &mut Host,
    params: Option<&RawValue>,
) -> Result<Answer, Fault> {
    let params: vectors::Wait = params::read(params)?;
    let done = host.session()?.store().wait_for_vectors(params.patience()?)?;
    Answer::of(&json!({ "done": done }))
}

pub(crate) fn supersede(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let mut params: params::Supersede<'_> = params::read(params)?;
    let session = host.session()?;
    let old = address(&params.old)?;
    let offer = params.offer()?;
    let warnings = session.warnings_of_successor(&old, &offer);
    let new = session.supersede(&old, offer, params.justification.as_deref())?;
    Answer::of(&SupersedeAnswer::new(new, None, warnings))
}

/// Adds the vectors to the offers, if there are any.
fn with_vectors(offers: Vec<Offer>, vectors: Vec<Vec<Embedding>>) -> Result<Vec<Offer>, Fault> {
    if vectors.is_empty() {
        return Ok(offers);
    }
    if vectors.len() != offers.len() {
        let message = "vectors: as many lists as there are grains, [] for a grain without any";
        return Err(Fault::params(message));
    }
    let pairs = offers.into_iter().zip(vectors);
    Ok(pairs.map(|(offer, vectors)| offer.with_vectors(vectors)).collect())
}

/// Converts the grains of a batch; an error names the position, from 0.
fn each<T>(items: Vec<T>, offer: impl Fn(T) -> Result<Offer, Error>) -> Result<Vec<Offer>, Error> {
    if items.len() > MAX_BATCH {
        let message = format!("a batch holds {MAX_BATCH} grains at most");
        return Err(Error::new(Code::Limit, message, "send several batches"));
    }
    let offers = items
        .into_iter()
        .enumerate()
        .map(|(at, item)| offer(item).map_err(|error| error.within(&format!("grain {at}"))));
    offers.collect()
}
