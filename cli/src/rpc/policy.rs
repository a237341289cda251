//! Methods for the rules of the store: `policy_show`, `policy_set`.

use serde_json::value::RawValue;

use super::answer::Answer;
use super::fault::Fault;
use super::host::Host;
use super::params::{self, PresetName};

/// Answers the rules of the open store, or those of a preset.
pub(crate) fn show(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::PolicyShow = params::read(params)?;
    match params.preset {
        Some(PresetName(preset)) => Answer::of(&preset.rules()?),
        None => Answer::of(&*host.session()?.store().rules()),
    }
}

pub(crate) fn set(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::PolicySet = params::read(params)?;
    let session = host.session()?;
    Answer::of(&session.change_rules(&params.rules, params.allow_weaker, &params.reason)?)
}
