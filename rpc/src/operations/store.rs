//! Methods for the connection and its store: `hello`, `clock`, `open`, `session`, `close`.

use std::time::Duration;

use grainstore::{
    CAL_CONFORMANCE, CAL_EXCEPTIONS, EpochMs, MasterKey, OpenOptions, Passphrase, SessionOptions,
};
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::params::{self, Nothing, PresetName};
use crate::error::{Code, Error};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Formed;
use crate::protocol::methods;

/// OMS conformance level (section 17): a production store, with envelopes encrypted under users' keys, blind
/// tokens, the hexastore, full text, an audit chain, recovery and presets.
const OMS_LEVEL: u8 = 3;

pub(crate) fn hello(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    let every = || CAL_EXCEPTIONS.map(str::to_owned).to_vec();
    let level = host.session().map_or(CAL_CONFORMANCE, |own| own.store().cal_conformance());
    let exceptions = host.session().map_or_else(|_| every(), |own| own.store().cal_exceptions());
    let methods = methods::all(host.clock().is_some()).map(|method| method.name);
    Answer::of(&json!({
        "name": "grainstore",
        "version": env!("CARGO_PKG_VERSION"),
        "oms_level": OMS_LEVEL,
        "cal_conformance": level,
        "cal_exceptions": exceptions,
        // `cal` with tier 1 is the host's own choice to write in one call.
        "cal_one_step_writes": true,
        "methods": methods.collect::<Vec<_>>(),
    }))
}

pub(crate) fn clock(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params::Clock { now_ms } = params::read(params)?;
    if let Some(clock) = host.clock() {
        clock.set(EpochMs::new(now_ms));
    }
    Ok(Answer::empty())
}

pub(crate) fn open(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Open = params::read(params)?;
    if params.path.is_empty() {
        return Err(Fault::params("path must not be empty"));
    }
    let session =
        params.session.map(|Formed(scope)| SessionOptions::try_from(scope)).transpose()?;
    let mut options = OpenOptions::new()
        .create(params.create.unwrap_or_default())
        .read_only(params.read_only.unwrap_or_default());
    options = match (params.key, params.passphrase) {
        (None, None) => options,
        (Some(key), None) => options.key(master_key(&Zeroizing::new(key.0))?),
        (None, Some(passphrase)) => options.key(Passphrase::new(passphrase)),
        (Some(_), Some(_)) => return Err(Fault::params("give a key or a passphrase, not both")),
    };
    if let Some(wait) = params.wait_ms {
        options = options.wait(Duration::from_millis(wait));
    }
    if let Some(PresetName(preset)) = params.preset {
        options = options.preset(preset);
    }
    if let Some(compress) = params.compress {
        options = options.compress(compress);
    }
    for Formed(spoken) in params.languages.all("languages")? {
        options = options.language(spoken.namespace.as_deref(), &spoken.language)?;
    }
    if let Some(Formed(maker)) = params.embedder {
        let (embedder, metric) = maker.embedder()?;
        options = options.embedder(embedder, metric);
    }
    if let Some(Formed(maker)) = params.former_embedder {
        let (embedder, metric) = maker.embedder()?;
        options = options.former_embedder(embedder, metric);
    }
    if let Some(audit) = params.audit_reads {
        options = options.audit_reads(audit);
    }
    if let Some(operator) = params.operator {
        options = options.operator(operator);
    }
    for reviewer in params.reviewers.all("reviewers")? {
        options = options.reviewer(reviewer);
    }
    let created = host.open(&params.path, options, session.unwrap_or_default())?;
    Answer::of(&json!({ "created": created }))
}

fn master_key(bytes: &[u8]) -> Result<MasterKey, Fault> {
    let key = bytes.try_into().map_err(|_| {
        let message = format!("a key has 32 bytes, not {}", bytes.len());
        Error::new(Code::Key, message, "give the base64 of 32 bytes")
    })?;
    Ok(MasterKey::new(key))
}

pub(crate) fn session(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let scope: params::Session = params::read(params)?;
    host.rescope(scope.try_into()?)?;
    Ok(Answer::empty())
}

pub(crate) fn close(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    host.close()?;
    Ok(Answer::empty())
}
