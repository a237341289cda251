//! Methods for the rules of the store: `policy_show`, `policy_set`.

use serde_json::value::RawValue;

use super::params::{self, PresetName};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;

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
