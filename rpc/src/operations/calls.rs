//! Operations of CAL: `cal`, which may also write; `prepare`, `execute` and `cal_switch`; and `cal_convert`.

use std::borrow::Cow;

use grainstore::cal::{self, CalOperation, Format, Response, Tier};
use grainstore::format::GrainType;
use grainstore::{CalSwitch, CapabilityToken, PrepareOptions, PreparedQuery, Session, TokenLimits};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::query::Expand;
use super::stream::Events;
use crate::arguments::{MAX_NAMES, epoch_ms};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::json::{Few, Formed, Pairs};
use crate::question::{BeyondCal, Question};

/// Runs a statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cal {
    /// The unparsed text: a query in JSON keeps its positions and the spelling of its numbers.
    query: Box<RawValue>,
    params: Option<Pairs>,
    now: Option<i64>,
    #[serde(rename = "as")]
    format: Option<Format>,
    #[serde(default)]
    auto_toon: bool,
    expand: Option<Formed<Expand>>,
    #[serde(rename = "where")]
    beyond: Option<Formed<BeyondCal>>,
    tier: Option<u8>,
    namespace: Option<String>,
    user_id: Option<String>,
    agent_id: Option<String>,
}

pub(crate) fn cal(given: Cal, session: &Session, events: &mut Events<'_>) -> Result<Response> {
    let query = query_text(&given.query)?;
    let question = Question {
        query: query.as_bytes(),
        params: given.params.unwrap_or_default().0,
        format: given.format,
        evolve: tier(given.tier)? == Tier::Evolve,
        auto_toon: given.auto_toon,
        expansion: given.expand.map(|Formed(expand)| expand.expansion()).transpose()?,
        beyond: given.beyond.map(|Formed(beyond)| beyond).unwrap_or_default(),
        now: epoch_ms(given.now),
        cancel: events.cancel(),
        ..Question::default()
    };
    question.ask(&session.narrower_part(given.namespace, given.user_id, given.agent_id)?)
}

/// Prepares a statement, for a token that executes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    query: Box<RawValue>,
    params: Option<Pairs>,
    now: Option<i64>,
    #[serde(rename = "as")]
    format: Option<Format>,
    tier: Option<u8>,
    namespace: Option<String>,
    user_id: Option<String>,
    agent_id: Option<String>,
    terms: Option<Terms>,
}

/// Limits of a token.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Terms {
    max_uses: Option<u32>,
    life_ms: Option<u32>,
    allowed_ops: Option<Few<CalOperation, MAX_NAMES>>,
    allowed_grain_types: Option<Few<String, MAX_NAMES>>,
    write_quota: Option<u32>,
}

pub(crate) fn prepare(given: Prepare, session: &Session) -> Result<PreparedQuery> {
    let query = query_text(&given.query)?;
    let how = PrepareOptions {
        tier: tier(given.tier)?,
        params: given.params.unwrap_or_default().0,
        as_format: given.format,
        now: epoch_ms(given.now),
        terms: given.terms.unwrap_or_default().limits()?,
    };
    let session = session.narrower_part(given.namespace, given.user_id, given.agent_id)?;
    let prepared = session.prepare(query.as_bytes(), &how);
    prepared.map_err(|error| Error::from_cal(&error, &query))
}

impl Terms {
    fn limits(self) -> Result<TokenLimits> {
        let default = TokenLimits::default();
        let types = self.allowed_grain_types.unwrap_or_default().all("allowed_grain_types")?;
        let types = types.iter().map(|name| {
            let known = GrainType::STANDARD.into_iter().find(|of| of.name() == name);
            known.ok_or_else(|| Error::arguments(format!("{name:?} is no grain type")))
        });
        Ok(TokenLimits {
            max_uses: self.max_uses.unwrap_or(default.max_uses),
            life_ms: self.life_ms.unwrap_or(default.life_ms),
            allowed_ops: self.allowed_ops.map(|ops| ops.all("allowed_ops")).transpose()?,
            allowed_grain_types: types.collect::<Result<_>>()?,
            write_quota: self.write_quota,
        })
    }
}

/// Executes a prepared statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Execute {
    token: serde_json::Value,
}

pub(crate) fn execute(given: Execute, session: &Session) -> Result<Response> {
    let answer = session.execute(&token(given.token)?);
    answer.map_err(|error| Error::from_cal(&error, ""))
}

