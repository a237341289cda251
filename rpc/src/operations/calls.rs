//! Methods for CAL in two phases, and for its switch: `prepare`, `execute`, `cal_switch`; and `cal_convert`.

use grainstore::cal::{self, Tier};
use grainstore::format::GrainType;
use grainstore::{CapabilityToken, PrepareOptions, TokenLimits};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::params::{self, time};
use super::read::query_text;
use crate::error::{Code, Error};
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;

pub(crate) fn prepare(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Prepare = params::read(params)?;
    let query = query_text(&params.query)?;
    let preparing = PrepareOptions {
        tier: tier(params.tier)?,
        params: params.params.map(|pairs| pairs.0).unwrap_or_default(),
        as_format: params.format,
        now: time(params.now),
        terms: terms(params.terms.unwrap_or_default())?,
    };
    let params::Prepare { namespace, user_id, agent_id, .. } = params;
    let session = host.session()?.narrower_part(namespace, user_id, agent_id)?;
    let prepared = session.prepare(query.as_bytes(), &preparing);
    Answer::of(&prepared.map_err(|error| Error::cal(&error, &query))?)
}

/// Converts a statement to both forms, without a store.
pub(crate) fn convert(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::CalConvert = params::read(params)?;
    converted(&query_text(&params.query)?)
}

fn converted(query: &str) -> Result<Answer, Fault> {
    let refused = |error: cal::Error| Fault::from(Error::cal(&error, query));
    let source = cal::QuerySource::read(query).map_err(refused)?;
    let statement = source.statement().map_err(refused)?;
    Answer::of(&Converted {
        text: statement.to_string(),
        json: RawValue::from_string(statement.to_json()).ok(),
        query_hash: statement.query_hash(),
    })
}

/// A statement in both forms; numbers stand in the JSON as they do in the text.
#[derive(Serialize)]
struct Converted {
    text: String,
    json: Option<Box<RawValue>>,
    query_hash: String,
}

pub(crate) fn execute(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::Execute = params::read(params)?;
    let answer = host.session()?.execute(&token(params.token)?);
    Answer::of(&answer.map_err(|error| Error::cal(&error, ""))?)
}

/// Parses a token that was given back; a malformed one is ERR_TOKEN, like an invalid one.
pub(crate) fn token(given: serde_json::Value) -> Result<CapabilityToken, Fault> {
    let token = serde_json::from_value(given).map_err(|error| {
        let message = format!("this is no token: {error}");
        Error::new(Code::Token, message, "give the token as prepare answered it")
    })?;
    Ok(token)
}

pub(crate) fn switch(host: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params: params::CalSwitched = params::read(params)?;
    let session = host.session()?;
    let changed = match (params.to, params.reason) {
        (None, None) => false,
        (Some(to), Some(reason)) => session.switch_cal(to, &reason)?,
        _ => return Err(Fault::params("give to and reason, or neither")),
    };
    Answer::of(&json!({ "cal": session.store().cal_switch(), "changed": changed }))
}

pub(crate) fn tier(number: Option<u8>) -> Result<Tier, Fault> {
    match number {
        None | Some(0) => Ok(Tier::Read),
        Some(1) => Ok(Tier::Evolve),
        Some(_) => Err(Fault::params("tier must be 0 or 1")),
    }
}

fn terms(given: params::Terms) -> Result<TokenLimits, Fault> {
    let default = TokenLimits::default();
    let types = given.allowed_grain_types.unwrap_or_default().all("allowed_grain_types")?;
    let types = types.iter().map(|name| {
        let known = GrainType::STANDARD.into_iter().find(|of| of.name() == name);
        known.ok_or_else(|| Fault::params(format!("{name:?} is no grain type")))
    });
    Ok(TokenLimits {
        max_uses: given.max_uses.unwrap_or(default.max_uses),
        life_ms: given.life_ms.unwrap_or(default.life_ms),
        allowed_ops: given.allowed_ops.map(|ops| ops.all("allowed_ops")).transpose()?,
        allowed_grain_types: types.collect::<Result<_, _>>()?,
        write_quota: given.write_quota,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_converted_statement_keeps_its_numbers_as_they_are_written() {
        let query = "RECALL WHERE confidence >= 0.10 AND importance < 12345678901234567890123";
        let answer = converted(query).unwrap_or_else(|_| panic!("{query} is refused"));
        let json = std::str::from_utf8(answer.json()).unwrap();
        for number in ["\"value\":0.10", "\"value\":12345678901234567890123"] {
            assert!(json.contains(number), "{number}: {json}");
        }
    }
}
