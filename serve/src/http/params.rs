//! The parameters of a request, by the table of routes: from the path, the query string and the body into the one
//! object that a method takes.
//!
//! What a parameter means is checked by the method itself. Here stands what HTTP adds: names, places, and texts of a
//! URL that are numbers and the like.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, StatusCode, header};
use percent_encoding::percent_decode_str;
use serde_json::value::{RawValue, to_raw_value};

use super::failure::{Failure, Result};
use super::routes::{Kind, Place, Route};

/// Media type of a statement of CAL as text.
const TEXT_CAL: &str = "text/cal";
/// Media type of its JSON form.
const JSON_CAL: &str = "application/json+cal";

/// The parameters of a method, by name.
pub(super) type Params = BTreeMap<String, Box<RawValue>>;

/// Collects the parameters of a route.
///
/// # Errors
/// 400 for names that the route does not have, missing and malformed ones; 415 for another type of body.
pub(super) fn collect(
    route: &Route,
    path: &[(String, String)],
    query: Option<&str>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Params> {
    let mut params = of_body(route, headers, body)?;
    for (name, text) in path {
        add(route, Place::Path, name, text, &mut params)?;
    }
    for (name, text) in pairs(query.unwrap_or_default())? {
        if route.params_in(Place::Query).all(|param| param.name != name) {
            return Err(unknown(route, Place::Query, &name));
        }
        if params.contains_key(&name) {
            return Err(Failure::malformed(format!("{name} is given twice")));
        }
        add(route, Place::Query, &name, &text, &mut params)?;
    }
    let missing =
        route.params.iter().find(|param| param.is_required && !params.contains_key(param.member));
    match missing {
        Some(param) => {
            Err(Failure::malformed(format!("{} is missing: {}", param.name, param.about)))
        }
        None => Ok(params),
    }
}

/// The object that a method takes.
pub(super) fn object(params: &Params) -> Result<Box<RawValue>> {
    to_raw_value(params).map_err(|error| grainstore_rpc::Error::from(error).into())
}

/// The names and texts of a query string.
fn pairs(query: &str) -> Result<Vec<(String, String)>> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8().map(std::borrow::Cow::into_owned);
        decoded.map_err(|_| Failure::malformed("the query string is no UTF-8"))
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// Adds a parameter of a path or a query string.
fn add(route: &Route, place: Place, name: &str, text: &str, params: &mut Params) -> Result<()> {
    let Some(param) = route.params_in(place).find(|param| param.name == name) else {
        return Err(unknown(route, place, name));
    };
    let wrong = |what: &str| Err(Failure::malformed(format!("{name} is {what}")));
    let is_number = |digits: &str| {
        !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    // As JSON has them: without zeros before.
    let canonical = |digits: &str| match digits.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    };
    let json = match param.kind {
        Kind::Count if is_number(text) => canonical(text),
        Kind::Count => return wrong("a whole number from 0"),
        Kind::Time => match text.strip_prefix('-') {
            Some(digits) if is_number(digits) => format!("-{}", canonical(digits)),
            None if is_number(text) => canonical(text),
            _ => return wrong("a time in epoch milliseconds"),
        },
        Kind::Flag if ["true", "false"].contains(&text) => text.to_owned(),
        Kind::Flag => return wrong("true or false"),
        Kind::Word(words) if !words.contains(&text) => {
            return wrong(&format!("one of {}", words.join(", ")));
        }
        _ => serde_json::to_string(text).map_err(grainstore_rpc::Error::from)?,
    };
    let json = RawValue::from_string(json).map_err(grainstore_rpc::Error::from)?;
    params.insert(param.member.to_owned(), json);
    Ok(())
}

fn unknown(route: &Route, place: Place, name: &str) -> Failure {
    let name: String = name.chars().take(64).collect();
    let known: Vec<_> = route.params_in(place).map(|param| param.name).collect();
    let place = match place {
        Place::Path => "path",
        Place::Query => "query string",
        Place::Body => "body",
    };
    match known.is_empty() {
        true => Failure::malformed(format!(
            "{name:?} is unknown: this route takes nothing in the {place}"
        )),
        false => Failure::malformed(format!(
            "{name:?} is unknown: the {place} takes {}",
            known.join(", ")
        )),
    }
}

/// The media type of a body, in lowercase.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let (one, more) = (given.next()?, given.next());
    let essence = one.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
    more.is_none().then_some(essence)
}

