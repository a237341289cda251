//! Operations for the rules of the store and the policies of grains: `policy_show`, `policy_set`,
//! `policy_explain`.

use grainstore::{RuleChangeReport, RuleSet, Session};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments::{PresetName, offer};
use crate::error::{Error, Result};
use crate::explained::{Asked, Attempt, Explained};
use crate::host::Host;
use crate::json::{Address, Base64};

/// Shows the rules of a preset, or of the open store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Show {
    preset: Option<PresetName>,
}

pub(crate) fn policy_show(given: Show, host: &mut Host) -> Result<RuleSet> {
    match given.preset {
        Some(PresetName(preset)) => Ok(preset.rules()?),
        None => Ok(RuleSet::clone(&host.session()?.store().rules())),
    }
}

/// Arguments of [`policy_set`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRules {
    /// A file of rules, TOML or JSON.
    pub rules: String,
    /// True to take what loosens rules as well.
    #[serde(default)]
    pub allow_weaker: bool,
    /// The reason, for the audit log.
    pub reason: String,
}

/// Adds rules to those of the store.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore_rpc::{SetRules, policy_set};
///
/// let (rules, reason) = (r#"extends = "gdpr""#.into(), "we sell in Europe".into());
/// let report = policy_set(SetRules { rules, allow_weaker: false, reason }, &session)?;
/// assert!(report.changed && report.loosened.is_empty());
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn policy_set(given: SetRules, session: &Session) -> Result<RuleChangeReport> {
    Ok(session.change_rules(&given.rules, given.allow_weaker, &given.reason)?)
}

/// Explains the policy of a grain, and previews its supersession of another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explain<'p> {
    address: Option<Address>,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    supersede: Option<Address>,
    justification: Option<String>,
}

pub(crate) fn policy_explain(given: Explain<'_>, host: &mut Host) -> Result<Explained> {
    let is_given = given.grain.is_some() || given.blob.is_some() || given.cose.is_some();
    if given.address.is_some() == is_given {
        return Err(Error::arguments("give exactly one of address, grain, blob and cose"));
    }
    if given.supersede.is_none() && given.justification.is_some() {
        return Err(Error::arguments("justification goes with supersede"));
    }
    let asked = match given.address {
        Some(address) => {
            let session = host.session()?.clone();
            Asked::Stored(Box::new(session.inspect(&address.get()?)?), session)
        }
        None => Asked::Offered(offer(given.grain, given.blob, given.cose)?),
    };
    let attempt = match given.supersede {
        None => None,
        Some(old) => Some(Attempt {
            session: host.session()?.clone(),
            old: old.get()?,
            justification: given.justification,
        }),
    };
    Explained::of(asked, attempt)
}