/// Parses a token that was given back; a malformed one is ERR_TOKEN, like an invalid one.
pub(super) fn token(given: serde_json::Value) -> Result<CapabilityToken> {
    serde_json::from_value(given).map_err(|error| {
        let message = format!("this is no token: {error}");
        Error::new(Code::Token, message, "give the token as prepare answered it")
    })
}

fn tier(number: Option<u8>) -> Result<Tier> {
    match number {
        None | Some(0) => Ok(Tier::Read),
        Some(1) => Ok(Tier::Evolve),
        Some(_) => Err(Error::arguments("tier must be 0 or 1")),
    }
}

/// Converts a statement to both forms, without a store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Convert {
    query: Box<RawValue>,
}

pub(crate) fn cal_convert(given: Convert, _: &mut Host) -> Result<Converted> {
    Converted::of(query_text(&given.query)?.as_bytes())
}

/// A statement in both forms; numbers stand in the JSON as they do in the text.
///
/// ```
/// let converted = grainstore_rpc::Converted::of(br#"recall beliefs about "alice""#)?;
/// assert_eq!(converted.text, r#"RECALL beliefs ABOUT "alice""#);
/// assert!(converted.json.is_some_and(|json| json.get().contains(r#""about""#)));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Converted {
    /// The normal text form.
    pub text: String,
    /// The JSON form.
    pub json: Option<Box<RawValue>>,
    query_hash: String,
}

impl Converted {
    /// Converts a statement in text or JSON.
    pub fn of(query: &[u8]) -> Result<Self> {
        let refused = |error: cal::Error| Error::from_cal(&error, &String::from_utf8_lossy(query));
        let source = cal::QuerySource::read_bytes(query).map_err(refused)?;
        let statement = source.statement().map_err(refused)?;
        Ok(Self {
            text: statement.to_string(),
            json: RawValue::from_string(statement.to_json()).ok(),
            query_hash: statement.query_hash(),
        })
    }
}

/// Arguments of [`cal_switch`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The new setting; without it nothing changes.
    pub to: Option<CalSwitch>,
    /// The reason, for the audit log.
    pub reason: Option<String>,
}

/// The setting of CAL, the answer of [`cal_switch`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Switched {
    /// How far it runs.
    pub cal: CalSwitch,
    changed: bool,
}

/// Shows how far CAL runs, or switches it.
///
/// ```
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// use grainstore::CalSwitch;
/// use grainstore_rpc::{Switch, cal_switch};
///
/// let off = Switch { to: Some(CalSwitch::Off), reason: Some("an agent runs wild".into()) };
/// assert_eq!(cal_switch(off, &session)?.cal, CalSwitch::Off);
/// assert_eq!(cal_switch(Switch { to: None, reason: None }, &session)?.cal, CalSwitch::Off);
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn cal_switch(given: Switch, session: &Session) -> Result<Switched> {
    let changed = match (given.to, given.reason) {
        (None, None) => false,
        (Some(to), Some(reason)) => session.switch_cal(to, &reason)?,
        _ => return Err(Error::arguments("give to and reason, or neither")),
    };
    Ok(Switched { cal: session.store().cal_switch(), changed })
}

/// Returns the query in the form it was sent: the content of a string, or the text of an object.
pub(crate) fn query_text(query: &RawValue) -> Result<Cow<'_, str>> {
    let sent = query.get();
    if sent.starts_with('{') {
        return Ok(Cow::Borrowed(sent));
    }
    let text: Result<String, _> = serde_json::from_str(sent);
    let said = match sent.starts_with('"') {
        true => "query must be Unicode text: half of a surrogate pair stands alone in it",
        false => "query must be CAL: text in a string, or an object in the JSON form",
    };
    text.map(Cow::Owned).map_err(|_| Error::arguments(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_converted_statement_keeps_its_numbers_as_they_are_written() {
        let query = "RECALL WHERE confidence >= 0.10 AND importance < 12345678901234567890123";
        let answer = Converted::of(query.as_bytes()).unwrap();
        let json = answer.json.unwrap();
        for number in ["\"value\":0.10", "\"value\":12345678901234567890123"] {
            assert!(json.get().contains(number), "{number}: {json}");
        }
    }
}
