//! Methods that keep a store in order: `verify`, `doctor`, `stats`, `reindex`, `compact`, `remove_vectors`,
//! `backup`;
//! and `checkpoint`.
//!
//! They concern the whole store, whatever the session sees. To a session with a namespace or a user they
//! give figures, and nothing that names a grain, a namespace or a subject outside of it.

use grainstore::Session;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::answer::Answer;
use super::fault::Fault;
use super::host::Host;
use super::json::Base64;
use super::params::{self, Nothing};
use crate::commands::verify::expect_signer;
use crate::error::{Code, Error};
use crate::shape::AlgorithmName;

/// What is said in place of a detail.
const WITHHELD: &str = "told to a session without a namespace or a user";

pub(crate) fn verify(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Verify = params::read(params)?;
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
    if !may_know_names(session) {
        // Keys and details may hold addresses and words of others.
        for problem in &mut found.problems {
            let table = problem.place.split(' ').next().unwrap_or_default().to_owned();
            problem.place = table;
            WITHHELD.clone_into(&mut problem.detail);
        }
    }
    Answer::of(&found)
}

pub(crate) fn checkpoint(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Checkpoint = params::read(params)?;
    let key = params.key.map(|Base64(secret)| AlgorithmName::Ed25519.key(&Zeroizing::new(secret)));
    Answer::of(&host.session()?.store().checkpoint(key.transpose()?.as_ref())?)
}

pub(crate) fn doctor(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    let session = host.session()?;
    let mut diagnosis = session.store().doctor();
    if !may_know_names(session) {
        for finding in &mut diagnosis.findings {
            if finding.name == "vectors" {
                // It may name models.
                WITHHELD.clone_into(&mut finding.detail);
            }
        }
    }
    Answer::of(&diagnosis)
}

pub(crate) fn stats(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Stats = params::read(params)?;
    let session = host.session()?;
    let store = session.store();
    let mut figures = serde_json::to_value(store.stats()?)?;
    if !may_know_names(session) {
        drop_names(&mut figures);
    }
    if params.pages.unwrap_or_default()
        && let Some(figures) = figures.as_object_mut()
    {
        figures.insert("pages".to_owned(), serde_json::to_value(store.pages()?)?);
    }
    Answer::of(&figures)
}

pub(crate) fn reindex(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    let grains = host.session()?.store().reindex()?;
    Answer::of(&json!({ "grains": grains }))
}

pub(crate) fn compact(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let Nothing {} = params::read(params)?;
    Answer::of(&host.session()?.store().compact()?)
}

pub(crate) fn remove_vectors(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::RemoveVectors = params::read(params)?;
    let session = host.session()?;
    if !may_know_names(session) {
        return Err(confined("a model has vectors of everybody, and this session sees a part"));
    }
    Answer::of(&json!({ "removed": session.store().remove_vectors(&params.model)? }))
}

pub(crate) fn backup(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Backup = params::read(params)?;
    let session = host.session()?;
    if !may_know_names(session) {
        return Err(confined("a backup holds everything, and this session sees a part"));
    }
    Answer::of(&session.store().backup(&params.path)?)
}

fn confined(message: &str) -> Fault {
    Error::new(Code::Access, message, "call session with namespace null and no user_id first")
        .into()
}

/// Leaves figures alone: models and domains are named by those who brought them, and an embedder may
/// quote in its error the text it was given. Of an error the code is left.
fn drop_names(figures: &mut Value) {
    match figures {
        Value::Object(members) => {
            members.remove("observer_domains");
            members.retain(|name, figure| {
                match &mut *figure {
                    Value::String(text) if name == "error" => {
                        text.truncate(text.find(':').unwrap_or_default());
                    }
                    other => drop_names(other),
                }
                !figure.is_string() || ["error", "metric"].contains(&name.as_str())
            });
        }
        Value::Array(list) => {
            list.retain(|figure| !figure.is_string());
            list.iter_mut().for_each(drop_names);
        }
        _ => {}
    }
}

/// Whether a session may be told what others have named.
fn may_know_names(session: &Session) -> bool {
    let scope = session.options();
    scope.namespace.is_none() && scope.user_id.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_names_are_numbers_metrics_and_codes() {
        let mut figures = json!({
            "grains": 3,
            "vectors": [{ "model": "m", "metric": "dot", "vectors": null }],
            "embedding": { "model": "m", "behind": 1, "error": "ERR_TIMEOUT: no answer to: x" },
            "serving_model": "m",
            "leaving_models": ["m"],
            "observer_domains": { "camera": "excluded" },
        });
        drop_names(&mut figures);
        let left = json!({
            "grains": 3,
            "vectors": [{ "metric": "dot", "vectors": null }],
            "embedding": { "behind": 1, "error": "ERR_TIMEOUT" },
            "leaving_models": [],
        });
        assert_eq!(figures, left);
    }
}
