//! Methods for maintenance: `verify`, `doctor`, `stats`, `reindex`, `compact`, `remove_vectors`, `backup`;
//! and `checkpoint`.
//!
//! They concern the whole store, and need its operator in a session without a namespace and a user; `verify`
//! and `doctor` tell other sessions only whether the store is sound.

use grainstore::Power;
use grainstore::format::cose::Algorithm;
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::params::{self, Nothing};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Base64;
use crate::shape::signing_key;
use crate::withheld::{expect_signer, withhold_findings, withhold_problems};

pub(crate) fn verify(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Verify = params::read(params)?;
    let certificates = params.certificates.all("certificates")?;
    let session = host.session()?;
    let store = session.store();
    let passed = match &params.checkpoint {
        Some(checkpoint) => {
            expect_signer(checkpoint, params.signer.as_deref())?;
            store.passes(checkpoint)?
        }
        None => None,
    };
    let mut found = store.verify(params.full.unwrap_or_default())?.with(passed);
    for returned in store.returned(&certificates)? {
        found = returned.problems().fold(found, |found, one| found.with(Some(one)));
    }
    if !session.has_powers() {
        withhold_problems(&mut found);
    }
    Answer::of(&found)
}

pub(crate) fn checkpoint(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Checkpoint = params::read(params)?;
    host.session()?.check_power(Power::Checkpoint)?;
    let key =
        params.key.map(|Base64(secret)| signing_key(Algorithm::EdDsa, &Zeroizing::new(secret)));
    Answer::of(&host.session()?.store().checkpoint(key.transpose()?.as_ref())?)
}

pub(crate) fn doctor(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    let session = host.session()?;
    let mut diagnosis = session.store().doctor();
    if !session.has_powers() {
        withhold_findings(&mut diagnosis);
    }
    Answer::of(&diagnosis)
}

pub(crate) fn stats(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Stats = params::read(params)?;
    let session = host.session()?;
    session.check_power(Power::Stats)?;
    let store = session.store();
    let mut figures = serde_json::to_value(store.stats()?)?;
    if params.pages.unwrap_or_default()
        && let Some(figures) = figures.as_object_mut()
    {
        figures.insert("pages".to_owned(), serde_json::to_value(store.pages()?)?);
    }
    Answer::of(&figures)
}

pub(crate) fn reindex(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    let session = host.session()?;
    session.check_power(Power::Reindex)?;
    let grains = session.store().reindex()?;
    Answer::of(&json!({ "grains": grains }))
}

pub(crate) fn compact(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    let session = host.session()?;
    session.check_power(Power::Compact)?;
    Answer::of(&session.store().compact()?)
}

pub(crate) fn remove_vectors(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::RemoveVectors = params::read(params)?;
    let session = host.session()?;
    session.check_power(Power::RemoveVectors)?;
    Answer::of(&json!({ "removed": session.store().remove_vectors(&params.model)? }))
}

pub(crate) fn backup(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Backup = params::read(params)?;
    let session = host.session()?;
    session.check_power(Power::Backup)?;
    Answer::of(&session.store().backup(&params.path)?)
}
