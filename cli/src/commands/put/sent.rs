//! Grains as parameters of methods, for the process that has the store open.

use data_encoding::BASE64;
use grainstore::format::Encoding;
use grainstore::{Offer, SameFact};
use grainstore_rpc::PutAnswer;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::error::{Code, Error, Result};

/// The answer of `put_batch`.
#[derive(Deserialize)]
pub(super) struct Stored {
    pub(super) results: Vec<PutAnswer>,
}

/// The parameters that give a grain to another process.
pub(crate) fn offered(offer: &Offer) -> Result<Map<String, Value>> {
    let (name, value) = match offer {
        Offer::Grain(grain) => ("grain", serde_json::to_value(grain)?),
        Offer::Blob(blob) => ("blob", json!(BASE64.encode(blob))),
        Offer::Signed(cose) => ("cose", json!(BASE64.encode(cose))),
        other => return Err(Error::new(Code::Schema, format!("{other:?} is not sent"), "")),
    };
    Ok(Map::from_iter([(name.to_owned(), value)]))
}

/// The parameters that give a batch to another process. Where not all of it is grains, their bytes are sent.
pub(super) fn batch_of(offers: &[Offer]) -> Result<Batched> {
    let json = |offer: &Offer| match offer {
        Offer::Grain(grain) => Some(to_raw_value(grain)),
        _ => None,
    };
    let blob = |offer: &Offer| match offer {
        Offer::Blob(blob) => Some(BASE64.encode(blob)),
        _ => None,
    };
    let cose = |offer: &Offer| match offer {
        Offer::Signed(cose) => Some(BASE64.encode(cose)),
        _ => None,
    };
    if let Some(grains) = offers.iter().map(json).collect::<Option<Vec<_>>>() {
        return Ok(Batched::Grains(grains.into_iter().collect::<serde_json::Result<_>>()?));
    }
    if let Some(blobs) = offers.iter().map(blob).collect() {
        return Ok(Batched::Blobs(blobs));
    }
    if let Some(cose) = offers.iter().map(cose).collect() {
        return Ok(Batched::Cose(cose));
    }
    let entries = offers.iter().map(|offer| match offer {
        Offer::Grain(grain) => Ok(BASE64.encode(grain.encode(Encoding::default())?.bytes())),
        Offer::Blob(bytes) | Offer::Signed(bytes) => Ok(BASE64.encode(bytes)),
        other => Err(Error::new(Code::Schema, format!("{other:?} is not sent"), "")),
    });
    Ok(Batched::Entries(entries.collect::<Result<_>>()?))
}

/// The parameters of `put_batch`.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Batched {
    Grains(Vec<Box<RawValue>>),
    Blobs(Vec<String>),
    Cose(Vec<String>),
    Entries(Vec<String>),
}

/// The name of a choice in docs/rpc.md.
pub(super) fn same_fact_name(choice: SameFact) -> &'static str {
    match choice {
        SameFact::Keep => "keep",
        SameFact::Supersede => "supersede",
        SameFact::Unique => "unique",
        SameFact::Add => "add",
    }
}