/// The parameters in the body.
fn of_body(route: &Route, headers: &HeaderMap, body: &[u8]) -> Result<Params> {
    let takes = |name: &str| route.params_in(Place::Body).any(|param| param.name == name);
    if body.is_empty() {
        return Ok(Params::new());
    }
    let raw = |json: String| -> Result<Params> {
        let query = RawValue::from_string(json)
            .map_err(|error| Failure::malformed(format!("the body is no JSON: {error}")))?;
        Ok([("query".to_owned(), query)].into())
    };
    match media_type(headers).as_deref() {
        Some("application/json") => {}
        Some(TEXT_CAL) if takes("query") => {
            let text = match std::str::from_utf8(body) {
                Ok(text) => text.to_owned(),
                Err(_) => {
                    let error = grainstore::cal::QuerySource::read_bytes(body).err();
                    let lossy = String::from_utf8_lossy(body);
                    return Err(error.map_or_else(
                        || Failure::malformed("the body is no UTF-8"),
                        |error| grainstore_rpc::Error::from_cal(&error, &lossy).into(),
                    ));
                }
            };
            return raw(serde_json::to_string(&text).map_err(grainstore_rpc::Error::from)?);
        }
        Some(JSON_CAL) if takes("query") => {
            let text = std::str::from_utf8(body)
                .map_err(|_| Failure::malformed("the body is no UTF-8"))?;
            if !text.trim_start().starts_with('{') {
                return Err(Failure::malformed("a statement in JSON is an object"));
            }
            return raw(text.to_owned());
        }
        _ => {
            let message = match takes("query") {
                true => "the body is application/json, text/cal or application/json+cal",
                false => "the body is application/json",
            };
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Failure::new(status, "ERR_SCHEMA", message, "say so in Content-Type"));
        }
    }
    let mut params: Params = serde_json::from_slice(body)
        .map_err(|error| Failure::malformed(format!("the body is no object in JSON: {error}")))?;
    if let Some(name) = params.keys().find(|name| !takes(name)) {
        return Err(unknown(route, Place::Body, name));
    }
    // A member that is null is one that is left out.
    params.retain(|_, given| given.get() != "null");
    Ok(params)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::super::routes::ROUTES;
    use super::*;

    fn collected(path: &str, query: Option<&str>, media: &str, body: &str) -> Result<String> {
        let route = ROUTES.iter().find(|route| route.path == path).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        let of_path: Vec<_> = route
            .params_in(Place::Path)
            .map(|param| (param.name.to_owned(), "ab".to_owned()))
            .collect();
        let params = collect(route, &of_path, query, &headers, body.as_bytes())?;
        Ok(object(&params)?.get().to_owned())
    }

    #[test]
    fn parameters_of_all_places_are_one_object() {
        let json = "application/json; charset=utf-8";
        let held =
            collected("/v1/grains/{address}/hold", None, json, r#"{"reason":"case 7"}"#).unwrap();
        assert_eq!(held, r#"{"address":"ab","reason":"case 7"}"#);
        let query = Some("subject=a%20b+c&relation=%C3%A4&as_of=-0012&limit=007");
        let history = collected("/v1/history", query, json, "").unwrap();
        assert_eq!(history, r#"{"as_of":-12,"limit":7,"relation":"ä","subject":"a b c"}"#);
        let cal = collected("/v1/cal", None, "text/cal", "RECALL \"x\"").unwrap();
        assert_eq!(cal, r#"{"query":"RECALL \"x\""}"#);
        let cal = collected("/v1/cal", None, "application/json+cal", r#"{"statement":"recall"}"#)
            .unwrap();
        assert_eq!(cal, r#"{"query":{"statement":"recall"}}"#);
        // Numbers stay as they were written.
        let put =
            collected("/v1/grains", None, json, r#"{"grain":{"x":18446744073709551616}}"#).unwrap();
        assert_eq!(put, r#"{"grain":{"x":18446744073709551616}}"#);
    }

    #[test]
    fn what_a_route_does_not_take_is_refused() {
        let json = "application/json";
        for (path, query, media, body, status) in [
            ("/v1/grains", None, json, r#"{"tier":1}"#, 400),
            ("/v1/cal", None, json, r#"{"query":"RECALL","tier":1}"#, 400),
            ("/v1/cal", Some("tier=1"), json, r#"{"query":"RECALL"}"#, 400),
            ("/v1/grains/{address}/hold", None, json, r#"{"reason":"r","address":"cd"}"#, 400),
            ("/v1/grains/{address}/hold", None, json, "{}", 400),
            ("/v1/grains/{address}/hold", None, json, r#"{"reason":null}"#, 400),
            ("/v1/grains/{address}/hold", None, json, "[]", 400),
            ("/v1/grains/{address}/hold", None, json, "{\"reason\"", 400),
            ("/v1/grains/{address}/hold", None, "text/plain", r#"{"reason":"r"}"#, 415),
            ("/v1/grains/{address}/hold", None, "text/cal", "RECALL", 415),
            ("/v1/audit", Some("limit=1&limit=2"), json, "", 400),
            ("/v1/audit", Some("limit=-1"), json, "", 400),
            ("/v1/audit", Some("limit=1e3"), json, "", 400),
            ("/v1/audit", Some("limit=9999999999999999"), json, "", 400),
            ("/v1/audit", Some("reads=yes"), json, "", 400),
            ("/v1/audit", Some("by=%ff"), json, "", 400),
            ("/v1/audit", Some("path=/etc"), json, "", 400),
            ("/v1/policy", Some("preset=none"), json, "", 400),
        ] {
            let refused = collected(path, query, media, body).unwrap_err();
            assert_eq!(refused.status().as_u16(), status, "{path} {query:?} {body}");
        }
    }
}
